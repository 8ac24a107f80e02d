/**
 * Positions of values in the bytes of a JSON text. `JsonText.ts` does the same for strings.
 *
 * Promise: for bytes that `JSON.parse` accepts, every result is exact. For other bytes the result is any position or
 * {@link noEnd}; a caller that does not know the bytes gives the range to `JSON.parse` as well.
 */

export const quote = 34
export const comma = 44
export const minus = 45
export const point = 46
export const zero = 48
export const nine = 57
export const colon = 58
export const openBracket = 91
export const backslash = 92
export const closeBracket = 93
export const openBrace = 123
export const closeBrace = 125

/** The bytes end inside the value. */
export const noEnd = -1

const isSpace = (byte: number | undefined): boolean => byte === 32 || byte === 10 || byte === 13 || byte === 9

/** The first position at or after `at` that is not white space. */
export const skipSpace = (bytes: Uint8Array, at: number): number => {
  let place = at
  while (isSpace(bytes[place])) place++
  return place
}

/** The position after the string that begins at `at`. */
export const stringEnd = (bytes: Uint8Array, at: number): number => {
  let end = at + 1
  while (end < bytes.length) {
    const byte = bytes[end]!
    if (byte === quote) return end + 1
    end += byte === backslash ? 2 : 1
  }
  return noEnd
}

/** The position after the value that begins at `at`; `at` itself when none begins there. */
export const valueEnd = (bytes: Uint8Array, at: number): number => {
  let depth = 0
  let place = at
  while (place < bytes.length) {
    const byte = bytes[place]!
    if (byte === quote) {
      place = stringEnd(bytes, place)
      if (place === noEnd || depth === 0) return place
      continue
    }
    if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) return place
      if (--depth === 0) return place + 1
    } else if (depth === 0 && (byte === comma || isSpace(byte))) return place
    place++
  }
  return noEnd
}
