/**
 * Metrics of syncing, for `/metrics`; `config/metrics.md` lists every name.
 *
 * Promise: every lookup uses an index and runs at most every few seconds, so that the cost does not grow with the
 * number of runs. A read never fails; metrics that cannot be read are left out. Labels are configured companies and
 * resources, and fixed words of these files.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorUsage } from "../connector/Connector.ts"
import * as Statement from "../postgres/Statement.ts"
import { type BudgetOwner, readBudgetMetrics } from "./BudgetMetrics.ts"
import { cached, counter, gauge, type Metric } from "./CachedMetrics.ts"
import { readResourceMetrics } from "./ResourceMetrics.ts"
import * as RunCounters from "./RunCounters.ts"

export interface MetricsCompany extends BudgetOwner {
  /** Requests of its connector so far. */
  readonly usage: Effect.Effect<ConnectorUsage>
}

export interface MetricsOptions {
  readonly companies: ReadonlyArray<MetricsCompany>
  /** The freshness target of a resource. */
  readonly freshnessOf: (resource: string) => Duration.Duration
}

const taskStates = ["running", "paused", "due", "waiting"] as const

export const tasksStatement = Statement.make({
  name: "count tasks",
  params: ["text"],
  columns: {
    company: "text",
    states: Statement.as<Readonly<Record<string, number>>>("json"),
    ...Statement.columns("float8", "oldest", "alive")
  },
  text: `with task as (
    select company, next_run_at, requested_at, case
             when lease_expires_at > now.at then 'running'
             when requested_at is not null then 'due'
             when paused_at is not null then 'paused'
             when next_run_at <= now.at then 'due'
             else 'waiting' end as state, now.at
      from tributary.tasks, (select tributary.now() as at) now)
  select c.company,
         coalesce((select json_object_agg(state, tasks) from (
           select state, count(*)::float8 as tasks from task t where t.company = c.company group by state) g), '{}') as states,
         coalesce((select extract(epoch from max(t.at - least(t.next_run_at, t.requested_at))) from task t
                    where t.company = c.company and t.state = 'due'), 0)::float8 as oldest,
         (select count(*) from tributary.processes_alive r where c.company = any(r.companies))::float8 as alive
    from jsonb_array_elements_text($1::text::jsonb) as c(company)`
})

const ofTasks = (rows: ReadonlyArray<Statement.RowOf<typeof tasksStatement>>) => [
  gauge(
    "tributary_tasks",
    "Tasks of the schedule by state: running, paused, due (no process runs it yet) or waiting for its time.",
    rows.flatMap(({ company, states }) =>
      taskStates.map((state) => ({ labels: { company, state }, value: states[state] ?? 0 }))
    )
  ),
  gauge(
    "tributary_tasks_oldest_due_seconds",
    "The longest wait of a due task for a process.",
    rows.map(({ company, oldest }) => ({ labels: { company }, value: oldest }))
  ),
  gauge(
    "tributary_serve_alive",
    "Processes of tributary serve with a heartbeat for the company within the last minute.",
    rows.map(({ company, alive }) => ({ labels: { company }, value: alive }))
  )
]

const readTaskMetrics = (companies: ReadonlyArray<string>) =>
  Effect.map(Statement.run(tasksStatement, [JSON.stringify(companies)]), ofTasks)

const ofUsage = (usage: ReadonlyArray<readonly [company: string, usage: ConnectorUsage]>) => {
  const each = (of: (usage: ConnectorUsage) => number): Metric["samples"] =>
    usage.map(([company, one]) => ({ labels: { company }, value: of(one) }))
  return [
    counter(
      "tributary_source_requests_total",
      "Requests that this process sent to the source.",
      each(({ requests }) => requests)
    ),
    counter(
      "tributary_source_retries_total",
      "Those of them that repeat a failed or refused one.",
      each(({ retries }) => retries)
    ),
    counter(
      "tributary_source_rate_limited_total",
      "Answers 429 to this process.",
      each(({ rateLimited }) => rateLimited)
    ),
    counter(
      "tributary_source_received_bytes_total",
      "Bytes of the answers' bodies.",
      each(({ bytes }) => bytes)
    )
  ]
}

/** Metrics of these companies. Runs are counted from now on. */
export const make = Effect.fnUntraced(function* ({
  companies,
  freshnessOf
}: MetricsOptions): Effect.fn.Return<Effect.Effect<ReadonlyArray<Metric>>, never, SqlClient.SqlClient> {
  const names = companies.map(({ name }) => name)
  const inWarehouse = yield* cached(
    Effect.map(
      Effect.all([
        readResourceMetrics(names, freshnessOf),
        readTaskMetrics(names),
        readBudgetMetrics(companies),
        RunCounters.make(names)
      ]),
      (metrics) => metrics.flat()
    )
  )
  const usage = Effect.forEach(companies, (company) =>
    Effect.map(company.usage, (used) => [company.name, used] as const)
  )
  // The first read begins the count of runs.
  yield* inWarehouse
  return Effect.map(Effect.all([inWarehouse, usage]), ([metrics, used]) => [...metrics, ...ofUsage(used)])
})
