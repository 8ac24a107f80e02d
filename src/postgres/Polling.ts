/** How often a process looks for work that nothing announced, so that hundreds of companies leave statements to the work. */
import * as Duration from "effect/Duration"

/** A look for each company each second, while there are few companies. */
const intervalMin = Duration.seconds(1)
/** Looks of one kind and process are at least so far apart. */
const apart = Duration.millis(20)

/** The pause between two looks for the same company, where a process looks for so many. */
export const interval = (companies: number): Duration.Duration =>
  Duration.max(intervalMin, Duration.times(apart, companies))
