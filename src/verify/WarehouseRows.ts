/**
 * The warehouse's side of a comparison: rows as SQL answers them, column by column.
 *
 * Promise: values come as text that does not depend on the session (dates and instants through JSON), a column or table
 * that does not exist is empty, and memory holds only as many rows as were requested. Rows that scans do not read, by
 * the resource's `since`, are found by number only.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { identifier } from "../warehouse/Identifier.ts"
import { type Column, roleColumn, type Table } from "../warehouse/Table.ts"

/** A row of the current records, deleted or not. */
export interface Row {
  readonly id: string
  readonly isDeleted: boolean
  /** One per column of the table. */
  readonly columns: ReadonlyArray<string | null>
  /** JSON text. */
  readonly customFields: string | null
  /** JSON text. */
  readonly extra: string | null
}

/** A row drawn for a sample. */
export interface SampledRow {
  readonly id: string
  /** Values of the requested columns. */
  readonly values: ReadonlyArray<string | null>
}

export interface WarehouseRows {
  readonly byIds: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Row>, DatabaseError>
  /** Numbers of the rows that exist, in order, after a number (null begins). An empty answer is the end. */
  readonly liveIds: (after: bigint | null) => Effect.Effect<ReadonlyArray<bigint>, DatabaseError>
  /** Numbers of the rows that exist and hold the value in a field's column. */
  readonly liveIdsWhere: (position: number, value: string) => Effect.Effect<ReadonlyArray<string>, DatabaseError>
  /** Counts by whether the record exists, and the range of numbers. */
  readonly extent: Effect.Effect<
    { readonly live: number; readonly deleted: number; readonly min: bigint; readonly max: bigint },
    DatabaseError
  >
  /** How many different values the columns hold. */
  readonly distinct: (positions: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<number>, DatabaseError>
  /** Rows drawn by a seed, deleted ones among them; the same for the same rows and seed. */
  readonly draw: (
    count: number,
    seed: number,
    positions: ReadonlyArray<number>
  ) => Effect.Effect<ReadonlyArray<SampledRow>, DatabaseError>
}

/** Rows of one query for {@link WarehouseRows.liveIds}. */
const idsPerQuery = 10_000

/** Stands for a table that does not exist. */
const noRows = `(select null::bigint as "_company_id", null::bigint as "id", null::timestamptz as "_deleted_at" where false)`

const textOf = (column: Column): string => {
  const value = `t.${column.sql}`
  switch (column.kind) {
    case "string":
      return value
    case "date":
    case "timestamp":
      // The one form that no setting of the session changes.
      return `to_json(${value}) #>> '{}'`
    default:
      return `${value}::text`
  }
}

/** Every column is selected as text. */
const text = (value: unknown): string | null => (typeof value === "string" ? value : null)

export const columnsStatement = Statement.make({
  name: "look for the columns of a table",
  params: ["text"],
  columns: { name: "name" },
  text: "select attname as name from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped"
})

/** The rows of one company. */
export const make = Effect.fn("WarehouseRows.make")(function* (
  table: Table,
  companyId: bigint
): Effect.fn.Return<WarehouseRows, DatabaseError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const here = Effect.provideService(SqlClient.SqlClient, sql)
  const rowsOf = <Row extends object>(text: string, given: ReadonlyArray<unknown>) => here(Sql.rows<Row>(text, given))
  const valuesOf = (text: string, given: ReadonlyArray<unknown>) => here(Sql.valuesOf(text, given))
  const present = new Set((yield* Statement.run(columnsStatement, [table.current])).map(({ name }) => `"${name}"`))
  const own = `from ${present.size === 0 ? noRows : table.current} t where t."_company_id" = $1`
  const { since } = table.resource
  const stamp = roleColumn(table, "modifiedAt")?.sql ?? ""
  /** The rows that scans read, by the last parameter. */
  const scanned = (last: number): string =>
    since === null ? own : `${own} and ${present.has(stamp) ? `t.${stamp} >= ` : "null = "}$${last}::timestamptz`
  const live = (last: number): string => `${scanned(last)} and t."_deleted_at" is null`
  const values = (...given: ReadonlyArray<unknown>) => (since === null ? given : [...given, since])
  const shown = (column: Column): string => (present.has(column.sql) ? textOf(column) : "null::text")
  const meta = (name: string): string => (present.has(identifier(name)) ? `t.${identifier(name)}::text` : "null::text")
  const selectRows =
    `select t."id"::text, t."_deleted_at" is not null, ${meta("custom_fields")}, ${meta("_extra")}, ` +
    `${table.columns.map(shown).join(", ")} ${own} and t."id" = any(string_to_array($2::text, ',')::bigint[])`
  const at = (position: number): Column => {
    const column = table.columns[position]
    if (column === undefined) throw new Error(`${table.current} has no column at ${position}`)
    return column
  }

  return {
    byIds: Effect.fnUntraced(function* (ids) {
      const rows = new Map<string, Row>()
      if (ids.length === 0) return rows
      for (const values of yield* valuesOf(selectRows, [companyId, ids.join(",")])) {
        const [key, isDeleted, customFields, extra, ...columns] = values
        const id = text(key) ?? ""
        rows.set(id, {
          id,
          isDeleted: isDeleted === true,
          columns: columns.map(text),
          customFields: text(customFields),
          extra: text(extra)
        })
      }
      return rows
    }),
    liveIds: (after) =>
      Effect.map(
        rowsOf<{ id: bigint }>(
          `select t."id" as id ${live(3)} and ($2::bigint is null or t."id" > $2::bigint) order by t."id" limit ${idsPerQuery}`,
          values(companyId, after)
        ),
        (rows) => rows.map(({ id }) => id)
      ),
    liveIdsWhere: (position, value) =>
      Effect.map(
        rowsOf<{ id: string }>(
          `select t."id"::text as id ${live(3)} and ${shown(at(position))} = $2::text order by t."id"`,
          values(companyId, value)
        ),
        (rows) => rows.map(({ id }) => id)
      ),
    extent: Effect.map(
      rowsOf<{ live: string; deleted: string; min: string; max: string }>(
        `select (count(*) filter (where t."_deleted_at" is null))::text as live, ` +
          `(count(*) filter (where t."_deleted_at" is not null))::text as deleted, ` +
          `coalesce(min(t."id"), 0)::text as min, coalesce(max(t."id"), 0)::text as max ${scanned(2)}`,
        values(companyId)
      ),
      ([row]) => ({
        live: Number(row?.live ?? 0),
        deleted: Number(row?.deleted ?? 0),
        min: BigInt(row?.min ?? 0),
        max: BigInt(row?.max ?? 0)
      })
    ),
    distinct: (positions) =>
      positions.length === 0
        ? Effect.succeed([])
        : Effect.map(
            valuesOf(
              `select ${positions.map((position) => `count(distinct ${shown(at(position))})::text`).join(", ")} ${live(2)}`,
              values(companyId)
            ),
            ([counts]) => (counts ?? []).map(Number)
          ),
    draw: (count, seed, positions) =>
      Effect.map(
        valuesOf(
          `select t."id"::text${positions.map((position) => `, ${shown(at(position))}`).join("")} ${scanned(4)} ` +
            `order by md5($2::text || ':' || t."id"::text), t."id" limit $3::bigint`,
          values(companyId, String(seed), count)
        ),
        (rows) => rows.map(([id, ...values]) => ({ id: text(id) ?? "", values: values.map(text) }))
      )
  }
})
