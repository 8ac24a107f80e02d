/** Metrics of each company's rate budget. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { counter, gauge, type Metric } from "./CachedMetrics.ts"

export interface BudgetOwner {
  readonly name: string
  /** The key of its budget (src/budget/PostgresPermitStore.ts). */
  readonly fingerprint: string
}

export const budgetsStatement = Statement.make({
  name: "read the metrics of rate budgets",
  params: ["text"],
  columns: {
    fingerprint: "text",
    ...Statement.columns("float8?", "configured", "allowed"),
    ...Statement.columns("float8", "refusals", "pausedSeconds"),
    origin: "text?",
    status: "int4?",
    used: "float8"
  },
  text: `select b.fingerprint, b.requests_per_minute::float8 as configured, b.effective_per_minute as allowed,
         b.rate_limited_count::float8 as refusals,
         greatest(0, coalesce(extract(epoch from b.retry_after_at - tributary.now()), 0))::float8 as "pausedSeconds",
         b.pause_origin as origin, b.pause_status as status,
         coalesce((select sum(permits) from tributary.budget_leases l
                    where l.fingerprint = b.fingerprint and l.counted_until > tributary.now()), 0)::float8 as used
    from tributary.budgets b where b.fingerprint = any(array(select jsonb_array_elements_text($1::text::jsonb)))`
})
type BudgetRow = Statement.RowOf<typeof budgetsStatement>

const metricsOf = (companies: ReadonlyArray<BudgetOwner>, rows: ReadonlyArray<BudgetRow>): ReadonlyArray<Metric> => {
  const each = (of: (row: BudgetRow) => number | null): Metric["samples"] =>
    companies.flatMap(({ name, fingerprint }) => {
      const row = rows.find((one) => one.fingerprint === fingerprint)
      const value = row === undefined ? null : of(row)
      return value === null ? [] : [{ labels: { company: name }, value }]
    })
  return [
    gauge(
      "tributary_budget_used_requests",
      "Requests of the last minute that count against the company's budget, of all processes; absent without a limit.",
      each(({ used, configured }) => (configured === null ? null : used))
    ),
    gauge(
      "tributary_budget_allowed_requests",
      "Requests per minute that may be used at present: fewer than configured after a 429.",
      each(({ allowed }) => allowed)
    ),
    gauge(
      "tributary_budget_configured_requests",
      "Requests per minute that the configuration allows.",
      each(({ configured }) => configured)
    ),
    gauge(
      "tributary_budget_held_seconds",
      "How long requests are still paused by a Retry-After.",
      each(({ pausedSeconds }) => pausedSeconds)
    ),
    gauge(
      "tributary_budget_held_by",
      "1 during a pause, with its origin (source: the error body of the API; else intermediary) and the status.",
      companies.flatMap(({ name, fingerprint }) =>
        rows
          .filter((one) => one.fingerprint === fingerprint && one.pausedSeconds > 0 && one.origin !== null)
          .map(({ origin, status }) => ({ labels: { company: name, by: origin!, status: String(status) }, value: 1 }))
      )
    ),
    counter(
      "tributary_budget_refusals_total",
      "Answers 429 of the source.",
      each(({ refusals }) => refusals)
    )
  ]
}

export const readBudgetMetrics = (companies: ReadonlyArray<BudgetOwner>) =>
  Effect.map(
    Statement.run(budgetsStatement, [JSON.stringify(companies.map(({ fingerprint }) => fingerprint))]),
    (rows) => metricsOf(companies, rows)
  )
