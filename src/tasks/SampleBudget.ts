/**
 * The use of each token's budget over the last hours, for a chart: `tributary.budget_usage`.
 *
 * Promise: one row for each budget every fifteen seconds of the warehouse's clock, however many processes sample. A row
 * counts what the budget counts: the permits of the last minute. A budget without a limit counts no permits. A budget
 * without a request for ten minutes has no rows unless it is paused: thousands of idle companies cost nothing.
 */
import * as Effect from "effect/Effect"
import { spanMsDefault } from "../budget/PermitStore.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

export const readStatement = Statement.make({
  name: "read the use of a budget",
  params: ["text", "float8"],
  columns: {
    at: "timestamptz",
    /** Requests of the last minute. */
    used: "int4",
    /** The limit at that time. Null, as is `configured`, without a limit. */
    allowed: "int4?",
    configured: "int4?",
    /** Answers 429 of the source so far. */
    refusals: "float8",
    /** Whether requests were paused. */
    isPaused: "bool"
  },
  text: `select at, used, allowed, configured, rate_limited_count::float8 as refusals, is_paused as "isPaused" from tributary.budget_usage
     where fingerprint = $1 and at >= tributary.now() - make_interval(secs => $2) order by at`
})

export type Sample = Statement.RowOf<typeof readStatement>

/** The samples of this period until now, oldest first. */
export const read = (fingerprint: string, sinceMs: number): Sql.Query<ReadonlyArray<Sample>> =>
  Statement.run(readStatement, [fingerprint, sinceMs / 1000])

const everySeconds = 15

/** Writes the sample of this quarter of a minute unless it exists; returns the time to the next one. */
export const sampleStatement = Statement.make({
  name: "sample the use of budgets",
  params: ["text"],
  columns: { nextMs: "float8" },
  text: `with clock as materialized (select tributary.now() as at),
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
     where (b.updated_at > a.at - interval '10 minutes' or b.retry_after_at > a.at)
       and b.fingerprint in (select jsonb_array_elements_text($1::text::jsonb))
    on conflict do nothing)
  select ((extract(epoch from quarter - at) + ${everySeconds}) * 1000)::float8 as "nextMs" from aligned`
})

/** Samples the budgets of the time until it is interrupted. */
export const sampleBudget = (fingerprints: () => ReadonlyArray<string>): Sql.Query<never> =>
  Effect.forever(
    Effect.flatMap(
      Effect.suspend(() => Statement.run(sampleStatement, [JSON.stringify(fingerprints())])),
      ([sample]) => Effect.sleep(Math.ceil(sample!.nextMs))
    )
  )
