/** Receivers of webhooks that cannot be reached for a time. */
import { microsPerSecond, printInstant } from "../time.ts"
import type { Scenario } from "./Scenario.ts"

export const webhookOutage: Scenario = {
  name: "webhook-outage",
  description:
    "No delivery reaches its receiver for some hours of the server's clock. Events wait, are abandoned after their last attempt, and in the end the subscription is disabled. A client must enable it again and read what it missed from the lists.",
  defaults: { hours: 3 },
  run: (world, { hours }) => {
    const until = world.clock.now() + Math.round(hours * 3600 * microsPerSecond)
    world.events.outageUntil = until
    return { until: printInstant(until) }
  }
}
