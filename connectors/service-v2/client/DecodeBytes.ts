/**
 * Decoding of a page's bytes straight to the text of COPY, without an object or a string in between.
 *
 * Promise: the result is that of `Decode.ts`, or the page is decoded there. The bytes between the values (names, commas,
 * white space) come from one record that `Decode.ts` read. A record with exactly these bytes and plain values is decoded
 * here; every other record is decoded there, alone. `JSON.parse` checks all other bytes of the page.
 * One function is long on purpose: position and buffers are its local variables, and the speed of a first load depends on
 * it. Do not split it without a paired measurement (`npm run bench`).
 */
import { isUtf8 } from "node:buffer"
import type { Field } from "../../../src/catalogue/Field.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Rejected, SourceRecord } from "../../../src/connector/Connector.ts"
import { EncodedRecord } from "../../../src/connector/EncodedRecord.ts"
import { eachMember } from "./JsonText.ts"
import { scaleOf, wholeOf } from "./PlainRecord.ts"
import { fractionDigitsMax, unkeepable } from "./Values.ts"

/** A page whose records were read from its bytes. */
export interface BytesPage {
  /** The answer as `JSON.parse` gives it, with an empty list where the records were. */
  readonly envelope: unknown
  /** That empty list. */
  readonly place: ReadonlyArray<unknown>
  readonly records: ReadonlyArray<SourceRecord>
  readonly rejected: ReadonlyArray<Rejected>
}

/** The strict decoder, for the records that are not plain. */
export interface StrictDecode {
  /** The record that is this text. */
  readonly one: (text: string) => SourceRecord | Rejected
  /** The stored form of the other members, given as name, text, name, text; null requests strict decoding. */
  readonly others: (names: ReadonlyArray<string>, texts: ReadonlyArray<string>) => Others | null
}

/** The members of a record that are not fields. */
export interface Others {
  readonly customFields: string | null
  readonly extra: string | null
}

const quote = 34
const comma = 44
const minus = 45
const point = 46
const zero = 48
const nine = 57
const upperN = 78
const openBracket = 91
const backslash = 92
const closeBracket = 93
const lowerN = 110
const openBrace = 123
const closeBrace = 125
const tab = 9

/** Forms of values, by field type. */
const forms = { integer: 0, decimal: 1, boolean: 2, string: 3, date: 4, timestamp: 5, list: 6 } as const
/** A member that is not a field. */
const formOther = 7
/** A field whose values always need strict decoding. */
const formClose = 8

const formOf = ({ type, inferred }: Field): number => (inferred?.type === "json" ? formClose : forms[type._tag])

/** Whether a decimal must be quoted (1) or must not be (2); a field that the catalogue states accepts both. */
const quotesOf = ({ inferred }: Field): number =>
  inferred?.type === "decimal" ? 1 : inferred?.type === "number" ? 2 : 0

/** Digits of an integer that is certainly below 2^53. */
const integerDigitsMax = 15
/** Bytes that may precede the list of an answer. */
const headLengthMax = 64 * 1024
/** One of this many records of another layout replaces the learned layout. */
const learnEvery = 8

/** The byte layout of a resource's records. */
interface Look {
  /** The bytes before each value and after the last one, concatenated. */
  readonly glue: Uint8Array
  /** Start of the glue before value `n`; one more entry for the bytes after the last value, and one for the end. */
  readonly glueAt: Int32Array
  readonly forms: Uint8Array
  /** Of a decimal: digits before the point, digits after it, and whether it is quoted. */
  readonly wholes: Uint8Array
  readonly scales: Uint8Array
  readonly quotes: Uint8Array
  /** The field of each value; -1 for a member that is not a field. */
  readonly places: Int32Array
  /** Whether the fields come in the order of the catalogue. */
  readonly isInOrder: boolean
  /** Names of the members that are not fields. */
  readonly others: ReadonlyArray<string>
  /** The index of the value that is the record's number. */
  readonly idValue: number
}

const isSpace = (byte: number | undefined): boolean => byte === 32 || byte === 10 || byte === 13 || byte === 9

const skipSpace = (bytes: Uint8Array, at: number): number => {
  let place = at
  while (isSpace(bytes[place])) place++
  return place
}

/** The position after the string that begins at `at`; -1 when the string has no end. */
const stringEnd = (bytes: Uint8Array, at: number): number => {
  let end = at + 1
  while (end < bytes.length) {
    const byte = bytes[end]!
    if (byte === quote) return end + 1
    end += byte === backslash ? 2 : 1
  }
  return -1
}

/** The position after the value that begins at `at`, if it is JSON; -1 when the value has no end. */
const valueEnd = (bytes: Uint8Array, at: number): number => {
  let depth = 0
  let place = at
  while (place < bytes.length) {
    const byte = bytes[place]!
    if (byte === quote) {
      place = stringEnd(bytes, place)
      if (place < 0 || depth === 0) return place
      continue
    }
    if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) return place
      if (--depth === 0) return place + 1
    } else if (depth === 0 && (byte === comma || isSpace(byte))) return place
    place++
  }
  return -1
}

const digit = (byte: number | undefined): boolean => byte !== undefined && byte >= zero && byte <= nine

const two = (bytes: Uint8Array, at: number): number => {
  const tens = bytes[at]! - zero
  const units = bytes[at + 1]! - zero
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? tens * 10 + units : -1
}

/** Whether a calendar day is at `at`. A day past the 28th that depends on the year is left to the strict decoder. */
const isDay = (bytes: Uint8Array, at: number): boolean => {
  const century = two(bytes, at)
  const year = two(bytes, at + 2)
  if (century < 0 || year < 0 || century + year === 0) return false
  const month = two(bytes, at + 5)
  const day = two(bytes, at + 8)
  return (
    bytes[at + 4] === minus &&
    bytes[at + 7] === minus &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    (day <= 28 || (month !== 2 && (day <= 30 || (day === 31 && month < 8 === (month % 2 === 1)))))
  )
}

const isTime = (bytes: Uint8Array, at: number): boolean => {
  const hour = two(bytes, at)
  const minute = two(bytes, at + 3)
  const second = two(bytes, at + 6)
  return (
    bytes[at + 2] === 58 &&
    bytes[at + 5] === 58 &&
    hour >= 0 &&
    hour <= 23 &&
    minute >= 0 &&
    minute <= 59 &&
    second >= 0 &&
    second <= 59
  )
}

const hexAt = (bytes: Uint8Array, at: number): number => {
  let value = 0
  for (let place = at; place < at + 4; place++) {
    const byte = bytes[place] ?? 0
    const low = byte | 32
    const nibble = byte >= zero && byte <= nine ? byte - zero : low >= 97 && low <= 102 ? low - 87 : -1
    if (nibble < 0) return -1
    value = value * 16 + nibble
  }
  return value
}

/** Compiles the decoder of a resource's pages from their bytes. */
export const make = (resource: Resource, close: StrictDecode): ((bytes: Uint8Array) => BytesPage | null) => {
  const { fields } = resource
  const places = new Map(fields.map((field, place) => [field.name, place]))
  const idPlace = places.get("id")
  let look: Look | null = null
  let strangers = 0
  /** Buffer for the text of one page; the result is copied out of it. */
  let scratch = Buffer.allocUnsafeSlow(0)

  // Results of the last `take`, besides the position after the record.
  let written = 0
  let takenId = ""
  const otherRanges: Array<number> = []

  /** Learns the layout from a record that was decoded strictly and has every field and each name once. */
  const learn = (bytes: Buffer, from: number, to: number): Look | null => {
    const text = bytes.toString("latin1", from, to)
    const seen = new Set<string>()
    const glue: Array<number> = []
    const glueAt: Array<number> = []
    const members: Array<{ readonly place: number; readonly name: string }> = []
    let before = 0
    let isOdd = false
    eachMember(text, 0, (name, start, end) => {
      // A name with an escape or beyond ASCII is left to the strict decoder.
      if (seen.has(name) || !/^[\x20-\x7e]*$/.test(name) || !text.slice(before, start).includes(`"${name}"`))
        isOdd = true
      seen.add(name)
      glueAt.push(glue.length)
      for (let at = before; at < start; at++) glue.push(text.charCodeAt(at))
      members.push({ place: places.get(name) ?? -1, name })
      before = end
    })
    glueAt.push(glue.length)
    for (let at = before; at < text.length; at++) glue.push(text.charCodeAt(at))
    glueAt.push(glue.length)
    const known = members.filter(({ place }) => place >= 0)
    if (isOdd || known.length !== fields.length) return null
    return {
      glue: Uint8Array.from(glue),
      glueAt: Int32Array.from(glueAt),
      forms: Uint8Array.from(members, ({ place }) => (place < 0 ? formOther : formOf(fields[place]!))),
      wholes: Uint8Array.from(members, ({ place }) => (place < 0 ? 0 : wholeOf(fields[place]!))),
      scales: Uint8Array.from(members, ({ place }) => (place < 0 ? 0 : scaleOf(fields[place]!))),
      quotes: Uint8Array.from(members, ({ place }) => (place < 0 ? 0 : quotesOf(fields[place]!))),
      places: Int32Array.from(members, ({ place }) => place),
      isInOrder: known.every(({ place }, index) => place === index),
      others: members.filter(({ place }) => place < 0).map(({ name }) => name),
      idValue: members.findIndex(({ place }) => place === idPlace)
    }
  }

  /** Start and end of each value's text in the scratch, for records in another order than the catalogue's. */
  const starts = new Int32Array(fields.length)
  const ends = new Int32Array(fields.length)

  /**
   * Decodes the record that begins at `from` and writes its columns to `out` from `begin` on. Returns the position
   * after the record; -1 when the record has another layout, -2 when a value is not plain.
   */
  const take = (bytes: Buffer, from: number, like: Look, out: Buffer, begin: number): number => {
    const { glue, glueAt, forms: valueForms, wholes, scales, quotes, places: valuePlaces, idValue } = like
    const count = valueForms.length
    let at = from
    let to = begin
    let glued = 0
    let isFirst = true
    for (let value = 0; value <= count; value++) {
      const glueEnd = glueAt[value + 1]!
      while (glued < glueEnd) if (bytes[at++] !== glue[glued++]) return -1
      if (value === count) break
      const form = valueForms[value]!
      if (form === formOther) {
        const end = valueEnd(bytes, at)
        if (end <= at) return -2
        otherRanges.push(at, end)
        at = end
        continue
      }
      if (isFirst) isFirst = false
      else out[to++] = tab
      const start = to
      let byte = bytes[at]!
      if (byte === lowerN) {
        if (bytes[at + 1] !== 117 || bytes[at + 2] !== 108 || bytes[at + 3] !== 108 || value === idValue) return -2
        at += 4
        out[to++] = backslash
        out[to++] = upperN
      } else if (form === forms.string) {
        if (byte !== quote) return -2
        at++
        for (;;) {
          byte = bytes[at++]!
          if (byte === quote) break
          if (byte !== backslash) {
            // JSON has no raw control characters; past the end of the bytes the value is undefined.
            if (!(byte >= 32)) return -2
            out[to++] = byte
            continue
          }
          byte = bytes[at++]!
          if (byte === quote || byte === 47) out[to++] = byte
          else if (byte === backslash || byte === lowerN || byte === 116 || byte === 114) {
            out[to++] = backslash
            out[to++] = byte
          } else if (byte === 98) out[to++] = 8
          else if (byte === 102) out[to++] = 12
          else if (byte === 117) {
            const unit = hexAt(bytes, at)
            at += 4
            if (unit < 32 || unit === backslash) return -2
            if (unit < 0x80) out[to++] = unit
            else if (unit < 0x800) {
              out[to++] = 0xc0 | (unit >> 6)
              out[to++] = 0x80 | (unit & 63)
            } else if (unit < 0xd800 || unit > 0xdfff) {
              out[to++] = 0xe0 | (unit >> 12)
              out[to++] = 0x80 | ((unit >> 6) & 63)
              out[to++] = 0x80 | (unit & 63)
            } else {
              // A surrogate: only a first half followed by a second half is a character.
              if (unit > 0xdbff || bytes[at] !== backslash || bytes[at + 1] !== 117) return -2
              const low = hexAt(bytes, at + 2)
              at += 6
              if (low < 0xdc00 || low > 0xdfff) return -2
              const character = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
              out[to++] = 0xf0 | (character >> 18)
              out[to++] = 0x80 | ((character >> 12) & 63)
              out[to++] = 0x80 | ((character >> 6) & 63)
              out[to++] = 0x80 | (character & 63)
            }
          } else return -2
        }
      } else if (form === forms.integer) {
        let number = 0
        if (byte === minus) {
          out[to++] = byte
          byte = bytes[++at]!
          if (byte === zero) return -2
        }
        const first = at
        while (byte >= zero && byte <= nine) {
          number = number * 10 + (byte - zero)
          out[to++] = byte
          byte = bytes[++at]!
        }
        const digits = at - first
        if (digits === 0 || digits > integerDigitsMax || (digits > 1 && bytes[first] === zero)) return -2
        if (value === idValue) takenId = bytes[first - 1] === minus ? `-${number}` : String(number)
      } else if (form === forms.decimal) {
        const isQuoted = byte === quote
        if (quotes[value] === (isQuoted ? 2 : 1)) return -2
        if (isQuoted) byte = bytes[++at]!
        const isNegative = byte === minus
        if (isNegative) {
          out[to++] = byte
          byte = bytes[++at]!
        }
        const first = at
        while (byte >= zero && byte <= nine) {
          out[to++] = byte
          byte = bytes[++at]!
        }
        const digits = at - first
        const scale = scales[value]!
        if (digits === 0 || digits > wholes[value]!) return -2
        // A superfluous zero and minus zero have another canonical text.
        if (bytes[first] === zero && (digits > 1 || isNegative)) return -2
        if (byte === point) {
          out[to++] = byte
          byte = bytes[++at]!
          const fraction = at
          while (byte >= zero && byte <= nine) {
            out[to++] = byte
            byte = bytes[++at]!
          }
          if (at === fraction || at - fraction > scale) return -2
        }
        if (isQuoted && bytes[at++] !== quote) return -2
      } else if (form === forms.timestamp || form === forms.date) {
        if (byte !== quote || !isDay(bytes, at + 1)) return -2
        let end = at + 11
        if (form === forms.timestamp) {
          if (bytes[end] !== 84 || !isTime(bytes, end + 1)) return -2
          end += 9
          if (bytes[end] === point) {
            const fraction = ++end
            while (digit(bytes[end])) end++
            if (end === fraction || end - fraction > fractionDigitsMax) return -2
          }
          if (bytes[end++] !== 90) return -2
        }
        if (bytes[end] !== quote) return -2
        for (at++; at < end; at++) out[to++] = bytes[at]!
        at++
      } else if (form === forms.boolean) {
        const word = byte === 116 ? "true" : byte === 102 ? "false" : ""
        if (word === "") return -2
        for (let letter = 0; letter < word.length; letter++) {
          const code = word.charCodeAt(letter)
          if (bytes[at++] !== code) return -2
          out[to++] = code
        }
      } else {
        if (form === formClose || byte !== openBracket) return -2
        const end = valueEnd(bytes, at)
        if (end < 0) return -2
        if (end - at > 2 || bytes[at + 1] !== closeBracket) {
          if (!isKeepableJson(bytes, at, end)) return -2
        }
        for (; at < end; at++) {
          const inside = bytes[at]!
          // White space that would end a COPY field, and escapes, are left to the strict decoder.
          if (inside < 32 || inside === backslash) return -2
          out[to++] = inside
        }
      }
      const place = valuePlaces[value]!
      starts[place] = start
      ends[place] = to
    }
    written = like.isInOrder ? to : ordered(out, begin, to)
    return at
  }

  /** Reorders the columns between `begin` and `end` into the order of the catalogue. */
  const ordered = (out: Buffer, begin: number, end: number): number => {
    const copy = Buffer.from(out.subarray(begin, end))
    let to = begin
    for (let place = 0; place < starts.length; place++) {
      if (place > 0) out[to++] = tab
      to += copy.copy(out, to, starts[place]! - begin, ends[place]! - begin)
    }
    return to
  }

  const isKeepableJson = (bytes: Buffer, from: number, to: number): boolean => {
    const text = bytes.toString("utf8", from, to)
    try {
      JSON.parse(text)
    } catch {
      return false
    }
    return unkeepable(text) === null
  }

  /** The members beside the fields of the last record of `take`; null when it needs strict decoding. */
  const othersOf = (bytes: Buffer, like: Look): Others | null => {
    const texts: Array<string> = []
    for (let at = 0; at < otherRanges.length; at += 2) {
      const text = bytes.toString("utf8", otherRanges[at], otherRanges[at + 1])
      try {
        JSON.parse(text)
      } catch {
        return null
      }
      texts.push(text)
    }
    return close.others(like.others, texts)
  }

  return (given) => {
    if (idPlace === undefined) return null
    const bytes = Buffer.isBuffer(given) ? given : Buffer.from(given.buffer, given.byteOffset, given.byteLength)
    const list = findList(bytes)
    if (list === null || !isUtf8(bytes)) return null
    // The written text is shorter than its source: every value has a name, except `\N` in a list.
    if (scratch.length < bytes.length + 16) scratch = Buffer.allocUnsafeSlow(Math.ceil(bytes.length * 1.25) + 16)
    const records: Array<SourceRecord | null> = []
    const rejected: Array<Rejected> = []
    /** Records whose text is in the scratch, as triples: index among all records, start, end. */
    const ready: Array<number> = []
    const readyIds: Array<string> = []
    const readyOthers: Array<Others> = []
    let to = 0
    let at = skipSpace(bytes, list.from + 1)
    while (bytes[at] !== closeBracket) {
      let end = -1
      if (look !== null) {
        otherRanges.length = 0
        end = take(bytes, at, look, scratch, to)
        if (end >= 0) {
          const others = look.others.length === 0 ? none : othersOf(bytes, look)
          if (others === null) end = -2
          else {
            ready.push(records.length, to, written)
            readyIds.push(takenId)
            readyOthers.push(others)
            records.push(null)
            to = written
          }
        }
      }
      if (end < 0) {
        const looksStrange = end === -1
        end = valueEnd(bytes, at)
        if (end < 0) return null
        const text = bytes.toString("utf8", at, end)
        try {
          JSON.parse(text)
        } catch {
          return null
        }
        const outcome = close.one(text)
        if ("reason" in outcome) rejected.push(outcome)
        else {
          records.push(outcome)
          if (looksStrange && strangers++ % learnEvery === 0 && !outcome.partial) look = learn(bytes, at, end) ?? look
        }
      }
      at = skipSpace(bytes, end)
      if (bytes[at] === comma) {
        at = skipSpace(bytes, at + 1)
        if (bytes[at] === closeBracket) return null
      } else if (bytes[at] !== closeBracket) return null
    }
    let envelope: unknown
    try {
      envelope = JSON.parse(`${bytes.toString("utf8", 0, list.from)}[]${bytes.toString("utf8", at + 1, bytes.length)}`)
    } catch {
      return null
    }
    const place: unknown = list.name === null ? envelope : (envelope as Readonly<Record<string, unknown>>)[list.name]
    if (!Array.isArray(place) || place.length > 0) return null
    // With two members of this name the last one counts, and this one may be the first.
    if (list.name !== null && (bytes.includes(`"${list.name}"`, at) || bytes.includes("\\u", at))) return null
    const text = Buffer.allocUnsafeSlow(to)
    scratch.copy(text, 0, 0, to)
    for (const [index, id] of readyIds.entries()) {
      const { customFields, extra } = readyOthers[index]!
      const [record, from, end] = [ready[3 * index]!, ready[3 * index + 1]!, ready[3 * index + 2]!]
      records[record] = new EncodedRecord(id, text, from, end, customFields, extra)
    }
    return { envelope, place: place as ReadonlyArray<unknown>, records: records as Array<SourceRecord>, rejected }
  }
}

const none: Others = { customFields: null, extra: null }

/** The list in the answer, or the answer itself if it is a list; null when none begins near the start. */
const findList = (bytes: Buffer): { readonly from: number; readonly name: string | null } | null => {
  let at = skipSpace(bytes, 0)
  if (bytes[at] === openBracket) return { from: at, name: null }
  if (bytes[at] !== openBrace) return null
  at = skipSpace(bytes, at + 1)
  while (bytes[at] === quote && at < headLengthMax) {
    const nameEnd = stringEnd(bytes, at)
    if (nameEnd < 0) return null
    const name = bytes.toString("utf8", at + 1, nameEnd - 1)
    at = skipSpace(bytes, nameEnd)
    if (bytes[at] !== 58) return null
    at = skipSpace(bytes, at + 1)
    // `JSON.parse` checks the name later; a name with an escape is not looked up.
    if (bytes[at] === openBracket) return /^[\w-]+$/.test(name) ? { from: at, name } : null
    at = valueEnd(bytes, at)
    if (at < 0) return null
    at = skipSpace(bytes, at)
    if (bytes[at] === comma) at = skipSpace(bytes, at + 1)
  }
  return null
}
