/**
 * Pushing of updates and cancels.
 *
 * Promise: a record is read before it is changed. The reading that identified it is enough if it shows a version. Nothing
 * is sent when the record shows the change already. An update names the version that it changes. A change of other fields
 * by another person is kept; a change of the same field is a conflict, and a person decides.
 */
import * as Effect from "effect/Effect"
import type { Resource } from "../catalogue/Resource.ts"
import type { FetchedRecord } from "../connector/Connector.ts"
import { completeRequest } from "./CompleteRequest.ts"
import { differences } from "./DiffWritten.ts"
import { storeNextRequest } from "./GroupCommit.ts"
import { commitRow, type IdentifiedRow, identifyRecords, rejectOrStop } from "./IdentifyRecords.ts"
import { type OutboxRow, rowsOf } from "./OutboxRow.ts"
import { changesStatement, lockPendingStatement, parametersOf } from "./OutboxStore.ts"
import { isStopped, type PushSession, type PushSessionError, scopeOf, transaction } from "./PushSession.ts"
import type { NewRequest } from "./RequestStore.ts"
import { isComparable, notFound } from "./ResolveUpdate.ts"
import { done, rejected, type RowResolution } from "./RowResolution.ts"
import { isCancelled, isShown } from "./SourceLookup.ts"

const rowsPerSelect = 200

/** The plan for a change, by the record as it was read: a resolution of the row, or a request. */
export const planChange = (resource: Resource, row: OutboxRow, reading: FetchedRecord): RowResolution | NewRequest => {
  const { record, version } = reading
  const { expectedValues, recordId } = row
  if (!isShown(reading)) return notFound
  if (row.operation === "cancel") {
    if (isCancelled(resource, record)) return done("unchanged", recordId)
    return { operation: "cancel", recordId, ifMatch: null, body: null, rows: [row], expectedValues: {} }
  }
  const request = { operation: "update", recordId, ifMatch: version, body: row.text, rows: [row] } as const
  if (record === null) return { ...request, expectedValues: expectedValues ?? {} }
  const different = differences(resource, "update", row.text, record)
  if (different.length === 0 && isComparable(resource, row)) {
    return done(row.attempts > 0 ? "updated" : "unchanged", recordId)
  }
  if (expectedValues === null) {
    return { ...request, expectedValues: Object.fromEntries(different.map(({ field, current }) => [field, current])) }
  }
  const conflict = different.find(({ field, current }) => expectedValues[field] !== current)
  if (conflict === undefined) return { ...request, expectedValues }
  const { field, current } = conflict
  return rejected("conflict", field, `another person has set ${field} to ${JSON.stringify(current)} meanwhile`)
}

/**
 * Sends the change of a record where there is one; reads the record first where no reading is given. Returns the row if it
 * is pending again.
 */
const pushChange = (
  session: PushSession,
  { row, reading: known }: IdentifiedRow
): Effect.Effect<OutboxRow | null, PushSessionError> =>
  Effect.gen(function* () {
    const { company, table } = session
    const reading = known ?? (yield* company.connector.get(table.resource, row.recordId ?? ""))
    const planned = planChange(table.resource, row, reading)
    if ("state" in planned) return yield* commitRow(session, { row, resolution: planned, readings: [reading] })
    const request = yield* storeNextRequest(session, (run) =>
      Effect.map(rowsOf(run, lockPendingStatement, [row.id, row.text]), (locked) => locked.map(() => planned))
    )
    if (request === null) return null
    const [pending = null] = yield* completeRequest(session, request)
    return pending
  }).pipe(Effect.catchTag("SourceError", (error) => rejectOrStop(session, row, error)))

/** Pushes the changes of one record, one after the other: only the first finds the record as it was read before. */
const pushChangesOfRecord = Effect.fnUntraced(function* (session: PushSession, rows: ReadonlyArray<IdentifiedRow>) {
  let reading = rows[0]?.reading ?? null
  for (const { row } of rows) {
    for (let pending: OutboxRow | null = row; pending !== null; reading = null) {
      if (isStopped(session)) return
      pending = yield* pushChange(session, { row: pending, reading })
    }
  }
})

/** Pushes the updates and cancels up to this row. */
export const pushChanges = Effect.fnUntraced(function* (
  session: PushSession,
  through: bigint
): Effect.fn.Return<void, PushSessionError> {
  for (let after = -1n; !isStopped(session);) {
    const rows = yield* transaction(session, (run) =>
      rowsOf(run, changesStatement, [...parametersOf(scopeOf(session)), after, through, rowsPerSelect])
    )
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.id
    const byRecord = Map.groupBy(yield* identifyRecords(session, rows), ({ row }) => row.recordId)
    yield* Effect.forEach(byRecord.values(), (ofRecord) => pushChangesOfRecord(session, ofRecord), {
      concurrency: session.settings.concurrency,
      discard: true
    })
  }
})
