/** The row of a write session's run in `tributary.runs`: its begin and its counts. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import type { OpenScan } from "./Checkpoint.ts"
import type { Landing, LandingResult } from "./Landing.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import type { NewRun, SessionContext } from "./SessionContext.ts"

/** A run as it was inserted, with what the warehouse has of the resource. */
export interface InsertedRun {
  readonly id: bigint
  /** Whether the resource has an open quarantine. */
  readonly quarantined: boolean
  readonly has_rows: boolean
  readonly has_history: boolean
  /** `server_version_num`. */
  readonly version: number
}

/** Begins a run. Earlier runs of the lane are abandoned: their process has lost its lock, and a later one a later fence. */
export const insertRun = ({ run, table, companyId, resource, lane, checkpoint }: ResourceLock, begun: NewRun) =>
  Effect.map(
    run<InsertedRun & { readonly [column: string]: unknown }>(
      "open a run of",
      `with abandoned as (
         update tributary.runs set status = 'abandoned', finished_at = tributary.now()
          where company_id = $1 and resource = $2 and lane = $3 and status = 'running' and fence < $5
       )
       insert into tributary.runs (company_id, resource, lane, kind, fence, resumed, started_at, cursor_from)
       values ($1, $2, $3, $4, $5, $6, tributary.now(), $7)
       returning id,
         exists (select 1 from tributary.quarantine where company_id = $1 and resource = $2 and resolved_at is null) as quarantined,
         exists (select 1 from ${table.current} where "_company_id" = $1) as has_rows,
         exists (select 1 from ${table.superseded} where "_company_id" = $1) as has_history,
         current_setting('server_version_num')::int as version`,
      [companyId, resource, lane, begun.kind, checkpoint.fence, begun.resumed ?? false, begun.cursorFrom ?? null]
    ),
    ({ rows }): InsertedRun => rows[0]!
  )

const countTypes = ["int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8"] as const

export const countStatement = Statement.make({
  name: "count the run of",
  params: [...countTypes, "text?", "int8", "int8", "int8"],
  text: `update tributary.runs set pages = pages + $2, bytes = bytes + $3, records = records + $4,
       inserted = inserted + $5, updated = updated + $6, unchanged = unchanged + $7, deleted = deleted + $8,
       quarantined = quarantined + $9, requests = requests + $10, retries = retries + $11,
       cursor_to = coalesce($12, cursor_to), late_rows = late_rows + $13, max_lateness_ms = greatest(max_lateness_ms, $14),
       stale_records = stale_records + $15
     where id = $1`
})

/** Adds the counts of a landing to its run. */
export const addRunCounts = (
  { lock, runId }: SessionContext,
  pages: Landing["pages"],
  landed: LandingResult,
  completed: OpenScan | null
) => {
  const requests = pages.reduce((sum, { page }) => sum + page.attempts, 0)
  return lock.runStatement(countStatement, [
    runId,
    pages.length,
    pages.reduce((sum, { page }) => sum + page.bytes, 0),
    landed.records,
    landed.inserted,
    landed.updated,
    landed.unchanged,
    landed.deleted,
    landed.quarantined,
    requests,
    requests - pages.length,
    completed?.syncedThrough ?? null,
    landed.late,
    Math.ceil(landed.lateMs),
    landed.staleVersions
  ])
}
