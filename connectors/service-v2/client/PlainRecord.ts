/**
 * Decoding of a `JSON.parse` value to a record, if every member has its plain form.
 *
 * Promise: any other record is left to the strict decoder of `Decode.ts`, which reads it from its own text.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import type { SourceRecord } from "../../../src/connector/Connector.ts"
import { decimalDigitsMax, inferredDigitsMax, isPlainInstant, isStorable, startsWithDay } from "./Values.ts"

const kinds = { integer: 0, decimal: 1, boolean: 2, string: 3, date: 4, timestamp: 5, list: 6, close: 7 } as const

/** The first check of a value. An inferred number or JSON needs the text that was sent. */
const kindOf = ({ type, inferred }: Field): number =>
  inferred?.type === "number" || inferred?.type === "json" ? kinds.close : kinds[type._tag]

export const scaleOf = ({ type }: Field): number => (type._tag === "decimal" ? type.scale : 0)

/** Digits before the point that a decimal column takes. */
export const wholeOf = (field: Field): number =>
  field.inferred === null ? decimalDigitsMax - scaleOf(field) : inferredDigitsMax

/** Texts of the small integers, the usual values of flags, codes and line numbers. */
const smallIntegers = Array.from({ length: 1024 }, (_, value) => String(value))

/** Whether a column of `numeric(20, scale)` accepts the text unchanged. */
const isPlainDecimal = (text: string, wholeMax: number, scale: number): boolean => {
  const { length } = text
  const negative = text.charCodeAt(0) === 45
  const from = negative ? 1 : 0
  let at = from
  while (at < length && isDigit(text.charCodeAt(at))) at++
  const digits = at - from
  if (digits === 0 || digits > wholeMax) return false
  // A superfluous zero and minus zero have another canonical text.
  if (text.charCodeAt(from) === 48 && (digits > 1 || negative)) return false
  if (at === length) return true
  if (text.charCodeAt(at) !== 46) return false
  const point = at++
  while (at < length && isDigit(text.charCodeAt(at))) at++
  return at === length && at - point > 1 && at - point - 1 <= scale
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** Reads the plain records of one resource. */
export interface PlainReader {
  /** The record; null when a value must be read from its text. `escaped`: the page has escapes of characters. */
  readonly read: (value: unknown, escaped: boolean) => SourceRecord | null
  /** Whether the last record read has members that the catalogue does not know. */
  hasOthers: boolean
}

/** Compiles the plain decoder of a resource's fields. */
export const plainReader = (fields: ReadonlyArray<Field>): PlainReader => {
  const count = fields.length
  const names = fields.map((field) => field.name)
  const codes = Uint8Array.from(fields, kindOf)
  const scales = Uint8Array.from(fields, scaleOf)
  const wholes = Uint8Array.from(fields, wholeOf)
  const idPlace = Math.max(names.indexOf("id"), 0)
  /** Copied for each record, which is faster than growing an array. */
  const blank: ReadonlyArray<string | null | undefined> = fields.map(() => undefined)
  const read = (value: unknown, escaped: boolean): SourceRecord | null => {
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
    reader.hasOthers = Object.keys(record).length !== members
    return { id, columns, partial: members !== count, customFields: null, extra: null }
  }
  const reader: PlainReader = { read, hasOthers: false }
  return reader
}
