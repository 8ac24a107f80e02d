/**
 * Decoding of one JSON value to the text of a field, from the text as it was sent.
 *
 * Promise: a value is read exactly as it was sent, or not at all. No number is ever a float here. A value that the
 * field cannot hold is an {@link InvalidValue} with the reason; a value that the column would truncate is {@link
 * Beyond}.
 */
import type { Field, FieldType, InferredType } from "../../../src/catalogue/Field.ts"
import { kindAt, stringEnd, stringValue } from "./JsonText.ts"

/** The field cannot hold the value. */
export class InvalidValue {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

/** The column holds `text` (null: nothing of the value); the value sent has more and is stored beside it. */
export class Beyond {
  readonly text: string | null
  constructor(text: string | null) {
    this.text = text
  }
}

export type Read = string | null | InvalidValue | Beyond

/** Significant digits of a decimal column, `numeric(20, scale)`. */
export const decimalDigitsMax = 20
/** Digits after the second that a timestamp column holds. */
export const fractionDigitsMax = 6

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
/** Digits of the longest int64, sign included; a longer text is not converted. */
const integerLengthMax = 20
/** Maximum nesting of a value stored as JSON; deeper ones exhaust the stack of a reader. */
const nestingMax = 200
/** Bounds of a number stored as JSON: the range of the database's decimals. */
const exponentMax = 1000
const numberLengthMax = 1000
const shownMax = 60

const shown = (raw: string): string => (raw.length <= shownMax ? raw : `${raw.slice(0, shownMax)}…`)

/** Whether the text is well formed and free of NUL, which a database text cannot hold. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\0")

// ---------------------------------------------------------------------------------------------------------------------
// Calendar
// ---------------------------------------------------------------------------------------------------------------------

export const daysIn = (year: number, month: number): number =>
  month === 2
    ? (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
      ? 29
      : 28
    : month === 4 || month === 6 || month === 9 || month === 11
      ? 30
      : 31

const dayShape = /^(\d{4})-(\d\d)-(\d\d)$/

/** Whether the text is a day of the calendar, `YYYY-MM-DD`, of the years 1 to 9999. */
const isDay = (text: string): boolean => {
  const match = dayShape.exec(text)
  if (match === null) return false
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
}

interface Instant {
  /** `YYYY-MM-DDTHH:MM:SS` in UTC. */
  readonly second: string
  /** Digits after the second, as sent. */
  readonly fraction: string
}

/** RFC 3339, without a leap second. */
const instantShape =
  /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/

const readInstant = (text: string): Instant | null => {
  const match = instantShape.exec(text)
  if (match === null) return null
  const [, day = "", time = "", fraction = "", sign, hours = "0", minutes = "0"] = match
  if (!isDay(day)) return null
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000
  if (offsetMs === 0) return { second: `${day}T${time}`, fraction }
  const ms = Date.parse(`${day}T${time}Z`) + (sign === "-" ? offsetMs : -offsetMs)
  const second = new Date(ms).toISOString().slice(0, 19)
  return isDay(second.slice(0, 10)) ? { second, fraction } : null
}

/** The form the API documents: UTC, `Z`, at most six digits of a second. */
const plainInstantShape = /^.{10}T.{8}(?:\.\d{1,6})?Z$/
const isPlainInstant = (text: string): boolean => plainInstantShape.test(text) && readInstant(text) !== null

const isZeros = (digits: string): boolean => /^0*$/.test(digits)

// ---------------------------------------------------------------------------------------------------------------------
// Field types
// ---------------------------------------------------------------------------------------------------------------------

const integerShape = /^-?\d+$/

const readInteger = (raw: string, typed: boolean): Read => {
  const kind = kindAt(raw, 0)
  if (kind === "boolean" && !typed) return raw === "true" ? "1" : "0"
  if (kind === "number" || kind === "string") {
    const text = kind === "number" ? raw : stringValue(raw, 0, raw.length)
    if (integerShape.test(text)) {
      const sign = text.startsWith("-") ? "-" : ""
      const digits = text.slice(sign.length).replace(/^0+(?=\d)/, "")
      if (digits.length <= integerLengthMax) {
        const value = BigInt(sign + digits)
        if (value >= int64Min && value <= int64Max) return value.toString()
      }
      return new InvalidValue(`is outside the range of a 64-bit integer: ${shown(raw)}`)
    }
  }
  return new InvalidValue(`is not an integer: ${shown(raw)}`)
}

const decimalShape = /^(-?)0*(\d+)(?:\.(\d+))?$/

const readDecimal = (raw: string, scale: number): Read => {
  const kind = kindAt(raw, 0)
  const text = kind === "number" ? raw : kind === "string" ? stringValue(raw, 0, raw.length) : ""
  const match = decimalShape.exec(text)
  if (match === null) return new InvalidValue(`is not a plain decimal: ${shown(raw)}`)
  const [, sign = "", whole = "", fraction = ""] = match
  if (!isZeros(fraction.slice(scale))) {
    return new InvalidValue(`has more than the ${scale} decimals of the field: ${shown(raw)}`)
  }
  if ((whole === "0" ? 0 : whole.length) > decimalDigitsMax - scale) {
    return new InvalidValue(`has more than ${decimalDigitsMax - scale} digits before the point: ${shown(raw)}`)
  }
  const kept = fraction.slice(0, scale)
  const magnitude = kept === "" ? whole : `${whole}.${kept}`
  return sign === "-" && !(whole === "0" && isZeros(kept)) ? `-${magnitude}` : magnitude
}

const readBoolean = (raw: string): Read => {
  const text = kindAt(raw, 0) === "string" ? stringValue(raw, 0, raw.length) : raw
  if (text === "true" || raw === "1") return "true"
  if (text === "false" || raw === "0") return "false"
  return new InvalidValue(`is neither true nor false: ${shown(raw)}`)
}

const readString = (raw: string, typed: boolean): Read => {
  switch (kindAt(raw, 0)) {
    case "string": {
      const text = stringValue(raw, 0, raw.length)
      if (!text.isWellFormed()) return new InvalidValue("contains half a surrogate pair")
      return text.includes("\0") ? new InvalidValue("contains the character NUL") : text
    }
    // A code sent as a number keeps its digits.
    case "number":
      return raw
    case "boolean":
      return typed ? new InvalidValue(`is not text: ${shown(raw)}`) : raw
    default:
      return new InvalidValue(`is not text: ${shown(raw)}`)
  }
}

const readDate = (raw: string): Read => {
  if (kindAt(raw, 0) === "string") {
    const text = stringValue(raw, 0, raw.length)
    if (isDay(text)) return text
    const instant = readInstant(text)
    if (instant !== null) {
      const day = instant.second.slice(0, 10)
      return instant.second.endsWith("T00:00:00") && isZeros(instant.fraction) ? day : new Beyond(day)
    }
  }
  return new InvalidValue(`is not a calendar day: ${shown(raw)}`)
}

const readTimestamp = (raw: string): Read => {
  if (kindAt(raw, 0) === "string") {
    const text = stringValue(raw, 0, raw.length)
    if (isDay(text)) return `${text}T00:00:00Z`
    const instant = readInstant(text)
    if (instant !== null) {
      const fraction = instant.fraction.slice(0, fractionDigitsMax)
      const column = fraction === "" ? `${instant.second}Z` : `${instant.second}.${fraction}Z`
      return isZeros(instant.fraction.slice(fractionDigitsMax)) ? column : new Beyond(column)
    }
  }
  return new InvalidValue(`is not an instant with an offset (RFC 3339): ${shown(raw)}`)
}

/** A number in a JSON text; a test moves `lastIndex` from its start to its end. */
const numberText = /[-+.\deE]+/y

/** The reason why the JSON text cannot be stored as JSON in a database; null when it can. */
export const unkeepable = (raw: string): string | null => {
  const kind = kindAt(raw, 0)
  if (kind === "boolean" || kind === "null") return null
  if (kind === "number") return unkeepableNumber(raw)
  if (raw.includes("\\u")) {
    const reason = unkeepableString(JSON.parse(raw))
    if (reason !== null) return reason
  }
  if (kind === "string") return null
  let depth = 0
  for (let at = 0; at < raw.length; at++) {
    const code = raw.charCodeAt(at)
    if (code === 34) at = stringEnd(raw, at) - 1
    else if (code === 123 || code === 91) {
      if (++depth > nestingMax) return `is nested deeper than ${nestingMax} levels`
    } else if (code === 125 || code === 93) depth--
    else if (code === 45 || (code >= 48 && code <= 57)) {
      numberText.lastIndex = at
      numberText.test(raw)
      const end = numberText.lastIndex
      const reason = unkeepableNumber(raw.slice(at, end))
      if (reason !== null) return reason
      at = end - 1
    }
  }
  return null
}

const unkeepableNumber = (raw: string): string | null => {
  const exponent = raw.search(/[eE]/)
  const tooFar = exponent >= 0 && Math.abs(Number(raw.slice(exponent + 1))) > exponentMax
  return tooFar || raw.length > numberLengthMax ? `contains a number that cannot be stored: ${shown(raw)}` : null
}

const unkeepableString = (value: unknown): string | null => {
  // An explicit stack instead of recursion: the sender determines the nesting.
  const left: Array<unknown> = [value]
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next === "string") {
      if (!next.isWellFormed()) return "contains half a surrogate pair"
      if (next.includes("\0")) return "contains the character NUL"
    } else if (Array.isArray(next)) {
      for (const item of next) left.push(item)
    } else if (typeof next === "object" && next !== null) {
      for (const [name, item] of Object.entries(next)) left.push(name, item)
    }
  }
  return null
}

const readList = (raw: string): Read => {
  if (kindAt(raw, 0) !== "array") return new InvalidValue(`is not a list: ${shown(raw)}`)
  const reason = unkeepable(raw)
  return reason === null ? raw : new InvalidValue(reason)
}

/** Digits on each side of the point that an inferred column accepts. */
export const inferredDigitsMax = 18

const inferredInteger = /^-?(?:0|[1-9]\d{0,17})$/
const inferredDecimal = /^-?(?:0|[1-9]\d{0,17})(?:\.\d{1,18})?$/
const minusZero = /^-0(?:\.0*)?$/
const isInferredDecimal = (text: string): boolean => inferredDecimal.test(text) && !minusZero.test(text)

/** The text that an inferred column holds exactly, undefined when the value does not fit; the same rules as in SQL. */
const inferredText = (type: InferredType, raw: string): string | undefined => {
  const kind = kindAt(raw, 0)
  const text = kind === "string" ? stringValue(raw, 0, raw.length) : ""
  switch (type) {
    case "json":
      return raw
    case "text":
      return kind === "string" ? text : undefined
    case "boolean":
      return kind === "boolean" ? raw : undefined
    case "integer":
      return kind === "number" && inferredInteger.test(raw) && raw !== "-0" ? raw : undefined
    case "number":
      return kind === "number" && isInferredDecimal(raw) ? raw : undefined
    case "decimal":
      return kind === "string" && isInferredDecimal(text) ? text : undefined
    case "date":
      return kind === "string" && isDay(text) ? text : undefined
    case "timestamp":
      return kind === "string" && isPlainInstant(text) ? text : undefined
  }
}

/** Decodes a value of an inferred field; a value that does not fit the type stays beside the columns as sent. */
const readInferred = (type: InferredType, raw: string): Read => {
  const reason = unkeepable(raw)
  if (reason !== null) return new InvalidValue(reason)
  const text = inferredText(type, raw)
  if (text !== undefined) return text
  // A number or a flag is readable as text; its type is reported beside it.
  const kind = kindAt(raw, 0)
  const isReadable = kind === "boolean" || (kind === "number" && isInferredDecimal(raw))
  return new Beyond(type === "text" && isReadable ? raw : null)
}

/** Compiles the reader of one value's JSON text. */
export const reader = (field: Field): ((raw: string) => Read) => {
  const { inferred } = field
  const read = inferred === null ? readerOf(field.type, field.typed) : (raw: string) => readInferred(inferred.type, raw)
  return (raw) => (raw === "null" ? null : read(raw))
}

const readerOf = (type: FieldType, typed: boolean): ((raw: string) => Read) => {
  switch (type._tag) {
    case "integer":
      return (raw) => readInteger(raw, typed)
    case "decimal":
      return (raw) => readDecimal(raw, type.scale)
    case "boolean":
      return readBoolean
    case "string":
      return (raw) => readString(raw, typed)
    case "date":
      return readDate
    case "timestamp":
      return readTimestamp
    case "list":
      return readList
  }
}
