/**
 * A chart of the use of a rate budget.
 *
 * Promise: the server draws it, so that it needs no script. Each colour comes from the style sheet by class, and a
 * description states the same facts in words. Times without samples are a gap in the line.
 */
import { scaleLinear, scaleUtc } from "d3-scale"
import { area, type CurveFactory, curveLinear, curveStepAfter, line } from "d3-shape"
import type { Sample } from "../tasks/SampleBudget.ts"
import { clock } from "../web/Times.ts"
import { html, type Html } from "./Page.ts"

export interface ChartOptions {
  /** Unique on its page. */
  readonly id: string
  readonly from: Date
  readonly to: Date
  /** Samples further apart than this have a gap between them. */
  readonly gapMs: number
}

// In units of the drawing, which scales to the available width.
const width = 720
const height = 260
const margin = { top: 34, right: 34, bottom: 44, left: 80 }
const [left, right] = [margin.left, width - margin.right]
const [top, bottom] = [margin.top, height - margin.bottom]
/** The minimum of the axis' end, so that few requests do not look like many. */
const topLeast = 10
const ticksUp = 4
const ticksAcross = 6

/** A sample, or a gap. */
type Place = { readonly at: Date; readonly point: Sample | null }

/** The samples, with a gap between those that are too far apart. */
const withHoles = (points: ReadonlyArray<Sample>, gapMs: number): ReadonlyArray<Place> =>
  points.flatMap((point, index): ReadonlyArray<Place> => {
    const before = points[index - 1]
    const place = { at: point.at, point }
    return before !== undefined && point.at.getTime() - before.at.getTime() > gapMs
      ? [{ at: before.at, point: null }, place]
      : [place]
  })

/** Periods of consecutive samples for which a condition is true. */
const stretches = (
  points: ReadonlyArray<Sample>,
  gapMs: number,
  holds: (point: Sample) => boolean
): ReadonlyArray<{ readonly from: Date; readonly to: Date }> => {
  const found: Array<{ from: Date; to: Date }> = []
  let last: Sample | undefined
  for (const point of points) {
    const open = found.at(-1)
    const isNext = last !== undefined && holds(last) && point.at.getTime() - last.at.getTime() <= gapMs
    if (holds(point)) {
      if (isNext && open !== undefined) open.to = point.at
      else found.push({ from: point.at, to: point.at })
    }
    last = point
  }
  return found
}

/** The refusals since the sample before, for each sample that has some. */
export const refusalsOf = (
  points: ReadonlyArray<Sample>
): ReadonlyArray<{ readonly at: Date; readonly refusals: number }> =>
  points.flatMap((point, index) => {
    const before = points[index - 1]
    return before !== undefined && point.refusals > before.refusals
      ? [{ at: point.at, refusals: point.refusals - before.refusals }]
      : []
  })

/** The description of the chart. */
export const describe = (points: ReadonlyArray<Sample>, { from, to, gapMs }: ChartOptions): string => {
  const [first] = points
  if (first === undefined) return `Nothing was measured between ${clock(from)} and ${clock(to)}.`
  const peak = points.reduce((most, point) => (point.used > most.used ? point : most), first)
  const limit = peak.allowed === null ? "" : ` of ${peak.allowed} allowed`
  const pauses = stretches(points, gapMs, (point) => point.isPaused)
  const refused = refusalsOf(points).reduce((sum, { refusals }) => sum + refusals, 0)
  const times = (count: number) => (count === 1 ? "once" : `${count} times`)
  return [
    `Between ${clock(from)} and ${clock(to)} at most ${peak.used}${limit} requests a minute were used, at ${clock(peak.at)}.`,
    pauses.length === 0 ? "" : `The source requested a pause ${times(pauses.length)}.`,
    refused === 0 ? "" : `It refused requests (429) ${times(refused)}.`
  ]
    .filter((sentence) => sentence !== "")
    .join(" ")
}

const rounded = (value: number): number => Math.round(value * 10) / 10

export const budgetChart = (points: ReadonlyArray<Sample>, options: ChartOptions): Html => {
  const { id, from, to, gapMs } = options
  const most = points.reduce(
    (sofar, { used, allowed, configured }) => Math.max(sofar, used, allowed ?? 0, configured ?? 0),
    topLeast
  )
  const across = scaleUtc([from, to], [left, right])
  const up = scaleLinear([0, most * 1.05], [bottom, top])
  const x = (at: Date) => rounded(across(at))
  const y = (value: number) => rounded(up(value))
  const places = withHoles(points, gapMs)
  /** An unknown value breaks the line. */
  const valueAt = (of: (point: Sample) => number | null) => (place: Place) =>
    place.point === null ? null : of(place.point)
  const drawnLine = (of: (point: Sample) => number | null, curve: CurveFactory) => {
    const value = valueAt(of)
    return (
      line<Place>()
        .defined((place) => value(place) !== null)
        .x(({ at }) => x(at))
        .y((place) => y(value(place) ?? 0))
        .curve(curve)([...places]) ?? ""
    )
  }
  const used = valueAt((point) => point.used)
  const usedArea =
    area<Place>()
      .defined((place) => used(place) !== null)
      .x(({ at }) => x(at))
      .y0(bottom)
      .y1((place) => y(used(place) ?? 0))([...places]) ?? ""
  const pauses = stretches(points, gapMs, (point) => point.isPaused)
  return html`<svg class="chart" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-words">
    <title id="${id}-title">Requests a minute over the last hour</title>
    <desc id="${id}-words">${describe(points, options)}</desc>
    <g class="grid">
      ${up
        .ticks(ticksUp)
        .map(
          (value) =>
            html`<line x1="${left}" x2="${right}" y1="${y(value)}" y2="${y(value)}" /><text
                class="up"
                x="${left - 8}"
                y="${y(value)}"
                dy="0.32em"
              >
                ${value.toLocaleString("en-US")}
              </text>`
        )}
      ${across
        .ticks(ticksAcross)
        .map(
          (at) =>
            html`<line x1="${x(at)}" x2="${x(at)}" y1="${bottom}" y2="${bottom + 5}" /><text
                class="across"
                x="${x(at)}"
                y="${bottom + 28}"
              >
                ${clock(at)}
              </text>`
        )}
    </g>
    <text class="unit" x="${left - 50}" y="${top - 14}">requests a minute</text>
    ${pauses.map(
      (one) =>
        html`<rect
          class="paused"
          x="${x(one.from)}"
          y="${top}"
          width="${Math.max(3, rounded(x(one.to) - x(one.from)))}"
          height="${bottom - top}"
          ><title>The source requested a pause, ${clock(one.from)} to ${clock(one.to)}</title></rect
        >`
    )}
    <path class="used-area" d="${usedArea}" />
    <path class="used" d="${drawnLine((point) => point.used, curveLinear)}" />
    <path class="configured" d="${drawnLine((point) => point.configured, curveStepAfter)}" />
    <path class="allowed" d="${drawnLine((point) => point.allowed, curveStepAfter)}" />
    ${refusalsOf(points).map(
      ({ at, refusals }) =>
        html`<path class="refused" d="M${x(at)} ${top + 12}l-7 -12h14z"
          ><title>${refusals} refused (429) at ${clock(at)}</title></path
        >`
    )}
    <path class="axis" d="M${left} ${top}V${bottom}H${right}" />
  </svg>`
}
