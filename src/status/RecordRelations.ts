/**
 * The records to which a record refers, and those that refer to it, as the references of the catalogue say.
 *
 * Promise: every look-up uses the primary key or an index of the reference, or reads a small table. References of large
 * tables without an index are named. The count of a reference ends at {@link countMax}.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { literal } from "../warehouse/Identifier.ts"
import type { Table } from "../warehouse/Table.ts"
import { canFind, type FoundTable, lineColumns, type RecordLine, selectLine } from "./RecordTables.ts"

/** Records of one reference that are listed. */
export const listedMax = 5
export const countMax = 1_000

/** A field of the record that names another one by number. */
export interface NamedRecord {
  readonly field: string
  readonly resource: string
  readonly id: string
}

export interface ReferringRecords {
  readonly resource: string
  readonly field: string
  /** {@link countMax} + 1 stands for more. */
  readonly count: number
  /** Those with the highest numbers. */
  readonly records: ReadonlyArray<RecordLine>
}

export interface Referring {
  readonly lists: ReadonlyArray<ReferringRecords>
  /** References that were not looked up. */
  readonly unsearched: ReadonlyArray<{ readonly resource: string; readonly field: string }>
}

/** The fields of a table that name a record of the resource by number. */
export const referencesTo = ({ resource }: Table, path: string): ReadonlyArray<string> =>
  resource.fields.flatMap(({ name, reference }) =>
    reference !== null && reference.half === "id" && reference.resource === path ? [name] : []
  )

/** The lines of records by `<resource> <id>`, as far as they exist. */
export const readLines = Effect.fnUntraced(function* (
  tables: ReadonlyArray<FoundTable>,
  company: bigint,
  wanted: ReadonlyArray<Pick<NamedRecord, "resource" | "id">>
) {
  const byPath = new Map(tables.map((one) => [one.table.resource.path, one]))
  const ids: Array<string> = []
  const parts = wanted.flatMap(({ resource, id }) => {
    const found = byPath.get(resource)
    if (found === undefined) return []
    ids.push(id)
    return [
      `(${selectLine(found)} from ${found.table.current} where _company_id = $1::bigint and id = ($2::bigint[])[${ids.length}])`
    ]
  })
  const rows =
    parts.length === 0
      ? []
      : yield* Statement.run(
          {
            name: "read the lines of records",
            params: ["int8", "int8[]"],
            columns: lineColumns,
            text: parts.join("\nunion all\n")
          },
          [company, ids]
        )
  return new Map(rows.map((row): readonly [string, RecordLine] => [`${row.resource} ${row.id}`, row]))
})

/** The records that refer to a record. */
export const readReferring = Effect.fnUntraced(function* (
  tables: ReadonlyArray<FoundTable>,
  company: bigint,
  { resource, id }: Pick<NamedRecord, "resource" | "id">
) {
  const references = tables.flatMap((found) =>
    referencesTo(found.table, resource).flatMap((field) => {
      const column = found.table.columns.find((one) => one.field === field)
      return column !== undefined && found.columns.has(column.name) ? [{ found, field, column }] : []
    })
  )
  const searched = references.filter(({ found, column }) => canFind(found, column.name))
  const parts = searched.map(
    ({ found, field, column }) =>
      `(select l.*, ${literal(field)}::text as field, count(*) over ()::int4 as count from (${selectLine(found)} from ${found.table.current} ` +
      `where _company_id = $1::bigint and ${column.sql} = $2::bigint limit ${countMax + 1}) l order by l.id::bigint desc limit ${listedMax})`
  )
  const rows =
    parts.length === 0
      ? []
      : yield* Statement.run(
          {
            name: "read the records that refer to a record",
            params: ["int8", "int8"],
            columns: { ...lineColumns, field: "text", count: "int4" },
            text: parts.join("\nunion all\n")
          },
          [company, id]
        )
  const lists = Map.groupBy(rows, ({ resource: path, field }) => `${path} ${field}`)
  return {
    lists: [...lists.values()].map((records) => ({
      resource: records[0]!.resource,
      field: records[0]!.field,
      count: records[0]!.count,
      records
    })),
    unsearched: references
      .filter((one) => !searched.includes(one))
      .map(({ found, field }) => ({ resource: found.table.resource.path, field }))
  } satisfies Referring
})
