/** The schedule of `serve` and the freshness target of each resource. */
import * as Duration from "effect/Duration"
import * as Cron from "../tasks/Cron.ts"
import type { Inputs } from "./Inputs.ts"
import type { Timing } from "./ScheduleSettings.ts"

/** The maximum age of a resource. */
export const freshnessOf =
  ({ settings: { freshness } }: Inputs) =>
  (resource: string): Duration.Duration =>
    freshness.resources[resource] ?? freshness.default

/** The interval that meets the freshness target: two thirds of it. */
const intervalDefault = (freshness: Duration.Duration): Duration.Duration =>
  Duration.max(Duration.minutes(1), Duration.millis(Math.round((Duration.toMillis(freshness) * 2) / 3)))

export const schedulesOf = (inputs: Inputs): ((resource: string) => Cron.ResourceSchedule) => {
  const { place, problems, settings } = inputs
  const { missed, jitterMax, timeZone } = settings.schedule
  const scheduleFrom = (timing: Timing, ...where: ReadonlyArray<string>): Cron.ResourceSchedule => {
    if (timing === "off") return { missed, jitterMax, timing: { kind: "off" } }
    const own = { missed: timing.missed ?? missed, jitterMax: timing.jitterMax ?? jitterMax }
    if ("every" in timing) return { ...own, timing: { kind: "every", interval: timing.every } }
    const wrong = Cron.wrongCron(timing.cron)
    if (wrong !== undefined) problems.push(`${place("schedule", ...where, "cron")}: ${wrong}`)
    return { ...own, timing: { kind: "cron", expression: timing.cron, timeZone: timing.timeZone ?? timeZone } }
  }
  const byResource = new Map(
    Object.entries(settings.schedule.resources).map(([resource, timing]) => [
      resource,
      scheduleFrom(timing, "resources", resource)
    ])
  )
  const fallback = settings.schedule.default === null ? null : scheduleFrom(settings.schedule.default, "default")
  const targetOf = freshnessOf(inputs)
  return (resource) =>
    byResource.get(resource) ??
    fallback ?? { missed, jitterMax, timing: { kind: "every", interval: intervalDefault(targetOf(resource)) } }
}
