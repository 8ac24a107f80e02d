/**
 * The equality of a record's text with its row, decided without parsing the record.
 *
 * Promise: a record that is equal here is equal by `Compare.ts`. The matcher answers no more than that: a record in an
 * unusual form, one with fields that the catalogue does not know, and every difference are left to `Compare.ts`.
 *
 * Method: the bytes between the values of one record become the template of the next ones. A value is equal when its text
 * is that of the column, or by the comparison of single values in `Expected.ts`.
 */
import { customFieldsName } from "../catalogue/Protection.ts"
import type { Field } from "../catalogue/Field.ts"
import type { Table } from "../warehouse/Table.ts"
import { canonical, parse } from "../json/Json.ts"
import * as Expected from "./Expected.ts"
import type { Row } from "./WarehouseRows.ts"

const quote = 34
const comma = 44
const backslash = 92
const zero = 48
const nine = 57
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125

/** No value ends here, or it differs. */
const noMatch = -1

/** The position after the string that begins at `at`. */
const stringEnd = (text: string, at: number): number => {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1
    while (text.charCodeAt(before) === backslash) before--
    if ((end - before) % 2 === 1) return end + 1
  }
  return noMatch
}

/** The position after the value that begins at `at`, in JSON without white space outside of strings. */
const valueEnd = (text: string, at: number): number => {
  let depth = 0
  for (let place = at; place < text.length;) {
    const code = text.charCodeAt(place)
    if (code === quote) {
      place = stringEnd(text, place)
      if (place < 0 || depth === 0) return place
      continue
    }
    if (code === openBrace || code === openBracket) depth++
    else if (code === closeBrace || code === closeBracket) {
      if (depth === 0) return place
      if (--depth === 0) return place + 1
    } else if (depth === 0 && (code === comma || code <= 32)) return place
    place++
  }
  return noMatch
}

/** A value of a record: the text before it, and the column that holds it; null for the install's own fields. */
interface Member {
  readonly before: string
  readonly position: number | null
}

interface Template {
  readonly members: ReadonlyArray<Member>
  readonly after: string
  /** Columns whose fields the record does not carry; they are empty. */
  readonly absent: ReadonlyArray<number>
  readonly hasCustomFields: boolean
}

const plainName = /^[^"\\]+$/

/** The template of a record; null where a member is unknown, repeated, or in an unusual form. */
const templateOf = (text: string, positions: ReadonlyMap<string, number>): Template | null => {
  if (text.charCodeAt(0) !== openBrace) return null
  const members = new Map<string, Member>()
  let from = 0
  for (let at = 1; ;) {
    const nameEnd = text.charCodeAt(at) === quote ? stringEnd(text, at) : noMatch
    if (nameEnd < 0 || text[nameEnd] !== ":") return null
    const name = text.slice(at + 1, nameEnd - 1)
    const position = name === customFieldsName ? null : positions.get(name)
    if (position === undefined || members.has(name) || !plainName.test(name)) return null
    members.set(name, { before: text.slice(from, nameEnd + 1), position })
    from = valueEnd(text, nameEnd + 1)
    if (from < 0) return null
    if (text.charCodeAt(from) !== comma) break
    at = from + 1
  }
  const after = text.slice(from)
  if (after !== "}") return null
  return {
    members: [...members.values()],
    after,
    absent: [...positions].flatMap(([name, position]) => (members.has(name) ? [] : [position])),
    hasCustomFields: members.has(customFieldsName)
  }
}

/** What `JSON.parse` does not keep: names and texts with escapes (Node 24.21), and digits of a number. */
const inexact = /\\|(?:^|[:,[])\s*-?(?:\d+[.eE]|\d{16})/

type Plain = null | boolean | number | string | ReadonlyArray<Plain> | PlainObject
interface PlainObject {
  readonly [name: string]: Plain
}

const isSame = (one: Plain, other: Plain): boolean => {
  if (one === other) return true
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const members = Object.entries(one)
  return (
    members.length === Object.keys(other).length &&
    members.every(([name, value]) => Object.hasOwn(other, name) && isSame(value, (other as PlainObject)[name]!))
  )
}

/** Whether two JSON texts have the same {@link canonical} form. Throws where one is no JSON. */
export const isSameJson = (one: string, other: string): boolean =>
  one === other ||
  (inexact.test(one) || inexact.test(other)
    ? canonical(parse(one)) === canonical(parse(other))
    : isSame(JSON.parse(one) as Plain, JSON.parse(other) as Plain))

/** `2026-01-31T23:59:59` */
const secondLength = 19
const fractionMax = 6

/** The digits of a second without zeros at the end; null where they are none, or too many. */
const fractionOf = (text: string, from: number, to: number): string | null => {
  if (from === to) return ""
  const count = to - from - 1
  if (text[from] !== "." || count === 0 || count > fractionMax) return null
  let end = to
  while (text.charCodeAt(end - 1) === zero) end--
  return text.slice(from + 1, end)
}

/** Whether the string that begins at `at` is the instant of a column, in UTC, and no finer. */
const isSameInstant = (text: string, at: number, end: number, stored: string): boolean => {
  if (!stored.endsWith("+00:00") || text[end - 1] !== "Z" || end - 1 - at < secondLength) return false
  if (!text.startsWith(stored.slice(0, secondLength), at)) return false
  const fraction = fractionOf(text, at + secondLength, end - 1)
  return fraction !== null && fraction === fractionOf(stored, secondLength, stored.length - "+00:00".length)
}

/** Whether the value between `at` and `end` is that of the column, by the comparison of single values. */
const isInColumn = (field: Field, text: string, at: number, end: number, stored: string): boolean => {
  const value = parse(text.slice(at, end))
  if (field.inferred !== null) {
    const { type } = field.inferred
    return Expected.inferredCanonical(type, value) === Expected.inferredCanonicalOfRow(type, stored)
  }
  return !Expected.exceedsColumn(field, value) && Expected.isInColumn(field, value, stored)
}

/** The position after the value that begins at `at`, where it is that of the column; {@link noMatch} where it may differ. */
const matchValue = (field: Field, text: string, at: number, stored: string | null): number => {
  if (stored === null) return text.startsWith("null", at) ? at + 4 : noMatch
  const kind = field.type._tag
  if (field.inferred === null && kind !== "list") {
    if (text.charCodeAt(at) === quote) {
      const end = text.indexOf('"', at + 1)
      const isText = end - at - 1 === stored.length && text.startsWith(stored, at + 1) && !stored.includes("\\")
      const isEqual =
        kind === "date" || kind === "timestamp"
          ? isText
            ? !Expected.exceedsColumn(field, stored)
            : kind === "timestamp" && isSameInstant(text, at + 1, end, stored)
          : isText
      if (isEqual) return end + 1
    } else if (text.startsWith(stored, at)) {
      // The text after the value follows by the template, so that the value ends here.
      const last = stored.charCodeAt(stored.length - 1)
      const isNumber = (kind === "integer" || kind === "decimal") && last >= zero && last <= nine
      const isBoolean = kind === "boolean" && (stored === "true" || stored === "false")
      if (isNumber || isBoolean) return at + stored.length
    }
  }
  const end = valueEnd(text, at)
  if (end < 0 || text.startsWith("null", at)) return noMatch
  const isEqual =
    field.inferred === null && kind === "list"
      ? isSameJson(text.slice(at, end), stored)
      : isInColumn(field, text, at, end, stored)
  return isEqual ? end : noMatch
}

const matchCustomFields = (text: string, at: number, stored: string | null): number => {
  if (stored === null) return text.startsWith("null", at) ? at + 4 : noMatch
  const end = valueEnd(text, at)
  return end >= 0 && !text.startsWith("null", at) && isSameJson(text.slice(at, end), stored) ? end : noMatch
}

const hasNoExtra = ({ extra }: Row): boolean => extra === null || extra === "{}"

const numberShape = /(?:0|-?[1-9]\d{0,17})(?=,|\})/y

export interface RowMatcher {
  /** The record's number; null where the record has to be parsed to find it. */
  readonly idOf: (text: string) => string | null
  /** Whether the record is equal to the row, which exists; false where it may differ. */
  readonly isEqual: (text: string, row: Row) => boolean
  /** Takes a record as the template of the next ones. */
  readonly learn: (text: string) => void
}

export const make = ({ resource }: Table): RowMatcher => {
  const { fields, roles } = resource
  const positions = new Map(fields.map(({ name }, position) => [name, position]))
  const idPosition = positions.get(roles.id) ?? null
  let template: Template | null = null

  const isEqual = (known: Template, text: string, { columns, customFields }: Row): boolean => {
    let at = 0
    for (const { before, position } of known.members) {
      if (!text.startsWith(before, at)) return false
      at += before.length
      at =
        position === null
          ? matchCustomFields(text, at, customFields)
          : matchValue(fields[position]!, text, at, columns[position] ?? null)
      if (at < 0) return false
    }
    if (text.length - at !== known.after.length || !text.startsWith(known.after, at)) return false
    if (!known.hasCustomFields && customFields !== null) return false
    for (const position of known.absent) if ((columns[position] ?? null) !== null) return false
    return true
  }

  return {
    idOf: (text) => {
      const first = template?.members[0]
      if (first === undefined || first.position !== idPosition || !text.startsWith(first.before)) return null
      numberShape.lastIndex = first.before.length
      return numberShape.exec(text)?.[0] ?? null
    },
    isEqual: (text, row) => {
      if (template === null || !hasNoExtra(row)) return false
      try {
        return isEqual(template, text, row)
      } catch {
        // A part of it is no JSON.
        return false
      }
    },
    learn: (text) => {
      template = templateOf(text, positions) ?? template
    }
  }
}
