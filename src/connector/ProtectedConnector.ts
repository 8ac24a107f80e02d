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

/** How one field of a sent record is kept. */
interface Step {
  readonly field: Field
  readonly rule: FieldRule | undefined
}

/** A compiled protection. */
interface Plan {
  readonly protection: Protection
  readonly steps: ReadonlyArray<Step>
  readonly hasCustomFields: boolean
}

const plans = new WeakMap<Protection, Plan>()

const planOf = (protection: Protection): Plan => {
  const made = plans.get(protection) ?? {
    protection,
    steps: protection.sent.fields.map((field) => ({ field, rule: protection.ruleOf(field.name) })),
    hasCustomFields: protection.ruleOf(customFieldsName) === undefined
  }
  plans.set(protection, made)
  return made
}

const protectRecord = ({ hasCustomFields, protection, steps }: Plan, record: SourceRecord): SourceRecord => {
  const parsed = record.extra === null ? null : parse(record.extra)
  const extra = parsed !== null && isObject(parsed) ? new Map(parsed) : null
  const columns: Array<string | null | undefined> = []
  const sent = record.columns
  for (const [index, { field, rule }] of steps.entries()) {
    const value = sent[index]
    if (rule === undefined) {
      const isList = field.type._tag === "list" && value !== undefined && value !== null
      columns.push(isList ? protectValueText(protection, value, field) : value)
      continue
    }
    // Digits that the column does not hold.
    extra?.delete(field.name)
    if (rule.kind === "exclude") continue
    if (value === undefined || value === null) columns.push(value)
    else columns.push(keepColumn(field, rule, value))
  }
  const others = extra === null ? null : protectMembers(protection, extra, "record")
  return {
    id: record.id,
    columns,
    partial: columns.includes(undefined),
    customFields:
      record.customFields === null || !hasCustomFields ? null : protectValueText(protection, record.customFields),
    extra: others === null || others.size === 0 ? null : print(others)
  }
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
        records: page.records.map((record) => protectRecord(plan, record)),
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
