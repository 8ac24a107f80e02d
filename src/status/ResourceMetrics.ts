/** Metrics of each resource: freshness, the last run, failures, rows, quarantine. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import * as Metrics from "./Metrics.ts"

const gauges = {
  tributary_freshness_age_seconds:
    "Time since the start of the last successful run, or since the time at which events prove freshness; absent before the first.",
  tributary_freshness_target_seconds: "The freshness target of the resource.",
  tributary_freshness_late: "1 while the resource is older than its target or was never read, 0 otherwise.",
  tributary_freshness_proven: "1 while events prove the freshness, 0 otherwise.",
  tributary_run_last_end_timestamp_seconds: "When the last run that follows the source ended.",
  tributary_task_failures: "Failures of the scheduled sync in a row; absent where the token may not read the resource.",
  tributary_rows: "Rows, tombstones not included, as last counted.",
  tributary_rows_deleted: "Tombstones, as last counted.",
  tributary_quarantine_open: "Records that could not be landed and are not resolved."
}

const isIn = (company: string) => `${company} = any(array(select jsonb_array_elements_text($1::text::jsonb)))`

export const resourcesStatement = Statement.make({
  name: "read the metrics of resources",
  params: ["text"],
  columns: { ...Statement.columns("text", "company", "resource"), ...Metrics.columns(gauges), status: "text?" },
  text: `select s.company, s.resource,
         extract(epoch from f.age)::float8 as tributary_freshness_age_seconds,
         extract(epoch from f.target)::float8 as tributary_freshness_target_seconds,
         f.is_late::int::float8 as tributary_freshness_late,
         f.is_proven::int::float8 as tributary_freshness_proven,
         extract(epoch from f.last_run_finished_at)::float8 as tributary_run_last_end_timestamp_seconds,
         case when not f.is_blocked then f.failures::float8 end as tributary_task_failures,
         c.rows::float8 as tributary_rows, c.deleted::float8 as tributary_rows_deleted,
         f.quarantined::float8 as tributary_quarantine_open, f.last_run_status as status
    from tributary.resource_states f
    join tributary.tasks s on s.company = f.company and s.resource = f.resource and s.kind = 'sync'
    left join tributary.row_counts c on c.company_id = f.company_id and c.resource = f.resource
   where ${isIn("f.company")} and ${isIn("s.company")}
   order by s.company, s.resource`
})

const metricsOf = (rows: ReadonlyArray<Statement.RowOf<typeof resourcesStatement>>): ReadonlyArray<Metrics.Metric> => [
  ...Metrics.ofColumns(Metrics.gauge, gauges, ["company", "resource"], rows),
  Metrics.gauge(
    "tributary_run_last_status",
    "1, with the status of the last run that follows the source as a label.",
    rows.flatMap(({ company, resource, status }) =>
      status === null ? [] : [{ labels: { company, resource, status }, value: 1 }]
    )
  )
]

export const readResourceMetrics = (companies: ReadonlyArray<string>) =>
  Effect.map(Statement.run(resourcesStatement, [JSON.stringify(companies)]), metricsOf)
