/**
 * The end of a full scan: absence, refetch requests that it fulfils, and whether the next run must read everything again.
 *
 * Promise: a full scan that the mass-delete guard stops moves no cursor. The next run is a full scan again.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { OpenScan } from "./Checkpoint.ts"
import { requireChildScans, seedLiveCheckpoint } from "./CheckpointStore.ts"
import { describeBlocked } from "./Landing.ts"
import { releaseUnmet } from "./Quarantine.ts"
import { upToStatement } from "./Refetch.ts"
import type { SessionContext } from "./SessionContext.ts"
import { softDeleteMissing, type SoftDeleteResult } from "./SoftDelete.ts"
import { plural } from "../text/Count.ts"

export interface CompletedScan extends SoftDeleteResult {
  /** Why the next run must read every record; null when it need not. */
  readonly fullScanReason: string | null
}

/** Why the next run must be a full scan as well; null when it need not. */
const nextFullScanReason = Effect.fnUntraced(function* (
  { lock, sql, options, state }: SessionContext,
  { kept }: SoftDeleteResult
): Effect.fn.Return<string | null, DatabaseError> {
  // A reason that arose during the scan applies to the next one too.
  const reason = options.run.resumed === true ? lock.checkpoint.fullScanReason : state.staleReason
  if (reason !== null) return reason
  if (kept > 0) return `${plural(kept, "row is", "rows are")} newer than the last full scan, which did not return them`
  const { modifiedSince, since } = lock.table.resource
  // A scan with a first day returns no record without a time of change.
  if (sql.countUnstamped === null || !modifiedSince || since !== null) return null
  const { rows } = yield* lock.run<{ rows: number }>("look for unstamped rows of", sql.countUnstamped, [lock.companyId])
  const unstamped = rows[0]!.rows
  return unstamped === 0
    ? null
    : `${plural(unstamped, "record carries", "records carry")} no time of change, so that no cursor shows their changes`
})

export const completeFullScan = Effect.fnUntraced(function* (
  context: SessionContext,
  scan: OpenScan
): Effect.fn.Return<CompletedScan, DatabaseError> {
  const { lock, options } = context
  const result = yield* softDeleteMissing(context, scan)
  if (result.massDeleteBlocked === null) yield* releaseUnmet(context, scan)
  if (result.massDeleteBlocked !== null) return { ...result, fullScanReason: describeBlocked(result.massDeleteBlocked) }
  yield* lock.runStatement(upToStatement, [lock.companyId, lock.resource, context.refetchGeneration])
  // A first load requests no children for its rows.
  if (options.children.length > 0 && context.wasNeverLoaded) yield* requireChildScans(context)
  const fullScanReason = yield* nextFullScanReason(context, result)
  if (lock.lane === "backfill") yield* seedLiveCheckpoint(lock, scan, fullScanReason)
  return { ...result, fullScanReason }
})
