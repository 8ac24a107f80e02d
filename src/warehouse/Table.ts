/**
 * The tables of a resource: the current records, the superseded versions, and the views of all versions and as of a moment.
 *
 * Promise: names and types follow from the catalogue alone (the contract is section 5.4 of the design), so that two
 * installations with the same catalogue have the same warehouse.
 */
import type { Field, FieldType, InferredType } from "../catalogue/Field.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { FieldRoles } from "../catalogue/SourceTraits.ts"
import { identifier, literal, supersededSuffix } from "./Identifier.ts"

/** Postgres namespaces of the warehouse. */
export interface Datasets {
  readonly current: string
  readonly history: string
  /** The dataset of the records as of a moment. */
  readonly asOf: string
}

export const datasetsDefault: Datasets = { current: "erp", history: "erp_history", asOf: "erp_asof" }

export interface Column {
  /** Its name in the database. */
  readonly name: string
  /** Its name in the API, and in a record's JSON. */
  readonly field: string
  /** Quoted. */
  readonly sql: string
  readonly sqlType: string
  readonly kind: FieldType["_tag"] | "json"
  readonly comment: string
}

export interface Table {
  readonly resource: Resource
  readonly datasets: Datasets
  /** Name of the table of current records and of the view of all versions, unquoted. */
  readonly name: string
  /** Quoted and qualified names. */
  readonly current: string
  readonly superseded: string
  readonly view: string
  readonly asOf: string
  /** Name of the table of superseded versions, unquoted. */
  readonly supersededName: string
  /** One per field of the resource, in its order. */
  readonly columns: ReadonlyArray<Column>
  /** Columns after the fields that every table has. */
  readonly meta: ReadonlyArray<Column>
}

const sqlTypeOf = (type: FieldType): string => {
  switch (type._tag) {
    case "integer":
      return "bigint"
    case "decimal":
      return `numeric(20,${type.scale})`
    case "boolean":
      return "boolean"
    case "string":
      return "text"
    case "date":
      return "date"
    case "timestamp":
      return "timestamptz"
    case "list":
      return "jsonb"
  }
}

/** Inferred decimals have as many digits as they were sent with. */
const inferredSqlType: Readonly<Record<InferredType, string>> = {
  integer: "bigint",
  number: "numeric",
  decimal: "numeric",
  boolean: "boolean",
  text: "text",
  date: "date",
  timestamp: "timestamptz",
  json: "jsonb"
}

const columnTypeOf = ({ type, inferred }: Field): string =>
  inferred === null ? sqlTypeOf(type) : inferredSqlType[inferred.type]

const wireTypeOf = (type: FieldType): string => {
  switch (type._tag) {
    case "decimal":
      return `${type.kind} with ${type.scale} decimals`
    case "string":
      return type.maxLength === null ? "text" : `string of at most ${type.maxLength} characters`
    case "list":
      return "lines"
    default:
      return type._tag
  }
}

const commentOf = (field: Field): string => {
  const reference =
    field.reference === null
      ? ""
      : field.reference.half === "id"
        ? `id of ${field.reference.resource}`
        : `${field.reference.by} of ${field.reference.resource}`
  const allowed =
    field.values === null ? "" : field.values.map(({ value, meaning }) => `${value} ${meaning}`.trim()).join(", ")
  const { inferred } = field
  const renamed = inferred === null || inferred.column === field.name ? "" : `the field ${JSON.stringify(field.name)}`
  const wireType = inferred === null ? wireTypeOf(field.type) : inferred.type
  return [field.note, renamed, reference, allowed, field.readOnly ? "read-only" : "", `(${wireType})`]
    .filter((part) => part !== "")
    .join("; ")
}

const meta = (name: string, sqlType: string, comment: string, kind: Column["kind"] = "string"): Column => ({
  name,
  field: name,
  sql: identifier(name),
  sqlType,
  kind,
  comment
})

/** The column of the record's key, whatever its field is called. */
const keyName = "id"

const columnOf = (field: Field, roles: FieldRoles): Column => {
  const isKey = field.name === roles.id
  const name = isKey ? keyName : (field.inferred?.column ?? field.name)
  return {
    name,
    field: field.name,
    sql: identifier(name),
    sqlType: isKey ? "bigint not null" : columnTypeOf(field),
    // An inferred number was sent as a number, and is shown as one.
    kind: field.inferred?.type === "number" ? "integer" : field.type._tag,
    comment: commentOf(field)
  }
}

/** Meta columns, in their order in every table. */
const metaColumns: ReadonlyArray<Column> = [
  meta("custom_fields", "jsonb", "the install's own fields of the record", "json"),
  meta("_extra", "jsonb", "fields that the catalogue does not know, and digits that a column cannot hold", "json"),
  meta("_version", "bigint not null default 1", "counts the versions of the row, from 1", "integer"),
  meta("_op", "text not null default 'insert'", "what made this version: insert, update or delete"),
  meta("_origin", "text not null", "what brought this version: scan, webhook or push"),
  meta("_run_id", "bigint", "the run that landed this version (tributary.runs)", "integer"),
  meta("_source", "text", "the request or event that brought this version"),
  meta("_observed_at", "timestamptz not null", "when the read that brought this version began", "timestamp"),
  meta("_deleted_at", "timestamptz", "when the record was found to be gone; null while it exists", "timestamp")
]

/** The first column of every table and view. */
const company = meta("_company_id", "bigint not null", "the number of the company that the record is of", "integer")

/** The last column of the superseded versions. */
const validTo = meta(
  "_valid_to",
  "timestamptz not null",
  "when the read that brought the next version began",
  "timestamp"
)

/** The tables of a resource. */
export const tableOf = (resource: Resource, datasets: Datasets = datasetsDefault): Table => {
  const name = resource.table ?? resource.path
  const supersededName = `${name}${supersededSuffix}`
  return {
    resource,
    datasets,
    name,
    current: `${identifier(datasets.current)}.${identifier(name)}`,
    superseded: `${identifier(datasets.history)}.${identifier(supersededName)}`,
    view: `${identifier(datasets.history)}.${identifier(name)}`,
    asOf: `${identifier(datasets.asOf)}.${identifier(name)}`,
    supersededName,
    columns: resource.fields.map((field) => columnOf(field, resource.roles)),
    meta: metaColumns
  }
}

/** The column of a role's field; undefined where the resource does not have it. */
export const roleColumn = ({ columns, resource }: Table, role: keyof FieldRoles): Column | undefined =>
  columns.find(({ field }) => field === resource.roles[role])

/** The columns of the primary keys. */
export const keys = {
  currentKey: [company.name, keyName],
  supersededKey: [company.name, keyName, "_version"]
} as const

/** The columns of the current records and of the view as of a moment. */
export const currentColumns = ({ columns, meta }: Table): ReadonlyArray<Column> => [company, ...columns, ...meta]

/** The columns of the superseded versions. */
export const supersededColumns = (table: Table): ReadonlyArray<Column> => [...currentColumns(table), validTo]

const createTable = (name: string, columns: ReadonlyArray<Column>, key: ReadonlyArray<string>): string =>
  `create table ${name} (\n  ${[
    ...columns.map(({ sql, sqlType }) => `${sql} ${sqlType}`),
    `primary key (${key.map(identifier).join(", ")})`
  ].join(",\n  ")}\n)`

const createCurrent = (table: Table): string => createTable(table.current, currentColumns(table), keys.currentKey)

const createSuperseded = (table: Table): string =>
  createTable(table.superseded, supersededColumns(table), keys.supersededKey)

/** The name of the triggers that note rows and versions that are deleted by hand. */
export const removalTrigger = "note_removal"

const noteRemoval = (table: string, body: string): string =>
  `create trigger ${removalTrigger} after delete on ${table} referencing old table as removed for each statement execute function ${body}`

const noteRemovedRows = ({ current, superseded, resource }: Table): string =>
  noteRemoval(current, `tributary.note_removed_rows(${literal(resource.path)}, ${literal(superseded)})`)

const noteRemovedVersions = ({ superseded, resource }: Table): string =>
  noteRemoval(superseded, `tributary.note_removed_versions(${literal(resource.path)})`)

/** The columns of the view of all versions. */
export const historyColumns = (table: Table): ReadonlyArray<Pick<Column, "name" | "sql" | "comment">> => {
  const shared = (...names: ReadonlyArray<string>) => currentColumns(table).filter(({ name }) => names.includes(name))
  const own = (name: string, comment: string) => ({ name, sql: identifier(name), comment })
  return [
    ...shared("_company_id", keyName, "_version", "_op", "_origin", "_run_id", "_source"),
    own("_valid_from", "when the read that brought this version began"),
    own("_valid_to", `${validTo.comment}; null for the newest version`),
    own("record", "the record of this version as JSON: decimals as text, times in UTC")
  ]
}

/** Postgres takes at most 100 arguments to a function. */
const pairsMax = 45

/** SQL of a column's value as the source sends it: decimals as text, instants in UTC. */
export const sentValue = ({ kind, sql }: Pick<Column, "kind" | "sql">, alias: string): string => {
  const value = `${alias}.${sql}`
  if (kind === "decimal") return `${value}::text`
  if (kind === "date") return `to_char(${value}, 'YYYY-MM-DD')`
  return kind === "timestamp" ? `to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')` : value
}

/** The record as the source sends it, as JSON: decimals as strings, instants in UTC. */
export const recordJson = (table: Table, alias: string): string => {
  const pairs = table.columns.map((column) => `${literal(column.field)}, ${sentValue(column, alias)}`)
  const chunks: Array<string> = []
  for (let at = 0; at < pairs.length; at += pairsMax) {
    chunks.push(`jsonb_build_object(${pairs.slice(at, at + pairsMax).join(", ")})`)
  }
  chunks.push(
    `case when ${alias}."custom_fields" is null then '{}' else jsonb_build_object('custom_fields', ${alias}."custom_fields") end`
  )
  chunks.push(`coalesce(${alias}."_extra", '{}')`)
  return chunks.join(" || ")
}

/** The view of every version of a row: the superseded ones and the current one. */
const createView = (table: Table): string => {
  const columns = (alias: string, validTo: string) =>
    `${alias}."_company_id", ${alias}."id", ${alias}."_version", ${alias}."_observed_at" as "_valid_from", ${validTo} as "_valid_to", ` +
    `${alias}."_op", ${alias}."_origin", ${alias}."_run_id", ${alias}."_source", ${recordJson(table, alias)} as "record"`
  return (
    `create or replace view ${table.view} as\n` +
    `select ${columns("s", `s."_valid_to"`)} from ${table.superseded} s\nunion all\n` +
    `select ${columns("c", "null::timestamptz")} from ${table.current} c`
  )
}

/** Statements for the comments that differ. `found` has the comments of a relation that exists. */
export const commentsOn = (
  relation: string,
  columns: ReadonlyArray<Pick<Column, "name" | "sql" | "comment">>,
  found: ReadonlyMap<string, { readonly comment: string | null }> | undefined
): ReadonlyArray<string> =>
  columns.flatMap(({ name, sql, comment }) =>
    found?.get(name)?.comment === comment ? [] : [`comment on column ${relation}.${sql} is ${literal(comment)}`]
  )

export const statements = { createCurrent, createSuperseded, createView, noteRemovedRows, noteRemovedVersions }

/** The children that are read again when a record of the resource changes. */
export const childrenOf = (
  tables: ReadonlyMap<string, Table>,
  path: string
): ReadonlyArray<{ readonly resource: string; readonly field: string }> =>
  [...tables.values()].flatMap(({ resource: { path: resource, parent, modifiedSince } }) =>
    parent !== null && parent.resource === path && !modifiedSince ? [{ resource, field: parent.field }] : []
  )
