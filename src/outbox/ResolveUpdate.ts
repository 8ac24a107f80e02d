/**
 * Resolution of requests that update or cancel a record.
 *
 * Promise: when the outcome of a request is not known, the record is read, never assumed. An update of an outdated
 * version is sent again after the record was read again, at most three times (B-03).
 */
import { type Resource, roleField } from "../catalogue/Resource.ts"
import * as Effect from "effect/Effect"
import type { FetchedRecord, WriteAnswer } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { RequestResolution } from "./Commit.ts"
import { differences } from "./DiffWritten.ts"
import type { OutboxRow } from "./OutboxRow.ts"
import type { PushSession } from "./PushSession.ts"
import type { PushRequest, RequestResult } from "./RequestStore.ts"
import { echoOf } from "./ResolveCreate.ts"
import { done, rejected, rejectedBySource, type RowResolution } from "./RowResolution.ts"
import type { Rejected, SendResult, Uncertain } from "./Send.ts"
import { idOf, isCancelled, isShown } from "./SourceLookup.ts"
import { shapeOf } from "./WriteSchema.ts"

/** Retries of an update when the record changes between the read and the write. */
const conflictRetriesMax = 3
const attemptsMax = 5

/** The resolution of a record that is not at the source. */
export const notFound: RowResolution = rejected("not_found", null, "the source has no such record")

/** Whether every given value can be compared with what a record shows. */
export const isComparable = (resource: Resource, row: OutboxRow): boolean => {
  const columns = shapeOf(resource, row.operation)
  const body: unknown = JSON.parse(row.text)
  return Object.keys(typeof body === "object" && body !== null ? body : {}).every((name) => {
    const column = columns.get(name)
    return (
      column !== undefined &&
      column.sets !== null &&
      column.type._tag !== "list" &&
      (column.refers?.by ?? null) === null
    )
  })
}

/** The resolution of a change that the record shows; null when it does not show the change. */
const resolveByReading = (session: PushSession, row: OutboxRow, reading: FetchedRecord): RowResolution | null => {
  const { resource } = session.table
  const id = idOf(reading)
  if (row.operation === "cancel") {
    return !isShown(reading) || isCancelled(resource, reading.record) ? done("cancelled", row.recordId ?? id) : null
  }
  if (!isShown(reading)) return notFound
  if (reading.record === null || !isComparable(resource, row)) return null
  return differences(resource, "update", row.text, reading.record).length === 0 ? done("updated", id) : null
}

const readRecord = ({ company, table }: PushSession, { recordId }: PushRequest) =>
  company.connector.get(table.resource, recordId ?? "")

/** Reads the record: a change that it does not show is sent again under a new key. */
const resolveUncertain = Effect.fnUntraced(function* (
  session: PushSession,
  request: PushRequest,
  row: OutboxRow,
  { code, detail, isFault }: Uncertain,
  status: number | null = null
): Effect.fn.Return<RequestResolution, SourceError> {
  const reading = yield* readRecord(session, request)
  const isFailedTooOften = isFault && row.attempts + 1 >= attemptsMax
  const resolution: RowResolution =
    resolveByReading(session, row, reading) ??
    (isFailedTooOften ? rejected(code, null, detail) : { state: "pending", reason: detail, attempts: 1 })
  return {
    closed: { id: request.id, result: { state: "abandoned", status, reason: detail, source: null } },
    rows: [{ row, resolution, readings: [reading] }],
    source: resolution.state === "pending" && code !== "unclear" ? "fails" : "unknown"
  }
})

const resolveAnswered = Effect.fnUntraced(function* (
  session: PushSession,
  request: PushRequest,
  row: OutboxRow,
  answer: WriteAnswer
): Effect.fn.Return<RequestResolution, SourceError> {
  const { resource } = session.table
  const { items, status, source } = answer
  const item = items.length === 1 ? items[0] : undefined
  const closedFor = (reason: string | null) => ({
    id: request.id,
    result: { state: "completed", status, reason, source } satisfies RequestResult
  })
  if (item?._tag === "WriteRejected" && !item.isRetryable) {
    const { code, field, detail } = item
    return { closed: closedFor(detail), rows: [{ row, resolution: rejected(code, field, detail) }], source: "works" }
  }
  if (item?._tag !== "WriteSucceeded") {
    const detail = item?.detail ?? "the answer does not show its result"
    const uncertain = { _tag: "Uncertain", code: "unclear", detail, isFault: true } as const
    return { ...(yield* resolveUncertain(session, request, row, uncertain, status)), source: "works" }
  }
  const { record } = item
  const resolutionBy = (shown: FetchedRecord["record"]): RowResolution => {
    if (row.operation === "cancel") return done("cancelled", request.recordId)
    const different = shown === null ? [] : differences(resource, "update", row.text, shown)
    return done("updated", request.recordId, different)
  }
  const closed = closedFor(null)
  // A record without a time of change is as new as its reading: the answer may be older than another reading.
  const isDated =
    roleField(resource, "modifiedAt") !== undefined && (row.operation === "update" || isCancelled(resource, record))
  const echo = isDated ? echoOf(request, answer) : []
  if (echo.length > 0) return { closed, rows: [{ row, resolution: resolutionBy(record) }], echo, source: "works" }
  const reading = yield* readRecord(session, request)
  return { closed, rows: [{ row, resolution: resolutionBy(reading.record), readings: [reading] }], source: "works" }
})

const resolveRejected = (request: PushRequest, row: OutboxRow, rejection: Rejected): RequestResolution => {
  const { kind, code, detail, status } = rejection
  const isOutdated = request.operation === "update" && kind === "outdated"
  const resolution: RowResolution = !isOutdated
    ? rejectedBySource(rejection)
    : row.conflictRetries < conflictRetriesMax
      ? { state: "pending", reason: detail, conflictRetries: 1 }
      : rejected("conflict", null, `the record changed each time between the read and the write: ${detail}`)
  return {
    closed: { id: request.id, result: { state: "rejected", status, reason: `${code}: ${detail}`, source: null } },
    rows: [{ row, resolution }],
    source: "works"
  }
}

export const resolveUpdate = (
  session: PushSession,
  request: PushRequest,
  result: SendResult
): Effect.Effect<RequestResolution, SourceError> => {
  const [row] = request.rows
  if (row === undefined) {
    const closing = { state: "abandoned", status: null, reason: "its row is gone", source: null } as const
    return Effect.succeed({ closed: { id: request.id, result: closing }, rows: [], source: "unknown" })
  }
  switch (result._tag) {
    case "Answered":
      return resolveAnswered(session, request, row, result.answer)
    case "Uncertain":
      return resolveUncertain(session, request, row, result)
    case "Rejected":
      return Effect.succeed(resolveRejected(request, row, result))
  }
}
