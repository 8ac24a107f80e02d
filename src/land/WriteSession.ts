/**
 * The landings of one run into an acquired resource.
 *
 * Promise: {@link WriteSession.land} writes records, quarantine, the run's counts and the checkpoint in one transaction
 * under the fence, or nothing. Landing the same pages again changes nothing. A record that Postgres rejects goes to
 * quarantine and does not stop the others. A full scan that the mass-delete guard stops moves no cursor.
 */
import * as Effect from "effect/Effect"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as BatchLoader from "./BatchLoader.ts"
import type { Checkpoint } from "./Checkpoint.ts"
import { renumberNextTime, saveCheckpoint, saveScan } from "./CheckpointStore.ts"
import { type CompletedScan, completeFullScan } from "./CompleteScan.ts"
import * as FieldFindings from "./FieldFindings.ts"
import type { Landing, LandingResult } from "./Landing.ts"
import type { LandingError } from "./LandingError.ts"
import { mergeSql } from "./MergeSql.ts"
import { quarantine, rejectedByPostgres, release } from "./Quarantine.ts"
import * as Refetch from "./Refetch.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import { addRunCounts, insertRun } from "./RunRow.ts"
import * as SchemaDrift from "./SchemaDrift.ts"
import type { OpenOptions, SessionContext } from "./SessionContext.ts"
import { scannedIds, softDelete } from "./SoftDelete.ts"
import { instantText } from "./WarehouseClock.ts"

export interface WriteSession {
  /** The checkpoint as it was when the resource was acquired; it has this run's fence. */
  readonly checkpoint: Checkpoint
  /** The warehouse's time of an instant on the process' monotonic clock, both in milliseconds. */
  readonly timeOf: (monotonicMs: number) => number
  readonly land: (landing: Landing) => Effect.Effect<LandingResult, LandingError>
  /** Runs statements in one transaction under the fence, beside any landing. */
  readonly transaction: <A, E>(
    body: (run: ResourceLock["run"]) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | LandingError>
  /** Forgets the scan in progress. With a reason, the next scan reads everything. */
  readonly restart: (fullScanReason?: string) => Effect.Effect<void, LandingError>
}

/** A session whose run has a row. */
export interface OpenSession extends WriteSession {
  readonly runId: bigint
}

/** A session, and its parts that have a memory between landings. */
interface Session extends SessionContext {
  readonly loader: BatchLoader.BatchLoaderOptions
  readonly drift: SchemaDrift.SchemaDrift
  readonly fields: FieldFindings.FieldFindings
}

const stagedRecords = function* ({ lock }: Session, pages: Landing["pages"]): Generator<BatchLoader.StagedRecord> {
  for (const { page, observedAt = lock.timeOf(page.beganAt) } of pages) {
    const at = instantText(observedAt)
    for (const record of page.records) yield { record, observedAt: at, source: page.source }
  }
}

/** How late the latest of the loaded rows was, in milliseconds. */
const lateMsOf = (
  { options }: Session,
  { late, earliestMs }: Pick<BatchLoader.LoadResult, "late" | "earliestMs">
): number => {
  const { lateness = null } = options.run
  return late > 0 && earliestMs !== null && lateness !== null ? Math.max(0, lateness.cursorMs - earliestMs) : 0
}

/** Loads the records; those that cannot be loaded go to quarantine, the others leave it. */
const loadRecords = Effect.fnUntraced(function* (session: Session, landing: Landing) {
  const { pages, scan, complete } = landing
  const loaded = yield* BatchLoader.load(session.loader, stagedRecords(session, pages))
  const rejectedIds = new Set(loaded.rejected.map(({ staged }) => staged.record.id))
  const rejected = [
    ...pages.flatMap(({ page }) => page.rejected.map((one) => ({ rejected: one, source: page.source }))),
    ...loaded.rejected.map(({ staged, error }) => ({
      rejected: rejectedByPostgres(session.lock.table, staged.record, error),
      source: staged.source
    }))
  ]
  const records = pages.flatMap(({ page }) => page.records)
  const drift = yield* session.drift.note(
    records.map(({ extra }) => extra),
    complete || scan === null
  )
  const absent = [
    ...(landing.absent ?? []),
    ...pages.flatMap(({ page: { unselected = [], beganAt, source } }) =>
      unselected.map((one) => ({ ...one, beganAt, source: `${source}, outside the filters of the resource` }))
    )
  ]
  const deleted = yield* softDelete(session, absent)
  const landedIds = records.map(({ id }) => id).filter((id) => !rejectedIds.has(id))
  yield* release(session, [...landedIds, ...absent.map(({ id }) => id)])
  yield* quarantine(session, rejected)
  const unchanged = records.length - loaded.inserted - loaded.updated - rejectedIds.size
  return { ...loaded, records: records.length, unchanged, rejected, drift, deleted }
})

/** The statements of one landing, in its transaction. */
const writeLanding = Effect.fnUntraced(function* (
  session: Session,
  landing: Landing
): Effect.fn.Return<LandingResult, LandingError> {
  const { lock, runId, fields, state } = session
  const { pages, scan, complete } = landing
  const loaded = yield* loadRecords(session, landing)
  const evaluatesAbsence = scan !== null && scan.kind === "full" && scan.until === null
  if (scan !== null && (evaluatesAbsence || !complete))
    yield* saveScan(session, scan, evaluatesAbsence && pages.length > 0 ? scannedIds(pages) : null)
  const completed: CompletedScan | null = complete && evaluatesAbsence ? yield* completeFullScan(session, scan) : null
  if (evaluatesAbsence) fields.meet(pages, loaded.updated)
  const findings = completed !== null && state.isWholeScan && lock.lane === "live" ? yield* fields.complete : []
  yield* Refetch.deleteFulfilled(lock, landing.fulfilled ?? [])
  const landed: LandingResult = {
    records: loaded.records,
    inserted: loaded.inserted,
    updated: loaded.updated,
    unchanged: loaded.unchanged,
    deleted: (completed?.deleted ?? 0) + loaded.deleted,
    quarantined: loaded.rejected.length,
    late: loaded.late,
    lateMs: lateMsOf(session, loaded),
    staleVersions: loaded.staleVersions,
    drift:
      [SchemaDrift.describe(lock.resource, loaded.drift), ...findings].filter((one) => one !== null).join("; ") || null,
    massDeleteBlocked: completed?.massDeleteBlocked ?? null
  }
  yield* Effect.annotateCurrentSpan({
    "tributary.records": landed.records,
    "tributary.inserted": landed.inserted,
    "tributary.updated": landed.updated,
    "tributary.quarantined": landed.quarantined
  })
  if (landed.staleVersions > 0) state.staleReason = "the source showed older versions than the warehouse holds"
  // A scan that the guard stopped does not count as completed.
  const completedScan = complete && landed.massDeleteBlocked === null ? scan : null
  yield* addRunCounts(session, pages, landed, completedScan)
  if (landing.inTransaction !== undefined) {
    const quarantined = new Set(loaded.rejected.flatMap(({ rejected }) => (rejected.id === null ? [] : [rejected.id])))
    yield* landing.inTransaction({ ...lock, runId, quarantined })
  }
  // A source that showed older versions is read in full until a person has decided.
  const fullScanReason = state.staleReason ?? completed?.fullScanReason
  yield* saveCheckpoint(session, {
    scan: complete ? null : scan,
    completed: completedScan,
    lateMs: landed.lateMs,
    ...(fullScanReason === undefined ? {} : { fullScanReason })
  })
  return landed
})

/** Whether the history has versions that the row has not reached. */
const isOlderRow =
  ({ table }: ResourceLock) =>
  (error: LandingError): boolean =>
    error instanceof DatabaseError &&
    error.code === "23505" &&
    error.message.includes(table.supersededName.slice(0, 50))

const land = (session: Session, landing: Landing) =>
  session.lock.transaction(writeLanding(session, landing)).pipe(
    Effect.catchIf(isOlderRow(session.lock), () => renumberNextTime(session.lock)),
    Effect.withSpan(
      "land",
      { attributes: { "tributary.resource": session.lock.resource } },
      { captureStackTrace: false }
    )
  )

const restart = (session: Session, fullScanReason?: string) =>
  session.lock.transaction(
    Effect.gen(function* () {
      yield* saveCheckpoint(session, {
        scan: null,
        completed: null,
        lateMs: 0,
        ...(fullScanReason === undefined ? {} : { fullScanReason })
      })
      // The source may have deleted a landed record meanwhile.
      session.state.isFirstLoad = false
      session.fields.restart()
      session.state.isWholeScan = true
    })
  )

/** Begins a run of the acquired resource. */
export const open = Effect.fn("WriteSession.open")(function* (
  lock: ResourceLock,
  options: OpenOptions
): Effect.fn.Return<OpenSession, DatabaseError> {
  const { table, companyId, checkpoint, live, run, runStatement } = lock
  // A person accepted a new source: until a full scan completes, it overwrites and deletes the rows of the earlier one.
  const { adoptsSource } = live
  const sql = mergeSql(table, adoptsSource ? "source" : options.authority)
  const inserted = yield* insertRun(lock, options.run)
  const { resumed = false, lateness = null } = options.run
  const runId = inserted.id
  const wasNeverLoaded = live.cursor === null && live.fullScanAt === null
  const session: Session = {
    lock,
    sql,
    options,
    runId,
    acceptsDeletions: options.acceptDeletions || adoptsSource,
    wasNeverLoaded,
    refetchGeneration: resumed ? (checkpoint.scanRefetchGeneration ?? 0n) : lock.refetchGeneration,
    state: {
      hasQuarantine: inserted.quarantined,
      isFirstLoad: !inserted.has_rows && !resumed,
      isWholeScan: !resumed,
      knownFullScanReason: checkpoint.fullScanReason,
      staleReason: null
    },
    loader: {
      lock,
      sql,
      serverVersion: inserted.version,
      runId,
      origin: options.origin,
      // When the table was lost but its history was not, versions continue from the history.
      hasRows: inserted.has_rows || inserted.has_history || !wasNeverLoaded,
      lateBefore: lateness === null ? null : instantText(lateness.cursorMs - lateness.toleratedMs),
      isFullScan: options.run.kind === "full",
      children: options.children
    },
    drift: SchemaDrift.make({ runStatement, table, companyId, runId }),
    fields: FieldFindings.make(lock, runId)
  }
  return {
    checkpoint,
    runId,
    timeOf: lock.timeOf,
    land: (landing) => land(session, landing),
    transaction: (body) => lock.transaction(Effect.suspend(() => body(run))),
    restart: (fullScanReason) => restart(session, fullScanReason)
  }
})
