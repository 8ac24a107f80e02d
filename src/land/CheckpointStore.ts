/**
 * Writes to `tributary.checkpoints` that belong to a landing.
 *
 * Promise: every write here is part of the landing's transaction, under the fence.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { alteredSql } from "../warehouse/Altered.ts"
import { learnedOverlap } from "../warehouse/Overlap.ts"
import { inferredCount, inferredCountSql } from "../warehouse/WarehouseCatalogue.ts"
import type { OpenScan } from "./Checkpoint.ts"
import { tableIdentitySql } from "./CheckpointIdentity.ts"
import { type FenceLost, type LandingError, TableReplaced } from "./LandingError.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import type { SessionContext } from "./SessionContext.ts"
import { instantText } from "./WarehouseClock.ts"

/** Whether the lateness of these rows requires an overlap at least as long as the rest of the learned one. */
const renews = (at: { readonly lateMs: string; readonly overlapMaxMs: string }) =>
  `${at.lateMs} > 0 and least(2 * ${at.lateMs}, ${at.overlapMaxMs}) >= ${learnedOverlap("c")}`
/** Maximum learned overlap, however late a row was. */
const overlapMaxMs = 24 * 60 * 60 * 1000

/** Whether a full scan of the table whose past was lost has completed. */
const completesPast = (at: { readonly fullScanAt: string; readonly identity: string }) =>
  `past_from = 'infinity' and ${at.fullScanAt}::timestamptz is not null and table_identity = ${at.identity}`

export interface CheckpointChange {
  /** The scan that goes on; null forgets the scan in progress. */
  readonly scan: OpenScan | null
  /** The scan that was completed; null when there is none. */
  readonly completed: OpenScan | null
  readonly lateMs: number
  /** Why the next run must read every record; undefined leaves it as it is. */
  readonly fullScanReason?: string | null
}

export const saveStatement = Statement.named({
  name: "move the checkpoint of",
  isPrepared: true,
  params: {
    ...Statement.columns("int8", "company", "fence", "lateMs", "overlapMaxMs"),
    ...Statement.columns("text", "resource", "lane", "table", "history", "identity", "rules"),
    ...Statement.columns("text?", "cursor", "reason", "knownReason", "address"),
    ...Statement.columns("timestamptz?", "cursorReadAt", "fullScanAt"),
    ...Statement.columns("bool", "setsReason", "isScanOver"),
    inferred: "int4"
  },
  columns: { same_table: "bool", same_values: "bool" },
  text: (at) => `with forgotten as (
       delete from tributary.scans where company_id = ${at.company} and resource = ${at.resource} and lane = ${at.lane} and ${at.isScanOver})
     update tributary.checkpoints as c set
       cursor = coalesce(${at.cursor}, cursor), cursor_read_at = coalesce(${at.cursorReadAt}, cursor_read_at), full_scan_at = coalesce(${at.fullScanAt}, full_scan_at),
       max_lateness_ms = greatest(max_lateness_ms, ${at.lateMs}),
       learned_overlap_ms = case when ${renews(at)} then least(2 * ${at.lateMs}, ${at.overlapMaxMs}) else learned_overlap_ms end,
       overlap_learned_at = case when ${renews(at)} then tributary.now() else overlap_learned_at end,
       full_scan_reason = case when not ${at.setsReason} then full_scan_reason when ${at.reason}::text is not null then ${at.reason}
                          when full_scan_reason is not distinct from ${at.knownReason} then null else full_scan_reason end,
       adopts_source = adopts_source and ${at.fullScanAt}::timestamptz is null, updated_at = tributary.now(),
       past_from = case when ${completesPast(at)} then tributary.now() else past_from end,
       past_batch = case when ${completesPast(at)} then
         (select max(b.id) from tributary.change_batches b where b.company_id = ${at.company} and b.resource = ${at.resource}) else past_batch end,
       past_unfed_from = case when ${completesPast(at)} then null else past_unfed_from end
     where company_id = ${at.company} and resource = ${at.resource} and lane = ${at.lane} and fence = ${at.fence}
     returning ${at.identity} = ${tableIdentitySql(at.table, at.history)} as same_table,
       coalesce((select p.statement from tributary.privacy_rules p where p.resource = ${at.resource}), '') = ${at.rules}
       and ${inferredCountSql(at.resource)} = ${at.inferred}
       and not exists (select from tributary.companies s where s.company_id = ${at.company} and s.address is distinct from coalesce(${at.address}, s.address))
         as same_values`
})

export const saveCheckpoint = Effect.fnUntraced(function* (
  { lock, state }: Pick<SessionContext, "lock" | "state">,
  { scan, completed, lateMs, fullScanReason }: CheckpointChange
): Effect.fn.Return<void, DatabaseError | FenceLost | TableReplaced> {
  const { companyId, resource, lane } = lock
  const values = saveStatement.values({
    company: companyId,
    resource,
    lane,
    fence: lock.checkpoint.fence,
    cursor: completed?.syncedThrough ?? null,
    cursorReadAt: completed === null || completed.syncedThrough === null ? null : instantText(completed.beganAt),
    fullScanAt: completed?.kind === "full" && completed.until === null ? instantText(completed.beganAt) : null,
    lateMs: Math.ceil(lateMs),
    overlapMaxMs,
    setsReason: fullScanReason !== undefined,
    reason: fullScanReason ?? null,
    knownReason: state.knownFullScanReason,
    table: lock.table.current,
    history: lock.table.superseded,
    identity: lock.tableIdentity,
    rules: lock.table.resource.protection?.statement ?? "",
    address: lock.address,
    inferred: inferredCount(lock.table.resource),
    isScanOver: scan === null
  })
  const { rows, affected } = yield* lock.runStatement(saveStatement, values)
  yield* lock.checkFence(affected)
  // A run that was acquired while other rules were being applied, columns made, or another source accepted, read what was before.
  yield* lock.checkFence(rows[0]!.same_values ? 1 : 0)
  // A landing locks its table until the commit: the table is replaced before this statement, or after the run.
  if (!rows[0]!.same_table) return yield* new TableReplaced({ resource })
  if (fullScanReason !== undefined) state.knownFullScanReason = fullScanReason
})

export const saveScanStatement = Statement.make({
  name: "save the scan of",
  isPrepared: true,
  params: ["jsonb", "int8[]?"],
  text: `with scan as (
       insert into tributary.scans select * from jsonb_populate_record(null::tributary.scans, $1)
       on conflict (company_id, resource, lane) do update set run_id = excluded.run_id, kind = excluded.kind,
         since = excluded.since, until = excluded.until, token = excluded.token, pages = excluded.pages,
         synced_through = excluded.synced_through, started_at = excluded.started_at,
         refetch_generation = excluded.refetch_generation
       returning company_id, resource, lane, pages)
     insert into tributary.scan_ids (company_id, resource, lane, page, ids)
     select company_id, resource, lane, pages, $2::bigint[] from scan where $2::bigint[] is not null
     on conflict (company_id, resource, lane, page) do update set ids = excluded.ids`
})

/** Saves a scan in progress, with the ids that its last pages returned: a later run may complete it. */
export const saveScan = (
  { lock, refetchGeneration, runId }: Pick<SessionContext, "lock" | "refetchGeneration" | "runId">,
  scan: OpenScan,
  ids: ReadonlyArray<string> | null
) => {
  const row = {
    company_id: String(lock.companyId),
    resource: lock.resource,
    lane: lock.lane,
    run_id: String(runId),
    kind: scan.kind,
    since: scan.since,
    until: scan.until,
    token: scan.token,
    pages: scan.pages,
    synced_through: scan.syncedThrough,
    started_at: instantText(scan.beganAt),
    refetch_generation: String(refetchGeneration)
  }
  return lock.runStatement(saveScanStatement, [JSON.stringify(row), ids])
}

export const seedStatement = Statement.make({
  name: "let live syncing begin after the backfill of",
  params: ["int8", "text", "text?", "timestamptz", "text?"],
  text: `update tributary.checkpoints set cursor = $3, cursor_read_at = $4, full_scan_at = $4, full_scan_reason = $5
      where company_id = $1 and resource = $2 and lane = 'live' and cursor is null and full_scan_at is null
        and not exists (select from tributary.scans where company_id = $1 and resource = $2 and lane = 'live')`
})

/** A backfill has read everything: live syncing that has not begun can begin from here. */
export const seedLiveCheckpoint = (
  { runStatement, companyId, resource }: ResourceLock,
  scan: OpenScan,
  fullScanReason: string | null
) => runStatement(seedStatement, [companyId, resource, scan.syncedThrough, instantText(scan.beganAt), fullScanReason])

export const childScansStatement = Statement.make({
  name: "require full scans of the children of",
  params: ["int8", "text[]", "text"],
  text: `update tributary.checkpoints c set full_scan_reason = coalesce(full_scan_reason, $3)
      where company_id = $1 and resource = any($2::text[]) and lane = 'live'
        -- A scan in progress may have read children before the parent changed.
        and (full_scan_at is not null or tributary.open_scan(c.company_id, c.resource, c.lane) is not null)`
})

/** Requires a full scan of the children, which is cheaper than a refetch request for every parent. */
export const requireChildScans = ({ lock: { companyId, resource, runStatement }, options }: SessionContext) => {
  const children = options.children.map((child) => child.resource)
  return runStatement(childScansStatement, [companyId, children, `${resource} was loaded`])
}

export const resetOverlapStatement = Statement.make({
  name: "reset the overlap of",
  params: ["int8", "text"],
  text: `update tributary.checkpoints set learned_overlap_ms = 0, max_lateness_ms = 0
      where company_id = $1 and resource = $2 and lane = 'live'`
})

export const renumberStatement = Statement.make({
  name: "renumber later the rows of",
  params: ["int8", "text"],
  text: `update tributary.checkpoints set ${alteredSql("rows were replaced by older ones")}
        where company_id = $1 and resource = $2 and lane = 'live'`
})

/**
 * The history has versions that the row has not reached: a person put older rows back into the table. The next run gives
 * them later versions and reads every record. Fails with the reason.
 */
export const renumberNextTime = (lock: ResourceLock): Effect.Effect<never, LandingError> =>
  Effect.andThen(
    lock.transaction(lock.runStatement(renumberStatement, [lock.companyId, lock.resource])),
    Effect.fail(new TableReplaced({ resource: lock.resource }))
  )
