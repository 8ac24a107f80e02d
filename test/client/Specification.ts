/**
 * A second decoder of records, as a specification. It is slow, decodes every token of the text with Effect Schema, and
 * was written from the rules, independently of the first decoder. The property test compares both on the same records.
 */
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import type { Field, FieldType } from "../../src/catalogue/Field.ts"
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

const NumeralToken = Schema.instanceOf(Numeral)
const never = SchemaGetter.transform<never, unknown>(() => {
  throw new Error("encoding is not supported")
})

const as = <To extends Schema.Constraint, From extends Schema.Constraint>(
  from: From,
  to: To,
  decode: (value: From["Type"]) => To["Encoded"]
) => Schema.decodeTo<To, From>(to, { decode: SchemaGetter.transform(decode), encode: never })(from)

const NumeralText = as(NumeralToken, Schema.String, (numeral: Numeral) => numeral.text)
const TextOrNumeral = Schema.Union([Schema.String, NumeralText])

const matches = (shape: RegExp) => Schema.isPattern(shape)
const where = <A>(test: (value: A) => boolean) => Schema.makeFilter<A>((value) => test(value))

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
const Cell = Schema.Struct({ column: Schema.String, beside: Schema.Boolean })
const whole = (column: string): Cell => ({ column, beside: false })

const isDay = (text: string) => {
  const time = new Date(`${text}T00:00:00Z`)
  return !text.startsWith("0000") && !Number.isNaN(time.getTime()) && time.toISOString().slice(0, 10) === text
}
const Day = Schema.String.check(matches(/^\d{4}-\d{2}-\d{2}$/), where(isDay))

const instant =
  /^(\d{4}-\d{2}-\d{2})[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(\.\d+)?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
const utcOf = (text: string): { readonly second: string; readonly fraction: string } => {
  const [, day = "", time = "", fraction = "", zone = ""] = instant.exec(text) ?? []
  const at = new Date(`${day}T${time}${zone.toUpperCase()}`)
  return { second: Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, -5), fraction: fraction.slice(1) }
}
const Instant = Schema.String.check(
  matches(instant),
  where((text) => isDay(text.slice(0, 10))),
  where((text) => /^(?!0000)\d{4}-/.test(utcOf(text).second))
)
const zeros = (digits: string) => digits.replaceAll("0", "") === ""

const cellOf = (type: FieldType, typed: boolean): Schema.Decoder<Cell> => {
  switch (type._tag) {
    case "integer": {
      const text = TextOrNumeral.check(matches(/^-?\d+$/), where(inInt64))
      const strict = as(text, Cell, (digits: string) => whole(BigInt(digits).toString()))
      const flag = as(Schema.Boolean, Cell, (value: boolean) => whole(value ? "1" : "0"))
      return typed ? strict : Schema.Union([strict, flag])
    }
    case "decimal": {
      const fits = (text: string) => {
        const [integral = "", fraction = ""] = text.replace("-", "").split(".")
        const digits = BigInt(integral) === 0n ? 0 : BigInt(integral).toString().length
        return zeros(fraction.slice(type.scale)) && digits <= 20 - type.scale
      }
      const text = TextOrNumeral.check(matches(/^-?\d+(\.\d+)?$/), where(fits))
      return as(text, Cell, (value: string) => {
        const [integral = "", fraction = ""] = value.replace("-", "").split(".")
        const kept = fraction.slice(0, type.scale)
        const magnitude = BigInt(integral).toString() + (kept === "" ? "" : `.${kept}`)
        return whole(value.startsWith("-") && !zeros(magnitude.replace(".", "")) ? `-${magnitude}` : magnitude)
      })
    }
    case "boolean": {
      const words = as(Schema.Literals(["true", "false"]), Cell, whole)
      const values = as(Schema.Boolean, Cell, (value: boolean) => whole(String(value)))
      const digits = as(NumeralText.check(matches(/^[01]$/)), Cell, (digit: string) => whole(String(digit === "1")))
      return Schema.Union([values, words, digits])
    }
    case "string": {
      const text = as(TextOrNumeral.check(where(canStore)), Cell, whole)
      const flag = as(Schema.Boolean, Cell, (value: boolean) => whole(String(value)))
      return typed ? text : Schema.Union([text, flag])
    }
    case "date":
      return Schema.Union([
        as(Day, Cell, whole),
        as(Instant, Cell, (text: string) => {
          const { second, fraction } = utcOf(text)
          return { column: second.slice(0, 10), beside: !(second.endsWith("T00:00:00") && zeros(fraction)) }
        })
      ])
    case "timestamp":
      return Schema.Union([
        as(Day, Cell, (day: string) => whole(`${day}T00:00:00Z`)),
        as(Instant, Cell, (text: string) => {
          const { second, fraction } = utcOf(text)
          const kept = fraction.slice(0, 6)
          return { column: `${second}${kept === "" ? "" : `.${kept}`}Z`, beside: !zeros(fraction.slice(6)) }
        })
      ])
    case "list":
      return as(Schema.Array(Schema.Unknown).check(where(allStorable)), Cell, (value: ReadonlyArray<unknown>) =>
        whole(rendered(value))
      )
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

/** Compiles the specification of a resource: a function from the text of a record to its result. */
export const make = (resource: Resource): ((text: string) => DecodeResult) => {
  const cells = resource.fields.map((field: Field) => ({
    name: field.name,
    decode: Schema.decodeUnknownExit(cellOf(field.type, field.typed))
  }))
  return (text) => {
    const record = tokens(text)
    if (typeof record !== "object" || record === null || Array.isArray(record) || record instanceof Numeral) {
      return { rejected: null }
    }
    const members = new Map(Object.entries(record))
    if (members.get("id") === undefined || members.get("id") === null) return { rejected: "id" }
    const columns: Array<string | null | undefined> = []
    const extra: Array<readonly [string, unknown]> = []
    for (const { name, decode } of cells) {
      const value = members.get(name)
      if (value === null || value === undefined) {
        columns.push(value)
        continue
      }
      const cell = decode(value)
      if (Exit.isFailure(cell)) return { rejected: name }
      columns.push(cell.value.column)
      if (cell.value.beside) extra.push([name, value])
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
}
