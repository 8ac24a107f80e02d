/**
 * Amounts by hour over the last day, as stacked bars.
 *
 * Promise: the server draws them, so that they need no script. A table beside them states the same figures. Each colour
 * comes from the style sheet by class.
 */
import { count, table, type Tone } from "./Components.ts"
import { html, type Html } from "./Html.ts"

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
}

const hours = 24
// In units of the drawing, which scales to the available width.
const [width, height] = [720, 130]
const [top, bottom, left] = [14, 104, 4]
const step = (width - 2 * left) / hours
const barWidth = step - 4

const rounded = (value: number): number => Math.round(value * 10) / 10

const hourWords = (hoursAgo: number): string =>
  hoursAgo === 0 ? "the last hour" : `${hoursAgo} to ${hoursAgo + 1} h ago`

const bars = (byHour: ReadonlyArray<ReadonlyArray<number>>, kinds: TrendOptions["kinds"], most: number): Html =>
  html`${byHour.flatMap((amounts, hoursAgo) => {
    const x = rounded(left + (hours - 1 - hoursAgo) * step + 2)
    let below = 0
    return amounts.flatMap((amount, index) => {
      if (amount === 0) return []
      const [from, to] = [below, below + amount]
      below = to
      const y = bottom - ((bottom - top) * to) / most
      const size = Math.max(1, ((bottom - top) * (to - from)) / most)
      return [
        html`<rect
          class="${kinds[index]![2]}"
          x="${x}"
          y="${rounded(y)}"
          width="${rounded(barWidth)}"
          height="${rounded(size)}"
        />`
      ]
    })
  })}`

const sentenceOf = (totals: ReadonlyArray<number>, { kinds, title }: TrendOptions): string =>
  totals.every((total) => total === 0)
    ? `${title} in the last 24 hours: none.`
    : `${title} in the last 24 hours: ${kinds
        .flatMap(([, word], index) => (totals[index]! > 0 ? [`${count(totals[index]!)} ${word}`] : []))
        .join(", ")}.`

/** The bars with a sentence, and a table of their figures. */
export const trend = (amounts: ReadonlyArray<HourAmount>, options: TrendOptions): Html => {
  const { id, title, kinds, countedMax } = options
  const byHour = Array.from({ length: hours }, (_, hoursAgo) =>
    kinds.map(([kind]) =>
      amounts.reduce((sum, one) => (one.hoursAgo === hoursAgo && one.kind === kind ? sum + one.amount : sum), 0)
    )
  )
  const totals = kinds.map((_, index) => byHour.reduce((sum, one) => sum + one[index]!, 0))
  const most = Math.max(1, ...byHour.map((one) => one.reduce((sum, amount) => sum + amount, 0)))
  const filled = byHour.flatMap((one, hoursAgo) => (one.some((amount) => amount > 0) ? [{ hoursAgo, one }] : []))
  return html`<figure class="trend">
    <figcaption id="${id}-words">
      ${sentenceOf(totals, options)}
      ${countedMax === null ? "" : html`<span class="detail">Only the newest ${count(countedMax)} are counted.</span>`}
    </figcaption>
    ${
      filled.length === 0
        ? ""
        : html`<svg class="chart" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-words">
              <line class="axis" x1="${left}" x2="${width - left}" y1="${bottom}" y2="${bottom}" />
              ${bars(byHour, kinds, most)}
              <text x="${left}" y="${height - 6}">24 h ago</text>
              <text class="across" x="${width / 2}" y="${height - 6}">12 h ago</text>
              <text class="up" x="${width - left}" y="${height - 6}">now</text>
            </svg>
            <ul class="legend">
              ${kinds.map(([, word, tone], index) => (totals[index] === 0 ? "" : html`<li class="${tone}">${word}</li>`))}
            </ul>
            <details id="${id}-figures">
              <summary>Figures by hour<span class="visually-hidden"> of ${title.toLowerCase()}</span></summary>
              ${table(
                `${title} by hour, at most ${count(most)} in one; hours without any are left out`,
                `Hour, ${kinds.map(([, word]) => `#${word}`).join(", ")}`,
                filled.map(({ hoursAgo, one }) => [hourWords(hoursAgo), ...one.map(count)])
              )}
            </details>`
    }
  </figure>`
}
