/**
 * Soft deletion of rows that the source no longer has.
 *
 * Promise: absence means deleted only when a full scan is complete, all its pages are landed, and the mass-delete guard
 * does not stop it. Rows that the scan did not ask for, by the resource's `since`, are not missing. Rows that do not pass
 * its filters are missing, and the guard does not count them. Before a row becomes a tombstone, its version is in the history.
 */
import * as Effect from "effect/Effect"
import { isInstant } from "../connector/Instant.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import type { OpenScan } from "./Checkpoint.ts"
import type { DeletedRecord, Landing, MassDeleteBlocked } from "./Landing.ts"
import { isExpected, planForAll } from "./MergeSql.ts"
import { metUnreadable } from "./Quarantine.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import type { SessionContext } from "./SessionContext.ts"
import { instantText } from "./WarehouseClock.ts"

/** Up to this number of missing rows the mass-delete guard does not apply. */
const unguardedDeletionsMax = 20

/** Number of the company's rows that are not tombstones. */
export const countLive = ({ run, table, companyId }: ResourceLock): Effect.Effect<number, DatabaseError> =>
  run<{ live: number }>(
    "count",
    `select count(*)::int as live from ${table.current} where "_company_id" = $1 and "_deleted_at" is null`,
    [companyId]
  ).pipe(Effect.map(({ rows }) => rows[0]!.live))

/** Rows that a full scan should return. */
export interface ExpectedRows {
  /** Their numbers; of more rows than the mass-delete guard leaves unprotected, one more than those. */
  readonly ids: ReadonlyArray<string>
  /** Whether they are so few that the mass-delete guard does not protect them. */
  readonly areUnguarded: boolean
}

/** The rows that a full scan should return; null where there are none. */
export const expectedRows = ({
  run,
  table,
  companyId
}: ResourceLock): Effect.Effect<ExpectedRows | null, DatabaseError> =>
  run<{ id: string }>(
    "look for live rows of",
    `select t."id"::text as id from ${table.current} t ` +
      `where t."_company_id" = $1 and t."_deleted_at" is null and ${isExpected(table, "$2")} ` +
      `order by t."id" limit ${unguardedDeletionsMax + 1}`,
    [companyId, table.resource.since]
  ).pipe(
    Effect.map(({ rows }) =>
      rows.length === 0 ? null : { ids: rows.map(({ id }) => id), areUnguarded: rows.length <= unguardedDeletionsMax }
    )
  )

/**
 * Number of live rows that the full scan should return, and of those among them that it did not return, at any time of
 * their last read.
 */
const countUnseen = ({ run, companyId, resource, lane, table }: ResourceLock, sql: SessionContext["sql"]) =>
  run<{ live: number; unseen: number }>("count missing rows of", sql.countUnseen, [
    companyId,
    resource,
    lane,
    table.resource.since
  ]).pipe(Effect.map(({ rows }) => rows[0]!))

export interface SoftDeleteResult {
  readonly deleted: number
  readonly massDeleteBlocked: MassDeleteBlocked | null
  /** Missing rows that are kept. */
  readonly kept: number
}

/** The ids that pages of a scan returned. */
export const scannedIds = (pages: Landing["pages"]): ReadonlyArray<string> =>
  pages.flatMap(({ page }) => [
    ...page.records.map(({ id }) => id),
    ...page.rejected.flatMap(({ id }) => (id === null || !/^-?\d{1,18}$/.test(id) ? [] : [id]))
  ])

/** Turns the rows that were found missing into tombstones. */
const tombstone = Effect.fnUntraced(function* (
  { lock, sql, options, runId }: SessionContext,
  deletedAt: string,
  source: string
) {
  const { run, companyId } = lock
  yield* run("keep deleted versions of", sql.archiveMissing, [companyId, deletedAt])
  yield* run("soft-delete rows of", sql.tombstone, [companyId, deletedAt, runId, source, options.origin])
})

export const cursorsStatement = Statement.make({
  name: "look at the cursors of",
  params: ["int8", "text"],
  columns: { cursor: "text?" },
  text: "select cursor from tributary.checkpoints where company_id = $1 and resource = $2"
})

/**
 * Keeps rows that the scan missed and that may exist; returns their number. A row that a push or a fetch landed while the
 * scan ran is kept: its record may be newer than the page it belongs to. A row that may have become visible after the
 * position of the scan is kept when another scan landed it meanwhile, or when that position is behind the cursor of a lane:
 * then the answer was outdated.
 */
const keepNewer = Effect.fnUntraced(function* ({ lock, sql, options }: SessionContext, scan: OpenScan) {
  const { run, companyId, resource, lane } = lock
  const position = isInstant(scan.syncedThrough) ? scan.syncedThrough : null
  const overlapMs = options.run.overlapMs ?? 0
  const { affected: concurrent } = yield* run("keep concurrent rows of", sql.keepConcurrent, [
    companyId,
    instantText(scan.beganAt),
    lane,
    position,
    overlapMs
  ])
  if (sql.keepUnreached === null || position === null) return concurrent
  const { rows: lanes } = yield* lock.runStatement(cursorsStatement, [companyId, resource])
  const { affected: unreached } = yield* run("keep rows that the scan does not show of", sql.keepUnreached, [
    companyId,
    position,
    lanes.flatMap(({ cursor }) => (isInstant(cursor) ? [cursor] : [])),
    overlapMs
  ])
  return concurrent + unreached
})

export const otherLanesStatement = Statement.make({
  name: "look for other lanes of",
  params: ["int8", "text", "text"],
  columns: { fence: "int8" },
  text: `select fence from tributary.checkpoints where company_id = $1 and resource = $2 and lane <> $3 and fence > 0 limit 1`
})

/**
 * Soft-deletes rows that a completed full scan did not return. The mass-delete guard stops this where the scan did not
 * return more than `deletionsShareMax` of the live rows, however few of them remain to be deleted.
 */
export const softDeleteMissing = Effect.fnUntraced(function* (
  context: SessionContext,
  scan: OpenScan
): Effect.fn.Return<SoftDeleteResult, DatabaseError> {
  const { lock, sql, options, runId, state } = context
  const { run, companyId, resource, lane } = lock
  const nothing = { deleted: 0, massDeleteBlocked: null, kept: 0 }
  if (state.isFirstLoad) {
    // Older rows can only come from another lane.
    const { rows: others } = yield* lock.runStatement(otherLanesStatement, [companyId, resource, lane])
    if (others.length === 0) return nothing
  }
  const began = instantText(scan.beganAt)
  // A record without a readable id may be any of the missing ones.
  if (yield* metUnreadable(context, scan)) return nothing
  yield* run("prepare the deletion of", `${planForAll}; ${sql.createMissing}; ${sql.clearMissing}`)
  const { affected: absent } = yield* run("find missing rows of", sql.findMissing, [
    companyId,
    resource,
    began,
    lane,
    lock.table.resource.since
  ])
  if (absent === 0) return nothing
  const kept = yield* keepNewer(context, scan)
  const gone = absent - kept
  if (gone === 0) return { ...nothing, kept }
  // Rows that are kept, or that another read has landed since, are missing in the answer too: it is as unlikely.
  const { live, unseen } = yield* countUnseen(lock, sql)
  if (!context.acceptsDeletions && unseen > unguardedDeletionsMax && unseen > live * options.deletionsShareMax) {
    return { deleted: 0, massDeleteBlocked: { live, gone: unseen }, kept }
  }
  yield* tombstone(context, began, `absent from the full scan of run ${runId}`)
  return { deleted: gone, massDeleteBlocked: null, kept }
})

/** Soft-deletes single records that the source does not have; returns the number of rows. */
export const softDelete = Effect.fnUntraced(function* (context: SessionContext, absent: ReadonlyArray<DeletedRecord>) {
  const { lock, sql } = context
  let deleted = 0
  const answers = Map.groupBy(absent, ({ beganAt, source }) => `${beganAt} ${source}`)
  for (const records of answers.values()) {
    const { beganAt, source } = records[0]!
    yield* lock.run("prepare the deletion of", `${sql.createMissing}; ${sql.clearMissing}`)
    const at = instantText(lock.timeOf(beganAt))
    const { affected } = yield* lock.run("find missing rows of", sql.findMissingAmong, [
      lock.companyId,
      records.map(({ id }) => id),
      at,
      records.map(({ changedAt }) => changedAt)
    ])
    if (affected > 0) yield* tombstone(context, at, source)
    deleted += affected
  }
  return deleted
})
