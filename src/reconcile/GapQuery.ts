/** Statements on delivery gaps, and the lock that orders the changes of one company. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { transaction } from "../postgres/Transaction.ts"

export type Sql<A> = Effect.Effect<A, SqlError, SqlClient.SqlClient>

export const query = <Row extends object>(text: string, values: ReadonlyArray<unknown>): Sql<ReadonlyArray<Row>> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, values))

export const execute = (text: string, values: ReadonlyArray<unknown>): Sql<void> => Effect.asVoid(query(text, values))

/** One transaction. Changes of the gaps of one company run one after another. */
export const serialized = <A, E, R>(company: string, change: Effect.Effect<A, E, R>) =>
  transaction(
    Effect.andThen(
      execute("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`tributary:delivery_gaps:${company}`]),
      change
    )
  )

/** SQL: the pause after so many failed attempts. It doubles with each, up to an hour. */
export const backoff = (firstMinutes: number, attempts: string): string =>
  `make_interval(mins => least(60, ${firstMinutes} * power(2, least(${attempts}, 10))::int))`
