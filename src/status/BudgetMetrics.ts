/** Metrics of each company's rate budget. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import * as Metrics from "./Metrics.ts"

export interface BudgetOwner {
  readonly name: string
  /** The key of its budget (src/budget/PostgresPermitStore.ts). */
  readonly fingerprint: string
}

const gauges = {
  tributary_budget_used_requests:
    "Requests of the last minute that count against the company's budget, of all processes; absent without a limit.",
  tributary_budget_allowed_requests:
    "Requests per minute that may be used at present: fewer than configured after a 429.",
  tributary_budget_configured_requests: "Requests per minute that the configuration allows.",
  tributary_budget_paused_seconds: "How long requests are still paused by a Retry-After."
}
const counters = { tributary_budget_refusals_total: "Answers 429 of the source." }

export const budgetsStatement = Statement.make({
  name: "read the metrics of rate budgets",
  params: ["jsonb"],
  columns: {
    company: "text",
    ...Metrics.columns(gauges),
    ...Metrics.columns(counters),
    origin: "text?",
    status: "int4?"
  },
  text: `select c.name as company,
         case when b.requests_per_minute is not null then
           coalesce((select sum(permits) from tributary.budget_leases l
                      where l.fingerprint = b.fingerprint and l.counted_until > tributary.now()), 0)::float8
         end as tributary_budget_used_requests,
         b.effective_per_minute as tributary_budget_allowed_requests,
         b.requests_per_minute::float8 as tributary_budget_configured_requests,
         greatest(0, coalesce(extract(epoch from b.retry_after_at - tributary.now()), 0))::float8 as tributary_budget_paused_seconds,
         b.rate_limited_count::float8 as tributary_budget_refusals_total,
         b.pause_origin as origin, b.pause_status as status
    from jsonb_to_recordset($1::jsonb) as c(name text, fingerprint text)
    join tributary.budgets b on b.fingerprint = c.fingerprint`
})

const metricsOf = (rows: ReadonlyArray<Statement.RowOf<typeof budgetsStatement>>): ReadonlyArray<Metrics.Metric> => [
  ...Metrics.ofColumns(Metrics.gauge, gauges, ["company"], rows),
  ...Metrics.ofColumns(Metrics.counter, counters, ["company"], rows),
  Metrics.gauge(
    "tributary_budget_paused_by",
    "1 during a pause, with its origin (source: the error body of the API; else intermediary) and the status.",
    rows.flatMap(({ company, tributary_budget_paused_seconds: pausedSeconds, origin, status }) =>
      origin !== null && pausedSeconds !== null && pausedSeconds > 0
        ? [{ labels: { company, by: origin, status: String(status) }, value: 1 }]
        : []
    )
  )
]

export const readBudgetMetrics = (companies: ReadonlyArray<BudgetOwner>) =>
  Effect.map(
    Statement.run(budgetsStatement, [
      JSON.stringify(companies.map(({ name, fingerprint }) => ({ name, fingerprint })))
    ]),
    metricsOf
  )
