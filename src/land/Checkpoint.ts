/**
 * How far a resource of a company has been read.
 *
 * Promise: a checkpoint changes only in the transaction that landed what it covers, and only by the run that holds its
 * fence. Its cursor is the source's text, byte for byte.
 */
import type { QueryResultRow } from "pg"

export type ScanKind = "full" | "incremental"

/** A scan that was begun and not completed: where it goes on. */
export interface OpenScan {
  readonly kind: ScanKind
  /** The cursor it reads from; null for a full scan. */
  readonly since: string | null
  /** The next page; null is its first page. */
  readonly token: string | null
  /** Pages landed so far. */
  readonly pages: number
  /** What the completed scan will store, from its first page. */
  readonly syncedThrough: string | null
  /** When its first page was read, in milliseconds since 1970. */
  readonly beganAt: number
}

export interface Checkpoint {
  readonly fence: bigint
  /** `synced_through` of the last completed scan; null when there is none. */
  readonly cursor: string | null
  /** When the last completed full scan began; null when there was none. */
  readonly fullScanAt: number | null
  readonly scan: OpenScan | null
}

/** A row of `tributary.checkpoints` as it is read. */
export interface CheckpointRow extends QueryResultRow {
  readonly fence: bigint
  readonly cursor: string | null
  readonly full_scan_at: Date | null
  readonly scan_kind: ScanKind | null
  readonly scan_since: string | null
  readonly scan_token: string | null
  readonly scan_pages: bigint | null
  readonly scan_synced_through: string | null
  readonly scan_began_at: Date | null
}

export const fromRow = (row: CheckpointRow): Checkpoint => ({
  fence: row.fence,
  cursor: row.cursor,
  fullScanAt: row.full_scan_at === null ? null : row.full_scan_at.getTime(),
  scan:
    row.scan_kind === null || row.scan_began_at === null
      ? null
      : {
          kind: row.scan_kind,
          since: row.scan_since,
          token: row.scan_token,
          pages: Number(row.scan_pages ?? 0n),
          syncedThrough: row.scan_synced_through,
          beganAt: row.scan_began_at.getTime()
        }
})
