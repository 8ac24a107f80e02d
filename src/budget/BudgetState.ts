/** The state of the rate budgets, as the warehouse stores it. The source gets no request. */
import type { PauseReport } from "./PermitPolicy.ts"
import { spanMsDefault } from "./PermitStore.ts"
import * as Sql from "../postgres/Sql.ts"

/** The state of one token's budget. */
export interface BudgetState {
  readonly fingerprint: string
  /** Requests that count now: those of the last minute, and those for which processes have permits. */
  readonly used: number
  /** The limit at present: lower than configured for a while after a 429. Null without a limit. */
  readonly allowed: number | null
  readonly configured: number | null
  /** Until when requests pause; null where they do not. */
  readonly heldUntil: Date | null
  /** The answer that requested the pause; null without a pause, or where the answer is not known. */
  readonly heldBy: PauseReport | null
  /** A pause ended before its Retry-After: one request is sent, the probe, and the others wait for its answer. */
  readonly isProbing: boolean
  /** How often the source answered 429. */
  readonly refusals: number
  readonly lastRefusalAt: Date | null
  /** Whether a request waits for a permit, by its priority. */
  readonly urgentWaits: boolean
  readonly liveWaits: boolean
  readonly backfillWaits: boolean
  /** When a process last requested a permit. */
  readonly askedAt: Date
}

export const readBudgets = (fingerprints: ReadonlyArray<string>): Sql.Query<ReadonlyArray<BudgetState>> =>
  Sql.rows<BudgetState>(
    `select b.fingerprint, l.used, b.requests_per_minute as configured,
              case when b.requests_per_minute is not null then
                greatest(1, floor(tributary.budget_effective(b.requests_per_minute, b.lowered_to,
                  tributary.budget_ms(b.lowered_at), tributary.budget_ms(n.now), $2::float8) + 1e-9)) end as allowed,
              case when b.retry_after_at > n.now then b.retry_after_at end as "heldUntil",
              case when b.retry_after_at > n.now and b.pause_origin is not null then jsonb_build_object(
                'origin', b.pause_origin, 'status', b.pause_status, 'request', b.pause_request,
                'statedMs', b.pause_stated_ms,
                'agoMs', greatest(0, tributary.budget_ms(n.now) - tributary.budget_ms(b.paused_at))) end as "heldBy",
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
        where b.fingerprint in (select jsonb_array_elements_text($1::text::jsonb))`,
    [JSON.stringify(fingerprints), spanMsDefault]
  )
