/**
 * A connector that applies the privacy rules of a resource to everything that it returns.
 *
 * Promise: no value of a protected field leaves it as it was sent, in a record, in the bytes of a rejected one, in the
 * reason, in the answer to a write, or in a message of the source, which may quote any value. A resource without rules
 * passes unchanged. The records of {@link ConnectorShape.rawPage} pass unchanged too: `verify` applies the rules by code of
 * its own.
 */
import * as Effect from "effect/Effect"
import type { Field } from "../catalogue/Field.ts"
import { customFieldsName, type FieldRule, isFreeText, memberOf, type Protection } from "../catalogue/Protection.ts"
import {
  canonical,
  canonicalNumber,
  isList,
  isObject,
  type Json,
  type JsonObject,
  NumberToken,
  parse,
  print
} from "../json/Json.ts"
import type { ConnectorShape, Rejected, SourceRecord } from "./Connector.ts"
import type { DeliveryReader } from "./Delivery.ts"
import { EncodedRecord, textOf, valueOf } from "./EncodedRecord.ts"
import { type SourceError, textLeftOut, withoutText, withoutTexts } from "./SourceError.ts"
import type { WriteResult } from "./WriteResult.ts"

/** A decimal without zeros at its end: the same value has the same text. */
const plainDecimal = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text)

/** The text to which a rule is applied; null is empty. */
const canonicalOf = (value: Json): string | null => {
  if (value === null || typeof value === "string") return value
  return value instanceof NumberToken ? plainDecimal(canonicalNumber(value.text)) : canonical(value)
}

/** Where members are: in the record itself, or inside of the value of a field, which may be unknown. */
type Place = "record" | { readonly within: Field | undefined }

const kept = (rule: FieldRule, value: Json, field: Field | undefined): string | null => {
  const text = canonicalOf(value)
  return text === null ? null : rule.keep(text, typeof value === "string" && isFreeText(field))
}

/** What is kept of an excluded member: undefined leaves it out. */
type Excluded = (name: string) => Json | undefined
const leftOut: Excluded = () => undefined

/** Members with the rules applied at any depth. */
const protectMembers = (
  protection: Protection,
  members: JsonObject,
  place: Place,
  excluded: Excluded = leftOut
): JsonObject => {
  const result = new Map<string, Json>()
  for (const [name, member] of members) {
    const isRecord = place === "record"
    const rule = isRecord ? protection.ruleOf(name) : protection.ruleWithin(name)
    const field = isRecord ? protection.sent.field.get(name) : memberOf(place.within, name)
    if (rule === undefined) result.set(name, protectWithin(protection, member, field, excluded))
    else if (rule.kind !== "exclude") result.set(name, kept(rule, member, field))
    else {
      const instead = excluded(name)
      if (instead !== undefined) result.set(name, instead)
    }
  }
  return result
}

/** A value without a rule of its own. */
const protectWithin = (
  protection: Protection,
  value: Json,
  within: Field | undefined,
  excluded: Excluded = leftOut
): Json =>
  isList(value)
    ? value.map((item) => protectWithin(protection, item, within, excluded))
    : isObject(value)
      ? protectMembers(protection, value, { within }, excluded)
      : value

const protectJson = (text: string, change: (value: Json) => Json): string => {
  try {
    return print(change(parse(text)))
  } catch {
    return "{}"
  }
}

/** JSON text of a record with the rules applied. Text that is no JSON object is not kept. */
export const protectText = (protection: Protection, text: string): string =>
  protectJson(text, (value) => (isObject(value) ? protectMembers(protection, value, "record") : new Map()))

/** JSON text of the value of a field, such as a list, with the rules applied to its members. */
export const protectValueText = (protection: Protection, text: string, field?: Field): string =>
  protectJson(text, (value) => protectWithin(protection, value, field))

/**
 * JSON text of a record to be pushed, with the rules applied. The names of excluded members stay, so that a later push of
 * this text is refused, too.
 */
export const protectPushed = (protection: Protection, text: string): string => {
  const changed = protectJson(text, (value) =>
    isObject(value)
      ? protectMembers(protection, value, "record", (name) => (name === customFieldsName ? new Map() : null))
      : new Map()
  )
  return isSameJson(text, changed) ? text : changed
}

/** Whether both texts are the same JSON, printed alike. */
const isSameJson = (text: string, printed: string): boolean => {
  try {
    return print(parse(text)) === printed
  } catch {
    return false
  }
}

/** What is kept of a column's text. */
export const keepColumn = (field: Field, rule: FieldRule, text: string): string | null =>
  rule.keep(field.type._tag === "decimal" ? plainDecimal(text) : text, isFreeText(field))

/** The body of a delivery with the rules applied to its record, and to members that the envelope does not state. */
export const protectDelivery = (protection: Protection, text: string): string => {
  const { deliveryEnvelope, deliveryRecord } = protection.sent.traits
  if (deliveryRecord === undefined) return text
  const envelope = new Set(deliveryEnvelope)
  return protectJson(text, (body) => {
    if (!isObject(body)) return new Map()
    const members = new Map<string, Json>()
    for (const [name, value] of body) {
      if (envelope.has(name)) members.set(name, value)
      else if (name !== deliveryRecord) {
        for (const other of protectMembers(protection, new Map([[name, value]]), { within: undefined }))
          members.set(...other)
      } else members.set(name, isObject(value) ? protectMembers(protection, value, "record") : null)
    }
    return members
  })
}

/** The reader of deliveries with the rules of each path; the empty path is that of an event about no resource. */
export const protectDeliveries = (
  reader: DeliveryReader,
  protectionOf: (path: string) => Protection | null
): DeliveryReader => ({
  ...reader,
  kept: ({ resource }, body) => {
    const protection = protectionOf(resource ?? "")
    return protection === null
      ? body
      : Buffer.from(protectDelivery(protection, Buffer.from(body).toString("utf8")), "utf8")
  }
})

/** What becomes of the text of a column that is not empty; null leaves it as it is. */
type Change = ((text: string) => string | null) | null

/** Columns of a sent record: several that stay, or one that is changed. A column that is left out has none. */
type Part =
  | { readonly kind: "same"; readonly first: number; readonly last: number }
  | { readonly kind: "changed"; readonly place: number; readonly change: NonNullable<Change> }

/** A compiled protection. */
interface Plan {
  readonly protection: Protection
  /** By the places of the sent fields; undefined leaves the column out. */
  readonly changes: ReadonlyArray<Change | undefined>
  /** The same, for encoded records. */
  readonly parts: ReadonlyArray<Part>
  readonly hasCustomFields: boolean
}

const plans = new WeakMap<Protection, Plan>()

const partsOf = (changes: Plan["changes"]): Plan["parts"] => {
  const parts: Array<Part> = []
  for (const [place, change] of changes.entries()) {
    const before = parts.at(-1)
    if (change === undefined) continue
    if (change !== null) parts.push({ kind: "changed", place, change })
    else if (before?.kind === "same" && before.last === place - 1) parts[parts.length - 1] = { ...before, last: place }
    else parts.push({ kind: "same", first: place, last: place })
  }
  return parts
}

const planOf = (protection: Protection): Plan => {
  const known = plans.get(protection)
  if (known !== undefined) return known
  const changes = protection.sent.fields.map((field): Change | undefined => {
    const rule = protection.ruleOf(field.name)
    if (rule !== undefined) return rule.kind === "exclude" ? undefined : (text) => keepColumn(field, rule, text)
    return field.type._tag === "list" ? (text) => protectNested(protection, text, field) : null
  })
  const hasCustomFields = protection.ruleOf(customFieldsName) === undefined
  const plan = { protection, changes, parts: partsOf(changes), hasCustomFields }
  plans.set(protection, plan)
  return plan
}

/** Whether a member of JSON text may have a rule. Without a backslash, a string before a colon is a name. */
const mayHaveRule = ({ ruleOf, ruleWithin }: Protection, text: string): boolean => {
  if (!text.includes("{")) return false
  if (text.includes("\\")) return true
  for (const [, name = ""] of text.matchAll(/"([^"]*)"\s*:/g))
    if (ruleOf(name) !== undefined || ruleWithin(name) !== undefined) return true
  return false
}

/** {@link protectValueText}, of text that is JSON: it stays as it is where no member has a rule. */
const protectNested = (protection: Protection, text: string, within?: Field): string =>
  mayHaveRule(protection, text) ? protectValueText(protection, text, within) : text

const protectExtra = (protection: Protection, text: string | null): string | null => {
  if (text === null || !mayHaveRule(protection, text)) return text
  const parsed = parse(text)
  if (!isObject(parsed)) return null
  // Digits that a column does not hold have the name of its field.
  const isOther = (name: string) => !protection.sent.field.has(name) || protection.ruleOf(name) === undefined
  const others = new Map([...parsed].filter(([name]) => isOther(name)))
  const kept = protectMembers(protection, others, "record")
  return kept.size === 0 ? null : print(kept)
}

const protectOthers = ({ hasCustomFields, protection }: Plan, { customFields, extra }: SourceRecord) => ({
  customFields: customFields === null || !hasCustomFields ? null : protectNested(protection, customFields),
  extra: protectExtra(protection, extra)
})

const protectRecord = (plan: Plan, record: SourceRecord): SourceRecord => {
  const columns: Array<string | null | undefined> = []
  const sent = record.columns
  for (const [place, change] of plan.changes.entries()) {
    const text = sent[place]
    if (change === undefined) continue
    columns.push(change === null || text === undefined || text === null ? text : change(text))
  }
  return { id: record.id, columns, partial: columns.includes(undefined), ...protectOthers(plan, record) }
}

const tab = 9
const chunkBytes = 64 * 1024
/** Fewer bytes are copied faster one by one than by a call. */
const callBytes = 64

/** Copies bytes, and returns the position after them. */
const copyBytes = (to: Buffer, at: number, bytes: Buffer, from: number, end: number): number => {
  if (end - from > callBytes) return at + bytes.copy(to, at, from, end)
  for (let index = from; index < end; index++) to[at + index - from] = bytes[index]!
  return at + end - from
}

/** Writes a text, and returns the position after it. */
const writeText = (to: Buffer, at: number, text: string): number => {
  if (text.length > callBytes) return at + to.write(text, at)
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit > 127) return at + index + to.write(text.slice(index), at + index)
    to[at + index] = unit
  }
  return at + text.length
}

/** The records of a page. Encoded ones stay encoded: columns without a rule are copied, and not decoded. */
const protectRecords = (plan: Plan, records: ReadonlyArray<SourceRecord>): ReadonlyArray<SourceRecord> => {
  const { changes, parts } = plan
  /** Where each column of a record begins; after the last one, where the next would. */
  const starts = new Int32Array(changes.length + 1)
  const texts: Array<string> = []
  let chunk = Buffer.alloc(0)
  let used = 0
  const protectEncoded = (record: EncodedRecord): EncodedRecord => {
    const { bytes, from, to } = record
    let place = 0
    starts[place++] = from
    for (let at = from; at < to; at++) if (bytes[at] === tab) starts[place++] = at + 1
    starts[place] = to + 1
    texts.length = 0
    let bytesMax = to - from + 1
    for (const part of parts) {
      if (part.kind === "same") continue
      const value = valueOf(bytes.toString("utf8", starts[part.place], starts[part.place + 1]! - 1))
      const text = textOf(value === null ? null : part.change(value))
      texts.push(text)
      // A unit of a string takes at most three bytes.
      bytesMax += text.length * 3 + 1
    }
    if (used + bytesMax > chunk.length) {
      chunk = Buffer.allocUnsafeSlow(Math.max(chunkBytes, bytesMax))
      used = 0
    }
    const begin = used
    let index = 0
    for (const part of parts) {
      if (used > begin) chunk[used++] = tab
      if (part.kind === "changed") used = writeText(chunk, used, texts[index++]!)
      else used = copyBytes(chunk, used, bytes, starts[part.first]!, starts[part.last + 1]! - 1)
    }
    const { customFields, extra } = protectOthers(plan, record)
    return new EncodedRecord(record.id, chunk, begin, used, customFields, extra)
  }
  return records.map((record) =>
    record instanceof EncodedRecord ? protectEncoded(record) : protectRecord(plan, record)
  )
}

const isNested = (bytes: string, field: string): boolean => {
  try {
    const record = parse(bytes)
    const value = isObject(record) ? record.get(field) : undefined
    return isObject(value) || isList(value)
  } catch {
    return true
  }
}

/** A record in quarantine with the rules applied. Its reason may quote the value, with all members of a nested one. */
export const protectRejected = <A extends Pick<Rejected, "field" | "reason" | "bytes">>(
  protection: Protection,
  one: A
): A => ({
  ...one,
  reason:
    one.field !== null && (protection.ruleOf(one.field) !== undefined || isNested(one.bytes, one.field))
      ? "does not fit its type"
      : one.reason,
  bytes: protectText(protection, one.bytes)
})

/** The messages of the source may quote values; its codes and the names of fields stay. */
const protectResult = (plan: Plan, result: WriteResult): WriteResult => {
  switch (result._tag) {
    case "WriteSucceeded":
      return {
        ...result,
        record: result.record === null ? null : protectRecord(plan, result.record),
        rejected: result.rejected === null ? null : protectRejected(plan.protection, result.rejected)
      }
    case "WriteRejected":
      return { ...result, detail: textLeftOut, problems: result.problems.map(withoutText) }
    case "WriteUncertain":
      return result
  }
}

/** The connector with the rules of each resource that it is asked for. */
export const protect = (connector: ConnectorShape): ConnectorShape => {
  /** The answer to a request about a protected resource. */
  const answerOf = <A, B>(
    answer: Effect.Effect<A, SourceError>,
    change: (answer: A) => B
  ): Effect.Effect<B, SourceError> => Effect.mapBoth(answer, { onFailure: withoutTexts, onSuccess: change })
  return {
    ...connector,
    page: (request) => {
      const { protection } = request.resource
      if (protection === null) return connector.page(request)
      const plan = planOf(protection)
      return answerOf(connector.page({ ...request, resource: protection.sent }), (page) => ({
        ...page,
        records: protectRecords(plan, page.records),
        rejected: page.rejected.map((one) => protectRejected(protection, one))
      }))
    },
    rawPage: (request) => {
      const { protection } = request.resource
      if (protection === null) return connector.rawPage(request)
      return Effect.mapError(connector.rawPage({ ...request, resource: protection.sent }), withoutTexts)
    },
    get: (resource, id) => {
      const { protection } = resource
      if (protection === null) return connector.get(resource, id)
      const plan = planOf(protection)
      return answerOf(connector.get(protection.sent, id), (fetched) => ({
        ...fetched,
        record: fetched.record === null ? null : protectRecord(plan, fetched.record),
        rejected: fetched.rejected === null ? null : protectRejected(protection, fetched.rejected)
      }))
    },
    write: (request) => {
      const { protection } = request.resource
      if (protection === null) return connector.write(request)
      const plan = planOf(protection)
      return answerOf(connector.write({ ...request, resource: protection.sent }), (answer) => ({
        ...answer,
        body: protectValueText(protection, answer.body),
        items: answer.items.map((item) => protectResult(plan, item))
      }))
    }
  }
}
