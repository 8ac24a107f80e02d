/**
 * When a resource is due: intervals and cron expressions in a time zone.
 *
 * Promise: pure; the same schedule, key and instant answer the same time. Times never lie before the instant that they are
 * asked for, and a later instant never answers an earlier time. Where clocks are set back, a time that comes twice is kept
 * once, unless the expression says every hour; one that is skipped where they are set forward is kept an hour later.
 */

import * as Cron from "effect/Cron"
import * as Duration from "effect/Duration"
import * as Result from "effect/Result"

/** When something runs. */
export type Timing =
  | { readonly kind: "off" }
  | { readonly kind: "every"; readonly interval: Duration.Duration }
  /** `timeZone` is a name of the IANA database. */
  | { readonly kind: "cron"; readonly expression: string; readonly timeZone: string }

export interface ResourceSchedule {
  readonly timing: Timing
  /** What becomes of times that passed while nothing could run: made up for by one run, or left out. */
  readonly missed: "once" | "skip"
  /** At most so much later than its time does a run begin, so that not everything begins at once; null is the default. */
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

/** Begins a cycle of leap years. */
const anyDay = Date.UTC(2024, 0, 1)

/** What is wrong with a cron expression, or undefined. */
export const wrongCron = (expression: string): string | undefined => {
  const parsed = parse(expression, "UTC")
  if (Result.isFailure(parsed)) {
    return `"${expression}" is no cron expression (${parsed.failure.message}); expected minute, hour, day of month, month and weekday`
  }
  return occurrence(Cron.next, parsed.success, anyDay) === null
    ? `"${expression}" names no time that ever comes`
    : undefined
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
        after: (instantMs) => occurrence(Cron.next, cron.success, instantMs),
        before: (instantMs) => occurrence(Cron.prev, cron.success, instantMs),
        jitterMs: Duration.toMillis(jitterMax ?? Duration.zero)
      }
}

/**
 * When something that last began at `lastBeganMs` runs next, seen from `afterMs`; both, and the answer, in milliseconds
 * since 1970. Null when nothing says so.
 *
 * Intervals count from when it last began; what never ran is due at once by an interval, and at its next time by cron. A
 * time that has passed since it last began is due at once under `once`, and left out under `skip`. `key` tells those apart
 * that share a schedule, so that they do not begin together.
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
  // What never ran is due at the time whose turn it is: it may be this very instant, or begin by its jitter still.
  const current = lastBeganMs === null ? times.before(afterMs) : null
  if (current !== null && spread(current) >= afterMs) return spread(current)
  const first = times.after(lastBeganMs ?? afterMs - 1)
  if (first === null) return null
  const firstMs = spread(first)
  if (firstMs >= afterMs) return firstMs
  if (schedule.missed === "once") return afterMs
  // By its jitter, the last one before may begin after the instant still.
  const last = spread(times.before(afterMs) ?? first)
  if (last >= afterMs) return last
  const following = times.after(afterMs - 1)
  return following === null ? null : spread(following)
}

/** In words, for people: `every 10 min`, `0 3 * * * (Europe/Berlin)`, `off`. */
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
