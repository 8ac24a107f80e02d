/**
 * Decoding of an answer's bytes to records, by the catalogue.
 *
 * Promise: every record of a page becomes exact text, or a {@link Rejected} with its bytes and the reason. None is
 * skipped, none is altered. A page takes one `JSON.parse` and one pass over the values. A record with any value that is
 * not in plain form is read again from its own text, where numbers still have the digits sent.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Rejected, SourceRecord } from "../../../src/connector/Connector.ts"
import * as DecodeBytes from "./DecodeBytes.ts"
import { eachMember, elements, kindAt } from "./JsonText.ts"
import { type PlainReader, plainReader } from "./PlainRecord.ts"
import { Beyond, InvalidValue, isStorable, type Read, reader, unkeepable } from "./Values.ts"

/** The member that contains the install's own fields. */
export const customFieldsName = "custom_fields"

/** The records of one array. */
export interface Decoded {
  readonly records: ReadonlyArray<SourceRecord>
  readonly rejected: ReadonlyArray<Rejected>
}

/** The compiled decoder of one resource's records. */
export interface Decoder {
  /** `items` is the `JSON.parse` result of the array that begins at `start()` of `text`. */
  readonly list: (text: string, items: ReadonlyArray<unknown>, start: () => number) => Decoded
  /** The record between `from` and `to` of `text`; members named in `beside` are not part of it. */
  readonly one: (text: string, from: number, to: number, beside?: ReadonlySet<string>) => SourceRecord | Rejected
  /** Decodes a whole answer without `JSON.parse`; null when only `list` can decode it. */
  readonly bytes: (bytes: Uint8Array) => DecodeBytes.BytesPage | null
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The text of an answer; null when it is not UTF-8. */
export const decodeText = (bytes: Uint8Array): string | null => {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

export const isRejected = (outcome: SourceRecord | Rejected): outcome is Rejected => "reason" in outcome

/** Whether a member's value is a number with a fraction or an exponent, whose digits a float would lose. */
export const hasFraction = (text: string): boolean => /"\s*:\s*-?\d+[.eE]/.test(text)

/** The fields of a resource, prepared for decoding. */
interface Layout {
  readonly names: ReadonlyArray<string>
  readonly places: ReadonlyMap<string, number>
  readonly readers: ReadonlyArray<(raw: string) => Read>
  /** Copied for each record, which is faster than growing an array. */
  readonly blank: ReadonlyArray<string | null | undefined>
  readonly idPlace: number
  /** `JSON.parse` confuses names with escapes. No name in a catalogue has one; an inferred name may. */
  readonly isEscaped: boolean
}

const layoutOf = (fields: ReadonlyArray<Field>): Layout => {
  const names = fields.map((field) => field.name)
  const places = new Map(names.map((name, place) => [name, place]))
  return {
    names,
    places,
    readers: fields.map((field) => reader(field)),
    blank: fields.map(() => undefined),
    idPlace: places.get("id") ?? 0,
    isEscaped: names.some((name) => JSON.stringify(name) !== `"${name}"`)
  }
}

const reject = (id: string | null, field: string | null, reason: string, bytes: string): Rejected => ({
  id,
  field,
  reason,
  bytes
})

/** The record with the members that the catalogue does not know; `extra` begins with the given members. */
const withOthers = (
  { id, columns, partial }: SourceRecord,
  bytes: string,
  others: ReadonlyArray<string>,
  customFields: string | null,
  beyond: string
): SourceRecord | Rejected => {
  let extra = beyond
  for (let at = 0; at < others.length; at += 2) {
    const name = others[at]!
    const raw = others[at + 1]!
    if (!isStorable(name)) return reject(id, null, "has a member with a name that a database rejects", bytes)
    const reason = unkeepable(raw)
    if (reason !== null) return reject(id, name, reason, bytes)
    extra += `${extra === "" ? "" : ","}${JSON.stringify(name)}:${raw}`
  }
  if (customFields !== null) {
    const reason = unkeepable(customFields)
    if (reason !== null) return reject(id, customFieldsName, reason, bytes)
  }
  return { id, columns, partial, customFields, extra: extra === "" ? null : `{${extra}}` }
}

/** A record whose fields are decoded, completed by its other members. */
const withMembers = (
  { places }: Layout,
  record: SourceRecord,
  text: string,
  from: number,
  to: number
): SourceRecord | Rejected => {
  const others: Array<string> = []
  let customFields: string | null = null
  eachMember(text, from, (name, start, end) => {
    if (places.has(name)) return
    const raw = text.slice(start, end)
    if (name === customFieldsName) customFields = raw === "null" ? null : raw
    else others.push(name, raw)
  })
  return withOthers(record, text.slice(from, to), others, customFields, "")
}

/** The record in the text, each value read from the bytes that were sent. */
const readStrictly = (
  { names, places, readers, blank, idPlace }: Layout,
  text: string,
  from: number,
  to: number,
  beside?: ReadonlySet<string>
): SourceRecord | Rejected => {
  const count = names.length
  const bytes = text.slice(from, to)
  if (kindAt(text, from) !== "object") return reject(null, null, "is not an object", bytes)
  const raws: Array<string | undefined> = Array.from({ length: count })
  const others: Array<string> = []
  let customFields: string | null = null
  eachMember(text, from, (name, start, end) => {
    const place = places.get(name)
    const raw = text.slice(start, end)
    if (place !== undefined) raws[place] = raw
    else if (name === customFieldsName) customFields = raw === "null" ? null : raw
    else if (beside?.has(name) !== true) others.push(name, raw)
  })

  const idRaw = raws[idPlace]
  const id = idRaw === undefined ? undefined : readers[idPlace]!(idRaw)
  if (typeof id !== "string") {
    return reject(
      null,
      "id",
      id === undefined ? "is missing" : id instanceof InvalidValue ? id.reason : "is null",
      bytes
    )
  }
  const columns = blank.slice()
  let partial = false
  let beyond = ""
  for (let place = 0; place < count; place++) {
    const raw = raws[place]
    if (raw === undefined) {
      columns[place] = undefined
      partial = true
      continue
    }
    const read = readers[place]!(raw)
    if (read instanceof InvalidValue) return reject(id, names[place]!, read.reason, bytes)
    if (read instanceof Beyond) {
      columns[place] = read.text
      beyond += `${beyond === "" ? "" : ","}${JSON.stringify(names[place]!)}:${raw}`
    } else {
      columns[place] = read
    }
  }
  return withOthers({ id, columns, partial, customFields: null, extra: null }, bytes, others, customFields, beyond)
}

const readList = (
  layout: Layout,
  plain: PlainReader,
  text: string,
  items: ReadonlyArray<unknown>,
  start: () => number
): Decoded => {
  const records: Array<SourceRecord> = []
  const rejected: Array<Rejected> = []
  // Only an escape can bring in invalid text: the bytes are checked UTF-8, and JSON has no raw control characters.
  const escaped = text.includes("\\u")
  const close = layout.isEscaped || hasFraction(text)
  let ranges: ReadonlyArray<number> | null = null
  for (let index = 0; index < items.length; index++) {
    const record = close ? null : plain.read(items[index], escaped)
    if (record !== null && !plain.hasOthers) {
      records.push(record)
      continue
    }
    ranges ??= elements(text, start())
    const from = ranges[2 * index]!
    const to = ranges[2 * index + 1]!
    const outcome = record === null ? readStrictly(layout, text, from, to) : withMembers(layout, record, text, from, to)
    if (isRejected(outcome)) rejected.push(outcome)
    else records.push(outcome)
  }
  return { records, rejected }
}

/** A placeholder for a record whose columns are elsewhere. */
const bare: SourceRecord = { id: "", columns: [], partial: false, customFields: null, extra: null }

/** Members beside the fields, for a record whose columns are decoded elsewhere; null when one cannot be stored. */
const keepOthers = (names: ReadonlyArray<string>, texts: ReadonlyArray<string>): DecodeBytes.Others | null => {
  const others: Array<string> = []
  let customFields: string | null = null
  for (const [at, name] of names.entries()) {
    const raw = texts[at]!
    if (name === customFieldsName) customFields = raw === "null" ? null : raw
    else others.push(name, raw)
  }
  const outcome = withOthers(bare, "", others, customFields, "")
  return isRejected(outcome) ? null : outcome
}

/** Compiles the decoder of a resource. */
export const make = (resource: Resource): Decoder => {
  const layout = layoutOf(resource.fields)
  const plain = plainReader(resource.fields)
  const one: Decoder["one"] = (text, from, to, beside) => readStrictly(layout, text, from, to, beside)
  return {
    list: (text, items, start) => readList(layout, plain, text, items, start),
    one,
    bytes: DecodeBytes.make(resource, { one: (text) => one(text, 0, text.length), others: keepOthers })
  }
}
