/**
 * A record whose columns are encoded as text for COPY.
 *
 * Promise: the text and the columns are equal, so that a reader of columns need not know the text. The text has the values
 * in the order of the fields with tabs between them, `\N` for an empty one, and a backslash before backslash, tab, newline
 * and carriage return.
 */
import type { SourceRecord } from "./Connector.ts"

const escapes: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r" }
const letters: Readonly<Record<string, string>> = { "\t": "t", "\n": "n", "\r": "r" }

/** The text of a value. */
export const textOf = (value: string | null): string =>
  value === null
    ? "\\N"
    : /[\\\t\n\r]/.test(value)
      ? value.replace(/[\\\t\n\r]/g, (character) => `\\${letters[character] ?? character}`)
      : value

/** The value of a text. */
export const valueOf = (text: string): string | null =>
  text === "\\N"
    ? null
    : text.includes("\\")
      ? text.replace(/\\(.)/g, (_, character: string) => escapes[character] ?? character)
      : text

/** Carries every field of its resource; a partial record is never one of these. */
export class EncodedRecord implements SourceRecord {
  readonly id: string
  readonly partial = false
  readonly customFields: string | null
  readonly extra: string | null
  /** UTF-8 of many records; the columns of this one are from `from` to `to`, without a tab after the last. */
  readonly bytes: Buffer
  readonly from: number
  readonly to: number

  constructor(
    id: string,
    bytes: Buffer,
    from: number,
    to: number,
    customFields: string | null = null,
    extra: string | null = null
  ) {
    this.id = id
    this.bytes = bytes
    this.from = from
    this.to = to
    this.customFields = customFields
    this.extra = extra
  }

  /** Decoded at each call, which is rare. */
  get columns(): ReadonlyArray<string | null> {
    return this.bytes.toString("utf8", this.from, this.to).split("\t").map(valueOf)
  }
}
