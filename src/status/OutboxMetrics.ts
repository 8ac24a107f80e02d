/**
 * Metrics of the outbox.
 *
 * Promise: the cost of a read does not grow with the pushes: it counts open rows, rejected rows, open requests and the
 * rows of the last minute.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { cached, gauge, type Metric } from "./CachedMetrics.ts"
import { outcomes } from "../outbox/Push.ts"

export const metricsStatement = Statement.make({
  name: "read the metrics of the outbox",
  params: ["jsonb"],
  columns: {
    company: "text",
    ...Statement.columns("float8", "waiting", "oldest", "refused", "calls", "failing"),
    /** Records resolved within the last minute, by outcome; an outcome without records is absent. */
    resolved: Statement.as<Readonly<Record<string, number>>>("json")
  },
  text: `select c.company, w.*, k.*, r.*
    from jsonb_array_elements_text($1::jsonb) as c(company)
   cross join lateral (
     select coalesce(sum(records) filter (where state <> 'rejected'), 0)::float8 as waiting,
            coalesce(extract(epoch from tributary.now() - min(oldest_at) filter (where state <> 'rejected')), 0)::float8 as oldest,
            coalesce(sum(records) filter (where state = 'rejected'), 0)::float8 as refused
       from tributary.outbox_status o where o.company = c.company and o.state <> 'done') w
   cross join lateral (
     select count(*)::float8 as calls, (count(*) filter (where failed_attempts > 0))::float8 as failing
       from tributary.push_requests p where p.company = c.company and p.state = 'open') k
   cross join lateral (
     select coalesce(json_object_agg(outcome, records), '{}') as resolved from (
       select coalesce(outcome, 'refused') as outcome, count(*) as records from tributary.outbox o
        where o.company = c.company and o.state in ('done', 'rejected')
          and o.resolved_at > (select tributary.now() - interval '1 minute') group by 1) g) r`
})
type Row = Statement.RowOf<typeof metricsStatement>

const metricsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<Metric> => {
  const byCompany = (name: string, help: string, of: (row: Row) => number): Metric =>
    gauge(
      `tributary_${name}`,
      help,
      rows.map((row) => ({ labels: { company: row.company }, value: of(row) }))
    )
  return [
    byCompany("outbox_waiting", "Records to be written to the source and not resolved.", ({ waiting }) => waiting),
    byCompany("outbox_oldest_seconds", "The age of the oldest of them.", ({ oldest }) => oldest),
    byCompany("outbox_refused", "Rejected records, which a person has to correct or retry.", ({ refused }) => refused),
    gauge(
      "tributary_push_records_last_minute",
      "Records resolved within the last minute, by outcome.",
      rows.flatMap(({ company, resolved }) =>
        [...outcomes, "refused"].map((outcome) => ({ labels: { company, outcome }, value: resolved[outcome] ?? 0 }))
      )
    ),
    byCompany("push_calls_open", "Push requests whose outcome is not known yet.", ({ calls }) => calls),
    byCompany("push_calls_failing", "Those of them without a clear answer of the source.", ({ failing }) => failing)
  ]
}

/** The metrics of these companies. */
export const make = (companies: ReadonlyArray<string>) =>
  cached(Effect.map(Statement.run(metricsStatement, [JSON.stringify(companies)]), metricsOf))
