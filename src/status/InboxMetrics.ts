/**
 * The metrics of events and delivery gaps.
 *
 * Promise: the cost of a read does not depend on the size of the inbox. An index finds pending events, dead letters,
 * events of the last minute and open gaps.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import * as FleetMetrics from "./FleetMetrics.ts"
import * as Metrics from "./Metrics.ts"

const gauges = {
  tributary_webhook_events_waiting: "Events accepted and not yet processed.",
  tributary_webhook_events_oldest_seconds: "The age of the oldest of them.",
  tributary_webhook_events_dead: "Dead letters, which a person has to replay.",
  tributary_webhook_events_done_last_minute: "Events processed within the last minute.",
  tributary_webhook_gaps_open:
    "Resources with an open delivery gap: events may have been dropped, and no later read is complete."
}

export const readStatement = Statement.make({
  name: "read the metrics of the inbox",
  params: ["jsonb"],
  columns: { company: "text", ...Metrics.columns(gauges) },
  text: `select c.company, p.*,
                (select coalesce(sum(events), 0)::float8 from tributary.inbox_status s
                  where s.company = c.company and s.state = 'dead_letter') as tributary_webhook_events_dead,
                (select count(*)::float8 from tributary.inbox i
                  where i.company = c.company and i.state in ('done', 'skipped')
                    and i.resolved_at > (select tributary.now() - interval '1 minute')) as tributary_webhook_events_done_last_minute,
                (select count(*)::float8 from tributary.delivery_gaps g
                  where g.company = c.company and g.closed_at is null) as tributary_webhook_gaps_open
           from jsonb_array_elements_text($1::jsonb) as c(company)
           cross join lateral (
             select coalesce(sum(events), 0)::float8 as tributary_webhook_events_waiting,
                    coalesce(extract(epoch from tributary.now() - min(oldest_at)), 0)::float8 as tributary_webhook_events_oldest_seconds
               from tributary.inbox_status s where s.company = c.company and s.state = 'pending') p`
})

/** The metrics of the companies at the time of a read, or of the worst of many. */
export const make = (companies: () => ReadonlyArray<string>) =>
  Metrics.cached(
    Effect.suspend(() => FleetMetrics.labelled(companies())).pipe(
      Effect.flatMap((names) => Statement.run(readStatement, [JSON.stringify(names)])),
      Effect.map((rows) => Metrics.ofColumns(Metrics.gauge, gauges, ["company"], rows))
    )
  )
