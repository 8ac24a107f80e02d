/** When `serve` syncs a resource, and how old its rows may be. */
import * as Cron from "../tasks/Cron.ts"
import type { ResourceSchedule } from "../tasks/Cron.ts"
import { freshnessDefaultMs } from "../sync/Sync.ts"
import type { Inputs } from "./Inputs.ts"
import type { Timing } from "./ScheduleSettings.ts"

/** How old a resource may be at most, in milliseconds. */
export const freshnessOf =
  ({ settings: { freshness } }: Inputs) =>
  (resource: string): number => {
    const minutes = freshness?.resources?.[resource] ?? freshness?.default_minutes
    return minutes === undefined ? freshnessDefaultMs : minutes * 60_000
  }

const unitsMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Milliseconds of `90s`, `10m`, `2h` or `1d`, whose form the Schema has checked. */
const durationMs = (text: string): number => Number(text.slice(0, -1)) * (unitsMs[text.slice(-1)] ?? 0)

/** The interval that meets the freshness target: two thirds of it. */
const intervalDefaultMs = (freshnessMs: number): number => Math.max(60_000, Math.round((freshnessMs * 2) / 3))

export const schedulesOf = (inputs: Inputs): ((resource: string) => ResourceSchedule) => {
  const {
    place,
    problems,
    settings: { schedule = {} }
  } = inputs
  const optionsOf = (own: Exclude<Timing, "off"> | undefined): Omit<ResourceSchedule, "timing"> => {
    const jitterSeconds = own?.jitter_seconds ?? schedule.jitter_seconds
    return {
      missed: own?.missed ?? schedule.missed ?? "once",
      jitterMs: jitterSeconds === undefined ? null : jitterSeconds * 1000
    }
  }
  const scheduleFrom = (timing: Timing, where: ReadonlyArray<string>): ResourceSchedule => {
    if (timing === "off") return { ...optionsOf(undefined), timing: { kind: "off" } }
    if ("every" in timing) return { ...optionsOf(timing), timing: { kind: "every", everyMs: durationMs(timing.every) } }
    const timeZone = timing.time_zone ?? schedule.time_zone ?? "UTC"
    const wrong = Cron.wrongCron(timing.cron)
    if (wrong !== undefined) problems.push(`${place("schedule", ...where, "cron")}: ${wrong}`)
    return { ...optionsOf(timing), timing: { kind: "cron", expression: timing.cron, timeZone } }
  }
  const byResource = new Map(
    Object.entries(schedule.resources ?? {}).map(([resource, timing]) => [
      resource,
      scheduleFrom(timing, ["resources", resource])
    ])
  )
  const fallback = schedule.default === undefined ? undefined : scheduleFrom(schedule.default, ["default"])
  const freshnessMs = freshnessOf(inputs)
  return (resource) =>
    byResource.get(resource) ??
    fallback ?? {
      ...optionsOf(undefined),
      timing: { kind: "every", everyMs: intervalDefaultMs(freshnessMs(resource)) }
    }
}
