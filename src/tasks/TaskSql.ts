/** Statements of the task queue. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

export type Sql<A> = Effect.Effect<A, SqlError, SqlClient.SqlClient>

export const select = <Row extends object>(text: string, values: ReadonlyArray<unknown>): Sql<ReadonlyArray<Row>> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, values))

/** A time in milliseconds since 1970. */
export const epochMs = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`
