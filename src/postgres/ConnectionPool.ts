/**
 * A bounded pool of connections for short transactions.
 *
 * Promise: never more connections than the capacity; a connection is lent for one piece of work and never while its user
 * waits for anything but the server. Waiters are served by class, then fairly between parties, then by their due time, and
 * each fourth connection goes to the longest wait, so that none starves. A connection whose work failed is destroyed, so
 * that the server rolls back. An idle connection is closed after {@link idleMaxMs}.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import type pg from "pg"
import { DatabaseError } from "./DatabaseError.ts"

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
   * Lends a connection for the work. The work must not ask for a second one. A failure, also an interruption, destroys
   * the connection.
   */
  readonly use: <A, E, R>(
    urgency: Urgency,
    work: (client: pg.Client) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | DatabaseError, R>
  readonly stats: () => PoolStats
}

export interface PoolStats {
  readonly lent: number
  readonly idle: number
  readonly waiting: number
}

/** An idle connection is closed after this. */
export const idleMaxMs = 10_000
/** Of so many connections one goes to the longest wait. */
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

const isLoss = (exit: Exit.Exit<unknown, unknown>): boolean => {
  const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : null
  return error instanceof DatabaseError && error.isRetryable
}

/** Ends with the scope, and its connections with it. */
export const make = Effect.fnUntraced(function* (options: {
  readonly connect: Effect.Effect<pg.Client, DatabaseError, Scope.Scope>
  /** May grow. */
  readonly capacity: () => number
}): Effect.fn.Return<ConnectionPool, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const owner = yield* Effect.scope
  const nowMs = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const idle: Array<Connection> = []
  const waiting: Array<Waiter> = []
  const lentTo = new Map<string, number>()
  let lent = 0
  let grants = 0
  let isSweeping = false

  const heldBy = ({ party }: Urgency) => lentTo.get(party) ?? 0
  const isBefore = (one: Waiter, other: Waiter): boolean => {
    if (one.class !== other.class) return one.class < other.class
    const [held, otherHeld] = [heldBy(one), heldBy(other)]
    return held === otherHeld ? one.dueAt < other.dueAt : held < otherHeld
  }
  const next = (): Waiter | undefined => {
    grants += 1
    if (grants % oldestEach === 0) return waiting.shift()
    let best = 0
    for (let at = 1; at < waiting.length; at += 1) if (isBefore(waiting[at]!, waiting[best]!)) best = at
    return waiting.splice(best, 1)[0]
  }
  const grant = () => {
    while (lent < options.capacity() && waiting.length > 0) {
      const waiter = next()!
      lent += 1
      lentTo.set(waiter.party, heldBy(waiter) + 1)
      waiter.isGranted = true
      waiter.granted.openUnsafe()
    }
  }
  const giveBack = (waiter: Waiter) => {
    lent -= 1
    const held = heldBy(waiter) - 1
    if (held === 0) lentTo.delete(waiter.party)
    else lentTo.set(waiter.party, held)
    grant()
  }
  const leave = (waiter: Waiter) =>
    Effect.sync(() => {
      if (waiter.isGranted) return giveBack(waiter)
      const at = waiting.indexOf(waiter)
      if (at >= 0) waiting.splice(at, 1)
    })

  const open = Effect.fnUntraced(function* (restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) {
    const scope = yield* Scope.make()
    const client = yield* restore(Scope.provide(options.connect, scope)).pipe(
      Effect.onError(() => Scope.close(scope, Exit.void))
    )
    const connection: Connection = { client, scope, isLost: false, idleSinceMs: 0 }
    client.on("end", () => {
      connection.isLost = true
      const at = idle.indexOf(connection)
      if (at >= 0) idle.splice(at, 1)
    })
    return connection
  })
  const destroy = ({ scope }: Connection) => Scope.close(scope, Exit.die("the work on it failed"))
  const close = ({ scope }: Connection) => Scope.close(scope, Exit.void)

  /** Closes what is idle for long; ends when nothing is idle. */
  const sweep = Effect.gen(function* () {
    while (idle.length > 0) {
      yield* Effect.sleep(Math.max(1, idle[0]!.idleSinceMs + idleMaxMs - nowMs()))
      // The oldest stand first: the youngest is lent first.
      while (idle.length > 0 && idle[0]!.idleSinceMs + idleMaxMs <= nowMs()) yield* close(idle.shift()!)
    }
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        isSweeping = false
      })
    )
  )
  const keep = Effect.fnUntraced(function* (connection: Connection) {
    connection.idleSinceMs = nowMs()
    idle.push(connection)
    if (isSweeping) return
    isSweeping = true
    yield* Effect.forkIn(sweep, owner)
  })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => Effect.forEach(idle.splice(0), close, { concurrency: "unbounded", discard: true }))
  )

  const use: ConnectionPool["use"] = (urgency, work) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const waiter: Waiter = { ...urgency, granted: Latch.makeUnsafe(false), isGranted: false }
        waiting.push(waiter)
        grant()
        yield* Effect.onError(restore(waiter.granted.await), () => leave(waiter))
        const connection = idle.pop() ?? (yield* Effect.onError(open(restore), () => leave(waiter)))
        const exit = yield* Effect.exit(restore(work(connection.client)))
        if (Exit.isSuccess(exit) && !connection.isLost) yield* keep(connection)
        else {
          yield* destroy(connection)
          // What ended one connection may have ended all: an idle one is not lent any more.
          if (isLoss(exit) || connection.isLost) yield* Effect.forEach(idle.splice(0), destroy, { discard: true })
        }
        giveBack(waiter)
        return yield* exit
      })
    )

  return { use, stats: () => ({ lent, idle: idle.length, waiting: waiting.length }) }
})
