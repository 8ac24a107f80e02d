/**
 * The door to the `SqlClient`: a text with its parameters. Statements whose text the program makes at run time, from checked
 * identifiers, come here directly; the others by `Query` and `Statement`.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { DatabaseError } from "./DatabaseError.ts"

export type Query<A> = Effect.Effect<A, DatabaseError, SqlClient.SqlClient>

/** The rows of a statement, whose columns the caller states; `operation` names it in errors. */
export const rows = <Row extends object>(
  text: string,
  values: ReadonlyArray<unknown> = [],
  operation = "ask the warehouse"
): Query<ReadonlyArray<Row>> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.mapError(sql.unsafe<Row>(text, values), DatabaseError.from(operation))
  )

/** As {@link rows}; each row is its values, in the order of the columns. */
export const valuesOf = (text: string, values: ReadonlyArray<unknown>): Query<ReadonlyArray<ReadonlyArray<unknown>>> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.mapError(sql.unsafe(text, values).values, DatabaseError.from("ask the warehouse"))
  )

/**
 * The rows with the highest ids that meet the conditions, in descending order. `select` ends within its `where`. A
 * condition with a null value is left out, so that Postgres can use the index of each of the others.
 */
export const newestRows = <Row extends object>(
  select: string,
  conditions: Readonly<Record<string, string | null>>,
  rowsMax: number,
  order = "id desc"
): Query<ReadonlyArray<Row>> => {
  const given = Object.entries(conditions).filter(([, value]) => value !== null)
  const where = given.map(([condition], index) => ` and ${condition.replaceAll("?", `$${index + 2}`)}`)
  return rows(`${select}${where.join("")} order by ${order} limit $1::int`, [
    rowsMax,
    ...given.map(([, value]) => value)
  ])
}

/** A time in milliseconds since 1970. */
export const epochMs = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`
