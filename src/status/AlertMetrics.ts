/** Metrics of alerts: the conditions that have started. */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import * as Metrics from "./Metrics.ts"

const countConditions = Query.first(
  control
    .selectFrom("tributary.alert_conditions")
    .select((of) => of.fn.countAll<bigint>().as("conditions"))
    .where("started_at", "is not", null)
)

/** The metrics of alerts. Those of their messages are in `EndpointMetrics.ts`. */
export const make = Metrics.cached(
  Effect.map(countConditions, (row) => [
    Metrics.gauge("tributary_alert_conditions", "Conditions of alerts that have started and not ended.", [
      { value: Number(row!.conditions) }
    ])
  ])
)
