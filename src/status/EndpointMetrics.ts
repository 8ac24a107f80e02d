/** Metrics of the endpoints that get the changes of the warehouse, and of the routes of its alerts. */
import * as Effect from "effect/Effect"
import * as EndpointStore from "../delivery/EndpointStore.ts"
import * as Metrics from "./Metrics.ts"

const gauges = {
  tributary_endpoint_active:
    "1 while the endpoint, or the alert route, gets changes or messages; 0 while it is paused or dead.",
  tributary_endpoint_lag_seconds:
    "The age of the oldest change or message that the endpoint has not accepted; 0 for none.",
  tributary_endpoint_waiting:
    "Changes or messages that the endpoint did not accept, and that are sent again, or that wait for a digest.",
  tributary_endpoint_dead_letters:
    "Changes or messages that the endpoint did not accept, and that are sent again only on request."
}

const endpointsMax = 100

/** The metrics at the time of a read. */
export const make = Metrics.cached(
  Effect.map(EndpointStore.list, (endpoints) => {
    const rows = endpoints.slice(0, endpointsMax).map(({ name, state, lagMs, waiting, dead }) => ({
      endpoint: name,
      tributary_endpoint_active: state === "active" ? 1 : 0,
      tributary_endpoint_lag_seconds: (lagMs ?? 0) / 1000,
      tributary_endpoint_waiting: Number(waiting ?? 0n),
      tributary_endpoint_dead_letters: Number(dead ?? 0n)
    }))
    return Metrics.ofColumns(Metrics.gauge, gauges, ["endpoint"], rows)
  })
)
