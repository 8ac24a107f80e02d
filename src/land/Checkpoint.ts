/**
 * The read position of one resource and lane of a company.
 *
 * Promise: a checkpoint changes only in the transaction that landed what it covers, and only by the run that holds its
 * fence. Its cursor is the source's text, byte for byte.
 */
import { as, type RowOf, type Statement } from "../postgres/Statement.ts"
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
  /** The newest refetch request when the scan in progress began; null without one. */
  readonly scanRefetchGeneration: bigint | null
  /** Whether rows may come from an earlier source: records read now win until a full scan has completed. */
  readonly adoptsSource: boolean
}

/** The columns of `tributary.checkpoints` as they are read, of the checkpoints as c. */
export const checkpointColumns =
  `fence, cursor, full_scan_at, ${learnedOverlap("c")} as learned_overlap_ms, ` +
  "full_scan_reason, adopts_source, tributary.open_scan(c.company_id, c.resource, c.lane) as scan"

/** A scan in progress as it is read. */
interface StoredScan {
  readonly open: OpenScan
  readonly refetchGeneration: string
}

export const checkpointColumnTypes = {
  fence: "int8",
  cursor: "text?",
  full_scan_at: "timestamptz?",
  learned_overlap_ms: "int8",
  full_scan_reason: "text?",
  adopts_source: "bool",
  scan: as<StoredScan | null>("json?")
} as const

export type CheckpointRow = RowOf<Statement<[], typeof checkpointColumnTypes>>

export const fromRow = (row: CheckpointRow): Checkpoint => ({
  fence: row.fence,
  cursor: row.cursor,
  fullScanAt: row.full_scan_at === null ? null : row.full_scan_at.getTime(),
  overlapMs: Number(row.learned_overlap_ms),
  fullScanReason: row.full_scan_reason,
  scanRefetchGeneration: row.scan === null ? null : BigInt(row.scan.refetchGeneration),
  adoptsSource: row.adopts_source,
  scan: row.scan?.open ?? null
})
