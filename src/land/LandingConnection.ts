/**
 * The connection of a resource lock: one for each transaction, and none while the source is read.
 *
 * Promise: statements inside {@link LandingConnection.connected} share one connection. After a transaction whose end is
 * unknown, no further statement gets a connection: the run begins again from its checkpoint.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Priority } from "../budget/Budget.ts"
import { type Client, type QueryResultRow, execute, executeNamed } from "../postgres/driver/Connection.ts"
import type { Urgency } from "../postgres/driver/ConnectionPool.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import type * as Statement from "../postgres/Statement.ts"
import type { Lane } from "./Checkpoint.ts"

export interface LandingConnection {
  /** The connection of the transaction that this is part of. */
  readonly client: Effect.Effect<Client>
  /** Lends one connection to all statements of the effect, which must not wait for anything else. */
  readonly connected: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | DatabaseError, R>
  /** Runs a statement; the operation is named in its error, before the resource. */
  readonly run: <Row extends QueryResultRow>(
    operation: string,
    text: string,
    values?: ReadonlyArray<unknown>
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<Row>; readonly affected: number }, DatabaseError>
  /** Runs a named statement, as {@link LandingConnection.run}. */
  readonly runStatement: <P extends ReadonlyArray<Statement.Type>, C extends Statement.Columns>(
    statement: Statement.Statement<P, C>,
    ...values: Statement.Arguments<P>
  ) => Effect.Effect<
    { readonly rows: ReadonlyArray<Statement.RowOf<Statement.Statement<P, C>>>; readonly affected: number },
    DatabaseError
  >
  /** Remembers how a transaction ended: after an unknown end nothing more can be written. */
  readonly transactionEnded: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>
}

/** The connection that the statements of a fiber go to; null lends one to each statement. */
const Connected = Context.Reference<Client | null>("tributary/land/Connected", { defaultValue: () => null })

/** Events and pushes first, then live runs, then backfills. */
const classOf = (lane: Lane, priority: Priority): number =>
  lane === "records" || lane === "push" || priority.class === "urgent" ? 0 : priority.class === "live" ? 1 : 2

/** Why a run must begin again after a transaction whose end it does not know; null where it was rolled back. */
const unknownEnd = (cause: Cause.Cause<unknown>): DatabaseError | null => {
  const error = Cause.squash(cause)
  if (error instanceof DatabaseError && error.isRetryable) return error
  return !Cause.hasInterrupts(cause)
    ? null
    : new DatabaseError({
        operation: "land",
        code: undefined,
        message: "an earlier landing was interrupted",
        isRetryable: true
      })
}

export const make = Effect.fnUntraced(function* (options: {
  readonly companyId: bigint
  readonly resource: string
  readonly lane: Lane
}): Effect.fn.Return<LandingConnection, never, Database> {
  const { landings } = yield* Database
  const priority = yield* Priority
  const urgency: Urgency = {
    class: classOf(options.lane, priority),
    party: options.companyId.toString(),
    dueAt: priority.dueAt
  }
  /** Why nothing more can be written: the end of a transaction is unknown. */
  let broken: DatabaseError | null = null

  const connected: LandingConnection["connected"] = (effect) =>
    Effect.flatMap(Connected, (client) =>
      client !== null
        ? effect
        : Effect.suspend(() =>
            broken === null
              ? landings.use(urgency, (lent) => Effect.provideService(effect, Connected, lent))
              : Effect.fail(broken)
          )
    )
  const client = Effect.map(Connected, (lent) => lent!)
  const run = <Row extends QueryResultRow>(operation: string, text: string, values?: ReadonlyArray<unknown>) =>
    connected(Effect.flatMap(client, (lent) => execute<Row>(lent, `${operation} ${options.resource}`, text, values)))
  return {
    client,
    connected,
    run,
    runStatement: (statement, ...values) =>
      connected(
        Effect.flatMap(client, (lent) =>
          executeNamed(lent, `${statement.name} ${options.resource}`, statement, ...values)
        )
      ),
    transactionEnded: (exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit)) broken ??= unknownEnd(exit.cause)
      })
  }
})
