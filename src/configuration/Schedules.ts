/** The schedule of `serve` and the freshness target of each resource. */
import * as Duration from "effect/Duration"
import * as Cron from "../tasks/Cron.ts"
import type { ResourceSchedule } from "../tasks/Cron.ts"
import { freshnessDefault } from "../sync/Sync.ts"
import type { Inputs } from "./Inputs.ts"
import type { Timing } from "./ScheduleSettings.ts"

/** The maximum age of a resource. */
export const freshnessOf =
  ({ settings: { freshness } }: Inputs) =>
  (resource: string): Duration.Duration =>
    freshness?.resources?.[resource] ?? freshness?.default_minutes ?? freshnessDefault

/** The interval that meets the freshness target: two thirds of it. */
const intervalDefault = (freshness: Duration.Duration): Duration.Duration =>
  Duration.max(Duration.minutes(1), Duration.millis(Math.round((Duration.toMillis(freshness) * 2) / 3)))

export const schedulesOf = (inputs: Inputs): ((resource: string) => ResourceSchedule) => {
  const {
    place,
    problems,
    settings: { schedule = {} }
  } = inputs
  const optionsOf = (own: Exclude<Timing, "off"> | undefined): Omit<ResourceSchedule, "timing"> => ({
    missed: own?.missed ?? schedule.missed ?? "once",
    jitterMax: own?.jitter_seconds ?? schedule.jitter_seconds ?? null
  })
  const scheduleFrom = (timing: Timing, where: ReadonlyArray<string>): ResourceSchedule => {
    if (timing === "off") return { ...optionsOf(undefined), timing: { kind: "off" } }
    if ("every" in timing) return { ...optionsOf(timing), timing: { kind: "every", interval: timing.every } }
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
  const targetOf = freshnessOf(inputs)
  return (resource) =>
    byResource.get(resource) ??
    fallback ?? {
      ...optionsOf(undefined),
      timing: { kind: "every", interval: intervalDefault(targetOf(resource)) }
    }
}
