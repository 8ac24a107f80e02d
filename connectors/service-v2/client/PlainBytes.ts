/**
 * Checks of values in the bytes of an answer, for the forms that `CopyText.ts` writes.
 *
 * Promise: past the end of the bytes every check fails.
 */
import { colon, minus, nine, zero } from "./JsonBytes.ts"
import { isJson } from "./JsonText.ts"
import { daysIn, unkeepable } from "./Values.ts"

const lowerA = 97
const lowerF = 102

export const startsWith = (bytes: Uint8Array, at: number, word: Uint8Array): boolean => {
  for (let letter = 0; letter < word.length; letter++) if (bytes[at + letter] !== word[letter]) return false
  return true
}

/** The number that two digits at `at` make; -1 when they are no digits. */
const two = (bytes: Uint8Array, at: number): number => {
  const tens = bytes[at]! - zero
  const units = bytes[at + 1]! - zero
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? tens * 10 + units : -1
}

/** Whether a calendar day is at `at`, `YYYY-MM-DD`, of the years 1 to 9999. */
export const isDay = (bytes: Uint8Array, at: number): boolean => {
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
    (day <= 28 || day <= daysIn(century * 100 + year, month))
  )
}

/** Whether a time of day is at `at`, `HH:MM:SS`; a leap second is none. */
export const isTime = (bytes: Uint8Array, at: number): boolean => {
  const hour = two(bytes, at)
  const minute = two(bytes, at + 3)
  const second = two(bytes, at + 6)
  return (
    bytes[at + 2] === colon &&
    bytes[at + 5] === colon &&
    hour >= 0 &&
    hour <= 23 &&
    minute >= 0 &&
    minute <= 59 &&
    second >= 0 &&
    second <= 59
  )
}

/** Characters that COPY reads as its own. JSON has them between values, and the backslash in a string. */
const copyCharacters = ["\\", "\t", "\n", "\r"]

/** Whether the range is JSON that a database can hold, and is the same in COPY. */
export const isPlainList = (bytes: Buffer, from: number, to: number): boolean => {
  const text = bytes.toString("utf8", from, to)
  return !copyCharacters.some((character) => text.includes(character)) && isJson(text) && unkeepable(text) === null
}

/** The number that four hexadecimal digits at `at` make; -1 when they are none. */
export const hexAt = (bytes: Uint8Array, at: number): number => {
  let value = 0
  for (let place = at; place < at + 4; place++) {
    const byte = bytes[place] ?? 0
    const low = byte | 32
    const nibble = byte >= zero && byte <= nine ? byte - zero : low >= lowerA && low <= lowerF ? low - lowerA + 10 : -1
    if (nibble < 0) return -1
    value = value * 16 + nibble
  }
  return value
}
