/**
 * A read-only transaction of the reader, for fixed statements: pages of the dashboard and answers to assistants.
 *
 * Promise: after its first statement the transaction cannot write, whatever its login, and each statement has a time limit.
 * Statements are not compiled: they are short, and the compilation of one took half a second.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import type { Pages } from "./Reader.ts"

const statementMaxMs = 10_000
/** SQLSTATE: the reader lacks a privilege. */
const insufficientPrivilege = "42501"

/** The first statement of a transaction; after it the transaction cannot write. */
export const becomeReader = Statement.make({
  name: "become the reader of pages",
  params: ["text?"],
  columns: Statement.columns("text", "readonly", "timeout", "jit", "role"),
  text: `select set_config('transaction_read_only', 'on', true) as readonly,
             set_config('statement_timeout', '${statementMaxMs}', true) as timeout,
             set_config('jit', 'off', true) as jit,
             set_config('role', coalesce($1::text, current_setting('role')), true) as role`
})

/** Runs statements as the reader. */
export const readOnly = <A, E, R>(
  pages: Pages,
  statements: Effect.Effect<A, E, R>
): Effect.Effect<A, E | DatabaseError, Exclude<R, SqlClient.SqlClient>> => {
  const once = transaction(Effect.andThen(Statement.run(becomeReader, [pages.role]), statements)).pipe(
    Effect.provideService(SqlClient.SqlClient, pages.sql)
  )
  // A table may have been created since the last grant.
  return Effect.catchIf(
    once,
    (error) => error instanceof DatabaseError && error.code === insufficientPrivilege,
    () => Effect.andThen(pages.grant, once)
  )
}
