/**
 * Typed SQL: Kysely builds the text, the `SqlClient` runs it.
 *
 * Promise: Kysely never opens a connection; a query takes part in `sql.withTransaction`, is interrupted like any other,
 * and fails with a typed `SqlError`. Rows have the types of the `SqlClient` (bigint for int8, text for numeric).
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler
} from "kysely"

/** The builder for the tables of `DB`: `const k = Query.k<Tables>()`. */
export const k = <DB>(): Kysely<DB> =>
  new Kysely<DB>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler()
    }
  })

/** Runs a query that `k` built. */
export const run = <Row>(query: {
  readonly compile: () => CompiledQuery<Row>
}): Effect.Effect<ReadonlyArray<Row>, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const compiled = query.compile()
    // The compiled query states the type of the rows; the client cannot know it.
    return Effect.map(
      sql.unsafe<object>(compiled.sql, compiled.parameters),
      (rows) => rows as unknown as ReadonlyArray<Row>
    )
  })
