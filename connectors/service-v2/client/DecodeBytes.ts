/**
 * Decoding of a page's bytes straight to the text of COPY, without an object or a string in between.
 *
 * Promise: the result is that of `Decode.ts`, or the page is decoded there.
 *
 * Method: the first record is decoded strictly, and the bytes between its values become a template. A record with
 * exactly these bytes and plain values is copied, value by value. Every other record is decoded strictly, alone.
 * `JSON.parse` checks all other bytes of the page.
 *
 * `EnvelopeBytes.ts` finds the list of records, `RecordTemplate.ts` compares and copies one record, `CopyText.ts` writes
 * one value, with the checks of `PlainBytes.ts` and `JsonBytes.ts`.
 *
 * The speed of a first load depends on these files: do not change them without a paired measurement (`npm run bench`).
 */
import { isUtf8 } from "node:buffer"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Rejected, SourceRecord } from "../../../src/connector/Connector.ts"
import { EncodedRecord } from "../../../src/connector/EncodedRecord.ts"
import { CopyText, notPlain } from "./CopyText.ts"
import { type Envelope, findListStart, nextElement, parseEnvelope } from "./EnvelopeBytes.ts"
import { closeBracket, noEnd, skipSpace, valueEnd } from "./JsonBytes.ts"
import { isJson } from "./JsonText.ts"
import { learnTemplate, otherTemplate, RecordCopier, type RecordTemplate } from "./RecordTemplate.ts"

/** A page whose records were read from its bytes. */
export interface BytesPage extends Envelope {
  readonly records: ReadonlyArray<SourceRecord>
  readonly rejected: ReadonlyArray<Rejected>
}

/** The members of a record that are not fields. */
export interface Others {
  readonly customFields: string | null
  readonly extra: string | null
}

/** The strict decoder, for the records that are not plain. */
export interface StrictDecode {
  /** The record that is this text. */
  readonly one: (text: string) => SourceRecord | Rejected
  /** The stored form of the other members, given as name, text, name, text; null requests strict decoding. */
  readonly others: (members: ReadonlyArray<string>) => Others | null
}

/** One of this many records that differ from the template replaces it. */
const learnEvery = 8

const noOthers: Others = { customFields: null, extra: null }

/** A page whose records are being decoded. */
interface OpenPage {
  readonly bytes: Buffer
  readonly copier: RecordCopier
  /** A copied record is made from the text of the page, which is complete only after the last record. */
  readonly records: Array<SourceRecord | ((text: Buffer) => SourceRecord)>
  readonly rejected: Array<Rejected>
}

/** The decoder of one resource's pages. A page uses the template of the page before. */
class BytesDecoder {
  private readonly resource: Resource
  private readonly strict: StrictDecode
  /** The text of one page; the result is copied out of it. */
  private readonly text = new CopyText()
  private template: RecordTemplate | null = null
  /** Number of records that differ from the template. */
  private differing = 0

  constructor(resource: Resource, strict: StrictDecode) {
    this.resource = resource
    this.strict = strict
  }

  /** Decodes a page; null when it must be decoded from its text. */
  page(bytes: Buffer): BytesPage | null {
    const list = findListStart(bytes)
    if (list === null || !isUtf8(bytes)) return null
    const copier = new RecordCopier(this.resource.fields, bytes, this.text)
    const page: OpenPage = { bytes, copier, records: [], rejected: [] }
    let at: number | null = skipSpace(bytes, list.from + 1)
    while (bytes[at] !== closeBracket) {
      let end = this.copyRecord(page, at)
      if (end < 0) end = this.decodeRecord(page, at, end === otherTemplate)
      at = end < 0 ? null : nextElement(bytes, end)
      if (at === null) return null
    }
    const envelope = parseEnvelope(bytes, list, at)
    if (envelope === null) return null
    const text = this.text.copyFrom(0)
    const records = page.records.map((record) => (typeof record === "function" ? record(text) : record))
    return { ...envelope, records, rejected: page.rejected }
  }

  /** Copies a record by the template. Returns the position after it, {@link otherTemplate} or {@link notPlain}. */
  private copyRecord({ bytes, copier, records }: OpenPage, at: number): number {
    const { template, text } = this
    if (template === null) return otherTemplate
    const from = text.length
    const end = copier.copy(template, at)
    const others = end < 0 ? null : this.othersOf(bytes, copier.others, template)
    if (others === null) {
      text.length = from
      return end < 0 ? end : notPlain
    }
    const { id } = copier
    const to = text.length
    records.push((text) => new EncodedRecord(id, text, from, to, others.customFields, others.extra))
    return end
  }

  /** The members of the copied record that are not fields; null when the record needs strict decoding. */
  private othersOf(bytes: Buffer, ranges: ReadonlyArray<number>, { otherNames }: RecordTemplate): Others | null {
    if (otherNames.length === 0) return noOthers
    const members: Array<string> = []
    for (const [index, name] of otherNames.entries()) {
      const text = bytes.toString("utf8", ranges[2 * index], ranges[2 * index + 1])
      if (!isJson(text)) return null
      members.push(name, text)
    }
    return this.strict.others(members)
  }

  /** Decodes a record strictly, and may learn from it. Returns the position after it; {@link noEnd} without JSON. */
  private decodeRecord({ bytes, records, rejected }: OpenPage, at: number, isDifferent: boolean): number {
    const end = valueEnd(bytes, at)
    if (end === noEnd) return noEnd
    const text = bytes.toString("utf8", at, end)
    if (!isJson(text)) return noEnd
    const outcome = this.strict.one(text)
    if ("reason" in outcome) {
      rejected.push(outcome)
      return end
    }
    records.push(outcome)
    if (isDifferent && this.differing++ % learnEvery === 0 && !outcome.partial) {
      this.template = learnTemplate(this.resource.fields, bytes.toString("latin1", at, end)) ?? this.template
    }
    return end
  }
}

/** Compiles the decoder of a resource's pages from their bytes. */
export const make = (resource: Resource, strict: StrictDecode): ((bytes: Uint8Array) => BytesPage | null) => {
  const decoder = new BytesDecoder(resource, strict)
  return (bytes) =>
    decoder.page(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
}
