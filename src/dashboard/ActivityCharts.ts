/** Charts of the last day by hour, and one table with the same figures. */
import type { Hour } from "../status/Activity.ts"
import { barChart, hourTicks, hoursUntil, laneChart, percent, type Slot } from "../web/Chart.ts"
import { count, duration, none, section, table, type Tone } from "../web/Components.ts"
import { plural } from "../web/Escape.ts"
import { clock } from "../web/Times.ts"
import { html, type Html } from "./Page.ts"

const hoursShown = 24
const labelEvery = 6

/** An hour that is shown; null without data. */
interface Place {
  readonly at: Date
  readonly hour: Hour | null
}

const placesOf = (hours: ReadonlyArray<Hour>, now: Date): ReadonlyArray<Place> => {
  const byTime = new Map(hours.map((hour) => [hour.at.getTime(), hour]))
  return hoursUntil(now, hoursShown).map((at) => ({ at, hour: byTime.get(at.getTime()) ?? null }))
}

const sum = (places: ReadonlyArray<Place>, of: (hour: Hour) => number): number =>
  places.reduce((total, { hour }) => total + (hour === null ? 0 : of(hour)), 0)

const failuresOf = ({ failed_runs: failed, abandoned_runs: abandoned }: Hour): number => failed + abandoned

interface Kind {
  readonly name: string
  readonly kind: Tone
  readonly of: (hour: Hour) => number
  readonly words: (value: number) => string
}

const kinds: ReadonlyArray<Kind> = [
  { name: "Runs", kind: "busy", of: ({ runs }) => runs, words: (value) => plural(value, "run") },
  { name: "Failed runs", kind: "bad", of: failuresOf, words: (value) => `${plural(value, "run")} failed or abandoned` },
  { name: "Open gaps", kind: "warn", of: ({ gaps }) => gaps, words: (value) => plural(value, "delivery gap") },
  { name: "Source pauses", kind: "warn", of: ({ paused_ms: ms }) => ms, words: (ms) => `paused for ${duration(ms)}` },
  {
    name: "Process starts",
    kind: "quiet",
    of: ({ process_starts: starts }) => starts,
    words: (value) => plural(value, "process start")
  }
]

const timeline = (places: ReadonlyArray<Place>): Html => {
  const failures = sum(places, failuresOf)
  const [runs, starts] = [sum(places, ({ runs: one }) => one), sum(places, ({ process_starts: one }) => one)]
  return laneChart(
    {
      id: "timeline",
      title: "What happened",
      unit: "by hour; the height is the share of the busiest hour",
      summary: `${plural(runs, "run")}, ${failures === 0 ? "none" : count(failures)} of them failed or abandoned; ${plural(starts, "process start")}.`,
      ticks: hourTicks(
        places.map(({ at }) => at),
        labelEvery
      )
    },
    kinds.map(({ name, kind, of, words }) => {
      const most = Math.max(1, ...places.map(({ hour }) => (hour === null ? 0 : of(hour))))
      const busy = places.filter(({ hour }) => hour !== null && of(hour) > 0).length
      return {
        name,
        summary: `${name}: ${busy === 0 ? "none" : `in ${plural(busy, "hour")}`}`,
        stretches: places.flatMap(({ at, hour }, index) => {
          const value = hour === null ? 0 : of(hour)
          return value === 0
            ? []
            : [
                {
                  from: index / places.length,
                  to: (index + 0.9) / places.length,
                  kind,
                  strength: value / most,
                  text: `${clock(at)}: ${words(value)}`
                }
              ]
        })
      }
    })
  )
}

const isLate = ({ lateness_max: lateness }: Hour): boolean => (lateness ?? 0) > 1

const highestOf = (places: ReadonlyArray<Place>, of: (hour: Hour) => number | null): number | null => {
  const values = places.flatMap(({ hour }) => (hour === null ? [] : (of(hour) ?? [])))
  return values.length === 0 ? null : Math.max(...values)
}

const charts = (places: ReadonlyArray<Place>): Html => {
  const slots = (valuesOf: (hour: Hour) => ReadonlyArray<number>, more?: (hour: Hour) => Partial<Slot>) =>
    places.map(({ at, hour }): Slot => ({
      words: clock(at),
      values: hour === null ? null : valuesOf(hour),
      ...(hour === null ? {} : more?.(hour))
    }))
  const shared = {
    heading: null,
    ticks: hourTicks(
      places.map(({ at }) => at),
      labelEvery
    )
  }
  const lateness = highestOf(places, ({ lateness_max: share }) => share)
  const budget = highestOf(places, ({ budget_share_max: share }) => share)
  const lateHours = places.filter(({ hour }) => hour !== null && isLate(hour)).length
  const landed = (of: (hour: Hour) => number, word: string) => `${count(sum(places, of))} ${word}`
  return html`<div class="charts">
    ${timeline(places)}
    ${barChart({
      ...shared,
      id: "landed",
      title: "Records landed",
      unit: "records an hour",
      summary: `${landed(({ inserted }) => inserted, "inserted")}, ${landed(({ updated }) => updated, "updated")}, ${landed(({ deleted }) => deleted, "deleted")}.`,
      quantity: "count",
      series: [
        ["good", "inserted"],
        ["busy", "updated"],
        ["bad", "deleted"]
      ],
      slots: slots(({ inserted, updated, deleted }) => [inserted, updated, deleted]),
      least: 10,
      empty: "No record changed in the last day."
    })}
    ${barChart({
      ...shared,
      id: "lateness",
      title: "Freshness",
      unit: "highest age of a resource, % of its target",
      summary:
        lateness === null
          ? "No resource has a target and a run yet."
          : `At most ${percent(lateness)}; above 100 % a resource was late, in ${plural(lateHours, "hour")}.`,
      quantity: "share",
      series: [
        ["good", "of the target"],
        ["warn", "of the target: late"]
      ],
      slots: slots(
        (hour) => (isLate(hour) ? [0, hour.lateness_max ?? 0] : [hour.lateness_max ?? 0, 0]),
        (hour) => (isLate(hour) ? { sign: "!" } : {})
      ),
      least: 1.2,
      target: { value: 1, word: "the target" },
      empty: "No resource has a target and a run yet."
    })}
    ${barChart({
      ...shared,
      id: "budget-share",
      title: "Rate budget in use",
      unit: "the most of each hour, % of the limit",
      summary: budget === null ? "No limit or no request." : `At most ${percent(budget)} of the rate budget.`,
      quantity: "share",
      series: [["busy", "of the rate budget"]],
      slots: slots(({ budget_share_max: share }) => [share ?? 0]),
      least: 1,
      empty: "No limit is configured, or no request was made."
    })}
  </div>`
}

const rowsOf = (places: ReadonlyArray<Place>): ReadonlyArray<ReadonlyArray<Html | string>> =>
  places
    .toReversed()
    .flatMap(({ at, hour }) =>
      hour === null
        ? []
        : [
            [
              clock(at),
              count(hour.runs),
              count(failuresOf(hour)),
              `${count(hour.inserted)}, ${count(hour.updated)}, ${count(hour.deleted)}`,
              hour.lateness_max === null ? none("none") : percent(hour.lateness_max),
              hour.budget_share_max === null ? none("none") : percent(hour.budget_share_max),
              hour.paused_ms === 0 ? "0" : duration(hour.paused_ms),
              count(hour.gaps),
              count(hour.process_starts)
            ]
          ]
    )

/** The last day in charts, and as a table. */
export const lastDay = (hours: ReadonlyArray<Hour>, now: Date): Html => {
  const places = placesOf(hours, now)
  const rows = rowsOf(places)
  return section(
    "last-day",
    "The last day",
    rows.length === 0
      ? html`<p class="hint">No activity was recorded. tributary serve records it once a minute while it runs.</p>`
      : html`${charts(places)}
          <details id="last-day-table">
            <summary>The same as a table</summary>
            ${table(
              "Hour by hour, newest first",
              "Hour, #Runs, #Failed or abandoned, #Inserted; updated; deleted, #Age of target, #Budget in use, #Paused, #Gaps, #Starts",
              rows
            )}
          </details>`
  )
}
