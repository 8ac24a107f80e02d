/** The state of a resource's live lane that decides how events are answered. */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { parentsMax } from "../sync/SyncResource.ts"
import { learnedOverlap } from "../warehouse/Overlap.ts"
import { readToEnd } from "../warehouse/RunConditions.ts"

export interface SyncPosition {
  /** Whether an incremental scan is possible: there is a cursor, and no full scan is requested or running. */
  readonly hasCursor: boolean
  /** Whether the children of some parents can be read: a full scan has ended, and none is requested or running. */
  readonly canRefetchChildren: boolean
  /** Time since the last completed full scan began; null when there was none. */
  readonly fullMsAgo: number | null
  /** The learned overlap, from late rows. */
  readonly overlapMs: number
  /** The last completed scan, where it was incremental. */
  readonly lastScan: { readonly msAgo: number; readonly records: number } | null
  /** Pending refetch requests; not counted beyond one more than {@link parentsMax}. */
  readonly refetchRequests: number
}

const neverSynced: SyncPosition = {
  hasCursor: false,
  canRefetchChildren: false,
  fullMsAgo: null,
  overlapMs: 0,
  lastScan: null,
  refetchRequests: 0
}

export const positionStatement = Statement.make({
  name: "read the sync position",
  params: ["int8", "text", "int8"],
  columns: {
    hasCursor: "bool",
    canRefetchChildren: "bool",
    fullMsAgo: "float8?",
    overlapMs: "float8",
    scanRecords: "float8?",
    scanMsAgo: "float8?",
    refetchRequests: "int4"
  },
  text: `select c.cursor is not null and c.full_scan_reason is null and s.kind is distinct from 'full' as "hasCursor",
                c.full_scan_at is not null and c.full_scan_reason is null and s.kind is distinct from 'full' as "canRefetchChildren",
                (extract(epoch from tributary.now() - c.full_scan_at) * 1000)::float8 as "fullMsAgo",
                ${learnedOverlap("c")}::float8 as "overlapMs", r.records::float8 as "scanRecords",
                (extract(epoch from tributary.now() - r.started_at) * 1000)::float8 as "scanMsAgo",
                (select count(*)::int from (
                   select 1 from tributary.refetch_requests a where a.company_id = $1 and a.resource = $2 limit $3) pending) as "refetchRequests"
           from tributary.checkpoints c
           left join tributary.scans s using (company_id, resource, lane)
           left join lateral (
             select kind, started_at, records from tributary.runs
              where company_id = $1 and resource = $2 and ${readToEnd("runs")}
              order by id desc limit 1) r on r.kind = 'incremental'
          where c.company_id = $1 and c.resource = $2 and c.lane = 'live'`
})

export const syncPositionOf = (companyId: bigint, resource: string): Sql.Query<SyncPosition> =>
  Effect.map(Statement.run(positionStatement, [companyId, resource, parentsMax + 1]), ([row]) => {
    if (row === undefined) return neverSynced
    const { scanMsAgo: msAgo, scanRecords: records, ...position } = row
    return { ...position, lastScan: msAgo === null || records === null ? null : { msAgo, records } }
  })
