/**
 * A pool of fibers that fetch records by number.
 *
 * Promise: a slow fetch delays no other: another reader starts beside a stuck one. A fetch without an answer fails
 * after a bounded time.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as EffectQueue from "effect/Queue"
import * as Result from "effect/Result"
import type { ConnectorShape } from "../connector/Connector.ts"
import { SourceError, TimedOut } from "../connector/SourceError.ts"
import type { Table } from "../warehouse/Table.ts"
import { type CircuitBreaker, failureScopeOf } from "../sync/CircuitBreaker.ts"
import * as InFlightTimeout from "../sync/InFlightTimeout.ts"
import type { FetchAnswer, FetchRequest, FetchResult } from "./ResolveFetches.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

export interface ReaderPoolOptions {
  readonly connector: ConnectorShape
  readonly resource: Table["resource"]
  readonly breaker: CircuitBreaker
  /** A fetch that takes longer no longer counts as in flight: another one may begin beside it. */
  readonly stuckAfter: Duration.Duration
  /** A fetch that takes longer fails. */
  readonly readTimeout: Duration.Duration
}

export interface ReaderPool extends ReaderPoolOptions {
  /** The monotonic clock, in milliseconds. */
  readonly now: () => number
  readonly requests: EffectQueue.Queue<FetchRequest>
  /** Results that are not landed yet. */
  readonly results: Array<FetchResult>
  /** Open while there are results. */
  readonly hasResults: Latch.Latch
  readonly inFlight: Set<InFlightTimeout.InFlightTimeout>
  readers: number
  /** Why nothing of the resource can be read; null while it can. */
  blockedReason: string | null
}

/** Fetches in flight, without those that are stuck. */
const concurrency = 4
const readersMax = 16

export const make = Effect.fnUntraced(function* (options: ReaderPoolOptions) {
  const pool: ReaderPool = {
    ...options,
    now: yield* MonotonicClock.make,
    requests: yield* EffectQueue.unbounded<FetchRequest>(),
    results: [],
    hasResults: Latch.makeUnsafe(false),
    inFlight: new Set(),
    readers: 0,
    blockedReason: null
  }
  return pool
})

/** The number of fetches that have been in flight for longer than this. */
export const countSlower = ({ inFlight }: ReaderPool, limit: Duration.Duration): number => {
  const limitMs = Duration.toMillis(limit)
  let count = 0
  for (const { spentMs } of inFlight) if (spentMs() > limitMs) count += 1
  return count
}

/** Whether a fetch is being retried. If every run interrupted it, its failure would never be seen. */
export const isRetrying = ({ inFlight }: ReaderPool): boolean => [...inFlight].some(({ isRetried }) => isRetried())

/** Whether this number of readers is too small. */
const needsReader = (pool: ReaderPool, readers: number) => readers - countSlower(pool, pool.stuckAfter) < concurrency

/** Starts readers while there are requests for them. */
export const startReaders = Effect.fnUntraced(function* (pool: ReaderPool) {
  while (EffectQueue.sizeUnsafe(pool.requests) > 0 && pool.readers < readersMax && needsReader(pool, pool.readers)) {
    pool.readers += 1
    yield* Effect.forkScoped(runReader(pool))
  }
})

/** A reader that started beside a stuck one ends when it is no longer needed. */
const runReader = (pool: ReaderPool) =>
  Effect.gen(function* () {
    do yield* fetchNext(pool)
    while (needsReader(pool, pool.readers - 1))
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        pool.readers -= 1
      })
    )
  )

const fetchNext = Effect.fnUntraced(function* (pool: ReaderPool) {
  const request = yield* EffectQueue.take(pool.requests)
  const answer = yield* fetchRecord(pool, request).pipe(
    // A defect of the program fails one record, not the run.
    Effect.catchDefect((defect) => {
      const reason = `this is a fault of the program, please report it: ${Cause.pretty(Cause.die(defect))}`
      const failed: FetchAnswer = { _tag: "Failed", scope: "record", reason }
      return Effect.as(Effect.logError(`${pool.resource.path} ${request.recordId}: ${reason}`), failed)
    })
  )
  pool.results.push({ request, answer })
  pool.hasResults.openUnsafe()
})

const fetchRecord = (pool: ReaderPool, { recordId }: FetchRequest): Effect.Effect<FetchAnswer> =>
  Effect.suspend(() => {
    const { breaker, blockedReason: reason, inFlight } = pool
    if (breaker.isOpen()) return Effect.succeed({ _tag: "NotSent" })
    if (reason !== null) return Effect.succeed({ _tag: "Failed", scope: "blocked", reason })
    const timeout = InFlightTimeout.make(pool.now)
    inFlight.add(timeout)
    return Effect.ensuring(
      sendFetch(pool, recordId, timeout),
      Effect.sync(() => inFlight.delete(timeout))
    )
  })

const sendFetch = Effect.fnUntraced(function* (
  pool: ReaderPool,
  recordId: string,
  timeout: InFlightTimeout.InFlightTimeout
): Effect.fn.Return<FetchAnswer> {
  const { connector, resource, breaker, now, readTimeout } = pool
  const startedAt = now()
  const fetch = Effect.flatMap(timeout.within(readTimeout, connector.get(resource, recordId)), (found) => {
    if (Option.isSome(found)) return Effect.succeed(found.value)
    const request = { method: "GET", path: `/${resource.path}/${recordId}`, requestId: null } as const
    return Effect.fail(new SourceError({ reason: new TimedOut({ after: readTimeout }), request }))
  })
  const result = yield* Effect.result(fetch)
  if (Result.isSuccess(result)) {
    yield* breaker.noteAnswer
    return { _tag: "Fetched", fetched: result.success }
  }
  const scope = yield* failureScopeOf(breaker, result.failure, startedAt)
  const reason = `${result.failure.message}; ${result.failure.remedy}`
  if (scope === "blocked") pool.blockedReason = reason
  return { _tag: "Failed", scope, reason }
})
