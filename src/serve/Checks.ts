/** How a process spreads the checks of its companies for missed events. */
import * as Duration from "effect/Duration"
import type * as Semaphore from "effect/Semaphore"
import { bucketCount, bucketOf } from "../processes/Ownership.ts"

/** The first checks of many companies are spread over this time for each. */
const checkSpreadMs = 200
/** Companies that are checked at the same time; more would wait for connections. */
export const checksAtOnce = 32

/** What the checks of all companies of the process share. */
export interface Checking {
  readonly companies: () => number
  readonly checks: Semaphore.Semaphore
}

/** The delay of a company's first check: the checks of thousands never begin at the same time. */
export const firstCheckDelay = (
  name: string,
  companies: number,
  checkInterval: Duration.Duration
): Duration.Duration => {
  const spread = Duration.min(checkInterval, Duration.millis((companies - 1) * checkSpreadMs))
  return Duration.times(spread, bucketOf(name) / bucketCount)
}
