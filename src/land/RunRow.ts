/** The row of a write session's run in `tributary.runs`: its begin, its counts and its end. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import * as LaneLock from "../warehouse/LaneLock.ts"
import type { OpenScan } from "./Checkpoint.ts"
import { tableIdentitySql } from "./CheckpointIdentity.ts"
import { type Landing, type LandingResult, transferOf } from "./Landing.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import type { NewRun, SessionContext } from "./SessionContext.ts"
import { instantText } from "./WarehouseClock.ts"

/** An inserted run, and the state of the resource in the warehouse. */
export interface InsertedRun {
  readonly id: bigint
  /** Whether the resource has an open quarantine. */
  readonly quarantined: boolean
  readonly has_rows: boolean
  readonly has_history: boolean
  /** `server_version_num`. */
  readonly version: number
}

/**
 * Begins a run, as of the time at which the resource was acquired. Open runs of the lane with an older fence are marked
 * abandoned: their process has lost the lock.
 */
export const insertRun = (
  { run, table, companyId, resource, lane, checkpoint, acquiredAt }: ResourceLock,
  begun: NewRun
) =>
  Effect.map(
    run<InsertedRun & { readonly [column: string]: unknown }>(
      "open a run of",
      `with abandoned as (
         update tributary.runs set status = 'abandoned', finished_at = tributary.now()
          where company_id = $1 and resource = $2 and lane = $3 and status = 'running' and fence < $5
       )
       insert into tributary.runs (company_id, resource, lane, kind, fence, resumed, started_at, cursor_from)
       values ($1, $2, $3, $4, $5, $6, $8, $7)
       returning id,
         exists (select 1 from tributary.quarantine where company_id = $1 and resource = $2 and resolved_at is null) as quarantined,
         exists (select 1 from ${table.current} where "_company_id" = $1) as has_rows,
         exists (select 1 from ${table.superseded} where "_company_id" = $1) as has_history,
         current_setting('server_version_num')::int as version`,
      [
        companyId,
        resource,
        lane,
        begun.kind,
        checkpoint.fence,
        begun.resumed ?? false,
        begun.cursorFrom ?? null,
        instantText(acquiredAt)
      ]
    ),
    ({ rows }): InsertedRun => rows[0]!
  )

const countTypes = ["int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8"] as const

export const countStatement = Statement.make({
  name: "count the run of",
  isPrepared: true,
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
  const { bytes, requests } = transferOf(pages)
  return lock.runStatement(countStatement, [
    runId,
    pages.length,
    bytes,
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

/**
 * Runs share a row only while the time between them is about the mean of the row, within this factor and tolerance:
 * evenly spread runs then describe when the source was read. After a time without runs, a new row begins. A schedule is two
 * thirds of the freshness target by default: a time in which the resource became late is longer than this factor.
 */
const intervalFactor = 1.5
const intervalSlack = "1 minute"

const ledgerTypes = ["int8", "text", "int8", "timestamptz", "text?", "text?", "int8", "int8", "int8"] as const

/**
 * Ends a run that found nothing: moves the checkpoint, and counts the run in the newest row of the lane if that counts
 * such runs, otherwise in a new one. Changes nothing without the fence, for another table, or after the clock was set.
 */
export const quietStatement = Statement.make({
  name: "end a run that found nothing of",
  isPrepared: true,
  params: [...ledgerTypes, "timestamptz", "text", "text", "float8", "float8", "text"],
  columns: { id: "int8" },
  text: `with moved as (
       update tributary.checkpoints as c set cursor = coalesce($6, cursor),
              cursor_read_at = case when $6 is null then cursor_read_at else $10 end, updated_at = tributary.now()
        where company_id = $1 and resource = $2 and lane = 'live' and fence = $3
          and $12 = ${tableIdentitySql("$11", "$15")}
          and extract(epoch from tributary.now()) * 1000 between $13::float8 and $14::float8
       returning 1), forgotten as (
       delete from tributary.scans where company_id = $1 and resource = $2 and lane = 'live' and exists (select from moved)), earlier as (
       update tributary.runs r set quiet_runs = quiet_runs + 1, fence = $3, started_at = $4, finished_at = tributary.now(),
              cursor_from = $5, cursor_to = coalesce($6, cursor_to), pages = pages + $7, bytes = bytes + $8,
              requests = requests + $9, retries = retries + $9 - $7
        where exists (select from moved) and quiet_runs > 0
          and (quiet_runs = 1 or $4::timestamptz - started_at between
               (started_at - quiet_since) / greatest(1, quiet_runs - 1) / ${intervalFactor} - interval '${intervalSlack}' and
               (started_at - quiet_since) / greatest(1, quiet_runs - 1) * ${intervalFactor} + interval '${intervalSlack}')
          and id = (select id from tributary.runs
                     where company_id = $1 and resource = $2 and lane = 'live' order by id desc limit 1)
       returning id), first as (
       insert into tributary.runs (company_id, resource, kind, status, fence, started_at, finished_at, cursor_from, cursor_to,
                                   pages, bytes, requests, retries, quiet_runs, quiet_since)
       select $1, $2, 'incremental', 'done', $3, $4, tributary.now(), $5, $6, $7, $8, $9, $9 - $7, 1, $4
         from moved where not exists (select from earlier)
       returning id)
     select id from earlier union all select id from first`
})

/** The error kind of a run whose process is gone. The process may still close the run itself later. */
const processLost = "ProcessLost"

/** The run of this owner: a restored control plane gives ids again, so that another run may have the number. */
const isOwn = "id = $1 and company_id = $2 and resource = $3 and lane = $4"

export const closeStatement = Statement.make({
  name: "close a run",
  params: ["int8", "int8", "text", "text", "text", "text?", "text?", "text?", "text?", "int8", "json?"],
  text: `update tributary.runs set status = $5, finished_at = tributary.now(), error_kind = $6, error = $7, note = $8,
           remedy = $9, requests = requests + $10, retries = retries + greatest(0, $10 - 1),
           phases = $11
     where ${isOwn} and (status = 'running' or error_kind = '${processLost}')`
})

export const abandonStatement = Statement.make({
  name: "close an interrupted run",
  params: ["int8", "int8", "text", "text", "json?"],
  text: `update tributary.runs set status = 'abandoned', finished_at = tributary.now(), error_kind = 'Interrupted',
             error = 'stopped: the process was asked to end', remedy = 'nothing is lost: the next run goes on from here', phases = $5
       where ${isOwn} and status = 'running'`
})

export const markStatement = Statement.make({
  name: "close runs whose process is gone",
  columns: { id: "int8" },
  text: `update tributary.runs r set status = 'abandoned', finished_at = tributary.now(), error_kind = '${processLost}',
            error = 'its process is gone: it was killed, or lost the warehouse',
            remedy = 'nothing is lost: the next run goes on from here'
      where r.status = 'running' and not ${LaneLock.isHeldSql("r")} returning id`
})
