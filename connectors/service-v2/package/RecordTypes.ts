/**
 * TypeScript types of the records as answers show them, and of the bodies that write them.
 *
 * Promise: a record has every field of its resource, null when it is empty (A-14). A decimal is a string. A body allows
 * the fields that the server accepts and needs those that it needs; either half satisfies a required reference.
 */
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { AllowedValue, Field, FieldType } from "../../../src/catalogue/Field.ts"
import { type Resource, write, type WriteField } from "../../../src/catalogue/Resource.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import { interfaceOf, type Member, membersOf, typeName } from "./Source.ts"

const head = `/**
 * Types of the records of Service API v2: made from the catalogue, one for each resource.
 *
 * A decimal is a string with the digits of its field, and never a number.
 */

/** The names of all resources. */
export declare const resourceNames: ReadonlyArray<ResourceName>

/** An exact decimal, such as \`"1250.0000"\`. */
export type Decimal = string

/** A calendar day, \`YYYY-MM-DD\`. */
export type Day = string

/** A time, RFC 3339 in UTC, such as \`"2026-03-16T09:00:00.000000Z"\`. */
export type Instant = string

/** The install's own fields by name. */
export type CustomFields = Readonly<Record<string, string | number | boolean | null>>
`

/** `lines` are the members of a line of a list. */
const valueType = (type: FieldType, values: ReadonlyArray<AllowedValue> | null, lines: string): string => {
  if (values !== null) return values.map(({ value }) => JSON.stringify(value)).join(" | ")
  switch (type._tag) {
    case "integer":
      return "number"
    case "decimal":
      return "Decimal"
    case "boolean":
      return "boolean"
    case "string":
      return "string"
    case "date":
      return "Day"
    case "timestamp":
      return "Instant"
    case "list":
      return `ReadonlyArray<{\n${lines}  }>`
  }
}

const shownType = (field: Field): string => {
  const lines =
    field.type._tag === "list"
      ? membersOf(
          field.type.of.map((line) => ({ name: line.name, type: shownType(line), comment: line.note })),
          "    "
        )
      : ""
  const type = valueType(field.type, field.values, lines)
  return field.name === "id" ? type : `${type} | null`
}

const recordOf = (resource: Resource): string => {
  const comments = new Map(tableOf(resource).columns.map(({ field, comment }) => [field, comment]))
  return interfaceOf(`${typeName(resource.path)}Record`, `${resource.purpose} [${resource.basis}]`, [
    ...resource.fields.map((field) => ({
      name: field.name,
      type: shownType(field),
      comment: comments.get(field.name) ?? ""
    })),
    {
      name: "custom_fields",
      type: "CustomFields",
      comment: "the install's own fields; there with `include=custom_fields` only",
      isOptional: true
    }
  ])
}

/** The other half of a reference in the same body. */
const pairOf = ({ name, refers }: WriteField, fields: ReadonlyArray<WriteField>): WriteField | undefined => {
  if (refers === null) return undefined
  const other = refers.by === null ? name.replace(/id$/, "") : `${name}id`
  return fields.find((field) => field.name === other && other !== name && field.refers?.resource === refers.resource)
}

const sentMember = (field: WriteField, fields: ReadonlyArray<WriteField>, isWhole: boolean): Member => {
  const isNeeded = field.required && pairOf(field, fields) === undefined
  const lines = field.lines === null ? "" : membersOf(sentMembers(field.lines, true), "    ")
  const type = field.lines === null ? sentType(field) : `ReadonlyArray<{\n${lines}  }>`
  return {
    name: field.name,
    type: isNeeded ? type : `${type} | null`,
    comment: field.note,
    isOptional: !(isNeeded && isWhole)
  }
}

/** A list without stated lines is accepted as any array. */
const sentType = ({ type, values }: WriteField): string =>
  type._tag === "list" ? "ReadonlyArray<unknown>" : valueType(type, values, "")

const sentMembers = (fields: ReadonlyArray<WriteField>, isWhole: boolean): ReadonlyArray<Member> =>
  fields.map((field) => sentMember(field, fields, isWhole))

const customFields: Member = {
  name: "custom_fields",
  type: "CustomFields | null",
  comment: "the install's own fields by name; null clears one",
  isOptional: true
}

/** The body of create or update. */
const bodyOf = (resource: Resource, mode: "create" | "update"): string => {
  const isWhole = mode === "create"
  const fields =
    resource[mode] ??
    resource.fields
      .filter((field) => !field.readOnly)
      .map((field) => write(field, { required: resource.required.includes(field.name) }))
  const name = `${typeName(resource.path)}${isWhole ? "Create" : "Update"}`
  const comment = isWhole
    ? `the body that makes one of ${resource.path}`
    : `the body that changes one of ${resource.path}`
  const members = [...sentMembers(fields, isWhole), customFields]
  const either = fields.flatMap((field) => {
    const other = isWhole && field.required ? pairOf(field, fields) : undefined
    if (other === undefined) return []
    const half = (one: WriteField) => `{ readonly ${one.name}: ${sentType(one)} }`
    return [`(${half(field)} | ${half(other)})`]
  })
  if (either.length === 0) return interfaceOf(name, comment, members)
  return `${interfaceOf(`${name}Fields`, `the fields of {@link ${name}}`, members)}
/** ${comment} */
export type ${name} = ${[`${name}Fields`, ...new Set(either)].join(" & ")}
`
}

const mapOf = (name: string, comment: string, suffix: string, resources: ReadonlyArray<Resource>): string =>
  interfaceOf(
    name,
    comment,
    resources.map(({ path, purpose }) => ({ name: path, type: `${typeName(path)}${suffix}`, comment: purpose }))
  )

/** The declarations of `tributary/records`. */
export const recordTypes = (catalogue: Catalogue): string => {
  const resources = [...catalogue.resources.values()]
  const creatable = resources.filter(({ operations }) => operations.includes("C") || operations.includes("B"))
  const updatable = resources.filter(({ operations }) => operations.includes("U"))
  return [
    head,
    mapOf("Records", "The type of a record, by the name of its resource.", "Record", resources),
    mapOf("CreateBodies", "The body of a create, by the name of the resource.", "Create", creatable),
    mapOf("UpdateBodies", "The body of an update, by the name of the resource.", "Update", updatable),
    "/** The name of a resource: its path in the API, and its table in the warehouse. */\nexport type ResourceName = keyof Records\n",
    ...resources.map(recordOf),
    ...creatable.map((resource) => bodyOf(resource, "create")),
    ...updatable.map((resource) => bodyOf(resource, "update"))
  ].join("\n")
}
