/**
 * Canonical texts of values: equal values have equal texts, whether they come from the source or from Postgres.
 *
 * Promise: written from the documents and from Postgres' output alone. It uses no code of the pipeline, of its
 * comparison or of the client, so that their mistakes cannot be hidden here.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"

/** A number token as it was sent. */
class Token {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

interface Context {
  readonly source?: string
}

/** Parses JSON and keeps numbers as their tokens. */
export const parseExactly = (text: string): unknown =>
  JSON.parse(text, ((_key: string, value: unknown, context: Context) =>
    typeof value === "number" ? new Token(context.source ?? String(value)) : value) as never)

/** `1.50`, `15e-1` and `1.5` are one decimal. */
const decimal = (text: string): string => {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (match === null) return `not a number: ${text}`
  const [, sign, whole = "", fraction = "", exponent = "0"] = match
  let digits = whole + fraction
  let point = whole.length + Number(exponent)
  while (point < 0) {
    digits = `0${digits}`
    point++
  }
  while (point > digits.length) digits += "0"
  const before = digits.slice(0, point).replace(/^0+/, "")
  const after = digits.slice(point).replace(/0+$/, "")
  const plain = `${before === "" ? "0" : before}${after === "" ? "" : `.${after}`}`
  return sign === "-" && plain !== "0" ? `-${plain}` : plain
}

/** `2026-11-21T03:05:43.1Z` and `2026-11-21 03:05:43.1+00` are one instant. */
const instant = (text: string): string => {
  const match = /^(\d{4,}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?(?:Z|\+00(?::00)?)$/.exec(text)
  return match === null ? `not a time: ${text}` : `${match[1]} ${match[2]}.${(match[3] ?? "").padEnd(6, "0")}`
}

/** A day, also where it is sent as its midnight. */
const day = (text: string): string => text.replace(/T00:00:00(?:\.0+)?Z$/, "")

/** Any JSON, with sorted members and with numbers as decimals. */
const json = (value: unknown): string => {
  if (value instanceof Token) return decimal(value.text)
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => `${JSON.stringify(name)}:${json(member)}`)
      .join(",")}}`
  }
  return JSON.stringify(value)
}

/** The canonical text of an absent value. */
export const nothing = "␀"

/** The canonical text of a value that the source sent. */
const fromSource = ({ type }: Field, value: unknown): string => {
  if (value === null || value === undefined) return nothing
  const text = value instanceof Token ? value.text : typeof value === "string" ? value : null
  switch (type._tag) {
    case "integer":
    case "decimal":
      return text === null ? json(value) : decimal(text)
    case "timestamp":
      return text === null ? json(value) : instant(text)
    case "date":
      return text === null ? json(value) : day(text)
    case "boolean":
      return typeof value === "boolean" ? `${value}` : json(value)
    case "string":
      return text ?? json(value)
    case "list":
      return json(value)
  }
}

/** The canonical text of a column that Postgres printed. */
const fromWarehouse = ({ type }: Field, text: string | null): string => {
  if (text === null) return nothing
  switch (type._tag) {
    case "integer":
    case "decimal":
      return decimal(text)
    case "timestamp":
      return instant(text)
    case "list":
      return json(parseExactly(text))
    default:
      return text
  }
}

/** A record in comparable parts: one text for each field, and the members that the catalogue does not know. */
export interface Canonical {
  readonly fields: ReadonlyArray<string>
  readonly extra: ReadonlyMap<string, string>
  /** The whole record as one text. */
  readonly whole: string
  /** Fields whose value is among the unknown members, as written by a program that lacks the field. */
  readonly beyond: string
}

const whole = (fields: ReadonlyArray<string>, extra: ReadonlyMap<string, string>): string =>
  [...fields, ...[...extra].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${value}`)].join(
    "␟"
  )

export const ofSource = (resource: Resource, text: string): Canonical => {
  const record = parseExactly(text) as Record<string, unknown>
  const fields = resource.fields.map((field) => fromSource(field, record[field.name]))
  const extra = new Map(
    Object.entries(record)
      .filter(([name]) => !resource.field.has(name) && name !== "custom_fields")
      .map(([name, value]) => [name, json(value)])
  )
  return { fields, extra, whole: whole(fields, extra), beyond: "" }
}

export const ofWarehouse = (
  resource: Resource,
  columns: ReadonlyArray<string | null>,
  extraText: string | null
): Canonical => {
  const extraMembers = extraText === null ? {} : (parseExactly(extraText) as Record<string, unknown>)
  const extra = new Map(Object.entries(extraMembers).map(([name, value]) => [name, json(value)]))
  const beyond = resource.fields.flatMap(({ name }) => (extra.has(name) ? [name] : [])).join(" ")
  const fields = resource.fields.map((field, index) => {
    if (!extra.has(field.name)) return fromWarehouse(field, columns[index] ?? null)
    // Digits that the column cannot hold are kept in the extra members.
    extra.delete(field.name)
    return fromSource(field, extraMembers[field.name])
  })
  return { fields, extra, whole: whole(fields, extra), beyond }
}

/** Whether a row was not written between the two versions. */
export const isSameRow = (a: Canonical, b: Canonical): boolean => a.whole === b.whole && a.beyond === b.beyond

/** The names of the fields in which two records differ. */
export const differing = (resource: Resource, a: Canonical, b: Canonical): ReadonlyArray<string> => {
  const names = resource.fields.flatMap(({ name }, index) => (a.fields[index] === b.fields[index] ? [] : [name]))
  for (const name of new Set([...a.extra.keys(), ...b.extra.keys()])) {
    if (a.extra.get(name) !== b.extra.get(name)) names.push(name)
  }
  return names
}
