/**
 * A connector that applies the privacy rules of a resource to everything that it returns.
 *
 * Promise: no value of a protected field leaves it as it was sent, in a record, in the bytes of a rejected one, in the
 * reason, or in the answer to a write. A resource without rules passes unchanged. {@link ConnectorShape.rawPage} passes
 * unchanged too: `verify` applies the rules by code of its own.
 */
import * as Effect from "effect/Effect"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import type { Field } from "../catalogue/Field.ts"
import { customFieldsName, type FieldRule, type Protection } from "../catalogue/Protection.ts"
import type { Resource } from "../catalogue/Resource.ts"
import { canonical, canonicalNumber, isList, isObject, type Json, NumberToken, parse, print } from "../json/Json.ts"
import type { ConnectorShape, Rejected, SourceRecord } from "./Connector.ts"
import type { DeliveryReader } from "./Delivery.ts"
import type { WriteResult } from "./WriteResult.ts"

/** A decimal without zeros at its end: the same value has the same text. */
const plainDecimal = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text)

/** The text to which a rule is applied; null is empty. */
const canonicalOf = (value: Json): string | null => {
  if (value === null || typeof value === "string") return value
  return value instanceof NumberToken ? plainDecimal(canonicalNumber(value.text)) : canonical(value)
}

const kept = (rule: FieldRule, value: Json): string | null => {
  const text = canonicalOf(value)
  return text === null ? null : rule.keep(text)
}

/** The value with the rules applied to every member of that name, at any depth. */
const protectDeep = (protection: Protection, value: Json): Json => {
  if (isList(value)) return value.map((item) => protectDeep(protection, item))
  if (!isObject(value)) return value
  const members = new Map<string, Json>()
  for (const [name, member] of value) {
    const rule = protection.ruleOf(name)
    if (rule === undefined) members.set(name, protectDeep(protection, member))
    else if (rule.kind !== "exclude") members.set(name, kept(rule, member))
  }
  return members
}

/** JSON text of records, bodies or answers with the rules applied. Text that is no JSON is not kept. */
export const protectText = (protection: Protection, text: string): string => {
  try {
    return print(protectDeep(protection, parse(text)))
  } catch {
    return "{}"
  }
}

/** What is kept of a column's text. */
export const keepColumn = ({ type }: Field, rule: FieldRule, text: string): string | null =>
  rule.keep(type._tag === "decimal" ? plainDecimal(text) : text)

/** The body of a delivery with the rules applied to its record. Text that is no JSON is not kept. */
export const protectDelivery = (protection: Protection, text: string): string => {
  const { deliveryRecord } = protection.sent.traits
  if (deliveryRecord === undefined) return text
  try {
    const body = parse(text)
    if (!isObject(body)) return "{}"
    return print(
      new Map(
        [...body].map(([name, value]) => [name, name === deliveryRecord ? protectDeep(protection, value) : value])
      )
    )
  } catch {
    return "{}"
  }
}

/** The reader of deliveries with the rules of each resource. No body about an excluded resource is kept. */
export const protectDeliveries = (
  reader: DeliveryReader,
  { resources }: Pick<Catalogue, "resources">,
  isExcluded: (path: string) => boolean
): DeliveryReader => ({
  ...reader,
  kept: ({ resource }, body) => {
    if (resource !== null && isExcluded(resource)) return Buffer.from("{}")
    const protection = resources.get(resource ?? "")?.protection ?? null
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
      columns.push(isList ? protectText(protection, value) : value)
      continue
    }
    // Digits that the column does not hold.
    extra?.delete(field.name)
    if (rule.kind === "exclude") continue
    if (value === undefined || value === null) columns.push(value)
    else columns.push(keepColumn(field, rule, value))
  }
  const others = extra === null || extra.size === 0 ? null : protectDeep(protection, extra)
  return {
    id: record.id,
    columns,
    partial: columns.includes(undefined),
    customFields:
      record.customFields === null || !hasCustomFields ? null : protectText(protection, record.customFields),
    extra: others === null || !isObject(others) || others.size === 0 ? null : print(others)
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

const protectResult = (plan: Plan, result: WriteResult): WriteResult =>
  result._tag === "WriteSucceeded"
    ? {
        ...result,
        record: result.record === null ? null : protectRecord(plan, result.record),
        rejected: result.rejected === null ? null : protectRejected(plan.protection, result.rejected)
      }
    : result

/** The connector with the rules of each resource that it is asked for. */
export const protect = (connector: ConnectorShape): ConnectorShape => {
  const sentOf = (resource: Resource): Resource => resource.protection?.sent ?? resource
  return {
    ...connector,
    page: (request) => {
      const { protection } = request.resource
      if (protection === null) return connector.page(request)
      const plan = planOf(protection)
      return Effect.map(connector.page({ ...request, resource: protection.sent }), (page) => ({
        ...page,
        records: page.records.map((record) => protectRecord(plan, record)),
        rejected: page.rejected.map((one) => protectRejected(protection, one))
      }))
    },
    rawPage: (request) => connector.rawPage({ ...request, resource: sentOf(request.resource) }),
    get: (resource, id) => {
      const { protection } = resource
      if (protection === null) return connector.get(resource, id)
      const plan = planOf(protection)
      return Effect.map(connector.get(protection.sent, id), (fetched) => ({
        ...fetched,
        record: fetched.record === null ? null : protectRecord(plan, fetched.record),
        rejected: fetched.rejected === null ? null : protectRejected(protection, fetched.rejected)
      }))
    },
    write: (request) => {
      const { protection } = request.resource
      if (protection === null) return connector.write(request)
      const plan = planOf(protection)
      return Effect.map(connector.write({ ...request, resource: protection.sent }), (answer) => ({
        ...answer,
        body: protectText(protection, answer.body),
        items: answer.items.map((item) => protectResult(plan, item))
      }))
    }
  }
}
