/** The log of the embedded server: why it cannot start, and the bound of its size. */
import { copyFileSync, readFileSync, statfsSync, statSync, truncateSync } from "node:fs"
import * as ReadFile from "../../files/ReadFile.ts"
import type { DataDirectory } from "./DataDirectory.ts"
import { type EmbeddedPostgresError, fail } from "./Failure.ts"

const logSizeMaxBytes = 8 * 1024 * 1024

/** The size of the log, from which a start reads it. */
export const logSize = (place: DataDirectory): number => statSync(place.logFile, { throwIfNoEntry: false })?.size ?? 0

/** What the server tells a session, which is not why it cannot start. */
const sessionFatal =
  /the database system is|authentication failed|terminating connection|connection slots|does not exist|canceling/

/** The last PANIC, else the last FATAL, of the server's log since that place. */
export const reasonSince = (place: DataDirectory, offset: number): string | undefined => {
  const log = ReadFile.bytesIfPresent(place.logFile) ?? Buffer.alloc(0)
  // The log was rotated where it is shorter.
  const lines = log
    .subarray(offset <= log.length ? offset : 0)
    .toString()
    .split("\n")
    .filter((line) => /\b(?:FATAL|PANIC): /.test(line) && !sessionFatal.test(line))
  const last = lines.findLast((line) => line.includes("PANIC: ")) ?? lines.at(-1)
  return last?.replace(/^.*?\b(?=(?:FATAL|PANIC): )/, "").slice(0, 400)
}

/** The log of the server, after the PANIC of another process of it. */
export const withPanic = (reason: string | undefined, log: string): string =>
  reason === undefined || log.includes(reason) ? log : `${reason} | ${log}`

/** The server writes at least one segment of its log of changes. */
const freeMinBytes = 16 * 1024 * 1024

/** Names the disk where it is full, else the log of the server. */
export const hintOf = (place: DataDirectory): string => {
  const { bavail, bsize } = statfsSync(place.root)
  const free = bavail * bsize
  return free < freeMinBytes
    ? `the disk of ${place.root} is full (${Math.floor(free / 1024)} KB free): free space there, then run this again`
    : `see ${place.logFile}`
}

/** The error of a wait that ended, with the reason that the server logged meanwhile. */
export const withReason = (
  place: DataDirectory,
  offset: number,
  error: EmbeddedPostgresError
): EmbeddedPostgresError => {
  const reason = error.step === "wait" ? reasonSince(place, offset) : undefined
  return reason === undefined
    ? error
    : fail(error.step, `${error.message}, which cannot start: ${reason}`, hintOf(place))
}

/** What the server has logged last since that place. */
export const lastLines = (place: DataDirectory, offset: number): string =>
  readFileSync(place.logFile).subarray(offset).toString().trim().split("\n").slice(-5).join(" | ")

/**
 * Bounds the log of a server that may run for months. The log is copied and truncated, since the server never opens it
 * again. The server appends, so its next line is at the beginning. A line in between may be lost.
 */
export const rotateLog = (place: DataDirectory): void => {
  try {
    if (statSync(place.logFile).size <= logSizeMaxBytes) return
    copyFileSync(place.logFile, `${place.logFile}.1`)
    truncateSync(place.logFile)
  } catch {
    // There is no log yet, or the disk is full: the next check tries again.
  }
}
