/** The axis of time of a chart, and its hours with what is known of each. */
import { scaleUtc } from "d3-scale"
import type { Slot } from "./BarChart.ts"
import type { Tick } from "./Chart.ts"
import { clock, hourMs } from "./Times.ts"

/** Roughly. With a label more, those of 25 hours touch on a phone. */
const labelsAcross = 2.9

/** Marks at times of the clock, and at the current time; on a phone there is a gap between two labels. */
export const timeTicks = (from: Date, now: Date): ReadonlyArray<Tick> => {
  const share = scaleUtc([from, now], [0, 1])
  return [
    ...share
      .ticks(labelsAcross)
      .map((at) => ({ share: share(at), label: clock(at) }))
      .filter((tick) => tick.share < 0.8),
    { share: 1, label: "now" }
  ]
}

/** An hour of the clock with what is known of it; null without data. */
export interface Place<Hour> {
  readonly at: Date
  readonly hour: Hour | null
}

/**
 * The last hours of the clock with what is known of each, oldest first; the current one is the last. Every chart and sum
 * of "the last 24 hours" counts these.
 */
export const placesOf = <Hour extends { readonly at: Date }>(
  known: ReadonlyArray<Hour>,
  now: Date,
  hours = 24
): ReadonlyArray<Place<Hour>> => {
  const byTime = new Map(known.map((hour) => [hour.at.getTime(), hour]))
  const last = Math.floor(now.getTime() / hourMs) * hourMs
  return Array.from({ length: hours }, (_, index) => {
    const at = new Date(last - (hours - 1 - index) * hourMs)
    return { at, hour: byTime.get(at.getTime()) ?? null }
  })
}

/** The least length of an axis that begins with the first run. */
const hoursMin = 6

/** The hours since the first one with data: the axis of a new warehouse begins with its first run. */
export const sinceFirst = <Hour>(places: ReadonlyArray<Place<Hour>>): ReadonlyArray<Place<Hour>> => {
  const first = places.findIndex(({ hour }) => hour !== null)
  return places.slice(Math.max(0, Math.min(first, places.length - hoursMin)))
}

/** The marks of an axis of hours. */
export const hourTicks = (places: ReadonlyArray<Place<unknown>>): ReadonlyArray<Tick> => {
  const start = places[0]!.at
  return timeTicks(start, new Date(start.getTime() + places.length * hourMs))
}

/** The slots and the axis of bars by hour. */
export const hourSlots = <Hour>(
  places: ReadonlyArray<Place<Hour>>,
  slotOf: (hour: Hour, at: Date) => Omit<Slot, "words">,
  words: (at: Date) => string = clock
) => ({
  slots: places.map(({ at, hour }): Slot => ({
    words: words(at),
    ...(hour === null ? { values: null } : slotOf(hour, at))
  })),
  ticks: hourTicks(places)
})
