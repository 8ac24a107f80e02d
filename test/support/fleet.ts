/**
 * A warehouse of thousands of companies, filled by SQL: every table that dashboard, `status`, `/metrics` and `doctor`
 * read. A small share of the companies has a problem of each kind; all others are fresh.
 */
import { Effect } from "effect"
import { sql } from "./postgres.ts"

/** The name of the company with a number, from 1. */
export const companyName = (number: number): string => `c${String(number).padStart(5, "0")}`

/** The key of the rate budget of that company. */
export const fingerprintOf = (number: number): string => String(number).padStart(64, "0")

const fleetStatements = (companies: number, resources: number): ReadonlyArray<string> => {
  const all = `(select n, 'c' || lpad(n::text, 5, '0') as name from generate_series(1, ${companies}) as n)`
  const every = `(select n, 'c' || lpad(n::text, 5, '0') as name, r, 'r' || lpad(r::text, 2, '0') as resource
    from generate_series(1, ${companies}) as n, generate_series(1, ${resources}) as r) as x`
  const fails = "n % 100 = 0 and r = 3"
  const isLate = "n % 100 = 50 and r = 4"
  const started = `tributary.now() - case when ${isLate} then interval '3 hours' else interval '4 minutes' end`
  return [
    `insert into tributary.companies (company, company_id) select name, n from ${all} as x`,
    `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, next_run_at, paused_at, paused_by,
       started_at, finished_at, status, failures, error, remedy)
     select name, resource, 'sync', 'every 15 min', 3600000, tributary.now() + interval '10 minutes',
            case when n % 100 = 25 and r = 5 then tributary.now() end, case when n % 100 = 25 and r = 5 then 'the page' end,
            ${started}, ${started}, case when ${fails} then 'failed' else 'done' end, case when ${fails} then 3 else 0 end,
            case when ${fails} then 'the service failed (500)' end, case when ${fails} then 'report the request id' end
       from ${every}`,
    `insert into tributary.checkpoints (company_id, resource, cursor, cursor_read_at, full_scan_at, updated_at)
     select n, resource, '2026-11-20T08:15:30Z', tributary.now(), tributary.now() - interval '3 days', tributary.now() from ${every}`,
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, pages, requests, error, remedy)
     select n, resource, 'incremental', 'live', case when ${fails} then 'failed' else 'done' end, 1, ${started}, ${started}, 1, 1,
            case when ${fails} then 'the service failed (500)' end, case when ${fails} then 'report the request id' end
       from ${every}`,
    `insert into tributary.row_counts (company_id, resource, rows, deleted) select n, resource, 1000 + r, r from ${every}`,
    `insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
     select n, resource, '77', 'name', 'a NUL cannot be stored', '{}', 1, 'GET /x', tributary.now(), tributary.now()
       from ${every} where n % 100 = 75 and r = 6`,
    `insert into tributary.subscriptions (company, subscription_id, url, events, state, checked_at, healthy_at, log_read_at)
     select name, 's' || n, 'https://hooks.example/' || name, '{a.b}', case when n % 500 = 1 then 'disabled' else 'active' end,
            tributary.now(), tributary.now(), tributary.now() from ${all} as x`,
    `insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, body, state, resolved_at, last_error)
     select name, 'e' || n || '-' || r, 'r.updated', resource, r::text, tributary.now(), '\\x7b7d',
            case when n % 500 = 2 and r = 1 then 'dead_letter' when n % 50 = 3 and r = 2 then 'pending' else 'done' end,
            case when n % 500 = 2 and r = 1 or n % 50 = 3 and r = 2 then null else tributary.now() end,
            case when n % 500 = 2 and r = 1 then 'the record is unreadable' end from ${every} where r <= 5`,
    `insert into tributary.delivery_gaps (company, subscription_id, resource, cause, detail, began_at)
     select name, 's' || n, 'r01', 'subscription_inactive', 'the subscription was disabled', tributary.now() - interval '1 hour'
       from ${all} as x where n % 500 = 1`,
    `insert into tributary.outbox (company, resource, operation, externalid, record, state, code, reason, resolved_at, outcome)
     select name, 'r01', 'create', 'x' || r, '{}',
            case when n % 500 = 4 then 'rejected' when n % 100 = 5 then 'pending' else 'done' end,
            case when n % 500 = 4 then 'invalid' end, case when n % 500 = 4 then 'a field is missing' end,
            case when n % 100 = 5 then null else tributary.now() end, case when n % 500 <> 4 and n % 100 <> 5 then 'created' end
       from ${every} where r <= 3 and n % 10 >= 4`,
    `insert into tributary.budgets (fingerprint, requests_per_minute, updated_at, rate_limited_count, retry_after_at)
     select lpad(n::text, 64, '0'), 540, tributary.now(), 0, case when n % 500 = 6 then tributary.now() + interval '1 hour' end from ${all} as x`,
    `insert into tributary.budget_usage (fingerprint, at, used, allowed, configured, rate_limited_count, is_paused)
     select lpad(n::text, 64, '0'), tributary.now() - r * interval '15 seconds', 20, 540, 540, 0, false from ${every} where r <= 3`,
    `insert into tributary.processes (process_id, companies, host, pid, started_at, heartbeat_at)
     select 'p' || p, array_agg(name order by n), 'host-' || p, p, tributary.now() - p * interval '1 hour',
            tributary.now() - case when p > 3 then interval '1 hour' else interval '1 second' end
       from ${all} as x, generate_series(1, 8) p group by p`,
    `insert into tributary.bucket_owners (bucket, process_id) select b, 'p' || 1 + b % 3 from generate_series(0, 255) b`,
    `insert into tributary.activity (resolution, at, company, resource, runs, failed_runs, inserted, updated, requests, lateness_max,
       budget_share_max, paused_ms, gaps, process_starts)
     select 'hour', date_trunc('hour', tributary.now(), 'UTC') - h * interval '1 hour', null, null, 10000, h, 100 * h, 1000, 12000, 3,
            0.8, 60000, 20, (h < 8)::int from generate_series(0, 47) h`,
    `insert into tributary.change_endpoints (name, url, origin, last_position)
     select 'app-' || e, 'https://app.example.com/', 'command', 0 from generate_series(1, 5) e`,
    `insert into tributary.invariants (name, severity, statement, comment, resources, query)
     select 'rule-' || i, 'critical', 'a rule', '', '{r01}', 'select 1' from generate_series(1, 5) i`,
    `insert into tributary.invariant_states (invariant, company_id, state, evaluated_at, violations, open_violations)
     select 'rule-' || i, n, case when n % 500 = 7 then 'violated' else 'holds' end, tributary.now(), (n % 500 = 7)::int, (n % 500 = 7)::int from ${all} as x, generate_series(1, 5) i`,
    "analyze"
  ]
}

/** Fills the warehouse. A hundredth of the companies fails, is late, is paused, and has a quarantine, each. */
export const fillFleet = Effect.fnUntraced(function* (companies: number, resources: number) {
  for (const statement of fleetStatements(companies, resources)) yield* sql.unsafe(statement)
})
