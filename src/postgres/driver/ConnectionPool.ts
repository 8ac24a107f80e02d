/**
 * A bounded pool of connections for short transactions.
 *
 * Promise: there are never more connections than the capacity. A connection is lent for one piece of work, and never while
 * its user waits for anything but the server. Waiters are served by class, then fairly between parties, then by their due
 * time; each fourth connection goes to the longest wait, so that none starves. A connection whose work failed is
 * destroyed, so that the server rolls back. An idle connection is closed after {@link idleMaxMs}.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import type pg from "pg"
import { DatabaseError } from "../DatabaseError.ts"
import * as MonotonicClock from "../../time/MonotonicClock.ts"

/** Which of several waiters is served first. */
export interface Urgency {
  /** A waiter of a smaller class is served first. */
  readonly class: number
  /** Within a class the party with the fewest connections is served first. */
  readonly party: string
  /** Within a party the earliest is served first, in milliseconds since 1970. */
  readonly dueAt: number
}

export interface ConnectionPool {
  /**
   * Lends a connection for the work. The work must not request a second one. A failure, also an interruption, destroys
   * the connection.
   */
  readonly use: <A, E, R>(
    urgency: Urgency,
    work: (client: pg.Client) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | DatabaseError, R>
  readonly stats: () => PoolStats
}

export interface PoolOptions {
  readonly connect: Effect.Effect<pg.Client, DatabaseError, Scope.Scope>
  /** The maximum of connections; it may grow. */
  readonly capacity: () => number
}

export interface PoolStats {
  readonly lent: number
  readonly waiting: number
}

const idleMaxMs = 10_000
/** One of this many lent connections goes to the longest wait. */
const oldestEach = 4

interface Waiter extends Urgency {
  readonly granted: Latch.Latch
  isGranted: boolean
}

interface Connection {
  readonly client: pg.Client
  readonly scope: Scope.Closeable
  isLost: boolean
  idleSinceMs: number
}

interface Pool extends PoolOptions {
  readonly scope: Scope.Scope
  readonly nowMs: () => number
  /** The connection that is idle for the longest time is first. */
  readonly idle: Array<Connection>
  /** The longest wait is first. */
  readonly waiting: Array<Waiter>
  /** Connections that each party has, where it has any. */
  readonly lentByParty: Map<string, number>
  lent: number
  grants: number
  isSweeping: boolean
}

// ----------------------------------------------------------------------------------------------------------- waiters

const lentTo = ({ lentByParty }: Pool, { party }: Urgency) => lentByParty.get(party) ?? 0

const isBefore = (pool: Pool, one: Waiter, other: Waiter): boolean => {
  if (one.class !== other.class) return one.class < other.class
  const [lent, otherLent] = [lentTo(pool, one), lentTo(pool, other)]
  return lent === otherLent ? one.dueAt < other.dueAt : lent < otherLent
}

const nextWaiter = (pool: Pool): Waiter => {
  const { waiting } = pool
  pool.grants += 1
  let best = 0
  if (pool.grants % oldestEach !== 0)
    for (let at = 1; at < waiting.length; at += 1) if (isBefore(pool, waiting[at]!, waiting[best]!)) best = at
  return waiting.splice(best, 1)[0]!
}

const grantConnections = (pool: Pool) => {
  while (pool.lent < pool.capacity() && pool.waiting.length > 0) {
    const waiter = nextWaiter(pool)
    pool.lent += 1
    pool.lentByParty.set(waiter.party, lentTo(pool, waiter) + 1)
    waiter.isGranted = true
    waiter.granted.openUnsafe()
  }
}

const returnGrant = (pool: Pool, waiter: Waiter) => {
  pool.lent -= 1
  const lent = lentTo(pool, waiter) - 1
  if (lent === 0) pool.lentByParty.delete(waiter.party)
  else pool.lentByParty.set(waiter.party, lent)
  grantConnections(pool)
}

const removeWaiter = (pool: Pool, waiter: Waiter) =>
  Effect.sync(() => {
    if (waiter.isGranted) return returnGrant(pool, waiter)
    removeFrom(pool.waiting, waiter)
  })

const removeFrom = <A>(list: Array<A>, one: A) => {
  const at = list.indexOf(one)
  if (at >= 0) list.splice(at, 1)
}

// -------------------------------------------------------------------------------------------------------- connections

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const openConnection = Effect.fnUntraced(function* ({ connect, idle }: Pool, restore: Restore) {
  const scope = yield* Scope.make()
  const client = yield* restore(Scope.provide(connect, scope)).pipe(Effect.onError(() => Scope.close(scope, Exit.void)))
  const connection: Connection = { client, scope, isLost: false, idleSinceMs: 0 }
  client.on("end", () => {
    connection.isLost = true
    removeFrom(idle, connection)
  })
  return connection
})

const closeConnection = ({ scope }: Connection) => Scope.close(scope, Exit.void)

const destroyConnection = ({ scope }: Connection) => Scope.close(scope, Exit.die("the work on it failed"))

const isConnectionLoss = (exit: Exit.Exit<unknown, unknown>): boolean => {
  const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : null
  return error instanceof DatabaseError && error.isRetryable
}

/** Closes connections that are idle for long; ends when none is idle. */
const sweepIdle = Effect.fnUntraced(function* ({ idle, nowMs }: Pool) {
  while (idle.length > 0) {
    yield* Effect.sleep(Math.max(1, idle[0]!.idleSinceMs + idleMaxMs - nowMs()))
    while (idle.length > 0 && idle[0]!.idleSinceMs + idleMaxMs <= nowMs()) yield* closeConnection(idle.shift()!)
  }
})

const keepIdle = Effect.fnUntraced(function* (pool: Pool, connection: Connection) {
  connection.idleSinceMs = pool.nowMs()
  pool.idle.push(connection)
  if (pool.isSweeping) return
  pool.isSweeping = true
  const sweep = Effect.ensuring(
    sweepIdle(pool),
    Effect.sync(() => {
      pool.isSweeping = false
    })
  )
  yield* Effect.forkIn(sweep, pool.scope)
})

const useConnection = <A, E, R>(
  pool: Pool,
  urgency: Urgency,
  work: (client: pg.Client) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | DatabaseError, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { idle } = pool
      const waiter: Waiter = { ...urgency, granted: Latch.makeUnsafe(false), isGranted: false }
      pool.waiting.push(waiter)
      grantConnections(pool)
      yield* Effect.onError(restore(waiter.granted.await), () => removeWaiter(pool, waiter))
      const connection =
        idle.pop() ?? (yield* Effect.onError(openConnection(pool, restore), () => removeWaiter(pool, waiter)))
      const exit = yield* Effect.exit(restore(work(connection.client)))
      if (Exit.isSuccess(exit) && !connection.isLost) yield* keepIdle(pool, connection)
      else {
        yield* destroyConnection(connection)
        // The fault that ended one connection may have ended all: an idle one is not lent any more.
        if (isConnectionLoss(exit) || connection.isLost) {
          yield* Effect.forEach(idle.splice(0), destroyConnection, { discard: true })
        }
      }
      returnGrant(pool, waiter)
      return yield* exit
    })
  )

/** Ends with the scope, and its connections with it. */
export const make = Effect.fnUntraced(function* (
  options: PoolOptions
): Effect.fn.Return<ConnectionPool, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const pool: Pool = {
    ...options,
    scope: yield* Effect.scope,
    nowMs: () => MonotonicClock.nowMs(clock),
    idle: [],
    waiting: [],
    lentByParty: new Map(),
    lent: 0,
    grants: 0,
    isSweeping: false
  }
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() =>
      Effect.forEach(pool.idle.splice(0), closeConnection, { concurrency: "unbounded", discard: true })
    )
  )
  return {
    use: (urgency, work) => useConnection(pool, urgency, work),
    stats: () => ({ lent: pool.lent, waiting: pool.waiting.length })
  }
})
