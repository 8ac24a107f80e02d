/**
 * Answering events by reading their records one by one.
 *
 * Promise: all events of a record that are in hand are answered by one read that began after they had come, and are
 * settled in the transaction that lands it. A record that fails, or takes its time, holds no other up, and one that is
 * not answered at all is given up for now; a turn ends soon after its time whatever is being read for the first time.
 * What is interrupted anywhere, or not begun by then, leaves the events as they were; what is tried again is brought to
 * its end, so that a record that never can be read is found out.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as EffectQueue from "effect/Queue"
import * as Result from "effect/Result"
import type * as SqlClient from "effect/sql/SqlClient"
import type { FetchedRecord, SourceRecord } from "../connector/Connector.ts"
import { SourceError, TimedOut } from "../connector/SourceError.ts"
import * as ResourceLock from "../land/ResourceLock.ts"
import * as WriteSession from "../land/WriteSession.ts"
import type { Table } from "../warehouse/Table.ts"
import { attributesOf, type Outcome } from "../sync/Outcome.ts"
import { Progress } from "../sync/Progress.ts"
import { pageOf, runToCompletion } from "../sync/FetchRecords.ts"
import { addTotals, type RunState } from "../sync/RunState.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { childrenOf, type Company } from "../sync/Company.ts"
import { type FailureScope, failureScopeOf, type CircuitBreaker } from "./CircuitBreaker.ts"
import * as Patience from "./InFlightTimeout.ts"
import * as InboxStore from "./InboxStore.ts"

/** A record to read, and the events that ask for it. */
export interface FetchRequest {
  readonly recordId: string
  readonly events: ReadonlyArray<InboxStore.PendingEvent>
}

export interface RecordFetcherOptions {
  readonly company: Company
  readonly companyId: bigint
  readonly tables: ReadonlyMap<string, Table>
  readonly table: Table
  readonly health: CircuitBreaker
  /** What is to be read first; null looks for it. */
  readonly first: ReadonlyArray<FetchRequest> | null
  /** What else there is to read; null when something else is to be done first. */
  readonly more: (
    inHand: ReadonlySet<string>
  ) => Effect.Effect<ReadonlyArray<FetchRequest> | null, DatabaseError, SqlClient.SqlClient>
  /** How long it waits for more before it gives the resource back. */
  readonly lingerMs: number
  /** Whether it is to give the resource back before its time, since others wait for their turn; default: never. */
  readonly isWanted?: () => boolean
  /** Another process that was at it has given no sign of life for long: what it holds is taken from it. */
  readonly takesOver?: boolean
  readonly limits?: Partial<Limits>
  /** Told of what was settled. */
  readonly told: (verdicts: ReadonlyArray<InboxStore.Resolution>, landed: WriteSession.LandingResult | null) => void
}

/** How long things may take, in milliseconds. Of a read only the time counts in which the source has the request. */
export interface Limits {
  /** A turn does not end while a read takes longer than this, or is tried again, unless the turn takes much longer. */
  readonly slowMs: number
  /** A read that takes longer than this no longer counts among those in flight: another one may begin beside it. */
  readonly stuckMs: number
  /** A read that takes longer than this is given up, and has failed. */
  readonly readMaxMs: number
  /** Once a turn ends, what is being read for the first time is waited for as long as this, also for a permit. */
  readonly graceMs: number
}

const limitsDefault: Limits = { slowMs: 2_000, stuckMs: 5_000, readMaxMs: 90_000, graceMs: 2_000 }

/** Requests in flight… */
const concurrency = 4
/** … and with those that are stuck. */
const readersMax = 16
/** Records landed together at most. */
const recordsPerLanding = 100
/** While more is being read, a landing waits for so long for company. */
const gatherMs = 400
/** Below this, more is taken from the inbox. */
const handLow = 100
const lookEveryMs = 200
/** A run ends after this, so that the ledger tells of it and others who wait for the resource have their turn… */
export const sliceMs = 8_000
const turnRecordsMax = 5_000
/** … but not while a read is slow, unless it takes much longer. */
const turnMaxMs = 120_000

/** After so many failed attempts an event is given up. */
export const attemptsMax = 6
const attemptPausesMs = [10_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 60 * 60_000]

/** What a failure means for an event that is to blame for it. */
export const retryOrDeadLetter = (event: InboxStore.PendingEvent, reason: string): InboxStore.Resolution =>
  event.attempts + 1 >= attemptsMax
    ? { id: event.id, state: "dead", reason, isAttempt: true }
    : { id: event.id, state: "waiting", reason, isAttempt: true, pauseMs: attemptPausesMs[event.attempts]! }

/** How long until a record that the source does not show is looked for again: it may become visible until then. */
export const visibilityDelay = (ageMs: number, boundMs: number): number =>
  Math.max(100, Math.min(Math.max(5_000, 2 * ageMs), boundMs - ageMs + 100))

const quarantinedReason = "the record is in quarantine"

type Answer =
  | { readonly _tag: "Read"; readonly reading: FetchedRecord }
  | { readonly _tag: "Failed"; readonly blame: FailureScope; readonly reason: string }
  /** Not asked: the source is away. */
  | { readonly _tag: "Dropped" }

interface Answered {
  readonly item: FetchRequest
  readonly answer: Answer
}

interface Concluded {
  readonly pages: ReadonlyArray<WriteSession.ObservedPage>
  readonly absent: ReadonlyArray<WriteSession.DeletedRecord>
  readonly verdicts: ReadonlyArray<InboxStore.Resolution & { readonly recordId: string }>
}

const attempt = Effect.fnUntraced(function* (options: RecordFetcherOptions, state: RunState) {
  const { company, companyId, table, tables, health } = options
  const { resource } = table
  const { slowMs, stuckMs, readMaxMs, graceMs } = { ...limitsDefault, ...options.limits }
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const beganAt = now()
  const lock = yield* ResourceLock.acquire({
    table,
    connector: company.connector,
    companyId,
    lane: "records",
    evictHolder: options.takesOver ?? false
  })
  const lander = yield* WriteSession.open(lock, {
    run: { kind: "records" },
    origin: "webhook",
    authority: "newer",
    acceptDeletions: true,
    deletionsShareMax: company.engine.deletionsShareMax,
    children: childrenOf(tables, resource.path)
  })
  state.runId = lander.runId
  state.began = { companyId, resource: resource.path, kind: "records", resumed: false }
  yield* (yield* Progress).began(state.began)

  const toRead = yield* EffectQueue.unbounded<FetchRequest>()
  const answers: Array<Answered> = []
  const answered = Latch.makeUnsafe(false)
  /** The records that are being read, wait for it, or are to be landed. */
  const hand = new Set<string>()
  const reading = new Set<Patience.InFlightTimeout>()
  let readers = 0
  /** Why nothing of the resource can be read. */
  let barred: string | null = null

  const longerThan = (ms: number) => {
    let count = 0
    for (const { spentMs } of reading) if (spentMs() > ms) count += 1
    return count
  }

  /** Whether a read is tried again: cut off each time, it would never come to what it has failed with. */
  const isTrying = () => [...reading].some(({ isTriedAgain }) => isTriedAgain())

  /** The record, unless the source takes too long. */
  const ask = (recordId: string, patience: Patience.InFlightTimeout) =>
    Effect.flatMap(patience.within(readMaxMs, company.connector.get(resource, recordId)), (found) => {
      if (Option.isSome(found)) return Effect.succeed(found.value)
      const request = { method: "GET", path: `/${resource.path}/${recordId}`, requestId: null } as const
      return Effect.fail(new SourceError({ reason: new TimedOut({ afterMs: readMaxMs }), request }))
    })
  const answerOf = Effect.fnUntraced(function* (
    { recordId }: FetchRequest,
    patience: Patience.InFlightTimeout
  ): Effect.fn.Return<Answer> {
    const askedAt = now()
    const result = yield* Effect.result(ask(recordId, patience))
    if (Result.isSuccess(result)) {
      yield* health.answered
      return { _tag: "Read", reading: result.success }
    }
    const blame = yield* failureScopeOf(health, result.failure, askedAt)
    const reason = `${result.failure.message}; ${result.failure.remedy}`
    if (blame === "barred") barred = reason
    return { _tag: "Failed", blame, reason }
  })
  const read = (item: FetchRequest): Effect.Effect<Answer> =>
    Effect.suspend(() => {
      if (health.awayMs() > 0) return Effect.succeed({ _tag: "Dropped" })
      if (barred !== null) return Effect.succeed({ _tag: "Failed", blame: "barred", reason: barred })
      const patience = Patience.make(clock)
      reading.add(patience)
      return Effect.ensuring(
        answerOf(item, patience),
        Effect.sync(() => {
          reading.delete(patience)
        })
      )
    })
  const next = Effect.gen(function* () {
    const item = yield* EffectQueue.take(toRead)
    const answer = yield* read(item).pipe(
      // A record that the program cannot cope with is as good as one that cannot be read.
      Effect.catchDefect((defect) => {
        const reason = `this is a fault of the program, please report it: ${Cause.pretty(Cause.die(defect))}`
        return Effect.as(Effect.logError(`${resource.path} ${item.recordId}: ${reason}`), {
          _tag: "Failed",
          blame: "one",
          reason
        } as const)
      })
    )
    answers.push({ item, answer })
    answered.openUnsafe()
  })
  /** Whether so many readers are too few, those left out that are stuck. */
  const isShort = (count: number) => count - longerThan(stuckMs) < concurrency
  /** Ends when it was called in for one that was stuck, and is no longer needed. */
  const reader = Effect.gen(function* () {
    do yield* next
    while (isShort(readers - 1))
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        readers -= 1
      })
    )
  )

  const stampAt = resource.fields.findIndex(({ name }) => name === "lastchangedate")
  const shown = ({ columns }: SourceRecord) => (stampAt === -1 ? null : (columns[stampAt] ?? null))

  /** What the answers mean for the events, and what is to be landed. */
  const conclude = Effect.fnUntraced(function* (
    batch: ReadonlyArray<Answered>
  ): Effect.fn.Return<Concluded, DatabaseError, SqlClient.SqlClient> {
    const pages: Array<WriteSession.ObservedPage> = []
    const absent: Array<WriteSession.DeletedRecord> = []
    const verdicts: Array<InboxStore.Resolution & { readonly recordId: string }> = []
    const missing = batch.filter(
      ({ answer }) => answer._tag === "Read" && answer.reading.record === null && answer.reading.rejected === null
    )
    const rows = yield* InboxStore.compareWithRow(
      table,
      companyId,
      missing.flatMap(({ item }) => item.events)
    )
    const boundMs = company.engine.overlapMs
    for (const { item, answer } of batch) {
      const { recordId } = item
      const give = (verdict: InboxStore.Resolution) => verdicts.push({ ...verdict, recordId })
      if (answer._tag === "Dropped") continue
      if (answer._tag === "Failed") {
        const { blame, reason } = answer
        for (const event of item.events) {
          if (blame === "one") give(retryOrDeadLetter(event, reason))
          if (blame === "barred") give({ id: event.id, state: "dead", reason })
        }
        continue
      }
      const { reading } = answer
      const observedAt = lander.timeOf(reading.beganAt)
      if (reading.record !== null || reading.rejected !== null) {
        pages.push({ page: pageOf(reading), observedAt })
        for (const { id, stamp, ageMs } of item.events) {
          if (reading.rejected !== null) give({ id, state: "done", reason: quarantinedReason })
          else if (!InboxStore.isBefore(shown(reading.record!), stamp)) give({ id, state: "done", reason: null })
          // A copy of the source that lags behind, or a change that is not visible yet.
          else if (ageMs >= boundMs) give({ id, state: "done", reason: "the source shows an older version" })
          else {
            const pauseMs = visibilityDelay(ageMs, boundMs)
            give({ id, state: "waiting", reason: "the source still shows an older version", pauseMs })
          }
        }
        continue
      }
      let isGone = false
      for (const event of item.events) {
        const row = rows.get(event.id)
        // A row that stood here for so long is gone; what is new may only not be visible yet.
        const isOld = row?.isLive === true && (row.observedMsAgo ?? 0) >= boundMs
        if (event.ageMs >= boundMs || isOld) {
          isGone = true
          give({ id: event.id, state: "done", reason: "the source does not have it" })
        } else {
          const pauseMs = visibilityDelay(event.ageMs, boundMs)
          give({ id: event.id, state: "waiting", reason: "the source does not show it yet", pauseMs })
        }
      }
      if (isGone) absent.push({ id: recordId, observedAt, source: reading.source })
    }
    return { pages, absent, verdicts }
  })

  const settle = Effect.fnUntraced(function* (batch: ReadonlyArray<Answered>) {
    const { pages, absent, verdicts } = yield* conclude(batch)
    if (pages.length === 0 && absent.length === 0) {
      yield* InboxStore.resolve(verdicts)
      options.told(verdicts, null)
      return
    }
    let given: ReadonlyArray<InboxStore.Resolution> = verdicts
    const landed = yield* lander.land({
      pages,
      scan: null,
      complete: false,
      absent,
      inTransaction: ({ run, runId, quarantined }) => {
        given = verdicts.map((verdict) =>
          verdict.state === "done" && quarantined.has(verdict.recordId)
            ? { ...verdict, reason: quarantinedReason }
            : verdict
        )
        return InboxStore.resolveIn(run, given, runId)
      }
    })
    options.told(given, landed)
    yield* addTotals(state, landed, pages)
  })

  let { first } = options
  /** Set when something else is to be done first, or it is time to end. */
  let isEnding = false
  let endingAt: number | null = null
  let lookedAt = Number.NEGATIVE_INFINITY
  let workedAt = now()
  for (;;) {
    const elapsed = now() - beganAt
    if (elapsed >= sliceMs || state.totals.records >= turnRecordsMax) {
      // What waits behind a slow read would wait with it if nothing more were taken.
      isEnding ||= (longerThan(slowMs) === 0 && !isTrying()) || elapsed >= turnMaxMs
    }
    if (!isEnding && (health.awayMs() > 0 || options.isWanted?.() === true)) isEnding = true
    if (!isEnding && hand.size < handLow && now() - lookedAt >= lookEveryMs) {
      const items: ReadonlyArray<FetchRequest> | null = first ?? (yield* options.more(hand))
      first = null
      // What was not taken with these comes a moment later: it is looked for at once only while there is much.
      lookedAt = items !== null && items.length >= handLow ? Number.NEGATIVE_INFINITY : now()
      if (items === null) isEnding = true
      for (const item of items ?? []) {
        hand.add(item.recordId)
        yield* EffectQueue.offer(toRead, item)
      }
    }
    while (EffectQueue.sizeUnsafe(toRead) > 0 && readers < readersMax && isShort(readers)) {
      readers += 1
      yield* Effect.forkScoped(reader)
    }
    if (isEnding && endingAt === null) {
      endingAt = now()
      for (const { recordId } of yield* EffectQueue.clear(toRead)) hand.delete(recordId)
    }
    if (hand.size === 0) {
      if (isEnding || now() - workedAt >= options.lingerMs) return
      yield* Effect.sleep(lookEveryMs)
      continue
    }
    workedAt = now()
    if (answers.length === 0) {
      const isOver = endingAt !== null && now() - endingAt >= graceMs
      if (isOver && (!isTrying() || elapsed >= turnMaxMs)) return
      yield* answered.close
      yield* Effect.timeoutOption(answered.await, lookEveryMs)
      if (answers.length === 0) continue
    }
    if (answers.length < recordsPerLanding && hand.size > answers.length) yield* Effect.sleep(gatherMs)
    const batch = answers.splice(0)
    for (let at = 0; at < batch.length; at += recordsPerLanding) {
      const part = batch.slice(at, at + recordsPerLanding)
      yield* settle(part)
      for (const { item } of part) hand.delete(item.recordId)
    }
  }
}, Effect.scoped)

/** Reads and lands until there is nothing more, or for a while. Answers how the run went. */
export const fetchRecords = Effect.fn("oneByOne")(function* (
  options: RecordFetcherOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  let isFirst = true
  const outcome = yield* runToCompletion(options, (state) => {
    // After a fault of the database only what it holds is to be relied upon.
    const given = isFirst ? options : { ...options, first: null, takesOver: false }
    isFirst = false
    return attempt(given, state)
  })
  yield* Effect.annotateCurrentSpan(attributesOf(outcome))
  return outcome
})
