/** Charts of the use of rate budgets: one in detail, or several on one scale. Times without samples are a gap in the line. */
import type { Sample } from "../tasks/SampleBudget.ts"
import { chart, type Key, type Line, type Plot } from "../web/Chart.ts"
import { timeTicks } from "../web/Hours.ts"
import { count } from "../web/Components.ts"
import { clock } from "../web/Times.ts"
import type { Html } from "./Page.ts"

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
/** The least width of a pause, as a share. */
const pauseMin = 0.005

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

const mostOf = (points: ReadonlyArray<Sample>): number =>
  points.reduce(
    (sofar, { used, allowed, configured }) => Math.max(sofar, used, allowed ?? 0, configured ?? 0),
    topLeast
  )

/** The lines of the samples, with their pauses and refusals. */
const plotOf = (points: ReadonlyArray<Sample>, { from, to, gapMs }: Span): Required<Omit<Plot, "height">> => {
  const share = (at: Date) => (at.getTime() - from.getTime()) / (to.getTime() - from.getTime())
  /** Samples that are too far apart have a gap between them. */
  const lineOf = (kind: "used" | "allowed" | "configured"): Line => ({
    kind,
    isStepped: kind !== "used",
    hasArea: kind === "used",
    points: points.flatMap(({ at, [kind]: value }, index): Line["points"] => {
      const before = points[index - 1]?.at ?? at
      return [
        ...(at.getTime() - before.getTime() > gapMs ? [[share(before), null] as const] : []),
        [share(at), value] as const
      ]
    })
  })
  return {
    most: mostOf(points),
    blocks: stretches(points, gapMs, ({ isPaused }) => isPaused).map((one) => ({
      kind: "paused",
      from: share(one.from),
      to: Math.max(share(one.to), share(one.from) + pauseMin),
      text: `The source requested a pause, ${clock(one.from)} to ${clock(one.to)}`
    })),
    lines: [lineOf("used"), lineOf("configured"), lineOf("allowed")],
    signs: refusalsOf(points).map(({ at, refusals }) => ({
      kind: "refused",
      at: share(at),
      sign: "▼",
      text: `${refusals} refused (429) at ${clock(at)}`
    }))
  }
}

/** The requests a minute between two times, with pauses and refusals. */
export const budgetChart = (points: ReadonlyArray<Sample>, options: ChartOptions): Html =>
  chart({
    id: options.id,
    title: "The last hour",
    unit: "requests a minute",
    summary: describe(points, options),
    keys: budgetKeys(points, options.gapMs),
    ticks: timeTicks(options.from, options.to),
    plots: { quantity: "count", ...plotOf(points, options) }
  })

/** A budget among several. */
export interface BudgetLane {
  readonly name: Html | string
  readonly points: ReadonlyArray<Sample>
}

/** The requests a minute of several budgets beneath each other, on one scale. */
export const budgetLanes = (lanes: ReadonlyArray<BudgetLane>, options: ChartOptions, summary: string): Html => {
  const most = Math.max(...lanes.map(({ points }) => mostOf(points)))
  return chart({
    id: options.id,
    title: "The last hour",
    unit: `Requests a minute; the top of each chart is ${count(most)}.`,
    summary,
    keys: [...new Map(lanes.flatMap(({ points }) => budgetKeys(points, options.gapMs)))],
    ticks: timeTicks(options.from, options.to),
    plots: lanes.map(({ name, points }) => ({
      ...plotOf(points, options),
      name,
      summary: describe(points, options),
      height: 52,
      // Half of a line at the top is drawn too.
      most: most * 1.04
    }))
  })
}
