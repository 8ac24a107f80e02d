/**
 * The tables of an export, and the queries that read them.
 *
 * Promise: no value loses a digit. Decimals are written as text where the format has no decimals (NDJSON), instants as RFC
 * 3339 in UTC with microseconds.
 */
import * as Statement from "../postgres/Statement.ts"
import { identifier, literal } from "../warehouse/Identifier.ts"
import type { Format } from "./Manifest.ts"

export interface ExportColumn {
  readonly name: string
  /** As Postgres prints it (`format_type`). */
  readonly type: string
}

export interface ExportTable {
  readonly dataset: string
  readonly name: string
  readonly columns: ReadonlyArray<ExportColumn>
}

export const columnsStatement = Statement.make({
  name: "read the columns of the exported tables",
  params: ["text[]", "text[]"],
  columns: { dataset: "text", name: "text", columns: "text[]", types: "text[]" },
  text: `select n.nspname::text as dataset, c.relname::text as name,
                array_agg(a.attname::text order by a.attnum) as columns,
                array_agg(format_type(a.atttypid, a.atttypmod) order by a.attnum) as types
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
           join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          where n.nspname = any($1::text[]) and c.relname = any($2::text[]) and c.relkind in ('r', 'p', 'v')
          group by 1, 2 order by 1, 2`
})

export const tableOfRow = ({
  dataset,
  name,
  columns,
  types
}: Statement.RowOf<typeof columnsStatement>): ExportTable => ({
  dataset,
  name,
  columns: columns.map((column, index) => ({ name: column, type: types[index]! }))
})

/** A column as the format shows it. */
const shown = ({ name, type }: ExportColumn, format: Format): string => {
  const column = identifier(name)
  const isJson = format === "ndjson"
  switch (type) {
    case "timestamp with time zone":
      return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
    case "date":
      return `to_char(${column}, 'YYYY-MM-DD')`
    case "bigint":
    case "text":
      return column
    case "boolean":
    case "json":
    case "jsonb":
      return isJson ? column : `${column}::text`
    default:
      return isJson ? `${column}::text` : column
  }
}

/** Characters that JSON text never contains, so that COPY neither quotes nor escapes a line. */
const rawLines = String.raw`format csv, delimiter e'\x02', quote e'\x01'`

export const truncatedStatement = Statement.make({
  name: "find tables that the change feed begins again",
  params: ["int8"],
  columns: { view: "text" },
  text: "select distinct history as view from tributary.change_batches where last_position > $1 and kind = 'truncate'"
})

/** Which rows of a table are exported. */
export interface RowSelection {
  /** Null exports those of all companies. */
  readonly companyId: bigint | null
  /** Exports the records with changes after this position of the feed, in the view with their history; null exports all. */
  readonly changed: { readonly since: bigint; readonly view: string; readonly isHistory: boolean } | null
}

const conditionOf = ({ companyId, changed }: RowSelection): string => {
  const conditions = [
    ...(companyId === null ? [] : [`"_company_id" = ${companyId}`]),
    ...(changed === null
      ? []
      : [
          `("_company_id", "id"${changed.isHistory ? `, "_version"` : ""}) in (` +
            `select b.company_id, u.id${changed.isHistory ? ", coalesce(u.version, 1)" : ""} from tributary.change_batches b ` +
            `cross join unnest(b.ids, b.versions) u(id, version) ` +
            `where b.last_position > ${changed.since} and b.history = ${literal(changed.view)})`
        ])
  ]
  return conditions.length === 0 ? "" : ` where ${conditions.join(" and ")}`
}

/** COPY of these rows of the table. */
export const copyStatement = (table: ExportTable, format: Format, selection: RowSelection): string => {
  const columns = table.columns.map((column) => `${shown(column, format)} as ${identifier(column.name)}`).join(", ")
  const rows = `select ${columns} from ${identifier(table.dataset)}.${identifier(table.name)}${conditionOf(selection)}`
  return format === "ndjson"
    ? `copy (select row_to_json(r) from (${rows}) r) to stdout (${rawLines})`
    : `copy (${rows}) to stdout (format csv${format === "csv" ? ", header" : ""})`
}
