/** Plain statements of the `SqlClient`: a text with its parameters. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

export type Query<A> = Effect.Effect<A, SqlError, SqlClient.SqlClient>

/** The rows of a statement, whose columns the caller states. */
export const rows = <Row extends object>(
  text: string,
  values: ReadonlyArray<unknown> = []
): Query<ReadonlyArray<Row>> => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, values))

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
