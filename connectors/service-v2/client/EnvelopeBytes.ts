/**
 * The list of records in the bytes of an answer, and the answer without the records.
 *
 * Promise: the list is the one that `JSON.parse` returns under its name, or the result is null.
 */
import {
  closeBracket,
  colon,
  comma,
  openBrace,
  openBracket,
  quote,
  skipSpace,
  stringEnd,
  valueEnd
} from "./JsonBytes.ts"

/** Bytes that may precede the list. */
const headLengthMax = 64 * 1024

/** The position of a list. */
export interface ListStart {
  readonly from: number
  /** The member that is the list; null when the answer itself is the list. */
  readonly name: string | null
}

/** The first list in the answer, or the answer itself if it is a list; null when none begins near the start. */
export const findListStart = (bytes: Buffer): ListStart | null => {
  let at = skipSpace(bytes, 0)
  if (bytes[at] === openBracket) return { from: at, name: null }
  if (bytes[at] !== openBrace) return null
  at = skipSpace(bytes, at + 1)
  while (bytes[at] === quote && at < headLengthMax) {
    const nameEnd = stringEnd(bytes, at)
    if (nameEnd < 0) return null
    const name = bytes.toString("utf8", at + 1, nameEnd - 1)
    at = skipSpace(bytes, nameEnd)
    if (bytes[at] !== colon) return null
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

/** The answer as `JSON.parse` gives it, with an empty list where the records were. */
export interface Envelope {
  readonly envelope: unknown
  readonly emptyList: ReadonlyArray<unknown>
}

/** Parses the answer around its list, which ends with the bracket at `end`. */
export const parseEnvelope = (bytes: Buffer, { from, name }: ListStart, end: number): Envelope | null => {
  let envelope: unknown
  try {
    envelope = JSON.parse(`${bytes.toString("utf8", 0, from)}[]${bytes.toString("utf8", end + 1)}`)
  } catch {
    return null
  }
  const emptyList: unknown = name === null ? envelope : (envelope as Readonly<Record<string, unknown>>)[name]
  if (!Array.isArray(emptyList) || emptyList.length > 0) return null
  // With two members of this name the last one counts, and this one may be the first.
  if (name !== null && (bytes.includes(`"${name}"`, end) || bytes.includes("\\u", end))) return null
  return { envelope, emptyList: emptyList as ReadonlyArray<unknown> }
}

/** The position of the next element of a list, or of its closing bracket; null when the bytes at `at` are neither. */
export const nextElement = (bytes: Buffer, at: number): number | null => {
  const end = skipSpace(bytes, at)
  if (bytes[end] === closeBracket) return end
  if (bytes[end] !== comma) return null
  const next = skipSpace(bytes, end + 1)
  return bytes[next] === closeBracket ? null : next
}
