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

/** A time in milliseconds since 1970. */
export const epochMs = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`

/** A time in microseconds since 1970, exactly. */
export const epochUs = (column: string): string => `round(extract(epoch from ${column}) * 1000000)::int8`
