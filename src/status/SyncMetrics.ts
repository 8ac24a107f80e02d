/**
 * Metrics of syncing, for `/metrics`; `docs/reference/metrics.md` lists every name.
 *
 * Promise: every lookup uses an index and runs at most every few seconds, so that the cost does not grow with the
 * number of runs. A read never fails; metrics that cannot be read are left out. Labels are configured companies and
 * resources, and fixed words of these files.
 */
import * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorUsage } from "../connector/Connector.ts"
import * as Statement from "../postgres/Statement.ts"
import { type BudgetOwner, readBudgetMetrics } from "./BudgetMetrics.ts"
import * as FleetMetrics from "./FleetMetrics.ts"
import * as Metrics from "./Metrics.ts"
import { readResourceMetrics } from "./ResourceMetrics.ts"
import * as RunCounters from "./RunCounters.ts"

export interface MetricsCompany extends BudgetOwner {
  /** The name of its installation, or the host of its address. */
  readonly installation: string
  /** Requests of its connector so far. */
  readonly usage: Effect.Effect<ConnectorUsage>
}

const taskStates = ["running", "paused", "due", "waiting"] as const

const taskGauges = {
  tributary_tasks_oldest_due_seconds: "The longest wait of a due task for a process.",
  tributary_serve_alive: "Processes of tributary serve with a heartbeat for the company within the last minute."
}

export const tasksStatement = Statement.make({
  name: "count tasks",
  params: ["text"],
  columns: {
    company: "text",
    states: Statement.as<Readonly<Record<string, number>>>("json"),
    ...Metrics.columns(taskGauges)
  },
  text: `with task as (
    select company, next_run_at, requested_at, case
             when (company, resource, kind) in (
               select c.company, r.resource, case r.lane when 'live' then 'sync' else r.lane end
                 from tributary.runs r join tributary.companies c using (company_id) where r.status = 'running') then 'running'
             when requested_at is not null then 'due'
             when paused_at is not null then 'paused'
             when next_run_at <= now.at then 'due'
             else 'waiting' end as state, now.at
      from tributary.tasks, (select tributary.now() as at) now
     where company in (select jsonb_array_elements_text($1::text::jsonb)))
  select c.company,
         coalesce((select json_object_agg(state, tasks) from (
           select state, count(*)::float8 as tasks from task t where t.company = c.company group by state) g), '{}') as states,
         coalesce((select extract(epoch from max(t.at - least(t.next_run_at, t.requested_at))) from task t
                    where t.company = c.company and t.state = 'due'), 0)::float8 as tributary_tasks_oldest_due_seconds,
         (select count(*) from tributary.processes_alive r where c.company = any(r.companies))::float8 as tributary_serve_alive
    from jsonb_array_elements_text($1::text::jsonb) as c(company)`
})

const ofTasks = (rows: ReadonlyArray<Statement.RowOf<typeof tasksStatement>>) => [
  Metrics.gauge(
    "tributary_tasks",
    "Tasks of the schedule by state: running, paused, due (no run of it has found anything yet) or waiting for its time.",
    rows.flatMap(({ company, states }) =>
      taskStates.map((state) => ({ labels: { company, state }, value: states[state] ?? 0 }))
    )
  ),
  ...Metrics.ofColumns(Metrics.gauge, taskGauges, ["company"], rows)
]

const readTaskMetrics = (companies: ReadonlyArray<string>) =>
  Effect.map(Statement.run(tasksStatement, [JSON.stringify(companies)]), ofTasks)

const usageCounters = {
  tributary_source_requests_total: "Requests that this process sent to the source.",
  tributary_source_retries_total: "Those of them that repeat a failed or refused one.",
  tributary_source_rate_limited_total: "Answers 429 to this process.",
  tributary_source_received_bytes_total: "Bytes of the answers' bodies."
}

const readUsageMetrics = (companies: ReadonlyArray<MetricsCompany>) =>
  Effect.map(
    Effect.forEach(companies, ({ name, usage }) =>
      Effect.map(usage, ({ requests, retries, rateLimited, bytes }) => ({
        company: name,
        tributary_source_requests_total: requests,
        tributary_source_retries_total: retries,
        tributary_source_rate_limited_total: rateLimited,
        tributary_source_received_bytes_total: bytes
      }))
    ),
    (rows) =>
      FleetMetrics.isBounded(companies.length)
        ? Metrics.ofColumns(
            Metrics.counter,
            usageCounters,
            [],
            [Record.map(usageCounters, (_, name) => rows.reduce((sum, row) => sum + row[name], 0))]
          )
        : Metrics.ofColumns(Metrics.counter, usageCounters, ["company"], rows)
  )

/** Metrics of the companies at the time of a read, or of the worst of many and of all together. Runs are counted from now on. */
export const make = Effect.fnUntraced(function* (
  companies: () => ReadonlyArray<MetricsCompany>
): Effect.fn.Return<Effect.Effect<ReadonlyArray<Metrics.Metric>>, never, SqlClient.SqlClient> {
  const runCounters = RunCounters.make(() => companies().map(({ name }) => name))
  const inWarehouse = yield* Metrics.cached(
    Effect.gen(function* () {
      const current = companies()
      const names = current.map(({ name }) => name)
      const labelled = new Set(yield* FleetMetrics.labelled(names))
      const metrics = yield* Effect.all([
        readResourceMetrics([...labelled]),
        readTaskMetrics([...labelled]),
        readBudgetMetrics(current.filter(({ name }) => labelled.has(name))),
        runCounters,
        FleetMetrics.readFleetMetrics(current)
      ])
      return metrics.flat()
    })
  )
  // The first read begins the count of runs.
  yield* inWarehouse
  const usage = Effect.suspend(() => readUsageMetrics(companies()))
  return Effect.map(Effect.all([inWarehouse, usage]), (metrics) => metrics.flat())
})
