/** Amounts by hour over the last 24 hours, as stacked bars. */
import { barChart } from "./BarChart.ts"
import { hourSlots, placesOf } from "./Hours.ts"
import { count, type Tone } from "./Components.ts"
import type { Html } from "./Html.ts"

/** An amount of one kind in one hour; at is its start. */
export interface HourAmount {
  readonly at: Date
  readonly kind: string
  readonly amount: number
}

/** Amounts of the last 24 hours, and how far they were counted. */
export interface HourAmounts {
  readonly amounts: ReadonlyArray<HourAmount>
  /** The limit, where only the newest rows were counted; null where all of the time were. */
  readonly countedMax: number | null
  readonly now: Date
}

export interface TrendOptions {
  /** Unique on its page. */
  readonly id: string
  /** What is counted: `Events received`. */
  readonly title: string
  /** From the bottom of a bar to its top. */
  readonly kinds: ReadonlyArray<readonly [kind: string, word: string, tone: Tone]>
}

/** The bars, and a table of their figures; the sentence has their sums. */
export const trend = ({ amounts, countedMax, now }: HourAmounts, { id, title, kinds }: TrendOptions): Html => {
  const hours = placesOf([], now).map(({ at }) => ({
    at,
    hour: amounts.filter((one) => one.at.getTime() === at.getTime())
  }))
  const bars = hourSlots(hours, (own) => ({
    values: kinds.map(([kind]) => own.reduce((sum, one) => (one.kind === kind ? sum + one.amount : sum), 0))
  }))
  const totals = kinds.flatMap(([, word], index) => {
    const total = bars.slots.reduce((sum, { values }) => sum + values![index]!, 0)
    return total > 0 ? [`${count(total)} ${word}`] : []
  })
  const cut = countedMax === null ? "" : ` Only the newest ${count(countedMax)} are counted.`
  return barChart({
    id,
    title: `${title} in the last 24 hours`,
    unit: "by hour",
    summary: `${totals.join(", ")}.${cut}`,
    quantity: "count",
    series: kinds.map(([, word, tone]) => [tone, word]),
    ...bars,
    least: 4,
    heading: "Hour",
    empty: `none.${cut}`
  })
}
