/* oxlint-disable max-lines -- generated */
/**
 * The tables of the control plane, for Kysely. Generated from the migrated database by `npm run docs`.
 */
import type { Generated } from "kysely"
import * as Query from "./Query.ts"

export interface ControlTables {
  readonly "tributary.access_tokens": {
    readonly name: string
    readonly digest: Uint8Array
    readonly created_at: Generated<Date>
    readonly created_by: string
    readonly used_at: Date | null
  }
  readonly "tributary.activity": {
    readonly resolution: "minute" | "hour" | "day"
    readonly at: Date
    readonly company: string | null
    readonly resource: string | null
    readonly runs: Generated<bigint>
    readonly quarantined_runs: Generated<bigint>
    readonly failed_runs: Generated<bigint>
    readonly abandoned_runs: Generated<bigint>
    readonly inserted: Generated<bigint>
    readonly updated: Generated<bigint>
    readonly deleted: Generated<bigint>
    readonly quarantined: Generated<bigint>
    readonly requests: Generated<bigint>
    readonly retries: Generated<bigint>
    readonly run_ms: Generated<bigint>
    readonly run_ms_max: Generated<bigint>
    readonly age_ms_max: bigint | null
    readonly lateness_max: number | null
    readonly budget_share_max: number | null
    readonly paused_ms: Generated<bigint>
    readonly gaps: Generated<bigint>
    readonly process_starts: Generated<bigint>
    readonly rows: bigint | null
  }
  readonly "tributary.activity_watermarks": {
    readonly resolution: "minute" | "hour" | "day"
    readonly through: Date
  }
  readonly "tributary.alert_conditions": {
    readonly id: Generated<bigint>
    readonly kind: string
    readonly company: string
    readonly subject: string
    readonly level: number
    readonly since: Date
    readonly observed_at: Date
    readonly started_at: Date | null
    readonly absent_at: Date | null
    readonly what: string
    readonly remedy: string
  }
  readonly "tributary.alert_messages": {
    readonly id: Generated<bigint>
    readonly condition: bigint
    readonly route: string
    readonly endpoint: Generated<string>
    readonly event: "start" | "worse" | "end"
    readonly kind: string
    readonly company: string
    readonly subject: string
    readonly level: number
    readonly severity: "warning" | "critical"
    readonly since: Date
    readonly at: Date
    readonly what: string
    readonly remedy: string
    readonly due_at: Date
    readonly batch: bigint | null
  }
  readonly "tributary.alert_silences": {
    readonly id: Generated<bigint>
    readonly kind: string | null
    readonly only_company: string | null
    readonly subject: string | null
    readonly until: Date
    readonly reason: string | null
    readonly created_by: string
    readonly created_at: Generated<Date>
  }
  readonly "tributary.bucket_owners": {
    readonly bucket: number
    readonly process_id: string
    readonly since: Generated<Date>
  }
  readonly "tributary.budget_usage": {
    readonly fingerprint: string
    readonly at: Date
    readonly used: number
    readonly allowed: number | null
    readonly configured: number | null
    readonly rate_limited_count: bigint
    readonly is_paused: boolean
  }
  readonly "tributary.budgets": {
    readonly fingerprint: string
    readonly version: Generated<bigint>
    readonly requests_per_minute: number | null
    readonly used: Generated<ReadonlyArray<number>>
    readonly retry_after_at: Date | null
    readonly rate_limited_count: Generated<bigint>
    readonly last_429_at: Date | null
    readonly rule: Generated<unknown>
    readonly updated_at: Date
  }
  readonly "tributary.change_attempts": {
    readonly endpoint: string
    readonly slot: number
    readonly number: bigint
    readonly message_id: string
    readonly first_position: bigint
    readonly changes: number
    readonly result: "delivered" | "failed" | "dead" | "obsolete"
    readonly status: number | null
    readonly error: string | null
    readonly duration_ms: number
    readonly at: Generated<Date>
  }
  readonly "tributary.change_batches": {
    readonly id: Generated<bigint>
    readonly company_id: bigint
    readonly resource: string
    readonly history: string
    readonly kind: Generated<"versions" | "truncate" | "reload">
    readonly ids: ReadonlyArray<bigint>
    readonly versions: ReadonlyArray<bigint> | null
    readonly changes: number
    readonly began: Date
    readonly landed_at: Generated<Date>
    readonly last_position: bigint | null
    readonly token: number | null
  }
  readonly "tributary.change_endpoints": {
    readonly name: string
    readonly kind: Generated<"changes" | "alerts">
    readonly url: string
    readonly origin: "file" | "command"
    readonly only_company: string | null
    readonly resources: ReadonlyArray<string> | null
    readonly operations: ReadonlyArray<string> | null
    readonly fields: ReadonlyArray<string> | null
    readonly batch_max: Generated<number>
    readonly allow_private: Generated<boolean>
    readonly retry_hours: Generated<number>
    readonly secret: Uint8Array | null
    readonly previous_secret: Uint8Array | null
    readonly previous_until: Date | null
    readonly state: Generated<"active" | "paused" | "dead">
    readonly state_since: Generated<Date>
    readonly reason: string | null
    readonly last_position: bigint
    readonly last_token: string | null
    readonly process_id: string | null
    readonly leased_until: Date | null
    readonly fence: Generated<bigint>
    readonly failing_since: Date | null
    readonly failures: Generated<number>
    readonly next_attempt_at: Date | null
    readonly succeeded_at: Date | null
    readonly attempts: Generated<bigint>
    readonly delivered: Generated<bigint>
    readonly created_at: Generated<Date>
  }
  readonly "tributary.change_feed": {
    readonly is_single: Generated<boolean>
    readonly last_position: Generated<bigint>
    readonly removed_through: Generated<bigint>
    readonly history_from: Date | null
  }
  readonly "tributary.change_retries": {
    readonly endpoint: string
    readonly position: bigint
    readonly company_number: bigint
    readonly resource: string
    readonly record_id: bigint | null
    readonly state: Generated<"waiting" | "sending" | "dead">
    readonly attempts: Generated<number>
    readonly failed_at: Date | null
    readonly next_attempt_at: Date
    readonly error: string | null
    readonly alert_message: Generated<bigint | null>
  }
  readonly "tributary.changes": {
    readonly position: bigint | null
    readonly company_id: bigint | null
    readonly resource: string | null
    readonly id: bigint | null
    readonly version: bigint | null
    readonly kind: string | null
    readonly landed_at: Date | null
  }
  readonly "tributary.checkpoints": {
    readonly company_id: bigint
    readonly resource: string
    readonly fence: Generated<bigint>
    readonly cursor: string | null
    readonly full_scan_at: Date | null
    readonly updated_at: Date
    readonly lane: Generated<"live" | "backfill" | "records" | "push">
    readonly cursor_read_at: Date | null
    readonly learned_overlap_ms: Generated<bigint>
    readonly max_lateness_ms: Generated<bigint>
    readonly full_scan_reason: string | null
    readonly table_identity: string | null
    readonly shape: string | null
    readonly adopts_source: Generated<boolean>
    readonly overlap_learned_at: Generated<Date | null>
    readonly past_from: Date | null
    readonly past_batch: bigint | null
    readonly past_until: Date | null
    readonly past_unfed_from: Date | null
    readonly past_reason: string | null
  }
  readonly "tributary.companies": {
    readonly company_id: bigint
    readonly company: string
    readonly source_number: bigint | null
    readonly address: string | null
    readonly address_since: Date | null
    readonly installation: string | null
    readonly budget: string | null
    readonly seen_at: Generated<Date>
  }
  readonly "tributary.company_settings": {
    readonly company: string
    readonly installation: string | null
    readonly url: string
    readonly company_id: bigint | null
    readonly warehouse_number: bigint | null
    readonly resources: ReadonlyArray<string> | null
    readonly webhook_events: ReadonlyArray<string> | null
    readonly token: string | null
    readonly sealed_token: Uint8Array | null
    readonly paused_at: Date | null
    readonly paused_by: string | null
    readonly created_at: Generated<Date>
    readonly updated_at: Generated<Date>
    readonly move_id: string | null
    readonly move_state: "leaving" | "arriving" | null
    readonly exclude_resources: ReadonlyArray<string> | null
  }
  readonly "tributary.company_states": {
    readonly company: string
    readonly counted_at: Generated<Date>
    readonly late_at: Date | null
    readonly state: "failing" | "late" | "attention" | "blocked" | "paused" | "fresh"
    readonly severity: number
    readonly resources: number
    readonly failing: number
    readonly late: number
    readonly never_synced: number
    readonly blocked: number
    readonly paused: number
    readonly fresh: number
    readonly lateness: number
    readonly quarantined: bigint
    readonly dead_letters: bigint
    readonly gaps: bigint
    readonly rejected: bigint
    readonly subscriptions_down: bigint
    readonly worst_resource: string | null
    readonly error: string | null
    readonly remedy: string | null
  }
  readonly "tributary.comparisons": {
    readonly installation: string
    readonly company: string
    readonly compared_at: Generated<Date>
    readonly differences: ReadonlyArray<string>
    readonly before: ReadonlyArray<string> | null
    readonly recommended: unknown
  }
  readonly "tributary.dashboard_sessions": {
    readonly id: Uint8Array
    readonly generation: string
    readonly began_at: Generated<Date>
    readonly ends_at: Date
  }
  readonly "tributary.delivery_gaps": {
    readonly id: Generated<bigint>
    readonly company: string
    readonly subscription_id: string | null
    readonly resource: string
    readonly cause: "event_lost" | "subscription_inactive" | "unobserved"
    readonly detail: string
    readonly began_at: Date | null
    readonly ended_at: Date | null
    readonly detected_at: Generated<Date>
    readonly events: Generated<ReadonlyArray<string>>
    readonly attempts: Generated<number>
    readonly last_attempt_at: Date | null
    readonly next_attempt_at: Generated<Date>
    readonly last_error: string | null
    readonly closed_at: Date | null
    readonly closed_by: string | null
    readonly requires_full_scan: Generated<boolean>
  }
  readonly "tributary.evaluations": {
    readonly kind: "invariants" | "alerts"
    readonly position: bigint | null
    readonly rules: string | null
    readonly evaluated_at: Date | null
  }
  readonly "tributary.event_checks": {
    readonly company: string
    readonly checked_at: Date
    readonly delay: unknown
    readonly age_max: unknown
    readonly expires_at: Date
    readonly resources: ReadonlyArray<string>
    readonly withdrawn_at: Date | null
  }
  readonly "tributary.event_proofs": {
    readonly company: string | null
    readonly company_id: bigint | null
    readonly resource: string | null
    readonly proven_at: Date | null
    readonly age_max: unknown
  }
  readonly "tributary.field_findings": {
    readonly company_id: bigint
    readonly resource: string
    readonly field: string
    readonly kind: "volatile" | "absent"
    readonly runs: Generated<number>
    readonly rows: bigint
    readonly first_run_id: bigint
    readonly last_run_id: bigint
    readonly found_at: Date
  }
  readonly "tributary.freshness": {
    readonly company: string | null
    readonly company_id: bigint | null
    readonly resource: string | null
    readonly run_id: bigint | null
    readonly fresh_at: Date | null
    readonly age: unknown
    readonly target: unknown
    readonly is_late: boolean | null
    readonly proven_at: Date | null
  }
  readonly "tributary.inbox": {
    readonly id: Generated<bigint>
    readonly company: string
    readonly event_id: string
    readonly event_type: string
    readonly resource: string | null
    readonly record_id: string | null
    readonly record_modified_at: string | null
    readonly occurred_at: Date | null
    readonly sent_at: Date
    readonly received_at: Generated<Date>
    readonly body: Uint8Array
    readonly state: Generated<"pending" | "done" | "dead_letter" | "skipped">
    readonly attempts: Generated<number>
    readonly next_attempt_at: Generated<Date>
    readonly resolved_at: Date | null
    readonly run_id: bigint | null
    readonly resolution: string | null
    readonly last_error: string | null
  }
  readonly "tributary.inbox_status": {
    readonly company: string | null
    readonly resource: string | null
    readonly state: string | null
    readonly events: bigint | null
    readonly oldest_at: Date | null
  }
  readonly "tributary.installation_outages": {
    readonly installation: string | null
    readonly companies: ReadonlyArray<string> | null
    readonly failures: number | null
    readonly error: string | null
    readonly remedy: string | null
  }
  readonly "tributary.installation_settings": {
    readonly installation: string
    readonly settings: Generated<unknown>
    readonly created_at: Generated<Date>
    readonly updated_at: Generated<Date>
  }
  readonly "tributary.invariant_states": {
    readonly invariant: string
    readonly company_id: bigint
    readonly state: Generated<"waiting" | "holds" | "unconfirmed" | "violated" | "failed">
    readonly error: string | null
    readonly violations: Generated<bigint>
    readonly open_violations: Generated<bigint>
    readonly evaluated_at: Date | null
    readonly due_at: Date | null
    readonly marks: Generated<bigint>
    readonly evaluated_marks: Generated<bigint>
    readonly evaluations: Generated<bigint>
  }
  readonly "tributary.invariants": {
    readonly name: string
    readonly severity: "warning" | "critical"
    readonly statement: string
    readonly comment: string
    readonly resources: ReadonlyArray<string>
    readonly query: string
  }
  readonly "tributary.migrations": {
    readonly id: number
    readonly name: string
    readonly checksum: string
    readonly applied_at: Generated<Date>
  }
  readonly "tributary.other_problems": {
    readonly kind: string | null
    readonly company: string | null
    readonly subject: string | null
    readonly severity: string | null
    readonly level: number | null
    readonly size: number | null
    readonly since: Date | null
    readonly what: string | null
    readonly remedy: string | null
    readonly command: string | null
    readonly is_consequence: boolean | null
  }
  readonly "tributary.outbox": {
    readonly id: Generated<bigint>
    readonly company: Generated<string>
    readonly resource: string
    readonly operation: Generated<"create" | "update" | "cancel">
    readonly externalid: string | null
    readonly record_id: string | null
    readonly record: Generated<unknown>
    readonly push_id: bigint | null
    readonly line: bigint | null
    readonly state: Generated<"pending" | "in_flight" | "done" | "rejected">
    readonly outcome: "created" | "adopted" | "updated" | "cancelled" | "unchanged" | null
    readonly validated: Generated<boolean>
    readonly absence_confirmed_at: Date | null
    readonly request_id: bigint | null
    readonly request_index: number | null
    readonly attempts: Generated<number>
    readonly conflict_retries: Generated<number>
    readonly expected_values: unknown
    readonly code: string | null
    readonly field: string | null
    readonly reason: string | null
    readonly problems: unknown
    readonly differences: unknown
    readonly created_at: Generated<Date>
    readonly resolved_at: Date | null
  }
  readonly "tributary.outbox_status": {
    readonly company: string | null
    readonly resource: string | null
    readonly is_inserted: boolean | null
    readonly state: string | null
    readonly outcome: string | null
    readonly records: bigint | null
    readonly oldest_at: Date | null
  }
  readonly "tributary.page_sizes": {
    readonly source: string
    readonly resource: string
    readonly accepted: number | null
    readonly refused: number | null
    readonly tried_at: Date
  }
  readonly "tributary.privacy_rules": {
    readonly resource: string
    readonly statement: string
    readonly fields: string
    readonly rewritten_rows: Generated<bigint>
    readonly applied_at: Generated<Date>
    readonly replaced: Generated<ReadonlyArray<string>>
    readonly revision: Generated<bigint>
    readonly tables: string | null
  }
  readonly "tributary.problems": {
    readonly kind: string | null
    readonly company: string | null
    readonly subject: string | null
    readonly severity: string | null
    readonly level: number | null
    readonly size: number | null
    readonly since: Date | null
    readonly what: string | null
    readonly remedy: string | null
    readonly command: string | null
    readonly is_consequence: boolean | null
  }
  readonly "tributary.processes": {
    readonly process_id: string
    readonly companies: ReadonlyArray<string>
    readonly started_at: Generated<Date>
    readonly heartbeat_at: Generated<Date>
    readonly stopped_at: Date | null
    readonly host: string | null
    readonly pid: number | null
    readonly company_revision: bigint | null
    readonly observed: Generated<unknown>
  }
  readonly "tributary.processes_alive": {
    readonly process_id: string | null
    readonly companies: ReadonlyArray<string> | null
    readonly started_at: Date | null
    readonly heartbeat_at: Date | null
    readonly host: string | null
    readonly pid: number | null
    readonly company_revision: bigint | null
    readonly observed: unknown
  }
  readonly "tributary.push_requests": {
    readonly id: Generated<bigint>
    readonly company: string
    readonly resource: string
    readonly operation: "create" | "batch" | "update" | "cancel"
    readonly record_id: string | null
    readonly if_match: string | null
    readonly idempotency_key: string
    readonly idempotency_key_scope: string | null
    readonly body: string | null
    readonly record_count: number
    readonly state: Generated<"open" | "completed" | "rejected" | "abandoned">
    readonly created_at: Generated<Date>
    readonly failed_attempts: Generated<number>
    readonly status: number | null
    readonly reason: string | null
    readonly source: string | null
    readonly closed_at: Date | null
  }
  readonly "tributary.pushes": {
    readonly id: Generated<bigint>
    readonly company: string
    readonly resource: string
    readonly operation: "create" | "update" | "cancel"
    readonly source: string
    readonly content_hash: string
    readonly record_count: bigint
    readonly duplicates: Generated<bigint>
    readonly created_at: Generated<Date>
    readonly finished_at: Date | null
  }
  readonly "tributary.quarantine": {
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
    readonly times: Generated<bigint>
    readonly resolved_at: Date | null
  }
  readonly "tributary.reader_marks": {
    readonly mark: Generated<string>
    readonly at: Generated<Date>
  }
  readonly "tributary.receipts": {
    readonly id: Generated<bigint>
    readonly action: "detach" | "erase" | "move" | "forget"
    readonly company: string
    readonly company_id: bigint | null
    readonly resource: string | null
    readonly record_id: bigint | null
    readonly performed_by: string
    readonly performed_at: Generated<Date>
    readonly row_counts: unknown
    readonly move_id: string | null
  }
  readonly "tributary.refetch_requests": {
    readonly company_id: bigint
    readonly resource: string
    readonly field: string
    readonly value: string
    readonly generation: Generated<bigint>
    readonly requested_at: Date
  }
  readonly "tributary.resource_problems": {
    readonly kind: string | null
    readonly company: string | null
    readonly subject: string | null
    readonly severity: string | null
    readonly level: number | null
    readonly size: number | null
    readonly since: Date | null
    readonly what: string | null
    readonly remedy: string | null
    readonly command: string | null
    readonly is_consequence: boolean | null
  }
  readonly "tributary.resource_states": {
    readonly company: string | null
    readonly company_id: bigint | null
    readonly resource: string | null
    readonly state: string | null
    readonly is_failing: boolean | null
    readonly is_late: boolean | null
    readonly is_blocked: boolean | null
    readonly is_paused: boolean | null
    readonly is_running: boolean | null
    readonly fresh_at: Date | null
    readonly is_proven: boolean | null
    readonly age: unknown
    readonly target: unknown
    readonly lateness: number | null
    readonly quarantined: bigint | null
    readonly last_run_id: bigint | null
    readonly last_run_status: string | null
    readonly last_run_kind: string | null
    readonly last_run_started_at: Date | null
    readonly last_run_finished_at: Date | null
    readonly failure_kind: string | null
    readonly failed_at: Date | null
    readonly error: string | null
    readonly remedy: string | null
    readonly failures: number | null
    readonly succeeded_at: Date | null
    readonly next_run_at: Date | null
  }
  readonly "tributary.row_counts": {
    readonly company_id: bigint
    readonly resource: string
    readonly rows: bigint
    readonly deleted: bigint
    readonly is_exact: Generated<boolean>
    readonly run_id: Generated<bigint>
    readonly counted_at: Generated<Date>
  }
  readonly "tributary.runs": {
    readonly id: Generated<bigint>
    readonly company_id: bigint
    readonly resource: string
    readonly kind: "full" | "incremental" | "children" | "fetch" | "push"
    readonly status: Generated<"running" | "done" | "quarantined" | "failed" | "abandoned">
    readonly fence: bigint
    readonly resumed: Generated<boolean>
    readonly started_at: Date
    readonly finished_at: Date | null
    readonly cursor_from: string | null
    readonly cursor_to: string | null
    readonly pages: Generated<bigint>
    readonly requests: Generated<bigint>
    readonly retries: Generated<bigint>
    readonly bytes: Generated<bigint>
    readonly records: Generated<bigint>
    readonly inserted: Generated<bigint>
    readonly updated: Generated<bigint>
    readonly unchanged: Generated<bigint>
    readonly deleted: Generated<bigint>
    readonly quarantined: Generated<bigint>
    readonly error_kind: string | null
    readonly error: string | null
    readonly remedy: string | null
    readonly lane: Generated<"live" | "backfill" | "records" | "push">
    readonly late_rows: Generated<bigint>
    readonly max_lateness_ms: Generated<bigint>
    readonly stale_records: Generated<bigint>
    readonly note: string | null
    readonly quiet_runs: Generated<number>
    readonly quiet_since: Date | null
    readonly phases: unknown
  }
  readonly "tributary.scan_ids": {
    readonly company_id: bigint
    readonly resource: string
    readonly lane: string
    readonly page: bigint
    readonly ids: ReadonlyArray<bigint>
  }
  readonly "tributary.scans": {
    readonly company_id: bigint
    readonly resource: string
    readonly lane: string
    readonly run_id: bigint
    readonly kind: "full" | "incremental"
    readonly since: string | null
    readonly until: string | null
    readonly token: string | null
    readonly pages: bigint
    readonly synced_through: string | null
    readonly started_at: Date
    readonly refetch_generation: bigint
  }
  readonly "tributary.sql_names": {
    readonly scope: string
    readonly api_name: string
    readonly sql_name: string
    readonly given_at: Generated<Date>
    readonly inferred_type: "integer" | "number" | "decimal" | "boolean" | "text" | "date" | "timestamp" | "json" | null
    readonly inferred_position: bigint | null
  }
  readonly "tributary.subscriptions": {
    readonly company: string
    readonly subscription_id: string
    readonly url: string
    readonly events: ReadonlyArray<string>
    readonly description: string | null
    readonly state: "active" | "paused" | "disabled" | "deleted"
    readonly paused: Generated<boolean>
    readonly failure_count: bigint | null
    readonly last_delivery_at: Date | null
    readonly disabled_at: Date | null
    readonly unknown_events: Generated<ReadonlyArray<string>>
    readonly first_seen_at: Generated<Date>
    readonly checked_at: Date
    readonly healthy_at: Date | null
    readonly unhealthy_reason: "paused" | "disabled" | "missing" | null
    readonly gaps_evaluated_at: Date | null
    readonly log_cursor_at: string | null
    readonly log_cursor_event: string | null
    readonly log_read_at: Date | null
    readonly log_head_pending_since: Date | null
    readonly last_error: string | null
    readonly remedy: string | null
    readonly reenable_attempts: Generated<number>
    readonly reenable_last_attempt_at: Date | null
    readonly reenable_next_attempt_at: Date | null
    readonly delayed_at: Date | null
    readonly tested_at: Date | null
    readonly test_error: string | null
    readonly tested_after: Date | null
  }
  readonly "tributary.tasks": {
    readonly company: string
    readonly resource: string
    readonly kind: "sync" | "backfill"
    readonly schedule: string | null
    readonly freshness_target_ms: bigint | null
    readonly next_run_at: Date | null
    readonly paused_at: Date | null
    readonly paused_by: string | null
    readonly requested_at: Date | null
    readonly requested_by: string | null
    readonly full_requested: Generated<boolean>
    readonly since: string | null
    readonly until: string | null
    readonly started_at: Date | null
    readonly finished_at: Date | null
    readonly status: "done" | "quarantined" | "failed" | "skipped" | null
    readonly run_id: bigint | null
    readonly failures: Generated<number>
    readonly error: string | null
    readonly remedy: string | null
    readonly updated_at: Generated<Date>
    readonly parent: string | null
    readonly deferred_from: Date | null
    readonly failure_kind: string | null
  }
  readonly "tributary.unknown_fields": {
    readonly company_id: bigint
    readonly resource: string
    readonly field: string
    readonly first_seen_at: Date
    readonly last_seen_at: Date
    readonly times: Generated<bigint>
    readonly sample_types: ReadonlyArray<string>
    readonly type_mismatches: Generated<bigint>
    readonly run_id: bigint
    readonly promoted_at: Date | null
  }
  readonly "tributary.violations": {
    readonly id: Generated<bigint>
    readonly invariant: string
    readonly company_id: bigint
    readonly resource: string
    readonly record_id: bigint
    readonly detail: string
    readonly first_seen_at: Generated<Date>
    readonly changed_at: Generated<Date>
    readonly opened_at: Date | null
    readonly ended_at: Date | null
  }
  readonly "tributary.warehouse": {
    readonly is_this: Generated<boolean>
    readonly identity: string
    readonly pause_reason: string | null
    readonly confirmed_at: Date
    readonly company_revision: Generated<bigint>
    readonly session_key: Uint8Array | null
    readonly password_generation: string | null
    readonly password_salt: Uint8Array | null
    readonly password_hash: Uint8Array | null
    readonly password_set_at: Date | null
  }
  readonly "tributary.webhook_secrets": {
    readonly id: Generated<bigint>
    readonly company: string
    readonly subscription_id: string | null
    readonly sealed: Uint8Array
    readonly state: "next" | "current" | "previous"
    readonly created_at: Generated<Date>
    readonly accepted_until: Date | null
  }
}

export const control = Query.k<ControlTables>()
