/**
 * The bytes that the records of a resource have in common: names, commas and white space, everything but the values.
 *
 * Promise: a template comes from one record that was decoded strictly and has every field. A record with the same bytes
 * between its values has the same members, so that their names need no second check.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import { type CopyText, notPlain, type PlainForm, plainForm } from "./CopyText.ts"
import { minus, valueEnd, zero } from "./JsonBytes.ts"
import { eachMember } from "./JsonText.ts"

interface TemplateMember {
  /** Number of bytes before its value, without those of the members before. */
  readonly bytesBefore: number
  /** Index of its field; -1 for a member that is not a field. The record's number has 0, and is never null. */
  readonly place: number
  /** Null for a member that is not a field, and for a field whose values always need strict decoding. */
  readonly form: PlainForm | null
}

export interface RecordTemplate {
  readonly members: ReadonlyArray<TemplateMember>
  /** The bytes before each value and after the last one, concatenated. */
  readonly between: DataView
  /** Whether the fields come in the order of the catalogue. */
  readonly isInOrder: boolean
  /** Names of the members that are not fields. */
  readonly otherNames: ReadonlyArray<string>
}

const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView => new DataView(buffer, byteOffset, length)

/**
 * The template of a record; null when the record cannot be one. A character of the text is a byte of the record. Names
 * with an escape or beyond ASCII, and repeated names, are left to strict decoding.
 */
export const learnTemplate = (fields: ReadonlyArray<Field>, text: string): RecordTemplate | null => {
  const places = new Map(fields.map(({ name }, place) => [name, place]))
  const members: Array<TemplateMember> = []
  const names = new Set<string>()
  const otherNames: Array<string> = []
  let between = ""
  let last = 0
  let isUsable = true
  eachMember(text, 0, (name, from, to) => {
    const before = text.slice(last, from)
    if (names.has(name) || !/^[\x20-\x7e]*$/.test(name) || !before.includes(`"${name}"`)) isUsable = false
    names.add(name)
    between += before
    last = to
    const place = places.get(name) ?? -1
    if (place < 0) otherNames.push(name)
    members.push({ bytesBefore: before.length, place, form: place < 0 ? null : plainForm(fields[place]!, place > 0) })
  })
  if (!isUsable || members.length - otherNames.length !== fields.length) return null
  return {
    members,
    between: viewOf(Buffer.from(between + text.slice(last), "latin1")),
    isInOrder: members.filter(({ place }) => place >= 0).every(({ place }, index) => place === index),
    otherNames
  }
}

/** The result for a record whose bytes between the values differ from the template's. */
export const otherTemplate = -1

/**
 * Copies the records of a page that match a template, as the text of their columns.
 *
 * The properties have the rest of the last record's content, since a method that returned an object would be slower.
 */
export class RecordCopier {
  readonly text: CopyText
  /** Number of the last record. */
  id = ""
  /** Start and end of each value of the last record that is not a field's. */
  readonly others: Array<number> = []
  private readonly bytes: Buffer
  /** The same bytes, to compare four at once: most bytes of a page are between values. */
  private readonly view: DataView
  /** Start and end of each column's text, for a template in another order than the catalogue's. */
  private readonly starts: Int32Array
  private readonly ends: Int32Array

  /** `text` becomes the text of the page. */
  constructor(fields: ReadonlyArray<Field>, bytes: Buffer, text: CopyText) {
    this.bytes = bytes
    this.view = viewOf(bytes)
    this.text = text
    // The text is shorter than its source, where each value has a name.
    text.reset(bytes.length)
    this.starts = new Int32Array(fields.length)
    this.ends = new Int32Array(fields.length)
  }

  /**
   * Appends the columns of the record that begins at `from`. Returns the position after the record, otherwise
   * {@link otherTemplate} or {@link notPlain}; then the caller resets the text.
   */
  copy({ members, between, isInOrder }: RecordTemplate, from: number): number {
    const { text, bytes, others } = this
    const begin = text.length
    // V8 sets a length slowly, even to the value it has.
    if (others.length > 0) others.length = 0
    let at = from
    let compared = 0
    let isFirst = true
    for (let index = 0; index < members.length; index++) {
      const { bytesBefore, place, form } = members[index]!
      if (!this.hasBytes(at, between, compared, bytesBefore)) return otherTemplate
      at += bytesBefore
      compared += bytesBefore
      if (place < 0) {
        const end = valueEnd(bytes, at)
        if (end <= at) return notPlain
        others.push(at, end)
        at = end
        continue
      }
      if (form === null) return notPlain
      if (isFirst) isFirst = false
      else text.tab()
      const start = text.length
      const end = text.value(form, bytes, at)
      if (end === notPlain) return notPlain
      if (place === 0) this.id = integerText(bytes, at, end)
      at = end
      if (!isInOrder) {
        this.starts[place] = start
        this.ends[place] = text.length
      }
    }
    const bytesAfter = between.byteLength - compared
    if (!this.hasBytes(at, between, compared, bytesAfter)) return otherTemplate
    if (!isInOrder) this.reorder(begin)
    return at + bytesAfter
  }

  /** Whether the page has at `at` the bytes that `expected` has at `from`. */
  private hasBytes(at: number, expected: DataView, from: number, length: number): boolean {
    const { view } = this
    if (at + length > this.bytes.length) return false
    let index = 0
    for (; index + 4 <= length; index += 4)
      if (view.getInt32(at + index, true) !== expected.getInt32(from + index, true)) return false
    for (; index < length; index++) if (view.getInt8(at + index) !== expected.getInt8(from + index)) return false
    return true
  }

  /** Puts the columns after `begin` into the order of the catalogue. */
  private reorder(begin: number): void {
    const { text, starts, ends } = this
    const columns = text.copyFrom(begin)
    text.length = begin
    for (let place = 0; place < starts.length; place++) {
      if (place > 0) text.tab()
      text.bytes(columns, starts[place]! - begin, ends[place]! - begin)
    }
  }
}

/** The text of an integer in plain form. Faster than decoding the bytes. */
const integerText = (bytes: Uint8Array, from: number, to: number): string => {
  const isNegative = bytes[from] === minus
  let value = 0
  for (let at = isNegative ? from + 1 : from; at < to; at++) value = value * 10 + bytes[at]! - zero
  return String(isNegative ? -value : value)
}
