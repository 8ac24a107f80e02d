/**
 * From the bytes of an answer to records, by the catalogue.
 *
 * Promise: every record of a page comes out, as exact text or as a {@link Rejected} with its bytes and the reason;
 * none is skipped, none is altered. A page takes one `JSON.parse` and one look at each value. A record in which
 * anything is not in the plainest form is read again from its own text, where numbers are still the digits sent.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Rejected, SourceRecord } from "../../../src/connector/Connector.ts"
import * as DecodeBytes from "./DecodeBytes.ts"
import { eachMember, elements, kindAt } from "./JsonText.ts"
import {
  Beyond,
  decimalDigitsMax,
  isPlainInstant,
  isStorable,
  inferredDigitsMax,
  type Read,
  reader,
  startsWithDay,
  unkeepable,
  InvalidValue
} from "./Values.ts"

/** The member that carries the install's own fields. */
export const customFieldsName = "custom_fields"

/** What the records of one array came out as. */
export interface Decoded {
  readonly records: ReadonlyArray<SourceRecord>
  readonly rejected: ReadonlyArray<Rejected>
}

/** The compiled reading of one resource's records. */
export interface Decoder {
  /** `items` is what `JSON.parse` made of the array that begins at `start()` of `text`. */
  readonly list: (text: string, items: ReadonlyArray<unknown>, start: () => number) => Decoded
  /** The record that stands between `from` and `to` of `text`; members named in `beside` are no part of it. */
  readonly one: (text: string, from: number, to: number, beside?: ReadonlySet<string>) => SourceRecord | Rejected
  /** A whole answer without `JSON.parse`; null when it must be read by the other way. */
  readonly bytes: (bytes: Uint8Array) => DecodeBytes.BytesPage | null
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The text of an answer; null when it is no UTF-8. */
export const decodeText = (bytes: Uint8Array): string | null => {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

export const isRejected = (outcome: SourceRecord | Rejected): outcome is Rejected => "reason" in outcome

const kinds = { integer: 0, decimal: 1, boolean: 2, string: 3, date: 4, timestamp: 5, list: 6, close: 7 } as const

/** How a value is looked at first. A learnt number or JSON needs the text that was sent. */
const kindOf = ({ type, learnt }: Field): number =>
  learnt?.type === "number" || learnt?.type === "json" ? kinds.close : kinds[type._tag]

const scaleOf = ({ type }: Field): number => (type._tag === "decimal" ? type.scale : 0)

/** Digits before the point that a decimal column takes. */
const wholeOf = (field: Field): number =>
  field.learnt === null ? decimalDigitsMax - scaleOf(field) : inferredDigitsMax

/** Text of the small integers, which flags, codes and line numbers are made of. */
const smallIntegers = Array.from({ length: 1024 }, (_, value) => String(value))

/** A number token with a fraction or an exponent as the value of a member: its digits are lost in a float. */
const hasFraction = (text: string): boolean => /"\s*:\s*-?\d+[.eE]/.test(text)

/** Whether the text is a decimal that a column of `numeric(20, scale)` takes as it is. */
const isPlainDecimal = (text: string, wholeMax: number, scale: number): boolean => {
  const { length } = text
  const negative = text.charCodeAt(0) === 45
  const from = negative ? 1 : 0
  let at = from
  while (at < length && isDigit(text.charCodeAt(at))) at++
  const digits = at - from
  if (digits === 0 || digits > wholeMax) return false
  // A superfluous zero, and minus zero, are told otherwise.
  if (text.charCodeAt(from) === 48 && (digits > 1 || negative)) return false
  if (at === length) return true
  if (text.charCodeAt(at) !== 46) return false
  const point = at++
  while (at < length && isDigit(text.charCodeAt(at))) at++
  return at === length && at - point > 1 && at - point - 1 <= scale
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** Compiles the decoder of a resource. */
export const make = (resource: Resource): Decoder => {
  const { fields } = resource
  const count = fields.length
  const names = fields.map((field) => field.name)
  const codes = Uint8Array.from(fields, kindOf)
  const scales = Uint8Array.from(fields, scaleOf)
  const wholes = Uint8Array.from(fields, wholeOf)
  /** `JSON.parse` confuses names with escapes; no name in a catalogue has one, a learnt name may. */
  const isEscaped = names.some((name) => JSON.stringify(name) !== `"${name}"`)
  const readers: ReadonlyArray<(raw: string) => Read> = fields.map((field: Field) => reader(field))
  const places = new Map(names.map((name, place) => [name, place]))
  /** Copied for each record, which is faster than growing an array. */
  const blank: ReadonlyArray<string | null | undefined> = fields.map(() => undefined)
  const idPlace = places.get("id") ?? 0

  /** Whether the record that `plain` read last has members that the catalogue does not know. */
  let hasOthers = false

  /** The record when every value has the plainest form; null when it must be looked at closely. */
  const plain = (value: unknown, escaped: boolean): SourceRecord | null => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return null
    const record = value as Record<string, unknown>
    const columns = blank.slice()
    let members = 0
    for (let place = 0; place < count; place++) {
      const cell = record[names[place]!]
      if (cell === null) {
        columns[place] = null
      } else if (cell === undefined) {
        columns[place] = undefined
        continue
      } else {
        switch (codes[place]) {
          case kinds.integer:
            if (typeof cell !== "number" || !Number.isSafeInteger(cell)) return null
            columns[place] = cell > 0 && cell < 1024 ? smallIntegers[cell] : cell === 0 ? "0" : String(cell)
            break
          case kinds.decimal:
            if (typeof cell !== "string") return null
            if (!isPlainDecimal(cell, wholes[place]!, scales[place]!)) return null
            columns[place] = cell
            break
          case kinds.boolean:
            if (cell === true) columns[place] = "true"
            else if (cell === false) columns[place] = "false"
            else return null
            break
          case kinds.string:
            if (typeof cell !== "string" || (escaped && !isStorable(cell))) return null
            columns[place] = cell
            break
          case kinds.date:
            if (typeof cell !== "string" || cell.length !== 10 || !startsWithDay(cell)) return null
            columns[place] = cell
            break
          case kinds.timestamp:
            if (typeof cell !== "string" || !isPlainInstant(cell)) return null
            columns[place] = cell
            break
          case kinds.close:
            return null
          default:
            if (!Array.isArray(cell) || cell.length > 0) return null
            columns[place] = "[]"
        }
      }
      members++
    }
    const id = columns[idPlace]
    if (id === null || id === undefined) return null
    hasOthers = Object.keys(record).length !== members
    return { id, columns, partial: members !== count, customFields: null, extra: null }
  }

  const reject = (id: string | null, field: string | null, reason: string, bytes: string): Rejected => ({
    id,
    field,
    reason,
    bytes
  })

  /** The record with what the catalogue does not know: `extra` begins with the members that are there already. */
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
      if (!isStorable(name)) return reject(id, null, "has a member whose name no database can hold", bytes)
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

  /** The known part is read; looks for the rest only. */
  const completed = (record: SourceRecord, text: string, from: number, to: number): SourceRecord | Rejected => {
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

  const one: Decoder["one"] = (text, from, to, beside) => {
    const bytes = text.slice(from, to)
    if (kindAt(text, from) !== "object") return reject(null, null, "is no object", bytes)
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

  const list = (text: string, items: ReadonlyArray<unknown>, start: () => number): Decoded => {
    const records: Array<SourceRecord> = []
    const rejected: Array<Rejected> = []
    // Only an escape can bring in what is no text: bytes are checked, and raw control characters are no JSON.
    const escaped = text.includes("\\u")
    const close = isEscaped || hasFraction(text)
    let ranges: ReadonlyArray<number> | null = null
    for (let index = 0; index < items.length; index++) {
      const record = close ? null : plain(items[index], escaped)
      if (record !== null && !hasOthers) {
        records.push(record)
        continue
      }
      ranges ??= elements(text, start())
      const from = ranges[2 * index]!
      const to = ranges[2 * index + 1]!
      const outcome = record === null ? one(text, from, to) : completed(record, text, from, to)
      if (isRejected(outcome)) rejected.push(outcome)
      else records.push(outcome)
    }
    return { records, rejected }
  }

  const bytes = DecodeBytes.make(resource, {
    one: (text) => one(text, 0, text.length),
    others: (names, texts) => {
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
  })

  return { list, one, bytes }
}

/** Stands for a record whose columns are elsewhere. */
const bare: SourceRecord = { id: "", columns: [], partial: false, customFields: null, extra: null }
