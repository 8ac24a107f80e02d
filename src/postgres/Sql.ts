/** Plain statements of the `SqlClient`: a text with its parameters. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** The rows of a statement, whose columns the caller states. */
export const rows = <Row extends object>(
  text: string,
  values: ReadonlyArray<unknown> = []
): Effect.Effect<ReadonlyArray<Row>, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, values))
