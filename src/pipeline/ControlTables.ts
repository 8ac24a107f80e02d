/**
 * The control plane's tables as Kysely knows them; `migrations/` makes them.
 */
import type { Generated } from "kysely"
import * as Query from "../postgres/Query.ts"

export interface RunsTable {
  readonly id: Generated<bigint>
  readonly company_id: bigint
  readonly resource: string
  readonly kind: "full" | "incremental"
  readonly status: "running" | "done" | "quarantined" | "failed" | "abandoned"
  readonly fence: bigint
  readonly resumed: boolean
  readonly began_at: Date
  readonly ended_at: Date | null
  readonly cursor_from: string | null
  readonly cursor_to: string | null
  readonly pages: bigint
  readonly requests: bigint
  readonly retries: bigint
  readonly bytes: bigint
  readonly records: bigint
  readonly inserted: bigint
  readonly updated: bigint
  readonly unchanged: bigint
  readonly deleted: bigint
  readonly quarantined: bigint
  readonly error_kind: string | null
  readonly error: string | null
  readonly remedy: string | null
}

export interface CheckpointsTable {
  readonly company_id: bigint
  readonly resource: string
  readonly fence: bigint
  readonly cursor: string | null
  readonly full_scan_at: Date | null
  readonly scan_kind: "full" | "incremental" | null
  readonly scan_pages: bigint | null
  readonly scan_token: string | null
  readonly scan_began_at: Date | null
  readonly updated_at: Date
}

export interface QuarantineTable {
  readonly id: Generated<bigint>
  readonly company_id: bigint
  readonly resource: string
  readonly record_id: string | null
  readonly field: string | null
  readonly reason: string
  readonly bytes: string
  readonly run_id: bigint
  readonly source: string
  readonly first_seen_at: Date
  readonly last_seen_at: Date
  readonly times: bigint
  readonly resolved_at: Date | null
}

export interface ControlTables {
  readonly "tributary.runs": RunsTable
  readonly "tributary.checkpoints": CheckpointsTable
  readonly "tributary.quarantine": QuarantineTable
}

export const control = Query.k<ControlTables>()
