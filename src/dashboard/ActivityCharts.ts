/**
 * Charts of the last day by hour.
 *
 * Promise: the server draws them, so that they need no script. Each has a description in words, and one table has the
 * same figures. A meaning of a colour is also given in words.
 */
import { scaleLinear } from "d3-scale"
import type { Hour } from "../status/Activity.ts"
import { count, duration, none, section, table } from "../web/Components.ts"
import { plural } from "../web/Escape.ts"
import { clock } from "../web/Times.ts"
import { html, type Html } from "./Page.ts"

const hourMs = 3_600_000
const hoursShown = 25

/** An hour that is shown; null without data. */
interface Slot {
  readonly at: Date
  readonly hour: Hour | null
}

/** The last 24 hours and the current one. */
const slotsOf = (hours: ReadonlyArray<Hour>, now: Date): ReadonlyArray<Slot> => {
  const last = Math.floor(now.getTime() / hourMs) * hourMs
  const byTime = new Map(hours.map((hour) => [hour.at.getTime(), hour]))
  return Array.from({ length: hoursShown }, (_, index) => {
    const at = last - (hoursShown - 1 - index) * hourMs
    return { at: new Date(at), hour: byTime.get(at) ?? null }
  })
}

// In units of the drawing, which scales to the available width.
const width = 560
const [left, right] = [146, width - 12]
const slotWidth = (right - left) / hoursShown
const xOf = (index: number): number => Math.round((left + index * slotWidth) * 10) / 10
const rounded = (value: number): number => Math.round(value * 10) / 10

const labelEvery = 6

/** The times below a chart. */
const timeAxis = (slots: ReadonlyArray<Slot>, y: number): Html =>
  html`${slots.map(({ at }, index) =>
    at.getUTCHours() % labelEvery === 0
      ? html`<line x1="${xOf(index)}" x2="${xOf(index)}" y1="${y}" y2="${y + 4}" /><text
            class="across"
            x="${xOf(index)}"
            y="${y + 20}"
            >${clock(at)}</text
          >`
      : ""
  )}`

/** The words of colours and lines. */
type Legend = ReadonlyArray<readonly [kind: string, word: string]>

const drawing = (
  { id, title, legend }: { readonly id: string; readonly title: string; readonly legend: Legend },
  description: string,
  height: number,
  inner: Html
): Html =>
  html`<figure class="chart">
    <figcaption>
      <span id="${id}-title">${title}</span
      >${legend.map(([kind, word]) => html` <span class="key ${kind}">${word}</span>`)}
    </figcaption>
    <svg class="chart hourly" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-words">
      <desc id="${id}-words">${description}</desc>
      ${inner}
    </svg>
  </figure>`

const sum = (slots: ReadonlyArray<Slot>, of: (hour: Hour) => number): number =>
  slots.reduce((total, { hour }) => total + (hour === null ? 0 : of(hour)), 0)

const failuresOf = ({ failed_runs: failed, abandoned_runs: abandoned }: Hour): number => failed + abandoned

interface Lane {
  readonly name: string
  readonly kind: string
  readonly of: (hour: Hour) => number
  readonly words: (value: number) => string
}

const lanes: ReadonlyArray<Lane> = [
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
const laneHeight = 26
/** The lowest opacity of a cell, so that one event is seen beside an hour with many. */
const opacityMin = 0.45

const timeline = (slots: ReadonlyArray<Slot>): Html => {
  const bottom = lanes.length * laneHeight + 4
  const failures = sum(slots, failuresOf)
  return drawing(
    { id: "timeline", title: "What happened, by hour", legend: [] },
    `${plural(
      sum(slots, ({ runs }) => runs),
      "run"
    )}, ${failures === 0 ? "none" : count(failures)} of them failed or abandoned; ${plural(
      sum(slots, ({ process_starts: starts }) => starts),
      "process start"
    )}.`,
    bottom + 28,
    html`${lanes.map(({ name, kind, of, words }, lane) => {
        const most = Math.max(1, ...slots.map(({ hour }) => (hour === null ? 0 : of(hour))))
        const y = lane * laneHeight + 4
        return html`<text class="up" x="${left - 10}" y="${y + laneHeight / 2}" dy="0.2em">${name}</text
          ><rect class="lane" x="${left}" y="${y}" width="${right - left}" height="${laneHeight - 4}" />${slots.map(
            ({ at, hour }, index) => {
              const value = hour === null ? 0 : of(hour)
              const opacity = rounded(opacityMin + (1 - opacityMin) * (value / most))
              return value === 0
                ? ""
                : html`<rect
                    class="${kind}"
                    x="${xOf(index)}"
                    y="${y}"
                    width="${rounded(slotWidth - 1.5)}"
                    height="${laneHeight - 4}"
                    opacity="${opacity}"
                    ><title>${clock(at)}: ${words(value)}</title></rect
                  >`
            }
          )}`
      })} <g class="grid">${timeAxis(slots, bottom)}</g>`
  )
}

/** One kind of bar, stacked on the ones before it. */
interface Layer {
  readonly kind: string
  readonly name: string
  readonly of: (hour: Hour) => number | null
}

interface Bars {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly layers: ReadonlyArray<Layer>
  /** The end of the axis, at least. */
  readonly topLeast: number
  /** A value with a line of its own. */
  readonly line: number | null
  readonly legend: Legend
  readonly text: (value: number) => string
}

const plotHeight = 120
const ticks = 3

const bars = (
  slots: ReadonlyArray<Slot>,
  { id, title, legend, description, layers, topLeast, line, text }: Bars
): Html => {
  const [top, bottom] = [10, 10 + plotHeight]
  const totals = slots.map(({ hour }) => (hour === null ? 0 : layers.reduce((all, { of }) => all + (of(hour) ?? 0), 0)))
  const up = scaleLinear([0, Math.max(topLeast, ...totals)], [bottom, top]).nice(ticks)
  const y = (value: number) => rounded(up(value))
  return drawing(
    { id, title, legend },
    description,
    bottom + 28,
    html`<g class="grid">
        ${up
          .ticks(ticks)
          .map(
            (value) =>
              html`<line x1="${left}" x2="${right}" y1="${y(value)}" y2="${y(value)}" /><text
                  class="up"
                  x="${left - 10}"
                  y="${y(value)}"
                  dy="0.32em"
                  >${text(value)}</text
                >`
          )}
        ${timeAxis(slots, bottom)}
      </g>
      ${slots.map(({ at, hour }, index) => {
        let below = 0
        return hour === null
          ? ""
          : layers.map(({ kind, name, of }) => {
              const value = of(hour) ?? 0
              const from = below
              below += value
              return value === 0
                ? ""
                : html`<rect
                    class="${kind}"
                    x="${xOf(index)}"
                    y="${y(below)}"
                    width="${rounded(slotWidth - 1.5)}"
                    height="${Math.max(1, rounded(y(from) - y(below)))}"
                    ><title>${clock(at)}: ${text(value)} ${name}</title></rect
                  >`
            })
      })}
      ${line === null ? "" : html`<line class="target" x1="${left}" x2="${right}" y1="${y(line)}" y2="${y(line)}" />`}`
  )
}

const percent = (share: number): string => `${Math.round(share * 100).toLocaleString("en-US")} %`
const isLate = ({ lateness_max: lateness }: Hour): boolean => (lateness ?? 0) > 1

const highestOf = (slots: ReadonlyArray<Slot>, of: (hour: Hour) => number | null): number | null => {
  const values = slots.flatMap(({ hour }) => (hour === null ? [] : (of(hour) ?? [])))
  return values.length === 0 ? null : Math.max(...values)
}

const charts = (slots: ReadonlyArray<Slot>): Html => {
  const lateness = highestOf(slots, ({ lateness_max: share }) => share)
  const budget = highestOf(slots, ({ budget_share_max: share }) => share)
  const landed = (of: (hour: Hour) => number, word: string) => `${count(sum(slots, of))} ${word}`
  return html`<div class="charts">
    ${timeline(slots)}
    ${bars(slots, {
      id: "landed",
      title: "Records landed, by hour",
      legend: [
        ["good", "inserted"],
        ["busy", "updated"],
        ["bad", "deleted"]
      ],
      description: `${landed(({ inserted }) => inserted, "inserted")}, ${landed(({ updated }) => updated, "updated")}, ${landed(({ deleted }) => deleted, "deleted")}.`,
      layers: [
        { kind: "good", name: "inserted", of: ({ inserted }) => inserted },
        { kind: "busy", name: "updated", of: ({ updated }) => updated },
        { kind: "bad", name: "deleted", of: ({ deleted }) => deleted }
      ],
      topLeast: 10,
      line: null,
      text: count
    })}
    ${bars(slots, {
      id: "lateness",
      title: "Highest age of a resource, as a share of its target",
      legend: [
        ["target", "the target"],
        ["warn", "late"]
      ],
      description:
        lateness === null
          ? "No resource has a target and a run yet."
          : `At most ${percent(lateness)}; above 100 % a resource was late, in ${plural(slots.filter(({ hour }) => hour !== null && isLate(hour)).length, "hour")}.`,
      layers: [
        { kind: "good", name: "of the target", of: (hour) => (isLate(hour) ? null : hour.lateness_max) },
        { kind: "warn", name: "of the target: late", of: (hour) => (isLate(hour) ? hour.lateness_max : null) }
      ],
      topLeast: 1.5,
      line: 1,
      text: percent
    })}
    ${bars(slots, {
      id: "budget-share",
      title: "Rate budget in use, at most",
      legend: [],
      description: budget === null ? "No limit or no request." : `At most ${percent(budget)} of the rate budget.`,
      layers: [{ kind: "busy", name: "of the rate budget", of: ({ budget_share_max: share }) => share }],
      topLeast: 1,
      line: null,
      text: percent
    })}
  </div>`
}

const rowsOf = (slots: ReadonlyArray<Slot>): ReadonlyArray<ReadonlyArray<Html | string>> =>
  [...slots]
    .reverse()
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
  const slots = slotsOf(hours, now)
  const rows = rowsOf(slots)
  return section(
    "last-day",
    "The last day",
    rows.length === 0
      ? html`<p class="hint">No activity was recorded. tributary serve records it once a minute while it runs.</p>`
      : html`${charts(slots)}
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
