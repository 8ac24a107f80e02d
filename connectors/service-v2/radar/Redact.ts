/**
 * Answers without their content: every value is replaced by one of the same shape.
 *
 * | value | becomes |
 * |---|---|
 * | letters of a text | `x` or `X`, one for each character |
 * | digits of a text | `0` |
 * | digits of a decimal or of a number in an unknown field | `1`, and `0` stays: sign, length and decimals stay |
 * | a date or a timestamp of such a field of the catalogue | stays |
 * | a date or a timestamp in another text | another one of the same form |
 * | an integer of such a field of the catalogue, `true`, `false`, `null` | stays: numbers of records, flags |
 * | a text of a closed set of the catalogue | stays |
 * | the name of a member of a record | stays; names inside of an unknown field are texts |
 * | a value with a privacy rule | one that all values of the field become: its kind stays, and no shape |
 *
 * Promise: no text that a person typed stays, nor an amount. What stays are the numbers of records, dates of the
 * catalogue's own fields, flags, closed sets and names of fields. Of a field with a privacy rule no value stays.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import type { Protection } from "../../../src/catalogue/Protection.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { eachMember, elements, kindAt, skipSpace, stringValue } from "../client/JsonText.ts"
import { InvalidValue, reader } from "../client/Values.ts"

const instant = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/
const day = /^\d{4}-\d\d-\d\d$/

/** A text of the same shape. */
export const redactText = (text: string): string => {
  if (day.test(text)) return "2000-01-01"
  const match = instant.exec(text)
  if (match !== null) {
    const zone = /(?:[Zz]|[+-]\d\d:\d\d)$/.exec(text)![0]
    return `2000-01-01${text[10]}00:00:00${(match[1] ?? "").replace(/\d/g, "0")}${zone}`
  }
  if (/^-?\d+\.\d+$/.test(text)) return text.replace(/[1-9]/g, "1")
  return text
    .replace(/\p{Lu}/gu, "X")
    .replace(/[\p{L}\p{M}]/gu, (letter) => (letter === "X" ? letter : "x"))
    .replace(/\p{N}/gu, "0")
    .replace(/[^\x20-\x7e]/gu, "?")
}

const redactString = (raw: string): string => JSON.stringify(redactText(stringValue(raw, 0, raw.length)))
const redactNumber = (raw: string): string => raw.replace(/[eE].*$/, "").replace(/[1-9]/g, "1")

/** Any JSON text; `keep` decides which texts and names stay, by the name of their member. */
export const redactJson = (
  raw: string,
  keep: (name: string, text: string) => boolean = () => false,
  name = "",
  keepNames = false
): string => {
  const at = skipSpace(raw, 0)
  switch (kindAt(raw, at)) {
    case "string": {
      const whole = raw.slice(at).trimEnd()
      return keep(name, stringValue(whole, 0, whole.length)) ? whole : redactString(whole)
    }
    case "number":
      return keep(name, raw.trim()) ? raw.trim() : redactNumber(raw.trim())
    case "object": {
      const parts: Array<string> = []
      eachMember(raw, at, (member, from, to) => {
        const shown = keepNames || keep(name, member) ? member : redactText(member)
        parts.push(
          `${JSON.stringify(shown)}:${redactJson(raw.slice(from, to), keep, keepNames ? member : name, false)}`
        )
      })
      return `{${parts.join(",")}}`
    }
    case "array": {
      const ranges = elements(raw, at)
      return `[${Array.from({ length: ranges.length / 2 }, (_, index) =>
        redactJson(raw.slice(ranges[2 * index], ranges[2 * index + 1]), keep, name, false)
      ).join(",")}]`
    }
    default:
      return raw.trim()
  }
}

const redactValue = (field: Field, raw: string, protection: Protection | null): string => {
  const { type, values } = field
  const isReadable = !(reader(field)(raw) instanceof InvalidValue)
  const kind = kindAt(raw, 0)
  switch (type._tag) {
    case "integer":
      return isReadable && kind === "number" ? raw : redactJson(raw)
    case "date":
    case "timestamp":
      return isReadable ? raw : redactJson(raw)
    case "string": {
      const isKnown = kind === "string" && (values ?? []).some(({ value }) => value === stringValue(raw, 0, raw.length))
      return isKnown ? raw : redactJson(raw)
    }
    case "list":
      return kind === "array" && type.of.length > 0 ? redactArray(type.of, raw, protection) : redactJson(raw)
    default:
      return redactJson(raw)
  }
}

/** Readable values of each type. */
const substitutes: Readonly<Record<Exclude<Field["type"]["_tag"], "string">, string>> = {
  integer: "1",
  decimal: '"1"',
  boolean: "false",
  date: '"2000-01-01"',
  timestamp: '"2000-01-01T00:00:00Z"',
  list: "[]"
}

/** In the place of a value with a privacy rule: a readable one where the value was readable. */
const substituteOf = (field: Field | undefined, raw: string): string => {
  const kind = kindAt(raw, 0)
  if (kind === "null") return "null"
  if (field !== undefined && !(reader(field)(raw) instanceof InvalidValue)) {
    const [allowed] = field.values ?? []
    if (allowed !== undefined) return JSON.stringify(allowed.value)
    if (field.type._tag !== "string") return substitutes[field.type._tag]
  }
  return { string: '"x"', number: "1", boolean: "false", object: "{}", array: "[]" }[kind]
}

const redactArray = (of: ReadonlyArray<Field>, raw: string, protection: Protection | null): string => {
  const ranges = elements(raw, 0)
  return `[${Array.from({ length: ranges.length / 2 }, (_, index) =>
    redactMembers(of, raw.slice(ranges[2 * index], ranges[2 * index + 1]), protection, false)
  ).join(",")}]`
}

/** A record with its names, and values of the same shape. */
export const redactRecord = ({ fields, protection }: Pick<Resource, "fields" | "protection">, text: string): string =>
  redactMembers(fields, text, protection, true)

const redactMembers = (
  fields: ReadonlyArray<Field>,
  text: string,
  protection: Protection | null,
  isRecord: boolean
): string => {
  if (kindAt(text, 0) !== "object") return redactJson(text)
  const known = new Map(fields.map((field) => [field.name, field]))
  const parts: Array<string> = []
  eachMember(text, 0, (name, from, to) => {
    const raw = text.slice(from, to)
    const field = known.get(name)
    const rule = isRecord ? protection?.ruleOf(name) : protection?.ruleWithin(name)
    const value =
      rule !== undefined
        ? substituteOf(field, raw)
        : field === undefined
          ? redactJson(raw)
          : redactValue(field, raw, protection)
    parts.push(`${JSON.stringify(name)}:${value}`)
  })
  return `{${parts.join(",")}}`
}
