/**
 * Schemas of records in answers, and of the bodies that write them.
 *
 * Promise: a body's schema agrees with `rules/body.ts`: unknown fields are refused, read-only ones accepted and
 * ignored, a required reference is satisfied by either half of its pair, null is allowed where a value may be cleared.
 * Checks that need the store (whether a reference resolves, whether a period is closed) are not in the schema and
 * answer 409 or 422.
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Field } from "../../../../src/catalogue/Field.ts"
import type { Resource, WriteField } from "../../../../src/catalogue/Resource.ts"
import { write } from "../../../../src/catalogue/Resource.ts"
import { limits } from "../../catalogue/limits.ts"
import type { Schema } from "./Schema.ts"
import { arrayOf, described, exactly, nullable, refer } from "./Schema.ts"
import { sentValue, shownDecimal, shownField, shownInstant } from "./values.ts"

const plainValue: Schema = { type: ["string", "number", "boolean", "null"] }

const shownCustomFields: Schema = {
  type: "object",
  additionalProperties: plainValue,
  description: "the install's own fields by name; there with include=custom_fields only (A-12)"
}

/** The longest text that a string field can show: a code half shows the other record's text, whatever its length. */
const lengthMaxOf = (catalogue: Catalogue, resource: Resource, field: Field): number | null => {
  if (field.type._tag !== "string") return null
  const lengths: Array<number | null> = [field.type.maxLength]
  const { reference } = field
  if (reference !== null && reference.by !== null) {
    const shown = catalogue.resources.get(reference.resource)?.field.get(reference.by)?.type
    lengths.push(shown?._tag === "string" ? shown.maxLength : null)
  }
  for (const shape of [resource.create, resource.update]) {
    for (const { sets, type } of shape ?? []) {
      if (sets === field.name) lengths.push(type._tag === "string" ? type.maxLength : null)
    }
  }
  return lengths.includes(null) ? null : Math.max(...lengths.map(Number))
}

const shownFields = (catalogue: Catalogue, resource: Resource): Readonly<Record<string, Schema>> =>
  Object.fromEntries(
    resource.fields.map((field) => [field.name, shownField(field, lengthMaxOf(catalogue, resource, field))])
  )

/** The record with all of its fields and no others. */
export const record = (catalogue: Catalogue, resource: Resource): Schema => {
  const fields = shownFields(catalogue, resource)
  return {
    ...exactly({ ...fields, custom_fields: shownCustomFields }, Object.keys(fields)),
    description: resource.purpose,
    "x-basis": resource.basis
  }
}

/** Members that the answer to a create adds to the record (I-05), with the catalogue's money. */
const beside: Readonly<Record<string, ReadonlyArray<string>>> = {
  invoicelines: ["invoicetotal"],
  payments: ["invoicepaid"],
  apbilllines: ["billtotal", "distributed", "undistributed"]
}

/** The answer to a create; null when it is the record itself. */
export const created = (catalogue: Catalogue, resource: Resource): Schema | null => {
  const names = beside[resource.path]
  if (names === undefined) return null
  const fields = shownFields(catalogue, resource)
  const more = Object.fromEntries(
    names.map((name) => [
      name,
      described(nullable(shownDecimal(4)), "of the document that the record belongs to (I-05)")
    ])
  )
  return { ...exactly({ ...fields, ...more }), description: `${resource.purpose}, just created` }
}

/** The other half of a pair in the same shape. */
const pairedWith = (field: WriteField, fields: ReadonlyArray<WriteField>): string | null => {
  if (field.refers === null) return null
  const other = field.refers.by === null ? field.name.replace(/id$/, "") : `${field.name}id`
  const partner = fields.find(({ name }) => name === other && name !== field.name)
  return partner?.refers?.resource === field.refers.resource ? other : null
}

/** Ranges of integers that mean a day (I-28). */
const ranges: Readonly<Record<string, Readonly<Record<string, Schema>>>> = {
  teamprojectrecurringtasks: {
    dayofweek: { minimum: 0, maximum: 6 },
    dayofmonth: { minimum: 1, maximum: 31 }
  }
}

/** The body schema with the ranges of its resource. */
const ranged = (path: string, schema: Schema): Schema => {
  const within = ranges[path]
  if (within === undefined) return schema
  const properties = Object.entries(schema["properties"] as Readonly<Record<string, Schema>>)
  return {
    ...schema,
    properties: Object.fromEntries(properties.map(([name, one]) => [name, { ...one, ...within[name] }]))
  }
}

const ignoredField: Schema = { description: "read-only: a value sent for it is accepted and ignored" }

const isNeeded = ({ name, required }: WriteField, needed: ReadonlyArray<string>) => required || needed.includes(name)

const sentField = (field: WriteField, fields: ReadonlyArray<WriteField>, needed: ReadonlyArray<string>): Schema => {
  const required = isNeeded(field, needed)
  let schema: Schema
  if (field.lines === null) {
    schema = sentValue(field)
    if (required && schema["type"] === "string" && field.values === null) schema = { ...schema, minLength: 1 }
  } else {
    schema = arrayOf(sentFields(field.lines, ["id", "linenumber"], true), required ? { minItems: 1 } : {})
  }
  // A required reference may be null where the other half is given.
  const mayBeNull = !required || pairedWith(field, fields) !== null
  const sentSchema = described(mayBeNull ? nullable(schema) : schema, field.note)
  if (field.refers === null) return sentSchema
  const { resource, by } = field.refers
  return { ...sentSchema, "x-reference": { resource, ...(by === null ? {} : { by }) } }
}

const presenceOf = (name: string): Schema => ({ required: [name], properties: { [name]: { not: { type: "null" } } } })

/** An object of write fields; `whole` makes the required ones required. */
const sentFields = (
  fields: ReadonlyArray<WriteField>,
  ignored: ReadonlyArray<string>,
  whole: boolean,
  needed: ReadonlyArray<string> = [],
  more: Readonly<Record<string, Schema>> = {}
): Schema => {
  const properties: Record<string, Schema> = {}
  for (const name of ignored) properties[name] = ignoredField
  for (const field of fields) properties[field.name] = sentField(field, fields, needed)
  const required: Array<string> = []
  const either: Array<Schema> = []
  for (const field of whole ? fields : []) {
    if (!isNeeded(field, needed)) continue
    const other = pairedWith(field, fields)
    if (other === null) required.push(field.name)
    else either.push({ anyOf: [presenceOf(field.name), presenceOf(other)] })
  }
  return {
    ...exactly({ ...properties, ...more }, required),
    ...(either.length === 0 ? {} : { allOf: either })
  }
}

const sentCustomFields: Schema = {
  type: ["object", "null"],
  additionalProperties: plainValue,
  description: "the install's own fields by name; null clears one (F-17)"
}

/** The body of create or update. */
export const body = (resource: Resource, mode: "create" | "update"): Schema => {
  const readOnly = resource.fields.filter((field) => field.readOnly).map(({ name }) => name)
  const shape = resource[mode]
  const fields = shape ?? resource.fields.filter((field) => !field.readOnly).map((field) => write(field))
  const needed = shape === null ? resource.required : []
  const more = { custom_fields: sentCustomFields }
  return {
    ...ranged(resource.path, sentFields(fields, readOnly, mode === "create", needed, more)),
    description: mode === "create" ? `makes one of ${resource.path}` : `changes one of ${resource.path}: what is sent`,
    "x-basis": resource.basis
  }
}

/** The body of a list answer. */
export const page = (items: Schema, withSyncedThrough: boolean): Schema =>
  exactly({
    data: arrayOf(items, { maxItems: limits.pageRecordsMax }),
    _meta: exactly({
      limit: { type: "integer", minimum: 1, maximum: limits.pageRecordsMax, description: "records of a page" },
      has_more: { type: "boolean" },
      next_cursor: {
        type: ["string", "null"],
        description: "send it as cursor to get the next page; null on the last"
      },
      ...(withSyncedThrough
        ? { synced_through: described(shownInstant, "send it as modifiedsince next time, once every page was read") }
        : {})
    })
  })

/** The results of a batch: one entry for each record sent, in order (G-01, G-02). */
export const results = (made: Schema): Schema => {
  const index: Schema = { type: "integer", minimum: 0, maximum: limits.batchRecordsMax - 1 }
  return exactly({
    results: arrayOf(
      {
        oneOf: [
          exactly({ index, status: { type: "integer", const: 201 }, record: made }),
          exactly({ index, status: { type: "integer", enum: [400, 403, 409, 422, 500] }, error: refer("BatchError") })
        ]
      },
      { maxItems: limits.batchRecordsMax }
    )
  })
}
