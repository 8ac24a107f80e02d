/**
 * Resolution of requests that create records.
 *
 * Promise: every record is created once. When the outcome of a request is not known, its records are looked up, never
 * assumed (EP-02, B-08). An answer counts for each record alone: a rejected record is resolved with its reasons, and the
 * other records of the request go on. A request that is rejected as a whole is bisected until the record at fault is
 * alone.
 */
import * as Effect from "effect/Effect"
import type { WriteAnswer } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { WriteResult, WriteSucceeded } from "../connector/WriteResult.ts"
import type { ObservedPage } from "../land/Landing.ts"
import type { RequestResolution } from "./Commit.ts"
import { listMany, lookUp } from "./Deduplicate.ts"
import { differences } from "./DiffWritten.ts"
import type { OutboxRow } from "./OutboxRow.ts"
import type { PushSession } from "./PushSession.ts"
import { createRequestOf, type NewRequest, type PushRequest } from "./RequestStore.ts"
import { done, rejectedBySource, type Rejection, type ResolvedRow, type RowResolution } from "./RowResolution.ts"
import type { Rejected, SendResult, Uncertain } from "./Send.ts"
import { findByExternalid, isShown, type Listed } from "./SourceLookup.ts"

/** A record that fails alone is rejected after this many attempts. */
const attemptsMax = 5

/** The resolution of a record that the source does not have: it is sent again, unless it failed too often. */
const retryAbsent = (row: OutboxRow, rejection: Rejection, mayReject: boolean): RowResolution =>
  mayReject && row.attempts + 1 >= attemptsMax
    ? { ...rejectedBySource(rejection), attempts: 1 }
    : { state: "pending", reason: rejection.detail, attempts: 1, isAbsent: true }

const unclear = (detail: string): Rejection => ({ kind: "other", code: "unclear", field: null, detail, problems: [] })

/** Reads a created record that the answer did not show, so that the warehouse has it. */
const readBack = Effect.fnUntraced(function* (
  { company, table: { resource } }: PushSession,
  row: OutboxRow,
  { id }: WriteSucceeded
): Effect.fn.Return<ResolvedRow, SourceError> {
  const isReadable = id !== null && resource.operations.includes("R")
  const readings = isReadable
    ? [yield* company.connector.get(resource, id)]
    : yield* findByExternalid(company.connector, resource, row.externalid ?? "")
  const shown = readings.filter(isShown)
  const record = shown.length === 1 ? (shown[0]?.record ?? null) : null
  const different = record === null ? [] : differences(resource, "create", row.text, record)
  return { row, resolution: done("created", id ?? record?.id ?? null, different), readings: shown }
})

/** Resolves a record by its item of the answer; undefined when the answer does not name it exactly once. */
const resolveItem = (
  session: PushSession,
  row: OutboxRow,
  item: WriteResult | undefined,
  listed: Listed
): Effect.Effect<ResolvedRow, SourceError> => {
  switch (item?._tag) {
    case "WriteSucceeded": {
      const { id, record, rejected } = item
      if (record === null && rejected === null) return readBack(session, row, item)
      const different = record === null ? [] : differences(session.table.resource, "create", row.text, record)
      return Effect.succeed({ row, resolution: done("created", id, different) })
    }
    case "WriteRejected": {
      if (item.isRetryable) return lookUp(session, row, { wasSent: true, absent: retryAbsent(row, item, true) }, listed)
      return resolveRejection(session, row, item, listed)
    }
    default: {
      const rejection = unclear(item?.detail ?? "the answer does not show its result")
      return lookUp(session, row, { wasSent: true, absent: retryAbsent(row, rejection, true) }, listed)
    }
  }
}

/** Rejects a record. When the source calls it a duplicate, the record that exists is looked up. */
const resolveRejection = (
  session: PushSession,
  row: OutboxRow,
  rejection: Rejection,
  listed?: Listed
): Effect.Effect<ResolvedRow, SourceError> => {
  const resolution = rejectedBySource(rejection)
  return rejection.kind === "duplicate"
    ? lookUp(session, row, { wasSent: false, absent: resolution }, listed)
    : Effect.succeed({ row, resolution })
}

/** The written records that the answer shows, as a page. An answer may be a replay: it is as old as the request. */
export const echoOf = (request: PushRequest, answer: WriteAnswer): ReadonlyArray<ObservedPage> => {
  const written = answer.items.filter((item) => item._tag === "WriteSucceeded")
  const records = written.flatMap(({ record }) => record ?? [])
  const rejected = written.flatMap((item) => item.rejected ?? [])
  if (records.length === 0 && rejected.length === 0) return []
  const { source } = answer
  return [
    {
      page: { records, rejected, next: null, syncedThrough: null, beganAt: 0, source, bytes: 0, attempts: 1 },
      observedAt: request.createdAt
    }
  ]
}

/** The items by index, without those whose index occurs twice. */
const itemsByIndex = (items: ReadonlyArray<WriteResult>): ReadonlyMap<number, WriteResult> => {
  const byIndex = new Map<number, WriteResult>()
  const twice = new Set<number>()
  for (const item of items) {
    if (byIndex.has(item.index)) twice.add(item.index)
    byIndex.set(item.index, item)
  }
  for (const index of twice) byIndex.delete(index)
  return byIndex
}

/** Whether the item does not show the outcome of its record. */
const isUnknown = (item: WriteResult | undefined): boolean =>
  item === undefined || item._tag === "WriteUncertain" || (item._tag === "WriteRejected" && item.isRetryable)

const resolveAnswered = Effect.fnUntraced(function* (
  session: PushSession,
  request: PushRequest,
  answer: WriteAnswer
): Effect.fn.Return<RequestResolution, SourceError> {
  const items = itemsByIndex(answer.items)
  const itemOf = (row: OutboxRow) => (row.requestIndex === null ? undefined : items.get(row.requestIndex))
  const isDuplicate = (item: WriteResult | undefined) =>
    item?._tag === "WriteRejected" && !item.isRetryable && item.kind === "duplicate"
  const duplicates = request.rows.filter((row) => isDuplicate(itemOf(row)))
  const unknown = request.rows.filter((row) => isUnknown(itemOf(row)))
  // Duplicates may be old records.
  const changedSinceMs = duplicates.length > 0 ? null : request.createdAt
  const listed = yield* listMany(session, [...duplicates, ...unknown], changedSinceMs)
  const rows = yield* Effect.forEach(request.rows, (row) => resolveItem(session, row, itemOf(row), listed), {
    concurrency: session.settings.concurrency
  })
  const { status, source } = answer
  return {
    closed: { id: request.id, result: { state: "completed", status, reason: null, source } },
    rows,
    echo: echoOf(request, answer),
    source: "works"
  }
})

const bisect = (rows: ReadonlyArray<OutboxRow>): ReadonlyArray<NewRequest> => {
  const middle = Math.ceil(rows.length / 2)
  return [rows.slice(0, middle), rows.slice(middle)].filter((half) => half.length > 0).map(createRequestOf)
}

/**
 * Looks each record up: absent records are sent under a new key. When the source fails at many records at once, it is
 * not known which of them is at fault: the absent ones are bisected.
 */
const resolveUncertain = Effect.fnUntraced(function* (
  session: PushSession,
  request: PushRequest,
  { code, detail, isFault }: Uncertain
): Effect.fn.Return<RequestResolution, SourceError> {
  const isAlone = request.rows.length === 1
  const rejection = { ...unclear(detail), code }
  const listed = yield* listMany(session, request.rows, request.createdAt)
  const found = yield* Effect.forEach(
    request.rows,
    (row) => lookUp(session, row, { wasSent: true, absent: retryAbsent(row, rejection, isFault && isAlone) }, listed),
    { concurrency: session.settings.concurrency }
  )
  const isBisected = isFault && !isAlone
  const isAbsent = ({ resolution }: ResolvedRow) => isBisected && resolution.state === "pending"
  return {
    closed: { id: request.id, result: { state: "abandoned", status: null, reason: detail, source: null } },
    rows: found.filter((one) => !isAbsent(one)),
    next: bisect(found.filter(isAbsent).map(({ row }) => row)).map((half) => ({ ...half, attempts: 1 })),
    source: code === "unclear" ? "unknown" : "fails"
  }
})

/** The source rejected the request as a whole. */
const resolveRejected = Effect.fnUntraced(function* (
  session: PushSession,
  { id, rows }: PushRequest,
  rejection: Rejected
): Effect.fn.Return<RequestResolution, SourceError> {
  const { state } = session
  const { kind, status, code, detail } = rejection
  const closed = {
    id,
    result: { state: "rejected", status, reason: `${code}: ${detail}`, source: null }
  } as const
  if (rows.length <= 1) {
    const resolved = yield* Effect.forEach(rows, (row) => resolveRejection(session, row, rejection))
    return { closed, rows: resolved, source: "works" }
  }
  if (kind === "unsupported") {
    // The source does not offer batches of this resource: the records are sent one by one.
    state.useBatch = false
    const resolution = { state: "pending", reason: detail } as const
    return { closed, rows: rows.map((row) => ({ row, resolution })), source: "unknown" }
  }
  if (kind === "tooLarge") {
    state.recordsMax = Math.min(state.recordsMax, Math.ceil(rows.length / 2))
  }
  return { closed, rows: [], next: bisect(rows), source: "unknown" }
})

export const resolveCreate = (
  session: PushSession,
  request: PushRequest,
  result: SendResult
): Effect.Effect<RequestResolution, SourceError> => {
  switch (result._tag) {
    case "Answered":
      return resolveAnswered(session, request, result.answer)
    case "Uncertain":
      return resolveUncertain(session, request, result)
    case "Rejected":
      return resolveRejected(session, request, result)
  }
}
