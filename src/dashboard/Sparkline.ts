/**
 * Small charts of the last 24 hours of one resource, for a row of a table. The title says the same in words. An hour
 * without data has no bar.
 */
import type { ResourceHour } from "../status/Activity.ts"
import { percent, placesOf, sparkline } from "../web/Chart.ts"
import { count, duration } from "../web/Components.ts"
import { plural } from "../web/Escape.ts"
import { html, type Html } from "./Page.ts"

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
