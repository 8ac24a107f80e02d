/**
 * Small charts of the last 24 hours of one resource, for a row of a table. The title says the same in words. An hour
 * without data has no bar.
 */
import type { ResourceHour } from "../status/Activity.ts"
import { percent } from "../web/Chart.ts"
import { count, duration } from "../web/Components.ts"
import { plural } from "../web/Escape.ts"
import { placesOf } from "../web/Hours.ts"
import { html, type Html } from "./Page.ts"

// In units of the drawing, which is scaled to its place.
const [sparkStep, sparkHeight] = [4, 18]

/**
 * Bars over time for a cell of a table, each kind as one path, with their meaning in words. A value above `most` is cut,
 * and one above 0 has at least one unit.
 */
const sparkline = (
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

/** The records landed by hour, with their sum; nothing where there is no data. */
export const landedSpark = (hours: ReadonlyArray<ResourceHour>, now: Date): Html => {
  if (hours.length === 0) return html`<span class="none">no data</span>`
  const values = placesOf(hours, now).map(({ hour }) => hour?.landed ?? 0)
  const total = values.reduce((sum, value) => sum + value, 0)
  const most = Math.max(1, ...values)
  return total === 0
    ? html`<span class="none">0</span>`
    : html`${count(total)} ${sparkline(`at most ${count(most)} in an hour`, [["busy", values]], most)}`
}

/** The end of the axis, as a multiple of the target: a longer age is cut. */
const shareMax = 2

/**
 * The highest age by hour as a share of its target, which is the line; nothing where there is no data. An age without a
 * target, as of a paused resource, is grey and its own scale.
 */
export const freshnessSpark = (hours: ReadonlyArray<ResourceHour>, now: Date): Html => {
  const places = placesOf(hours, now)
  const values = places.map(({ hour }) => hour?.lateness ?? null)
  const shares = values.flatMap((value) => value ?? [])
  if (shares.length === 0) {
    const ages = places.map(({ hour }) => hour?.ageMs ?? 0)
    const most = Math.max(...ages)
    return most === 0
      ? html`<span class="none">no data</span>`
      : sparkline(`at most ${duration(most)} old; lateness is not measured`, [["quiet", ages]], most)
  }
  const late = shares.filter((share) => share > 1).length
  const words = `at most ${percent(Math.max(...shares))} of the target, late in ${plural(late, "hour")}`
  const only = (isLate: boolean) => values.map((value) => (value !== null && value > 1 === isLate ? value : null))
  return sparkline(
    words,
    [
      ["good", only(false)],
      ["warn", only(true)]
    ],
    shareMax,
    1
  )
}
