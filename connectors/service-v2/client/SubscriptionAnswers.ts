/**
 * Decoding of subscriptions, delivery attempts and test results.
 *
 * Promise: unknown members are ignored; a missing member that is needed makes the answer {@link Unreadable}. Times stay
 * the text that was sent.
 */
import type { Attempt, Subscription, TestResult } from "../../../src/connector/Subscriptions.ts"
import { resourceOf } from "./Deliveries.ts"
import { isObject, type JsonObject, member, Unreadable } from "./Envelope.ts"
import { memberStart, valueEnd } from "./JsonText.ts"
import { isStorable } from "./Values.ts"

/** A record of an answer, and its start in the text. */
export interface RecordText {
  readonly text: string
  readonly from: number
  readonly value: JsonObject
}

export const without = (what: string, name: string) => new Unreadable(`${what} has no readable ${name}`, true)

/** The text of a member; null when it is absent or null, undefined when it is not text. */
const textOf = (value: JsonObject, name: string): string | null | undefined => {
  const found = member(value, name) ?? null
  return found === null || (typeof found === "string" && isStorable(found)) ? found : undefined
}

const textsOf = (value: unknown): ReadonlyArray<string> | null =>
  Array.isArray(value) && value.every((one) => typeof one === "string" && isStorable(one)) ? value : null

const countOf = (value: JsonObject, name: string): number | null => {
  const found = member(value, name)
  return typeof found === "number" && Number.isSafeInteger(found) && found >= 0 ? found : null
}

/** The number of a subscription as it was sent. */
const idOf = ({ text, from, value }: RecordText): string | null => {
  const found = member(value, "id")
  const start = typeof found === "number" ? memberStart(text, from, "id") : null
  const id = start === null ? found : text.slice(start, valueEnd(text, start))
  return typeof id === "string" && /^[1-9]\d{0,18}$/.test(id) ? id : null
}

export const subscriptionOf = (found: RecordText): Subscription | Unreadable => {
  const what = "the subscription"
  const { value } = found
  const id = idOf(found)
  if (id === null) return without(what, "id")
  const url = textOf(value, "url") ?? ""
  if (url === "") return without(what, "url")
  const events = textsOf(member(value, "events"))
  if (events === null) return without(what, "events")
  const paused = member(value, "paused")
  if (typeof paused !== "boolean") return without(what, "paused")
  const cancelled = member(value, "cancel") ?? false
  if (typeof cancelled !== "boolean") return without(what, "cancel")
  const description = textOf(value, "description")
  if (description === undefined) return without(what, "description")
  const lastDeliveryAt = textOf(value, "lastdeliverydate")
  if (lastDeliveryAt === undefined) return without(what, "lastdeliverydate")
  const disabledAt = textOf(value, "disableddate")
  if (disabledAt === undefined) return without(what, "disableddate")
  return {
    id,
    url,
    events,
    description,
    paused,
    failCount: countOf(value, "failcount"),
    lastDeliveryAt: lastDeliveryAt === "" ? null : lastDeliveryAt,
    disabledAt: disabledAt === "" ? null : disabledAt,
    cancelled
  }
}

/** A receiver's answer may be any bytes: characters that a database text cannot hold are replaced. */
export const readable = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD")

/** The status of an answer; null when none arrived (H-18). */
const statusOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599 ? value : null

/** The status of a receiver that no longer exists: the source disables the subscription at once (DLV-03). */
const goneStatus = 410

/** An entry of the delivery log (LOG-05). */
export const attemptOf = ({ value }: RecordText): Attempt | Unreadable => {
  const what = "an entry of the delivery log"
  const eventId = textOf(value, "eventid") ?? ""
  if (eventId === "") return without(what, "eventid")
  const eventType = textOf(value, "eventtype") ?? ""
  if (eventType === "") return without(what, "eventtype")
  const attempts = countOf(value, "attempts")
  if (attempts === null) return without(what, "attempts")
  const delivered = member(value, "delivered")
  if (typeof delivered !== "boolean") return without(what, "delivered")
  const abandoned = member(value, "abandoned")
  if (typeof abandoned !== "boolean") return without(what, "abandoned")
  const at = textOf(value, "entrydate") ?? ""
  if (at === "") return without(what, "entrydate")
  const responseBody = member(value, "responsebody")
  const responseCode = statusOf(member(value, "responsecode"))
  return {
    eventId,
    eventType,
    resource: resourceOf(eventType),
    attempts,
    delivered,
    abandoned,
    responseCode,
    disables: responseCode === goneStatus,
    responseBody: typeof responseBody === "string" ? readable(responseBody) : "",
    durationMs: countOf(value, "durationms"),
    at
  }
}

/** The members of the answer and of its nested objects: their names are not documented. */
const flat = (value: JsonObject): ReadonlyArray<readonly [name: string, value: unknown]> =>
  Object.entries(value).flatMap(([name, given]) =>
    isObject(given)
      ? Object.entries(given).map(([inner, one]) => [`${name}.${inner}`, one] as const)
      : [[name, given] as const]
  )

/** The result of a test, recognised by its values and names (LOG-02, H-14). */
export const testOf = (value: JsonObject, raw: string): TestResult => {
  const members = flat(value)
  const named = <A>(shape: RegExp, read: (given: unknown) => A | null): A | null =>
    members.map(([name, given]) => (shape.test(name) ? read(given) : null)).find((one) => one !== null) ?? null
  const text = (given: unknown) => (typeof given === "string" ? readable(given) : null)
  const span = (given: unknown) => (typeof given === "number" && given >= 0 && Number.isFinite(given) ? given : null)
  const responseCode = named(/code|status/i, statusOf)
  const isSilent = members.some(([name, given]) => /code|status/i.test(name) && given === null)
  const isDelivered = named(/delivered|success/i, (given) => (typeof given === "boolean" ? given : null))
  return {
    eventId: named(/event_?id$/i, text),
    responseCode,
    responseBody: named(/body$/i, text),
    durationMs: named(/duration|elapsed|round/i, span) ?? named(/time|ms$/i, span),
    delivered: isDelivered ?? (responseCode !== null && responseCode >= 200 && responseCode < 300),
    isSilent: responseCode === null && isSilent,
    raw
  }
}
