/**
 * How much of each token's budget was in use, for a chart of the last hours: `tributary.budget_usage`.
 *
 * Promise: one row for each budget every fifteen seconds, however many processes keep them, at the full quarters of a
 * minute by the warehouse's clock. What is counted is what the budget itself counts: the permits given within the last
 * minute. Where no limit is configured nobody takes permits: there is nothing to count, and no sample.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { spanMsDefault } from "../budget/PermitStore.ts"

export interface Sample {
  readonly at: Date
  /** Requests of the last minute. */
  readonly used: number
  /** What could be used at most at that time. Null, like the next, for a token of which only a Retry-After is known. */
  readonly allowed: number | null
  /** What the configuration allows. */
  readonly configured: number | null
  /** How often the source had answered 429 by then. */
  readonly refusals: number
  /** Whether the source had asked to wait. */
  readonly held: boolean
}

const everySeconds = 15

/** The samples of a budget that are no older than so many milliseconds, oldest first. */
export const read = Effect.fnUntraced(function* (
  fingerprint: string,
  sinceMs: number
): Effect.fn.Return<ReadonlyArray<Sample>, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Sample>`
    select at, used, allowed, configured, rate_limited_count::float8 as refusals, is_paused as held from tributary.budget_usage
     where fingerprint = ${fingerprint} and at >= tributary.now() - make_interval(secs => ${sinceMs / 1000}) order by at`
})

/** Writes the sample of this quarter of a minute, unless it stands; answers how long it is to the next one. */
const take = `
  with clock as materialized (select tributary.now() as at),
  aligned as (
    select at, to_timestamp(floor(extract(epoch from at) / ${everySeconds}) * ${everySeconds}) as quarter from clock),
  taken as (
    insert into tributary.budget_usage (fingerprint, at, used, allowed, configured, rate_limited_count, is_paused)
    select b.fingerprint, a.quarter, coalesce(l.used, 0),
           case when b.requests_per_minute is not null then greatest(1, floor(tributary.budget_effective(
             b.requests_per_minute, b.lowered_to, tributary.budget_ms(b.lowered_at), tributary.budget_ms(a.at),
             ${spanMsDefault})))::integer end,
           b.requests_per_minute, b.rate_limited_count, coalesce(b.retry_after_at > a.at, false)
      from tributary.budgets b cross join aligned a
      left join lateral (
        select sum(permits)::integer as used from tributary.budget_leases
         where fingerprint = b.fingerprint and counted_until > a.at) l on true
     where b.fingerprint = any(array(select jsonb_array_elements_text($1::text::jsonb)))
    on conflict do nothing)
  select ((extract(epoch from quarter - at) + ${everySeconds}) * 1000)::float8 as "nextMs" from aligned`

/** Keeps the samples of these budgets for ever. */
export const sampleBudget = Effect.fnUntraced(function* (
  fingerprints: ReadonlyArray<string>
): Effect.fn.Return<never, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const wanted = JSON.stringify(fingerprints)
  for (;;) {
    const [taken] = yield* sql.unsafe<{ nextMs: number }>(take, [wanted])
    yield* Effect.sleep(Math.ceil(taken!.nextMs))
  }
})
