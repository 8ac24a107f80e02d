/**
 * The server process: its initialisation, start and stop.
 *
 * Promise: a start or a stop that is interrupted or killed does not prevent the next one.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, mkdirSync, openSync, renameSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { basename, join } from "node:path"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import * as ReadFile from "../../files/ReadFile.ts"
import { type EmbeddedPostgresError, errnoOf, fail, folderFailure, onFolder } from "./Failure.ts"
import { type DataDirectory, makeDraft, own, ownFolder, privateHomeHint, spawnOptions } from "./DataDirectory.ts"
import { hintOf, linesOf, reasonSince, withPanic } from "./ServerLog.ts"
import { gone, isAlive, isServerOf, nameOf, pollMs, signal } from "./Process.ts"

export const superuser = "tributary"
export const startTimeoutMs = 120_000
const stopTimeout = Duration.seconds(30)

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

const runInitdb = (
  place: DataDirectory,
  target: string,
  durable: boolean
): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.callback((resume) => {
    const hint = () => privateHomeHint(place.identity, target, place.binaries.initdb)
    const here = ownFolder(place, target)
    const child = spawn(
      place.binaries.initdb,
      [
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
      ],
      { ...spawnOptions(place, target), stdio: ["ignore", "ignore", "pipe"] }
    )
    let output = ""
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.once("error", (error) => resume(Effect.fail(fail("initdb", error.message, hint()))))
    child.once("close", (status) =>
      resume(
        status === 0 ? Effect.void : Effect.fail(fail("initdb", output.trim().slice(-500) || `exit ${status}`, hint()))
      )
    )
    return Effect.callback<void>((done) => {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return done(Effect.void)
      child.once("close", () => done(Effect.void))
      child.kill("SIGKILL")
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

export const launch = (
  place: DataDirectory,
  wanted: WantedPort,
  durable: boolean
): Effect.Effect<Postmaster, EmbeddedPostgresError> =>
  Effect.flatMap(freePort(wanted), (port) =>
    // From the spawn on, an interruption must end the process.
    Effect.uninterruptibleMask((restore) => launchAt(place, port, durable, restore))
  )

const launchAt = Effect.fnUntraced(function* (
  place: DataDirectory,
  port: number,
  durable: boolean,
  restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
) {
  const { child, offset } = yield* onFolder(place.root, () => {
    removeStaleLock(place)
    return spawnPostgres(place, port, durable)
  })
  let ended: string | undefined
  // Another process used the server before this process checked, and stopped it as its last user.
  let wasStopped = false
  child.once("error", (error) => {
    ended = error.message
  })
  child.once("exit", (status, by) => {
    ended ??= `exit ${status ?? by}`
    wasStopped = status === 0
  })
  const ready = Effect.suspend(() => {
    if (ended !== undefined) {
      const log = linesOf(place, offset, child.pid)
      const hint = privateHomeHint(place.identity, place.dataDir, place.binaries.postgres)
      return Effect.fail(
        fail(
          wasStopped || lostRace.test(log) ? "wait" : "start",
          `the embedded Postgres cannot start (${ended}): ${withPanic(reasonSince(place, offset), log.slice(-400))}`,
          hint ?? hintOf(place)
        )
      )
    }
    return Effect.flatMap(
      onFolder(place.root, () => readPostmaster(postmasterFile(place))),
      (postmaster) =>
        postmaster?.pid === child.pid && postmaster?.status === "ready"
          ? Effect.succeed(postmaster)
          : Effect.fail(fail("starting", "the server did not become ready in time", `see ${place.logFile}`))
    )
  })
  return yield* ready.pipe(
    Effect.retry({
      schedule: Schedule.spaced(pollMs),
      times: startTimeoutMs / pollMs,
      while: (error) => error.step === "starting"
    }),
    restore,
    // Interrupted, or never ready: it has no other users, so this process ends it.
    Effect.onExit((exit) =>
      Exit.isSuccess(exit) || child.pid === undefined || ended !== undefined ? Effect.void : stop(place, child.pid)
    )
  )
})

const spawnPostgres = (
  place: DataDirectory,
  port: number,
  durable: boolean
): { readonly child: ChildProcess; readonly offset: number } => {
  const log = openSync(place.logFile, "a", 0o600)
  own(place.logFile, place.identity)
  const offset = statSync(place.logFile).size
  try {
    const child = spawn(
      place.binaries.postgres,
      [
        "-D",
        ownFolder(place, place.dataDir),
        "-p",
        String(port),
        ...settings(place, durable).flatMap((setting) => ["-c", setting])
      ],
      // A session of its own: Ctrl-C in the terminal must not reach the server before our finalizers have run.
      { ...spawnOptions(place, place.dataDir), detached: true, stdio: ["ignore", log, log] }
    )
    child.unref()
    return { child, offset }
  } finally {
    closeSync(log)
  }
}

/** A fast shutdown: sessions are ended, data is written. When that takes too long, an immediate one (the next start recovers). */
export const stop = (place: DataDirectory, pid: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (process.platform === "win32") return yield* pgCtlStop(place)
    signal(pid, "SIGINT")
    if (yield* gone(pid, stopTimeout)) return
    signal(pid, "SIGQUIT")
    yield* gone(pid, stopTimeout)
  })

/** Windows has no signals between processes; pg_ctl sends its request to the server by a named pipe. */
const pgCtlStop = (place: DataDirectory): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const seconds = String(Duration.toSeconds(stopTimeout))
    const child = spawn(place.binaries.pg_ctl, ["stop", "-D", place.dataDir, "-m", "fast", "-w", "-t", seconds], {
      ...spawnOptions(place, place.root),
      stdio: "ignore"
    })
    child.once("error", () => resume(Effect.void))
    child.once("close", () => resume(Effect.void))
  })
