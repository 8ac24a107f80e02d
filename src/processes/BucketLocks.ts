/**
 * What `effect/cluster` stores for ClusterOwnership.ts: the registered processes, and one advisory lock for each bucket.
 *
 * Promise: all locks of a process are on one connection; another one has the registration. The locks end with their
 * connection; the next use connects again, without locks. The server ends a connection that is silent for
 * {@link expiration}, so that a frozen process keeps no lock. Each operation fails after {@link operationMax}. Locks that
 * are released while another operation runs are released together. A release never affects a lock that was acquired after
 * it was requested.
 *
 * The engine's own storage releases each lock by two statements of its own, all of them at the same time and each within
 * the limit of one operation. With 256 buckets and 20 ms to the server that limit passes, the connection is replaced, and
 * the process owns nothing any more.
 */
import type * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { PersistenceError } from "effect/cluster/ClusterError"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as ShardId from "effect/cluster/ShardId"
import * as Batched from "../postgres/Batched.ts"
import { type Client, queryNamed } from "../postgres/driver/Connection.ts"
import type { DatabaseShape } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"

/** A process that was silent for longer is not registered any more. */
export const expiration = Duration.seconds(7)
const expiredSql = `now() - ${Duration.toMillis(expiration)} * interval '1 millisecond'`
const operationMax = "2 seconds"
const openingMax = "10 seconds"

/** The engine's namespace for the prefix `tributary.cluster`, and its number of the lock of a bucket. */
const keySql = "1191796787, 1000000 + bucket"

export const expireStatement = Statement.make({
  name: "let the locks of buckets expire",
  columns: { set_config: "text" },
  text: `select set_config('idle_session_timeout', '${Duration.toMillis(expiration)}', false)`
})

export const lockStatement = Statement.make({
  name: "lock buckets",
  params: ["int4[]"],
  columns: { bucket: "int4", locked: "bool" },
  text: `select bucket, pg_try_advisory_lock(${keySql}) as locked from unnest($1::int4[]) as b(bucket)`
})

export const unlockStatement = Statement.make({
  name: "release the locks of buckets",
  params: ["int4[]"],
  columns: { pg_advisory_unlock: "bool" },
  text: `select pg_advisory_unlock(${keySql}) from unnest($1::int4[]) as b(bucket)`
})

export const unlockAllStatement = Statement.make({
  name: "release the locks of all buckets",
  columns: { pg_advisory_unlock_all: "void" },
  text: "select pg_advisory_unlock_all()"
})

export const registeredStatement = Statement.make({
  name: "list registered processes",
  isPrepared: true,
  columns: { runner: "text", healthy: "bool" },
  text: `select runner, healthy from tributary.cluster_runners where last_heartbeat > ${expiredSql}`
})

export const registerStatement = Statement.make({
  name: "register a process",
  params: ["text", "text", "bool"],
  columns: { machine_id: "int4" },
  text: `insert into tributary.cluster_runners (address, runner, last_heartbeat, healthy) values ($1::text, $2, now(), $3)
         on conflict (address) do update set runner = excluded.runner, last_heartbeat = excluded.last_heartbeat,
           healthy = excluded.healthy
         returning machine_id`
})

export const unregisterStatement = Statement.make({
  name: "unregister a process",
  params: ["text"],
  text: `delete from tributary.cluster_runners where address = $1 or last_heartbeat < ${expiredSql}`
})

export const healthStatement = Statement.make({
  name: "store the health of a process",
  params: ["text", "bool"],
  text: "update tributary.cluster_runners set healthy = $2 where address = $1"
})

export const heartbeatStatement = Statement.make({
  name: "renew the registration of a process",
  isPrepared: true,
  params: ["text"],
  text: "update tributary.cluster_runners set last_heartbeat = now() where address = $1"
})

type OperationError = DatabaseError | Cause.TimeoutError

interface Lock {
  readonly shardId: string
}

interface Session {
  readonly client: Client
  readonly scope: Scope.Closeable
  /** The locks of the session, by shard. */
  readonly locks: Map<string, Lock>
}

const persisted = Effect.mapError((cause: OperationError) => new PersistenceError({ cause }))

const bucketOfShard = (shardId: string): number => ShardId.fromString(shardId).id

/** A connection for operations. It ends with the scope, and all locks with it. */
const makeConnection = Effect.fnUntraced(function* (database: DatabaseShape) {
  const lifetime = yield* Effect.scope
  let session: Session | null = null
  let opening: Fiber.Fiber<Session, OperationError> | null = null
  /** One operation at a time, since the connection runs one statement after the other. */
  const line = yield* Semaphore.make(1)

  const closeSession = (exit: Exit.Exit<void>) =>
    Effect.suspend(() => {
      const left = session
      session = null
      return left === null ? Effect.void : Scope.close(left.scope, exit)
    })
  yield* Effect.addFinalizer(() => closeSession(Exit.void))

  const open = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const connected = Effect.tap(database.connect, (client) => queryNamed(client, expireStatement))
    const client = yield* Scope.provide(connected, scope).pipe(
      Effect.timeout(openingMax),
      Effect.onError(() => Scope.close(scope, Exit.die("the connection of the locks failed")))
    )
    const opened: Session = { client, scope, locks: new Map() }
    client.on("end", () => {
      if (session === opened) session = null
    })
    session = opened
    return opened
  })
  /** Connecting may take longer than the operation that needs the connection. */
  const opened = Effect.gen(function* () {
    if (session !== null) return session
    opening ??= yield* Effect.forkIn(
      Effect.ensuring(
        open,
        Effect.sync(() => {
          opening = null
        })
      ),
      lifetime
    )
    return yield* Fiber.join(opening)
  })
  /** Runs an operation on the connection. One that fails, or is interrupted, ends the connection and its locks. */
  const operate = <A>(
    operation: (current: Session) => Effect.Effect<A, DatabaseError>
  ): Effect.Effect<A, OperationError> =>
    line.withPermit(
      Effect.flatMap(opened, operation).pipe(
        Effect.timeout(operationMax),
        Effect.onError(() => closeSession(Exit.die("an operation on the locks failed")))
      )
    )
  const run: Statement.Run<OperationError> = (statement, ...values) =>
    operate(({ client }) => queryNamed(client, statement, ...values))

  return { operate, run, lockOf: (shardId: string) => session?.locks.get(shardId) }
})

const make = Effect.fnUntraced(function* (database: DatabaseShape) {
  const { operate, run, lockOf } = yield* makeConnection(database)
  // A slow look at the processes must not end the connection of the locks.
  const registry = yield* makeConnection(database)
  const acquire = (shardIds: ReadonlyArray<string>) =>
    operate(
      Effect.fnUntraced(function* ({ client, locks }) {
        const buckets = new Map(shardIds.filter((id) => !locks.has(id)).map((id) => [bucketOfShard(id), id]))
        const rows = buckets.size === 0 ? [] : yield* queryNamed(client, lockStatement, [[...buckets.keys()]])
        for (const { bucket, locked } of rows) {
          const shardId = buckets.get(bucket)!
          if (locked) locks.set(shardId, { shardId })
        }
        return shardIds.filter((id) => locks.has(id))
      })
    )
  const isLocked = (lock: Lock) => lockOf(lock.shardId) === lock
  const releaseTogether = Batched.make((released: ReadonlyArray<Lock>) =>
    operate(
      Effect.fnUntraced(function* ({ client, locks }) {
        const shardIds = released.filter(isLocked).map(({ shardId }) => shardId)
        if (shardIds.length > 0) yield* queryNamed(client, unlockStatement, [shardIds.map(bucketOfShard)])
        for (const shardId of shardIds) locks.delete(shardId)
        return released
      })
    )
  )
  /** The lock is the one at the time of the call: the engine repeats a release until it succeeds. */
  const release = (lock: Lock | undefined) =>
    Effect.suspend(() => (lock === undefined || !isLocked(lock) ? Effect.void : Effect.asVoid(releaseTogether(lock))))

  return RunnerStorage.makeEncoded({
    getRunners: persisted(
      Effect.map(registry.run(registeredStatement), (rows) =>
        rows.map(({ runner, healthy }) => [runner, healthy] as const)
      )
    ),
    register: (address, runner, healthy) =>
      persisted(Effect.map(registry.run(registerStatement, [address, runner, healthy]), ([row]) => row!.machine_id)),
    unregister: (address) => persisted(Effect.asVoid(registry.run(unregisterStatement, [address]))),
    setRunnerHealth: (address, healthy) => persisted(Effect.asVoid(registry.run(healthStatement, [address, healthy]))),
    acquire: (_address, shardIds) => persisted(acquire(shardIds)),
    refresh: (address, shardIds) =>
      persisted(
        Effect.map(run(heartbeatStatement, [address]), () => shardIds.filter((id) => lockOf(id) !== undefined))
      ),
    release: (_address, shardId) => persisted(release(lockOf(shardId))),
    releaseAll: () =>
      persisted(operate(({ client, locks }) => Effect.map(queryNamed(client, unlockAllStatement), () => locks.clear())))
  })
})

export const layer = (database: DatabaseShape): Layer.Layer<RunnerStorage.RunnerStorage> =>
  Layer.effect(RunnerStorage.RunnerStorage, make(database))
