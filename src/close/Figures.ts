/**
 * Count, sums and digest of the records of a table, or of the rows of a model, by one statement.
 *
 * Promise: equal values give equal figures, on every version of Postgres, whatever the settings, the order of the rows, and
 * the order in which the columns were added. A sum is an exact decimal. The memory of this program does not grow with the
 * rows; that of the server is the sort of one part in 256 of their hashes.
 *
 * The digest: the SHA-256 of each record's JSON (`jsonb` as Postgres prints it, without nulls; decimals as text with all
 * decimals, instants in UTC), in ascending order; those with the same first byte are concatenated and hashed; these hashes,
 * by that byte, are concatenated and hashed.
 */
import { type BusinessDate, isCancellable } from "../catalogue/Resource.ts"
import { identifier, literal } from "../warehouse/Identifier.ts"
import type { Model } from "../warehouse/Model.ts"
import { type Column, recordJson, roleColumn, type Table, tableOf } from "../warehouse/Table.ts"
import type { Resource } from "../catalogue/Resource.ts"
import * as JsonText from "./JsonText.ts"
import type { Period } from "./Period.ts"

export interface Figures {
  readonly count: number
  /** The sums of all records, cancelled ones included, by field. */
  readonly sums: Readonly<Record<string, string>>
  /** The cancelled records among them; null where the resource has none. */
  readonly cancelled: { readonly count: number; readonly sums: Readonly<Record<string, string>> } | null
  readonly digest: string
}

/** The record of the other resource whose business date counts; null where the date is a field of its own. */
export interface DatedThrough {
  readonly parent: Table
  /** The column with its number. */
  readonly column: string
}

/** The field with the business date of a resource. */
export interface Dated {
  readonly through: DatedThrough | null
  /** The table with the date, and its field. */
  readonly table: Table
  readonly field: string
  readonly isTimestamp: boolean
}

const columnOf = ({ columns }: Table, field: string): string => columns.find((column) => column.field === field)!.sql

/** Null for a resource whose records belong to no period. */
export const datedOf = (table: Table, resources: ReadonlyMap<string, Resource>): Dated | null => {
  const { businessDate } = table.resource
  if (businessDate === null) return null
  const own = (of: Table, date: BusinessDate, through: DatedThrough | null): Dated | null =>
    "through" in date
      ? null
      : {
          through,
          table: of,
          field: date.field,
          isTimestamp: of.resource.field.get(date.field)?.type._tag === "timestamp"
        }
  if ("field" in businessDate) return own(table, businessDate, null)
  const name = table.resource.field.get(businessDate.through)?.reference?.resource
  const parent = name === undefined ? undefined : resources.get(name)
  if (parent === undefined || parent.businessDate === null) return null
  const other = tableOf(parent, table.datasets)
  return own(other, parent.businessDate, { parent: other, column: columnOf(table, businessDate.through) })
}

/** How the file names the business date: `day`, or `parentid → parents.day`. */
export const nameOfDate = ({ resource }: Table, dated: Dated): string =>
  dated.through === null || resource.businessDate === null || !("through" in resource.businessDate)
    ? dated.field
    : `${resource.businessDate.through} → ${dated.table.resource.path}.${dated.field}`

/** The day of a row, in the time zone of the period. */
export const dayOfRow = (dated: Dated, alias: string, { timeZone }: Period): string => {
  const column = `${alias}.${columnOf(dated.table, dated.field)}`
  return dated.isTimestamp ? `(${column} at time zone ${literal(timeZone)})::date` : column
}

/** The day of a record as JSON. */
export const dayOfRecord = (dated: Dated, record: string, { timeZone }: Period): string => {
  const value = `(${record} ->> ${literal(dated.field)})`
  return dated.isTimestamp ? `(${value}::timestamptz at time zone ${literal(timeZone)})::date` : `${value}::date`
}

export const isInPeriod = (day: string, { firstDay, lastDay }: Period): string =>
  `coalesce(${day} between ${literal(firstDay)}::date and ${literal(lastDay)}::date, false)`

/** The join that makes the row with the business date available as `d`. */
export const joinDated = ({ through }: Dated, alias: string): string =>
  through === null
    ? ""
    : ` left join ${through.parent.current} d on d."_company_id" = ${alias}."_company_id" and d."id" = ${alias}.${through.column}`

const hashOf = (json: string): string => `sha256(convert_to(${json}, 'UTF8'))`

const dayText = (value: string): string => `to_char(${value}, 'YYYY-MM-DD')`
const instantText = (value: string): string => `to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

const memberOf = ({ field: name, sql, sqlType, kind }: Column, alias: string): JsonText.Member => {
  const value = `${alias}.${sql}`
  switch (kind) {
    case "decimal":
      return { name, value: `${value}::text`, kind: "quoted" }
    case "date":
      return { name, value: dayText(value), kind: "quoted" }
    case "timestamp":
      return { name, value: instantText(value), kind: "quoted" }
    case "boolean":
      return { name, value, kind: "boolean" }
    case "string":
      return { name, value, kind: "text" }
    case "integer":
      return { name, value, kind: sqlType.startsWith("bigint") ? "plain" : "json" }
    default:
      return { name, value, kind: "json" }
  }
}

/** The text of `recordJson` without nulls, for a row without `_extra`. */
const recordText = (table: Table, alias: string): string =>
  JsonText.objectText([
    ...table.columns.map((column) => memberOf(column, alias)),
    { name: "custom_fields", value: `${alias}."custom_fields"`, kind: "json" }
  ])

/** A named part of the rows, with its condition. */
interface Part {
  readonly name: string
  readonly condition: string
}

/** A statement, and how to read the one row that it answers, all of whose columns are text. */
export interface FiguresQuery {
  readonly text: string
  readonly read: (row: Readonly<Record<string, string>>) => {
    readonly tombstones: number
    readonly parts: Readonly<Record<string, Figures>>
  }
}

/**
 * `rows` answers `hash` (null for a tombstone), `day`, `cancelled` and `v0`, `v1`, … for the fields that are summed. The
 * inner query has a row for each first byte of the hashes.
 */
const queryOf = (
  rows: string,
  fields: ReadonlyArray<string>,
  parts: ReadonlyArray<Part>,
  hasCancelled: boolean
): FiguresQuery => {
  const inner: Array<string> = ["get_byte(hash, 0) as bucket", "count(*) filter (where hash is null) as gone"]
  const outer: Array<string> = ["coalesce(sum(gone), 0)::text as gone"]
  for (const [index, { condition }] of parts.entries()) {
    const of = `hash is not null and ${condition}`
    inner.push(`count(*) filter (where ${of}) as n${index}`)
    inner.push(`sha256(string_agg(hash, ''::bytea order by hash) filter (where ${of})) as h${index}`)
    outer.push(`coalesce(sum(n${index}), 0)::text as n${index}`)
    outer.push(
      `encode(sha256(coalesce(string_agg(h${index}, ''::bytea order by bucket), ''::bytea)), 'hex') as h${index}`
    )
    const sets = hasCancelled ? [["s", of] as const, ["x", `${of} and cancelled`] as const] : [["s", of] as const]
    for (const [set, where] of sets) {
      for (const field of fields.keys()) {
        inner.push(`sum(v${field}) filter (where ${where}) as ${set}${index}_${field}`)
        outer.push(`coalesce(sum(${set}${index}_${field}), 0)::text as ${set}${index}_${field}`)
      }
    }
    if (!hasCancelled) continue
    inner.push(`count(*) filter (where ${of} and cancelled) as c${index}`)
    outer.push(`coalesce(sum(c${index}), 0)::text as c${index}`)
  }
  const sumsOf = (row: Readonly<Record<string, string>>, prefix: string) =>
    Object.fromEntries(fields.map((field, at) => [field, row[`${prefix}_${at}`]!]))
  return {
    // Without the offset, Postgres would compute the hash once for each column that uses it.
    text: `with r as (${rows} offset 0), b as (select ${inner.join(", ")} from r group by 1) select ${outer.join(", ")} from b`,
    read: (row) => ({
      tombstones: Number(row["gone"]),
      parts: Object.fromEntries(
        parts.map(({ name }, index): [string, Figures] => [
          name,
          {
            count: Number(row[`n${index}`]),
            sums: sumsOf(row, `s${index}`),
            cancelled: hasCancelled ? { count: Number(row[`c${index}`]), sums: sumsOf(row, `x${index}`) } : null,
            digest: row[`h${index}`]!
          }
        ])
      )
    })
  }
}

/** The figures of a table: of all its records, and of a resource with business dates those until the period's end and in it. */
export const ofTable = (table: Table, dated: Dated | null, period: Period): FiguresQuery => {
  const summed = table.columns.filter(({ field }) => {
    const type = table.resource.field.get(field)?.type
    return type?._tag === "decimal" && type.kind !== "number"
  })
  const cancelled = isCancellable(table.resource) ? roleColumn(table, "cancelled") : undefined
  const day = dated === null ? "null::date" : dayOfRow(dated, dated.through === null ? "c" : "d", period)
  // A row of which `_extra` replaces members needs the merge of `jsonb`.
  const json =
    `case when c."_extra" is null or c."_extra" = '{}' then ${recordText(table, "c")} ` +
    `else jsonb_strip_nulls(${recordJson(table, "c")})::text end`
  const rows =
    `select case when c."_deleted_at" is null then ${hashOf(json)} end as hash, ${day} as day, ` +
    `${cancelled === undefined ? "false" : `coalesce(c.${cancelled.sql}, false)`} as cancelled` +
    summed.map(({ sql }, index) => `, c.${sql} as v${index}`).join("") +
    ` from ${table.current} c${dated === null ? "" : joinDated(dated, "c")} where c."_company_id" = $1`
  const parts = [
    { name: "table", condition: "true" },
    ...(dated === null
      ? []
      : [
          { name: "untilEnd", condition: `coalesce(day <= ${literal(period.lastDay)}::date, false)` },
          { name: "period", condition: isInPeriod("day", period) }
        ])
  ]
  return queryOf(
    rows,
    summed.map(({ field }) => field),
    parts,
    cancelled !== undefined
  )
}

const modelMemberOf = ({ name, type }: Model["columns"][number]): JsonText.Member => {
  const value = `m.${identifier(name)}`
  switch (type) {
    case "numeric":
      return { name, value: `${value}::text`, kind: "quoted" }
    case "date":
      return { name, value: dayText(value), kind: "quoted" }
    case "timestamp with time zone":
      return { name, value: instantText(value), kind: "quoted" }
    case "bigint":
    case "integer":
      return { name, value, kind: "plain" }
    case "boolean":
      return { name, value, kind: "boolean" }
    case "text":
      return { name, value, kind: "text" }
    default:
      return { name, value, kind: "json" }
  }
}

/** The column of a model that names the company. */
const companyColumn = "company_id"

/** The figures of a model of the dataset; null where its rows belong to no company. */
export const ofModel = (model: Model, dataset: string): FiguresQuery | null => {
  if (!model.columns.some(({ name }) => name === companyColumn)) return null
  const summed = model.columns.filter(({ type }) => type === "numeric")
  const rows =
    `select ${hashOf(JsonText.objectText(model.columns.map(modelMemberOf)))} as hash` +
    summed.map(({ name }, index) => `, m.${identifier(name)} as v${index}`).join("") +
    ` from ${identifier(dataset)}.${identifier(model.name)} m where m.${identifier(companyColumn)} = $1`
  return queryOf(
    rows,
    summed.map(({ name }) => name),
    [{ name: "table", condition: "true" }],
    false
  )
}
