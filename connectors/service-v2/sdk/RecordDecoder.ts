/**
 * Decoding of records to JavaScript values.
 *
 * Promise: the strict decoder of the engine checks each record first. Decimals stay the text that was sent; days and
 * instants too. An integer becomes a number only where the number is exactly that integer, else the record is invalid. A
 * number without a field becomes text where a float would change its digits.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Rejected, SourceRecord } from "../../../src/connector/SourceRecord.ts"
import * as Decode from "../client/Decode.ts"
import { eachMember, elements, kindAt, stringValue } from "../client/JsonText.ts"
import { reader } from "../client/Values.ts"
import type { JsonObject, JsonValue } from "./Values.ts"

/** A record with its value. */
interface DecodedRecord extends SourceRecord {
  readonly value: JsonObject
}

/** The value of a record that this decoder made. */
export const valueOf = (record: SourceRecord): JsonObject => (record as DecodedRecord).value

/** A value that the program cannot have exactly. */
class InexactValue {
  readonly field: string
  readonly reason: string
  constructor(field: string, reason: string) {
    this.field = field
    this.reason = reason
  }
}

/** `JSON.parse` with numbers as text where a float has other digits. */
export const exactJson = (text: string): JsonValue =>
  JSON.parse(text, ((_name: string, value: unknown, context: { readonly source?: string }) =>
    typeof value === "number" && context.source !== undefined && String(value) !== context.source
      ? context.source
      : value) as (name: string, value: unknown) => unknown) as JsonValue

/** The value of a field: `text` is what the strict decoder read, `raw` the JSON that was sent. */
const valueOfField = (field: Field, text: string, raw: string): JsonValue => {
  switch (field.type._tag) {
    case "integer": {
      const value = Number(text)
      if (!Number.isSafeInteger(value))
        throw new InexactValue(field.name, `is beyond the integers of a number: ${text}`)
      return value
    }
    case "boolean":
      return text === "true"
    case "date":
    case "timestamp":
      return stringValue(raw, 0, raw.length)
    case "list":
      return linesOf(field.type.of, raw)
    default:
      return text
  }
}

const readers = new WeakMap<Field, ReturnType<typeof reader>>()
const readerOf = (field: Field) => {
  const known = readers.get(field) ?? reader(field)
  readers.set(field, known)
  return known
}

const linesOf = (fields: ReadonlyArray<Field>, raw: string): JsonValue => {
  const ranges = elements(raw, 0)
  return Array.from({ length: ranges.length / 2 }, (_, at) => {
    const line = raw.slice(ranges[2 * at], ranges[2 * at + 1])
    if (kindAt(line, 0) !== "object") return exactJson(line)
    return objectOf(line, 0, (name, part) => {
      const field = fields.find((one) => one.name === name)
      if (field === undefined) return exactJson(part)
      const read = readerOf(field)(part)
      return typeof read === "string" ? valueOfField(field, read, part) : exactJson(part)
    })
  })
}

/** The object that begins at `from`; a member of which `read` returns undefined is left out. */
const objectOf = (
  text: string,
  from: number,
  read: (name: string, raw: string) => JsonValue | undefined
): JsonObject => {
  const members: Array<readonly [string, JsonValue]> = []
  eachMember(text, from, (name, start, end) => {
    const value = read(name, text.slice(start, end))
    if (value !== undefined) members.push([name, value])
  })
  return Object.fromEntries(members)
}

/** Compiles the decoder of a resource. An answer with some fields only is a record as well. */
export const make = (resource: Resource): Decode.Decoder => {
  const strict = Decode.make(resource)
  const places = new Map(resource.fields.map(({ name }, place) => [name, place]))
  const one: Decode.Decoder["one"] = (text, from, to, beside) => {
    const outcome = strict.one(text, from, to, beside)
    if (Decode.isRejected(outcome)) return outcome
    try {
      const value = objectOf(text, from, (name, raw) => {
        const place = places.get(name)
        // Members of a batch item are not part of the record; those of the answer are shown.
        if (place === undefined) {
          return beside?.has(name) === true && !resource.answers.includes(name) ? undefined : exactJson(raw)
        }
        const column = outcome.columns[place]
        return typeof column === "string" ? valueOfField(resource.fields[place]!, column, raw) : null
      })
      return { ...outcome, partial: false, value } satisfies DecodedRecord
    } catch (error) {
      if (!(error instanceof InexactValue)) throw error
      return { id: outcome.id, field: error.field, reason: error.reason, bytes: text.slice(from, to) }
    }
  }
  const list: Decode.Decoder["list"] = (text, start) => {
    const records: Array<SourceRecord> = []
    const rejected: Array<Rejected> = []
    const ranges = elements(text, start)
    for (let at = 0; at < ranges.length; at += 2) {
      const outcome = one(text, ranges[at]!, ranges[at + 1]!)
      if (Decode.isRejected(outcome)) rejected.push(outcome)
      else records.push(outcome)
    }
    return { records, rejected }
  }
  return { one, list, bytes: () => null }
}

/** Decoders by resource, each compiled once. */
export const decoders = (): ((resource: Resource) => Decode.Decoder) => {
  const known = new WeakMap<Resource, Decode.Decoder>()
  return (resource) => {
    const decoder = known.get(resource) ?? make(resource)
    known.set(resource, decoder)
    return decoder
  }
}
