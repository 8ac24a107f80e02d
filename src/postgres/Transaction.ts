/**
 * Transactions of the `SqlClient`, and the retry of work after a restart of the server.
 *
 * Promise: a transaction whose connection is lost fails with a {@link DatabaseError}, like any other statement. While the
 * server does not answer for a moment, the whole work is repeated.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { DatabaseError } from "./DatabaseError.ts"

/** The failure of `begin`, `commit` or a savepoint; other errors stay as they are. */
const named = <E>(error: E | SqlError): Exclude<E, SqlError> | DatabaseError =>
  isSqlError(error) ? DatabaseError.from("run a transaction")(error) : (error as Exclude<E, SqlError>)

/** Runs the effect in a transaction: all or nothing. */
export const transaction = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, SqlError> | DatabaseError, R | SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.withTransaction(effect).pipe(
      // The rollback on a lost connection fails too, which makes a defect of the loss itself.
      Effect.catchDefect((defect) =>
        isSqlError(defect) || defect instanceof DatabaseError ? Effect.fail(defect) : Effect.die(defect)
      ),
      Effect.mapError(named)
    )
  )

/** Runs the effect on another connection than the transaction around it. */
export const outside = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    // The key of the transaction belongs to the client: no effect can require it.
    Effect.updateContext(
      effect,
      (context: Context.Context<R>) => Context.omit(sql.transactionService)(context) as Context.Context<R>
    )
  )

const attemptsMax = 6

/** Repeats work that failed because the server did not answer; the work must be safe to repeat. */
export const retryTransient = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(effect, {
    while: (error) => error instanceof DatabaseError && error.isRetryable,
    times: attemptsMax - 1,
    schedule: Schedule.exponential("250 millis").pipe(Schedule.jittered)
  })
