/**
 * The ledger of runs.
 *
 * Promise: a run's counts are written with the pages that they count (see land/Lander.ts); here a run is closed, and
 * only while it is still open, so that a process that was taken over cannot call its run done. A run that is told to stop
 * does not stay open either. What was killed, or could not say so because the database was away, is ended by whoever
 * comes across it: the next run of its lane (see land/Lander.ts), and every sync and service beside it.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as LaneLock from "../warehouse/LaneLock.ts"
import type { Outcome } from "./Outcome.ts"

type RunOwner = Pick<Outcome, "companyId" | "resource" | "lane">

/** The kind of a run that nobody goes on with, and that nobody has ended. What itself it says later is believed. */
const processLost = "Vanished"

/** Whose run it is: a restored control plane gives ids again, and another run may have the number by now. */
const isOwn = (sql: SqlClient.SqlClient, runId: bigint, { companyId, resource, lane }: RunOwner) =>
  sql`id = ${runId} and company_id = ${companyId} and resource = ${resource} and lane = ${lane}`

/** Writes how a run ended. Best effort: a database that is gone is told by the outcome itself. */
export const close = Effect.fnUntraced(function* (
  runId: bigint,
  outcome: Outcome
): Effect.fn.Return<void, never, SqlClient.SqlClient> {
  const status = outcome.status === "skipped" ? "failed" : outcome.status
  const disbelieved =
    outcome.disbelieved === null
      ? null
      : `${outcome.disbelieved.gone} of ${outcome.disbelieved.live} rows were absent from a full scan and not believed deleted`
  const inVain = outcome.failure?.requests ?? 0
  const sql = yield* SqlClient.SqlClient
  // Written by hand: a sync does not load the query builder.
  yield* sql`
    update tributary.runs
       set status = ${status}, ended_at = tributary.now(),
           error_kind = ${outcome.failure?.kind ?? (disbelieved === null ? null : "DeletionsNotBelieved")},
           error = ${outcome.failure?.message ?? disbelieved},
           note = ${outcome.notes.length === 0 ? null : outcome.notes.join("; ")},
           remedy = ${outcome.failure?.remedy ?? null},
           requests = requests + ${inVain}, retries = retries + ${Math.max(0, inVain - 1)}
     where ${isOwn(sql, runId, outcome)} and (status = 'running' or error_kind = ${processLost})`.pipe(Effect.ignore)
})

/** Whoever is told to stop waits no longer than this for the database. */
const abandonTimeoutMs = 2_000

/** Says that a run was stopped before its end. What it landed stays, and the next run goes on from there. */
export const abandon = (runId: bigint, owner: RunOwner): Effect.Effect<void, never, SqlClient.SqlClient> =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      update tributary.runs
         set status = 'abandoned', ended_at = tributary.now(), error_kind = 'Stopped',
             error = 'stopped: the process was told to end', remedy = 'nothing is lost: the next run goes on from here'
       where ${isOwn(sql, runId, owner)} and status = 'running'`
  ).pipe(Effect.interruptible, Effect.timeoutOption(abandonTimeoutMs), Effect.ignore)

/**
 * Ends the runs whose process is gone: those that stand as running although nobody holds the lock of their lane. One that
 * just ends, and has given its lock back, may be among them: it writes how it ended all the same. Answers how many.
 */
export const markAbandoned: Effect.Effect<number, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ended = yield* sql.unsafe(
    `update tributary.runs r
        set status = 'abandoned', ended_at = tributary.now(), error_kind = $1,
            error = 'it ended without a word: its process was killed, or lost the warehouse',
            remedy = 'nothing is lost: the next run goes on from here'
      where r.status = 'running' and not ${LaneLock.isHeldSql("r")}
      returning 1`,
    [processLost]
  )
  return ended.length
})

const abandonedCheckMs = 15_000

/** Looks for such runs at once and then every fifteen seconds, for ever. */
export const watchAbandoned: Effect.Effect<never, SqlError, SqlClient.SqlClient> = Effect.forever(
  Effect.andThen(markAbandoned, Effect.sleep(abandonedCheckMs))
)
