/**
 * A JSON reader that keeps every digit.
 *
 * Promise: numbers keep the digits of the text. Names are read from the text, because JSON.parse of Node 24.21 confuses
 * some names with escapes. Duplicate members are reported. Two values have the same {@link canonical} form exactly when
 * Postgres keeps the same `jsonb` of them, trailing zeros included. The code that loads values does not use it.
 */

/** A number with the digits of its text. */
export class NumberToken {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Json = null | boolean | string | NumberToken | ReadonlyArray<Json> | JsonObject
export type JsonObject = ReadonlyMap<string, Json>

export interface Parsed {
  readonly value: Json
  /** Names of members that occur twice in their object, at any depth. */
  readonly duplicates: ReadonlyArray<string>
}

export class NotJson extends Error {}

/** Deeper values are rejected; no landed value is as deep. */
const nestingMax = 1000

const space = /[ \t\n\r]*/y
const numeral = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

export const isObject = (value: Json | undefined): value is JsonObject => value instanceof Map

/** A type guard of its own: `Array.isArray` does not narrow a readonly array. */
export const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

/** Character codes of the grammar. */
const [quote, comma, backslash, colon] = [34, 44, 92, 58]
const [openBracket, closeBracket, openBrace, closeBrace] = [91, 93, 123, 125]

class Reader {
  private at = 0
  private readonly text: string
  readonly duplicates: Array<string> = []
  constructor(text: string) {
    this.text = text
  }

  document(): Json {
    const value = this.value(0)
    this.skipSpace()
    if (this.at < this.text.length) this.fail("the end of the text")
    return value
  }

  private fail(expected: string): never {
    throw new NotJson(`expected ${expected} at character ${this.at + 1}`)
  }

  private skipSpace(): void {
    if (this.text.charCodeAt(this.at) > 32) return
    space.lastIndex = this.at
    space.exec(this.text)
    this.at = space.lastIndex
  }

  /** The next character that is no white space. */
  private peek(): number {
    this.skipSpace()
    return this.text.charCodeAt(this.at)
  }

  private value(depth: number): Json {
    if (depth > nestingMax) this.fail(`a value nested less than ${nestingMax} deep`)
    switch (this.peek()) {
      case quote:
        return this.string()
      case openBrace:
        return this.object(depth)
      case openBracket:
        return this.array(depth)
      case 116:
        return this.word("true", true)
      case 102:
        return this.word("false", false)
      case 110:
        return this.word("null", null)
      default:
        return this.number()
    }
  }

  private string(): string {
    const from = this.at
    let escaped = false
    for (this.at++; ; this.at++) {
      const code = this.text.charCodeAt(this.at)
      if (code === quote) break
      // A raw control character is no JSON; NaN is the end of the text.
      if (!(code >= 32)) this.fail("the end of a string")
      if (code === backslash) {
        escaped = true
        this.at++
      }
    }
    this.at++
    if (!escaped) return this.text.slice(from + 1, this.at - 1)
    try {
      return JSON.parse(this.text.slice(from, this.at)) as string
    } catch {
      this.at = from
      return this.fail("a string with escapes that exist")
    }
  }

  private word<A extends Json>(expected: string, value: A): A {
    if (!this.text.startsWith(expected, this.at)) this.fail(expected)
    this.at += expected.length
    return value
  }

  private number(): NumberToken {
    numeral.lastIndex = this.at
    const match = numeral.exec(this.text)
    if (match === null) return this.fail("a value")
    this.at = numeral.lastIndex
    return new NumberToken(match[0])
  }

  private object(depth: number): JsonObject {
    const members = new Map<string, Json>()
    this.members(closeBrace, "a comma or the end of the object", () => {
      if (this.peek() !== quote) this.fail("a name")
      const name = this.string()
      if (this.peek() !== colon) this.fail("a colon")
      this.at++
      if (members.has(name)) this.duplicates.push(name)
      members.set(name, this.value(depth + 1))
    })
    return members
  }

  private array(depth: number): ReadonlyArray<Json> {
    const items: Array<Json> = []
    this.members(closeBracket, "a comma or the end of the list", () => items.push(this.value(depth + 1)))
    return items
  }

  /** From the opening bracket to the closing one; `member` reads one member or item. */
  private members(close: number, expected: string, member: () => void): void {
    this.at++
    if (this.peek() !== close) {
      member()
      for (let code = this.peek(); code !== close; code = this.peek()) {
        if (code !== comma) this.fail(expected)
        this.at++
        member()
      }
    }
    this.at++
  }
}

/** Parses one JSON value; throws {@link NotJson}. */
export const read = (text: string): Parsed => {
  const reader = new Reader(text)
  return { value: reader.document(), duplicates: reader.duplicates }
}

/** Parses one JSON value; throws {@link NotJson}. Of two members with the same name the later one counts. */
export const parse = (text: string): Json => read(text).value

/** Larger exponents are left as they are: no database text has them. */
const exponentMax = 2000

/** A number token as Postgres prints the numeric of it: no exponent, the zeros at the end kept. */
export const canonicalNumber = (text: string): string => {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (match === null) return text
  const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match
  const exponent = Number(exponentText)
  if (Math.abs(exponent) > exponentMax) return text
  const scale = Math.max(0, fraction.length - exponent)
  const digits = whole + fraction + "0".repeat(Math.max(0, exponent - fraction.length))
  const padded = digits.padStart(scale + 1, "0")
  const wholePart = padded.slice(0, padded.length - scale).replace(/^0+(?=\d)/, "")
  const plain = scale === 0 ? wholePart : `${wholePart}.${padded.slice(padded.length - scale)}`
  return sign === "-" && /[1-9]/.test(plain) ? `-${plain}` : plain
}

const written = (value: Json, number: (text: string) => string, sort: boolean): string => {
  if (value === null || typeof value === "boolean") return String(value)
  if (typeof value === "string") return JSON.stringify(value)
  if (value instanceof NumberToken) return number(value.text)
  if (isObject(value)) {
    const names = [...value.keys()]
    if (sort) names.sort()
    return `{${names.map((name) => `${JSON.stringify(name)}:${written(value.get(name)!, number, sort)}`).join(",")}}`
  }
  return `[${value.map((item) => written(item, number, sort)).join(",")}]`
}

/** The same text for two values exactly when `jsonb` stores them alike. */
export const canonical = (value: Json): string => written(value, canonicalNumber, true)

/** The text of the value, without white space. */
export const print = (value: Json): string => written(value, (text) => text, false)

/** {@link print}, members in the order of their names: the same value always gives the same text. */
export const printSorted = (value: Json): string => written(value, (text) => text, true)

/** Whether a database and any other reader can hold the text: well formed, and without NUL. */
export const isPlainText = (text: string): boolean => text.isWellFormed() && !text.includes("\0")

/** {@link isPlainText} of every text in the value, names included. */
export const isPlain = (value: Json): boolean => {
  if (typeof value === "string") return isPlainText(value)
  if (isObject(value)) return [...value].every(([name, member]) => isPlainText(name) && isPlain(member))
  return isList(value) ? value.every(isPlain) : true
}
