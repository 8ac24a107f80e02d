/**
 * Rendering records as COPY text.
 *
 * Promise: what Postgres reads back is character for character what the record holds; only backslash, tab, newline and
 * carriage return need escaping, and an empty value is told from an empty string.
 */
import type { SourceRecord } from "../connector/Connector.ts"
import { escapeCopyText } from "../postgres/Copy.ts"

/** Lines are handed over in pieces of about this many characters, so that no page is held twice. */
const pieceCharactersMax = 128 * 1024

/** `null` in COPY text. */
export const copyNull = "\\N"

export const copyValue = (value: string | null): string => (value === null ? copyNull : escapeCopyText(value))

/** COPY text of records: their fields, custom fields and extra, then what `lineEnd` adds. */
export const copyLines = function* (
  records: Iterable<readonly [record: SourceRecord, lineEnd: string]>,
  lineStart: string
): Generator<string> {
  let piece = ""
  for (const [record, lineEnd] of records) {
    let line = lineStart
    for (const value of record.columns) {
      line += value === null || value === undefined ? "\\N\t" : escapeCopyText(value) + "\t"
    }
    line += copyValue(record.customFields) + "\t" + copyValue(record.extra) + "\t" + lineEnd + "\n"
    piece += line
    if (piece.length >= pieceCharactersMax) {
      yield piece
      piece = ""
    }
  }
  if (piece !== "") yield piece
}

/** `{3,5}`: positions of the fields that a partial record did not carry; null for a whole one. */
export const absentPositions = (record: SourceRecord): string => {
  if (!record.partial) return copyNull
  const absent: Array<number> = []
  record.columns.forEach((value, index) => {
    if (value === undefined) absent.push(index)
  })
  return `{${absent.join(",")}}`
}
