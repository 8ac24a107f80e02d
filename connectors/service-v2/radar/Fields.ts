/**
 * The values of a record against the fields of the catalogue.
 *
 * The connector's own readers decide whether a value can be stored; here its JSON form is compared as well, from the exact
 * text that was sent.
 */
import type { Field } from "../../../src/catalogue/Field.ts"
import { isCancellable, type Resource, roleField } from "../../../src/catalogue/Resource.ts"
import { customFieldsName } from "../../../src/catalogue/Protection.ts"
import { eachMember, elements, kindAt, stringValue } from "../client/JsonText.ts"
import { InvalidValue, reader } from "../client/Values.ts"
import type { Findings } from "./Findings.ts"
import type { Seen } from "./Session.ts"
import { plural } from "../../../src/text/Count.ts"

/** Forms of dates and times, counted over all records. */
export interface TimeForms {
  days: number
  /** Dates that were sent as timestamps, and the first one. */
  longDays: number
  longDay: { readonly subject: string; readonly seen: Seen } | null
  /** Keeps the records with such dates, for the case that others have days. */
  readonly keepLongDays: Array<() => void>
  fractions: number
  /** Timestamps of whole seconds, and the first one. */
  wholeSeconds: number
  wholeSecond: { readonly subject: string; readonly seen: Seen } | null
}

export const noForms = (): TimeForms => ({
  days: 0,
  longDays: 0,
  longDay: null,
  keepLongDays: [],
  fractions: 0,
  wholeSeconds: 0,
  wholeSecond: null
})

interface Value {
  readonly path: string
  readonly subject: string
  readonly field: Field
  /** Its JSON text. */
  readonly raw: string
}

interface RecordContext {
  readonly resource: Resource
  readonly findings: Findings
  readonly forms: TimeForms
  readonly seen: Seen
  /** Keeps the record for the recording. */
  readonly keep: () => void
}

const article = (word: string) => (/^[aeio]/.test(word) ? `an ${word}` : `a ${word}`)
const day = /^\d{4}-\d\d-\d\d$/
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/

/** The shape of a value: its kind and length, never its content. */
const shapeOf = (raw: string): string => {
  const kind = kindAt(raw, 0)
  if (kind === "string") {
    const text = stringValue(raw, 0, raw.length)
    const form = day.test(text)
      ? "a date in a text"
      : instant.test(text)
        ? "a timestamp in a text"
        : /^-?\d+$/.test(text)
          ? "an integer in a text"
          : /^-?\d+\.\d+$/.test(text)
            ? `a decimal of ${plural(text.split(".")[1]!.length, "decimal")} in a text`
            : "a text"
    return `${form} of ${plural(Array.from(text).length, "character")}`
  }
  if (kind === "number") return /^-?\d+$/.test(raw) ? "a JSON integer" : "a JSON number with decimals"
  return article(kind)
}

const typeName = ({ type }: Field): string =>
  type._tag === "decimal" ? `${type.kind} of ${plural(type.scale, "decimal")}` : type._tag

/** The type of a column for an unknown field, as `schema apply` takes it. */
const columnType = (raw: string): string => {
  switch (kindAt(raw, 0)) {
    case "number":
      return /^-?\d+$/.test(raw) ? "integer" : "number"
    case "boolean":
      return "boolean"
    case "string":
      return "text"
    default:
      return "json"
  }
}

const differ = (
  { findings, seen, keep }: RecordContext,
  check: string,
  { subject }: Pick<Value, "subject">,
  text: string,
  variant?: { readonly name: string; readonly value: number }
) => {
  findings.differ(check, { subject, seen: text, answer: seen, ...(variant === undefined ? {} : { variant }) })
  keep()
}

const change = (
  { findings, resource }: RecordContext,
  { path, field }: Value,
  kind: "type" | "length" | "scale" | "values",
  to: string
) =>
  findings.change({
    resource: resource.path,
    field: path,
    change: kind,
    from: kind === "length" && field.type._tag === "string" ? `${field.type.maxLength} characters` : typeName(field),
    to,
    command: null
  })

const checkDecimal = (context: RecordContext, value: Value) => {
  const { field, raw } = value
  if (field.type._tag !== "decimal") return
  const { scale, shown } = field.type
  const kind = kindAt(raw, 0)
  const text = kind === "string" ? stringValue(raw, 0, raw.length) : raw
  const match = /^-?\d+(?:\.(\d+))?$/.exec(text)
  if (kind === "number") differ(context, "field.form", value, `${shapeOf(raw)}, where the field is a decimal in a text`)
  if (match === null) {
    if (reader(field)(raw) instanceof InvalidValue) unreadable(context, value)
    return
  }
  const decimals = match[1]?.length ?? 0
  if (decimals > scale) {
    differ(context, "field.precision", value, `${plural(decimals, "decimal")}, where the field has ${scale}`)
    change(context, value, "scale", `${plural(decimals, "decimal")} or more`)
  } else if (reader(field)(raw) instanceof InvalidValue) {
    differ(context, "field.precision", value, `${plural(text.replace(/\D.*|-/g, "").length, "digit")} before the point`)
  } else if (decimals !== shown && kind === "string") {
    differ(context, "field.padding", value, `${plural(decimals, "decimal")}, where the field shows ${shown}`)
  }
}

const unreadable = (context: RecordContext, value: Value) => {
  differ(context, "field.type", value, `${shapeOf(value.raw)}, where the field is ${typeName(value.field)}`)
  change(context, value, "type", `a type that holds ${shapeOf(value.raw)}`)
}

/** Dates and timestamps: one form of all values is a difference of the installation, compared after all records. */
const checkTime = (context: RecordContext, value: Value) => {
  const { field, raw, subject } = value
  const { forms, seen } = context
  const text = kindAt(raw, 0) === "string" ? stringValue(raw, 0, raw.length) : ""
  if (reader(field)(raw) instanceof InvalidValue) return unreadable(context, value)
  if (field.type._tag === "date") {
    if (day.test(text)) forms.days++
    else {
      forms.longDays++
      forms.longDay ??= { subject, seen }
      forms.keepLongDays.push(context.keep)
    }
    return
  }
  if (!instant.test(text)) return differ(context, "timestamp.form", value, `${shapeOf(raw)}, readable, in another form`)
  if (text.includes(".")) forms.fractions++
  else {
    forms.wholeSeconds++
    forms.wholeSecond ??= { subject, seen }
  }
}

const checkText = (context: RecordContext, value: Value) => {
  const { field, raw } = value
  if (field.type._tag !== "string") return
  if (reader(field)(raw) instanceof InvalidValue) return unreadable(context, value)
  if (kindAt(raw, 0) !== "string") {
    if (field.typed) differ(context, "field.form", value, `${shapeOf(raw)}, where the field is a text`)
    return
  }
  const length = Array.from(stringValue(raw, 0, raw.length)).length
  const { maxLength } = field.type
  if (maxLength === null || length <= maxLength) return
  differ(context, "field.length", value, `${length} characters, where the field has ${maxLength}`)
  change(context, value, "length", `${length} characters or more`)
}

const checkPlain = (context: RecordContext, value: Value) => {
  const { field, raw } = value
  if (reader(field)(raw) instanceof InvalidValue) return unreadable(context, value)
  const kind = field.type._tag === "integer" ? "number" : field.type._tag === "list" ? "array" : "boolean"
  if (field.typed && kindAt(raw, 0) !== kind) {
    differ(context, "field.form", value, `${shapeOf(raw)}, where the field is ${article(field.type._tag)}`)
  }
}

const checkSet = (context: RecordContext, value: Value) => {
  const { field, raw } = value
  if (field.values === null) return
  context.findings.checked("field.values")
  const kind = kindAt(raw, 0)
  const text = kind === "string" ? stringValue(raw, 0, raw.length) : raw
  if (field.values.some((one) => String(one.value) === text)) return
  // A number of a closed set says nothing about a person; a text may, and a field with a privacy rule.
  const { protection } = context.resource
  const rule = value.path === field.name ? protection?.ruleOf(field.name) : protection?.ruleWithin(field.name)
  const isShown = rule === undefined && /^-?\d{1,6}$/.test(text)
  const seen = isShown ? `the value ${text}` : shapeOf(raw)
  differ(context, "field.values", value, `${seen}, which is none of the ${plural(field.values.length, "value")}`)
  change(context, value, "values", `${seen} as well`)
}

const checkLines = (context: RecordContext, value: Value) => {
  const { field, path, raw } = value
  if (field.type._tag !== "list" || field.type.of.length === 0 || kindAt(raw, 0) !== "array") return
  const ranges = elements(raw, 0)
  for (let at = 0; at < ranges.length; at += 2) {
    if (kindAt(raw, ranges[at]!) === "object")
      checkMembers(context, field.type.of, `${path}.`, raw.slice(ranges[at], ranges[at + 1]))
  }
}

const checkValue = (context: RecordContext, value: Value) => {
  const { findings } = context
  const tag = value.field.type._tag
  findings.value(value.subject)
  findings.checked(tag === "date" ? "date.form" : tag === "timestamp" ? "timestamp.form" : "field.form")
  findings.checked("field.type")
  if (tag === "decimal") {
    findings.checked("field.precision")
    findings.checked("field.padding")
    checkDecimal(context, value)
  } else if (tag === "date" || tag === "timestamp") checkTime(context, value)
  else if (tag === "string") {
    findings.checked("field.length")
    checkText(context, value)
  } else checkPlain(context, value)
  checkSet(context, value)
  checkLines(context, value)
}

/** The members of one object against its fields. Returns the names of known members in the order sent. */
const checkMembers = (
  context: RecordContext,
  fields: ReadonlyArray<Field>,
  prefix: string,
  text: string
): ReadonlyArray<string> => {
  const { findings, resource, seen } = context
  const known = new Map(fields.map((field) => [field.name, field]))
  const order: Array<string> = []
  findings.checked("field.unknown")
  eachMember(text, 0, (name, from, to) => {
    const path = `${prefix}${name}`
    const subject = `${resource.path}.${path}`
    const field = known.get(name)
    const raw = text.slice(from, to)
    if (field === undefined) {
      if (name === customFieldsName || resource.basis === "configured") return
      differ(context, "field.unknown", { subject }, shapeOf(raw), { name: "extraFields", value: 1 })
      const isColumn = prefix === "" && /^[A-Za-z0-9_]+$/.test(name)
      findings.change({
        resource: resource.path,
        field: path,
        change: "add",
        from: "none",
        to: columnType(raw),
        command: isColumn ? `tributary schema apply --field ${subject} --type ${columnType(raw)}` : null
      })
      return
    }
    order.push(name)
    if (raw !== "null") checkValue(context, { path, subject, field, raw })
  })
  findings.checked("field.missing")
  for (const { name } of fields) {
    if (order.includes(name)) continue
    const subject = `${resource.path}.${prefix}${name}`
    findings.differ("field.missing", { subject, seen: "some records have no such member", answer: seen })
    // Lines are stored as they are; of a record the reference server sends every field.
    if (prefix === "") findings.notReproduced.add("missing fields: the reference server sends every field")
    else context.keep()
  }
  return order
}

/** The fields that are never null. */
const neverNull = (resource: Resource): ReadonlySet<string> =>
  new Set([
    resource.roles.id,
    ...(resource.key === null ? [] : [resource.key.field]),
    ...(isCancellable(resource) && resource.roles.cancelled !== null ? [resource.roles.cancelled] : []),
    ...(resource.modifiedSince ? [roleField(resource, "modifiedAt")!.name] : [])
  ])

/** Compares one record. `first` is the order of fields of the first record of the resource; returns this one's. */
export const checkRecord = (
  base: Pick<RecordContext, "resource" | "findings" | "forms" | "seen">,
  text: string,
  first: ReadonlyArray<string> | null
): ReadonlyArray<string> => {
  const { findings, resource, seen } = base
  let id: string | null = null
  const empty: Array<string> = []
  const required = neverNull(resource)
  eachMember(text, 0, (name, from, to) => {
    const raw = text.slice(from, to)
    if (name === resource.roles.id) id = raw
    if (raw === "null" && required.has(name)) empty.push(name)
  })
  const context: RecordContext = {
    ...base,
    keep: () => {
      if (id !== null && resource.basis !== "configured") findings.keep(resource.path, id, text)
    }
  }
  findings.checked("field.null")
  for (const name of empty) differ(context, "field.null", { subject: `${resource.path}.${name}` }, "null")
  const order = checkMembers(context, resource.fields, "", text)
  if (first !== null) {
    findings.checked("field.order")
    const isSame = order.length !== first.length || order.every((name, at) => name === first[at])
    if (!isSame) {
      findings.differ("field.order", {
        seen: `records of ${resource.path} and of others have their fields in different orders`,
        answer: seen,
        variant: { name: "keyOrder", value: 1 }
      })
    }
  }
  return order
}
