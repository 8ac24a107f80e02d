/**
 * Updating and cancelling records.
 *
 * Promise: a record is read before it is changed. Nothing is sent where it is so already; an update says which version it
 * changes, and what somebody else has changed meanwhile is not overwritten: other fields are merged (at most three times,
 * B-03), the same field is a conflict for a person. What is not known of a call is read, never assumed.
 */
import * as Effect from "effect/Effect"
import type { FetchedRecord } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { WriteResult } from "../connector/WriteResult.ts"
import type * as WriteSession from "../land/WriteSession.ts"
import type * as RequestStore from "./RequestStore.ts"
import { differences } from "./DiffWritten.ts"
import { find, idOf, isCancelled, pagesOf, valueOf } from "./Deduplicate.ts"
import type { PushSession, PushSessionError } from "./PushSession.ts"
import * as OutboxStore from "./OutboxStore.ts"
import type { Difference, Outcome } from "./Push.ts"
import * as Send from "./Send.ts"
import { shapeOf } from "./WriteSchema.ts"

/** So often a record may have changed between the reading and the writing. */
const mergesMax = 3
const attemptsMax = 5
/** Rows taken together. */
const takenTogether = 200

const refuse = (code: string, field: string | null, reason: string): OutboxStore.RowResolution => ({
  state: "refused",
  code,
  field,
  reason,
  problems: []
})

const done = (
  outcome: Outcome,
  recordId: string | null,
  given: ReadonlyArray<Difference> = []
): OutboxStore.RowResolution => ({
  state: "done",
  outcome,
  recordId,
  differences: given
})

const isShown = ({ record, rejected }: FetchedRecord) => record !== null || rejected !== null

/** Whether everything that is given can be compared with what a record shows. */
const isComparable = (lane: PushSession, row: OutboxStore.Row): boolean => {
  const slots = shapeOf(lane.table.resource, row.operation)
  const body: unknown = JSON.parse(row.text)
  return Object.keys(typeof body === "object" && body !== null ? body : {}).every((name) => {
    const slot = slots.get(name)
    return slot !== undefined && slot.sets !== null && slot.type._tag !== "list" && (slot.refers?.by ?? null) === null
  })
}

/** Settles a row that is in no call, or in this one. */
const settle = (
  lane: PushSession,
  row: OutboxStore.Row,
  verdict: OutboxStore.RowResolution,
  more: {
    readonly call?: { readonly id: bigint; readonly closing: RequestStore.RequestResult }
    readonly pages?: ReadonlyArray<WriteSession.ObservedPage>
    readonly readings?: ReadonlyArray<FetchedRecord>
  } = {}
): Effect.Effect<OutboxStore.Row | null, PushSessionError> => {
  const { readings = [] } = more
  return Effect.as(
    lane.settle({
      call: more.call ?? null,
      judged: [{ row, verdict }],
      pages: [...(more.pages ?? []), ...pagesOf(lane.lander, readings.filter(isShown))],
      absent: readings
        .filter((reading) => !isShown(reading))
        .flatMap(({ beganAt, source }) =>
          row.recordId === null ? [] : [{ id: row.recordId, observedAt: lane.lander.timeOf(beganAt), source }]
        )
    }),
    verdict.state === "waiting"
      ? {
          ...row,
          position: null,
          attempts: row.attempts + (verdict.attempts ?? 0),
          merges: row.merges + (verdict.merges ?? 0)
        }
      : null
  )
}

/** What the record shows of a change whose call did not tell; null when the change is not there. */
const seen = (lane: PushSession, row: OutboxStore.Row, reading: FetchedRecord): OutboxStore.RowResolution | null => {
  const { resource } = lane.table
  const id = idOf(reading)
  if (row.operation === "cancel") {
    return !isShown(reading) || isCancelled(resource, reading.record) ? done("cancelled", row.recordId ?? id) : null
  }
  if (!isShown(reading)) return refuse("not_found", null, "the source has no such record")
  if (reading.record === null || !isComparable(lane, row)) return null
  return differences(resource, "update", row.text, reading.record).length === 0 ? done("updated", id) : null
}

const readAgain = (lane: PushSession, call: RequestStore.PushRequest) =>
  lane.company.connector.get(lane.table.resource, call.recordId ?? "")

/** The key is given up: what became of the change is read. */
const giveUp = Effect.fnUntraced(function* (
  lane: PushSession,
  call: RequestStore.PushRequest,
  row: OutboxStore.Row,
  given: { readonly code: string; readonly detail: string; readonly isFault: boolean; readonly status?: number }
) {
  const { code, detail, isFault } = given
  const reading = yield* readAgain(lane, call)
  const isTooOften = isFault && row.attempts + 1 >= attemptsMax
  const verdict =
    seen(lane, row, reading) ??
    (isTooOften ? refuse(code, null, detail) : ({ state: "waiting", reason: detail, attempts: 1 } as const))
  const closing = { state: "settled", status: given.status ?? null, reason: detail, source: null } as const
  return yield* settle(lane, row, verdict, { call: { id: call.id, closing }, readings: [reading] })
})

const answered = Effect.fnUntraced(function* (
  lane: PushSession,
  call: RequestStore.PushRequest,
  row: OutboxStore.Row,
  item: WriteResult | undefined,
  answer: { readonly status: number; readonly source: string }
) {
  const { resource } = lane.table
  const { status, source } = answer
  if (item?._tag === "WriteRejected" && !item.isRetryable) {
    const { code, field, detail } = item
    const closing = { state: "answered", status, reason: detail, source } as const
    return yield* settle(lane, row, refuse(code, field, detail), { call: { id: call.id, closing } })
  }
  if (item?._tag !== "WriteSucceeded") {
    const detail = item?.detail ?? "the answer does not say what became of it"
    return yield* giveUp(lane, call, row, { code: "unclear", detail, isFault: true, status })
  }
  const { record, rejected } = item
  const closing = { state: "answered", status, reason: null, source } as const
  const outcome = row.operation === "cancel" ? "cancelled" : "updated"
  const compared = (shown: FetchedRecord["record"]) =>
    shown === null || row.operation === "cancel" ? [] : differences(resource, "update", row.text, shown)
  // Without a stamp of its own a record is as new as its reading: the answer may be older than what others have read.
  const isTelling =
    resource.field.has("lastchangedate") && (row.operation === "update" || isCancelled(resource, record))
  if (!isTelling || (record === null && rejected === null)) {
    const reading = yield* readAgain(lane, call)
    const verdict = done(outcome, call.recordId, compared(reading.record))
    return yield* settle(lane, row, verdict, { call: { id: call.id, closing }, readings: [reading] })
  }
  const page = {
    records: record === null ? [] : [record],
    rejected: rejected === null ? [] : [rejected],
    next: null,
    syncedThrough: null,
    beganAt: 0,
    source,
    bytes: 0,
    attempts: 1
  }
  return yield* settle(lane, row, done(outcome, call.recordId, compared(record)), {
    call: { id: call.id, closing },
    pages: [{ page, observedAt: call.formedAt }]
  })
})

const refused = Effect.fnUntraced(function* (
  lane: PushSession,
  call: RequestStore.PushRequest,
  row: OutboxStore.Row,
  sent: Extract<Send.SendResult, { readonly _tag: "Refused" }>
) {
  const { code, field, detail, status } = sent
  const closing = { state: "refused", status, reason: `${code}: ${detail}`, source: null } as const
  const isStale = call.operation === "update" && code === "stale_record"
  const problems = sent.problems.map((problem) => ({ field: problem.field, message: problem.message }))
  const verdict: OutboxStore.RowResolution =
    isStale && row.merges < mergesMax
      ? { state: "waiting", reason: detail, merges: 1 }
      : isStale
        ? refuse("conflict", null, `the record changed each time between the reading and the writing: ${detail}`)
        : { state: "refused", code, field, reason: detail, problems }
  return yield* settle(lane, row, verdict, { call: { id: call.id, closing } })
})

/** Brings a call to its end; answers its row where that must go again. */
export const complete = (
  lane: PushSession,
  call: RequestStore.PushRequest
): Effect.Effect<OutboxStore.Row | null, PushSessionError> =>
  Effect.gen(function* () {
    const sent = yield* Send.send(lane, call)
    if (sent._tag === "Stopped") return null
    const [row] = call.rows
    if (row === undefined) {
      // Somebody has taken its row away.
      const closing = { state: "settled", status: null, reason: "its row is gone", source: null } as const
      yield* lane.settle({ call: { id: call.id, closing }, judged: [] })
      return null
    }
    switch (sent._tag) {
      case "Answered": {
        lane.inVain = 0
        const { items } = sent.answer
        return yield* answered(lane, call, row, items.length === 1 ? items[0] : undefined, sent.answer)
      }
      case "Expired":
        return yield* giveUp(lane, call, row, { code: "unclear", detail: sent.detail, isFault: false })
      case "GivenUp": {
        const left = yield* giveUp(lane, call, row, { code: sent.code, detail: sent.detail, isFault: true })
        if (left !== null && sent.code !== "unclear") Send.countFailure(lane, sent.detail)
        return left
      }
      case "Refused": {
        lane.inVain = 0
        return yield* refused(lane, call, row, sent)
      }
    }
  }).pipe(
    Effect.catchTag("SourceError", (error) =>
      Effect.as(
        Effect.sync(() => lane.stopFor(error)),
        null
      )
    )
  )

/** What is to be done with a record as it was read: a verdict at once, or a call. */
const decide = (
  lane: PushSession,
  row: OutboxStore.Row,
  reading: FetchedRecord
): OutboxStore.RowResolution | { readonly draft: RequestStore.NewRequest; readonly base: OutboxStore.Base } => {
  const { resource } = lane.table
  const { record } = reading
  const recordId = row.recordId
  if (!isShown(reading)) return refuse("not_found", null, "the source has no such record")
  if (row.operation === "cancel") {
    if (isCancelled(resource, record)) return done("unchanged", recordId)
    return { draft: { operation: "cancel", recordId, ifMatch: null, body: null, rows: [row] }, base: {} }
  }
  const draft: RequestStore.NewRequest = {
    operation: "update",
    recordId,
    ifMatch: reading.version,
    body: row.text,
    rows: [row]
  }
  if (record === null) return { draft, base: row.base ?? {} }
  const given = differences(resource, "update", row.text, record)
  if (given.length === 0 && isComparable(lane, row)) return done(row.attempts > 0 ? "updated" : "unchanged", recordId)
  const { base } = row
  if (base !== null) {
    const other = given.find(({ field, held }) => base[field] !== held)
    if (other !== undefined) {
      const { field, held } = other
      return refuse("conflict", field, `somebody else has set ${field} to ${JSON.stringify(held)} meanwhile`)
    }
  }
  return { draft, base: base ?? Object.fromEntries(given.map(({ field, held }) => [field, held])) }
}

/** Reads the record, and sends the change where there is one; answers the row where it must go again. */
const step = (lane: PushSession, row: OutboxStore.Row): Effect.Effect<OutboxStore.Row | null, PushSessionError> =>
  Effect.gen(function* () {
    const { company, table } = lane
    const reading = yield* company.connector.get(table.resource, row.recordId ?? "")
    const decided = decide(lane, row, reading)
    if ("state" in decided) return yield* settle(lane, row, decided, { readings: [reading] })
    const call = yield* lane.form((run) =>
      Effect.map(OutboxStore.isStill(run, row), (isStill) => (isStill ? [decided] : []))
    )
    return call === null ? null : yield* complete(lane, call)
  }).pipe(Effect.catchTag("SourceError", (error) => failed(lane, row, error)))

/** A read that failed: of this record alone, or of more. */
const failed = (
  lane: PushSession,
  row: OutboxStore.Row,
  error: SourceError
): Effect.Effect<OutboxStore.Row | null, PushSessionError> => {
  const { reason } = error
  if (reason._tag === "Refused") return settle(lane, row, refuse(reason.code, reason.field, reason.detail))
  return Effect.as(
    Effect.sync(() => lane.stopFor(error)),
    null
  )
}

/** Finds out which record a row is about; null when it was settled instead, or nothing can be known. */
const resolve = Effect.fnUntraced(function* (
  lane: PushSession,
  row: OutboxStore.Row,
  inWarehouse: ReadonlyMap<string, ReadonlyArray<string>>
): Effect.fn.Return<OutboxStore.Row | null, PushSessionError | SourceError> {
  const { resource } = lane.table
  const { connector } = lane.company
  const externalid = row.externalid ?? ""
  const here = inWarehouse.get(externalid) ?? []
  if (here.length === 1 && here[0] !== undefined) {
    // The warehouse may be behind: the record itself must say so.
    const { record } = yield* connector.get(resource, here[0])
    if (record !== null && valueOf(resource, record, "externalid") === externalid)
      return { ...row, recordId: record.id }
  }
  const found = yield* find(connector, resource, externalid)
  const [only] = found
  const id = only === undefined ? null : idOf(only)
  if (only === undefined) {
    yield* settle(lane, row, refuse("not_found", "externalid", "the source has no record with this externalid"))
    return null
  }
  if (found.length > 1 || id === null) {
    const ids = found.map((reading) => idOf(reading) ?? "one without a number").join(", ")
    const reason = `the source has several records with this externalid: ${ids}`
    yield* settle(lane, row, refuse("ambiguous_externalid", "externalid", reason), { readings: found })
    return null
  }
  return { ...row, recordId: id }
})

/** The rows with the records that they are about; those that are settled on the way are left out. */
const resolveAll = Effect.fnUntraced(function* (
  lane: PushSession,
  rows: ReadonlyArray<OutboxStore.Row>
): Effect.fn.Return<ReadonlyArray<OutboxStore.Row>, PushSessionError> {
  const open = rows.filter(({ recordId }) => recordId === null)
  if (open.length === 0) return rows
  const { table, companyId } = lane
  if (!table.resource.field.has("externalid")) {
    const unnamed = refuse(
      "not_found",
      "externalid",
      "records of this resource have no externalid: give the record's id"
    )
    yield* Effect.forEach(open, (row) => settle(lane, row, unnamed), { discard: true })
    return rows.filter(({ recordId }) => recordId !== null)
  }
  const externalids = open.flatMap(({ externalid }) => (externalid === null ? [] : [externalid]))
  const held = yield* lane.transaction((run) => OutboxStore.heldBy(run, table.current, companyId, externalids))
  const one = (row: OutboxStore.Row) =>
    (row.recordId === null ? resolve(lane, row, held) : Effect.succeed(row)).pipe(
      Effect.catchTag("SourceError", (error) => failed(lane, row, error))
    )
  const resolved = (yield* Effect.forEach(rows, one, { concurrency: lane.settings.concurrency })).filter(
    (row) => row !== null
  )
  const known = new Set(open.map(({ id }) => id))
  yield* lane.transaction((run) =>
    OutboxStore.resolved(
      run,
      resolved.filter(({ id }) => known.has(id))
    )
  )
  return resolved
})

/** Changes records up to this row: those of one record one after the other. */
export const change = Effect.fnUntraced(function* (
  lane: PushSession,
  through: bigint
): Effect.fn.Return<void, PushSessionError> {
  for (let after = -1n; !lane.isStopped();) {
    const rows = yield* lane.transaction((run) =>
      OutboxStore.changes(run, lane.place(), { after, through, atMost: takenTogether })
    )
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.id
    const byRecord = Map.groupBy(yield* resolveAll(lane, rows), ({ recordId }) => recordId)
    yield* Effect.forEach(
      byRecord.values(),
      (ofOne) =>
        Effect.gen(function* () {
          for (const row of ofOne) {
            for (let left: OutboxStore.Row | null = row; left !== null;) {
              if (lane.isStopped()) return
              left = yield* step(lane, left)
            }
          }
        }),
      { concurrency: lane.settings.concurrency, discard: true }
    )
  }
})
