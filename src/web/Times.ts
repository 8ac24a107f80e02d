/**
 * Times of pages in the reader's time zone.
 *
 * A function of this module returns plain text with a placeholder for a time, which is valid in any text of a page: an
 * element, an attribute, a `<title>` or a label of an SVG chart. {@link writeTimes} replaces the placeholders of the whole
 * page when the response is written, because only then the zone of the reader is known.
 *
 * Promise: text of other origin is no placeholder, because each placeholder has a random value of this process. A day
 * that was counted in UTC is not converted: write its date as it is.
 */
import { randomBytes } from "node:crypto"
import * as DateTime from "effect/DateTime"
import { html, type Html } from "./Html.ts"

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

/** A time; the text is RFC 3339, with any number of digits of a second. */
export type Instant = Date | string

type Form = "clock" | "minute" | "second" | "exactly" | "title"

// Noncharacters of Unicode: no browser and no escaping changes them.
const [open, close] = ["\uFDD0", "\uFDD1"]
const key = randomBytes(9).toString("base64url")
const placeholder = (kind: string, text: string): string => `${open}${key}${kind}:${text}${close}`
const placeholders = new RegExp(`${open}${key}(\\w+):([^${close}]*)${close}`, "g")

const rfc3339 = (at: Instant): string => (typeof at === "string" ? at : at.toISOString())
/** Without the part that the form does not show, so that equal texts are equal placeholders. */
const [toMinute, toSecond] = [/(T\d\d:\d\d).*/, /(T\d\d:\d\d:\d\d).*/]

/** `09:03`. */
export const clock = (at: Date): string => placeholder("clock", at.toISOString().replace(toMinute, "$1:00Z"))

/** `2026-11-28 09:03`. */
export const minute = (at: Date): string => placeholder("minute", at.toISOString().replace(toMinute, "$1:00Z"))

/** `2026-11-28 09:03:55`. */
export const second = (at: Date): string => placeholder("second", at.toISOString().replace(toSecond, "$1Z"))

/** `2026-11-28 09:03:55.123`, with the digits of the instant. */
export const exactly = (at: Instant): string => placeholder("exactly", rfc3339(at))

/** The name of the reader's time zone: `Europe/Berlin`. */
export const zoneName: string = placeholder("zone", "")

/** A text that changes on its own, such as an age: the page counts as unchanged when only such texts differ. */
export const moving = (text: string): string => placeholder("moving", text)

/**
 * A `time` element that can get the focus. Pointer, focus and touch show the exact instant, in the reader's zone and in
 * UTC.
 */
export const timeElement = (at: Instant, text: string): Html => {
  const given = rfc3339(at)
  return html`<time datetime="${given}" title="${placeholder("title", given)}" tabindex="0">${text}</time>`
}

/** An instant to the second. */
export const instant = (at: Instant): Html => timeElement(at, second(new Date(at)))

/** An instant with all its digits. */
export const exactInstant = (at: Instant): Html => timeElement(at, exactly(at))

const formats = new Map<string, Intl.DateTimeFormat>()
const formatsMax = 100

/** `2026-11-28 09:03:55` in a zone. */
const formatOf = (zone: string): Intl.DateTimeFormat => {
  const known = formats.get(zone)
  if (known !== undefined) return known
  // This locale writes a time as ISO 8601 does.
  const made = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" })
  if (formats.size >= formatsMax) formats.clear()
  formats.set(zone, made)
  return made
}

const inZone = (text: string, zone: string): string =>
  zone === "UTC" ? text.replace("T", " ").replace(/(?:\.\d+)?Z$/, "") : formatOf(zone).format(new Date(text))

const inForm = (form: Form, text: string, zone: string): string => {
  // An instant of another offset is converted first.
  const utc = text.endsWith("Z") ? text : new Date(text).toISOString()
  const fraction = /\.\d+(?=Z)/.exec(utc)?.[0] ?? ""
  const local = inZone(utc, zone)
  switch (form) {
    case "clock":
      return local.slice(-8, -3)
    case "minute":
      return local.slice(0, -3)
    case "second":
      return local
    case "exactly":
      return local + fraction
    case "title":
      return zone === "UTC"
        ? `${local}${fraction} UTC`
        : `${local}${fraction} ${zone}, ${inZone(utc, "UTC")}${fraction} UTC`
  }
}

/** The day of an instant in a zone: `2026-11-28`. */
export const dayIn = (zone: string, at: Date): string => inZone(at.toISOString(), zone).slice(0, 10)

/** The day that begins so many days after another one. */
export const dayAfter = (day: string, days = 1): string =>
  new Date(Date.parse(day) + days * dayMs).toISOString().slice(0, 10)

/** The first instant of a day in a zone. The day of a change of the clock may have 23 or 25 hours. */
export const startOfDay = (zone: string, day: string): Date =>
  DateTime.toDateUtc(DateTime.makeZonedUnsafe(day, { timeZone: zone, adjustForTimeZone: true }))

/** The zone that a browser reported; `UTC` where it reported none or one that does not exist. */
export const zoneOf = (reported: string | undefined): string => {
  if (reported === undefined || !/^[A-Za-z][\w+/-]{0,63}$/.test(reported)) return "UTC"
  try {
    formatOf(reported)
    return reported
  } catch {
    return "UTC"
  }
}

/** Replaces the placeholders of a page. `hasMoving` false omits the texts that change on their own. */
export const writeTimes = (page: string, zone: string, hasMoving = true): string =>
  page.replace(placeholders, (_, kind: string, text: string) => {
    if (kind === "zone") return zone
    if (kind === "moving") return hasMoving ? text : ""
    return inForm(kind as Form, text, zone)
  })
