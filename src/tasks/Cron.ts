/**
 * The times at which a resource is due: intervals and cron expressions in a time zone.
 *
 * Promise: pure; the same schedule, key and instant give the same time. No time is before its instant, and a later instant
 * never gives an earlier time. When clocks are set back, a time that occurs twice is used once, unless the expression
 * names every hour. When clocks are set forward, a skipped time is used an hour later.
 */

import * as Cron from "effect/Cron"
import * as Duration from "effect/Duration"
import * as Result from "effect/Result"

/** The timing of a schedule. */
export type Timing =
  | { readonly kind: "off" }
  | { readonly kind: "every"; readonly interval: Duration.Duration }
  /** `timeZone` is a name of the IANA database. */
  | { readonly kind: "cron"; readonly expression: string; readonly timeZone: string }

export interface ResourceSchedule {
  readonly timing: Timing
  /** The times that passed while no process could run: one run for all of them, or none. */
  readonly missed: "once" | "skip"
  /** The maximum delay of a run after its time, so that runs do not all begin at once; null is the default. */
  readonly jitterMax: Duration.Duration | null
}

const parse = (expression: string, timeZone: string) => {
  const hours = expression.trim().split(/\s+/).at(-4) ?? ""
  return Cron.parse(expression, timeZone, { onDstOverlap: hours.startsWith("*") ? "both" : "earlier" })
}

/** The nearest time before or after an instant; null when there is none. */
const occurrence = (step: typeof Cron.next, cron: Cron.Cron, instantMs: number): number | null =>
  Result.getOrElse(
    Result.try(() => step(cron, new Date(instantMs)).getTime()),
    () => null
  )

const hourMs = 3_600_000

/** As {@link occurrence}; from within the hour in which a skipped time is used, `Cron.next` does not find that time. */
const following = (cron: Cron.Cron, instantMs: number): number | null => {
  const found = occurrence(Cron.next, cron, instantMs)
  const skipped = occurrence(Cron.next, cron, instantMs - hourMs)
  return found === null || skipped === null || skipped <= instantMs ? found : Math.min(found, skipped)
}

/** Begins a cycle of leap years. */
const anyDay = Date.UTC(2024, 0, 1)

/** The error of a cron expression; undefined when it is valid. */
export const wrongCron = (expression: string): string | undefined => {
  const parsed = parse(expression, "UTC")
  if (Result.isFailure(parsed)) {
    return `"${expression}" is no cron expression (${parsed.failure.message}); expected minute, hour, day of month, month and weekday`
  }
  return occurrence(Cron.next, parsed.success, anyDay) === null ? `"${expression}" matches no time` : undefined
}

const jitterShare = 0.1
const jitterMaxMs = 60_000

/** From 0 to 1, the same for the same text and spread evenly over texts (FNV-1a, mixed once more). */
const fraction = (text: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** The times of a schedule, as instants. */
interface Times {
  /** The first one after an instant. */
  readonly after: (instantMs: number) => number | null
  /** The last one before an instant. */
  readonly before: (instantMs: number) => number | null
  readonly jitterMs: number
}

const timesOf = ({ timing, jitterMax }: ResourceSchedule, lastBeganMs: number | null): Times | null => {
  if (timing.kind === "off") return null
  if (timing.kind === "every") {
    const everyMs = Duration.toMillis(timing.interval)
    const origin = lastBeganMs ?? 0
    return {
      after: (instantMs) => origin + everyMs * (Math.floor((instantMs - origin) / everyMs) + 1),
      before: (instantMs) => origin + everyMs * (Math.ceil((instantMs - origin) / everyMs) - 1),
      jitterMs: jitterMax === null ? Math.min(everyMs * jitterShare, jitterMaxMs) : Duration.toMillis(jitterMax)
    }
  }
  const cron = parse(timing.expression, timing.timeZone)
  return Result.isFailure(cron)
    ? null
    : {
        after: (instantMs) => following(cron.success, instantMs),
        before: (instantMs) => occurrence(Cron.prev, cron.success, instantMs),
        jitterMs: Duration.toMillis(jitterMax ?? Duration.zero)
      }
}

/**
 * The next time of a schedule whose last run began at `lastBeganMs`, seen from `afterMs`; both, and the result, in
 * milliseconds since 1970. Null when there is no next time.
 *
 * Intervals count from the begin of the last run. Without a last run, an interval is due at once, and cron at its next
 * time. A time that has passed since the last run is due at once under `once`, and left out under `skip`. `key` separates
 * tasks with the same schedule, so that they do not begin together.
 */
export const next = (
  schedule: ResourceSchedule,
  afterMs: number,
  key: string,
  lastBeganMs: number | null
): number | null => {
  const times = timesOf(schedule, lastBeganMs)
  if (times === null) return null
  if (lastBeganMs === null && schedule.timing.kind === "every") return afterMs
  /** A time with its jitter, which never reaches the time after it. */
  const spread = (timeMs: number): number => {
    const following = times.after(timeMs) ?? Number.POSITIVE_INFINITY
    return timeMs + Math.floor(Math.min(times.jitterMs, following - timeMs) * fraction(`${key} ${timeMs}`))
  }
  // Without a last run, the current time counts: it may be this instant, or its jitter may not have passed yet.
  const current = lastBeganMs === null ? times.before(afterMs) : null
  if (current !== null && spread(current) >= afterMs) return spread(current)
  const first = times.after(lastBeganMs ?? afterMs - 1)
  if (first === null) return null
  const firstMs = spread(first)
  if (firstMs >= afterMs) return firstMs
  if (schedule.missed === "once") return afterMs
  // Because of its jitter, the last time before the instant may still begin after it.
  const last = spread(times.before(afterMs) ?? first)
  if (last >= afterMs) return last
  const coming = times.after(afterMs - 1)
  return coming === null ? null : spread(coming)
}

/** The schedule as text, for people: `every 10 min`, `0 3 * * * (Europe/Berlin)`, `off`. */
export const describe = ({ timing }: ResourceSchedule): string => {
  switch (timing.kind) {
    case "off":
      return "off"
    case "every":
      return `every ${inWords(Duration.toMillis(timing.interval))}`
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
