/**
 * Decoding of an answer to records, by the catalogue.
 *
 * Promise: every record becomes exact text, or a {@link Rejected} with its bytes and the reason. None is skipped, none
 * is altered. Decoding here is strict: each value is read from its own text, where numbers still have the digits sent.
 * `DecodeBytes.ts` decodes the usual form of a page faster, and gives the same records.
 */
import { customFieldsName } from "../../../src/catalogue/Protection.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Rejected, SourceRecord } from "../../../src/connector/Connector.ts"
import * as DecodeBytes from "./DecodeBytes.ts"
import { eachMember, elements, kindAt } from "./JsonText.ts"
import { Beyond, InvalidValue, isStorable, reader, unkeepable } from "./Values.ts"

/** The records of one array. */
export interface Decoded {
  readonly records: ReadonlyArray<SourceRecord>
  readonly rejected: ReadonlyArray<Rejected>
}

/** The compiled decoder of one resource's records. */
export interface Decoder {
  /** The records of the array that begins at `start` of the text, which is JSON. */
  readonly list: (text: string, start: number) => Decoded
  /** The record between `from` and `to` of `text`; members named in `beside` are not part of it. */
  readonly one: (text: string, from: number, to: number, beside?: ReadonlySet<string>) => SourceRecord | Rejected
  /** Decodes a whole answer from its bytes; null when only `list` can decode it. */
  readonly bytes: (bytes: Uint8Array) => DecodeBytes.BytesPage | null
}

export const isRejected = (outcome: SourceRecord | Rejected): outcome is Rejected => "reason" in outcome

/** The reason why a member cannot be stored; `field` is null when its name is the reason. */
interface Unstorable {
  readonly field: string | null
  readonly reason: string
}

/** Members that are not fields, given as name, text, name, text. `extra` begins with the text `beyond`. */
const storeOthers = (members: ReadonlyArray<string>, beyond: string): DecodeBytes.Others | Unstorable => {
  let customFields: string | null = null
  let extra = beyond
  for (let at = 0; at < members.length; at += 2) {
    const name = members[at]!
    const raw = members[at + 1]!
    if (name === customFieldsName) {
      customFields = raw === "null" ? null : raw
      continue
    }
    if (!isStorable(name)) return { field: null, reason: "has a member with a name that a database rejects" }
    const reason = unkeepable(raw)
    if (reason !== null) return { field: name, reason }
    extra = withMember(extra, name, raw)
  }
  const reason = customFields === null ? null : unkeepable(customFields)
  if (reason !== null) return { field: customFieldsName, reason }
  return { customFields, extra: extra === "" ? null : `{${extra}}` }
}

/** The text between the braces of an object, with one more member. */
const withMember = (members: string, name: string, raw: string): string =>
  `${members === "" ? "" : `${members},`}${JSON.stringify(name)}:${raw}`

/** Compiles the decoder of a resource. */
export const make = (resource: Resource): Decoder => {
  const { fields } = resource
  const places = new Map(fields.map(({ name }, place) => [name, place]))
  const readers = fields.map(reader)

  const one: Decoder["one"] = (text, from, to, beside) => {
    const bytes = text.slice(from, to)
    const reject = (id: string | null, field: string | null, reason: string): Rejected => ({ id, field, reason, bytes })
    if (kindAt(text, from) !== "object") return reject(null, null, "is not an object")
    const raws: Array<string | undefined> = Array.from({ length: fields.length })
    const others: Array<string> = []
    eachMember(text, from, (name, start, end) => {
      const place = places.get(name)
      const raw = text.slice(start, end)
      if (place !== undefined) raws[place] = raw
      else if (beside?.has(name) !== true) others.push(name, raw)
    })

    // The record's number is the first field of every resource.
    const id = raws[0] === undefined ? undefined : readers[0]!(raws[0])
    if (id === undefined) return reject(null, "id", "is missing")
    if (typeof id !== "string") return reject(null, "id", id instanceof InvalidValue ? id.reason : "is null")
    const columns: Array<string | null | undefined> = []
    let beyond = ""
    for (const [place, { name }] of fields.entries()) {
      const raw = raws[place]
      const read = raw === undefined ? undefined : readers[place]!(raw)
      if (read instanceof InvalidValue) return reject(id, name, read.reason)
      columns.push(read instanceof Beyond ? read.text : read)
      if (read instanceof Beyond) beyond = withMember(beyond, name, raw!)
    }
    const stored = storeOthers(others, beyond)
    if ("reason" in stored) return reject(id, stored.field, stored.reason)
    return { id, columns, partial: columns.includes(undefined), ...stored }
  }

  const list: Decoder["list"] = (text, start) => {
    const records: Array<SourceRecord> = []
    const rejected: Array<Rejected> = []
    const ranges = elements(text, start)
    for (let at = 0; at < ranges.length; at += 2) {
      const outcome = one(text, ranges[at]!, ranges[at + 1]!)
      if (isRejected(outcome)) rejected.push(outcome)
      else records.push(outcome)
    }
    return { records, rejected }
  }

  const bytes = DecodeBytes.make(resource, {
    one: (text) => one(text, 0, text.length),
    others: (members) => {
      const stored = storeOthers(members, "")
      return "reason" in stored ? null : stored
    }
  })
  return { list, one, bytes }
}
