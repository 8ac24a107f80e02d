/**
 * The ledger of runs.
 *
 * Promise: a run's counts are written with the pages that they count (see land/Lander.ts); here a run is closed, and
 * only while it is still open, so that a process that was taken over cannot call its run done. A run that is told to stop
 * does not stay open either, unless the database is away for long.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { Outcome } from "./Outcome.ts"

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
     where id = ${runId} and status = 'running'`.pipe(Effect.ignore)
})

/** Whoever is told to stop waits no longer than this for the database. */
const farewellMaxMs = 2_000

/** Says that a run was stopped before its end. What it landed stays, and the next run goes on from there. */
export const abandon = (runId: bigint): Effect.Effect<void, never, SqlClient.SqlClient> =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      update tributary.runs
         set status = 'abandoned', ended_at = tributary.now(), error_kind = 'Stopped',
             error = 'stopped: the process was told to end', remedy = 'nothing is lost: the next run goes on from here'
       where id = ${runId} and status = 'running'`
  ).pipe(Effect.interruptible, Effect.timeoutOption(farewellMaxMs), Effect.ignore)
