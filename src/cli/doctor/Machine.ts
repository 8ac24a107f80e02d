/**
 * The checks of the machine and the working directory: Node, time zones, `.env`, and the disk of the warehouse. Its free space
 * is known only where the server runs on this machine: SQL does not show it.
 */
import { statSync } from "node:fs"
import { statfs } from "node:fs/promises"
import { dirname } from "node:path"
import * as Effect from "effect/Effect"
import type { ObservedProblem } from "../../processes/Observe.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as ReadFile from "../../files/ReadFile.ts"
import { Database } from "../../postgres/Database.ts"
import { isLoopback } from "../../postgres/DatabaseUrl.ts"
import * as Statement from "../../postgres/Statement.ts"
import { isInstalled } from "../../postgres/embedded/DataDirectory.ts"
import { ignoresEnvironment } from "../init/Files.ts"
import { about, type About, type Check, type Finding, type Findings } from "./Finding.ts"

/** The oldest Node that runs the program. */
const nodeMin = [22, 19] as const

const node = ({ ok, failed }: About): Findings => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  const isOld = major < nodeMin[0] || (major === nodeMin[0] && minor < nodeMin[1])
  const text = `Node ${process.versions.node} on ${process.platform}-${process.arch}`
  return [isOld ? failed("configuration", text, `install Node ${nodeMin.join(".")} or later`) : ok(text)]
}

/** Whether Node has the rules of the time zones, which cron expressions need. */
const timeZones = ({ ok, failed }: About): Findings => {
  const inJuly = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Berlin", hour: "2-digit", hourCycle: "h23" })
  const zones = Intl.supportedValuesOf("timeZone").length
  const isKnown = zones > 300 && inJuly.format(Date.UTC(2026, 6, 1, 12)) === "14"
  return [
    isKnown
      ? ok(`${zones} time zones are known (data ${process.versions["tz"] ?? "of the system"})`)
      : failed(
          "configuration",
          "this Node knows no time zones, so that cron schedules would run at wrong hours",
          "install Node with full ICU data (the usual builds have it)"
        )
  ]
}

/** Whether other users cannot read `.env`, and Git ignores it. */
const environmentFile = ({ ok, warning, skipped }: About): Findings => {
  if (!ReadFile.exists(".env")) return [skipped("there is none: secrets come from the environment")]
  const { mode } = statSync(".env")
  const findings: Array<Finding> = []
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    findings.push(
      warning(`other users of this machine may read it (mode ${(mode & 0o777).toString(8)})`, "run: chmod 600 .env")
    )
  }
  const ignored = ReadFile.textIfPresent(".gitignore")
  if (ignored !== null && !ignoresEnvironment(ignored)) {
    findings.push(
      warning(".gitignore does not name it", "add a line .env to .gitignore, so that no token gets into the repository")
    )
  }
  return findings.length > 0 ? findings : [ok("only its owner can read it")]
}

/** The checks that need nothing but the machine. */
export const machineChecks: ReadonlyArray<Check<void>> = [
  { name: "node", run: (its) => Effect.sync(() => node(its)) },
  { name: "time zones", run: (its) => Effect.sync(() => timeZones(its)) },
  { name: ".env", run: (its) => Effect.sync(() => environmentFile(its)) }
]

const existing = (path: string): string =>
  ReadFile.exists(path) || dirname(path) === path ? path : existing(dirname(path))

const gigabyte = 1024 ** 3

/** A size in the unit that a person would choose. */
export const size = (bytes: number): string =>
  bytes >= gigabyte ? `${(bytes / gigabyte).toFixed(1)} GB` : `${Math.round(bytes / 1024 ** 2)} MB`

const freeMinBytes = 0.2 * gigabyte
const freeLowBytes = 2 * gigabyte

/** The free space of the disk of this folder, which need not exist yet. */
const space = Effect.fnUntraced(function* ({ ok, warning, failed, skipped }: About, folder: string, whose: string) {
  const found = yield* Effect.option(Effect.tryPromise(async () => statfs(existing(folder))))
  if (found._tag === "None") return skipped(`the free space at ${folder} cannot be read`)
  const free = found.value.bavail * found.value.bsize
  const text = `${size(free)} free for ${whose} (${folder})`
  const remedy = "free space there, or move it to another disk; a full disk stops Postgres"
  return free < freeMinBytes
    ? failed("configuration", text, remedy)
    : free < freeLowBytes
      ? warning(text, remedy)
      : ok(text)
})

/** The disk of the embedded Postgres, where it is used. */
export const disk = Effect.fnUntraced(function* (
  its: About,
  { databaseUrl, dataDirectory }: Configuration
): Effect.fn.Return<Findings> {
  const isUsed = databaseUrl === null && (yield* isInstalled)
  return isUsed ? [yield* space(its, dataDirectory, "the embedded Postgres")] : []
})

export const directoryStatement = Statement.make({
  name: "look for the folder of the server",
  columns: { folder: "text" },
  text: "select current_setting('data_directory') as folder"
})

/** The disk of a server that is not embedded. */
export const serverDisk = Effect.fnUntraced(function* (its: About, host: string) {
  const isHere = host.startsWith("/") || isLoopback(host)
  // Only an administrator may read this setting.
  const [row] = isHere ? yield* Effect.orElseSucceed(Statement.run(directoryStatement), () => []) : []
  // This process may have no right to look there, or the server may be in a container with folders of its own.
  const isFound =
    row !== undefined &&
    (yield* Effect.orElseSucceed(
      ReadFile.attempt(row.folder, () => ReadFile.exists(row.folder)),
      () => false
    ))
  return !isFound
    ? its.skipped("SQL does not show the free space of the server's disk")
    : yield* space(its, row.folder, "the server")
})

/** The problem of the warehouse's disk; none without one, and where its free space is not known. */
export const diskProblems = Effect.fnUntraced(function* (settings: Configuration) {
  const { embedded, endpoint } = yield* Database
  const its = about("disk")
  const findings = embedded ? yield* disk(its, settings) : [yield* serverDisk(its, endpoint.host)]
  return findings
    .filter(({ status }) => status === "warning" || status === "failed")
    .map(({ message, remedy, status }): ObservedProblem => ({
      kind: "disk",
      subject: endpoint.host,
      level: status === "failed" ? 1 : 0,
      what: message,
      remedy: remedy ?? "free space there",
      command: "tributary doctor"
    }))
})
