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

/** A time in milliseconds since 1970. */
export const epochMs = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`
