/**
 * The server process: its initialisation, start and stop.
 *
 * Promise: a start or a stop that is interrupted or killed does not prevent the next one.
 */
import { spawn } from "node:child_process"
import { closeSync, mkdirSync, openSync, renameSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { basename, join } from "node:path"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as ReadFile from "../../files/ReadFile.ts"
import { type EmbeddedPostgresError, errnoOf, fail, folderFailure, onFolder } from "./Failure.ts"
import { type DataDirectory, makeDraft, own, ownFolder, privateHomeHint, spawnOptions } from "./DataDirectory.ts"
import { hintOf, lastLines, logSize, reasonSince, withPanic } from "./ServerLog.ts"
import { isAlive, isServerOf, nameOf, pollMs } from "./Process.ts"

export const superuser = "tributary"
export const startTimeoutMs = 120_000

/** WAL between two checkpoints: at most 4 GB, and an eighth of the free space, which a fast load would fill otherwise. */
export const walSizeMaxMb = (freeBytes: number): number =>
  Math.max(96, Math.min(4096, Math.floor(freeBytes / 8 / 1024 / 1024)))

const freeBytesAt = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

const settings = (place: DataDirectory, durable: boolean): ReadonlyArray<string> => [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "logging_collector=off",
  "log_line_prefix=%m [%p] ",
  "log_checkpoints=off",
  "shared_buffers=256MB",
  `max_wal_size=${walSizeMaxMb(freeBytesAt(place.dataDir))}MB`,
  // Filling a new WAL segment with zeros delays every commit, by about 80 ms for each 16 MB that are written.
  "wal_init_zero=off",
  "idle_in_transaction_session_timeout=10min",
  "synchronous_commit=on",
  ...(durable ? ["fsync=on", "max_connections=100"] : ["fsync=off", "full_page_writes=off", "max_connections=300"])
]

const isInitialised = (place: DataDirectory) => ReadFile.exists(join(place.dataDir, "PG_VERSION"))

const makeDraftWithData = (place: DataDirectory): string => {
  const draft = makeDraft(place.root)
  mkdirSync(join(draft, "data"), { mode: 0o700 })
  for (const folder of [draft, join(draft, "data")]) own(folder, place.identity)
  return draft
}

/** Initialises a draft, then renames it: a crash half-way leaves only a folder that the next start removes. */
export const initialise = (place: DataDirectory, durable: boolean): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const draft = yield* onFolder(place.root, () => (isInitialised(place) ? null : makeDraftWithData(place)))
    if (draft === null) return
    yield* runInitdb(place, join(draft, "data"), durable).pipe(
      Effect.andThen(
        Effect.try({
          try: () => renameSync(join(draft, "data"), place.dataDir),
          catch: (error) => folderFailure(error, place.root, "initdb")
        })
      ),
      // Another process was faster: its cluster is used.
      Effect.catchIf(
        () => isInitialised(place),
        () => Effect.void
      ),
      Effect.ensuring(Effect.sync(() => rmSync(draft, { recursive: true, force: true, maxRetries: 3 })))
    )
  })

const runInitdb = Effect.fnUntraced(function* (
  place: DataDirectory,
  target: string,
  durable: boolean
): Effect.fn.Return<void, EmbeddedPostgresError> {
  const here = ownFolder(place, target)
  const { status, output } = yield* run(place, "initdb", target, "pipe", [
    `--pgdata=${here}`,
    `--username=${superuser}`,
    `--pwfile=${here === target ? place.passwordFile : `${here}/../../${basename(place.passwordFile)}`}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--no-locale",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
    ...(durable ? [] : ["--no-sync"])
  ])
  if (status === 0) return
  const hint = privateHomeHint(place.identity, target, place.binaries.initdb)
  return yield* fail("initdb", output.trim().slice(-500) || `exit ${status}`, hint)
})

/**
 * Runs a program of Postgres in a folder, to its end. An interruption ends it, and `pg_ctl` ends the server that it is
 * starting. With `pipe` its errors are the output.
 */
const run = (
  place: DataDirectory,
  program: "initdb" | "pg_ctl",
  folder: string,
  errors: "pipe" | number,
  args: ReadonlyArray<string>
): Effect.Effect<{ readonly status: number | string; readonly output: string }> =>
  Effect.callback((resume) => {
    const stdout = errors === "pipe" ? "ignore" : errors
    const child = spawn(place.binaries[program], args, {
      ...spawnOptions(place, folder),
      stdio: ["ignore", stdout, errors]
    })
    let output = ""
    child.stderr?.on("data", (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.once("error", (error) => resume(Effect.succeed({ status: error.message, output: error.message })))
    child.once("close", (status, by) => resume(Effect.succeed({ status: status ?? by ?? "", output })))
    return Effect.callback<void>((done) => {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return done(Effect.void)
      child.once("close", () => done(Effect.void))
      child.kill("SIGINT")
    })
  })

const turnFile = (place: DataDirectory) => join(place.root, "starting")

/**
 * One start at a time. Postgres itself allows only one, but a dozen failing starts would slow the successful one down.
 * A lock of a process that died, or that is older than the longest start, is ignored.
 */
export const withLock = <A>(
  place: DataDirectory,
  work: Effect.Effect<A, EmbeddedPostgresError>
): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.acquireUseRelease(
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (yield* onFolder(place.root, () => takeTurn(place, now))) return
      return yield* fail("wait", "another process is starting it")
    }),
    () => work,
    () => Effect.sync(() => rmSync(turnFile(place), { force: true }))
  )

const takeTurn = (place: DataDirectory, now: number): boolean => {
  const path = turnFile(place)
  const holder = ReadFile.textIfPresent(path)
  if (holder !== null) {
    const ageMs = now - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now)
    // Empty: its holder is about to write its name.
    const isHeld = holder === "" ? ageMs < 1000 : isAlive(holder) && ageMs < 2 * startTimeoutMs
    if (isHeld) return false
    rmSync(path, { force: true })
  }
  try {
    writeFileSync(path, nameOf(process.pid), { flag: "wx" })
    own(path, place.identity)
    return true
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false
    rmSync(path, { force: true })
    throw error
  }
}

export interface Postmaster {
  readonly pid: number
  /** When it was started, by the clock of the machine. */
  readonly startedAtMs: number
  readonly port: number
  /** "starting", "ready", "stopping"; the server writes it there. */
  readonly status: string
}

const postmasterFile = (place: Pick<DataDirectory, "dataDir">) => join(place.dataDir, "postmaster.pid")

const readPostmaster = (path: string): Postmaster | undefined => {
  const lines = ReadFile.textIfPresent(path)?.split("\n")
  return lines === undefined
    ? undefined
    : {
        pid: Number(lines[0]),
        startedAtMs: Number(lines[2]) * 1000,
        port: Number(lines[3]),
        status: (lines[7] ?? "").trim()
      }
}

/** Whether this process is alive and serves this folder, and its id has not passed to another process. */
export const isOurs = (place: Pick<DataDirectory, "dataDir">, { pid, startedAtMs }: Postmaster): boolean =>
  isServerOf(place.dataDir, pid, startedAtMs)

/** The server of this folder, when it runs. Throws the error of the file system. */
export const runningPostmaster = (place: Pick<DataDirectory, "dataDir">): Postmaster | undefined => {
  const found = readPostmaster(postmasterFile(place))
  return found !== undefined && isOurs(place, found) ? found : undefined
}

/**
 * Postgres refuses to start while the process in `postmaster.pid` exists, also when that is a zombie or another program
 * that got the id after a restart of the machine or container. Where that is known, the file is removed. No other
 * process starts the server meanwhile ({@link withLock}).
 */
const removeStaleLock = (place: DataDirectory) => {
  const path = postmasterFile(place)
  const stale = readPostmaster(path)
  if (process.platform === "win32" || stale === undefined || isOurs(place, stale)) return
  rmSync(path, { force: true })
}

/** The preferred port, and the maximum wait while it is in use; after that the next free one is used. */
export interface WantedPort {
  readonly port: number
  readonly waitMax: Duration.Duration
}

/** The ports that are tried after a port that is in use. */
const nextPorts = (port: number): ReadonlyArray<number> =>
  port === 0 ? [] : Array.from({ length: Math.min(20, 65_535 - port) }, (_, index) => port + 1 + index)

export const freePort = ({ port, waitMax }: WantedPort): Effect.Effect<number, EmbeddedPostgresError> => {
  const probe = (wanted: number) =>
    Effect.callback<number, EmbeddedPostgresError>((resume) => {
      const server = createServer()
      server.once("error", (error) => resume(Effect.fail(fail("start", `no free port: ${error.message}`))))
      server.listen({ port: wanted, host: "127.0.0.1", exclusive: true }, () => {
        const free = (server.address() as AddressInfo).port
        server.close(() => resume(Effect.succeed(free)))
      })
    })
  return probe(port).pipe(
    Effect.retry({ schedule: Schedule.spaced(pollMs), times: Math.ceil(Duration.toMillis(waitMax) / pollMs) }),
    Effect.catch(() => Effect.firstSuccessOf([...nextPorts(port).map(probe), probe(0)]))
  )
}

/** The messages of a start when another start was faster; then the running server is used. */
const lostRace =
  /lock file "[^"]*" (?:already exists|is empty)|could not bind|Address already in use|pre-existing shared memory/

/** Runs `pg_ctl` on the data folder; what it and the server print goes to the log. */
const pgCtl = (place: DataDirectory, ...args: ReadonlyArray<string>) =>
  Effect.acquireUseRelease(
    onFolder(place.root, () => {
      const log = openSync(place.logFile, "a", 0o600)
      own(place.logFile, place.identity)
      return log
    }),
    (log) => run(place, "pg_ctl", place.dataDir, log, [...args, "-D", ownFolder(place, place.dataDir), "-w", "-s"]),
    (log) => Effect.sync(() => closeSync(log))
  )

export const launch = Effect.fnUntraced(function* (
  place: DataDirectory,
  wanted: WantedPort,
  durable: boolean
): Effect.fn.Return<Postmaster, EmbeddedPostgresError> {
  const port = yield* freePort(wanted)
  const offset = yield* onFolder(place.root, () => {
    removeStaleLock(place)
    return logSize(place)
  })
  const options = [`-p ${port}`, ...settings(place, durable).map((setting) => `-c "${setting}"`)].join(" ")
  const { status } = yield* pgCtl(place, "start", "-t", String(startTimeoutMs / 1000), "-o", options).pipe(
    // It has no other users.
    Effect.onInterrupt(() => stop(place))
  )
  const postmaster = yield* onFolder(place.root, () => runningPostmaster(place))
  if (status === 0 && postmaster?.status === "ready") return postmaster
  const log = lastLines(place, offset)
  const reason = reasonSince(place, offset)
  // Another process used the server before this process found it ready, and stopped it as its last user.
  const wasStopped = status === 0 || (reason === undefined && log.includes("database system is shut down"))
  const hint = privateHomeHint(place.identity, place.dataDir, place.binaries.postgres)
  return yield* fail(
    wasStopped || lostRace.test(log) ? "wait" : "start",
    `the embedded Postgres cannot start (${status}): ${withPanic(reason, log.slice(-400))}`,
    hint ?? hintOf(place)
  )
})

/** A fast shutdown: sessions are ended, data is written. When that takes too long, an immediate one (the next start recovers). */
export const stop = (place: DataDirectory): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (const mode of ["fast", "immediate"]) {
      const running = runningPostmaster(place)
      if (running === undefined) return
      yield* pgCtl(place, "stop", "-t", "30", "-m", mode)
      // The process ends a moment after its file.
      yield* Effect.repeat(
        Effect.sync(() => isOurs(place, running)),
        { until: (isAlive) => !isAlive, schedule: Schedule.spaced(pollMs), times: 40 }
      )
    }
  }).pipe(Effect.ignore)
