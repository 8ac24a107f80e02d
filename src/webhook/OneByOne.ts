/**
 * Answering events by reading their records one by one.
 *
 * Promise: all events of a record that are in hand are answered by one read that began after they had come, and are
 * settled in the transaction that lands it. A record that fails, or takes its time, holds no other up. What is
 * interrupted anywhere leaves the events as they were.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as EffectQueue from "effect/Queue"
import * as Result from "effect/Result"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Reading, SourceRecord } from "../connector/Connector.ts"
import * as Lander from "../land/Lander.ts"
import type { Table } from "../model/Table.ts"
import { attributesOf, type Outcome } from "../pipeline/Outcome.ts"
import { Progress } from "../pipeline/Progress.ts"
import { pageOf } from "../pipeline/ReadRecords.ts"
import * as RunLedger from "../pipeline/RunLedger.ts"
import { counted, newState, outcomeOf, retried, type RunState } from "../pipeline/SyncResource.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { childrenOf, type Company } from "./Company.ts"
import { type Blame, blameOf, type Health } from "./Health.ts"
import * as Queue from "./Queue.ts"

/** A record to read, and the events that ask for it. */
export interface Item {
  readonly recordId: string
  readonly events: ReadonlyArray<Queue.Asked>
}

export interface OneByOneOptions {
  readonly company: Company
  readonly companyId: bigint
  readonly tables: ReadonlyMap<string, Table>
  readonly table: Table
  readonly health: Health
  /** What is to be read first; null looks for it. */
  readonly first: ReadonlyArray<Item> | null
  /** What else there is to read; null when something else is to be done first. */
  readonly more: (
    inHand: ReadonlySet<string>
  ) => Effect.Effect<ReadonlyArray<Item> | null, DatabaseError, SqlClient.SqlClient>
  /** How long it waits for more before it gives the resource back. */
  readonly lingerMs: number
  /** Told of what was settled. */
  readonly told: (verdicts: ReadonlyArray<Queue.Verdict>, landed: Lander.Landed | null) => void
}

/** Requests in flight. */
const concurrency = 4
/** Records landed together at most. */
const recordsPerLanding = 100
/** While more is being read, a landing waits for so long for company. */
const gatherMs = 50
/** Below this, more is taken from the inbox. */
const handLow = 100
const lookEveryMs = 50
/** A run ends after this, so that the ledger tells of it and others who wait for the resource have their turn… */
export const turnMs = 8_000
const turnRecordsMax = 5_000
/** … but not while a read takes longer than this, unless it takes much longer. */
const slowMs = 2_000
const turnMaxMs = 120_000

/** After so many failed attempts an event is given up. */
export const attemptsMax = 6
const attemptPausesMs = [10_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 60 * 60_000]

/** What a failure means for an event that is to blame for it. */
export const failed = (event: Queue.Asked, reason: string): Queue.Verdict =>
  event.attempts + 1 >= attemptsMax
    ? { id: event.id, state: "dead", reason, isAttempt: true }
    : { id: event.id, state: "waiting", reason, isAttempt: true, pauseMs: attemptPausesMs[event.attempts]! }

/** How long until a record that the source does not show is looked for again: it may become visible until then. */
export const untilVisible = (ageMs: number, boundMs: number): number =>
  Math.max(100, Math.min(Math.max(5_000, 2 * ageMs), boundMs - ageMs + 100))

const quarantinedReason = "the record is in quarantine"

type Answer =
  | { readonly _tag: "Read"; readonly reading: Reading }
  | { readonly _tag: "Failed"; readonly blame: Blame; readonly reason: string }
  /** Not asked: the source is away. */
  | { readonly _tag: "Dropped" }

interface Answered {
  readonly item: Item
  readonly answer: Answer
}

interface Concluded {
  readonly pages: ReadonlyArray<Lander.ObservedPage>
  readonly absent: ReadonlyArray<Lander.Absent>
  readonly verdicts: ReadonlyArray<Queue.Verdict & { readonly recordId: string }>
}

const attempt = Effect.fnUntraced(function* (options: OneByOneOptions, state: RunState) {
  const { company, companyId, table, tables, health } = options
  const { resource } = table
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const beganAt = now()
  const lander = yield* Lander.open(
    {
      table,
      companyId,
      lane: "records",
      origin: "webhook",
      authority: "newer",
      acceptDeletions: true,
      deletionsShareMax: company.engine.deletionsShareMax,
      children: childrenOf(tables, resource.path)
    },
    () => Effect.succeed({ kind: "records", resumed: false, cursorFrom: null, lateness: null } as const)
  )
  state.runId = lander.runId
  state.began = { companyId, resource: resource.path, kind: "records", resumed: false }
  yield* (yield* Progress).began(state.began)

  const toRead = yield* EffectQueue.unbounded<Item>()
  const answers: Array<Answered> = []
  const answered = Latch.makeUnsafe(false)
  /** What is being read or waits for it, and since when. */
  const hand = new Map<string, number>()
  /** Why nothing of the resource can be read. */
  let barred: string | null = null

  const read = Effect.fnUntraced(function* (item: Item): Effect.fn.Return<Answer> {
    if (health.awayMs() > 0) return { _tag: "Dropped" }
    if (barred !== null) return { _tag: "Failed", blame: "barred", reason: barred }
    const askedAt = now()
    hand.set(item.recordId, askedAt)
    const result = yield* Effect.result(company.connector.get(resource, item.recordId))
    if (Result.isSuccess(result)) {
      yield* health.answered
      return { _tag: "Read", reading: result.success }
    }
    const blame = yield* blameOf(health, result.failure, askedAt)
    const reason = `${result.failure.message}; ${result.failure.remedy}`
    if (blame === "barred") barred = reason
    return { _tag: "Failed", blame, reason }
  })
  const reader = Effect.gen(function* () {
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
  for (let at = 0; at < concurrency; at += 1) yield* Effect.forkScoped(Effect.forever(reader))

  const stampAt = resource.fields.findIndex(({ name }) => name === "lastchangedate")
  const shown = ({ columns }: SourceRecord) => (stampAt === -1 ? null : (columns[stampAt] ?? null))

  /** What the answers mean for the events, and what is to be landed. */
  const conclude = Effect.fnUntraced(function* (
    batch: ReadonlyArray<Answered>
  ): Effect.fn.Return<Concluded, DatabaseError, SqlClient.SqlClient> {
    const pages: Array<Lander.ObservedPage> = []
    const absent: Array<Lander.Absent> = []
    const verdicts: Array<Queue.Verdict & { readonly recordId: string }> = []
    const missing = batch.filter(
      ({ answer }) => answer._tag === "Read" && answer.reading.record === null && answer.reading.rejected === null
    )
    const rows = yield* Queue.compare(
      table,
      companyId,
      missing.flatMap(({ item }) => item.events)
    )
    const boundMs = company.engine.overlapMs
    for (const { item, answer } of batch) {
      const { recordId } = item
      const give = (verdict: Queue.Verdict) => verdicts.push({ ...verdict, recordId })
      if (answer._tag === "Dropped") continue
      if (answer._tag === "Failed") {
        const { blame, reason } = answer
        for (const event of item.events) {
          if (blame === "one") give(failed(event, reason))
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
          else if (!Queue.isBefore(shown(reading.record!), stamp)) give({ id, state: "done", reason: null })
          // A copy of the source that lags behind, or a change that is not visible yet.
          else if (ageMs >= boundMs) give({ id, state: "done", reason: "the source shows an older version" })
          else {
            const pauseMs = untilVisible(ageMs, boundMs)
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
          const pauseMs = untilVisible(event.ageMs, boundMs)
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
      yield* Queue.judge(verdicts)
      options.told(verdicts, null)
      return
    }
    let given: ReadonlyArray<Queue.Verdict> = verdicts
    const landed = yield* lander.land({
      pages,
      scan: null,
      complete: false,
      absent,
      also: ({ run, runId, quarantined }) => {
        given = verdicts.map((verdict) =>
          verdict.state === "done" && quarantined.has(verdict.recordId)
            ? { ...verdict, reason: quarantinedReason }
            : verdict
        )
        return Queue.judgeWithin(run, given, runId)
      }
    })
    options.told(given, landed)
    yield* counted(state, landed, pages)
  })

  let { first } = options
  /** Set when something else is to be done first, or it is time to end. */
  let isEnding = false
  let lookedAt = Number.NEGATIVE_INFINITY
  let workedAt = now()
  for (;;) {
    const elapsed = now() - beganAt
    if (elapsed >= turnMs || state.totals.records >= turnRecordsMax) {
      // What waits behind a slow read would wait with it if nothing more were taken.
      const isSlow = [...hand.values()].some((since) => now() - since > slowMs)
      isEnding ||= !isSlow || elapsed >= turnMaxMs
    }
    if (!isEnding && health.awayMs() > 0) isEnding = true
    if (!isEnding && hand.size < handLow && now() - lookedAt >= lookEveryMs) {
      const items: ReadonlyArray<Item> | null = first ?? (yield* options.more(new Set(hand.keys())))
      first = null
      // Nothing more to come by waiting for a moment: the inbox is looked at again at once only while it gives something.
      lookedAt = items !== null && items.length > 0 ? Number.NEGATIVE_INFINITY : now()
      if (items === null) isEnding = true
      for (const item of items ?? []) {
        hand.set(item.recordId, Number.POSITIVE_INFINITY)
        yield* EffectQueue.offer(toRead, item)
      }
    }
    if (hand.size === 0) {
      if (isEnding || now() - workedAt >= options.lingerMs) return
      yield* Effect.sleep(lookEveryMs)
      continue
    }
    workedAt = now()
    if (answers.length === 0) {
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
export const oneByOne = Effect.fn("oneByOne")(function* (
  options: OneByOneOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  const { companyId, table } = options
  const clock = yield* Clock.Clock
  const beganAt = clock.monotonicTimeNanosUnsafe()
  const state = newState()
  let isFirst = true
  const again = Effect.suspend(() => {
    // After a fault of the database only what it holds is to be relied upon.
    const given = isFirst ? options : { ...options, first: null }
    isFirst = false
    return attempt(given, state)
  })
  const result = yield* Effect.result(retried(table.resource.path, again))
  const durationMs = Number((clock.monotonicTimeNanosUnsafe() - beganAt) / 1_000_000n)
  const error = Result.isFailure(result) ? result.failure : null
  const outcome: Outcome = { ...outcomeOf({ companyId, table }, state, error, false, durationMs), lane: "records" }
  if (outcome.runId !== null) yield* RunLedger.close(outcome.runId, outcome)
  yield* (yield* Progress).ended(outcome)
  yield* Effect.annotateCurrentSpan(attributesOf(outcome))
  return outcome
})
