/** Bars over time, stacked where there are several series; a sentence where there are few. */
import {
  type Block,
  type Chart,
  chart,
  formats,
  type Frame,
  type Key,
  type Plot,
  type Quantity,
  type Tick
} from "./Chart.ts"
import { count, table, type Tone } from "./Components.ts"
import type { Html } from "./Html.ts"

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

/** The greatest width of a bar, as a share. */
const barMax = 0.07
/** Fewer bars than this are a sentence and a table. */
const barsMin = 3
/** Fewer places without data than this have no words. */
const wordsMin = 4

const hasFigures = ({ values }: Slot): boolean => values !== null && values.some((value) => value > 0)
const hasNote = ({ note }: Slot): boolean => (note ?? null) !== null
const sumOf = ({ values }: Slot): number => (values ?? []).reduce((sum, value) => sum + value, 0)

/** Places in a row without data, as one shade. */
const missingOf = (slots: ReadonlyArray<Slot>, most: number): Pick<Required<Plot>, "blocks" | "signs"> => {
  const starts = slots.flatMap(({ values }, index) =>
    values === null && (index === 0 || slots[index - 1]!.values !== null) ? [index] : []
  )
  const stretches = starts.map((from) => {
    const next = slots.findIndex(({ values }, index) => index > from && values !== null)
    return { from, to: next === -1 ? slots.length : next }
  })
  return {
    blocks: stretches.map(({ from, to }) => ({
      kind: "missing",
      from: from / slots.length,
      to: to / slots.length,
      text: `${slots[from]!.words} to ${slots[to - 1]!.words}: no data`
    })),
    signs: stretches
      .filter(({ from, to }) => to - from >= wordsMin)
      .map(({ from, to }) => ({ kind: "words", at: (from + to) / 2 / slots.length, value: most / 2, sign: "no data" }))
  }
}

/** The bars of a slot from the bottom to the top, on the shade of its note. */
const barsOf = ({ slots, series, quantity }: BarChart, { words, to = null, values, note }: Slot, index: number) => {
  const [from, width] = [index / slots.length, 1 / slots.length]
  const margin = (width - Math.min(barMax, 0.84 * width)) / 2
  let low = 0
  const bars = (values ?? []).map((value, kind): Block => {
    const high = low + value
    const [tone, word] = series[kind]!
    const text = `${words}: ${formats[quantity](value)} ${word}`
    const bar: Block = {
      kind: tone,
      from: from + margin,
      to: from + width - margin,
      values: [low, high],
      text,
      link: to
    }
    low = high
    return bar
  })
  return [
    ...((note ?? null) === null ? [] : [{ kind: "noted", from, to: from + width, text: `${words}: ${note!}` }]),
    ...bars.filter((_, kind) => values![kind]! > 0)
  ]
}

const figuresOf = ({ title, heading, series, slots, quantity, unit }: BarChart): Pick<Chart, "figures"> =>
  heading === null
    ? {}
    : {
        figures: [
          title,
          table(
            `${title} (${unit}), newest first; times without any are left out`,
            `${heading}, ${series.map(([, word]) => `#${word}`).join(", ")}`,
            slots
              .filter(hasFigures)
              .toReversed()
              .map(({ words, values }) => [words, ...values!.map(formats[quantity])])
          )
        ]
      }

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

/** The bars with their legend and their figures. */
export const barChart = (data: BarChart): Html => {
  const { slots, quantity, target = null } = data
  const filled = slots.filter(hasFigures).length
  if (filled === 0) return chart({ ...data, summary: data.empty, keys: [], plots: null })
  if (filled < barsMin) return chart({ ...data, ...figuresOf(data), keys: [], plots: null })
  // A sign above the highest bar stays below the caption.
  const headroom = slots.some(({ sign }) => sign !== undefined) ? 1.05 : 1
  const most = headroom * Math.max(data.least, target?.value ?? 0, ...slots.map(sumOf))
  const missing = missingOf(slots, most)
  const signs = slots.flatMap((slot, index) =>
    slot.sign === undefined
      ? []
      : [{ kind: "sign", at: (index + 0.5) / slots.length, value: sumOf(slot), sign: slot.sign }]
  )
  return chart({
    ...data,
    ...figuresOf(data),
    keys: legendOf(data),
    plots: {
      quantity,
      most,
      blocks: [...missing.blocks, ...slots.flatMap((slot, index) => barsOf(data, slot, index))],
      signs: [...missing.signs, ...signs],
      lines:
        target === null
          ? []
          : [
              {
                kind: "target",
                points: [
                  [0, target.value],
                  [1, target.value]
                ]
              }
            ]
    }
  })
}
