/**
 * The row that the warehouse must hold, from the record that the source sent.
 *
 * Promise: this is a second implementation of the warehouse's contract, and shares no code with the client or the
 * landing. A value that no column of its type can hold is still expected, so that it never counts as equal.
 */
import { type Resource, roleField } from "../catalogue/Resource.ts"
import type { Field, InferredType } from "../catalogue/Field.ts"
import { customFieldsName, type FieldRule, isFreeText, memberOf, type Protection } from "../catalogue/Protection.ts"
import type { SourceRecord } from "../connector/Connector.ts"
import type { Table } from "../warehouse/Table.ts"
import {
  canonical,
  canonicalNumber,
  isList,
  isObject,
  type Json,
  type JsonObject,
  NumberToken,
  parse,
  print
} from "../json/Json.ts"

/** A value in a form in which equal values are equal texts; null is empty. */
export type Canonical = string | null

export interface ExpectedRow {
  /** The record's number; null when it has none that a row could have. */
  readonly id: string | null
  /** The sent value for each column of the table; undefined where the record did not carry the field. */
  readonly columns: ReadonlyArray<Json | undefined>
  /** The install's own fields; undefined when not sent. */
  readonly customFields: Json | undefined
  /** The expected `_extra`: fields without a column, and values that a column holds only in part. */
  readonly extra: JsonObject
  /** The record's own stamp as an instant, where the resource has one. */
  readonly changedAt: string | null
}

/** Marks a value that the column cannot hold; no canonical form of a row begins like this. */
const unstorable = (value: Json): string => `\0${print(value)}`

const integerShape = /^(-?)0*(\d+)$/

const plainInteger = (text: string): string | null => {
  const match = integerShape.exec(text)
  if (match === null) return null
  return match[2] === "0" ? "0" : `${match[1]}${match[2]}`
}

/** A decimal without superfluous zeros; null when the text is no plain decimal. */
export const plainDecimal = (text: string): string | null => {
  const match = /^(-?)0*(\d+)(?:\.(\d*))?$/.exec(text)
  if (match === null) return null
  const fraction = (match[3] ?? "").replace(/0+$/, "")
  const plain = fraction === "" ? match[2]! : `${match[2]}.${fraction}`
  return plain === "0" ? "0" : `${match[1]}${plain}`
}

interface Instant {
  /** In UTC, with six digits of a second. */
  readonly text: string
  readonly isMidnight: boolean
  /** Whether it has further digits of a second after the sixth that are not zero. */
  readonly isFiner: boolean
}

const instantShape = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}(?::?\d{2})?)$/
const dayShape = /^\d{4}-\d{2}-\d{2}$/
const minuteMs = 60_000

/** An instant with any UTC offset, exact to the microsecond; null when the text is none. */
export const instantOf = (text: string): Instant | null => {
  if (dayShape.test(text)) return { text: `${text}T00:00:00.000000Z`, isMidnight: true, isFiner: false }
  const match = instantShape.exec(text)
  if (match === null) return null
  const [, day = "", time = "", fraction = "", offset = ""] = match
  const micros = fraction.padEnd(6, "0").slice(0, 6)
  const isFiner = /[1-9]/.test(fraction.slice(6))
  let second = `${day}T${time}`
  if (!/^(?:[Zz]|[+-]00(?::?00)?)$/.test(offset)) {
    const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(3).replace(":", "") || "0")
    const ms = Date.parse(`${second}Z`) - (offset.startsWith("-") ? -1 : 1) * minutes * minuteMs
    if (Number.isNaN(ms)) return null
    second = new Date(ms).toISOString().slice(0, 19)
  }
  const isMidnight = second.endsWith("T00:00:00") && !/[1-9]/.test(fraction)
  return { text: `${second}.${micros}Z`, isMidnight, isFiner }
}

const truth = new Map([
  ["true", "true"],
  ["1", "true"],
  ["false", "false"],
  ["0", "false"]
])

/** The canonical form that a sent value must have in the column of its field. */
export const canonicalOf = (field: Field, value: Json): Canonical => {
  if (value === null) return null
  const text = typeof value === "string" ? value : value instanceof NumberToken ? value.text : null
  switch (field.type._tag) {
    case "integer":
      if (typeof value === "boolean" && !field.typed) return value ? "1" : "0"
      return (text === null ? null : plainInteger(text)) ?? unstorable(value)
    case "decimal":
      return (text === null ? null : plainDecimal(text)) ?? unstorable(value)
    case "boolean":
      return truth.get(text ?? print(value)) ?? unstorable(value)
    case "string":
      if (typeof value === "boolean" && !field.typed) return String(value)
      return text ?? unstorable(value)
    case "date":
      return (typeof value === "string" ? instantOf(value)?.text.slice(0, 10) : undefined) ?? unstorable(value)
    case "timestamp":
      return (typeof value === "string" ? instantOf(value)?.text : undefined) ?? unstorable(value)
    case "list":
      return canonical(value)
  }
}

/**
 * The canonical form of a value that an inferred column holds completely; undefined when the value must be in `_extra`.
 * The type of such a column is a guess, so that both places are right as long as nothing is lost.
 */
export const inferredCanonical = (type: InferredType, value: Json): Canonical | undefined => {
  if (value === null) return null
  switch (type) {
    case "json":
      return canonical(value)
    case "boolean":
      return typeof value === "boolean" ? String(value) : undefined
    case "integer":
    case "number":
      return value instanceof NumberToken ? canonicalNumber(value.text) : undefined
    case "timestamp":
      return typeof value === "string" ? instantOf(value)?.text : undefined
    default:
      return typeof value === "string" ? value : undefined
  }
}

/** The canonical form of an inferred column's text from SQL. */
export const inferredCanonicalOfRow = (type: InferredType, text: string | null): Canonical => {
  if (text === null) return null
  if (type === "json") return canonical(parse(text))
  return type === "timestamp" ? (instantOf(text)?.text ?? text) : text
}

/** The value that a connector read into an inferred column. */
const inferredValue = (type: InferredType, text: string): Json => {
  switch (type) {
    case "json":
      return parse(text)
    case "boolean":
      return text === "true"
    case "integer":
    case "number":
      return new NumberToken(text)
    default:
      return text
  }
}

/** `2026-01-01T00:00:00.000000Z`: no room for a seventh digit. */
const plainInstantLength = 27

/** Whether a column of the field holds the value only in part, so that it must be in `_extra` as well. */
export const exceedsColumn = (field: Field, value: Json): boolean => {
  if (typeof value !== "string") return false
  // The usual forms fit: a date without a time, and an instant in UTC with at most six digits of a second.
  if (value.length <= (field.type._tag === "date" ? 10 : plainInstantLength) && value.length !== 0) {
    if (field.type._tag === "date" || value.endsWith("Z")) return false
  }
  if (field.type._tag === "date") return instantOf(value)?.isMidnight === false
  return field.type._tag === "timestamp" && instantOf(value)?.isFiner === true
}

/**
 * Whether the column holds the sent value. Equal texts mean equal values, except for lists, which saves most of the
 * work.
 */
export const isInColumn = (field: Field, value: Json, text: string | null): boolean => {
  if (value === null || text === null) return value === text
  const sent = value instanceof NumberToken ? value.text : value
  return (sent === text && field.type._tag !== "list") || canonicalOf(field, value) === canonicalOfRow(field, text)
}

/** The canonical form of a column's text from SQL. */
export const canonicalOfRow = (field: Field, text: string | null): Canonical => {
  if (text === null) return null
  switch (field.type._tag) {
    case "decimal":
      return plainDecimal(text) ?? text
    case "timestamp":
      return instantOf(text)?.text ?? text
    case "list":
      return canonical(parse(text))
    default:
      return text
  }
}

const bigintMin = -(2n ** 63n)
const bigintMax = 2n ** 63n - 1n

/** The number of a row; null when no row can have it. */
const rowId = (value: Json | undefined): string | null => {
  const text = value instanceof NumberToken ? value.text : typeof value === "string" ? value : null
  const plain = text === null || text.length > 20 ? null : plainInteger(text)
  if (plain === null) return null
  const number = BigInt(plain)
  return number < bigintMin || number > bigintMax ? null : plain
}

const changedAtOf = (value: Json | undefined): string | null =>
  typeof value === "string" ? (instantOf(value)?.text ?? null) : null

/** Whether a record, as it was sent, passes the filters of its resource. A text that is no record does. */
export const passes = ({ where, field: fields }: Resource, text: string): boolean => {
  if (where.length === 0) return true
  try {
    const record = parse(text)
    return (
      !isObject(record) ||
      where.every(({ field: name, match, value: wanted }) => {
        const field = fields.get(name)
        const sent = record.get(name)
        // Nothing says that it does not pass.
        if (sent === undefined || field === undefined) return true
        const value = canonicalOf(field, sent)
        if (value === null) return false
        // What no column can hold is in quarantine, whatever its value means.
        if (value === unstorable(sent)) return true
        return match === "exact" ? value === wanted : value.toLowerCase().includes(wanted.toLowerCase())
      })
    )
  } catch {
    return true
  }
}

/** The members of a record, or of an item of a list in one, as the privacy rules of its resource keep them. */
const keptMembers = (
  protection: Protection | null,
  sent: JsonObject,
  item: { readonly list: Field | undefined } | null = null
): JsonObject => {
  if (protection === null) return sent
  const members = new Map<string, Json>()
  for (const [name, value] of sent) {
    const rule = item === null ? protection.ruleOf(name) : protection.ruleWithin(name)
    const field = item === null ? protection.sent.field.get(name) : memberOf(item.list, name)
    if (rule === undefined) members.set(name, keptBelow(protection, value, field))
    else if (rule.kind !== "exclude")
      members.set(name, keptValue(rule, item === null ? field : undefined, value, isFreeText(field)))
  }
  return members
}

const keptValue = (rule: FieldRule, field: Field | undefined, value: Json, isFree: boolean): Json => {
  const text =
    field === undefined
      ? value instanceof NumberToken
        ? (plainDecimal(canonicalNumber(value.text)) ?? value.text)
        : typeof value === "string" || value === null
          ? value
          : canonical(value)
      : canonicalOf(field, value)
  return text === null ? null : rule.keep(text, isFree && typeof value === "string")
}

/** A value without a rule: the rules hold for its members too. */
const keptBelow = (protection: Protection, value: Json, list: Field | undefined): Json =>
  isObject(value)
    ? keptMembers(protection, value, { list })
    : isList(value)
      ? value.map((item) => keptBelow(protection, item, list))
      : value

/** A compiled reader of one table's records. */
export interface Reader {
  /** From the record's JSON text. */
  readonly raw: (text: string) => ExpectedRow
  /** From a record that a connector has read. */
  readonly record: (record: SourceRecord) => ExpectedRow
}

const nothing: JsonObject = new Map()

export const reader = (table: Table): Reader => {
  const { fields, roles } = table.resource
  const names = new Set(fields.map((field) => field.name))
  const stamp = roleField(table.resource, "modifiedAt")?.name ?? null
  const unreadable: ExpectedRow = {
    id: null,
    columns: fields.map(() => undefined),
    customFields: undefined,
    extra: nothing,
    changedAt: null
  }

  const fromMembers = (sent: JsonObject): ExpectedRow => {
    const members = keptMembers(table.resource.protection, sent)
    const extra = new Map<string, Json>()
    const columns = fields.map((field): Json | undefined => {
      const value = members.get(field.name)
      if (value === undefined) return undefined
      if (field.inferred === null && exceedsColumn(field, value)) extra.set(field.name, value)
      return value
    })
    for (const [name, value] of members) {
      if (!names.has(name) && name !== customFieldsName) extra.set(name, value)
    }
    return {
      id: rowId(members.get(roles.id)),
      columns,
      customFields: members.get(customFieldsName),
      extra,
      changedAt: stamp === null ? null : changedAtOf(members.get(stamp))
    }
  }

  return {
    raw: (text) => {
      let value: Json
      try {
        value = parse(text)
      } catch {
        return unreadable
      }
      return isObject(value) ? fromMembers(value) : unreadable
    },
    record: (record) => {
      const parsed = record.extra === null ? nothing : parse(record.extra)
      const extra = new Map(isObject(parsed) ? parsed : nothing)
      const texts = record.columns
      const columns = fields.map((field, position): Json | undefined => {
        const text = texts[position]
        if (text === undefined) return undefined
        const { inferred } = field
        if (inferred !== null) {
          const value = extra.get(field.name) ?? (text === null ? null : inferredValue(inferred.type, text))
          extra.delete(field.name)
          return value
        }
        return text === null ? null : field.type._tag === "list" ? parse(text) : text
      })
      const stampPosition = fields.findIndex((field) => field.name === stamp)
      return {
        id: rowId(record.id),
        columns,
        customFields: record.customFields === null ? undefined : parse(record.customFields),
        extra,
        changedAt: stampPosition < 0 ? null : changedAtOf(texts[stampPosition] ?? undefined)
      }
    }
  }
}
