/**
 * A second decoder of records, as a specification. It parses the whole text, and was written from the rules, independently
 * of the first decoder. The property test compares both on the same records.
 */
import type { FieldType } from "../../src/catalogue/Field.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"

/** A number with its original digits. */
class Numeral {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type NumberReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

/** Parses JSON, with every number as {@link Numeral}. */
const tokens = (text: string): unknown => {
  // Node 24 sometimes omits the source of a number when names beside it contain escapes.
  const reviveNumber: NumberReviver = (_key, value, { source }) =>
    typeof value === "number" ? new Numeral(source ?? String(value)) : value
  return JSON.parse(text, reviveNumber as Parameters<typeof JSON.parse>[1])
}

const rawJson = (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON

/** JSON text without white space that keeps the original digits of every number. */
const rendered = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) => (item instanceof Numeral ? rawJson(item.text) : item))

/** The canonical form of a JSON text. Texts that differ only in white space and escapes have the same form. */
export const canonical = (text: string): string => rendered(tokens(text))

const inInt64 = (text: string) => BigInt.asIntN(64, BigInt(text)) === BigInt(text)

const canStore = (text: string) => text.isWellFormed() && !text.includes("\0")

/** Whether Postgres can store every string in the value, including names. */
const allStorable = (value: unknown): boolean => {
  if (typeof value === "string") return canStore(value)
  if (value instanceof Numeral || typeof value !== "object" || value === null) return true
  return Array.isArray(value)
    ? value.every(allStorable)
    : Object.entries(value).every(([name, item]) => canStore(name) && allStorable(item))
}

/** The value of a column, and the value that is kept in _extra beside it. */
interface Cell {
  readonly column: string
  readonly beside: boolean
}
const whole = (column: string): Cell => ({ column, beside: false })

const isDay = (text: string) => {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text.startsWith("0000")) return false
  const time = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(time.getTime()) && time.toISOString().slice(0, 10) === text
}

const instant =
  /^(\d{4}-\d{2}-\d{2})[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d+))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
/** An instant as its second in UTC and the digits behind it, or null. */
const utcOf = (text: string): { readonly second: string; readonly fraction: string } | null => {
  const [, day = "", time = "", fraction = "", zone = ""] = instant.exec(text) ?? []
  if (!isDay(day)) return null
  const second = new Date(`${day}T${time}${zone.toUpperCase()}`).toISOString().slice(0, -5)
  return /^(?!0000)\d{4}-/.test(second) ? { second, fraction } : null
}
const zeros = (digits: string) => digits.replaceAll("0", "") === ""

/** The cell of a value that is not null, or null if the value does not fit. */
const cellOf = (type: FieldType, typed: boolean, value: unknown): Cell | null => {
  const text = typeof value === "string" ? value : value instanceof Numeral ? value.text : null
  const isFlag = !typed && typeof value === "boolean"
  switch (type._tag) {
    case "integer": {
      if (isFlag) return whole(value ? "1" : "0")
      return text !== null && /^-?\d+$/.test(text) && inInt64(text) ? whole(BigInt(text).toString()) : null
    }
    case "decimal": {
      if (text === null || !/^-?\d+(\.\d+)?$/.test(text)) return null
      const [integral = "", fraction = ""] = text.replace("-", "").split(".")
      const digits = BigInt(integral) === 0n ? 0 : BigInt(integral).toString().length
      if (!zeros(fraction.slice(type.scale)) || digits > 20 - type.scale) return null
      const kept = fraction.slice(0, type.scale)
      const magnitude = BigInt(integral).toString() + (kept === "" ? "" : `.${kept}`)
      return whole(text.startsWith("-") && !zeros(magnitude.replace(".", "")) ? `-${magnitude}` : magnitude)
    }
    case "boolean": {
      if (typeof value === "boolean" || value === "true" || value === "false") return whole(String(value))
      return value instanceof Numeral && /^[01]$/.test(value.text) ? whole(String(value.text === "1")) : null
    }
    case "string": {
      if (isFlag) return whole(String(value))
      return text !== null && canStore(text) ? whole(text) : null
    }
    case "date": {
      if (typeof value !== "string" || isDay(value)) return typeof value === "string" ? whole(value) : null
      const at = utcOf(value)
      return at === null
        ? null
        : { column: at.second.slice(0, 10), beside: !(at.second.endsWith("T00:00:00") && zeros(at.fraction)) }
    }
    case "timestamp": {
      if (typeof value !== "string" || isDay(value))
        return typeof value === "string" ? whole(`${value}T00:00:00Z`) : null
      const at = utcOf(value)
      if (at === null) return null
      const kept = at.fraction.slice(0, 6)
      return { column: `${at.second}${kept === "" ? "" : `.${kept}`}Z`, beside: !zeros(at.fraction.slice(6)) }
    }
    case "list":
      return Array.isArray(value) && allStorable(value) ? whole(rendered(value)) : null
  }
}

/** The result of the specification for a record. */
export type DecodeResult =
  | { readonly rejected: string | null }
  | {
      readonly columns: ReadonlyArray<string | null | undefined>
      readonly customFields: string | null
      readonly extra: string | null
    }

/** The specification of a resource: a function from the text of a record to its result. */
export const make =
  (resource: Resource) =>
  (text: string): DecodeResult => {
    const record = tokens(text)
    if (typeof record !== "object" || record === null || Array.isArray(record) || record instanceof Numeral) {
      return { rejected: null }
    }
    const members = new Map(Object.entries(record))
    if (members.get("id") === undefined || members.get("id") === null) return { rejected: "id" }
    const columns: Array<string | null | undefined> = []
    const extra: Array<readonly [string, unknown]> = []
    for (const { name, type, typed } of resource.fields) {
      const value = members.get(name)
      if (value === null || value === undefined) {
        columns.push(value)
        continue
      }
      const cell = cellOf(type, typed, value)
      if (cell === null) return { rejected: name }
      columns.push(cell.column)
      if (cell.beside) extra.push([name, value])
    }
    const declared = new Set([...resource.field.keys(), "custom_fields"])
    for (const [name, value] of members) {
      if (declared.has(name)) continue
      if (!canStore(name)) return { rejected: null }
      if (!allStorable(value)) return { rejected: name }
      extra.push([name, value])
    }
    const custom = members.get("custom_fields") ?? null
    if (!allStorable(custom)) return { rejected: "custom_fields" }
    return {
      columns,
      customFields: custom === null ? null : rendered(custom),
      extra:
        extra.length === 0
          ? null
          : `{${extra.map(([name, value]) => `${JSON.stringify(name)}:${rendered(value)}`).join(",")}}`
    }
  }
