/** Refusals for too many requests, first in a row and then whenever a client is too fast. */
import { random } from "../random.ts"
import type { Scenario } from "./Scenario.ts"

const requestsPerMinute = 30
const retryAfterSeconds = 2

export const rateLimitStorm: Scenario = {
  name: "rate-limit-storm",
  description: `Answers the next requests 429 with Retry-After: ${retryAfterSeconds}, and from then on allows ${requestsPerMinute} requests per minute and install. A client waits for that time, does not count the refusals as failures of its work, and slows down. It replaces the fault rules.`,
  defaults: { count: 20 },
  run: (world, { count }) => {
    const rule = {
      kind: "status",
      method: null,
      path: null,
      after: 0,
      times: count,
      rate: 1,
      status: 429,
      code: "rate_limited",
      headers: { "Retry-After": String(retryAfterSeconds) },
      body: null,
      ms: 50,
      bytes: null
    } as const
    world.faults.arm([rule], random(1))
    world.limits = { ...world.limits, requestsPerMinute, rateScope: "install" }
    return { refused: count, retryAfterSeconds, requestsPerMinute }
  }
}
