/**
 * Typed SQL: Kysely builds the text, the `SqlClient` runs it.
 *
 * Promise: Kysely never opens a connection; a query takes part in `sql.withTransaction`, is interrupted like any other,
 * and fails with a typed `DatabaseError`. Rows have the types of the `SqlClient` (bigint for int8, text for numeric).
 */
import * as Effect from "effect/Effect"
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler
} from "kysely"
import * as Sql from "./Sql.ts"

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

/** A query that `k` built, and Postgres has not seen. */
export interface Built<Row> {
  readonly compile: () => CompiledQuery<Row>
}

/** The operation in errors: "select checkpoints". */
const operationOf = (text: string) =>
  [text.split(" ", 1)[0], /"tributary"\."(\w+)"/.exec(text)?.[1]].filter((part) => part !== undefined).join(" ")

/** The rows of a query. */
export const run = <Row>(query: Built<Row>): Sql.Query<ReadonlyArray<Row>> => {
  const { sql, parameters } = query.compile()
  // The compiled query states the type of the rows; the client cannot know it.
  return Effect.map(Sql.rows(sql, parameters, operationOf(sql)), (rows) => rows as unknown as ReadonlyArray<Row>)
}
