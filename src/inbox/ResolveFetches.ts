/**
 * Resolutions of events whose records were fetched by number, and the pages that their fetches land.
 *
 * Promise: a record that the source does not show becomes a tombstone only once it must be visible. Until then its events
 * are postponed.
 */
import * as Effect from "effect/Effect"
import { type FetchedRecord, isMissing, type SourceRecord } from "../connector/Connector.ts"
import type { DeletedRecord, ObservedPage } from "../land/Landing.ts"
import { pageOf } from "../sync/FetchRecords.ts"
import type { Table } from "../warehouse/Table.ts"
import type { FailureScope } from "../sync/CircuitBreaker.ts"
import { compareWithRow, type RowState } from "./CompareWithRow.ts"
import type { PendingEvent, Resolution } from "./InboxStore.ts"
import { isBefore } from "./ModifiedAt.ts"

/** A record to fetch, and the events that name it. */
export interface FetchRequest {
  readonly recordId: string
  readonly events: ReadonlyArray<PendingEvent>
}

/** The answer to a fetch request. */
export type FetchAnswer =
  | { readonly _tag: "Fetched"; readonly fetched: FetchedRecord }
  | { readonly _tag: "Failed"; readonly scope: FailureScope; readonly reason: string }
  /** Not sent: the source is unavailable. */
  | { readonly _tag: "NotSent" }

export interface FetchResult {
  readonly request: FetchRequest
  readonly answer: FetchAnswer
}

/** Pages and tombstones to land, and the resolutions that are committed with them. */
export interface FetchedBatch {
  readonly pages: Array<ObservedPage>
  readonly absent: Array<DeletedRecord>
  readonly resolutions: Array<Resolution & { readonly recordId: string }>
}

/** After this many failed attempts an event becomes a dead letter. */
export const attemptsMax = 6
const attemptPausesMs = [10_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 60 * 60_000]

export const quarantinedReason = "the record is in quarantine"

/** The resolution of an event whose own record fails. */
export const retryOrDeadLetter = (event: PendingEvent, reason: string): Resolution =>
  event.attempts + 1 >= attemptsMax
    ? { id: event.id, state: "dead_letter", reason, isAttempt: true }
    : { id: event.id, state: "pending", reason, isAttempt: true, pauseMs: attemptPausesMs[event.attempts]! }

/** Time until a record that the source does not show is fetched again, because it may be visible by then. */
export const visibilityDelay = (ageMs: number, boundMs: number): number =>
  Math.max(100, Math.min(Math.max(5_000, 2 * ageMs), boundMs - ageMs + 100))

/** Resolves the events of fetched records. `visibleAfterMs` is the time after which a change must be visible. */
export const resolveFetches = Effect.fnUntraced(function* (
  target: { readonly table: Table; readonly companyId: bigint; readonly visibleAfterMs: number },
  results: ReadonlyArray<FetchResult>
) {
  const { table, companyId, visibleAfterMs } = target
  const batch: FetchedBatch = { pages: [], absent: [], resolutions: [] }
  const missing = results.filter(({ answer }) => answer._tag === "Fetched" && isMissing(answer.fetched))
  const missingEvents = missing.flatMap(({ request }) => request.events)
  const rows = yield* compareWithRow(table, companyId, missingEvents)
  const stampOf = stampReader(table)
  for (const { request, answer } of results) {
    const { recordId, events } = request
    const add = (resolutions: ReadonlyArray<Resolution>) => {
      for (const resolution of resolutions) batch.resolutions.push({ ...resolution, recordId })
    }
    if (answer._tag === "NotSent") continue
    if (answer._tag === "Failed") {
      add(resolveFailed(events, answer.scope, answer.reason))
      continue
    }
    const { fetched } = answer
    if (isMissing(fetched)) {
      const { isGone, resolutions } = resolveMissing(events, rows, visibleAfterMs)
      add(resolutions)
      if (isGone) batch.absent.push({ id: recordId, changedAt: null, beganAt: fetched.beganAt, source: fetched.source })
      continue
    }
    batch.pages.push({ page: pageOf(fetched) })
    add(
      fetched.rejected !== null
        ? events.map(({ id }) => ({ id, state: "done", reason: quarantinedReason }))
        : resolveFound(
            events,
            fetched.record === null ? (fetched.unselected?.changedAt ?? null) : stampOf(fetched.record),
            visibleAfterMs
          )
    )
  }
  return batch
})

const stampReader = ({ resource }: Table) => {
  const index = resource.fields.findIndex(({ name }) => name === resource.roles.modifiedAt)
  return ({ columns }: SourceRecord) => (index === -1 ? null : (columns[index] ?? null))
}

const resolveFailed = (
  events: ReadonlyArray<PendingEvent>,
  scope: FailureScope,
  reason: string
): ReadonlyArray<Resolution> => {
  if (scope === "record") return events.map((event) => retryOrDeadLetter(event, reason))
  if (scope === "blocked") return events.map(({ id }) => ({ id, state: "dead_letter", reason }))
  return []
}

const resolveFound = (
  events: ReadonlyArray<PendingEvent>,
  recordStamp: string | null,
  visibleAfterMs: number
): ReadonlyArray<Resolution> =>
  events.map(({ id, stamp, ageMs }) => {
    if (!isBefore(recordStamp, stamp)) return { id, state: "done", reason: null }
    // The source answers from a copy that lags behind, or the change is not visible yet.
    if (ageMs >= visibleAfterMs) return { id, state: "done", reason: "the source shows an older version" }
    const pauseMs = visibilityDelay(ageMs, visibleAfterMs)
    return { id, state: "pending", reason: "the source still shows an older version", pauseMs }
  })

const resolveMissing = (
  events: ReadonlyArray<PendingEvent>,
  rows: ReadonlyMap<bigint, RowState>,
  visibleAfterMs: number
) => {
  let isGone = false
  const resolutions = events.map(({ id, ageMs }): Resolution => {
    const row = rows.get(id)
    // The source has shown an old row before, so the record is gone. A new record may not be visible yet.
    const isOld = row?.isLive === true && (row.observedMsAgo ?? 0) >= visibleAfterMs
    if (ageMs >= visibleAfterMs || isOld) {
      isGone = true
      return { id, state: "done", reason: "the source does not have the record" }
    }
    const pauseMs = visibilityDelay(ageMs, visibleAfterMs)
    return { id, state: "pending", reason: "the source does not show the record yet", pauseMs }
  })
  return { isGone, resolutions }
}
