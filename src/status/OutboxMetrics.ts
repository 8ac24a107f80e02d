/**
 * Metrics of the outbox.
 *
 * Promise: the cost of a read does not grow with the pushes: it counts open rows, rejected rows, open requests and the
 * rows of the last minute.
 */
import * as Effect from "effect/Effect"
import { outcomes } from "../outbox/Push.ts"
import * as Statement from "../postgres/Statement.ts"
import * as FleetMetrics from "./FleetMetrics.ts"
import * as Metrics from "./Metrics.ts"

const gauges = {
  tributary_outbox_waiting: "Records to be written to the source and not resolved.",
  tributary_outbox_oldest_seconds: "The age of the oldest of them.",
  tributary_outbox_rejected: "Rejected records, which a person has to correct or retry.",
  tributary_push_calls_open: "Push requests whose outcome is not known yet.",
  tributary_push_calls_failing: "Those of them without a clear answer of the source."
}

export const metricsStatement = Statement.make({
  name: "read the metrics of the outbox",
  params: ["jsonb"],
  columns: {
    company: "text",
    ...Metrics.columns(gauges),
    /** Records resolved within the last minute, by outcome; an outcome without records is absent. */
    resolved: Statement.as<Readonly<Record<string, number>>>("json")
  },
  text: `select c.company, w.*, k.*, r.*
    from jsonb_array_elements_text($1::jsonb) as c(company)
   cross join lateral (
     select coalesce(sum(records) filter (where state <> 'rejected'), 0)::float8 as tributary_outbox_waiting,
            coalesce(extract(epoch from tributary.now() - min(oldest_at) filter (where state <> 'rejected')), 0)::float8
              as tributary_outbox_oldest_seconds,
            coalesce(sum(records) filter (where state = 'rejected'), 0)::float8 as tributary_outbox_rejected
       from tributary.outbox_status o where o.company = c.company and o.state <> 'done') w
   cross join lateral (
     select count(*)::float8 as tributary_push_calls_open,
            (count(*) filter (where failed_attempts > 0))::float8 as tributary_push_calls_failing
       from tributary.push_requests p where p.company = c.company and p.state = 'open') k
   cross join lateral (
     select coalesce(json_object_agg(outcome, records), '{}') as resolved from (
       select coalesce(outcome, 'rejected') as outcome, count(*) as records from tributary.outbox o
        where o.company = c.company and o.state in ('done', 'rejected')
          and o.resolved_at > (select tributary.now() - interval '1 minute') group by 1) g) r`
})

const metricsOf = (rows: ReadonlyArray<Statement.RowOf<typeof metricsStatement>>): ReadonlyArray<Metrics.Metric> => [
  ...Metrics.ofColumns(Metrics.gauge, gauges, ["company"], rows),
  Metrics.gauge(
    "tributary_push_records_last_minute",
    "Records resolved within the last minute, by outcome.",
    rows.flatMap(({ company, resolved }) =>
      [...outcomes, "rejected"].map((outcome) => ({ labels: { company, outcome }, value: resolved[outcome] ?? 0 }))
    )
  )
]

/** The metrics of the companies at the time of a read, or of the worst of many. */
export const make = (companies: () => ReadonlyArray<string>) =>
  Metrics.cached(
    Effect.suspend(() => FleetMetrics.labelled(companies())).pipe(
      Effect.flatMap((names) => Statement.run(metricsStatement, [JSON.stringify(names)])),
      Effect.map(metricsOf)
    )
  )
