/** The state of a resource's live lane, as far as it decides how the events of the resource are answered. */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { parentsMax } from "../sync/SyncResource.ts"
import { learnedOverlap } from "../warehouse/Overlap.ts"
import { readToEnd } from "../warehouse/RunConditions.ts"
import { inboxQuery } from "./InboxQuery.ts"

export interface SyncPosition {
  /** Whether an incremental scan is possible: there is a cursor, and no full scan is requested or running. */
  readonly hasCursor: boolean
  /** Whether the children of some parents can be read: a full scan has ended, and none is requested or running. */
  readonly canRefetchChildren: boolean
  /** Time since the last completed full scan began; null when there was none. */
  readonly fullMsAgo: number | null
  /** Overlap learned from late rows, beyond the configured one. */
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

export const syncPositionOf = (
  companyId: bigint,
  resource: string
): Effect.Effect<SyncPosition, DatabaseError, SqlClient.SqlClient> =>
  inboxQuery<{
    has_cursor: boolean
    can_refetch_children: boolean
    full_ms_ago: number | null
    learned_overlap_ms: number
    scan_ms_ago: number | null
    scan_records: number | null
    refetch_requests: number
  }>(
    "read the sync position for",
    `select c.cursor is not null and c.full_scan_reason is null and c.scan_kind is distinct from 'full' as has_cursor,
            c.full_scan_at is not null and c.full_scan_reason is null and c.scan_kind is distinct from 'full' as can_refetch_children,
            (extract(epoch from tributary.now() - c.full_scan_at) * 1000)::float8 as full_ms_ago,
            ${learnedOverlap("c")}::float8 as learned_overlap_ms, r.records::float8 as scan_records,
            (extract(epoch from tributary.now() - r.started_at) * 1000)::float8 as scan_ms_ago,
            (select count(*)::int from (
               select 1 from tributary.refetch_requests a where a.company_id = $1 and a.resource = $2 limit $3) pending) as refetch_requests
       from tributary.checkpoints c
       left join lateral (
         select kind, started_at, records from tributary.runs
          where company_id = $1 and resource = $2 and ${readToEnd("runs")}
          order by id desc limit 1) r on r.kind = 'incremental'
      where c.company_id = $1 and c.resource = $2 and c.lane = 'live'`,
    [companyId, resource, parentsMax + 1]
  ).pipe(
    Effect.map(([row]) =>
      row === undefined
        ? neverSynced
        : {
            hasCursor: row.has_cursor,
            canRefetchChildren: row.can_refetch_children,
            fullMsAgo: row.full_ms_ago,
            overlapMs: row.learned_overlap_ms,
            lastScan:
              row.scan_ms_ago === null || row.scan_records === null
                ? null
                : { msAgo: row.scan_ms_ago, records: row.scan_records },
            refetchRequests: row.refetch_requests
          }
    )
  )
