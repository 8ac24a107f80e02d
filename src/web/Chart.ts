/**
 * Charts that the server draws. A chart is data: plots on one horizontal axis, each with blocks, lines and signs.
 *
 * Promise: a chart needs no script. Its horizontal positions are shares of the width and its text is never scaled, so
 * that it can be read on a phone. It has a title, the unit, a description and its values in words. What a colour means is
 * also in the legend, in the text of the block and in the table. Colours come from the style sheet by class.
 */
import { scaleLinear } from "d3-scale"
import { decimal, duration } from "./Components.ts"
import { html, type Html } from "./Html.ts"

// ------------------------------------------------------------------------------------------------------------- quantities

/** What a value is: a number of things, milliseconds, or a share where 1 is 100 %. */
export type Quantity = "count" | "duration" | "share"

export const percent = (share: number): string => `${Math.round(share * 100).toLocaleString("en-US")} %`

/** Values in words. */
export const formats: Readonly<Record<Quantity, (value: number) => string>> = {
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
const across = (share: number): string => `${Math.round(share * 10_000) / 100}%`

// ------------------------------------------------------------------------------------------------------------- the axis

/** A mark of the axis below a chart: its place as a share of the width, and its label. */
export interface Tick {
  readonly share: number
  readonly label: Html | string
}

/** Marks at even lengths of time since the start. */
export const elapsedTicks = (lengthMs: number): ReadonlyArray<Tick> => {
  const [size, word] = unitOf("duration", lengthMs)
  return scaleLinear([0, lengthMs / size], [0, 1])
    .ticks(4)
    .map((tick) => ({ share: (tick * size) / lengthMs, label: `${tick.toLocaleString("en-US")}${word}` }))
}

// ------------------------------------------------------------------------------------------------------------- a chart

/** A rectangle. Its ends are shares of the width; without values it is as high as the plot. */
export interface Block {
  readonly kind: string
  readonly from: number
  readonly to: number
  readonly values?: readonly [low: number, high: number]
  readonly text: string
  /** The page that it links to. The table beside a chart has the same links for the keyboard. */
  readonly link?: string | null
}

/** A line through values; null breaks it. */
export interface Line {
  readonly kind: string
  readonly points: ReadonlyArray<readonly [share: number, value: number | null]>
  /** A value holds until the next point. */
  readonly isStepped?: boolean
  readonly hasArea?: boolean
}

/** A sign above a value, or at the top. */
export interface Sign {
  readonly kind: string
  readonly at: number
  readonly value?: number
  readonly sign: string
  readonly text?: string
}

/** What is drawn on one axis of values, which begins at 0. */
export interface Plot {
  /** The end of the axis. */
  readonly most: number
  /** In pixels. */
  readonly height?: number
  readonly blocks?: ReadonlyArray<Block>
  readonly lines?: ReadonlyArray<Line>
  readonly signs?: ReadonlyArray<Sign>
}

/** A plot beside its name, one of several beneath each other. */
export interface Lane extends Plot {
  readonly name: Html | string
  /** The lane in words, for a reader who does not see it. */
  readonly summary: string
}

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

export interface Chart extends Frame {
  readonly keys?: ReadonlyArray<Key>
  readonly ticks: ReadonlyArray<Tick>
  /** One plot with an axis of this quantity, or lanes. */
  readonly plots: (Plot & { readonly quantity: Quantity }) | ReadonlyArray<Lane>
  /** The figures behind a summary: what they are of, and their table. */
  readonly figures?: readonly [of: string, table: Html]
}

// In pixels.
const plotTop = 24
const plotBottom = 134
const axisHeight = 24
const laneHeight = 22
/** The width of the stretched drawing of lines, in its own units. */
const stretched = 1_000
/** The least width of a block, as a share. */
const widthMin = 0.003

type Height = (value: number) => number

const blockOf = (
  { kind, from, to, values, text, link = null }: Block,
  y: Height,
  top: number,
  bottom: number
): Html => {
  const [low, high] = values === undefined ? [bottom, top] : values.map(y)
  const height = Math.max(1, low! - high!)
  const rect = html`<rect
    class="${kind}"
    x="${across(from)}"
    width="${across(Math.max(widthMin, to - from))}"
    y="${rounded(low! - height)}"
    height="${rounded(height)}"
    ><title>${text}</title></rect
  >`
  return link === null ? rect : html`<a href="${link}" aria-label="${text}" tabindex="-1">${rect}</a>`
}

const signOf = ({ kind, at, value, sign, text }: Sign, y: Height, top: number): Html =>
  html`<text class="${kind}" x="${across(at)}" y="${value === undefined ? Math.max(top, 12) : y(value) - 4}"
    >${sign}${text === undefined ? "" : html`<title>${text}</title>`}</text
  >`

/** The points between two breaks of a line, in the units of the drawing. */
const stretchesOf = ({ points, isStepped = false }: Line, y: Height) => {
  const stretches: Array<Array<readonly [x: number, y: number]>> = []
  let open: Array<readonly [x: number, y: number]> | null = null
  for (const [share, value] of points) {
    if (value === null) open = null
    else {
      const x = rounded(share * stretched)
      if (open === null) stretches.push((open = []))
      else if (isStepped) open.push([x, open.at(-1)![1]])
      open.push([x, y(value)])
    }
  }
  return stretches
}

const lineOf = (line: Line, y: Height, bottom: number): Html => {
  const paths = stretchesOf(line, y).map((points) => [points, `M${points.join("L")}`] as const)
  const areas = paths.map(([points, path]) => `${path}L${points.at(-1)![0]},${bottom}L${points[0]![0]},${bottom}Z`)
  return html`${line.hasArea === true ? html`<path class="${line.kind}-area" d="${areas.join("")}" />` : ""}<path
      class="${line.kind}"
      d="${paths.map(([, path]) => path).join("")}"
    />`
}

const marksOf = ({ blocks = [], lines = [], signs = [] }: Plot, y: Height, top: number, bottom: number): Html =>
  html`${blocks.map((block) => blockOf(block, y, top, bottom))}${
    lines.length === 0
      ? ""
      : html`<svg
          width="100%"
          height="${bottom}"
          viewBox="0 0 ${stretched} ${bottom}"
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          ${lines.map((line) => lineOf(line, y, bottom))}
        </svg>`
  }${signs.map((sign) => signOf(sign, y, top))}`

/** A drawing with links is a group, because the parts of an image are not announced. */
const roleOf = ({ blocks = [] }: Plot): string => (blocks.some(({ link }) => (link ?? null) !== null) ? "group" : "img")

/** A plot without axes, with its description. */
export const strip = (plot: Plot, summary: string): Html => {
  const { height = laneHeight, most } = plot
  const y = (value: number) => rounded(height * (1 - value / most))
  return html`<svg class="strip" height="${height}" role="${roleOf(plot)}" aria-label="${summary}">
    <desc>${summary}</desc>
    ${marksOf(plot, y, 0, height)}
  </svg>`
}

const anchorOf = (share: number): string => (share < 0.04 ? "start" : share > 0.96 ? "end" : "middle")

const axisOf = (ticks: ReadonlyArray<Tick>, y: number): Html =>
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

const lanesOf = ({ id, unit, summary, ticks }: Chart, lanes: ReadonlyArray<Lane>): Html =>
  html`<ul class="lanes">
      ${lanes.map((lane) => html`<li><span class="name">${lane.name}</span>${strip(lane, lane.summary)}</li>`)}
      <li>
        <svg class="axis" height="${axisHeight}" role="img" aria-labelledby="${id}-title ${id}-words">
          <desc id="${id}-words">${summary}</desc>
          ${axisOf(ticks, 0)}
        </svg>
      </li>
    </ul>
    <p class="unit">${unit}</p>`

/** A plot with an axis of values on its left, which ends at a round value. */
const plotOf = ({ id, unit, summary, ticks }: Chart, plot: Plot & { readonly quantity: Quantity }): Html => {
  const [size, word] = unitOf(plot.quantity, plot.most)
  const up = scaleLinear([0, plot.most / size], [plotBottom, plotTop]).nice(3)
  const values = up.ticks(3).filter((tick) => plot.quantity !== "count" || Number.isInteger(tick))
  return html`<svg
    class="plot"
    height="${plotBottom + axisHeight}"
    role="${roleOf(plot)}"
    aria-labelledby="${id}-title"
    aria-describedby="${id}-words"
  >
    <desc id="${id}-words">${summary}</desc>
    <text x="0" y="11">${unit}</text>
    <g class="grid">
      ${values.map((tick) => {
        const at = rounded(up(tick))
        return html`<line x1="0" x2="100%" y1="${at}" y2="${at}" /><text class="up" x="-8" y="${at}" dy="0.32em"
            >${tick.toLocaleString("en-US")}${word}</text
          >`
      })}
    </g>
    ${axisOf(ticks, plotBottom)} ${marksOf(plot, (value) => rounded(up(value / size)), plotTop, plotBottom)}
  </svg>`
}

/** The figures of a chart behind a summary. */
export const figuresBelow = (id: string, of: string, body: Html): Html =>
  html`<details id="${id}-figures">
    <summary>Figures<span class="visually-hidden"> of ${of}</span></summary>
    ${body}
  </details>`

/** A chart under its title, finding and legend; without a drawing where there is nothing to draw. */
export const chart = (data: Omit<Chart, "plots"> & { readonly plots: Chart["plots"] | null }): Html => {
  const { id, title, summary, finding, keys = [], plots, figures } = data
  return html`<figure class="chart">
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
    ${plots === null ? "" : "quantity" in plots ? plotOf({ ...data, plots }, plots) : lanesOf({ ...data, plots }, plots)}
    ${figures === undefined ? "" : figuresBelow(id, ...figures)}
  </figure>`
}

// ------------------------------------------------------------------------------------------------------ lanes of events

/** A stretch of a lane; both ends are shares of the width. */
export interface Stretch {
  readonly from: number
  readonly to: number
  readonly kind: string
  /** Its height as a share of the lane. */
  readonly strength: number
  readonly text: string
  readonly link?: string | null
  /** A sign at its start. Its text says the same. */
  readonly sign?: string
}

/** The least height of a stretch, so that one event is seen beside a time with many. */
const strengthMin = 0.3

/** A lane of stretches. */
export const laneOf = (name: Html | string, summary: string, stretches: ReadonlyArray<Stretch>): Lane => ({
  name,
  summary,
  most: 1,
  blocks: stretches.map(({ strength, ...block }) => ({
    ...block,
    values: [0, Math.max(strengthMin, Math.min(1, strength))]
  })),
  signs: stretches.flatMap(({ from, sign }) =>
    sign === undefined ? [] : [{ kind: "sign", at: Math.min(0.985, from + 0.015), value: 0, sign }]
  )
})
