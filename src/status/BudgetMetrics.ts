/** Metrics of each company's rate budget. */
import * as Effect from "effect/Effect"
import { type BudgetState, readBudgets } from "../budget/BudgetState.ts"
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

const rowOf = (company: string, budget: BudgetState) => ({
  company,
  tributary_budget_used_requests: budget.configured === null ? null : budget.used,
  tributary_budget_allowed_requests: budget.allowed,
  tributary_budget_configured_requests: budget.configured,
  tributary_budget_paused_seconds: budget.pausedMs / 1000,
  tributary_budget_refusals_total: budget.refusals,
  pausedBy: budget.pausedBy
})

const metricsOf = (rows: ReadonlyArray<ReturnType<typeof rowOf>>): ReadonlyArray<Metrics.Metric> => [
  ...Metrics.ofColumns(Metrics.gauge, gauges, ["company"], rows),
  ...Metrics.ofColumns(Metrics.counter, counters, ["company"], rows),
  Metrics.gauge(
    "tributary_budget_paused_by",
    "1 during a pause, with its origin (source: the error body of the API; else intermediary) and the status.",
    rows.flatMap(({ company, pausedBy }) =>
      pausedBy === null ? [] : [{ labels: { company, by: pausedBy.origin, status: String(pausedBy.status) }, value: 1 }]
    )
  )
]

export const readBudgetMetrics = Effect.fnUntraced(function* (companies: ReadonlyArray<BudgetOwner>) {
  const budgets = yield* readBudgets(companies.map(({ fingerprint }) => fingerprint))
  const byFingerprint = new Map(budgets.map((budget) => [budget.fingerprint, budget]))
  return metricsOf(
    companies.flatMap(({ fingerprint, name }) => {
      const budget = byFingerprint.get(fingerprint)
      return budget === undefined ? [] : [rowOf(name, budget)]
    })
  )
})
