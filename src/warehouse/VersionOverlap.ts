/**
 * Versions of one record that are valid at one moment: a query as of that moment would count the record twice. A restore of
 * the rows or of the history alone may leave them.
 *
 * Promise: a search reads a bounded number of versions of each table; of a large table, those that ended lately. A repair
 * ends a version where the next one begins, and deletes nothing.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import { rows } from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Table } from "./Table.ts"

export interface Overlap {
  readonly table: Table
  /** The record of the first one. */
  readonly id: string
}

/** Versions of one table that a search reads. */
const versionsMax = 10_000
/** A table with more versions by its statistics is searched only for those that ended lately. */
const smallRowsMax = 100_000
const lately = "interval '7 days'"

export const sizesStatement = Statement.make({
  name: "estimate the versions of the history",
  params: ["text"],
  columns: { name: "name", rows: "float8" },
  text: `select c.relname as name, c.reltuples::float8 as rows from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $1::text and c.relkind = 'r'`
})

/** SQL: when the next version of the record begins. A version may be empty: only neighbours are compared. */
const nextBegin = ({ superseded, current }: Table): string =>
  `coalesce((select h."_observed_at" from ${superseded} h where h."_company_id" = s."_company_id" and h."id" = s."id" ` +
  `and h."_version" > s."_version" order by h."_version" limit 1), ` +
  `(select c."_observed_at" from ${current} c where c."_company_id" = s."_company_id" and c."id" = s."id"))`

const searchSql = (table: Table, isLarge: boolean): string =>
  `select s."id"::text as id from (select * from ${table.superseded} ` +
  (isLarge ? `where "_valid_to" > (select tributary.now()) - ${lately} ` : "") +
  `limit ${versionsMax}) s where s."_valid_to" > ${nextBegin(table)} limit 1`

/** The tables of which two versions of a record are valid at one moment. */
export const find = Effect.fn("VersionOverlap.find")(function* (tables: ReadonlyArray<Table>) {
  const overlaps: Array<Overlap> = []
  const sizes = new Map<string, number>()
  for (const dataset of new Set(tables.map(({ datasets }) => datasets.history))) {
    for (const { name, rows } of yield* Statement.run(sizesStatement, [dataset])) sizes.set(`${dataset}.${name}`, rows)
  }
  for (const table of tables) {
    const size = sizes.get(`${table.datasets.history}.${table.supersededName}`)
    if (size === undefined) continue
    const [first] = yield* rows<{ id: string }>(searchSql(table, size > smallRowsMax))
    if (first !== undefined) overlaps.push({ table, id: first.id })
  }
  return overlaps
})

/** Ends every version of the table where the next one begins; how many it changed. */
export const repair = (table: Table): Sql.Query<number> =>
  Effect.map(
    rows(
      `with ended as (update ${table.superseded} s set "_valid_to" = ${nextBegin(table)} ` +
        `where s."_valid_to" > ${nextBegin(table)} returning 1) select from ended`
    ),
    ({ length }) => length
  )
