/**
 * Validation of write bodies by the catalogue.
 *
 * Promise: a body is checked in one order for every resource (D-03): unknown fields; then required fields, types,
 * enums, decimals and lengths together (D-02); then references. The result is normalised: decimals padded, dates as
 * days, both halves of a reference pair equal. Nothing here depends on the name of a resource.
 */
import type { Field } from "../../../../src/catalogue/Field.ts"
import type { Resource, WriteField } from "../../../../src/catalogue/Resource.ts"
import { write } from "../../../../src/catalogue/Resource.ts"
import { limits } from "../../catalogue/limits.ts"
import type { Problem } from "../ApiError.ts"
import { ApiError, unknownName } from "../ApiError.ts"
import { format, readDecimal, unitsOf } from "../decimal.ts"
import type { Value } from "../json.ts"
import { Raw, isObject, print } from "../json.ts"
import type { CompanyStore } from "../store/Store.ts"
import { printDay, printInstant, readDay, readInstant } from "../time.ts"
import { resolve } from "./references.ts"

/** A valid body: values under the names that the body uses. */
export interface Body {
  /** Fields that were sent, null where cleared. */
  readonly values: Readonly<Record<string, Value>>
  /** The lines of each field that contains lines. */
  readonly lines: Readonly<Record<string, ReadonlyArray<Body>>>
  /** `custom_fields` as JSON text by name, null to clear one; null when not sent. */
  readonly custom: ReadonlyMap<string, string | null> | null
}

/** A field of a shape, with the other half of its pair in the same shape. */
interface Slot extends WriteField {
  readonly pairedWith: string | null
  readonly nested: Shape | null
}

interface Shape {
  readonly slots: ReadonlyMap<string, Slot>
  /** Read-only fields: a value sent for them is ignored (FIELD-15). */
  readonly ignored: ReadonlySet<string>
}

const shapeOf = (fields: ReadonlyArray<WriteField>, ignored: ReadonlySet<string>): Shape => {
  const names = new Map(fields.map((field) => [field.name, field]))
  const pairOf = ({ name, refers }: WriteField): string | null => {
    if (refers === null) return null
    const other = refers.by === null ? name.replace(/id$/, "") : `${name}id`
    return other !== name && names.get(other)?.refers?.resource === refers.resource ? other : null
  }
  return {
    slots: new Map(
      fields.map((field) => [
        field.name,
        {
          ...field,
          pairedWith: pairOf(field),
          nested: field.lines === null ? null : shapeOf(field.lines, new Set(["id", "linenumber"]))
        }
      ])
    ),
    ignored
  }
}

const recordShape = (resource: Resource, required: ReadonlyArray<string>): ReadonlyArray<WriteField> =>
  resource.fields
    .filter((field) => !field.readOnly)
    .map((field: Field) => write(field, { required: required.includes(field.name) }))

const shapes = new WeakMap<Resource, { readonly create: Shape; readonly update: Shape }>()

const shapesOf = (resource: Resource) => {
  const pair = shapes.get(resource)
  if (pair !== undefined) return pair
  const readOnly = new Set(resource.fields.filter((field) => field.readOnly).map((field) => field.name))
  const made = {
    create: shapeOf(resource.create ?? recordShape(resource, resource.required), readOnly),
    update: shapeOf(resource.update ?? recordShape(resource, resource.required), readOnly)
  }
  shapes.set(resource, made)
  return made
}

/**
 * Reads a body of create or update. Throws {@link ApiError}. `checked` is called when the form of the body is valid,
 * before its references are looked up: there an unknown record answers 404 (C-02).
 */
export const readBody = (
  context: CompanyStore,
  resource: Resource,
  mode: "create" | "update",
  body: unknown,
  checked?: () => void
): Body => {
  if (!isObject(body)) throw new ApiError("invalid_request", "the body must be a JSON object")
  const shape = shapesOf(resource)[mode]
  refuseUnknown(shape, body, "", true)
  const problems: Array<Problem> = []
  const values = readValues(shape, body, "", mode === "create", problems)
  if (body["custom_fields"] !== undefined && body["custom_fields"] !== null && !isObject(body["custom_fields"])) {
    problems.push({ field: "custom_fields", code: "invalid_type", message: "must be an object of names and values" })
  }
  refuse(problems)
  checked?.()
  const resolved = resolveReferences(context, shape, values, "")
  return { ...resolved, custom: readCustom(context, resource, body["custom_fields"]) }
}

/** One problem answers with its own code, several with `invalid_request` and the list (D-01, D-02). */
const refuse = (problems: ReadonlyArray<Problem>) => {
  const [first] = problems
  if (first === undefined) return
  if (problems.length === 1 && ["invalid_type", "invalid_enum", "invalid_precision"].includes(first.code)) {
    throw new ApiError(first.code, `${first.field} ${first.message}`, { field: first.field })
  }
  throw new ApiError("invalid_request", problems.map(({ field, message }) => `${field} ${message}`).join("; "), {
    field: first.field,
    errors: problems
  })
}

/** The error for a missing field that the shape cannot detect, because it depends on another field. */
export const missing = (field: string, message: string): ApiError =>
  new ApiError("invalid_request", `${field} ${message}`, { field, errors: [{ field, code: "required", message }] })

const refuseUnknown = (shape: Shape, body: Readonly<Record<string, unknown>>, at: string, outermost: boolean) => {
  for (const name of Object.keys(body)) {
    if (outermost && name === "custom_fields") continue
    const slot = shape.slots.get(name)
    if (slot === undefined) {
      if (shape.ignored.has(name)) continue
      const valid = [...shape.slots.keys(), ...(outermost ? ["custom_fields"] : [])].join(", ")
      throw unknownName("field", name, valid, at)
    }
    const value = body[name]
    if (slot.nested !== null && Array.isArray(value)) {
      for (const [index, line] of value.entries()) {
        if (isObject(line)) refuseUnknown(slot.nested, line, `${at}${name}[${index}].`, false)
      }
    }
  }
}

interface Read {
  readonly values: Record<string, Value>
  readonly lines: Record<string, ReadonlyArray<Read>>
}

const readValues = (
  shape: Shape,
  body: Readonly<Record<string, unknown>>,
  at: string,
  whole: boolean,
  problems: Array<Problem>
): Read => {
  const values: Record<string, Value> = {}
  const lines: Record<string, ReadonlyArray<Read>> = {}
  const isGiven = (name: string | null) => name !== null && body[name] !== undefined && body[name] !== null
  for (const slot of shape.slots.values()) {
    const { name } = slot
    const field = `${at}${name}`
    const input = body[name]
    // An empty text counts as missing where a text is required; elsewhere it is a value of the wrong type (D-04).
    const isEmpty = input === undefined || input === null || (input === "" && slot.type._tag === "string")
    if (slot.required && isEmpty && (whole || input !== undefined) && !isGiven(slot.pairedWith)) {
      problems.push({ field, code: "required", message: "is required" })
      continue
    }
    if (input === undefined) continue
    if (input === null) {
      values[name] = null
      continue
    }
    if (slot.nested !== null) {
      const nested = slot.nested
      if (!Array.isArray(input)) {
        problems.push({ field, code: "invalid_type", message: "must be an array of objects" })
      } else if (slot.required && input.length === 0) {
        problems.push({ field, code: "required", message: "must have at least one entry" })
      } else {
        lines[name] = input.map((line: unknown, index) => {
          if (isObject(line)) return readValues(nested, line, `${field}[${index}].`, true, problems)
          problems.push({ field: `${field}[${index}]`, code: "invalid_type", message: "must be an object" })
          return { values: {}, lines: {} }
        })
      }
      continue
    }
    const read = readValue(slot, input)
    if (read.ok) values[name] = read.value
    else problems.push({ field, code: read.code, message: read.message })
  }
  return { values, lines }
}

type ReadValue =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly code: string; readonly message: string }

const ok = (value: Value): ReadValue => ({ ok: true, value })
const wrong = (code: string, message: string): ReadValue => ({ ok: false, code, message })

/** Checks one value against its field. */
export const readValue = (field: Pick<Field, "type" | "values">, input: unknown): ReadValue => {
  const read = readTyped(field.type, input)
  if (!read.ok || field.values === null) return read
  if (field.values.some(({ value }) => value === read.value)) return read
  return wrong("invalid_enum", `must be one of ${field.values.map(({ value }) => JSON.stringify(value)).join(", ")}`)
}

/** Lengths are counted in characters, not in UTF-16 units. */
export const codePoints = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

const readTyped = (type: Field["type"], input: unknown): ReadValue => {
  switch (type._tag) {
    case "integer": {
      const number = input instanceof Raw ? Number(input.text) : input
      return typeof number === "number" && Number.isSafeInteger(number)
        ? ok(number)
        : wrong("invalid_type", "must be an integer")
    }
    case "decimal":
      return readDecimalValue(type.scale, input)
    case "boolean":
      return typeof input === "boolean" ? ok(input) : wrong("invalid_type", "must be true or false")
    case "string":
      if (typeof input !== "string") return wrong("invalid_type", "must be a string")
      return type.maxLength !== null && input.length > type.maxLength && codePoints(input) > type.maxLength
        ? wrong("too_long", `must be at most ${type.maxLength} characters`)
        : ok(input)
    case "date": {
      if (typeof input !== "string") return wrong("invalid_type", "must be a date, YYYY-MM-DD")
      if (readDay(input) !== null) return ok(input)
      const instant = readInstant(input)
      return instant === null ? wrong("invalid_type", "must be a date, YYYY-MM-DD") : ok(printDay(instant))
    }
    case "timestamp": {
      const instant = typeof input === "string" ? (readInstant(input) ?? readDay(input)) : null
      return instant === null ? wrong("invalid_type", "must be a time, RFC 3339 in UTC") : ok(printInstant(instant))
    }
    case "list":
      return Array.isArray(input) ? ok(new Raw(print(input))) : wrong("invalid_type", "must be an array")
  }
}

const readDecimalValue = (scale: number, input: unknown): ReadValue => {
  const decimal = typeof input === "string" ? readDecimal(input) : null
  if (decimal === null) return wrong("invalid_type", 'must be a decimal string such as "12.50"')
  if (decimal.fraction.length > scale) return wrong("invalid_precision", `must have at most ${scale} decimals`)
  const wholeMax = limits.decimalDigitsMax - scale
  if (decimal.whole.length > wholeMax) return wrong("too_long", `must have at most ${wholeMax} digits before the point`)
  return ok(format(unitsOf(decimal, scale), scale))
}

/** Replaces references by their ids; the code halves follow from the ids when the record is stored. */
const resolveReferences = (context: CompanyStore, shape: Shape, read: Read, at: string): Body => {
  const values: Record<string, Value> = { ...read.values }
  for (const slot of shape.slots.values()) {
    if (slot.refers === null || !(slot.name in read.values)) continue
    const value = read.values[slot.name]!
    const field = `${at}${slot.name}`
    if (slot.refers.by === null) {
      if (value !== null) resolve(context, slot.refers, value, field)
      continue
    }
    const idName = slot.pairedWith ?? slot.sets ?? slot.name
    if (value === null) {
      if (!(idName in read.values)) values[idName] = null
      continue
    }
    const { id } = resolve(context, slot.refers, value, field)
    const inputId = read.values[idName]
    if (typeof inputId === "number" && inputId !== id) {
      resolve(context, { resource: slot.refers.resource, by: null }, inputId, `${at}${idName}`)
      throw new ApiError("conflicting_reference", `${at}${idName} and ${field} name different records`, { field })
    }
    values[idName] = id
  }
  const lines: Record<string, ReadonlyArray<Body>> = {}
  for (const [name, entries] of Object.entries(read.lines)) {
    const nested = shape.slots.get(name)!.nested!
    lines[name] = entries.map((entry, index) => resolveReferences(context, nested, entry, `${at}${name}[${index}].`))
  }
  return { values, lines, custom: null }
}

/** Custom fields need a definition (F-17); only a plain value can be stored. */
const readCustom = (context: CompanyStore, resource: Resource, input: unknown): Body["custom"] => {
  if (!isObject(input)) return null
  const definitions = context.store.table(context.company, "customfields").where("resource", resource.path)
  const custom = new Map<string, string | null>()
  for (const [name, value] of Object.entries(input)) {
    const field = name === "" ? "custom_fields" : `custom_fields.${name}`
    const definition = definitions.find((version) => !version.cancelled && version.values["name"] === name)
    if (definition === undefined) {
      throw new ApiError("unknown_value", `${resource.path} has no custom field "${name}"`, { field })
    }
    if (typeof value === "object" && value !== null && !(value instanceof Raw)) {
      throw new ApiError("unsupported_value", `${field} takes a plain value; files cannot be stored`, { field })
    }
    const accepted = definition.values["acceptedvalues"]
    if (
      value !== null &&
      typeof accepted === "string" &&
      accepted !== "" &&
      !accepted.split(",").includes(typeof value === "string" ? value : print(value))
    ) {
      throw new ApiError("unsupported_value", `${field} takes one of ${accepted}`, { field })
    }
    custom.set(name, value === null ? null : print(value))
  }
  return custom
}

/** Refuses a body with content where none is allowed: no body, null and `{}` are accepted (J-07). */
export const refuseContent = (body: unknown): void => {
  if (body === undefined || body === null) return
  if (!isObject(body)) throw new ApiError("invalid_request", "the body must be empty or {}")
  const [name] = Object.keys(body)
  if (name === undefined) return
  throw unknownName("field", name, "none")
}

/** The changes of a body as record fields: write names become field names, `taxable` becomes the flag that it sets. */
export const patchOf = (resource: Resource, mode: "create" | "update", body: Body): Record<string, Value> => {
  const patch: Record<string, Value> = {}
  const { slots } = shapesOf(resource)[mode]
  for (const [name, value] of Object.entries(body.values)) {
    const slot = slots.get(name)
    const sets = slot === undefined ? name : slot.sets
    if (sets === null) continue
    const asFlag = typeof value === "boolean" && resource.field.get(sets)?.type._tag === "integer"
    patch[sets] = asFlag ? Number(value) : value
  }
  return patch
}
