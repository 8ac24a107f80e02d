/**
 * TypeScript types of the warehouse's tables, as the drivers `pg` and Kysely return their rows.
 *
 * Promise: the columns are those that `src/warehouse/Table.ts` creates. A `bigint` and a `numeric` are strings, because
 * a number would lose digits.
 */
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import { currentColumns, tableOf } from "../../../src/warehouse/Table.ts"
import { interfaceOf, typeName } from "./Source.ts"

const head = `/**
 * Types of the tables and views of the warehouse, made from the catalogue.
 *
 * A value has the type that \`pg\` gives it without parsers of your own: \`bigint\` and \`numeric\` are strings, \`date\` and
 * \`timestamptz\` are dates, \`jsonb\` is parsed. A row with \`_deleted_at\` is a tombstone: its record is gone at the source.
 */
import type { Records } from "./connectors/service-v2/package/records.js"

/** A version of a record in the dataset \`erp_history\`. */
export interface HistoryTable<R> {
  readonly _company_id: string
  readonly id: string
  /** Counts the versions of the row, from 1. */
  readonly _version: string
  readonly _op: "insert" | "update" | "delete"
  /** What brought this version: scan, webhook or push. */
  readonly _origin: string
  readonly _run_id: string | null
  readonly _source: string | null
  /** When the read that brought this version began. */
  readonly _valid_from: Date
  /** When the read that brought the next version began; null for the newest version. */
  readonly _valid_to: Date | null
  /** The record as the source sent it: decimals are strings. */
  readonly record: R
}

/** The views of \`erp_history\` by name: every version of every record. */
export type HistoryTables = { readonly [R in keyof Records]: HistoryTable<Records[R]> }

/**
 * All tables with their datasets, for \`new Kysely<Database>\`: \`erp.invoices\` has the current records and the
 * tombstones, \`erp_history.invoices\` every version, \`erp_asof.invoices\` the records as of the session's moment.
 */
export type Database = { readonly [R in keyof Tables as \`erp.\${R}\` | \`erp_asof.\${R}\`]: Tables[R] } & {
  readonly [R in keyof HistoryTables as \`erp_history.\${R}\`]: HistoryTables[R]
}
`

/** By the name of the type in Postgres, without its precision. */
const types: Readonly<Record<string, string>> = {
  bigint: "string",
  numeric: "string",
  boolean: "boolean",
  text: "string",
  date: "Date",
  timestamptz: "Date",
  jsonb: "unknown"
}

const typeOf = (sqlType: string): string => {
  const name = /^[a-z]+/.exec(sqlType)?.[0] ?? ""
  const type = types[name]
  if (type === undefined) throw new Error(`a column of type ${sqlType} has no TypeScript type`)
  return type === "unknown" || sqlType.includes("not null") ? type : `${type} | null`
}

/** The declarations of `tributary-sync/warehouse`. */
export const tableTypes = (catalogue: Catalogue): string => {
  const tables = [...catalogue.resources.values()].map((resource) => tableOf(resource))
  return [
    head,
    interfaceOf(
      "Tables",
      "The tables of `erp` by name: the current records and the tombstones.",
      tables.map(({ name, resource }) => ({ name, type: `${typeName(name)}Table`, comment: resource.purpose }))
    ),
    ...tables.map((table) =>
      interfaceOf(
        `${typeName(table.name)}Table`,
        `${table.resource.purpose} [${table.resource.basis}]`,
        currentColumns(table).map(({ name, sqlType, comment }) => ({ name, type: typeOf(sqlType), comment }))
      )
    )
  ].join("\n")
}
