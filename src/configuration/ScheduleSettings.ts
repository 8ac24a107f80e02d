/** The settings of the schedule of `serve`. */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { between, described, durationIn, pattern } from "./SettingValues.ts"

const units = { s: "seconds", m: "minutes", h: "hours", d: "days" } as const

/** An interval such as `90s`. */
const interval = pattern(/^[1-9]\d{0,5}(s|m|h|d)$/u, "Expected a number and s, m, h or d, for example 90s or 10m").pipe(
  Schema.decodeTo(
    Schema.Duration,
    SchemaTransformation.transform({
      decode: (text) =>
        Duration.fromInputUnsafe(`${Number(text.slice(0, -1))} ${units[text.slice(-1) as keyof typeof units]}`),
      encode: (duration) => `${Duration.toSeconds(duration)}s`
    })
  )
)
const timeZone = Schema.String.check(
  Schema.makeFilter(
    (name: string) =>
      Intl.supportedValuesOf("timeZone").includes(name) ||
      name === "UTC" ||
      "Expected the name of a time zone, for example Europe/Berlin or UTC"
  )
)
const missed = Schema.Literals(["once", "skip"])
const jitter = durationIn("seconds", between(0, 3600))

/** When a resource is synced by `serve`. */
export const Timing = Schema.Union([
  Schema.Literal("off"),
  Schema.Struct({
    every: interval.pipe(Schema.annotateEncoded({ description: "an interval: 90s, 10m, 2h or 1d" })),
    missed: described(missed, "default: that of schedule.missed"),
    jitter_seconds: described(jitter, "default: that of schedule.jitter_seconds")
  }),
  Schema.Struct({
    cron: Schema.String.annotate({
      description: "five fields (minute, hour, day, month, weekday), or six with seconds first"
    }),
    time_zone: described(timeZone, "default: that of schedule.time_zone"),
    missed: described(missed, "default: that of schedule.missed"),
    jitter_seconds: described(jitter, "default: that of schedule.jitter_seconds")
  })
])

export const Schedules = Schema.Struct({
  default: described(
    Timing,
    "when resources are synced by tributary serve; off, { every: 10m } or { cron: ... }; default: every two thirds of " +
      "the freshness target"
  ),
  resources: described(Schema.Record(Schema.String, Timing), "other times for single resources"),
  time_zone: described(timeZone, "the time zone of cron expressions; default UTC"),
  missed: described(
    missed,
    "times that passed while no process ran: once makes up for all of them by one run, skip waits for the next; default once"
  ),
  jitter_seconds: described(
    jitter,
    "the maximum random delay of a run, which spreads the load; default: a tenth of an " +
      "interval, at most 60, and 0 for cron"
  )
})

export type Timing = typeof Timing.Type
