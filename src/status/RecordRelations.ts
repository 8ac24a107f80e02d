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
/** Records of one reference that a page lists. */
export const listMax = 200

/** A field of the record that names another one by number. */
export interface NamedRecord {
  readonly field: string
  readonly resource: string
  readonly id: string
}

export interface ReferringRecords {
  readonly resource: string
  readonly field: string
  /** The resource whose listed records they refer to; null: they refer to the record itself. */
  readonly through: string | null
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

/** A reference that can be looked up. */
interface Reference {
  readonly found: FoundTable
  readonly field: string
  /** The quoted column. */
  readonly sql: string
  /** The resource through which it is reached; null for the record itself. */
  readonly through: string | null
  readonly ids: ReadonlyArray<string>
}

const referencesOf = (
  tables: ReadonlyArray<FoundTable>,
  to: Pick<Reference, "through" | "ids"> & { readonly resource: string }
) =>
  tables.flatMap((found) =>
    referencesTo(found.table, to.resource).flatMap((field) => {
      const column = found.table.columns.find((one) => one.field === field)
      if (column === undefined || !found.columns.has(column.name)) return []
      const reference: Reference = { found, field, sql: column.sql, through: to.through, ids: to.ids }
      return [{ reference, isFound: canFind(found, column.name) }]
    })
  )

const readLists = (company: bigint, references: ReadonlyArray<Reference>, max = listedMax) => {
  if (references.length === 0) return Effect.succeed([])
  const parts = references.map(
    ({ found, field, sql, through, ids }) =>
      `(select l.*, ${literal(field)}::text as field, ${through === null ? "null" : literal(through)}::text as through, count(*) over ()::int4 as count ` +
      `from (${selectLine(found)} from ${found.table.current} where _company_id = $1::bigint and ${sql} = any('{${ids.map(BigInt).join(",")}}'::bigint[]) ` +
      `limit ${countMax + 1}) l order by l.id::bigint desc limit ${max})`
  )
  const statement = {
    name: "read the records that refer to a record",
    params: ["int8"],
    columns: { ...lineColumns, field: "text", through: "text?", count: "int4" },
    text: parts.join("\nunion all\n")
  } as const
  return Effect.map(Statement.run(statement, [company]), (rows) =>
    [...Map.groupBy(rows, ({ resource, field, through }) => `${resource} ${field} ${through}`).values()].map(
      (records): ReferringRecords => {
        const { resource, field, through, count } = records[0]!
        return { resource, field, through, count, records }
      }
    )
  )
}

/** Whether a record counts on a day of its own, as a document does. */
const isDocument = ({ resource: { businessDate } }: Table): boolean => businessDate !== null && "field" in businessDate

/** The documents that refer to the listed documents: such as the payments of the invoices of an order. */
const furtherReferences = (
  tables: ReadonlyArray<FoundTable>,
  own: string,
  lists: ReadonlyArray<ReferringRecords>
): ReadonlyArray<Reference> => {
  const documents = tables.filter(({ table }) => isDocument(table) && table.resource.path !== own)
  const direct = new Set(lists.map(({ resource }) => resource))
  const listed = Map.groupBy(
    lists.filter(({ resource }) => documents.some(({ table }) => table.resource.path === resource)),
    ({ resource }) => resource
  )
  return [...listed].flatMap(([resource, of]) =>
    referencesOf(
      documents.filter(({ table }) => !direct.has(table.resource.path)),
      { resource, through: resource, ids: of.flatMap(({ records }) => records.map(({ id }) => id)) }
    ).flatMap(({ reference, isFound }) => (isFound ? [reference] : []))
  )
}

/** The records that refer to a record, and for a document also the documents behind them. */
export const readReferring = Effect.fnUntraced(function* (
  tables: ReadonlyArray<FoundTable>,
  company: bigint,
  { resource, id }: Pick<NamedRecord, "resource" | "id">
) {
  const references = referencesOf(tables, { resource, through: null, ids: [id] })
  const lists = yield* readLists(
    company,
    references.flatMap(({ reference, isFound }) => (isFound ? [reference] : []))
  )
  const own = tables.find(({ table }) => table.resource.path === resource)
  const further =
    own === undefined || !isDocument(own.table)
      ? []
      : yield* readLists(company, furtherReferences(tables, resource, lists))
  return {
    lists: [...lists, ...further],
    unsearched: references.flatMap(({ reference: { found, field }, isFound }) =>
      isFound ? [] : [{ resource: found.table.resource.path, field }]
    )
  } satisfies Referring
})

/** The records that refer to a record by one field, at most {@link listMax}; null without such a reference. */
export const readReferringBy = Effect.fnUntraced(function* (
  tables: ReadonlyArray<FoundTable>,
  company: bigint,
  { resource, id }: Pick<NamedRecord, "resource" | "id">,
  by: string
) {
  const references = referencesOf(tables, { resource, through: null, ids: [id] }).flatMap(({ reference, isFound }) =>
    isFound && `${reference.found.table.resource.path}.${reference.field}` === by ? [reference] : []
  )
  const [list] = yield* readLists(company, references, listMax)
  return list ?? null
})
