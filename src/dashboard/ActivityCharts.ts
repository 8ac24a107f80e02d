/** Charts of the last day by hour, and one table with the same figures. */
import type { Hour } from "../status/Activity.ts"
import type { ResourceState } from "../status/Resources.ts"
import { seriesMax } from "../tasks/WriteActivity.ts"
import { barChart } from "../web/BarChart.ts"
import { chart, laneOf, percent } from "../web/Chart.ts"
import { hourSlots, hourTicks, placesOf, sinceFirst, type Place as PlaceOf } from "../web/Hours.ts"
import { count, duration, none, section, table, type Tone } from "../web/Components.ts"
import { clock } from "../web/Times.ts"
import { address, plural, visible } from "../web/Escape.ts"
import { resourceAddress, runsOfHour } from "./Addresses.ts"
import { html, type Html } from "./Page.ts"

type Place = PlaceOf<Hour>

const sum = (places: ReadonlyArray<Place>, of: (hour: Hour) => number): number =>
  places.reduce((total, { hour }) => total + (hour === null ? 0 : of(hour)), 0)

const failuresOf = ({ failed_runs: failed, abandoned_runs: abandoned }: Hour): number => failed + abandoned

const isLate = ({ lateness_max: lateness }: Hour): boolean => (lateness ?? 0) > 1

interface Kind {
  readonly name: string
  readonly of: (hour: Hour) => number
  readonly kind: (hour: Hour) => Tone
  readonly words: (value: number, hour: Hour) => string
  /** All of the day; null where the lane has no sum. */
  readonly total: ((value: number) => string) | null
  /** Whether its figure is the number of the current hour. */
  readonly isLevel?: boolean
  /** The page of what it counts, of one company where the chart is. */
  readonly link?: (hour: Hour, company: string | null) => string
}

const states: ReadonlyArray<readonly [tone: Tone, word: string]> = [
  ["good", "fresh"],
  ["warn", "late"],
  ["bad", "a run failed"]
]
/** An abandoned run is no failure: its process stopped, and another run repeats it. */
const stateOf = (hour: Hour): readonly [tone: Tone, word: string] =>
  states[hour.failed_runs > 0 ? 2 : isLate(hour) ? 1 : 0]!

const kinds: ReadonlyArray<Kind> = [
  {
    name: "Freshness and runs",
    // Without an age nothing proves that a resource was fresh.
    of: (hour) => (hour.lateness_max === null && hour.failed_runs === 0 ? 0 : 1),
    kind: (hour) => stateOf(hour)[0],
    words: (_, hour) => stateOf(hour)[1],
    total: null
  },
  {
    name: "Runs",
    of: ({ runs }) => runs,
    kind: () => "busy",
    words: (value) => plural(value, "run"),
    total: count,
    link: ({ at }, company) => runsOfHour(at, { company })
  },
  {
    name: "Failed or abandoned",
    of: failuresOf,
    kind: ({ failed_runs: failed }) => (failed > 0 ? "bad" : "quiet"),
    words: (value) => `${plural(value, "run")} failed or abandoned`,
    total: count,
    // Of both kinds, the list of all runs of the hour has every one.
    link: ({ at, failed_runs: failed, abandoned_runs: abandoned }, company) =>
      runsOfHour(at, { company, status: abandoned === 0 ? "failed" : failed === 0 ? "abandoned" : null })
  },
  {
    name: "Open gaps",
    of: ({ gaps }) => gaps,
    kind: () => "warn",
    words: (value) => plural(value, "delivery gap"),
    total: (value) => `${count(value)} in this hour`,
    isLevel: true,
    link: (_, company) => address("/webhooks", { company })
  },
  {
    name: "Source pauses",
    of: ({ paused_ms: ms }) => ms,
    kind: () => "warn",
    words: (ms) => `paused for ${duration(ms)}`,
    total: duration,
    link: (_, company) => address("/budget", { company })
  },
  {
    name: "Process starts",
    of: ({ process_starts: starts }) => starts,
    kind: () => "quiet",
    words: (value) => plural(value, "process start"),
    total: count,
    link: () => "/processes"
  }
]

/** Budgets that are paused at the same time are not added up. */
const pausesMeaning = "Of several budgets, the longest pause counts."

/** The time of each hour in which a source paused requests, with the figures of the timeline. */
export const pausesTrend = (hours: ReadonlyArray<Hour>, now: Date, budgets: number): Html => {
  const places = sinceFirst(placesOf(hours, now))
  const total = sum(places, ({ paused_ms: ms }) => ms)
  return barChart({
    id: "trend",
    title: "Source pauses in the last 24 hours",
    unit: `time by hour${budgets > 1 ? `. ${pausesMeaning}` : ""}`,
    summary: `${duration(total)} in all.`,
    quantity: "duration",
    series: [["warn", "paused"]],
    ...hourSlots(places, ({ paused_ms: ms }) => ({ values: [ms] })),
    least: 60_000,
    heading: "Hour",
    empty: "none."
  })
}

/** States that the activity is stored only for all companies together; null where the page shows it. */
export const totalsHint = (to: string | null): Html =>
  html`<p class="hint">
    The ${to === null ? "activity" : html`<a href="${to}">activity</a>`} is that of all companies together: of more than
    ${count(seriesMax.hour)} companies it is not stored for each.
  </p>`

const laneOfKind = (
  { name, of, kind, words, total, isLevel = false, link }: Kind,
  places: ReadonlyArray<Place>,
  company: string | null
) => {
  const most = Math.max(1, ...places.map(({ hour }) => (hour === null ? 0 : of(hour))))
  const busy = places.filter(({ hour }) => hour !== null && of(hour) > 0).length
  const figure = total === null ? "" : total(sum(isLevel ? places.slice(-1) : places, of))
  return laneOf(
    html`${name} <span class="figure">${figure}</span>`,
    `${name}: ${busy === 0 ? "none" : `${figure}, in ${plural(busy, "hour")}`}`,
    places.flatMap(({ at, hour }, index) =>
      hour === null || of(hour) === 0
        ? []
        : [
            {
              from: index / places.length,
              to: (index + 0.9) / places.length,
              kind: kind(hour),
              strength: of(hour) / most,
              text: `${clock(at)}: ${words(of(hour), hour)}`,
              ...(link === undefined ? {} : { link: link(hour, company) })
            }
          ]
    )
  )
}

const timeline = (places: ReadonlyArray<Place>, company: string | null): Html => {
  const failures = sum(places, failuresOf)
  const [runs, starts] = [sum(places, ({ runs: one }) => one), sum(places, ({ process_starts: one }) => one)]
  return chart({
    id: "timeline",
    title: "What happened",
    unit: `By hour; the height is the share of the busiest hour.${company === null ? ` ${pausesMeaning}` : ""} A part links to what it counts.`,
    summary: `${plural(runs, "run")}, ${failures === 0 ? "none" : count(failures)} of them failed or abandoned; ${plural(starts, "process start")}.`,
    keys: states,
    ticks: hourTicks(places),
    plots: kinds.map((kind) => laneOfKind(kind, places, company))
  })
}

const highestOf = (places: ReadonlyArray<Place>, of: (hour: Hour) => number | null): number | null => {
  const values = places.flatMap(({ hour }) => (hour === null ? [] : (of(hour) ?? [])))
  return values.length === 0 ? null : Math.max(...values)
}

/** The resource that is the oldest against its target at present. */
const oldestOf = (states: ReadonlyArray<ResourceState>) =>
  states
    .flatMap(({ company, resource, health: { ageMs, targetMs, isPaused, isBlocked } }) =>
      ageMs === null || targetMs === null || isPaused || isBlocked
        ? []
        : [{ company, resource, share: ageMs / targetMs }]
    )
    .reduce<{ company: string; resource: string; share: number } | null>(
      (most, one) => (most === null || one.share > most.share ? one : most),
      null
    )

/** The finding of the freshness, in words and with a link to the oldest resource. */
const freshnessFinding = (places: ReadonlyArray<Place>, states: ReadonlyArray<ResourceState>) => {
  const measured = places.filter(({ hour }) => hour !== null && hour.lateness_max !== null)
  const late = measured.filter(({ hour }) => hour !== null && isLate(hour)).length
  const highest = highestOf(places, ({ lateness_max: share }) => share)
  const unread = states.filter(({ health, freshAt }) => health.isLate && freshAt === null).length
  const rest =
    (highest === null
      ? "no age is recorded yet."
      : late === 0
        ? `none was late in ${plural(measured.length, "hour")}, at most ${percent(highest)}.`
        : `a resource was late in ${count(late)} of ${plural(measured.length, "hour")}, at most ${percent(highest)}.`) +
    (unread === 0 ? "" : ` Without ${plural(unread, "late resource")} that no run has read completely.`)
  const oldest = oldestOf(states)
  if (oldest === null) return { summary: highest === null ? "no resource has a target and a run yet." : rest }
  const name = `${visible(oldest.resource)}, ${visible(oldest.company)}`
  const now = `(${percent(oldest.share)} of its target)`
  return {
    summary: `oldest now ${name} ${now}; ${rest}`,
    finding: html`oldest now <a href="${resourceAddress(oldest.company, oldest.resource)}">${name}</a> ${now}; ${rest}`
  }
}

const charts = (places: ReadonlyArray<Place>, states: ReadonlyArray<ResourceState>, company: string | null): Html => {
  const budget = highestOf(places, ({ budget_share_max: share }) => share)
  const budgetNow = places.at(-1)?.hour?.budget_share_max ?? 0
  const landed = (of: (hour: Hour) => number, word: string) => `${count(sum(places, of))} ${word}`
  return html`<div class="charts">
    ${timeline(places, company)}
    ${barChart({
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
      ...hourSlots(places, ({ inserted, updated, deleted }) => ({ values: [inserted, updated, deleted] })),
      least: 10,
      heading: null,
      empty: "no record changed in the last day."
    })}
    ${barChart({
      id: "lateness",
      title: "Freshness",
      unit: "highest age by hour, % of target",
      ...freshnessFinding(places, states),
      quantity: "share",
      series: [
        ["good", "of the target"],
        ["warn", "of the target: late"]
      ],
      ...hourSlots(places, (hour) => {
        const share = hour.lateness_max ?? 0
        return isLate(hour) ? { values: [0, share], sign: "!" } : { values: [share, 0] }
      }),
      least: 1.2,
      heading: null,
      target: { value: 1, word: "the target" },
      empty: "no resource has a target and a run yet."
    })}
    ${barChart({
      id: "budget-share",
      title: "Rate budget in use",
      unit: "the most of each hour, % of the limit",
      summary:
        budget === null ? "no limit or no request." : `at most ${percent(budget)}, ${percent(budgetNow)} in this hour.`,
      quantity: "share",
      series: [["busy", "of the rate budget"]],
      ...hourSlots(places, ({ budget_share_max: share }) => ({ values: [share ?? 0] })),
      least: 1,
      heading: null,
      empty: "no limit is configured, or no request was made."
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

/** The last day of one company or of all, in charts and as a table; of the resources, the oldest one is named. */
export const lastDay = (
  hours: ReadonlyArray<Hour>,
  now: Date,
  states: ReadonlyArray<ResourceState> = [],
  company: string | null = null
): Html => {
  const places = sinceFirst(placesOf(hours, now))
  const rows = rowsOf(places)
  return section(
    "last-day",
    "The last day",
    rows.length === 0
      ? html`<p class="hint">No activity was recorded. tributary serve records it once a minute while it runs.</p>`
      : html`${charts(places, states, company)}
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
