/** The state of the rate budgets, as the warehouse stores it. Reading it sends no request to the source. */
import * as Effect from "effect/Effect"
import type { PauseReport } from "./PermitPolicy.ts"
import { spanMsDefault } from "./PermitStore.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

export const readStatement = Statement.make({
  name: "read the state of budgets",
  params: ["text", "float8"],
  columns: {
    fingerprint: "text",
    /** Requests that count now: those of the last minute, and those for which processes have permits. */
    used: "int4",
    configured: "int4?",
    /** The limit at present: lower than configured for a while after a 429. Null without a limit. */
    allowed: "float8?",
    /** The end of the pause; null without a pause. */
    pausedUntil: "timestamptz?",
    /** The answer that requested the pause; null without a pause, or where the answer is not known. */
    pausedBy: Statement.as<PauseReport | null>("jsonb?"),
    /** A pause ended before its Retry-After: one request is sent, the probe, and the others wait for its answer. */
    isProbing: "bool",
    /** How often the source answered 429. */
    refusals: "float8",
    lastRefusalAt: "timestamptz?",
    /** When a process last requested a permit. */
    askedAt: "timestamptz",
    /** Whether a request waits for a permit, by its priority. */
    ...Statement.columns("bool", "urgentWaits", "liveWaits", "backfillWaits")
  },
  text: `select b.fingerprint, l.used, b.requests_per_minute as configured,
              case when b.requests_per_minute is not null then
                greatest(1, floor(tributary.budget_effective(b.requests_per_minute, b.lowered_to,
                  tributary.budget_ms(b.lowered_at), tributary.budget_ms(n.now), $2::float8) + 1e-9)) end as allowed,
              case when b.retry_after_at > n.now then b.retry_after_at end as "pausedUntil",
              case when b.retry_after_at > n.now and b.pause_origin is not null then jsonb_build_object(
                'origin', b.pause_origin, 'status', b.pause_status, 'request', b.pause_request,
                'statedMs', b.pause_stated_ms,
                'agoMs', greatest(0, tributary.budget_ms(n.now) - tributary.budget_ms(b.paused_at))) end as "pausedBy",
              b.shortened_pauses > 0 and b.retry_after_at <= n.now as "isProbing",
              b.rate_limited_count::float8 as refusals, b.last_429_at as "lastRefusalAt", b.updated_at as "askedAt",
              coalesce(b.urgent_waiter_until > n.now, false) as "urgentWaits",
              coalesce(b.live_waiter_until > n.now, false) as "liveWaits",
              coalesce(b.backfill_waiter_until > n.now, false) as "backfillWaits"
         from tributary.budgets b
         cross join (select tributary.now() as now) n
         cross join lateral (
           select coalesce(sum(permits), 0)::int as used from tributary.budget_leases o
            where o.fingerprint = b.fingerprint and o.counted_until > n.now) l
        where b.fingerprint in (select jsonb_array_elements_text($1::text::jsonb))`
})

export const worstStatement = Statement.make({
  name: "find budgets that slow requests down",
  params: ["int4"],
  columns: { fingerprint: "text" },
  text: `select b.fingerprint from tributary.budgets b cross join (select tributary.now() as now) n
        where b.retry_after_at > n.now or b.shortened_pauses > 0 or b.last_429_at > n.now - interval '1 hour'
               or b.urgent_waiter_until > n.now or b.live_waiter_until > n.now
        order by b.retry_after_at > n.now desc nulls last, b.last_429_at desc nulls last, b.fingerprint limit $1::int`
})

/** The budgets that are paused, were refused within an hour, or that requests wait for; paused ones first. */
export const worstBudgets = (budgetsMax: number): Sql.Query<ReadonlyArray<string>> =>
  Effect.map(Statement.run(worstStatement, [budgetsMax]), (rows) => rows.map(({ fingerprint }) => fingerprint))

/** The state of one token's budget. */
export type BudgetState = Statement.RowOf<typeof readStatement>

export const readBudgets = (fingerprints: ReadonlyArray<string>): Sql.Query<ReadonlyArray<BudgetState>> =>
  Statement.run(readStatement, [JSON.stringify(fingerprints), spanMsDefault])
