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

export const countStatement = Statement.named({
  name: "count the run of",
  isPrepared: true,
  params: {
    run: "int8",
    ...Statement.columns("int8", "pages", "bytes", "records", "inserted", "updated", "unchanged", "deleted"),
    ...Statement.columns("int8", "quarantined", "requests", "retries", "late", "lateMs", "stale"),
    cursorTo: "text?"
  },
  text: (at) => `update tributary.runs set pages = pages + ${at.pages}, bytes = bytes + ${at.bytes},
       records = records + ${at.records}, inserted = inserted + ${at.inserted}, updated = updated + ${at.updated},
       unchanged = unchanged + ${at.unchanged}, deleted = deleted + ${at.deleted},
       quarantined = quarantined + ${at.quarantined}, requests = requests + ${at.requests},
       retries = retries + ${at.retries}, cursor_to = coalesce(${at.cursorTo}, cursor_to),
       late_rows = late_rows + ${at.late}, max_lateness_ms = greatest(max_lateness_ms, ${at.lateMs}),
       stale_records = stale_records + ${at.stale}
     where id = ${at.run}`
})

/** Adds the counts of a landing to its run. */
export const addRunCounts = (
  { lock, runId }: SessionContext,
  pages: Landing["pages"],
  { late, lateMs, staleVersions, ...landed }: LandingResult,
  completed: OpenScan | null
) => {
  const { bytes, requests } = transferOf(pages)
  const values = countStatement.values({
    ...landed,
    run: runId,
    pages: pages.length,
    bytes,
    requests,
    retries: requests - pages.length,
    late,
    lateMs: Math.ceil(lateMs),
    stale: staleVersions,
    cursorTo: completed?.syncedThrough ?? null
  })
  return lock.runStatement(countStatement, values)
}

/**
 * Runs share a row only while the time between them is about the mean of the row, within this factor and tolerance:
 * evenly spread runs then describe when the source was read. After a time without runs, a new row begins. A schedule is two
 * thirds of the freshness target by default: a time in which the resource became late is longer than this factor.
 */
const intervalFactor = 1.5
const intervalSlack = "1 minute"

/**
 * Ends a run that found nothing: moves the checkpoint, and counts the run in the newest row of the lane if that counts
 * such runs, otherwise in a new one. Changes nothing without the fence, for another table, or after the clock was set.
 */
export const quietStatement = Statement.named({
  name: "end a run that found nothing of",
  isPrepared: true,
  params: {
    ...Statement.columns("int8", "company", "fence", "pages", "bytes", "requests"),
    ...Statement.columns("text", "resource", "table", "history", "identity"),
    ...Statement.columns("text?", "cursorFrom", "cursorTo"),
    ...Statement.columns("timestamptz", "startedAt", "readAt"),
    ...Statement.columns("float8", "clockFrom", "clockUntil")
  },
  columns: { id: "int8" },
  text: (at) => `with moved as (
       update tributary.checkpoints as c set cursor = coalesce(${at.cursorTo}, cursor),
              cursor_read_at = case when ${at.cursorTo} is null then cursor_read_at else ${at.readAt} end, updated_at = tributary.now()
        where company_id = ${at.company} and resource = ${at.resource} and lane = 'live' and fence = ${at.fence}
          and ${at.identity} = ${tableIdentitySql(at.table, at.history)}
          and extract(epoch from tributary.now()) * 1000 between ${at.clockFrom}::float8 and ${at.clockUntil}::float8
       returning 1), forgotten as (
       delete from tributary.scans where company_id = ${at.company} and resource = ${at.resource} and lane = 'live' and exists (select from moved)), earlier as (
       update tributary.runs r set quiet_runs = quiet_runs + 1, fence = ${at.fence}, started_at = ${at.startedAt}, finished_at = tributary.now(),
              cursor_from = ${at.cursorFrom}, cursor_to = coalesce(${at.cursorTo}, cursor_to), pages = pages + ${at.pages}, bytes = bytes + ${at.bytes},
              requests = requests + ${at.requests}, retries = retries + ${at.requests} - ${at.pages}
        where exists (select from moved) and quiet_runs > 0
          and (quiet_runs = 1 or ${at.startedAt}::timestamptz - started_at between
               (started_at - quiet_since) / greatest(1, quiet_runs - 1) / ${intervalFactor} - interval '${intervalSlack}' and
               (started_at - quiet_since) / greatest(1, quiet_runs - 1) * ${intervalFactor} + interval '${intervalSlack}')
          and id = (select id from tributary.runs
                     where company_id = ${at.company} and resource = ${at.resource} and lane = 'live' order by id desc limit 1)
       returning id), first as (
       insert into tributary.runs (company_id, resource, kind, status, fence, started_at, finished_at, cursor_from, cursor_to,
                                   pages, bytes, requests, retries, quiet_runs, quiet_since)
       select ${at.company}, ${at.resource}, 'incremental', 'done', ${at.fence}, ${at.startedAt}, tributary.now(), ${at.cursorFrom}, ${at.cursorTo}, ${at.pages}, ${at.bytes}, ${at.requests}, ${at.requests} - ${at.pages}, 1, ${at.startedAt}
         from moved where not exists (select from earlier)
       returning id)
     select id from earlier union all select id from first`
})

/** The error kind of a run whose process is gone. The process may still close the run itself later. */
export const processLost = "ProcessLost"

export const markStatement = Statement.make({
  name: "close runs whose process is gone",
  columns: { id: "int8" },
  text: `update tributary.runs r set status = 'abandoned', finished_at = tributary.now(), error_kind = '${processLost}',
            error = 'its process is gone: it was killed, or lost the warehouse',
            remedy = 'nothing is lost: the next run goes on from here'
      where r.status = 'running' and not ${LaneLock.isHeldSql("r")} returning id`
})
