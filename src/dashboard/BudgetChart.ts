/**
 * Charts of the use of rate budgets: one in detail, or several on one scale.
 *
 * Promise: the server draws it, so that it needs no script. Each colour comes from the style sheet by class, and a
 * description states the same facts in words. Times without samples are a gap in the line.
 */
import { scaleUtc } from "d3-scale"
import { area, type CurveFactory, curveLinear, curveStepAfter, line } from "d3-shape"
import type { Sample } from "../tasks/SampleBudget.ts"
import { across, drawing, figure, type Key, plotBottom, plotTop, timeAxis, valueAxis } from "../web/Chart.ts"
import { laneList } from "../web/Lanes.ts"
import { count } from "../web/Components.ts"
import { clock } from "../web/Times.ts"
import { html, type Html } from "./Page.ts"

export interface Span {
  readonly from: Date
  readonly to: Date
  /** Samples further apart than this have a gap between them. */
  readonly gapMs: number
}

export interface ChartOptions extends Span {
  /** Unique on its page. */
  readonly id: string
}

/** The minimum of the axis' end, so that few requests do not look like many. */
const topLeast = 10
const ticksAcross = 4
/** The width of the stretched drawing of the lines, in its own units. */
const stretched = 1_000

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
export const describe = (points: ReadonlyArray<Sample>, { from, to, gapMs }: Span): string => {
  const [first] = points
  if (first === undefined) return `Nothing was measured between ${clock(from)} and ${clock(to)}.`
  const peak = points.reduce((most, point) => (point.used > most.used ? point : most), first)
  const limit = peak.allowed === null ? "" : ` of ${count(peak.allowed)} allowed`
  const pauses = stretches(points, gapMs, (point) => point.isPaused)
  const refused = refusalsOf(points).reduce((sum, { refusals }) => sum + refusals, 0)
  const times = (amount: number) => (amount === 1 ? "once" : `${count(amount)} times`)
  return [
    `Between ${clock(from)} and ${clock(to)} at most ${count(peak.used)}${limit} requests a minute were used, at ${clock(peak.at)}.`,
    pauses.length === 0 ? "" : `The source requested a pause ${times(pauses.length)}.`,
    refused === 0 ? "" : `It refused requests (429) ${times(refused)}.`
  ]
    .filter((sentence) => sentence !== "")
    .join(" ")
}

/** The legend of the charts of these samples. */
export const budgetKeys = (points: ReadonlyArray<Sample>, gapMs: number): ReadonlyArray<Key> => [
  ["used", "used"],
  ...(points.some(({ allowed }) => allowed !== null) ? [["allowed", "allowed"] as const] : []),
  ...(points.some(({ configured }) => configured !== null) ? [["configured", "configured"] as const] : []),
  ...(stretches(points, gapMs, ({ isPaused }) => isPaused).length > 0
    ? [["paused", "the source requested a pause"] as const]
    : []),
  ...(refusalsOf(points).length > 0 ? [["refused", "refused (429)"] as const] : [])
]

/** The lines in a drawing that is stretched to the width, and the area below the use; 0 is at this height. */
const linesOf = (
  points: ReadonlyArray<Sample>,
  { from, to, gapMs }: Span,
  y: (value: number) => number,
  bottom: number
) => {
  const scale = scaleUtc([from, to], [0, stretched])
  const x = ({ at }: Place) => Math.round(scale(at) * 10) / 10
  const places = [...withHoles(points, gapMs)]
  /** An unknown value breaks the line. */
  const valueAt = (of: (point: Sample) => number | null) => (place: Place) =>
    place.point === null ? null : of(place.point)
  const drawn = (of: (point: Sample) => number | null, curve: CurveFactory) => {
    const value = valueAt(of)
    return (
      line<Place>()
        .defined((place) => value(place) !== null)
        .x(x)
        .y((place) => y(value(place) ?? 0))
        .curve(curve)(places) ?? ""
    )
  }
  const used = valueAt((point) => point.used)
  const below = area<Place>()
    .defined((place) => used(place) !== null)
    .x(x)
    .y0(bottom)
    .y1((place) => y(used(place) ?? 0))(places)
  return html`<svg
    width="100%"
    height="${bottom}"
    viewBox="0 0 ${stretched} ${bottom}"
    preserveAspectRatio="none"
    aria-hidden="true"
  >
    <path class="used-area" d="${below ?? ""}" />
    <path class="used" d="${drawn((point) => point.used, curveLinear)}" />
    <path class="configured" d="${drawn((point) => point.configured, curveStepAfter)}" />
    <path class="allowed" d="${drawn((point) => point.allowed, curveStepAfter)}" />
  </svg>`
}

const mostOf = (points: ReadonlyArray<Sample>): number =>
  points.reduce(
    (sofar, { used, allowed, configured }) => Math.max(sofar, used, allowed ?? 0, configured ?? 0),
    topLeast
  )

const ticksOf = ({ from, to }: Span) => {
  const share = scaleUtc([from, to], [0, 1])
  return share.ticks(ticksAcross).map((at) => ({ share: share(at), label: clock(at) }))
}

/** Pauses and refusals, between two heights. */
const marksOf = (points: ReadonlyArray<Sample>, { from, to, gapMs }: Span, top: number, bottom: number): Html => {
  const share = scaleUtc([from, to], [0, 1])
  const widthOf = (one: { readonly from: Date; readonly to: Date }) =>
    across(Math.max(0.005, share(one.to) - share(one.from)))
  return html`${stretches(points, gapMs, (point) => point.isPaused).map(
    (one) =>
      html`<rect
        class="paused"
        x="${across(share(one.from))}"
        y="${top}"
        width="${widthOf(one)}"
        height="${bottom - top}"
        ><title>The source requested a pause, ${clock(one.from)} to ${clock(one.to)}</title></rect
      >`
  )}
  ${refusalsOf(points).map(
    ({ at, refusals }) =>
      html`<text class="refused" x="${across(share(at))}" y="${Math.max(top, 12)}"
        >▼<title>${refusals} refused (429) at ${clock(at)}</title></text
      >`
  )}`
}

/** The requests a minute between two times, with pauses and refusals. */
export const budgetChart = (points: ReadonlyArray<Sample>, options: ChartOptions): Html => {
  const { id, gapMs } = options
  const { y, lines } = valueAxis("count", mostOf(points))
  const frame = {
    id,
    title: "The last hour",
    unit: "requests a minute",
    summary: describe(points, options)
  }
  return figure(
    frame,
    budgetKeys(points, gapMs),
    drawing(
      frame,
      html`${lines}${timeAxis(ticksOf(options), plotBottom)} ${marksOf(points, options, plotTop, plotBottom)}
      ${linesOf(points, options, y, plotBottom)}`
    )
  )
}

/** A budget among several. */
export interface BudgetLane {
  readonly name: Html | string
  readonly points: ReadonlyArray<Sample>
}

// In pixels.
const laneHeight = 52

/** The requests a minute of several budgets beneath each other, on one scale. */
export const budgetLanes = (lanes: ReadonlyArray<BudgetLane>, options: ChartOptions, summary: string): Html => {
  const most = Math.max(...lanes.map(({ points }) => mostOf(points)))
  const y = (value: number) => Math.round((laneHeight - (value / most) * (laneHeight - 2)) * 10) / 10
  const frame = {
    id: options.id,
    title: "The last hour",
    unit: `Requests a minute; the top of each chart is ${count(most)}.`,
    summary
  }
  const all = lanes.flatMap(({ points }) => budgetKeys(points, options.gapMs))
  return figure(
    frame,
    [...new Map(all)],
    laneList(
      frame,
      ticksOf(options),
      lanes.map(({ name, points }) => ({
        name,
        height: laneHeight,
        summary: describe(points, options),
        drawing:
          points.length === 0
            ? html`<text x="50%" y="${laneHeight / 2 + 4}" text-anchor="middle">no samples</text>`
            : html`${marksOf(points, options, 0, laneHeight)} ${linesOf(points, options, y, laneHeight)}`
      }))
    )
  )
}
