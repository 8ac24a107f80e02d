/**
 * Reading JSON without losing a digit.
 *
 * Promise: nothing is lost and nothing is shared with what loads records: numbers stay the digits that were given, names
 * are taken from the text (JSON.parse of Node 24.21 confuses some names with escapes), a member that stands twice in its
 * object can be told, and two values have the same {@link canonical} form exactly when Postgres would keep the same
 * `jsonb` of them, trailing zeros included.
 */

/** A number as it was given. */
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
  /** Names of members that stand twice in their object, at whatever depth. */
  readonly twice: ReadonlyArray<string>
}

export class NotJson extends Error {}

/** Deeper values are told to be unreadable; nothing that was landed is as deep. */
const nestingMax = 1000

const space = /[ \t\n\r]*/y
const numeral = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

export const isObject = (value: Json | undefined): value is JsonObject => value instanceof Map

/** Narrowed by what it is not: `Array.isArray` does not narrow a readonly array. */
export const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

/** Parses one JSON value and tells what stands twice in it; throws {@link NotJson}. */
export const read = (text: string): Parsed => {
  let at = 0
  const twice: Array<string> = []

  const fail = (wanted: string): never => {
    throw new NotJson(`expected ${wanted} at character ${at + 1}`)
  }
  const skip = () => {
    if (text.charCodeAt(at) > 32) return
    space.lastIndex = at
    space.exec(text)
    at = space.lastIndex
  }
  const string = (): string => {
    const from = at
    let escaped = false
    for (at++; ; at++) {
      const code = text.charCodeAt(at)
      if (code === 34) break
      // A raw control character is no JSON; NaN is the end of the text.
      if (!(code >= 32)) fail("the end of a string")
      if (code === 92) {
        escaped = true
        at++
      }
    }
    at++
    if (!escaped) return text.slice(from + 1, at - 1)
    try {
      return JSON.parse(text.slice(from, at)) as string
    } catch {
      at = from
      return fail("a string with escapes that exist")
    }
  }
  const word = <A extends Json>(expected: string, value: A): A => {
    if (!text.startsWith(expected, at)) fail(expected)
    at += expected.length
    return value
  }
  const value = (depth: number): Json => {
    if (depth > nestingMax) fail(`a value nested less than ${nestingMax} deep`)
    skip()
    switch (text.charCodeAt(at)) {
      case 34:
        return string()
      case 123:
        return object(depth)
      case 91:
        return array(depth)
      case 116:
        return word("true", true)
      case 102:
        return word("false", false)
      case 110:
        return word("null", null)
      default: {
        numeral.lastIndex = at
        const match = numeral.exec(text)
        if (match === null) return fail("a value")
        at = numeral.lastIndex
        return new NumberToken(match[0])
      }
    }
  }
  const object = (depth: number): JsonObject => {
    const members = new Map<string, Json>()
    at++
    skip()
    if (text.charCodeAt(at) === 125) {
      at++
      return members
    }
    for (;;) {
      skip()
      if (text.charCodeAt(at) !== 34) fail("a name")
      const name = string()
      skip()
      if (text.charCodeAt(at) !== 58) fail("a colon")
      at++
      if (members.has(name)) twice.push(name)
      members.set(name, value(depth + 1))
      skip()
      const code = text.charCodeAt(at)
      if (code === 125) {
        at++
        return members
      }
      if (code !== 44) fail("a comma or the end of the object")
      at++
    }
  }
  const array = (depth: number): ReadonlyArray<Json> => {
    const items: Array<Json> = []
    at++
    skip()
    if (text.charCodeAt(at) === 93) {
      at++
      return items
    }
    for (;;) {
      items.push(value(depth + 1))
      skip()
      const code = text.charCodeAt(at)
      if (code === 93) {
        at++
        return items
      }
      if (code !== 44) fail("a comma or the end of the list")
      at++
    }
  }

  const whole = value(0)
  skip()
  if (at < text.length) fail("the end of the text")
  return { value: whole, twice }
}

/** Parses one JSON value; throws {@link NotJson}. Of two members with the same name the later one counts. */
export const parse = (text: string): Json => read(text).value

/** Larger exponents are left as they are: no database text has them. */
const exponentMax = 2000

/** A number token as Postgres tells the numeric that it reads from it: no exponent, the zeros at the end kept. */
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

/** Equal for what `jsonb` keeps alike, and for nothing else. */
export const canonical = (value: Json): string => written(value, canonicalNumber, true)

/** As it was given, without the white space. */
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
