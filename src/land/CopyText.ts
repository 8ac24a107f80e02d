/**
 * Records as COPY text.
 *
 * Promise: Postgres reads back exactly the characters of the record, and keeps null apart from an empty string.
 */
import type { SourceRecord } from "../connector/Connector.ts"
import { EncodedRecord } from "../connector/EncodedRecord.ts"
import { escapeCopyText } from "../postgres/driver/Copy.ts"

/** Lines are written in pieces of about this many bytes, so that no page is in memory twice. */
const pieceBytesMax = 128 * 1024

/** `null` in COPY text. */
const copyNull = "\\N"

export const copyValue = (value: string | null): string => (value === null ? copyNull : escapeCopyText(value))

/**
 * COPY text of records: their fields, custom fields and extra, then `lineEnd`. A record that has its text is copied
 * unchanged. The next piece overwrites the last one.
 */
export const copyLines = function* (
  records: Iterable<readonly [record: SourceRecord, lineEnd: string]>,
  lineStart: string
): Generator<Uint8Array> {
  let piece = Buffer.allocUnsafeSlow(pieceBytesMax)
  let used = 0
  const startBytes = Buffer.from(lineStart)
  /** Line ends are the same for all records of a page: each is encoded once. */
  let knownEnd: string | null = null
  let endBytes = Buffer.alloc(0)
  for (const [record, lineEnd] of records) {
    let line: string | null = null
    let lengthMax: number
    if (record instanceof EncodedRecord && record.customFields === null && record.extra === null) {
      if (lineEnd !== knownEnd) {
        knownEnd = lineEnd
        endBytes = Buffer.from(`\t${copyNull}\t${copyNull}\t${lineEnd}\n`)
      }
      lengthMax = startBytes.length + record.to - record.from + endBytes.length
    } else {
      line = lineStart
      if (record instanceof EncodedRecord) line += record.bytes.toString("utf8", record.from, record.to) + "\t"
      else {
        for (const value of record.columns) {
          line += value === null || value === undefined ? "\\N\t" : escapeCopyText(value) + "\t"
        }
      }
      line += copyValue(record.customFields) + "\t" + copyValue(record.extra) + "\t" + lineEnd + "\n"
      // A unit of a string takes at most three bytes.
      lengthMax = line.length * 3
    }
    if (used > 0 && used + lengthMax > piece.length) {
      yield piece.subarray(0, used)
      used = 0
    }
    if (lengthMax > piece.length) piece = Buffer.allocUnsafeSlow(lengthMax)
    if (line !== null) used += piece.write(line, used)
    else {
      const { bytes, from, to } = record as EncodedRecord
      used += startBytes.copy(piece, used)
      used += bytes.copy(piece, used, from, to)
      used += endBytes.copy(piece, used)
    }
  }
  if (used > 0) yield piece.subarray(0, used)
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
