/**
 * Reading JSON for writing it on.
 *
 * Promise: numbers stay the digits that were given, and a member that stands twice in its object is told: whoever gave
 * it meant one of the two, and nobody can know which.
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

/** Deeper values are told to be unreadable. */
const nestingMax = 200

const space = /[ \t\n\r]*/y
const numeral = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

export const isObject = (value: Json | undefined): value is JsonObject => value instanceof Map

/** Narrowed by what it is not: `Array.isArray` does not narrow a readonly array. */
export const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

/** Parses one JSON value; throws {@link NotJson}. */
export const parse = (text: string): Parsed => {
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
  if (at < text.length) fail("the end of the record")
  return { value: whole, twice }
}

/** JSON without white space, members in the order of their names, numbers as they were given. */
export const print = (value: Json): string => {
  if (value === null || typeof value === "boolean") return String(value)
  if (typeof value === "string") return JSON.stringify(value)
  if (value instanceof NumberToken) return value.text
  if (isObject(value)) {
    const names = [...value.keys()].sort()
    return `{${names.map((name) => `${JSON.stringify(name)}:${print(value.get(name)!)}`).join(",")}}`
  }
  return `[${value.map(print).join(",")}]`
}

/** Whether a database and any other reader can hold the text: well formed, and without NUL. */
export const isPlainText = (text: string): boolean => text.isWellFormed() && !text.includes("\0")

/** {@link isPlainText} of every text in the value, names included. */
export const isPlain = (value: Json): boolean => {
  if (typeof value === "string") return isPlainText(value)
  if (isObject(value)) return [...value].every(([name, member]) => isPlainText(name) && isPlain(member))
  return isList(value) ? value.every(isPlain) : true
}
