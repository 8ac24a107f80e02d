/** Metrics of the endpoints that get the changes of the warehouse. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import * as Metrics from "./Metrics.ts"

const gauges = {
  tributary_endpoint_active: "1 while the endpoint gets changes; 0 while it is paused or dead.",
  tributary_endpoint_lag_seconds: "The age of the oldest change that the endpoint has not accepted; 0 for none.",
  tributary_endpoint_waiting: "Changes that the endpoint did not accept, and that are sent again.",
  tributary_endpoint_dead_letters: "Changes that the endpoint did not accept, and that are sent again only on request."
}

export const metricsStatement = Statement.make({
  name: "read the metrics of the endpoints",
  columns: { endpoint: "text", ...Metrics.columns(gauges) },
  text: `select e.name as endpoint, (e.state = 'active')::int::float8 as tributary_endpoint_active,
                coalesce(extract(epoch from tributary.now() - least(r.since, b.landed_at)), 0)::float8 as tributary_endpoint_lag_seconds,
                r.waiting::float8 as tributary_endpoint_waiting, r.dead::float8 as tributary_endpoint_dead_letters
           from tributary.change_endpoints e
          cross join lateral (
            select count(*) filter (where state = 'waiting') as waiting, count(*) filter (where state = 'dead') as dead,
                   min(failed_at) filter (where state = 'waiting') as since
              from tributary.change_retries where endpoint = e.name) r
           left join lateral (
             select landed_at from tributary.change_batches where last_position > e.last_position order by last_position limit 1) b on true
          order by e.name limit 100`
})

/** The metrics at the time of a read. */
export const make = Metrics.cached(
  Effect.map(Statement.run(metricsStatement), (rows) => Metrics.ofColumns(Metrics.gauge, gauges, ["endpoint"], rows))
)
