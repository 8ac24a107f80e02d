/**
 * The control plane's tables as Kysely knows them; `migrations/` makes them.
 */
import type { Generated } from "kysely"
import type { Lane, RunKind } from "../land/Checkpoint.ts"
import * as Query from "../postgres/Query.ts"

export interface RunsTable {
  readonly id: Generated<bigint>
  readonly company_id: bigint
  readonly resource: string
  readonly lane: Generated<Lane>
  readonly kind: RunKind
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
  readonly late: Generated<bigint>
  readonly late_ms: Generated<bigint>
  readonly went_back: Generated<bigint>
  readonly note: string | null
  readonly error_kind: string | null
  readonly error: string | null
  readonly remedy: string | null
}

export interface CheckpointsTable {
  readonly company_id: bigint
  readonly resource: string
  readonly lane: Generated<Lane>
  readonly fence: bigint
  readonly cursor: string | null
  readonly cursor_at: Date | null
  readonly full_scan_at: Date | null
  readonly overlap_ms: Generated<bigint>
  readonly late_ms: Generated<bigint>
  readonly full_wanted: string | null
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

export interface RereadsTable {
  readonly company_id: bigint
  readonly resource: string
  readonly field: string
  readonly value: string
  readonly asks: Generated<bigint>
  readonly asked_at: Date
}

export interface ControlTables {
  readonly "tributary.runs": RunsTable
  readonly "tributary.checkpoints": CheckpointsTable
  readonly "tributary.quarantine": QuarantineTable
  readonly "tributary.rereads": RereadsTable
}

export const control = Query.k<ControlTables>()
