/**
 * The tables in which records are looked up for people, and the indexes that a look-up can use.
 *
 * Promise: a look-up by a field uses an index, or reads a small table. {@link canFind} says so before it runs.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { literal } from "../warehouse/Identifier.ts"
import { rowsMin } from "../warehouse/Indexes.ts"
import { type Column, roleColumn, type Table } from "../warehouse/Table.ts"

/** A table up to this size is read as a whole in some milliseconds. */
const smallBytesMax = 32 * 1024 * 1024

export const tablesStatement = Statement.make({
  name: "look for tables and their indexes",
  params: ["name", "text[]"],
  columns: { name: "name", isEmpty: "bool", isSmall: "bool", columns: "text[]", indexes: "text[]" },
  text: `select c.relname as name, pg_relation_size(c.oid) = 0 as "isEmpty", c.reltuples < ${rowsMin} and pg_relation_size(c.oid) <= ${smallBytesMax} as "isSmall",
                array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
                array(select coalesce(a.attname, x.relname)::text
                        from pg_index i join pg_class x on x.oid = i.indexrelid
                        left join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[1] and i.indpred is null
                       where i.indrelid = c.oid and i.indisvalid and i.indnatts > 1
                         and i.indkey[0] = (select k.attnum from pg_attribute k where k.attrelid = c.oid and k.attname = '_company_id')
                     ) as indexes
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $1 and c.relkind in ('r', 'p') and c.relname::text = any($2)`
})

/** A table that exists. */
export interface FoundTable {
  readonly table: Table
  readonly isSmall: boolean
  /** Columns that exist. */
  readonly columns: ReadonlySet<string>
  /** The columns, or else the names, of indexes that begin with the company. */
  readonly indexes: ReadonlySet<string>
}

/** The tables that exist and have rows, in their order. */
export const findTables = Effect.fnUntraced(function* (tables: ReadonlyArray<Table>) {
  const [first] = tables
  if (first === undefined) return []
  const rows = yield* Statement.run(tablesStatement, [first.datasets.current, tables.map(({ name }) => name)])
  const byName = new Map(rows.map((row) => [row.name, row]))
  return tables.flatMap((table): ReadonlyArray<FoundTable> => {
    const row = byName.get(table.name)
    return row === undefined || row.isEmpty
      ? []
      : [{ table, isSmall: row.isSmall, columns: new Set(row.columns), indexes: new Set(row.indexes) }]
  })
})

/** Whether records are found by the column, or by the index of this name, without reading a large table. */
export const canFind = ({ isSmall, indexes }: FoundTable, name: string | null): boolean =>
  isSmall || (name !== null && indexes.has(name))

// ------------------------------------------------------------------------------------------------------ a record's line

/** What identifies a record for people. */
export interface RecordLine {
  readonly resource: string
  readonly company: bigint
  readonly id: string
  /** Its key, or the caller's own key; null without both. */
  readonly key: string | null
  /** Its day and its first amount, with their fields; of a line the item, quantity and amount. Empty without them. */
  readonly detail: string
  readonly isCancelled: boolean
  readonly isDeleted: boolean
}

export const lineColumns = {
  resource: "text",
  company: "int8",
  id: "text",
  key: "text?",
  detail: "text",
  isCancelled: "bool",
  isDeleted: "bool"
} as const

/** Characters of a text in a line. */
const textMax = 200

/** The selected columns of {@link lineColumns}. */
export const selectLine = ({ table, columns }: FoundTable): string => {
  const existing = (column: Column | undefined) =>
    column !== undefined && columns.has(column.name) ? column : undefined
  const { businessDate, key, path } = table.resource
  const of = (field: string | undefined) => existing(table.columns.find((one) => one.field === field))
  const keys = [of(key?.field), existing(roleColumn(table, "externalKey"))].flatMap((one) =>
    one === undefined ? [] : [`nullif(${one.sql}, '')`]
  )
  const { fields } = table.resource
  const first = (kind: "money" | "qty") =>
    of(fields.find(({ type }) => type._tag === "decimal" && type.kind === kind)?.name)
  const details = (): ReadonlyArray<Column | undefined> => {
    if (businessDate === null) return []
    // A line counts on the day of its document.
    if ("through" in businessDate) {
      const code = fields.find(
        ({ reference }) => reference?.half === "code" && reference.pairedWith !== businessDate.through
      )
      return [of(code?.name), first("qty"), first("money")]
    }
    const day = of(businessDate.field)
    return day === undefined ? [] : [day, first("money")]
  }
  const cancelled = existing(roleColumn(table, "cancelled"))
  return (
    `select ${literal(path)}::text as resource, _company_id as company, id::text as id, ` +
    `${keys.length === 0 ? "null::text" : `left(coalesce(${keys.join(", ")}), ${textMax})`} as key, ` +
    `concat_ws(', ', null::text${details()
      .flatMap((one) => (one === undefined ? [] : [`, ${literal(`${one.field} `)} || ${one.sql}::text`]))
      .join("")}) as detail, ` +
    `${cancelled === undefined ? "false" : `coalesce(${cancelled.sql}, false)`} as "isCancelled", _deleted_at is not null as "isDeleted"`
  )
}
