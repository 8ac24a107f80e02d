/**
 * The time of a list: the last hour, 24 hours or seven days, a day, or all.
 *
 * Promise: days are those of the reader's zone. The address of a day has its date and zone, so that it has the same
 * meaning later, and for a reader in another zone.
 */
import * as Effect from "effect/Effect"
import { dayAfter, dayIn, dayMs, hourMs, startOfDay, zoneOf } from "../web/Times.ts"
import { choiceLinks } from "./ListControls.ts"
import { PageError, type Html, type PageRequest } from "./Page.ts"
import { ofQuery } from "./Params.ts"

const spans: ReadonlyArray<readonly [time: string, words: string, ms: number]> = [
  ["hour", "Last hour", hourMs],
  ["day", "Last 24 h", dayMs],
  ["week", "Last 7 days", 7 * dayMs]
]

/** Days with a name, as days after today. */
const namedDays: ReadonlyArray<readonly [name: string, words: string, days: number]> = [
  ["today", "Today", 0],
  ["yesterday", "Yesterday", -1]
]

export interface ChosenTime {
  /** Its value in an address; null is all. */
  readonly time: string | null
  /** In a sentence: `in the last hour`, `on 2026-11-27 (Europe/Berlin)`. */
  readonly words: string
  readonly since: Date
  /** Not included. */
  readonly until: Date
}

/** `2026-11-27@Europe/Berlin`. */
const dayValue = (day: string, zone: string): string => `${day}@${zone}`

const dayWords = (value: string): string => value.replace(/@(.*)/, " ($1)")

/** The day of an address; null where there is no such day. */
const dayOf = (time: string): ChosenTime | null => {
  const [, day = "", zone = ""] = /^(\d{4}-\d\d-\d\d)@(.+)$/.exec(time) ?? []
  const at = Date.parse(day)
  if (Number.isNaN(at) || new Date(at).toISOString().slice(0, 10) !== day || zoneOf(zone) !== zone) return null
  return {
    time,
    words: `on ${dayWords(time)}`,
    since: startOfDay(zone, day),
    until: startOfDay(zone, dayAfter(day))
  }
}

/** The time that the query names. */
export const timeOf = (request: PageRequest): Effect.Effect<ChosenTime, PageError> => {
  const { zone } = request
  const now = request.now.getTime()
  const ago = (time: string | null, words: string, ms: number): ChosenTime => ({
    time,
    words,
    since: new Date(now - ms),
    until: new Date(now + dayMs)
  })
  const text = ofQuery(request, "time")
  if (text === null) return Effect.succeed(ago(null, "", now))
  const span = spans.find(([time]) => time === text)
  if (span !== undefined) return Effect.succeed(ago(text, `in the ${span[1].toLowerCase()}`, span[2]))
  const named = namedDays.find(([name]) => name === text)
  const day = dayOf(named === undefined ? text : dayValue(dayAfter(dayIn(zone, request.now), named[2]), zone))
  return day === null
    ? Effect.fail(new PageError({ status: 400, message: "There is no such time." }))
    : Effect.succeed(day)
}

/** Links to the times; a day that was chosen and has no name is one more. */
export const timeChoice = (
  { now, zone }: PageRequest,
  path: string,
  query: Readonly<Record<string, string | null>>,
  label = "Time"
): Html => {
  const today = dayIn(zone, now)
  const days = namedDays.map(([, words, later]) => {
    // Without a script the zone of the reader is not known.
    return [dayValue(dayAfter(today, later), zone), zone === "UTC" ? `${words} (UTC)` : words] as const
  })
  const chosen = query["time"] ?? ""
  const isOther = chosen.includes("@") && !days.some(([value]) => value === chosen)
  return choiceLinks(label, path, query, "time", [
    [null, "All times"],
    ...spans.slice(0, 2).map(([time, words]) => [time, words] as const),
    ...days,
    ...(isOther ? [[chosen, dayWords(chosen)] as const] : []),
    ...spans.slice(2).map(([time, words]) => [time, words] as const)
  ])
}
