/**
 * Reader of the service's deliveries: EVT-06 to EVT-11.
 *
 * Promise: `read` returns an event or the reason why the body is not one, for any bytes; it never throws. An event only
 * says what to read: its id for deduplication, its type, and the plain fields that name the record. Numerals keep the
 * digits that were sent. {@link verify} checks a delivery first.
 */
import { timestamp } from "../../../src/catalogue/Field.ts"
import type { DeliveryReader, Event, InvalidEvent } from "../../../src/connector/Delivery.ts"
import { eventsOf, type EventVerb, testEvent } from "../catalogue/events.ts"
import { serviceV2 } from "../catalogue/index.ts"
import { isObject, type JsonObject, member } from "./Envelope.ts"
import { kindAt, memberStart, skipSpace, valueEnd } from "./JsonText.ts"
import { verify } from "./Signature.ts"
import { Beyond, isStorable, reader, InvalidValue } from "./Values.ts"

/** The names that the documents show (EVT-06, H-01), without that of the test. */
const eventsDefault = ["orders.created", "orders.updated", "shipments.created", "invoices.posted"] as const

/** The events that together announce every change of a resource; none of one that the catalogue does not know. */
export const announcing = (path: string): ReadonlyArray<string> => {
  const resource = serviceV2.resources.get(path)
  return resource === undefined ? [] : eventsOf(resource)
}

/** A removed record keeps its time of change, so a row of that time does not show the removal. */
export const mayBeRemoval = (type: string): boolean => type.endsWith(`.${"cancelled" satisfies EventVerb}`)

/** Verbs of events whose `data` is the record itself (EVT-11, H-01). */
const verbs: Readonly<Record<EventVerb, true>> = { created: true, updated: true, cancelled: true, posted: true }

const typeLengthMax = 200
const idMax = 9_223_372_036_854_775_807n
const eventIdShape = /^[\x20-\x7e]{1,200}$/

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const noEvent = (detail: string): InvalidEvent => ({ _tag: "NoEvent", detail })

/** The path of the resource that a type names; null when it names none. */
export const resourceOf = (type: string): string | null => {
  const dot = type.lastIndexOf(".")
  return dot < 1 || type === testEvent ? null : type.slice(0, dot)
}

const isOfRecord = (type: string): boolean => Object.hasOwn(verbs, type.slice(type.lastIndexOf(".") + 1))

const readCreated = reader(timestamp("createdate"))

/** The instant in UTC; null when the value is not an instant. */
const instantOf = (value: unknown): string | null => {
  if (typeof value !== "string") return null
  const read = readCreated(JSON.stringify(value))
  if (read instanceof InvalidValue) return null
  return read instanceof Beyond ? read.text : read
}

/** Whether a member's value is a number with a fraction or an exponent, whose digits a float would lose. */
const hasFraction = (text: string): boolean => /"\s*:\s*-?\d+[.eE]/.test(text)

/** The digits of a number of the object that begins at `at()`, as sent; null when it is not an integer. */
const wholeOf = (parsed: number, text: string, at: () => number, name: string): bigint | null => {
  if (Number.isSafeInteger(parsed) && !hasFraction(text)) return BigInt(parsed)
  const from = memberStart(text, at(), name)
  const raw = from === null ? "" : text.slice(from, valueEnd(text, from))
  return /^-?\d{1,19}$/.test(raw) ? BigInt(raw) : null
}

const companyOf = (text: string, envelope: JsonObject): bigint | null => {
  const value = member(envelope, "companyid")
  if (typeof value === "string") return /^\d{1,18}$/.test(value) ? BigInt(value) : null
  const company = typeof value === "number" ? wholeOf(value, text, () => skipSpace(text, 0), "companyid") : null
  return company === null || company > idMax || company < -idMax ? null : company
}

/** Reads the body of a delivery whose signature is valid. */
const read = (body: Uint8Array): Event | InvalidEvent => {
  if (body.length === 0) return noEvent("the body is empty")
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return noEvent("the body begins with a byte order mark")
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    return noEvent("the body is not UTF-8")
  }
  let envelope: unknown
  try {
    envelope = JSON.parse(text)
  } catch {
    return noEvent("the body is not JSON")
  }
  if (!isObject(envelope)) return noEvent("the body is not a JSON object")
  const id = member(envelope, "id")
  if (typeof id !== "string") return noEvent("the event has no id")
  if (!eventIdShape.test(id)) return noEvent("the event's id is not 1 to 200 printable ASCII characters")
  const type = member(envelope, "type")
  if (typeof type !== "string" || type === "") return noEvent("the event has no type")
  if (type.length > typeLengthMax) return noEvent(`the event's type is longer than ${typeLengthMax} characters`)
  if (!isStorable(type)) return noEvent("the event's type contains characters that a database text cannot hold")

  const given = member(envelope, "data")
  const data = isObject(given) ? given : null
  let start: number | null = null
  /** Start of `data` in the text; used only when it is an object. */
  const dataStart = () => (start ??= memberStart(text, skipSpace(text, 0), "data") ?? 0)

  const recordIdOf = (): string | null => {
    if (data === null || !isOfRecord(type)) return null
    const number = member(data, "id")
    const whole =
      typeof number === "number"
        ? wholeOf(number, text, dataStart, "id")
        : typeof number === "string" && /^[1-9]\d{0,18}$/.test(number)
          ? BigInt(number)
          : null
    return whole === null || whole < 1n || whole > idMax ? null : String(whole)
  }

  const value = (field: string): string | null => {
    const found = data === null ? undefined : member(data, field)
    switch (typeof found) {
      case "string":
        return isStorable(found) ? found : null
      case "boolean":
        return String(found)
      case "number": {
        const from = memberStart(text, dataStart(), field)
        return from === null || kindAt(text, from) !== "number" ? null : text.slice(from, valueEnd(text, from))
      }
      default:
        return null
    }
  }

  const resource = resourceOf(type)
  // Cancelling a record changes it (FIELD-13). A removed record is sent as it was, with the time of its last change.
  const isChange = data !== null && (!mayBeRemoval(type) || member(data, "cancel") === true)
  const changed = isChange ? member(data, "lastchangedate") : undefined
  return {
    id,
    type,
    resource,
    recordId: resource === null ? null : recordIdOf(),
    stamp: typeof changed === "string" && isStorable(changed) ? changed : null,
    companyId: companyOf(text, envelope),
    occurredAt: instantOf(member(envelope, "createdate")),
    value
  }
}

/** Verification and reading of the service's deliveries. */
export const deliveryReader: DeliveryReader = {
  // SIG-01; header names are case-insensitive.
  signatureHeader: "svc-signature",
  eventsDefault,
  eventsOf: (resources) => (resources ?? [...serviceV2.resources.keys()]).flatMap(announcing),
  verify,
  read
}
