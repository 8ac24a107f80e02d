/** Metrics of each resource: freshness, the last run, failures, rows, quarantine. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { gauge, type Metric } from "./CachedMetrics.ts"

const isIn = (company: string) => `${company} = any(array(select jsonb_array_elements_text($1::text::jsonb)))`

export const resourcesStatement = Statement.make({
  name: "read the metrics of resources",
  params: ["text"],
  columns: {
    company: "text",
    resource: "text",
    failures: "int4",
    isSkipped: "bool",
    age: "float8?",
    status: "text?",
    ...Statement.columns("float8?", "endedAt", "rows", "deleted"),
    quarantined: "float8"
  },
  text: `select s.company, s.resource, s.failures, coalesce(s.status = 'skipped', false) as "isSkipped",
         extract(epoch from f.age)::float8 as age,
         last.status, extract(epoch from last.finished_at)::float8 as "endedAt",
         c.rows::float8 as rows, c.deleted::float8 as deleted, q.records as quarantined
    from tributary.freshness f
    join tributary.tasks s on s.company = f.company and s.resource = f.resource and s.kind = 'sync'
    left join tributary.row_counts c on c.company_id = f.company_id and c.resource = f.resource
    left join lateral (
      select r.status, r.finished_at from tributary.runs r
       where r.company_id = f.company_id and r.resource = f.resource and r.lane = 'live' and r.finished_at is not null
       order by r.id desc limit 1) last on true
    cross join lateral (
      select count(*)::float8 as records from tributary.quarantine q
       where q.company_id = f.company_id and q.resource = f.resource and q.resolved_at is null) q
   where ${isIn("f.company")} and ${isIn("s.company")}
   order by s.company, s.resource`
})
type ResourceRow = Statement.RowOf<typeof resourcesStatement>

const metricsOf = (
  rows: ReadonlyArray<ResourceRow>,
  freshnessOf: (resource: string) => Duration.Duration
): ReadonlyArray<Metric> => {
  const each = (of: (row: ResourceRow) => number | null): Metric["samples"] =>
    rows.flatMap((row) => {
      const value = of(row)
      return value === null ? [] : [{ labels: { company: row.company, resource: row.resource }, value }]
    })
  const target = ({ resource }: ResourceRow) => Duration.toSeconds(freshnessOf(resource))
  const isLate = (row: ResourceRow) => !row.isSkipped && (row.age === null || row.age > target(row))
  return [
    gauge(
      "tributary_freshness_age_seconds",
      "Time since the start of the last successful run; absent before the first.",
      each(({ age }) => age)
    ),
    gauge("tributary_freshness_promise_seconds", "The freshness target of the resource.", each(target)),
    gauge(
      "tributary_freshness_late",
      "1 while the resource is older than its target or was never read, 0 otherwise.",
      each((row) => (isLate(row) ? 1 : 0))
    ),
    gauge(
      "tributary_run_last_end_timestamp_seconds",
      "When the last run that follows the source ended.",
      each(({ endedAt }) => endedAt)
    ),
    gauge(
      "tributary_run_last_status",
      "1, with the status of the last run that follows the source as a label.",
      rows.flatMap(({ company, resource, status }) =>
        status === null ? [] : [{ labels: { company, resource, status }, value: 1 }]
      )
    ),
    gauge(
      "tributary_task_failures",
      "Failures of the scheduled sync in a row; absent where the token may not read the resource.",
      each(({ failures, isSkipped }) => (isSkipped ? null : failures))
    ),
    gauge(
      "tributary_rows",
      "Rows, tombstones not included, as last counted.",
      each(({ rows }) => rows)
    ),
    gauge(
      "tributary_rows_deleted",
      "Tombstones, as last counted.",
      each(({ deleted }) => deleted)
    ),
    gauge(
      "tributary_quarantine_open",
      "Records that could not be landed and are not resolved.",
      each(({ quarantined }) => quarantined)
    )
  ]
}

/** `freshnessOf` is the freshness target of a resource. */
export const readResourceMetrics = (
  companies: ReadonlyArray<string>,
  freshnessOf: (resource: string) => Duration.Duration
) => Effect.map(Statement.run(resourcesStatement, [JSON.stringify(companies)]), (rows) => metricsOf(rows, freshnessOf))
