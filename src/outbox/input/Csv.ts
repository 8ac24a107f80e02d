/**
 * Records from a CSV file with a header.
 *
 * Promise: a record has the line of the file on which it begins, also when cells before it contain line breaks. A row
 * with too few or too many cells is invalid by itself. At a wrong quote, reading ends with an invalid row. A first line
 * such as `sep=;`, which spreadsheets write, sets the delimiter. A header of one name with another delimiter is invalid.
 * UTF-8, with or without a byte order mark. Memory does not grow with the file.
 */
import { isUtf8 } from "node:buffer"
import { CsvError, type InfoRecord, parse } from "csv-parse"
import type { InputRecord } from "./InputRecord.ts"
import { recordBytesMax } from "./InputRecord.ts"
import { plural } from "../../text/Count.ts"

/** The delimiters by their names. */
export const delimiters = { comma: ",", semicolon: ";", tab: "\t" } as const
export type Delimiter = (typeof delimiters)[keyof typeof delimiters]

/** The first line of a file by which a spreadsheet names the delimiter. */
const separatorLine = /^(?:\uFEFF)?sep=([,;\t])\r?\n/
/** Bytes of the longest such line. */
const separatorBytesMax = 10

/** The bytes from the beginning on, with at least so many in the first chunk. */
const withStart = async function* (bytes: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let start: Uint8Array | null = new Uint8Array()
  for await (const chunk of bytes) {
    if (start === null) yield chunk
    else {
      start = Buffer.concat([start, chunk])
      if (start.length < size) continue
      yield start
      start = null
    }
  }
  if (start !== null && start.length > 0) yield start
}

/** What is wrong with a header that the delimiter does not separate; null where nothing is. */
const undividedHeader = (names: ReadonlyArray<string>): string | null => {
  if (names.length !== 1) return null
  const other = Object.entries(delimiters).find(([, delimiter]) => names[0]!.includes(delimiter))
  return other === undefined ? null : `is separated by ${JSON.stringify(other[1])}: give --delimiter ${other[0]}`
}

const describeError = (error: unknown): string => {
  if (!(error instanceof CsvError)) throw error
  switch (error.code) {
    case "CSV_QUOTE_NOT_CLOSED":
      return "has a quote that is never closed"
    case "CSV_INVALID_CLOSING_QUOTE":
      return "has text behind a closing quote; a quote inside a quoted cell is written twice"
    case "INVALID_OPENING_QUOTE":
      return "has a quote inside a cell that is not quoted; quote the cell and write its quotes twice"
    case "CSV_MAX_RECORD_SIZE":
      return `is longer than ${recordBytesMax} bytes, the maximum of a record; perhaps a quote is never closed`
    default:
      return `cannot be read as CSV (${error.message})`
  }
}

const breaksIn = (cells: ReadonlyArray<string>): number => {
  let breaks = 0
  for (const cell of cells) {
    for (let at = cell.indexOf("\n"); at >= 0; at = cell.indexOf("\n", at + 1)) breaks++
  }
  return breaks
}

/** The number of bytes at the end that begin a character which the next chunk may complete. */
const incomplete = (buffer: Buffer): number => {
  for (let back = 1; back <= Math.min(3, buffer.length); back++) {
    const byte = buffer[buffer.length - back]!
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
    if (byte < 0x80) return 0
  }
  return 0
}

/** Reads the rows, in pieces of about the size of the chunks. */
export const read = async function* (
  bytes: AsyncIterable<Uint8Array>,
  delimiter: Delimiter = ","
): AsyncGenerator<ReadonlyArray<InputRecord>> {
  let piece: Array<InputRecord> = []
  let names: ReadonlyArray<string> | null = null
  let isUndivided = false
  /** Positions of the line breaks after the last record, and the number of those before them. */
  let breaks: Array<number> = []
  let passed = 0

  const row = (cells: ReadonlyArray<string>, { bytes: end }: Pick<InfoRecord, "bytes">): null => {
    let at = 0
    while (at < breaks.length && breaks[at]! < end) at++
    const endsWithBreak = at > 0 && breaks[at - 1] === end - 1
    passed += at
    breaks = at === breaks.length ? [] : breaks.slice(at)
    const line = 1 + passed - (endsWithBreak ? 1 : 0) - breaksIn(cells)
    if (names === null) {
      names = cells.map((name) => name.trim())
      const undivided = undividedHeader(names)
      if (undivided === null) piece.push({ _tag: "Header", line, names })
      else {
        piece.push({ _tag: "Unreadable", line, message: undivided })
        isUndivided = true
      }
    } else if (isUndivided) return null
    else if (cells.length === names.length) piece.push({ _tag: "Cells", line, cells })
    else {
      const message = `has ${plural(cells.length, "cell")} where the header names ${plural(names.length, "column")}`
      piece.push({ _tag: "Unreadable", line, message })
    }
    return null
  }

  const chunks = withStart(bytes, separatorBytesMax)
  const start = await chunks.next()
  const separator = separatorLine.exec(Buffer.from(start.value ?? []).toString("utf8", 0, separatorBytesMax))
  const parser = parse({
    bom: true,
    delimiter: separator?.[1] ?? delimiter,
    from_line: separator === null ? 1 : 2,
    record_delimiter: ["\r\n", "\n"],
    skip_empty_lines: true,
    relax_column_count: true,
    max_record_size: recordBytesMax,
    // Nothing is handed to the stream: its error would discard the rows before it.
    on_record: row
  })
  parser.resume()
  let failure: unknown = null
  parser.on("error", (error) => (failure ??= error))

  /** Bytes that the parser got, of which it may still buffer some, and the line breaks in them. */
  let fed = 0
  let fedBreaks = 0
  const feed = (buffer: Buffer): Promise<void> => {
    for (let at = buffer.indexOf(10); at >= 0; at = buffer.indexOf(10, at + 1)) {
      breaks.push(fed + at)
      fedBreaks++
    }
    fed += buffer.length
    return new Promise((resolve) => parser.write(buffer, () => resolve()))
  }
  const stop = (line: number, message: string): ReadonlyArray<InputRecord> => [
    ...piece,
    { _tag: "Unreadable", line, message: `${message}; the rest was not read` }
  ]
  const notText = () => stop(fedBreaks + 1, "is not UTF-8")
  const notCsv = () => stop(passed + 1, describeError(failure))

  let rest = Buffer.alloc(0)
  try {
    for (let next = start; next.done !== true; next = await chunks.next()) {
      const buffer = Buffer.concat([rest, next.value])
      const cut = buffer.length - incomplete(buffer)
      rest = buffer.subarray(cut)
      const whole = buffer.subarray(0, cut)
      const isText = isUtf8(whole)
      await feed(isText ? whole : upToBadLine(whole))
      if (failure !== null) return yield notCsv()
      if (!isText) return yield notText()
      yield piece
      piece = []
    }
    if (rest.length > 0) {
      if (!isUtf8(rest)) return yield notText()
      await feed(rest)
    }
    await new Promise<void>((resolve) => {
      parser.once("close", () => resolve())
      parser.end()
    })
    yield failure === null ? piece : notCsv()
  } finally {
    parser.destroy()
    await chunks.return(undefined)
  }
}

/** The lines before the first one that is not UTF-8. */
const upToBadLine = (buffer: Buffer): Buffer => {
  let from = 0
  for (;;) {
    const end = buffer.indexOf(10, from)
    if (end < 0 || !isUtf8(buffer.subarray(from, end))) return buffer.subarray(0, from)
    from = end + 1
  }
}
