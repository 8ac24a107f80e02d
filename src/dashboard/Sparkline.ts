/**
 * Small charts of the last day of one resource, for a row of a table.
 *
 * Promise: the server draws them as one path of bars by hour. The title says the same in words. An hour without data has
 * no bar.
 */
import type { ResourceHour } from "../status/Activity.ts"
import { hoursUntil, percent } from "../web/Chart.ts"
import { count, duration } from "../web/Components.ts"
import { plural } from "../web/Escape.ts"
import { html, type Html } from "./Page.ts"

const [step, height] = [4, 18]
const width = 24 * step

/** The last 24 hours, oldest first; null without data. */
const slotsOf = (hours: ReadonlyArray<ResourceHour>, now: Date): ReadonlyArray<ResourceHour | null> => {
  const byTime = new Map(hours.map((hour) => [hour.at.getTime(), hour]))
  return hoursUntil(now).map((at) => byTime.get(at.getTime()) ?? null)
}

/** Bars as one path of vertical strokes. A value above 0 has at least one unit. */
const barsOf = (values: ReadonlyArray<number | null>, most: number): string =>
  values
    .map((value, index) =>
      value === null || value <= 0
        ? ""
        : `M${index * step + step / 2} ${height}v-${Math.max(1, Math.round((Math.min(value, most) / most) * height))}`
    )
    .join("")

const drawing = (words: string, inner: Html): Html =>
  html`<svg class="spark" viewBox="0 0 ${width} ${height}" role="img">
    <title>${words}</title>
    ${inner}
  </svg>`

const path = (kind: string, shape: string): Html =>
  shape === "" ? html`` : html`<path class="${kind}" d="${shape}" />`

/** The records landed by hour, with their sum; nothing where there is no data. */
export const landedSpark = (hours: ReadonlyArray<ResourceHour>, now: Date): Html => {
  if (hours.length === 0) return html`<span class="none">no data</span>`
  const values = slotsOf(hours, now).map((hour) => hour?.landed ?? null)
  const total = values.reduce<number>((sum, value) => sum + (value ?? 0), 0)
  const most = Math.max(1, ...values.map((value) => value ?? 0))
  return total === 0
    ? html`<span class="none">0</span>`
    : html`${count(total)} ${drawing(`at most ${count(most)} in an hour`, path("busy", barsOf(values, most)))}`
}

/** The end of the axis, as a multiple of the target: a longer age is cut. */
const shareMax = 2

/**
 * The highest age by hour as a share of its target, which is the line; nothing where there is no data. An age without a
 * target, as of a paused resource, is grey and its own scale.
 */
export const freshnessSpark = (hours: ReadonlyArray<ResourceHour>, now: Date): Html => {
  const slots = slotsOf(hours, now)
  const values = slots.map((hour) => hour?.lateness ?? null)
  const shares = values.flatMap((value) => value ?? [])
  if (shares.length === 0) {
    const ages = slots.map((hour) => hour?.ageMs ?? null)
    const most = Math.max(0, ...ages.map((age) => age ?? 0))
    return most === 0
      ? html`<span class="none">no data</span>`
      : drawing(`at most ${duration(most)} old; lateness is not measured`, path("quiet", barsOf(ages, most)))
  }
  const late = shares.filter((share) => share > 1).length
  const words = `at most ${percent(Math.max(...shares))} of the target, late in ${plural(late, "hour")}`
  const only = (isLate: boolean) => values.map((value) => (value !== null && value > 1 === isLate ? value : null))
  return drawing(
    words,
    html`${path("good", barsOf(only(false), shareMax))}${path("warn", barsOf(only(true), shareMax))}${path("target", `M0 ${height / shareMax}h${width}`)}`
  )
}
