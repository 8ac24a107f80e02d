/**
 * The two ways of the baseline to make COPY text of a page: through `JSON.parse`, and from its bytes.
 *
 * Both make the same text. The byte path expects what the reference server sends: UTF-8 without white space between
 * tokens, keys without escapes, and `data` before `_meta`. A string with an escape is decoded by `JSON.parse`.
 */

/** COPY text of the records of a page, a line for each: the company, then the columns. */
export type Renderer = (page: Buffer) => { readonly text: string | Buffer; readonly count: number }

const special = /[\\\t\n\r]/
const escaped = (text: string): string =>
  special.test(text)
    ? text.replaceAll("\\", "\\\\").replaceAll("\t", "\\t").replaceAll("\n", "\\n").replaceAll("\r", "\\r")
    : text

type JsonRecord = Readonly<Record<string, unknown>>

export const jsonRenderer =
  (company: string) =>
  (columns: ReadonlyArray<string>): Renderer =>
  (page) => {
    const { data } = JSON.parse(page.toString("utf8")) as { readonly data: ReadonlyArray<JsonRecord> }
    let text = ""
    for (const record of data) {
      text += company
      for (const name of columns) {
        const value = record[name]
        if (value === null || value === undefined) text += "\t\\N"
        else if (typeof value === "string") text += `\t${escaped(value)}`
        else if (typeof value === "object") text += `\t${escaped(JSON.stringify(value))}`
        else text += `\t${JSON.stringify(value)}`
      }
      text += "\n"
    }
    return { text, count: data.length }
  }

const [quote, backslash, comma, tab, newline, letterN] = [0x22, 0x5c, 0x2c, 0x09, 0x0a, 0x6e]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]

/** The index after the string that begins at `at`. */
const endOfString = (page: Buffer, at: number): number => {
  let index = at + 1
  while (page[index] !== quote) index += page[index] === backslash ? 2 : 1
  return index + 1
}

/** The index after the object or array that begins at `at`. */
const endOfNested = (page: Buffer, at: number): number => {
  let [index, depth] = [at, 0]
  do {
    const byte = page[index]
    if (byte === quote) {
      index = endOfString(page, index)
      continue
    }
    if (byte === openBrace || byte === openBracket) depth += 1
    else if (byte === closeBrace || byte === closeBracket) depth -= 1
    index += 1
  } while (depth > 0)
  return index
}

const endOfValue = (page: Buffer, at: number): number => {
  const byte = page[at]
  if (byte === quote) return endOfString(page, at)
  if (byte === openBrace || byte === openBracket) return endOfNested(page, at)
  let index = at
  while (page[index] !== comma && page[index] !== closeBrace) index += 1
  return index
}

export const bytesRenderer =
  (company: string) =>
  (columns: ReadonlyArray<string>): Renderer => {
    const placeOf = new Map(columns.map((name, place) => [name, place]))
    const starts = new Int32Array(columns.length)
    const ends = new Int32Array(columns.length)
    /** The keys of the record before, which usually come again in the same order. */
    const keys: Array<{ readonly bytes: Buffer; readonly place: number }> = []

    const isKeyAt = (page: Buffer, from: number, to: number, bytes: Buffer): boolean => {
      if (bytes.length !== to - from) return false
      for (let index = 0; index < bytes.length; index += 1) if (page[from + index] !== bytes[index]) return false
      return true
    }
    const placeAt = (page: Buffer, from: number, to: number, index: number): number => {
      const expected = keys[index]
      if (expected !== undefined && isKeyAt(page, from, to, expected.bytes)) return expected.place
      const bytes = Buffer.from(page.subarray(from, to))
      const place = placeOf.get(bytes.toString("latin1")) ?? -1
      keys[index] = { bytes, place }
      return place
    }

    /** Sets `starts` and `ends`; returns the index after the record. A field that is missing has the end 0. */
    const scanRecord = (page: Buffer, at: number): number => {
      ends.fill(0)
      let index = at + 1
      for (let key = 0; page[index] === quote; key += 1) {
        const colonAt = endOfString(page, index)
        const place = placeAt(page, index + 1, colonAt - 1, key)
        const from = colonAt + 1
        const to = endOfValue(page, from)
        if (place >= 0) {
          starts[place] = from
          ends[place] = to
        }
        index = page[to] === comma ? to + 1 : to
      }
      return index + 1
    }

    /** Writes one value; returns the index after it. */
    const writeValue = (page: Buffer, from: number, to: number, text: Buffer, at: number): number => {
      const isString = page[from] === quote
      if (to === 0 || (!isString && page[from] === letterN)) return at + text.write("\\N", at, "latin1")
      const [first, last] = isString ? [from + 1, to - 1] : [from, to]
      let out = at
      for (let index = first; index < last; index += 1) {
        const byte = page[index]!
        if (byte === backslash) {
          const value = page.toString("utf8", from, to)
          return at + text.write(escaped(isString ? (JSON.parse(value) as string) : value), at, "utf8")
        }
        text[out++] = byte
      }
      return out
    }

    return (page) => {
      let index = page.indexOf('"data":[') + '"data":['.length
      // A record without a field still has a separator and a null for each column. An escape grows by one byte at most.
      let text = Buffer.allocUnsafe(page.length * 2)
      let [at, count] = [0, 0]
      const widest = company.length + 1 + columns.length * 3
      for (; page[index] === openBrace; count += 1) {
        const end = scanRecord(page, index)
        const needed = at + (end - index) * 2 + widest
        if (needed > text.length) text = Buffer.concat([text.subarray(0, at)], needed * 2)
        at += text.write(company, at, "latin1")
        for (let place = 0; place < columns.length; place += 1) {
          text[at++] = tab
          at = writeValue(page, starts[place]!, ends[place]!, text, at)
        }
        text[at++] = newline
        index = page[end] === comma ? end + 1 : end
      }
      return { text: text.subarray(0, at), count }
    }
  }
