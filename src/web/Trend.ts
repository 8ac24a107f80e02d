/** Amounts by hour over the last day, as stacked bars. */
import { barChart, hoursUntil, hourTicks } from "./Chart.ts"
import { count, type Tone } from "./Components.ts"
import type { Html } from "./Html.ts"
import { clock } from "./Times.ts"

/** An amount of one kind in one hour; 0 is the hour that ends now. */
export interface HourAmount {
  readonly hoursAgo: number
  readonly kind: string
  readonly amount: number
}

export interface TrendOptions {
  /** Unique on its page. */
  readonly id: string
  /** What is counted: `Events received`. */
  readonly title: string
  /** From the bottom of a bar to its top. */
  readonly kinds: ReadonlyArray<readonly [kind: string, word: string, tone: Tone]>
  /** The limit, where only the newest rows were counted; null where all of the day were. */
  readonly countedMax: number | null
  /** Present where hours are those of the clock: 0 is the one of this time. Otherwise hour 0 ends now. */
  readonly clockHour?: Date
}

const hours = 24

const hourWords = (hoursAgo: number): string =>
  hoursAgo === 0 ? "the last hour" : `${hoursAgo} to ${hoursAgo + 1} h ago`

/** The bars, and a table of their figures. */
export const trend = (
  amounts: ReadonlyArray<HourAmount>,
  { id, title, kinds, countedMax, clockHour }: TrendOptions
): Html => {
  const starts = clockHour === undefined ? null : hoursUntil(clockHour, hours - 1)
  const sumOf = (kind: string, hoursAgo?: number) =>
    amounts.reduce(
      (sum, one) =>
        one.kind === kind && (hoursAgo === undefined || one.hoursAgo === hoursAgo) ? sum + one.amount : sum,
      0
    )
  const totals = kinds.flatMap(([kind, word]) => (sumOf(kind) > 0 ? [`${count(sumOf(kind))} ${word}`] : []))
  const cut = countedMax === null ? "" : ` Only the newest ${count(countedMax)} are counted.`
  return barChart({
    id,
    title: `${title} in the last 24 hours`,
    unit: "by hour",
    summary: `${totals.join(", ")}.${cut}`,
    quantity: "count",
    series: kinds.map(([, word, tone]) => [tone, word]),
    slots: Array.from({ length: hours }, (_, index) => {
      const hoursAgo = hours - 1 - index
      return {
        words: starts === null ? hourWords(hoursAgo) : clock(starts[index]!),
        values: kinds.map(([kind]) => sumOf(kind, hoursAgo))
      }
    }),
    ticks:
      starts !== null
        ? hourTicks(starts, 6)
        : [
            { share: 0, label: "24 h ago" },
            { share: 0.5, label: "12 h ago" },
            { share: 1, label: "now" }
          ],
    least: 4,
    heading: "Hour",
    empty: "none."
  })
}
