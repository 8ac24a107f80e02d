/**
 * Deduplication of creates with the records of the source.
 *
 * Promise: no record is created for the first time unless a read showed that the source lacks its externalid (F-04, G-08).
 * A few creates are looked up one by one. Many are compared with a scan that began after they were inserted, and every
 * possible duplicate is looked up. Many lookups read a list where that needs fewer requests; what the list does not show is
 * looked up all the same. A record that exists is adopted, compared and landed. When it is not clear which record is meant,
 * or the record is cancelled (F-06), a person decides.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { FetchedRecord } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Resource } from "../catalogue/Resource.ts"
import { syncResource } from "../sync/SyncResource.ts"
import type { Database } from "../postgres/Database.ts"
import * as AssumedNew from "./AssumedNew.ts"
import { differences } from "./DiffWritten.ts"
import { commitRows } from "./GroupCommit.ts"
import { type OutboxRow, rowsOf } from "./OutboxRow.ts"
import { parametersOf } from "./OutboxStore.ts"
import {
  isStopped,
  type PushSession,
  type PushSessionError,
  scopeOf,
  stop,
  stopForSource,
  transaction
} from "./PushSession.ts"
import { done, rejected, type ResolvedRow, type RowResolution } from "./RowResolution.ts"
import {
  findByExternalid,
  idOf,
  idsText,
  isCancelled,
  type Listed,
  listByExternalid,
  nothingListed,
  valueOf
} from "./SourceLookup.ts"

/** Up to this many creates are looked up one by one; more are compared with a scan, or found by a list. */
const lookupsMaxDefault = 20
/** Up to this many creates are looked up while another process scans the resource. */
const lookupsDuringScanMax = 250
/** Lookups that are committed together. */
const lookupsPerCommit = 100
/** Lookups whose records are found by one list; they are kept in memory. */
const lookupsPerList = 5_000
/** A list may have one page for this many lookups. A longer one is given up, at the price of these requests. */
const lookupsPerPage = 10

/** The source has a record with another spelling of the externalid. It may be the same record: a person decides. */
const rejectedAsAlike = (resource: Resource, { id, externalid }: AssumedNew.OtherSpelling): RowResolution =>
  rejected(
    "ambiguous_externalid",
    resource.roles.externalKey,
    `the source has record ${id} with the externalid ${JSON.stringify(externalid)}, which differs in case, blanks or Unicode ` +
      `form alone: it may be this one; push it as an update of ${id}, or under another externalid`
  )

/** The rule by which the readings of an externalid resolve a create. */
export interface LookupMeaning {
  /** Whether a request with the create was sent: then a record that exists is the one it created. */
  readonly wasSent: boolean
  /** The resolution when the source has no such record. */
  readonly absent: RowResolution
}

/** Resolves a create by the records that the source has with its externalid. */
export const resolveExisting = (
  resource: Resource,
  row: Pick<OutboxRow, "externalid" | "text">,
  readings: ReadonlyArray<FetchedRecord>,
  { wasSent, absent }: LookupMeaning
): RowResolution => {
  const [only, another] = readings
  if (only === undefined) return absent
  const id = idOf(only)
  if (another !== undefined || id === null) {
    const reason = `the source has several records with this externalid: ${idsText(readings)}`
    return rejected("ambiguous_externalid", resource.roles.externalKey, reason)
  }
  const shown = only.record === null ? null : valueOf(resource, only.record, resource.roles.externalKey)
  if (shown !== null && shown !== row.externalid) return rejectedAsAlike(resource, { id, externalid: shown })
  if (!wasSent && isCancelled(resource, only.record)) {
    return rejected(
      "cancelled",
      resource.roles.externalKey,
      `the source has the record already, as record ${id}, which is cancelled`
    )
  }
  const different = only.record === null ? [] : differences(resource, "create", row.text, only.record)
  return done(wasSent ? "created" : "adopted", id, different)
}

/**
 * The records of many creates, by a list where that needs far fewer requests than a lookup of each: of the records that
 * changed since the time (milliseconds since 1970), or of all records where it is null. Empty where it does not, or when the
 * list could not be read.
 */
export const listMany = (
  { company, table: { resource }, settings }: PushSession,
  rows: ReadonlyArray<OutboxRow>,
  changedSinceMs: number | null
): Effect.Effect<Listed> => {
  // A record that was sent before may exist twice, and one of the two may have changed before the time.
  const first = rows.filter(({ attempts }) => attempts === 0)
  if (first.length <= (settings.lookupsMax ?? lookupsMaxDefault)) return Effect.succeed(nothingListed)
  const since =
    changedSinceMs === null || !resource.modifiedSince
      ? null
      : new Date(changedSinceMs - Duration.toMillis(company.engine.overlap)).toISOString()
  const wanted = new Set(first.flatMap(({ externalid }) => externalid ?? []))
  const pagesMax = Math.ceil(first.length / lookupsPerPage)
  const list = listByExternalid(company.connector, resource, wanted, { since, pagesMax })
  return Effect.catchTag(list, "SourceError", () => Effect.succeed(nothingListed))
}

/** Looks a create up at the source, unless a list has shown its record. */
export const lookUp = Effect.fnUntraced(function* (
  { company, table: { resource } }: PushSession,
  row: OutboxRow,
  meaning: LookupMeaning,
  listed: Listed = nothingListed
): Effect.fn.Return<ResolvedRow, SourceError> {
  const externalid = row.externalid ?? ""
  const readings = listed.get(externalid) ?? (yield* findByExternalid(company.connector, resource, externalid))
  return { row, resolution: resolveExisting(resource, row, readings, meaning), readings }
})

/** Looks up creates that were never sent, and commits the resolutions. */
const lookUpNew = Effect.fnUntraced(function* (
  session: PushSession,
  rows: ReadonlyArray<OutboxRow>,
  spellings: ReadonlyMap<string, AssumedNew.OtherSpelling> = new Map()
): Effect.fn.Return<void, PushSessionError> {
  const lookUpOne = (row: OutboxRow, listed: Listed) => {
    const spelling = spellings.get(row.externalid ?? "")
    const absent: RowResolution =
      spelling === undefined
        ? { state: "pending", reason: null, isAbsent: true }
        : rejectedAsAlike(session.table.resource, spelling)
    return Effect.result(lookUp(session, row, { wasSent: false, absent }, listed))
  }
  let listed = nothingListed
  for (let start = 0; start < rows.length && !isStopped(session); start += lookupsPerCommit) {
    if (start % lookupsPerList === 0) {
      listed = yield* listMany(session, rows.slice(start, start + lookupsPerList), null)
    }
    const { concurrency } = session.settings
    const next = rows.slice(start, start + lookupsPerCommit)
    const results = yield* Effect.forEach(next, (row) => lookUpOne(row, listed), { concurrency })
    const found = results.flatMap((result) => (result._tag === "Success" ? [result.success] : []))
    yield* commitRows(session, { closed: null, rows: found })
    const failed = results.find((result) => result._tag === "Failure")
    if (failed !== undefined) stopForSource(session, failed.failure)
  }
})

/** Finds out for every create up to this row whether the source has its record. A failed scan stops the session. */
export const findExisting = Effect.fnUntraced(function* (
  session: PushSession,
  through: bigint
): Effect.fn.Return<void, PushSessionError, Database | SqlClient.SqlClient> {
  const { company, companyId, table, children, settings } = session
  const { lookupsMax = lookupsMaxDefault } = settings
  const unknownCreates = (limit: number) =>
    transaction(session, (run) =>
      rowsOf(run, AssumedNew.unknownStatement, [...parametersOf(scopeOf(session)), through, limit])
    )
  yield* transaction(session, AssumedNew.clearAssumedNew)
  const few = yield* unknownCreates(lookupsMax + 1)
  if (few.length <= lookupsMax) return yield* lookUpNew(session, few)
  yield* transaction(session, (run) =>
    rowsOf(run, AssumedNew.assumeStatement, [...parametersOf(scopeOf(session)), through])
  )
  const { batchRecordsMax, connector, engine } = company
  const { failure } = yield* syncResource({ companyId, connector, table, children }, { batchRecordsMax, engine })
  if (failure !== null) {
    yield* transaction(session, AssumedNew.clearAssumedNew)
    // The scan of another process may have begun before the creates were inserted.
    const isScannedByOther = failure.kind === "AlreadyRunning" || failure.kind === "FenceLost"
    if (!isScannedByOther) return stop(session, failure)
    return yield* lookUpNew(session, yield* unknownCreates(lookupsDuringScanMax))
  }
  const possible = yield* transaction(session, (run) =>
    AssumedNew.possibleDuplicates(run, scopeOf(session), table, companyId)
  )
  if (possible.length === 0) return
  const externalids = possible.flatMap(({ externalid }) => externalid ?? [])
  const spellings = yield* transaction(session, (run) => AssumedNew.otherSpellings(run, table, companyId, externalids))
  yield* lookUpNew(session, possible, spellings)
})
