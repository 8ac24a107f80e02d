/**
 * Identification of the records that changes are about.
 *
 * Promise: an externalid names a record only if the record itself shows it. When the source has none or several, the
 * row is rejected.
 */
import { type Resource, roleField } from "../catalogue/Resource.ts"
import { externalKeyOf } from "./Externalid.ts"
import * as Effect from "effect/Effect"
import type { FetchedRecord } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { commitRows } from "./GroupCommit.ts"
import type { OutboxRow } from "./OutboxRow.ts"
import { recordIdsOf, saveRecordIds } from "./OutboxStore.ts"
import { type PushSession, type PushSessionError, stopForSource, transaction } from "./PushSession.ts"
import { rejected, type RejectedResolution, type ResolvedRow } from "./RowResolution.ts"
import { findByExternalid, idOf, idsText, valueOf } from "./SourceLookup.ts"

/** Commits the resolution of a pending row that needs no request. */
export const commitRow = (session: PushSession, resolved: ResolvedRow): Effect.Effect<null, PushSessionError> =>
  Effect.as(commitRows(session, { closed: null, rows: [resolved] }), null)

/** Rejects the row when the source refused to read its record; stops the session after another error. */
export const rejectOrStop = (
  session: PushSession,
  row: OutboxRow,
  error: SourceError
): Effect.Effect<null, PushSessionError> => {
  const { reason } = error
  if (reason._tag === "Refused") {
    return commitRow(session, { row, resolution: rejected(reason.code, reason.field, reason.detail) })
  }
  return Effect.sync(() => {
    stopForSource(session, error)
    return null
  })
}

/** The number of the one record that an externalid names; a rejection where there is none, or are several. */
export const onlyIdOf = (
  { roles }: Pick<Resource, "roles">,
  readings: ReadonlyArray<FetchedRecord>
): string | RejectedResolution => {
  const [only] = readings
  if (only === undefined)
    return rejected("not_found", roles.externalKey, "the source has no record with this externalid")
  const id = idOf(only)
  if (readings.length === 1 && id !== null) return id
  const reason = `the source has several records with this externalid: ${idsText(readings)}`
  return rejected("ambiguous_externalid", roles.externalKey, reason)
}

/** A row with the number of its record. */
export interface IdentifiedRow {
  readonly row: OutboxRow
  /** The record as it was read on the way, with its version; null when it was not read, or has no version. */
  readonly reading: FetchedRecord | null
}

/** Finds the record of a row; null when the row was resolved instead. */
const identify = Effect.fnUntraced(function* (
  session: PushSession,
  row: OutboxRow,
  inWarehouse: ReadonlyMap<string, ReadonlyArray<string>>
): Effect.fn.Return<IdentifiedRow | null, PushSessionError | SourceError> {
  const { resource } = session.table
  const { connector } = session.company
  const externalid = row.externalid ?? ""
  const ids = inWarehouse.get(externalid) ?? []
  if (ids.length === 1 && ids[0] !== undefined) {
    // The warehouse may be outdated: the record itself must show the externalid.
    const reading = yield* connector.get(resource, ids[0])
    const { record, version } = reading
    if (record !== null && valueOf(resource, record, resource.roles.externalKey) === externalid)
      return { row: { ...row, recordId: record.id }, reading: version === null ? null : reading }
  }
  const readings = yield* findByExternalid(connector, resource, externalid)
  const id = onlyIdOf(resource, readings)
  if (typeof id !== "string") return yield* commitRow(session, { row, resolution: id, readings })
  return { row: { ...row, recordId: id }, reading: null }
})

const identified = (row: OutboxRow): IdentifiedRow => ({ row, reading: null })

/** The rows with the numbers of their records, without the rows that were resolved on the way. */
export const identifyRecords = Effect.fnUntraced(function* (
  session: PushSession,
  rows: ReadonlyArray<OutboxRow>
): Effect.fn.Return<ReadonlyArray<IdentifiedRow>, PushSessionError> {
  const unidentified = rows.filter(({ recordId }) => recordId === null)
  if (unidentified.length === 0) return rows.map(identified)
  const { table, companyId, settings } = session
  if (roleField(table.resource, "externalKey") === undefined) {
    const reason = "records of this resource have no externalid: give the record's id"
    const resolution = rejected("not_found", externalKeyOf(table.resource), reason)
    yield* Effect.forEach(unidentified, (row) => commitRow(session, { row, resolution }), { discard: true })
    return rows.filter(({ recordId }) => recordId !== null).map(identified)
  }
  const externalids = unidentified.flatMap(({ externalid }) => externalid ?? [])
  const inWarehouse = yield* transaction(session, (run) => recordIdsOf(run, table, companyId, externalids))
  const identifyOne = (row: OutboxRow) =>
    (row.recordId === null ? identify(session, row, inWarehouse) : Effect.succeed(identified(row))).pipe(
      Effect.catchTag("SourceError", (error) => rejectOrStop(session, row, error))
    )
  const results = yield* Effect.forEach(rows, identifyOne, { concurrency: settings.concurrency })
  const found = results.filter((result) => result !== null)
  const ids = new Set(unidentified.map(({ id }) => id))
  yield* transaction(session, (run) =>
    saveRecordIds(
      run,
      found.flatMap(({ row }) => (ids.has(row.id) ? [row] : []))
    )
  )
  return found
})
