/**
 * What the source has already.
 *
 * Promise: no record is created for the first time unless the source was seen not to have its externalid (F-04, G-08):
 * few are looked up one by one, many are compared with a scan that began after they had come, and whatever that shows is
 * read once more. What is there is adopted, compared and landed, never created again; where it cannot be told which
 * record is meant, or it is cancelled (F-06), a person decides.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape, FetchedRecord, SourceRecord } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Resource } from "../catalogue/Resource.ts"
import * as Scan from "../extract/Scan.ts"
import type * as Lander from "../land/WriteSession.ts"
import { pageOf } from "../sync/FetchRecords.ts"
import { syncResource } from "../sync/SyncResource.ts"
import type { Database } from "../postgres/Database.ts"
import { foldedExternalid } from "./Validate.ts"
import { differences } from "./DiffWritten.ts"
import type { PushSession, PushSessionError } from "./PushSession.ts"
import * as OutboxStore from "./OutboxStore.ts"

/** So many are looked up one by one; more are compared with a scan. */
const lookedUpMax = 20
/** So many are looked up at a time while somebody else scans. */
const lookedUpMeanwhile = 250
/** What is settled together while rows are looked up. */
const settledTogether = 100

/** A column of a record by its field's name; null when the record shows none. */
export const valueOf = (resource: Resource, record: SourceRecord, field: string): string | null => {
  const at = resource.fields.findIndex(({ name }) => name === field)
  return at === -1 ? null : (record.columns[at] ?? null)
}

export const isCancelled = (resource: Resource, record: SourceRecord | null): boolean =>
  record !== null && valueOf(resource, record, "cancel") === "true"

/**
 * The records that carry the externalid, cancelled ones too, compared here: how a source compares is not known.
 * Where none does, those whose externalid differs in case, in blanks at its ends or in its Unicode form alone: a source
 * that stores them so may have made them of ours.
 */
export const find = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  externalid: string
): Effect.fn.Return<ReadonlyArray<FetchedRecord>, SourceError> {
  const pages = yield* Scan.children(connector, resource, { field: "externalid", value: externalid })
  const found = new Map<string, FetchedRecord>()
  const alike = new Map<string, FetchedRecord>()
  const folded = foldedExternalid(externalid)
  const inJson = JSON.stringify(externalid)
  for (const { records, rejected, beganAt, source } of pages) {
    for (const record of records) {
      const shown = valueOf(resource, record, "externalid")
      if (shown === null || (shown !== externalid && foldedExternalid(shown) !== folded)) continue
      const into = shown === externalid ? found : alike
      into.set(record.id, { record, rejected: null, version: null, beganAt, source })
    }
    for (const one of rejected) {
      if (!one.bytes.includes(inJson)) continue
      found.set(one.id ?? one.bytes, { record: null, rejected: one, version: null, beganAt, source })
    }
  }
  return [...(found.size > 0 ? found : alike).values()]
})

/** The number of the record that was read. */
export const idOf = ({ record, rejected }: FetchedRecord): string | null => record?.id ?? rejected?.id ?? null

export const pagesOf = (
  lander: Lander.WriteSession,
  readings: ReadonlyArray<FetchedRecord>
): ReadonlyArray<Lander.ObservedPage> =>
  readings.map((reading) => ({ page: pageOf(reading), observedAt: lander.timeOf(reading.beganAt) }))

/** A row, what is to become of it, and what was read for it. */
export interface ExistingRecord extends OutboxStore.ResolvedRow {
  readonly readings: ReadonlyArray<FetchedRecord>
}

/** The source has a record under another spelling: it may be this one, so that a person decides. */
const isAlike = (id: string, shown: string): OutboxStore.RowResolution => ({
  state: "refused",
  code: "ambiguous_externalid",
  field: "externalid",
  reason:
    `the source has record ${id} with the externalid ${JSON.stringify(shown)}, which differs in case, blanks or Unicode ` +
    `form alone: it may be this one; push it as an update of ${id}, or under another externalid`,
  problems: []
})

/**
 * What a look at the source means for a create. `wasSent`: it may have been ours; `absent` is the verdict where there is
 * none.
 */
export const compareExisting = (
  resource: Resource,
  row: OutboxStore.Row,
  readings: ReadonlyArray<FetchedRecord>,
  { wasSent, absent }: { readonly wasSent: boolean; readonly absent: OutboxStore.RowResolution }
): ExistingRecord => {
  const [only, another] = readings
  if (only === undefined) return { row, verdict: absent, readings }
  const refused = (code: string, reason: string): ExistingRecord => ({
    row,
    verdict: { state: "refused", code, field: "externalid", reason, problems: [] },
    readings
  })
  const id = idOf(only)
  if (another !== undefined || id === null) {
    const ids = readings.map((reading) => idOf(reading) ?? "one without a number").join(", ")
    return refused("ambiguous_externalid", `the source has several records with this externalid: ${ids}`)
  }
  const shown = only.record === null ? null : valueOf(resource, only.record, "externalid")
  if (shown !== null && shown !== row.externalid) return { row, verdict: isAlike(id, shown), readings }
  if (!wasSent && isCancelled(resource, only.record)) {
    return refused("cancelled", `the source has it already, as record ${id}, which is cancelled`)
  }
  return {
    row,
    verdict: {
      state: "done",
      outcome: wasSent ? "created" : "adopted",
      recordId: id,
      differences: only.record === null ? [] : differences(resource, "create", row.text, only.record)
    },
    readings
  }
}

/** Looks up a create that was never sent. */
const lookUp = Effect.fnUntraced(function* (
  lane: PushSession,
  row: OutboxStore.Row,
  alike: { readonly id: string; readonly other: string } | undefined
) {
  const { resource } = lane.table
  const readings = yield* find(lane.company.connector, resource, row.externalid ?? "")
  const absent: OutboxStore.RowResolution =
    alike === undefined ? { state: "waiting", reason: null, isAbsent: true } : isAlike(alike.id, alike.other)
  return compareExisting(resource, row, readings, { wasSent: false, absent })
})

/** Looks rows up and settles those that are there. */
const lookUpAll = Effect.fnUntraced(function* (
  lane: PushSession,
  rows: ReadonlyArray<OutboxStore.Row>,
  /** Records that the warehouse holds under another spelling, by externalid. */
  alike: Effect.Success<ReturnType<typeof OutboxStore.heldAlike>> = new Map()
): Effect.fn.Return<void, PushSessionError> {
  for (let at = 0; at < rows.length && !lane.isStopped(); at += settledTogether) {
    const part = rows.slice(at, at + settledTogether)
    const looked = yield* Effect.forEach(
      part,
      (row) => Effect.result(lookUp(lane, row, alike.get(row.externalid ?? ""))),
      {
        concurrency: lane.settings.concurrency
      }
    )
    const found = looked.flatMap((one) => (one._tag === "Success" ? [one.success] : []))
    const failed = looked.find((one) => one._tag === "Failure")
    yield* lane.settle({
      call: null,
      judged: found,
      pages: pagesOf(
        lane.lander,
        found.flatMap(({ readings }) => readings)
      )
    })
    if (failed !== undefined) lane.stopFor(failed.failure)
  }
})

/** Makes known of every create up to this row whether the source has it; stops where that cannot be known. */
export const findExisting = Effect.fnUntraced(function* (
  lane: PushSession,
  through: bigint
): Effect.fn.Return<void, PushSessionError, Database | SqlClient.SqlClient> {
  const { company, companyId, table, children, transaction } = lane
  yield* transaction(OutboxStore.clearAssumedNew)
  const few = yield* transaction((run) => OutboxStore.unknownCreates(run, lane.place(), through, lookedUpMax + 1))
  if (few.length <= lookedUpMax) return yield* lookUpAll(lane, few)
  yield* transaction((run) => OutboxStore.assumeNew(run, lane.place(), through))
  const { failure } = yield* syncResource({
    companyId,
    connector: company.connector,
    table,
    full: false,
    acceptDeletions: false,
    batchRecordsMax: company.batchRecordsMax,
    engine: company.engine,
    children
  })
  if (failure !== null) {
    yield* transaction(OutboxStore.clearAssumedNew)
    // Somebody else reads the resource: that scan may have begun too early to tell.
    const isTaken = failure.kind === "AlreadyRunning" || failure.kind === "FenceLost"
    if (!isTaken) return lane.stop(failure)
    const some = yield* transaction((run) => OutboxStore.unknownCreates(run, lane.place(), through, lookedUpMeanwhile))
    return yield* lookUpAll(lane, some)
  }
  const suspects = yield* transaction((run) =>
    OutboxStore.possibleDuplicates(run, lane.place(), table.current, companyId)
  )
  if (suspects.length === 0) return
  const externalids = suspects.flatMap(({ externalid }) => externalid ?? [])
  const alike = yield* transaction((run) => OutboxStore.heldAlike(run, table.current, companyId, externalids))
  yield* lookUpAll(lane, suspects, alike)
})
