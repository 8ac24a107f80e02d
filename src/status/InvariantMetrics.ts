/** Metrics of invariants: their open violations, and those that could not be evaluated. */
import * as Effect from "effect/Effect"
import * as Invariants from "./Invariants.ts"
import * as Metrics from "./Metrics.ts"

/** Rules with metrics of their own. */
const labelledMax = 200

/** The metrics at the time of a read, over all companies. */
export const make = Metrics.cached(
  Effect.map(Invariants.summary(null), (all) => {
    const rules = all.slice(0, labelledMax)
    return [
      Metrics.gauge(
        "tributary_invariant_violations",
        "Open violations of the invariant, over all companies.",
        rules.map(({ name, severity, open }) => ({ labels: { invariant: name, severity }, value: open }))
      ),
      Metrics.gauge(
        "tributary_invariant_failed",
        "Companies for which the invariant could not be evaluated.",
        rules.map(({ name, severity, failed }) => ({ labels: { invariant: name, severity }, value: failed }))
      )
    ]
  })
)
