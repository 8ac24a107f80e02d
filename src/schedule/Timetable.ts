/**
 * When a resource is due: intervals and cron expressions in a time zone.
 *
 * Promise: pure; the same schedule, key and instant answer the same time. Times never lie before the instant that they are
 * asked for.
 */

import * as Cron from "effect/Cron"
import * as Result from "effect/Result"

/** When something runs. */
export type Timing =
  | { readonly kind: "off" }
  | { readonly kind: "every"; readonly everyMs: number }
  /** `timeZone` is a name of the IANA database. */
  | { readonly kind: "cron"; readonly expression: string; readonly timeZone: string }

export interface ResourceSchedule {
  readonly timing: Timing
  /** What becomes of times that passed while nothing could run: made up for by one run, or left out. */
  readonly missed: "once" | "skip"
  /** At most so much later than its time does a run begin, so that not everything begins at once; null is the default. */
  readonly jitterMs: number | null
}

/** What is wrong with a cron expression, or undefined. */
export const wrongCron = (expression: string): string | undefined => {
  const parsed = Cron.parse(expression)
  return Result.isSuccess(parsed)
    ? undefined
    : `"${expression}" is no cron expression (${parsed.failure.message}); expected minute, hour, day of month, month and weekday`
}

/** In words, for people: `every 10 min`, `0 3 * * * (Europe/Berlin)`, `off`. */
export const describe = ({ timing }: ResourceSchedule): string => {
  switch (timing.kind) {
    case "off":
      return "off"
    case "every":
      return `every ${inWords(timing.everyMs)}`
    case "cron":
      return `${timing.expression} (${timing.timeZone})`
  }
}

const units = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"]
] as const

/** The largest unit that divides it: 90 s, 10 min, 2 h. */
const inWords = (ms: number): string => {
  const [unitMs, name] = units.find(([unitMs]) => ms % unitMs === 0) ?? [1, "ms"]
  return `${ms / unitMs} ${name}`
}
