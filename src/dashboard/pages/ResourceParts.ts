/** The parts of a resource's page: freshness, changes and runs over time, and its fields. */
import * as RunDetails from "../../status/RunDetails.ts"
import type { Run } from "../../status/Runs.ts"
import { ago, badge, count, duration, none, section, table } from "../../web/Components.ts"
import { plural, visible } from "../../web/Escape.ts"
import { minute } from "../../web/Times.ts"
import { runAddress } from "../Addresses.ts"
import { html, type Html } from "../Page.ts"
import { type Bar, barChart, wholeNumber } from "../RunCharts.ts"

const hourMs = 3_600_000

// --------------------------------------------------------------------------------------------------------------- hours

type Hour = RunDetails.ResourceHour

const changesOf = ({ inserted, updated, deleted }: Pick<Run, "inserted" | "updated" | "deleted">): number =>
  inserted + updated + deleted

/** A bar for each hour of the chart; an hour without data has none. */
const barsOf = (hours: ReadonlyArray<Hour>, now: Date, barOf: (hour: Hour) => Omit<Bar, "to">): ReadonlyArray<Bar> => {
  const last = Math.floor(now.getTime() / hourMs) * hourMs
  const byTime = new Map(hours.map((hour) => [hour.at.getTime(), hour]))
  return Array.from({ length: RunDetails.hoursShown + 1 }, (_, index): Bar => {
    const hour = byTime.get(last - (RunDetails.hoursShown - index) * hourMs)
    return hour === undefined ? { text: "", to: null, value: null, tone: "plain" } : { ...barOf(hour), to: null }
  })
}

const hoursTable = (hours: ReadonlyArray<Hour>): Html =>
  table(
    "The last two days by hour, newest first",
    "Hour, #Highest age, #Share of the target, #Runs, #New rows, #Changed rows, #Deleted rows",
    hours
      .toReversed()
      .map(({ at, ageMs, lateness, runs, inserted, updated, deleted }) => [
        minute(at),
        ageMs === null ? none("not known") : duration(ageMs),
        lateness === null ? none("no target") : `${Math.round(lateness * 100)} %`,
        count(runs),
        count(inserted),
        count(updated),
        count(deleted)
      ])
  )

const latenessWords = (hours: ReadonlyArray<Hour>): string => {
  const known = hours.filter(({ lateness }) => lateness !== null)
  const late = known.filter(({ lateness }) => lateness! > 1)
  return known.length === 0
    ? "No lateness is stored for the last two days."
    : `Late in ${count(late.length)} of ${plural(known.length, "hour")} that the last two days have figures of.`
}

/** The highest age and the changes of each hour. */
export const hoursPart = (hours: ReadonlyArray<Hour>, targetMs: number | null, now: Date): Html => {
  if (hours.length === 0) return html``
  const ends = ["48 hours ago", "now"] as const
  const ages = barsOf(hours, now, ({ at, ageMs, lateness }) => ({
    text: `${minute(at)}: ${ageMs === null ? "the age is not known" : `at most ${duration(ageMs)} old`}`,
    value: ageMs,
    tone: lateness !== null && lateness > 1 ? "bad" : "plain"
  }))
  const changed = barsOf(hours, now, (hour) => ({
    text: `${minute(hour.at)}: ${plural(changesOf(hour), "change")} in ${plural(hour.runs, "run")}`,
    value: changesOf(hour),
    tone: "plain"
  }))
  return section(
    "hours",
    "Freshness and changes",
    html`<p>${latenessWords(hours)}</p>
      <div class="beside">
        <figure>
          ${barChart(ages, {
            id: "ages",
            title: "Highest age by hour",
            format: duration,
            ends,
            target: targetMs === null ? null : { value: targetMs, text: `target ${duration(targetMs)}` }
          })}
        </figure>
        <figure>
          ${barChart(changed, { id: "changed", title: "Changes by hour", format: wholeNumber, ends, target: null })}
        </figure>
      </div>
      <details id="hours-as-figures">
        <summary>The hours as figures</summary>
        ${hoursTable(hours)}
      </details>`
  )
}

// ---------------------------------------------------------------------------------------------------------------- runs

const tones: Readonly<Record<Run["status"], Bar["tone"]>> = {
  running: "plain",
  done: "plain",
  quarantined: "warn",
  abandoned: "warn",
  failed: "bad"
}

/** Duration and requests of runs, given newest first; each bar links to its run. */
export const runChartsPart = (runs: ReadonlyArray<Run>, now: Date): Html => {
  const shown = runs.toReversed()
  const [first] = shown
  if (first === undefined || shown.length < 2) return html``
  const bars = (valueOf: (run: Run) => number | null, words: (value: number) => string): ReadonlyArray<Bar> =>
    shown.map((run): Bar => {
      const value = valueOf(run)
      return {
        text: `Run ${run.id}, ${run.status}: ${value === null ? "not known" : words(value)}`,
        to: runAddress(run.id),
        value,
        tone: tones[run.status]
      }
    })
  const ends = [`run ${first.id}`, `run ${shown.at(-1)!.id}`] as const
  const durations = bars(
    ({ beganAt, endedAt, status }) =>
      endedAt === null && status !== "running" ? null : Math.max(0, (endedAt ?? now).getTime() - beganAt.getTime()),
    duration
  )
  const requests = bars(
    (run) => run.requests,
    (value) => plural(value, "request")
  )
  return html`<div class="beside">
      <figure>
        ${barChart(durations, { id: "durations", title: "Duration of each run", format: duration, ends, target: null })}
      </figure>
      <figure>
        ${barChart(requests, { id: "requests", title: "Requests of each run", format: wholeNumber, ends, target: null })}
      </figure>
    </div>
    <p class="hint">Each bar links to its run. The table has the same figures, and the status of each run.</p>`
}

// -------------------------------------------------------------------------------------------------------------- fields

type Column = RunDetails.ResourceColumn
type UnknownField = RunDetails.UnknownField

const unusedBadge = ({ nullShare }: Column): Html =>
  nullShare === null
    ? none("no statistics yet")
    : nullShare === 1
      ? badge("quiet", "unused")
      : html`${(100 - nullShare * 100).toFixed(nullShare > 0 && nullShare < 0.01 ? 1 : 0)} % have a value`

const unknownTable = (unknown: ReadonlyArray<UnknownField>, now: Date): Html =>
  table(
    "New fields: the source sends them, and the catalogue does not have them",
    "Field, State, Types, #Records, First seen, Last seen",
    unknown.map(({ field, types, times, firstSeenAt, lastSeenAt, promotedAt }) => [
      html`<code>${visible(field)}</code>`,
      promotedAt === null ? badge("busy", "new") : html`${badge("good", "has a column")} ${ago(promotedAt, now)}`,
      visible(types.join(", ")),
      count(times),
      ago(firstSeenAt, now),
      ago(lastSeenAt, now)
    ])
  )

/** The columns with the unused ones, and the fields that the catalogue does not have. */
export const fieldsPart = (columns: ReadonlyArray<Column>, unknown: ReadonlyArray<UnknownField>, now: Date): Html => {
  if (columns.length === 0 && unknown.length === 0) return html``
  const unused = columns.filter(({ nullShare }) => nullShare === 1)
  const fresh = unknown.filter(({ promotedAt }) => promotedAt === null)
  return section(
    "fields",
    "Fields",
    html`<p>
        ${plural(columns.length, "column")}, ${count(unused.length)} of them unused: no row of any company has a value,
        by the statistics of Postgres.
        ${fresh.length === 0 ? "No new field is known." : `${plural(fresh.length, "new field")}: npx tributary schema apply makes columns of them.`}
      </p>
      ${unknown.length === 0 ? "" : unknownTable(unknown, now)}
      <details id="columns">
        <summary>All columns</summary>
        ${table(
          "Columns of the table",
          "Column, Type, Values",
          columns.map((column) => [
            html`<code>${visible(column.name)}</code>`,
            html`<code>${column.type}</code>`,
            unusedBadge(column)
          ])
        )}
      </details>`
  )
}
