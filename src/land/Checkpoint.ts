/**
 * The read position of one resource and lane of a company.
 *
 * Promise: a checkpoint changes only in the transaction that landed what it covers, and only by the run that holds its
 * fence. Its cursor is the source's text, byte for byte.
 */
import { as, columns, type RowOf, type Statement } from "../postgres/Statement.ts"
import { learnedOverlap } from "../warehouse/Overlap.ts"

/**
 * The writer of a resource. `live` follows the source; `backfill` reads a past range; `records` fetches single records;
 * `push` writes records and lands the answers. Each lane has its own checkpoint and fence. Only one lands at a time.
 */
export type Lane = "live" | "backfill" | "records" | "push"

export type ScanKind = "full" | "incremental"

/** The kind of a run: a scan, the children of parents that changed, single records by their numbers, or a push. */
export type RunKind = ScanKind | "children" | "fetch" | "push"

/** A scan in progress. */
export interface OpenScan {
  readonly kind: ScanKind
  /** The cursor that is sent, byte for byte; null for a scan of everything. */
  readonly since: string | null
  /** The latest change that a backfill lands, RFC 3339; null for all. */
  readonly until: string | null
  /** The next page; null is its first page. */
  readonly token: string | null
  /** Pages landed so far. */
  readonly pages: number
  /** The cursor that the completed scan will store: the earliest position of the pages landed so far. */
  readonly syncedThrough: string | null
  /** When its first page was read, in milliseconds since 1970 by the warehouse's clock. */
  readonly beganAt: number
}

export interface Checkpoint {
  readonly fence: bigint
  /** `synced_through` of the last completed scan; null when there is none. */
  readonly cursor: string | null
  /** When the last completed full scan began, by the warehouse's clock; null when there was none. */
  readonly fullScanAt: number | null
  /** The learned overlap: how far before the cursor scans must begin, because rows became visible late. */
  readonly overlapMs: number
  /** Why the next run must read every record; null when it need not. */
  readonly fullScanReason: string | null
  readonly scan: OpenScan | null
  /** The newest refetch request when the scan in progress began; null where it is not known. */
  readonly scanRefetchGeneration: bigint | null
  /** Whether rows may come from an earlier source: records read now win until a full scan has completed. */
  readonly adoptsSource: boolean
}

/** The columns of `tributary.checkpoints` as they are read, of the checkpoints as c. */
export const checkpointColumns =
  `fence, cursor, full_scan_at, ${learnedOverlap("c")} as learned_overlap_ms, ` +
  "full_scan_reason, scan_kind, scan_since, scan_until, scan_token, scan_pages, " +
  "scan_synced_through, scan_started_at, scan_refetch_generation, adopts_source"

export const checkpointColumnTypes = {
  fence: "int8",
  cursor: "text?",
  full_scan_at: "timestamptz?",
  learned_overlap_ms: "int8",
  full_scan_reason: "text?",
  scan_kind: as<ScanKind | null>("text?"),
  ...columns("text?", "scan_since", "scan_until", "scan_token"),
  scan_pages: "int8?",
  scan_synced_through: "text?",
  scan_started_at: "timestamptz?",
  scan_refetch_generation: "int8?",
  adopts_source: "bool"
} as const

export type CheckpointRow = RowOf<Statement<[], typeof checkpointColumnTypes>>

/** The assignments that forget the scan in progress. */
export const forgetScanSql =
  "scan_run_id = null, scan_kind = null, scan_since = null, scan_until = null, scan_token = null, scan_pages = null, " +
  "scan_synced_through = null, scan_started_at = null, scan_refetch_generation = null"

export const fromRow = (row: CheckpointRow): Checkpoint => ({
  fence: row.fence,
  cursor: row.cursor,
  fullScanAt: row.full_scan_at === null ? null : row.full_scan_at.getTime(),
  overlapMs: Number(row.learned_overlap_ms),
  fullScanReason: row.full_scan_reason,
  scanRefetchGeneration: row.scan_refetch_generation,
  adoptsSource: row.adopts_source,
  scan:
    row.scan_kind === null || row.scan_started_at === null
      ? null
      : {
          kind: row.scan_kind,
          since: row.scan_since,
          until: row.scan_until,
          token: row.scan_token,
          pages: Number(row.scan_pages ?? 0n),
          syncedThrough: row.scan_synced_through,
          beganAt: row.scan_started_at.getTime()
        }
})
