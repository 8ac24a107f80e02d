/**
 * Creating records.
 *
 * Promise: every record is created once. A call is sent again with its key and bytes only, while the source remembers
 * the key; what is not known by then is looked up, never assumed (EP-02, B-08). An answer is believed for each record
 * alone; what is refused stays with its reasons for a person, what stood beside it goes on. A call that is refused as a
 * whole is halved until the record that is to blame stands alone.
 */
import * as Effect from "effect/Effect"
import type { FetchedRecord, WriteAnswer } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { WriteResult, WriteRejected, WriteSucceeded } from "../connector/WriteResult.ts"
import type * as WriteSession from "../land/WriteSession.ts"
import * as RequestStore from "./RequestStore.ts"
import { differences } from "./DiffWritten.ts"
import { find, type ExistingRecord, compareExisting, pagesOf } from "./Deduplicate.ts"
import type { SelectRows, PushSession, PushSessionError } from "./PushSession.ts"
import * as OutboxStore from "./OutboxStore.ts"
import * as Send from "./Send.ts"

/** After so many attempts a record that fails alone is refused. */
const attemptsMax = 5

type Refused = Extract<OutboxStore.RowResolution, { readonly state: "refused" }>

/** What a record failed with, in the source's words. */
type Complaint = Pick<WriteRejected, "code" | "field" | "detail" | "problems">

const refusedFor = ({ code, field, detail, problems }: Complaint): Refused => ({
  state: "refused",
  code,
  field,
  reason: detail,
  problems: problems.map((problem) => ({ field: problem.field, message: problem.message }))
})

/** It was not created, for all that is known: it goes again, unless it failed too often. */
const again = (row: OutboxStore.Row, complaint: Complaint, mayRefuse: boolean): OutboxStore.RowResolution =>
  mayRefuse && row.attempts + 1 >= attemptsMax
    ? { ...refusedFor(complaint), attempts: 1 }
    : { state: "waiting", reason: complaint.detail, attempts: 1, isAbsent: true }

const lookUp = Effect.fnUntraced(function* (
  lane: PushSession,
  row: OutboxStore.Row,
  meaning: { readonly wasSent: boolean; readonly absent: OutboxStore.RowResolution }
) {
  const { resource } = lane.table
  return compareExisting(resource, row, yield* find(lane.company.connector, resource, row.externalid ?? ""), meaning)
})

/** A record that was created and not shown: it is read, so that the warehouse has it. */
const readBack = Effect.fnUntraced(function* (lane: PushSession, row: OutboxStore.Row, { id }: WriteSucceeded) {
  const { company, table } = lane
  const { resource } = table
  const isReadable = id !== null && resource.operations.includes("R")
  const readings: ReadonlyArray<FetchedRecord> = isReadable
    ? [yield* company.connector.get(resource, id)]
    : yield* find(company.connector, resource, row.externalid ?? "")
  const shown = readings.filter(({ record, rejected }) => record !== null || rejected !== null)
  const record = shown.length === 1 ? (shown[0]?.record ?? null) : null
  const verdict: OutboxStore.RowResolution = {
    state: "done",
    outcome: "created",
    recordId: id ?? record?.id ?? null,
    differences: record === null ? [] : differences(resource, "create", row.text, record)
  }
  return { row, verdict, readings: shown } satisfies ExistingRecord
})

/** What an item of the answer means for its record; undefined when the answer names it not, or more than once. */
const judgeItem = (
  lane: PushSession,
  row: OutboxStore.Row,
  item: WriteResult | undefined
): ExistingRecord | Effect.Effect<ExistingRecord, SourceError> => {
  const { resource } = lane.table
  switch (item?._tag) {
    case "WriteSucceeded": {
      if (item.record === null && item.rejected === null) return readBack(lane, row, item)
      const given = item.record === null ? [] : differences(resource, "create", row.text, item.record)
      const verdict: OutboxStore.RowResolution = {
        state: "done",
        outcome: "created",
        recordId: item.id,
        differences: given
      }
      return { row, verdict, readings: [] }
    }
    case "WriteRejected": {
      if (item.isRetryable) return lookUp(lane, row, { wasSent: true, absent: again(row, item, true) })
      if (item.code === "duplicate") return lookUp(lane, row, { wasSent: false, absent: refusedFor(item) })
      return { row, verdict: refusedFor(item), readings: [] }
    }
    default: {
      const detail = item?.detail ?? "the answer does not say what became of it"
      const complaint = { code: "unclear", field: null, detail, problems: [] }
      return lookUp(lane, row, { wasSent: true, absent: again(row, complaint, true) })
    }
  }
}

/** What the answer shows of the records, as a page; observed when the call was formed, since it may be a replay. */
const echoed = (call: RequestStore.PushRequest, answer: WriteAnswer): ReadonlyArray<WriteSession.ObservedPage> => {
  const written = answer.items.filter((item) => item._tag === "WriteSucceeded")
  const records = written.flatMap(({ record }) => (record === null ? [] : [record]))
  const rejected = written.flatMap((item) => (item.rejected === null ? [] : [item.rejected]))
  if (records.length === 0 && rejected.length === 0) return []
  const { source } = answer
  return [
    {
      page: { records, rejected, next: null, syncedThrough: null, beganAt: 0, source, bytes: 0, attempts: 1 },
      observedAt: call.formedAt
    }
  ]
}

/** The one item for each place; what is named twice is not believed. */
const byPlace = (items: ReadonlyArray<WriteResult>): ReadonlyMap<number, WriteResult> => {
  const places = new Map<number, WriteResult>()
  const twice = new Set<number>()
  for (const item of items) {
    if (places.has(item.index)) twice.add(item.index)
    places.set(item.index, item)
  }
  for (const index of twice) places.delete(index)
  return places
}

const answered = Effect.fnUntraced(function* (
  lane: PushSession,
  call: RequestStore.PushRequest,
  answer: WriteAnswer
): Effect.fn.Return<void, PushSessionError | SourceError> {
  const places = byPlace(answer.items)
  const judged = yield* Effect.forEach(
    call.rows,
    (row) => {
      const one = judgeItem(lane, row, row.position === null ? undefined : places.get(row.position))
      return Effect.isEffect(one) ? one : Effect.succeed(one)
    },
    { concurrency: lane.settings.concurrency }
  )
  const { status, source } = answer
  yield* lane.settle({
    call: { id: call.id, closing: { state: "answered", status, reason: null, source } },
    judged,
    pages: [
      ...echoed(call, answer),
      ...pagesOf(
        lane.lander,
        judged.flatMap(({ readings }) => readings)
      )
    ]
  })
  lane.inVain = 0
})

const halvesOf = (rows: ReadonlyArray<OutboxStore.Row>): ReadonlyArray<RequestStore.NewRequest> => {
  const middle = Math.ceil(rows.length / 2)
  return [rows.slice(0, middle), rows.slice(middle)].filter((half) => half.length > 0).map(RequestStore.ofCreates)
}

/**
 * Gives the key up: each record is looked up, and what is not there goes under a new key. Where the source fails at many
 * at once, it cannot be told which of them is to blame: they go in halves. Answers the calls that they go in already.
 */
const giveUp = Effect.fnUntraced(function* (
  lane: PushSession,
  call: RequestStore.PushRequest,
  complaint: Complaint,
  isFault: boolean
): Effect.fn.Return<ReadonlyArray<RequestStore.PushRequest>, PushSessionError | SourceError> {
  const isAlone = call.rows.length === 1
  const looked = yield* Effect.forEach(
    call.rows,
    (row) => lookUp(lane, row, { wasSent: true, absent: again(row, complaint, isFault && isAlone) }),
    { concurrency: lane.settings.concurrency }
  )
  const isHalved = isFault && !isAlone
  const judged = looked.filter(({ verdict }) => !isHalved || verdict.state !== "waiting")
  const left = looked.filter((one) => !judged.includes(one)).map(({ row }) => row)
  return yield* lane.settle({
    call: { id: call.id, closing: { state: "settled", status: null, reason: complaint.detail, source: null } },
    judged,
    pages: pagesOf(
      lane.lander,
      judged.flatMap(({ readings }) => readings)
    ),
    next: halvesOf(left).map((half) => ({ ...half, attempts: 1 }))
  })
})

/** The source refused the call as a whole. */
const refused = Effect.fnUntraced(function* (
  lane: PushSession,
  call: RequestStore.PushRequest,
  complaint: Complaint & { readonly status: number | null }
): Effect.fn.Return<void, PushSessionError | SourceError> {
  const { rows } = call
  const { status, code, detail } = complaint
  const closing = { state: "refused", status, reason: `${code}: ${detail}`, source: null } as const
  const [row] = rows
  if (rows.length <= 1 || row === undefined) {
    const judged = yield* Effect.forEach(rows, (one) =>
      code === "duplicate"
        ? lookUp(lane, one, { wasSent: false, absent: refusedFor(complaint) })
        : Effect.succeed<ExistingRecord>({ row: one, verdict: refusedFor(complaint), readings: [] })
    )
    yield* lane.settle({
      call: { id: call.id, closing },
      judged,
      pages: pagesOf(
        lane.lander,
        judged.flatMap(({ readings }) => readings)
      )
    })
    lane.inVain = 0
    return
  }
  if (status !== null && noBatchStatuses.has(status)) {
    // Batches are not offered here: their records go one by one.
    lane.limits.useBatch = false
    const judged = rows.map((one) => ({ row: one, verdict: { state: "waiting", reason: detail } as const }))
    yield* lane.settle({ call: { id: call.id, closing }, judged })
    return
  }
  const middle = Math.ceil(rows.length / 2)
  if (code === "batch_too_large" || status === 413) {
    lane.limits.recordsMax = Math.min(lane.limits.recordsMax, middle)
  }
  const next = yield* lane.settle({ call: { id: call.id, closing }, judged: [], next: halvesOf(rows) })
  yield* Effect.forEach(next, (half) => complete(lane, half), { discard: true })
})

/** What a path answers that is not there, or not made for this. */
const noBatchStatuses: ReadonlySet<number> = new Set([404, 405, 415, 501])

/** Brings a call to its end, or leaves it open for the next turn where the source cannot be reached or says no to us. */
export const complete = (lane: PushSession, call: RequestStore.PushRequest): Effect.Effect<void, PushSessionError> =>
  Effect.gen(function* () {
    const sent = yield* Send.send(lane, call)
    switch (sent._tag) {
      case "Answered":
        return yield* answered(lane, call, sent.answer)
      case "Expired": {
        yield* giveUp(lane, call, { code: "unclear", field: null, detail: sent.detail, problems: [] }, false)
        return
      }
      case "GivenUp": {
        const complaint = { code: sent.code, field: null, detail: sent.detail, problems: [] }
        const next = yield* giveUp(lane, call, complaint, true)
        if (sent.code !== "unclear") Send.countFailure(lane, sent.detail)
        return yield* Effect.forEach(next, (half) => complete(lane, half), { discard: true })
      }
      case "Refused":
        return yield* refused(lane, call, sent)
      case "Stopped":
        return
    }
  }).pipe(Effect.catchTag("SourceError", (error) => Effect.sync(() => lane.stopFor(error))))

/** Sends creates up to this row: calls are formed while others are on their way. */
export const create = Effect.fnUntraced(function* (
  lane: PushSession,
  through: bigint
): Effect.fn.Return<void, PushSessionError> {
  let after = -1n
  const choose: SelectRows = (run, atMost) =>
    Effect.gen(function* () {
      const { recordsMax, useBatch } = lane.limits
      const taken = yield* OutboxStore.creates(run, lane.place(), {
        after,
        through,
        recordsMax: useBatch ? recordsMax : 1,
        bytesMax: RequestStore.bytesMax,
        callsMax: atMost
      })
      after = taken.after
      return taken.calls.map((rows) => ({ draft: RequestStore.ofCreates(rows) }))
    })
  const worker = Effect.gen(function* () {
    while (!lane.isStopped()) {
      const call = yield* lane.form(choose)
      if (call === null) return
      yield* complete(lane, call)
    }
  })
  yield* Effect.all(
    // While so many are on their way, as many are formed and settled.
    Array.from({ length: 2 * lane.settings.concurrency }, () => worker),
    { concurrency: "unbounded", discard: true }
  )
})
