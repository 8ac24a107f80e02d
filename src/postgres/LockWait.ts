/**
 * Bounded waits for table locks.
 *
 * Promise: a change of tables waits at most two seconds in total for the sessions that use them. A statement that waits
 * for ACCESS EXCLUSIVE blocks every reader behind it, and so does a lock that the change holds already; therefore the
 * change rolls back, releases the tables for a moment, and is tried again. The number of attempts is bounded. The error
 * names the sessions that block it. A crash leaves nothing behind: the server rolls back.
 *
 * Postgres' `lock_timeout` bounds each single wait. The sum is bounded by a second connection, which looks for the
 * sessions that block the first and cancels its statement; without that second connection the single bound still holds.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as SqlClient from "effect/sql/SqlClient"
import { DatabaseError } from "./DatabaseError.ts"
import * as Statement from "./Statement.ts"
import { outside } from "./Transaction.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** How long a change, and the sessions behind it, may wait for others in one attempt. */
const waitMsMax = 2_000
const lookEveryMs = 100
const queryLengthMax = 80

export interface LockTimeout {
  /** Default 5. */
  readonly attemptsMax?: number | undefined
  /** The first pause between two attempts; each further one is twice as long. Default a second. */
  readonly pause?: Duration.Input | undefined
}

export const boundStatement = Statement.make({
  name: "bound the wait for locks",
  columns: { set_config: "text", pid: "int4" },
  text: `select set_config('lock_timeout', '${waitMsMax}ms', true), pg_backend_pid() as pid`
})

/** The sessions that block a change; `seconds` says how long the transaction is open. */
export const blockersStatement = Statement.make({
  name: "look for the sessions that block a change",
  params: ["int4"],
  columns: { pid: "int4", application: "text?", user: "text?", seconds: "int4?", query: "text?" },
  text: `select b.pid, nullif(a.application_name, '') as application, a.usename::text as user,
                extract(epoch from clock_timestamp() - a.xact_start)::int as seconds,
                left(regexp_replace(a.query, '\\s+', ' ', 'g'), ${queryLengthMax}) as query
           from (select distinct unnest(pg_blocking_pids($1)) as pid) b left join pg_stat_activity a using (pid)
          order by a.xact_start nulls last limit 3`
})
type Blocker = Statement.RowOf<typeof blockersStatement>

export const cancelStatement = Statement.make({
  name: "cancel a change that waits",
  params: ["int4"],
  columns: { pg_cancel_backend: "bool" },
  text: "select pg_cancel_backend($1) where cardinality(pg_blocking_pids($1)) > 0"
})

const durationOf = (seconds: number): string => {
  if (seconds < 120) return `${seconds} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}

const sentenceOf = ({ pid, application, user, seconds, query }: Blocker): string => {
  // A transaction that was prepared for two-phase commit has no process.
  if (pid === 0) return "a prepared transaction (see pg_prepared_xacts)"
  const facts = [
    application === null ? null : application,
    user === null ? null : `user ${user}`,
    seconds === null ? null : `its transaction is open for ${durationOf(seconds)}`,
    query === null || query === "" ? null : `last statement: ${query}`
  ].filter((fact) => fact !== null)
  return `session ${pid}${facts.length === 0 ? "" : ` (${facts.join(", ")})`}`
}

const remedyOf = (blockers: ReadonlyArray<Blocker>): string => {
  const pids = blockers.flatMap(({ pid }) => (pid === 0 ? [] : [pid]))
  const end = pids.map((pid) => `select pg_terminate_backend(${pid})`).join("; ")
  return pids.length === 0 ? "wait for it, or end it" : `wait for it, or end it (${end})`
}

const timedOut = (operation: string, blockers: ReadonlyArray<Blocker>): DatabaseError =>
  new DatabaseError({
    operation,
    code: "55P03",
    message:
      blockers.length === 0
        ? "a table that has to change is in use by a session that cannot be named; look at pg_stat_activity, and wait for it or end it"
        : `a table that has to change is in use by ${blockers.map(sentenceOf).join(" and ")}; ${remedyOf(blockers)}`,
    isRetryable: true
  })

/**
 * Runs the body of a change, within its transaction. Another connection of the pool looks for the sessions that block it.
 * A body that waited too long, or that did not get a lock, fails with a DatabaseError of code 55P03.
 */
export const bounded = Effect.fnUntraced(function* <A, E, R>(
  operation: string,
  body: Effect.Effect<A, E, R>
): Effect.fn.Return<A, E | DatabaseError, R | SqlClient.SqlClient> {
  const nowMs = yield* MonotonicClock.make
  const [session] = yield* Statement.run(boundStatement)
  const { pid } = session!
  let blockers: ReadonlyArray<Blocker> = []
  let isCancelled = false
  const look = Effect.gen(function* () {
    let waitedMs = 0
    let lookedMs = nowMs()
    while (!isCancelled) {
      yield* Effect.sleep(lookEveryMs)
      const found = yield* outside(Statement.run(blockersStatement, [pid]))
      const atMs = nowMs()
      if (found.length > 0) {
        blockers = found
        waitedMs += atMs - lookedMs
      }
      lookedMs = atMs
      if (waitedMs < waitMsMax) continue
      isCancelled = true
      yield* outside(Statement.run(cancelStatement, [pid]))
    }
  })
  return yield* Effect.raceFirst(body, Effect.andThen(Effect.ignore(look), Effect.never)).pipe(
    Effect.mapError((error) => (isCancelled || codeOf(error) === "55P03" ? timedOut(operation, blockers) : error))
  )
})

const codeOf = (error: unknown) => (error instanceof DatabaseError ? error.code : undefined)

const isPassing = (error: unknown): boolean => ["55P03", "40P01", "40001"].includes(codeOf(error) ?? "")

/** Repeats an attempt (a transaction around {@link bounded}) that failed because a lock was not available. */
export const attempts = <A, E, R>(
  what: string,
  attempt: Effect.Effect<A, E, R>,
  { attemptsMax = 5, pause = "1 second" }: LockTimeout = {}
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let made = 0
    return attempt.pipe(
      Effect.tapError((error) => {
        made++
        return error instanceof DatabaseError && isPassing(error) && made < attemptsMax
          ? Effect.logWarning(`${what} (attempt ${made} of ${attemptsMax}): ${error.message}`)
          : Effect.void
      }),
      Effect.retry({ while: isPassing, times: attemptsMax - 1, schedule: Schedule.exponential(pause) })
    )
  })
