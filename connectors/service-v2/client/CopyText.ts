/**
 * Text for COPY, written value by value from the bytes of an answer.
 *
 * Promise: a value that is written is valid JSON of its field's type, and its text is the one that strict decoding gives.
 * For every other value the result is {@link notPlain}; then the caller resets the length and decodes strictly.
 *
 * Method: a value is checked and written in one pass, which is faster than a check and a copy. Each method returns the
 * position after the value, or {@link notPlain}.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import { backslash, closeBracket, minus, nine, noEnd, openBracket, point, quote, valueEnd, zero } from "./JsonBytes.ts"
import { hexAt, isDay, isPlainList, isTime, startsWith } from "./PlainBytes.ts"
import { decimalDigitsMax, fractionDigitsMax, inferredDigitsMax } from "./Values.ts"

/** The result for a value that needs strict decoding. */
export const notPlain = -2

const tab = 9
const slash = 47
const upperN = 78
const upperT = 84
const upperZ = 90
const lowerB = 98
const lowerF = 102
const lowerL = 108
const lowerN = 110
const lowerR = 114
const lowerT = 116
const lowerU = 117

const trueWord = Buffer.from("true")
const falseWord = Buffer.from("false")

/** Digits of an integer that is certainly below 2^53. */
const integerDigitsMax = 15
/** From this length on, a native copy is faster than a loop. */
const nativeCopyMin = 40

/** Numbers: with them, decoding is 5 to 10 % faster than with the names. */
const types = { integer: 0, decimal: 1, boolean: 2, string: 3, date: 4, timestamp: 5, list: 6 } as const

/** The plain form of a field's values. */
export interface PlainForm {
  readonly type: (typeof types)[keyof typeof types]
  /** Whether null is plain. */
  readonly isNullable: boolean
  /** Of a decimal: the maximum number of digits before the point, and after it. */
  readonly wholeMax: number
  readonly scale: number
  /** Whether a decimal is quoted; null accepts both. */
  readonly isQuoted: boolean | null
}

/** The plain form of a field; null when its values always need strict decoding. */
export const plainForm = ({ type, inferred }: Field, isNullable: boolean): PlainForm | null => {
  if (inferred?.type === "json") return null
  const scale = type._tag === "decimal" ? type.scale : 0
  return {
    type: types[type._tag],
    isNullable,
    wholeMax: inferred === null ? decimalDigitsMax - scale : inferredDigitsMax,
    scale,
    isQuoted: inferred?.type === "decimal" ? true : inferred?.type === "number" ? false : null
  }
}

export class CopyText {
  private buffer = Buffer.alloc(0)
  /** Number of bytes written. A smaller value drops what was written last. */
  length = 0

  /** Empties the text and reserves space. Bytes beyond the space would be lost. */
  reset(bytesMax: number): void {
    if (this.buffer.length < bytesMax) this.buffer = Buffer.allocUnsafeSlow(Math.ceil(bytesMax * 1.25))
    this.length = 0
  }

  /** A copy of the text from `from` on, of its exact size. */
  copyFrom(from: number): Buffer {
    const copy = Buffer.allocUnsafeSlow(this.length - from)
    this.buffer.copy(copy, 0, from, this.length)
    return copy
  }

  tab(): void {
    this.byte(tab)
  }

  private byte(byte: number): void {
    this.buffer[this.length++] = byte
  }

  /** Appends bytes that need no escape. */
  bytes(source: Buffer, from: number, to: number): void {
    const { buffer } = this
    let { length } = this
    if (to - from >= nativeCopyMin) length += source.copy(buffer, length, from, to)
    else for (let at = from; at < to; at++) buffer[length++] = source[at]!
    this.length = length
  }

  /** Appends the value that begins at `at`, and returns the position after it. */
  value(form: PlainForm, source: Buffer, at: number): number {
    if (source[at] === lowerN) return this.null(form, source, at)
    switch (form.type) {
      case types.string:
        return this.string(source, at)
      case types.integer:
        return this.whole(source, at, integerDigitsMax)
      case types.decimal:
        return this.decimal(source, at, form)
      case types.timestamp:
        return this.timestamp(source, at)
      case types.boolean:
        return this.boolean(source, at)
      case types.date:
        return this.date(source, at)
      case types.list:
        return this.list(source, at)
    }
  }

  private null({ isNullable }: PlainForm, source: Buffer, at: number): number {
    const isNull = source[at + 1] === lowerU && source[at + 2] === lowerL && source[at + 3] === lowerL
    if (!isNull || !isNullable) return notPlain
    this.byte(backslash)
    this.byte(upperN)
    return at + 4
  }

  private boolean(source: Buffer, at: number): number {
    const word = source[at] === lowerT ? trueWord : falseWord
    if (!startsWith(source, at, word)) return notPlain
    this.bytes(word, 0, word.length)
    return at + word.length
  }

  private digits(source: Buffer, from: number): number {
    const { buffer } = this
    let { length } = this
    let at = from
    let byte = source[at]!
    while (byte >= zero && byte <= nine) {
      buffer[length++] = byte
      byte = source[++at]!
    }
    this.length = length
    return at
  }

  private whole(source: Buffer, from: number, digitsMax: number): number {
    let first = from
    if (source[from] === minus) {
      this.byte(minus)
      first++
    }
    const end = this.digits(source, first)
    const digits = end - first
    if (digits === 0 || digits > digitsMax) return notPlain
    // A superfluous zero and minus zero have another canonical text.
    return source[first] === zero && (digits > 1 || first > from) ? notPlain : end
  }

  /** Appends a point and at most `digitsMax` digits. */
  private fraction(source: Buffer, at: number, digitsMax: number): number {
    this.byte(point)
    const end = this.digits(source, at + 1)
    const digits = end - at - 1
    return digits === 0 || digits > digitsMax ? notPlain : end
  }

  private decimal(source: Buffer, from: number, { wholeMax, scale, isQuoted }: PlainForm): number {
    const hasQuote = source[from] === quote
    if (isQuoted !== null && isQuoted !== hasQuote) return notPlain
    let end = this.whole(source, hasQuote ? from + 1 : from, wholeMax)
    if (end !== notPlain && source[end] === point) end = this.fraction(source, end, scale)
    if (end === notPlain || !hasQuote) return end
    return source[end] === quote ? end + 1 : notPlain
  }

  private date(source: Buffer, at: number): number {
    if (source[at] !== quote || !isDay(source, at + 1) || source[at + 11] !== quote) return notPlain
    this.bytes(source, at + 1, at + 11)
    return at + 12
  }

  private timestamp(source: Buffer, at: number): number {
    if (source[at] !== quote || !isDay(source, at + 1) || source[at + 11] !== upperT) return notPlain
    if (!isTime(source, at + 12)) return notPlain
    this.bytes(source, at + 1, at + 20)
    let end = at + 20
    if (source[end] === point) end = this.fraction(source, end, fractionDigitsMax)
    if (end === notPlain || source[end] !== upperZ || source[end + 1] !== quote) return notPlain
    this.byte(upperZ)
    return end + 2
  }

  private list(source: Buffer, from: number): number {
    if (source[from] !== openBracket) return notPlain
    const end = valueEnd(source, from)
    if (end === noEnd) return notPlain
    const isEmpty = source[from + 1] === closeBracket
    if (!isEmpty && !isPlainList(source, from, end)) return notPlain
    this.bytes(source, from, end)
    return end
  }

  private string(source: Buffer, from: number): number {
    if (source[from] !== quote) return notPlain
    const { buffer } = this
    let { length } = this
    let at = from + 1
    for (;;) {
      const byte = source[at++]!
      if (byte === quote) break
      if (byte === backslash) {
        this.length = length
        at = this.escape(source, at)
        if (at === notPlain) return notPlain
        length = this.length
        continue
      }
      // JSON has no raw control characters; past the end of the bytes the value is undefined.
      if (!(byte >= 32)) return notPlain
      buffer[length++] = byte
    }
    this.length = length
    return at
  }

  /** Appends the character of the escape whose letter is at `at`. */
  private escape(source: Buffer, at: number): number {
    const letter = source[at]
    switch (letter) {
      case quote:
      case slash:
        this.byte(letter)
        return at + 1
      case backslash:
      case lowerN:
      case lowerR:
      case lowerT:
        // COPY has the same escape.
        this.byte(backslash)
        this.byte(letter)
        return at + 1
      case lowerB:
        this.byte(8)
        return at + 1
      case lowerF:
        this.byte(12)
        return at + 1
      case lowerU:
        return this.unicodeEscape(source, at + 1)
      default:
        return notPlain
    }
  }

  private unicodeEscape(source: Buffer, at: number): number {
    const unit = hexAt(source, at)
    if (unit < 32 || unit === backslash) return notPlain
    if (unit < 0xd800 || unit > 0xdfff) {
      this.codePoint(unit)
      return at + 4
    }
    // A surrogate: only a first half followed by a second half is a character.
    if (unit > 0xdbff || source[at + 4] !== backslash || source[at + 5] !== lowerU) return notPlain
    const low = hexAt(source, at + 6)
    if (low < 0xdc00 || low > 0xdfff) return notPlain
    this.codePoint(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
    return at + 10
  }

  private codePoint(code: number): void {
    if (code < 0x80) {
      this.byte(code)
      return
    }
    if (code < 0x800) this.byte(0xc0 | (code >> 6))
    else {
      if (code < 0x10000) this.byte(0xe0 | (code >> 12))
      else {
        this.byte(0xf0 | (code >> 18))
        this.byte(0x80 | ((code >> 12) & 63))
      }
      this.byte(0x80 | ((code >> 6) & 63))
    }
    this.byte(0x80 | (code & 63))
  }
}
