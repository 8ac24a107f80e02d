/**
 * Positions of values in a JSON text, so that a value can be kept exactly as it was sent.
 *
 * Promise: for a text that `JSON.parse` accepts, every result is the exact range of a value. Nothing is copied, parsed
 * or normalised here: `1.10` stays `1.10`, and an escape or a twentieth digit stays.
 */

const quote = 34
const comma = 44
const colon = 58
const openBracket = 91
const backslash = 92
const closeBracket = 93
const openBrace = 123
const closeBrace = 125

export const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The kind of a value, by its first character. */
export type Kind = "string" | "number" | "boolean" | "null" | "object" | "array"

export const kindAt = (text: string, at: number): Kind => {
  switch (text.charCodeAt(at)) {
    case quote:
      return "string"
    case openBrace:
      return "object"
    case openBracket:
      return "array"
    case 116: // t
    case 102: // f
      return "boolean"
    case 110: // n
      return "null"
    default:
      return "number"
  }
}

/** The first position at or after `at` that is not white space. */
export const skipSpace = (text: string, at: number): number => {
  let place = at
  for (;;) {
    const code = text.charCodeAt(place)
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return place
    place++
  }
}

/** The position after the string that begins at `at`. */
export const stringEnd = (text: string, at: number): number => {
  let end = at + 1
  for (;;) {
    end = text.indexOf('"', end)
    if (end < 0) throw new Error("the text is not JSON: a string has no end")
    let back = end - 1
    while (text.charCodeAt(back) === backslash) back--
    // An even number of backslashes before it: the quote is not escaped.
    if (((end - back) & 1) === 1) return end + 1
    end++
  }
}

/** The position after the value that begins at `at`. */
export const valueEnd = (text: string, at: number): number => {
  const first = text.charCodeAt(at)
  if (first === quote) return stringEnd(text, at)
  let place = at
  if (first !== openBrace && first !== openBracket) {
    for (;;) {
      const code = text.charCodeAt(place)
      // White space, a comma or a closing bracket; NaN is the end of the text.
      if (!(code > 32) || code === comma || code === closeBrace || code === closeBracket) return place
      place++
    }
  }
  let depth = 0
  for (;;) {
    if (place >= text.length) throw new Error("the text is not JSON: a value has no end")
    const code = text.charCodeAt(place)
    if (code === quote) {
      place = stringEnd(text, place)
      continue
    }
    place++
    if (code === openBrace || code === openBracket) depth++
    else if ((code === closeBrace || code === closeBracket) && --depth === 0) return place
  }
}

/** The value of the string between `from` and `to`, quotes included. */
export const stringValue = (text: string, from: number, to: number): string => {
  const inner = text.slice(from + 1, to - 1)
  return inner.includes("\\") ? (JSON.parse(text.slice(from, to)) as string) : inner
}

/** Calls `visit` with each member of the object that begins at `at`, in the order sent. */
export const eachMember = (text: string, at: number, visit: (name: string, from: number, to: number) => void): void => {
  let place = skipSpace(text, at + 1)
  while (text.charCodeAt(place) !== closeBrace) {
    const nameEnd = stringEnd(text, place)
    const name = stringValue(text, place, nameEnd)
    place = skipSpace(text, nameEnd)
    if (text.charCodeAt(place) !== colon) throw new Error("the text is not JSON: a member has no colon")
    const from = skipSpace(text, place + 1)
    const to = valueEnd(text, from)
    visit(name, from, to)
    place = skipSpace(text, to)
    if (text.charCodeAt(place) === comma) place = skipSpace(text, place + 1)
  }
}

/** Ranges of the elements of the array that begins at `at`: from, to, from, to and so on. */
export const elements = (text: string, at: number): Array<number> => {
  const ranges: Array<number> = []
  let place = skipSpace(text, at + 1)
  while (text.charCodeAt(place) !== closeBracket) {
    if (place >= text.length) throw new Error("the text is not JSON: an array has no end")
    const to = valueEnd(text, place)
    ranges.push(place, to)
    place = skipSpace(text, to)
    if (text.charCodeAt(place) === comma) place = skipSpace(text, place + 1)
  }
  return ranges
}

/** Start of the member `name` of the object that begins at `at`; the last one of equal names, as JSON.parse. */
export const memberStart = (text: string, at: number, name: string): number | null => {
  let found: number | null = null
  eachMember(text, at, (member, from) => {
    if (member === name) found = from
  })
  return found
}
