/**
 * A run that answers events by fetching their records by number.
 *
 * Promise: all fetched events of a record are answered by one read that began after they were due, and are resolved in
 * the transaction that lands it. A record that fails, or is slow, delays no other. The run ends soon after its time slice
 * and interrupts first reads. A retried read runs to its end, so that a record that can never be read is found. An
 * interrupted read leaves its events as they were.
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
import { childrenOf } from "../warehouse/Table.ts"
import type { Outcome } from "../sync/Outcome.ts"
import { attemptWith, withRun } from "../sync/Run.ts"
import { Progress } from "../sync/Progress.ts"
import { addTotals, type RunState } from "../sync/RunState.ts"
import * as InboxStore from "./InboxStore.ts"
import type { InboxWorker, ResourceTarget } from "./InboxWorker.ts"
import * as ReaderPool from "./ReaderPool.ts"
import { type FetchRequest, type FetchResult, quarantinedReason, resolveFetches } from "./ResolveFetches.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

export interface RecordFetcherOptions {
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
  readonly limits?: Partial<Limits>
  /** Called after events were resolved. */
  readonly onResolved: (landed: LandingResult | null) => void
}

/** The time of a read counts only while its request is in flight. */
export interface Limits {
  /** The run does not end while a read takes longer than this, or is retried, unless the run takes much longer. */
  readonly slowAfter: Duration.Duration
  /** See {@link ReaderPool.ReaderPoolOptions}. */
  readonly stuckAfter: Duration.Duration
  readonly readTimeout: Duration.Duration
  /** Time in which first reads may still finish after the run has begun to end; the wait for a permit counts. */
  readonly gracePeriod: Duration.Duration
}

const limitsDefault: Limits = {
  slowAfter: Duration.seconds(2),
  stuckAfter: Duration.seconds(5),
  readTimeout: Duration.seconds(90),
  gracePeriod: Duration.seconds(2)
}

/** Maximum records of one landing. */
const recordsPerLanding = 100
/** How long a landing waits for the records of other readers. */
const batchWindowMs = 400
/** With fewer records in flight than this, more events are fetched from the inbox. */
const inFlightLow = 100
const lookEveryMs = 200
/** A run ends after this, so that its counts are visible and other runs get the resource… */
export const sliceMs = 8_000
const sliceRecordsMax = 5_000
/** … but while a read is slow, only after this. */
const sliceMaxMs = 120_000

type Worker = Pick<InboxWorker, "company" | "breaker">
type Target = Pick<ResourceTarget, "companyId" | "tables" | "table">

interface FetchRun {
  readonly worker: Worker
  readonly target: Target
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

const openSession = Effect.fnUntraced(function* ({ company }: Worker, target: Target) {
  const { companyId, table, tables } = target
  const lock = yield* ResourceLock.acquire({
    table,
    connector: company.connector,
    companyId,
    lane: "records",
    whenHeld: "evict"
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

const runOnce = Effect.fnUntraced(function* (
  worker: Worker,
  target: Target,
  options: RecordFetcherOptions,
  state: RunState
) {
  const { company, breaker } = worker
  const { companyId, table } = target
  const { resource } = table
  const limits = { ...limitsDefault, ...options.limits }
  const now = yield* MonotonicClock.make
  const startedAt = now()
  const session = yield* openSession(worker, target)
  state.runId = session.runId
  state.began = { companyId, resource: resource.path, kind: "fetch", resumed: false }
  yield* (yield* Progress).began(state.began)
  const { stuckAfter, readTimeout } = limits
  const pool = yield* ReaderPool.make({ connector: company.connector, resource, breaker, stuckAfter, readTimeout })
  yield* fetchAndLand({
    worker,
    target,
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

/** Whether the run ends now. A slow read delays the end only until {@link sliceMaxMs}. */
const isOver = ({ worker, options, state, pool, limits }: FetchRun, elapsedMs: number) => {
  if (elapsedMs >= sliceMs || state.totals.records >= sliceRecordsMax) {
    const hasSlowRead = ReaderPool.countSlower(pool, limits.slowAfter) > 0 || ReaderPool.isRetrying(pool)
    if (!hasSlowRead || elapsedMs >= sliceMaxMs) return true
  }
  return worker.breaker.isOpen() || options.shouldYield?.() === true
}

const fetchRequests = Effect.fnUntraced(function* (run: FetchRun) {
  const requests = run.first ?? (yield* run.options.more(run.inFlight))
  run.first = null
  // After a large batch, the next look follows at once.
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
  { worker, target, options, session, state }: FetchRun,
  results: ReadonlyArray<FetchResult>
) {
  const visibleAfterMs = Duration.toMillis(worker.company.engine.overlap)
  const { pages, absent, resolutions } = yield* resolveFetches({ ...target, visibleAfterMs }, results)
  if (pages.length === 0 && absent.length === 0) {
    yield* InboxStore.resolve(resolutions, state.runId)
    options.onResolved(null)
    return
  }
  const landed = yield* session.land({
    pages,
    scan: null,
    complete: false,
    absent,
    inTransaction: (within) =>
      InboxStore.resolveIn(
        within,
        resolutions.map((resolution) =>
          resolution.state === "done" && within.quarantined.has(resolution.recordId)
            ? { ...resolution, reason: quarantinedReason }
            : resolution
        )
      )
  })
  options.onResolved(landed)
  yield* addTotals(state, landed, pages)
})

/** Fetches and lands until no request is left, or the time slice is over. Returns the outcome. */
export const fetchRecords = Effect.fn("oneByOne")(function* (
  worker: Worker,
  target: Target,
  options: RecordFetcherOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  let { first } = options
  return yield* withRun({ ...target, lane: "records" }, (run) =>
    attemptWith(
      run,
      Effect.suspend(() => {
        const attempt = { ...options, first }
        // After a database failure, only the requests in the database are valid.
        first = null
        return runOnce(worker, target, attempt, run.state)
      })
    )
  )
})
