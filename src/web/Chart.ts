/**
 * Charts that the server draws: bars over time, with axes, legend, description and figures; and small ones of a table.
 *
 * Promise: a chart needs no script. Its horizontal positions are shares of the width and its text is never scaled, so
 * that it can be read on a phone. It has a title, the unit, a description and its values in words. What a colour means is
 * also in the legend, in the text of the bar and in the table. Colours come from the style sheet by class.
 */
import { scaleLinear } from "d3-scale"
import { count, decimal, duration, table, type Tone } from "./Components.ts"
import { html, type Html } from "./Html.ts"
import { clock, hourMs } from "./Times.ts"

// ------------------------------------------------------------------------------------------------------------- quantities

/** What a value is: a number of things, milliseconds, or a share where 1 is 100 %. */
export type Quantity = "count" | "duration" | "share"

export const percent = (share: number): string => `${Math.round(share * 100).toLocaleString("en-US")} %`

const formats: Readonly<Record<Quantity, (value: number) => string>> = {
  count: decimal,
  duration,
  share: percent
}

/** The units of a time axis: the length of one, its word, and the longest axis that it has. */
const timeUnits = [
  [1, "ms", 2_000],
  [1_000, "s", 120_000],
  [60_000, "min", 7_200_000],
  [3_600_000, "h", 172_800_000],
  [86_400_000, "d", Infinity]
] as const

const unitOf = (quantity: Quantity, most: number): readonly [size: number, word: string] => {
  if (quantity === "count") return [1, ""]
  if (quantity === "share") return [0.01, " %"]
  const [size, word] = timeUnits.find(([, , longest]) => most < longest)!
  return [size, ` ${word}`]
}

const rounded = (value: number): number => Math.round(value * 10) / 10

/** A position across: a share of the width. */
export const across = (share: number): string => `${Math.round(share * 10_000) / 100}%`

// ------------------------------------------------------------------------------------------------------------------ axes

/** A mark of the axis below a chart: its place as a share of the width, and its label. */
export interface Tick {
  readonly share: number
  readonly label: Html | string
}

const anchorOf = (share: number): string => (share < 0.04 ? "start" : share > 0.96 ? "end" : "middle")

/** The labels below a chart. */
export const timeAxis = (ticks: ReadonlyArray<Tick>, y: number): Html =>
  html`<g class="grid">
    ${ticks.map(
      ({ share, label }) =>
        html`<line x1="${across(share)}" x2="${across(share)}" y1="${y}" y2="${y + 4}" /><text
            x="${across(share)}"
            y="${y + 18}"
            text-anchor="${anchorOf(share)}"
            >${label}</text
          >`
    )}
  </g>`

/** Marks at even lengths of time since the start. */
export const elapsedTicks = (lengthMs: number): ReadonlyArray<Tick> => {
  const [size, word] = unitOf("duration", lengthMs)
  return scaleLinear([0, lengthMs / size], [0, 1])
    .ticks(4)
    .map((tick) => ({ share: (tick * size) / lengthMs, label: `${tick.toLocaleString("en-US")}${word}` }))
}

// In pixels.
export const plotTop = 24
const plotHeight = 110
export const plotBottom = plotTop + plotHeight
export const axisHeight = 24

/** An axis from 0 to at least this value: places of values, and its lines with labels. */
export const valueAxis = (quantity: Quantity, most: number): { readonly y: (value: number) => number; lines: Html } => {
  const [size, word] = unitOf(quantity, most)
  const up = scaleLinear([0, most / size], [plotBottom, plotTop]).nice(3)
  const y = (value: number) => rounded(up(value / size))
  const ticks = up.ticks(3).filter((tick) => quantity !== "count" || Number.isInteger(tick))
  return {
    y,
    lines: html`<g class="grid">
      ${ticks.map((tick) => {
        const at = rounded(up(tick))
        return html`<line x1="0" x2="100%" y1="${at}" y2="${at}" /><text class="up" x="-8" y="${at}" dy="0.32em"
            >${tick.toLocaleString("en-US")}${word}</text
          >`
      })}
    </g>`
  }
}

/**
 * The starts of the last hours of the clock, oldest first; the current one is the last. Every chart and sum of "the last
 * 24 hours" counts these.
 */
export const hoursUntil = (now: Date, hours = 24): ReadonlyArray<Date> => {
  const last = Math.floor(now.getTime() / hourMs) * hourMs
  return Array.from({ length: hours }, (_, index) => new Date(last - (hours - 1 - index) * hourMs))
}

/** The last hours of the clock with what is known of each; null for an hour without data. */
export const placesOf = <Hour extends { readonly at: Date }>(
  known: ReadonlyArray<Hour>,
  now: Date,
  hours?: number
): ReadonlyArray<{ readonly at: Date; readonly hour: Hour | null }> => {
  const byTime = new Map(known.map((hour) => [hour.at.getTime(), hour]))
  return hoursUntil(now, hours).map((at) => ({ at, hour: byTime.get(at.getTime()) ?? null }))
}

/** Marks at every so many hours of the day, and at the current time; on a phone there is a gap between two labels. */
export const hourTicks = (hours: ReadonlyArray<Date>, every: number): ReadonlyArray<Tick> => [
  ...hours.flatMap((at, index) =>
    at.getUTCHours() % every === 0 && index < hours.length * 0.8
      ? [{ share: index / hours.length, label: clock(at) }]
      : []
  ),
  { share: 1, label: "now" }
]

// ----------------------------------------------------------------------------------------------------------------- frames

/** A colour or sign and its meaning. */
export type Key = readonly [kind: string, word: string]

export interface Frame {
  /** Unique on its page. */
  readonly id: string
  readonly title: string
  /** What the axis counts, and for which time: `records an hour`. */
  readonly unit: string
  /** What the chart shows, in one or two sentences. */
  readonly summary: string
  /** The summary with links, for the caption. */
  readonly finding?: Html
}

/** The title, finding and legend of a chart around its drawing and its figures. */
export const figure = (
  { id, title, summary, finding }: Pick<Frame, "id" | "title" | "summary" | "finding">,
  keys: ReadonlyArray<Key>,
  body: Html | string
): Html =>
  html`<figure class="chart">
    <figcaption>
      <strong id="${id}-title">${title}:</strong> <span class="finding">${finding ?? summary}</span>
      ${
        keys.length === 0
          ? ""
          : html`<ul class="keys">
              ${keys.map(([kind, word]) => html`<li class="${kind}">${word}</li>`)}
            </ul>`
      }
    </figcaption>
    ${body}
  </figure>`

/** A drawing with a description. One with links is a group, because the parts of an image are not announced. */
export const drawing = ({ id, unit, summary }: Frame, inner: Html, hasLinks = false): Html =>
  html`<svg
    class="plot"
    height="${plotBottom + axisHeight}"
    role="${hasLinks ? "group" : "img"}"
    aria-labelledby="${id}-title"
    aria-describedby="${id}-words"
  >
    <desc id="${id}-words">${summary}</desc>
    <text x="0" y="11">${unit}</text>
    ${inner}
  </svg>`

/** A rectangle with its text; a link where it has a page. The table beside a chart has the same links for the keyboard. */
export const shape = (
  kind: string,
  [x, width]: readonly [share: number, share: number],
  [y, height]: readonly [number, number],
  text: string,
  to: string | null = null
): Html => {
  const rect = html`<rect
    class="${kind}"
    x="${across(x)}"
    width="${across(width)}"
    y="${rounded(y)}"
    height="${rounded(height)}"
    ><title>${text}</title></rect
  >`
  return to === null ? rect : html`<a href="${to}" aria-label="${text}" tabindex="-1">${rect}</a>`
}

/** The figures of a chart behind a summary. */
export const figuresBelow = (id: string, title: string, body: Html): Html =>
  html`<details id="${id}-figures">
    <summary>Figures<span class="visually-hidden"> of ${title}</span></summary>
    ${body}
  </details>`

// ------------------------------------------------------------------------------------------------------------------ bars

/** One place of a chart over time, such as an hour or a run. */
export interface Slot {
  /** The place in words: `14:00`, `Run 12`. */
  readonly words: string
  /** The page that its bars link to. */
  readonly to?: string | null
  /** One value for each series, from the bottom to the top; null without data. */
  readonly values: ReadonlyArray<number> | null
  /** A sign above the bar: `!` late, `✕` failed. The text of the bar says the same. */
  readonly sign?: string
  /** What happened at that time beside the values; the place is shaded. */
  readonly note?: string | null
}

export interface BarChart extends Frame {
  readonly quantity: Quantity
  /** From the bottom of a bar to its top. */
  readonly series: ReadonlyArray<readonly [tone: Tone, word: string]>
  readonly slots: ReadonlyArray<Slot>
  readonly ticks: ReadonlyArray<Tick>
  /** The end of the axis, at least. */
  readonly least: number
  /** False where a sum of the bars has no meaning, as of means. Default: of a count. */
  readonly hasTotals?: boolean
  /** A line across, such as a target. */
  readonly target?: { readonly value: number; readonly word: string } | null
  /** The meaning of the shade of places with a note. */
  readonly noteWord?: string
  /** More words for the legend: the meaning of signs. */
  readonly keys?: ReadonlyArray<Key>
  /** The first heading of the table; null: another table of the page has the figures. */
  readonly heading: string | null
  /** Why there is nothing to show. */
  readonly empty: string
}

/** Fewer places than this have the width of so many, at the right. */
export const placesMin = 12
/** Fewer bars than this are a sentence and a table. */
const barsMin = 3
/** Fewer places without data than this have no words. */
const wordsMin = 4

const hasFigures = ({ values }: Slot): boolean => values !== null && values.some((value) => value > 0)
const hasNote = ({ note }: Slot): boolean => (note ?? null) !== null

/** Places in a row without data, as one shade. */
const missingOf = ({ slots }: BarChart, places: number): ReadonlyArray<Html> => {
  const before = places - slots.length
  const starts = slots.flatMap(({ values }, index) =>
    values === null && (index === 0 || slots[index - 1]!.values !== null) ? [index] : []
  )
  return starts.map((from) => {
    const next = slots.findIndex(({ values }, index) => index > from && values !== null)
    const length = (next === -1 ? slots.length : next) - from
    const x = (from + before) / places
    const words = `${slots[from]!.words} to ${slots[from + length - 1]!.words}: no data`
    return html`${shape("missing", [x, length / places], [plotTop, plotHeight], words)}${
      length < wordsMin
        ? ""
        : html`<text x="${across(x + length / places / 2)}" y="${plotTop + plotHeight / 2}" text-anchor="middle"
            >no data</text
          >`
    }`
  })
}

const barsOf = (chart: BarChart, y: (value: number) => number): Html => {
  const { slots, series, quantity } = chart
  const places = Math.max(slots.length, placesMin)
  return html`${missingOf(chart, places)}${slots.map(({ words, to, values, sign, note }, index) => {
    const x = (index + places - slots.length) / places
    let below = 0
    const bars = (values ?? []).map((value, kind) => {
      if (value === 0) return ""
      const from = y(below)
      below += value
      const height = Math.max(1, from - y(below))
      const [tone, word] = series[kind]!
      const text = `${words}: ${formats[quantity](value)} ${word}`
      return shape(tone, [x + 0.08 / places, 0.84 / places], [from - height, height], text, to)
    })
    return html`${(note ?? null) === null ? "" : shape("noted", [x, 1 / places], [plotTop, plotHeight], `${words}: ${note!}`)}${bars}${
      sign === undefined
        ? ""
        : html`<text class="sign" x="${across(x + 0.5 / places)}" y="${y(below) - 4}">${sign}</text>`
    }`
  })}`
}

const figuresOf = ({ id, title, heading, series, slots, quantity, unit }: BarChart): Html | string =>
  heading === null
    ? ""
    : figuresBelow(
        id,
        title,
        table(
          `${title} (${unit}), newest first; times without any are left out`,
          `${heading}, ${series.map(([, word]) => `#${word}`).join(", ")}`,
          slots
            .filter(hasFigures)
            .toReversed()
            .map(({ words, values }) => [words, ...values!.map(formats[quantity])])
        )
      )

const legendOf = ({
  series,
  slots,
  quantity,
  hasTotals = quantity === "count",
  keys = [],
  target = null,
  noteWord
}: BarChart): ReadonlyArray<Key> => [
  ...series.flatMap(([tone, word], kind): ReadonlyArray<Key> => {
    const total = slots.reduce((sum, { values }) => sum + (values?.[kind] ?? 0), 0)
    return series.length === 1 || total === 0 ? [] : [[tone, hasTotals ? `${word} ${count(total)}` : word]]
  }),
  ...keys,
  ...(target === null ? [] : [["target", target.word] as const]),
  ...(noteWord !== undefined && slots.some(hasNote) ? [["noted", noteWord] as const] : [])
]

/** Bars over time, stacked where there are several series; a sentence where there are few. */
export const barChart = (chart: BarChart): Html => {
  const { slots, ticks, target = null } = chart
  const filled = slots.filter(hasFigures).length
  if (filled === 0) return figure({ ...chart, summary: chart.empty }, [], "")
  if (filled < barsMin) return figure(chart, [], figuresOf(chart))
  const totals = slots.map(({ values }) => (values ?? []).reduce((sum, value) => sum + value, 0))
  // A sign above the highest bar stays below the caption.
  const headroom = slots.some(({ sign }) => sign !== undefined) ? 1.05 : 1
  const { y, lines } = valueAxis(chart.quantity, headroom * Math.max(chart.least, target?.value ?? 0, ...totals))
  const level = target === null ? 0 : y(target.value)
  const inner = html`${lines}${timeAxis(ticks, plotBottom)}${barsOf(chart, y)}${
    target === null ? "" : html`<line class="target" x1="0" x2="100%" y1="${level}" y2="${level}" />`
  }`
  const hasLinks = slots.some(({ to }) => (to ?? null) !== null)
  return figure(chart, legendOf(chart), html`${drawing(chart, inner, hasLinks)} ${figuresOf(chart)}`)
}

// ----------------------------------------------------------------------------------------------------------- small charts

// In units of the drawing, which is scaled to its place.
const [sparkStep, sparkHeight] = [4, 18]

/**
 * Bars over time for a cell of a table, each kind as one path, with their meaning in words. A value above `most` is cut,
 * and one above 0 has at least one unit.
 */
export const sparkline = (
  words: string,
  kinds: ReadonlyArray<readonly [kind: string, values: ReadonlyArray<number | null>]>,
  most: number,
  target: number | null = null
): Html => {
  const width = sparkStep * Math.max(...kinds.map(([, values]) => values.length))
  const barOf = (value: number | null, index: number) =>
    value === null || value <= 0
      ? ""
      : `M${(index + 0.5) * sparkStep} ${sparkHeight}v-${Math.max(1, Math.round((Math.min(value, most) / most) * sparkHeight))}`
  const paths = [
    ...kinds.map(([kind, values]) => [kind, values.map(barOf).join("")] as const),
    ["target", target === null ? "" : `M0 ${sparkHeight * (1 - target / most)}h${width}`] as const
  ]
  return html`<svg class="spark" viewBox="0 0 ${width} ${sparkHeight}" role="img">
    <title>${words}</title>
    ${paths.map(([kind, path]) => (path === "" ? "" : html`<path class="${kind}" d="${path}" />`))}
  </svg>`
}
