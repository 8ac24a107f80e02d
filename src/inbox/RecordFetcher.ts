/**
 * A run that answers events by fetching their records by number.
 *
 * Promise: all fetched events of a record are answered by one read that began after they were due, and are resolved in
 * the transaction that lands it. A record that fails, or is slow, holds no other up. The run ends soon after its time
 * slice, whatever is being read for the first time. A retried read is brought to its end, so that a record that never
 * can be read is found. An interrupted read leaves its events as they were.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as EffectQueue from "effect/Queue"
import type * as SqlClient from "effect/sql/SqlClient"
import * as ResourceLock from "../land/ResourceLock.ts"
import * as WriteSession from "../land/WriteSession.ts"
import type { LandingResult } from "../land/Landing.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { Company } from "../sync/Company.ts"
import { childrenOf } from "../warehouse/Table.ts"
import { runToCompletion } from "../sync/FetchRecords.ts"
import { attributesOf, type Outcome } from "../sync/Outcome.ts"
import { Progress } from "../sync/Progress.ts"
import { addTotals, type RunState } from "../sync/RunState.ts"
import type { Table } from "../warehouse/Table.ts"
import type { CircuitBreaker } from "./CircuitBreaker.ts"
import * as InboxStore from "./InboxStore.ts"
import * as ReaderPool from "./ReaderPool.ts"
import { type FetchRequest, type FetchResult, quarantinedReason, resolveFetches } from "./ResolveFetches.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

export interface RecordFetcherOptions {
  readonly company: Company
  readonly companyId: bigint
  readonly tables: ReadonlyMap<string, Table>
  readonly table: Table
  readonly breaker: CircuitBreaker
  /** The first requests; null fetches them by {@link more}. */
  readonly first: ReadonlyArray<FetchRequest> | null
  /** Fetches more requests; null ends the run. */
  readonly more: (
    inFlight: ReadonlySet<string>
  ) => Effect.Effect<ReadonlyArray<FetchRequest> | null, DatabaseError, SqlClient.SqlClient>
  /** How long the run waits for more requests before it ends. */
  readonly idleTimeout: Duration.Duration
  /** Whether the run ends before its time slice is over, since other resources wait; default: never. */
  readonly shouldYield?: () => boolean
  /** Takes the locks of another process, which has given no heartbeat for long. */
  readonly takesOver?: boolean
  readonly limits?: Partial<Limits>
  /** Called after events were resolved. */
  readonly onResolved: (resolutions: ReadonlyArray<InboxStore.Resolution>, landed: LandingResult | null) => void
}

/** Of a read, only the time counts in which the source has the request. */
export interface Limits {
  /** The run does not end while a read takes longer than this, or is retried, unless the run takes much longer. */
  readonly slowAfter: Duration.Duration
  /** See {@link ReaderPool.ReaderPoolOptions}. */
  readonly stuckAfter: Duration.Duration
  readonly readTimeout: Duration.Duration
  /** Time in which first reads may still answer once the run ends; the wait for a permit counts. */
  readonly gracePeriod: Duration.Duration
}

const limitsDefault: Limits = {
  slowAfter: Duration.seconds(2),
  stuckAfter: Duration.seconds(5),
  readTimeout: Duration.seconds(90),
  gracePeriod: Duration.seconds(2)
}

/** Records landed together at most. */
const recordsPerLanding = 100
/** How long a landing waits for the records of other readers. */
const batchWindowMs = 400
/** With fewer records in flight than this, more are fetched from the inbox. */
const inFlightLow = 100
const lookEveryMs = 200
/** A run ends after this: the ledger shows it, and other runs get the resource… */
export const sliceMs = 8_000
const sliceRecordsMax = 5_000
/** … but while a read is slow, only after this. */
const sliceMaxMs = 120_000

interface FetchRun {
  readonly options: RecordFetcherOptions
  readonly session: WriteSession.WriteSession
  readonly state: RunState
  readonly pool: ReaderPool.ReaderPool
  readonly limits: Limits
  readonly now: () => number
  readonly startedAt: number
  /** Records that are requested and not landed yet. */
  readonly inFlight: Set<string>
  first: ReadonlyArray<FetchRequest> | null
  /** Whether no more requests are fetched. */
  isEnding: boolean
  endingAt: number | null
  lookedAt: number
  /** When a record was last in flight. */
  busyAt: number
}

const openSession = Effect.fnUntraced(function* (options: RecordFetcherOptions) {
  const { company, companyId, table, tables, takesOver = false } = options
  const lock = yield* ResourceLock.acquire({
    table,
    connector: company.connector,
    companyId,
    lane: "records",
    evictHolder: takesOver
  })
  return yield* WriteSession.open(lock, {
    run: { kind: "fetch" },
    origin: "webhook",
    authority: "newer",
    acceptDeletions: true,
    deletionsShareMax: company.engine.deletionsShareMax,
    children: childrenOf(tables, table.resource.path)
  })
})

const runOnce = Effect.fnUntraced(function* (options: RecordFetcherOptions, state: RunState) {
  const { company, companyId, table, breaker } = options
  const { resource } = table
  const limits = { ...limitsDefault, ...options.limits }
  const now = yield* MonotonicClock.make
  const startedAt = now()
  const session = yield* openSession(options)
  state.runId = session.runId
  state.began = { companyId, resource: resource.path, kind: "fetch", resumed: false }
  yield* (yield* Progress).began(state.began)
  const { stuckAfter, readTimeout } = limits
  const pool = yield* ReaderPool.make({ connector: company.connector, resource, breaker, stuckAfter, readTimeout })
  yield* fetchAndLand({
    options,
    session,
    state,
    pool,
    limits,
    now,
    startedAt,
    inFlight: new Set(),
    first: options.first,
    isEnding: false,
    endingAt: null,
    lookedAt: Number.NEGATIVE_INFINITY,
    busyAt: now()
  })
}, Effect.scoped)

const fetchAndLand = Effect.fnUntraced(function* (run: FetchRun) {
  const { pool, inFlight, limits, now, startedAt } = run
  const { results } = pool
  for (;;) {
    const elapsedMs = now() - startedAt
    run.isEnding ||= isOver(run, elapsedMs)
    if (!run.isEnding && inFlight.size < inFlightLow && now() - run.lookedAt >= lookEveryMs) yield* fetchRequests(run)
    yield* ReaderPool.startReaders(pool)
    if (run.isEnding && run.endingAt === null) {
      run.endingAt = now()
      for (const { recordId } of yield* EffectQueue.clear(pool.requests)) inFlight.delete(recordId)
    }
    if (inFlight.size === 0) {
      if (run.isEnding || now() - run.busyAt >= Duration.toMillis(run.options.idleTimeout)) return
      yield* Effect.sleep(lookEveryMs)
      continue
    }
    run.busyAt = now()
    if (results.length === 0) {
      const isGraceOver = run.endingAt !== null && now() - run.endingAt >= Duration.toMillis(limits.gracePeriod)
      if (isGraceOver && (!ReaderPool.isRetrying(pool) || elapsedMs >= sliceMaxMs)) return
      yield* pool.hasResults.close
      yield* Effect.timeoutOption(pool.hasResults.await, lookEveryMs)
      if (results.length === 0) continue
    }
    if (results.length < recordsPerLanding && inFlight.size > results.length) yield* Effect.sleep(batchWindowMs)
    yield* landResults(run, results.splice(0))
  }
})

/** Whether the run ends now. Other records wait behind a slow read only until {@link sliceMaxMs}. */
const isOver = ({ options, state, pool, limits }: FetchRun, elapsedMs: number) => {
  if (elapsedMs >= sliceMs || state.totals.records >= sliceRecordsMax) {
    const hasSlowRead = ReaderPool.countSlower(pool, limits.slowAfter) > 0 || ReaderPool.isRetrying(pool)
    if (!hasSlowRead || elapsedMs >= sliceMaxMs) return true
  }
  return options.breaker.retryAfterMs() > 0 || options.shouldYield?.() === true
}

const fetchRequests = Effect.fnUntraced(function* (run: FetchRun) {
  const requests = run.first ?? (yield* run.options.more(run.inFlight))
  run.first = null
  // While much is due, the next look follows at once.
  run.lookedAt = requests !== null && requests.length >= inFlightLow ? Number.NEGATIVE_INFINITY : run.now()
  if (requests === null) run.isEnding = true
  for (const request of requests ?? []) {
    run.inFlight.add(request.recordId)
    yield* EffectQueue.offer(run.pool.requests, request)
  }
})

const landResults = Effect.fnUntraced(function* (run: FetchRun, results: ReadonlyArray<FetchResult>) {
  for (let at = 0; at < results.length; at += recordsPerLanding) {
    const part = results.slice(at, at + recordsPerLanding)
    yield* landBatch(run, part)
    for (const { request } of part) run.inFlight.delete(request.recordId)
  }
})

/** Lands records, and resolves their events in the same transaction. */
const landBatch = Effect.fnUntraced(function* (
  { options, session, state }: FetchRun,
  results: ReadonlyArray<FetchResult>
) {
  const { table, companyId, company } = options
  const target = { table, companyId, visibleAfterMs: company.engine.overlapMs }
  const { pages, absent, resolutions } = yield* resolveFetches(target, results)
  if (pages.length === 0 && absent.length === 0) {
    yield* InboxStore.resolve(resolutions)
    options.onResolved(resolutions, null)
    return
  }
  let committed: ReadonlyArray<InboxStore.Resolution> = resolutions
  const landed = yield* session.land({
    pages,
    scan: null,
    complete: false,
    absent,
    inTransaction: (within) => {
      committed = resolutions.map((resolution) =>
        resolution.state === "done" && within.quarantined.has(resolution.recordId)
          ? { ...resolution, reason: quarantinedReason }
          : resolution
      )
      return InboxStore.resolveIn(within, committed)
    }
  })
  options.onResolved(committed, landed)
  yield* addTotals(state, landed, pages)
})

/** Fetches and lands until no request is left, or the time slice is over. Answers how the run went. */
export const fetchRecords = Effect.fn("oneByOne")(function* (
  options: RecordFetcherOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  let isFirst = true
  const outcome = yield* runToCompletion(options, (state) => {
    // After a database failure, only the requests that the database has are valid.
    const attempt = isFirst ? options : { ...options, first: null, takesOver: false }
    isFirst = false
    return runOnce(attempt, state)
  })
  yield* Effect.annotateCurrentSpan(attributesOf(outcome))
  return outcome
})
