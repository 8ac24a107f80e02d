/** The settings of the schedule of `serve`. */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { between, choice, seconds, meaning, pattern, required, ruled, section, setting } from "./SettingValues.ts"

const units = { s: "seconds", m: "minutes", h: "hours", d: "days" } as const

/** An interval such as `90s`. */
export const interval = meaning(
  pattern(/^[1-9]\d{0,5}(s|m|h|d)$/u, "Expected a number and s, m, h or d, for example 90s or 10m"),
  Schema.Duration,
  (text) => Duration.fromInputUnsafe(`${Number(text.slice(0, -1))} ${units[text.slice(-1) as keyof typeof units]}`)
)
const timeZone = ruled(
  "the name of a time zone, for example Europe/Berlin or UTC",
  (name) =>
    Intl.supportedValuesOf("timeZone").includes(name) ||
    name === "UTC" ||
    "Expected the name of a time zone, for example Europe/Berlin or UTC"
)
const missed = Schema.Literals(["once", "skip"])
const jitter = seconds(between(0, 3600))

/** The settings of a resource that the schedule has too. */
const ownSettings = {
  missed: setting("missed", missed, "times that passed while no process ran; default: that of schedule.missed"),
  jitterMax: setting(
    "jitter_seconds",
    jitter,
    "the maximum random delay of a run; default: that of schedule.jitter_seconds"
  )
}

/** When a resource is synced by `serve`. */
export const Timing = choice(
  [
    Schema.Literal("off"),
    section({ every: required("every", interval, "an interval: 90s, 10m, 2h or 1d"), ...ownSettings }),
    section({
      cron: required(
        "cron",
        Schema.String,
        "five fields (minute, hour, day, month, weekday), or six with seconds first"
      ),
      timeZone: setting("time_zone", timeZone, "the time zone of the expression; default: that of schedule.time_zone"),
      ...ownSettings
    })
  ],
  'Expected off, { every: 10m } or { cron: "0 3 * * *" }'
)
export type Timing = typeof Timing.Type

export const Schedules = section({
  default: setting(
    "default",
    Timing,
    "when resources are synced by tributary serve; off, { every: 10m } or { cron: ... }; default: every two thirds of " +
      "the freshness target"
  ),
  resources: setting("resources", Schema.Record(Schema.String, Timing), "other times for single resources", {}),
  timeZone: setting("time_zone", timeZone, "the time zone of cron expressions", "UTC"),
  missed: setting(
    "missed",
    missed,
    "times that passed while no process ran: once makes up for all of them by one run, skip waits for the next",
    "once"
  ),
  jitterMax: setting(
    "jitter_seconds",
    jitter,
    "the maximum random delay of a run, which spreads the load; default: a tenth of an " +
      "interval, at most 60, and 0 for cron"
  )
})
