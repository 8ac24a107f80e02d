/**
 * The history of a company's resources: checkpoints, row counts, page sizes and the rate of change.
 *
 * Promise: it is read in one snapshot, in a read-only transaction.
 */
import * as Effect from "effect/Effect"
import type { Resource } from "../catalogue/Resource.ts"
import { type Checkpoint, checkpointColumns, checkpointColumnTypes, fromRow, type Lane } from "../land/Checkpoint.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { readNowMs } from "../postgres/Now.ts"
import { transaction } from "../postgres/Transaction.ts"
import { type Datasets, tableOf } from "../warehouse/Table.ts"

/** The rate of change and the page size come from the runs of this period. */
const recentRuns = 20
const recentDays = 7
/** The minimum period of a rate: few runs in a short time show little. */
const rateSpanHoursMin = 1

/** The history of a resource, as its runs have recorded it. */
export interface ResourceHistory {
  /** Live rows, as the runs counted them; null when no run has. */
  readonly rows: number | null
  /** The largest average of records per page of one run; null when there was none. */
  readonly perPage: number | null
  /** Whether `perPage` is the source's page size (from a scan of several pages), not the size of a short list. */
  readonly isPageSize: boolean
  /** Changes per hour; null before the first incremental run. */
  readonly changesPerHour: number | null
  /** Pending refetch requests. */
  readonly pendingRefetches: number
}

export interface SyncHistory {
  readonly nowMs: number
  readonly live: ReadonlyMap<string, Checkpoint>
  readonly backfill: ReadonlyMap<string, Checkpoint>
  /** The time at which the live lane was last read, in milliseconds since 1970. */
  readonly readAt: ReadonlyMap<string, number>
  readonly resources: ReadonlyMap<string, ResourceHistory>
  /** The page size of this source, from all resources. */
  readonly pageSize: number | null
}

export const noHistory: ResourceHistory = {
  rows: null,
  perPage: null,
  isPageSize: false,
  changesPerHour: null,
  pendingRefetches: 0
}
export const noCheckpoint: Checkpoint = {
  fence: 0n,
  cursor: null,
  fullScanAt: null,
  overlapMs: 0,
  fullScanReason: null,
  scanRefetchGeneration: null,
  scan: null,
  adoptsSource: false
}

export const checkpointsStatement = Statement.make({
  name: "read checkpoints of a company",
  params: ["int8"],
  columns: { lane: Statement.as<Lane>("text"), resource: "text", read_at: "timestamptz?", ...checkpointColumnTypes },
  text: `select lane, resource, greatest(cursor_read_at, full_scan_at) as read_at, ${checkpointColumns}
           from tributary.checkpoints c where company_id = $1`
})

export const runsStatement = Statement.make({
  name: "sum up runs of a company",
  params: ["int8"],
  columns: {
    resource: "text",
    ...Statement.columns("float8?", "rows", "per_page", "pages", "changes", "hours", "requests")
  },
  text: `with mine as (
      select r.*, row_number() over (partition by r.resource order by r.id desc) as back,
             r.started_at >= tributary.now() - make_interval(days => ${recentDays}) as is_recent
        from tributary.runs r where r.company_id = $1), counted as (
      select resource, (sum(inserted) - sum(deleted))::float8 as rows from mine group by resource), paged as (
      select distinct on (resource) resource, ceil(records::float8 / pages) as per_page, pages::float8 as pages
        from mine where back <= ${recentRuns} and pages > 0 and kind in ('full', 'incremental')
       order by resource, ceil(records::float8 / pages) desc, pages desc), followed as (
      select resource,
             sum(inserted + updated + deleted) filter (where kind in ('incremental', 'children'))::float8 as changes,
             (extract(epoch from max(started_at) filter (where kind in ('incremental', 'children')) - min(started_at))
               / 3600)::float8 as hours
        from mine where lane = 'live' and status in ('done', 'quarantined') and is_recent group by resource), pending as (
      select resource, count(*)::float8 as requests from tributary.refetch_requests where company_id = $1 group by resource)
    select resource, counted.rows, paged.per_page, paged.pages, followed.changes, followed.hours, pending.requests
      from counted full join paged using (resource) full join followed using (resource) full join pending using (resource)`
})

/** The rows of an imported table were counted by no run; Postgres has an estimate of them. */
export const estimatesStatement = Statement.make({
  name: "read estimates of rows",
  params: ["name"],
  columns: { name: "name", rows: "float8" },
  text: `select c.relname as name, c.reltuples::float8 as rows from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $1 and c.relkind = 'r' and c.reltuples > 0`
})

export const readHistory = Effect.fnUntraced(function* (
  companyId: bigint,
  resources: ReadonlyArray<Resource>,
  datasets: Datasets
) {
  const { checkpoints, rows, estimated, nowMs } = yield* transaction(
    Effect.gen(function* () {
      yield* Sql.rows("set transaction isolation level repeatable read, read only")
      const nowMs = yield* readNowMs
      const checkpoints = yield* Statement.run(checkpointsStatement, [companyId])
      const rows = yield* Statement.run(runsStatement, [companyId])
      const estimated = yield* Statement.run(estimatesStatement, [datasets.current])
      return { nowMs, checkpoints, rows, estimated }
    })
  )
  const lane = (which: Lane) =>
    new Map(checkpoints.filter((row) => row.lane === which).map((row) => [row.resource, fromRow(row)]))
  const estimates = new Map(estimated.map((row) => [row.name, Math.round(row.rows)]))
  const histories = new Map(
    rows.map((row): readonly [string, ResourceHistory] => [
      row.resource,
      {
        rows: row.rows,
        perPage: row.per_page,
        isPageSize: (row.pages ?? 0) > 1,
        changesPerHour:
          row.changes === null || row.hours === null ? null : row.changes / Math.max(rateSpanHoursMin, row.hours),
        pendingRefetches: row.requests ?? 0
      }
    ])
  )
  for (const resource of resources) {
    const one = histories.get(resource.path) ?? noHistory
    const estimate = estimates.get(tableOf(resource, datasets).name)
    if ((one.rows ?? 0) <= 0 && estimate !== undefined) histories.set(resource.path, { ...one, rows: estimate })
  }
  const sizes = [...histories.values()].flatMap(({ perPage }) => (perPage === null ? [] : [perPage]))
  return {
    nowMs,
    live: lane("live"),
    backfill: lane("backfill"),
    readAt: new Map(
      checkpoints.flatMap(({ lane, resource, read_at: at }) =>
        lane === "live" && at !== null ? [[resource, at.getTime()] as const] : []
      )
    ),
    resources: histories,
    pageSize: sizes.length === 0 ? null : Math.max(...sizes)
  } satisfies SyncHistory
})
