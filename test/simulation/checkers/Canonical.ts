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

/** Any JSON, with sorted members and with numbers as decimals, or in another form. */
export const json = (value: unknown, number: (text: string) => string = decimal): string => {
  if (value instanceof Token) return number(value.text)
  if (Array.isArray(value)) return `[${value.map((item) => json(item, number)).join(",")}]`
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => `${JSON.stringify(name)}:${json(member, number)}`)
      .join(",")}}`
  }
  return JSON.stringify(value)
}

/** How a member that has a privacy rule is compared. */
export interface Keeping {
  /** What is expected of a value that the source sent; null: nothing. */
  readonly sent: ((text: string, isFreeText: boolean) => string) | null
  /** Whether that is compared with what the warehouse has. */
  readonly isCompared: boolean
}

/** How the members of a record, or those within a value of it, are compared; undefined: as they were sent. */
export type Lens = (name: string, isWithin: boolean) => Keeping | undefined

const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Token)

/** The members at any depth. `change` returns the changed member in a list, or an empty list where it is left out. */
const changed = (
  value: unknown,
  change: (name: string, member: unknown, isWithin: boolean) => ReadonlyArray<unknown> | null,
  isWithin = false
): unknown => {
  if (Array.isArray(value)) return value.map((item) => changed(item, change, true))
  if (!isMembers(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      (change(name, member, isWithin) ?? [changed(member, change, true)]).map((one) => [name, one])
    )
  )
}

/** The text to which a rule for a member of no type is applied. */
const looseText = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Token ? decimal(value.text) : json(value, (text) => text)

const sentThrough = (lens: Lens, value: unknown): unknown =>
  changed(value, (name, member, isWithin) => {
    const keeping = lens(name, isWithin)
    if (keeping === undefined) return null
    if (keeping.sent === null) return []
    return [member === null ? null : keeping.sent(looseText(member), typeof member === "string")]
  })

/** What is compared of members that the warehouse has. */
export const storedThrough = (lens: Lens, value: unknown): unknown =>
  changed(value, (name, member, isWithin) => {
    const keeping = lens(name, isWithin)
    return keeping === undefined ? null : keeping.isCompared ? [member] : []
  })

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

const customFields = "custom_fields"

/** The members without own fields that have no members. */
const withoutEmpty = (members: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(members as object).filter(
      ([name, value]) => name !== customFields || (isMembers(value) && Object.keys(value).length > 0)
    )
  )

export const ofSource = (resource: Resource, text: string, lens?: Lens): Canonical => {
  const record = parseExactly(text) as Record<string, unknown>
  const fields = resource.fields.map((field) => {
    const sent = fromSource(field, record[field.name])
    const keeping = lens?.(field.name, false)
    if (keeping === undefined) return sent
    if (sent === nothing || keeping.sent === null) return nothing
    return keeping.sent(sent, field.type._tag === "string" && field.values === null)
  })
  const others = Object.fromEntries(
    Object.entries(record).filter(
      ([name]) => !resource.field.has(name) && (name !== customFields || lens !== undefined)
    )
  )
  const members = lens === undefined ? others : withoutEmpty(sentThrough(lens, others))
  const extra = new Map(Object.entries(members).map(([name, value]) => [name, json(value)]))
  return { fields, extra, whole: whole(fields, extra), beyond: "" }
}

export const ofWarehouse = (
  resource: Resource,
  columns: ReadonlyArray<string | null>,
  extraText: string | null,
  custom: string | null = null,
  lens?: Lens
): Canonical => {
  const own = custom === null || lens === undefined ? null : parseExactly(custom)
  const others: Readonly<Record<string, unknown>> = {
    ...(extraText === null ? {} : (parseExactly(extraText) as Record<string, unknown>)),
    ...(own === null ? {} : { [customFields]: own })
  }
  const extraMembers = lens === undefined ? others : withoutEmpty(storedThrough(lens, others))
  const extra = new Map(Object.entries(extraMembers).map(([name, value]) => [name, json(value)]))
  const beyond = resource.fields.flatMap(({ name }) => (extra.has(name) ? [name] : [])).join(" ")
  const fields = resource.fields.map((field, index) => {
    const keeping = lens?.(field.name, false)
    if (keeping !== undefined) return keeping.isCompared ? (columns[index] ?? nothing) : nothing
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
