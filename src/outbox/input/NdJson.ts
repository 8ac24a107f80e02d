/**
 * Records from lines of JSON.
 *
 * Promise: every line that is not blank is passed on, as a record or as invalid. An invalid line hides no other.
 * UTF-8, with or without a byte order mark; lines end with LF or CRLF. Memory does not grow with the file.
 */
import { isUtf8 } from "node:buffer"
import type { InputRecord } from "./InputRecord.ts"
import { recordBytesMax } from "./InputRecord.ts"

const tooLong = `is longer than ${recordBytesMax} bytes, the maximum of a record`

/** Reads the lines, in pieces of about the size of the chunks. */
export const read = async function* (bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ReadonlyArray<InputRecord>> {
  let line = 0
  let rest = Buffer.alloc(0)
  /** Inside a line that is too long, and was passed on as invalid. */
  let skipping = false

  const parseLine = (content: Buffer): InputRecord | null => {
    line++
    if (content.length > recordBytesMax) return { _tag: "Unreadable", line, message: tooLong }
    if (!isUtf8(content)) return { _tag: "Unreadable", line, message: "is not UTF-8" }
    const marked = line === 1 && content[0] === 0xef && content[1] === 0xbb && content[2] === 0xbf
    const json = content.toString("utf8", marked ? 3 : 0)
    return /^\s*$/.test(json) ? null : { _tag: "Json", line, json, nullIsAbsent: false }
  }

  for await (const chunk of bytes) {
    const piece: Array<InputRecord> = []
    const add = (one: InputRecord | null) => {
      if (one !== null) piece.push(one)
    }
    const buffer = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
    let from = 0
    // A line break is never a part of another character in UTF-8.
    for (let end = buffer.indexOf(10, rest.length); end >= 0; end = buffer.indexOf(10, from)) {
      if (skipping) skipping = false
      else add(parseLine(buffer.subarray(from, buffer[end - 1] === 13 && end > from ? end - 1 : end)))
      from = end + 1
    }
    rest = buffer.subarray(from)
    if (skipping) rest = Buffer.alloc(0)
    else if (rest.length > recordBytesMax + 1) {
      add({ _tag: "Unreadable", line: ++line, message: tooLong })
      skipping = true
      rest = Buffer.alloc(0)
    }
    yield piece
  }
  if (!skipping && rest.length > 0) {
    const last = parseLine(rest)
    if (last !== null) yield [last]
  }
}
