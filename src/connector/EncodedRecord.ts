/**
 * A record that comes with its columns written out already.
 *
 * Promise: the text of a {@link EncodedRecord} and its columns say the same; whoever only reads columns need not know that
 * there is a text. The text is what COPY of Postgres takes: values in the order of the fields with a tab between them,
 * `\N` for an empty one, and backslash, tab, newline and carriage return escaped by a backslash.
 */
import type { SourceRecord } from "./Connector.ts"

const escapes: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r" }

const valueOf = (text: string): string | null =>
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
  /** UTF-8 of many records; this one's columns stand from `from` to `to`, without a tab behind the last. */
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

  /** Read from the text each time: few ask. */
  get columns(): ReadonlyArray<string | null> {
    return this.bytes.toString("utf8", this.from, this.to).split("\t").map(valueOf)
  }
}
