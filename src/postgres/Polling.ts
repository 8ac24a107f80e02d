/**
 * The polling interval for work that nothing announced. It grows with the number of companies, so that polls stay few.
 */
import * as Duration from "effect/Duration"

/** The interval of a company while there are few companies. */
const intervalMin = Duration.seconds(1)
/** The minimum time between two polls of one kind and process. */
const apart = Duration.millis(20)

/** The pause between two polls for the same company, for a process with this number of companies. */
export const interval = (companies: number): Duration.Duration =>
  Duration.max(intervalMin, Duration.times(apart, companies))
