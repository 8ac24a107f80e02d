/**
 * Validation of one value, and its JSON text.
 *
 * Promise: a decimal keeps the digits that were given, and is never rounded. A value that does not fit is
 * {@link InvalidValue}, with a message that says what to change.
 */
import type { FieldType } from "../catalogue/Field.ts"
import {
  isList,
  isPlain,
  isPlainText,
  type Json,
  NotJson,
  NumberToken,
  print,
  printSorted,
  read
} from "../json/Json.ts"
import { externalidLengthMax } from "./Externalid.ts"
import { dayOf, instantOf } from "./Time.ts"
import { plural } from "../text/Count.ts"
import type { WriteColumn } from "./WriteSchema.ts"

/** Digits of a decimal, before and after the point together: the columns of the warehouse hold as many. */
const decimalDigitsMax = 20
const int64Max = 2n ** 63n - 1n
const shownMax = 60

/** Why a value does not fit. */
export class InvalidValue {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** The value in a message. */
export const showValue = (value: Json): string => {
  const text = print(value)
  return text.length <= shownMax ? text : `${text.slice(0, shownMax)}…`
}

const codePoints = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

/** The name of a field in a problem: any name can be stored and read. */
export const fieldName = (name: string): string => {
  const plain = isPlainText(name) ? name : JSON.stringify(name)
  return plain.length <= shownMax ? plain : `${plain.slice(0, shownMax)}…`
}

const decimal = /^(-?)(\d+)(?:\.(\d+))?$/
const whole = /^-?(?:0|[1-9]\d*)$/

const decimalText = ({ scale }: FieldType & { readonly _tag: "decimal" }, given: Json): string | InvalidValue => {
  const text = given instanceof NumberToken ? given.text : given
  const match = typeof text === "string" ? decimal.exec(text) : null
  if (match === null) return new InvalidValue(`must be a plain decimal such as "12.50", not ${showValue(given)}`)
  const fraction = match[3] ?? ""
  if (fraction.length > scale) {
    return new InvalidValue(
      `holds ${scale === 0 ? "no decimals" : `at most ${plural(scale, "decimal")}`} and is never rounded here; ${match[0]} has ${fraction.length}`
    )
  }
  const digits = match[2]!.replace(/^0+(?=\d)/, "").length
  const digitsMax = decimalDigitsMax - scale
  if (digits > digitsMax)
    return new InvalidValue(`holds at most ${digitsMax} digits before the point; ${match[0]} has ${digits}`)
  return JSON.stringify(match[0])
}

export const integerText = (given: Json): string | InvalidValue => {
  if (!(given instanceof NumberToken) || !whole.test(given.text)) {
    return new InvalidValue(`must be a whole number, not ${showValue(given)}`)
  }
  const value = given.text.length > 20 ? null : BigInt(given.text)
  if (value === null || value > int64Max || value < -int64Max - 1n)
    return new InvalidValue(`is too large: ${showValue(given)}`)
  return String(value)
}

/** The value as JSON. */
const valueText = (type: FieldType, given: Json): string | InvalidValue => {
  switch (type._tag) {
    case "integer":
      return integerText(given)
    case "decimal":
      return decimalText(type, given)
    case "boolean":
      return typeof given === "boolean"
        ? String(given)
        : new InvalidValue(`must be true or false, not ${showValue(given)}`)
    case "string": {
      if (typeof given !== "string") return new InvalidValue(`must be a text, not ${showValue(given)}`)
      if (!isPlainText(given)) return new InvalidValue("has a NUL or half a surrogate pair, which no text can hold")
      const { maxLength } = type
      if (maxLength !== null && given.length > maxLength) {
        const length = codePoints(given)
        if (length > maxLength)
          return new InvalidValue(`holds at most ${plural(maxLength, "character")}; this has ${length}`)
      }
      return JSON.stringify(given)
    }
    case "date":
      // The source accepts both forms in fields of both types (F-01).
      return typeof given === "string" && (dayOf(given) !== null || instantOf(given) !== null)
        ? JSON.stringify(given)
        : new InvalidValue(`must be a day that exists, YYYY-MM-DD, not ${showValue(given)}`)
    case "timestamp":
      return typeof given === "string" && (instantOf(given) !== null || dayOf(given) !== null)
        ? JSON.stringify(given)
        : new InvalidValue(`must be a time in UTC such as 2026-03-16T09:00:00Z, not ${showValue(given)}`)
    case "list":
      if (!isList(given)) return new InvalidValue(`must be a list, not ${showValue(given)}`)
      return isPlain(given)
        ? printSorted(given)
        : new InvalidValue("has a NUL or half a surrogate pair, which no text can hold")
  }
}

const allowedValues = ({ values }: WriteColumn): string =>
  (values ?? []).map(({ value, meaning }) => `${JSON.stringify(value)} (${meaning})`).join(", ")

/** The value of a column as JSON. */
export const columnText = (column: WriteColumn, given: Json): string | InvalidValue => {
  const text = valueText(column.type, given)
  if (text instanceof InvalidValue || column.values === null) return text
  return column.values.some(({ value }) => JSON.stringify(value) === text)
    ? text
    : new InvalidValue(`must be one of ${allowedValues(column)}, not ${showValue(given)}`)
}

/** The value of a CSV cell for its field. Any other cell stays a text, which is then invalid. */
export const cellValue = (type: FieldType | null, cell: string): Json | InvalidValue => {
  switch (type?._tag) {
    case "integer":
      return whole.test(cell) ? new NumberToken(cell) : cell
    case "boolean":
      if (/^(?:true|yes|1)$/i.test(cell)) return true
      return /^(?:false|no|0)$/i.test(cell) ? false : cell
    case "list":
    case undefined:
      try {
        const { value, duplicates } = read(cell)
        return duplicates.length === 0 ? value : new InvalidValue(`names ${fieldName(duplicates[0]!)} twice`)
      } catch (error) {
        if (error instanceof NotJson) return new InvalidValue(`must be JSON in its cell: ${error.message}`)
        throw error
      }
    default:
      return cell
  }
}

/** An externalid as text. A whole number is accepted too, since many systems have numeric ids. */
export const externalidText = (given: Json): string | InvalidValue => {
  const text = given instanceof NumberToken && whole.test(given.text) ? given.text : given
  if (typeof text !== "string") return new InvalidValue(`must be a text, not ${showValue(given)}`)
  const length = codePoints(text)
  if (length === 0 || length > externalidLengthMax) {
    return new InvalidValue(`has 1 to ${externalidLengthMax} characters; this has ${length}`)
  }
  return isPlainText(text) ? text : new InvalidValue("has a NUL or half a surrogate pair, which no text can hold")
}
