/**
 * The end of runs in `tributary.runs`; their counts are written with the pages (land/RunRow.ts).
 *
 * Promise: a run is closed only while it is open, so that a process that lost its lane cannot call its run done. A run
 * that is interrupted is closed too. A run whose process was killed, or had lost the database, is closed by the next run
 * of its lane (land/ResourceLock.ts), by every sync and by every service.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as LaneLock from "../warehouse/LaneLock.ts"
import type { Outcome } from "./Outcome.ts"

type RunOwner = Pick<Outcome, "companyId" | "resource" | "lane">

/** The error kind of a run whose process is gone. The process may still close the run itself later. */
const processLost = "ProcessLost"

/** The run of this owner: a restored control plane gives ids again, so that another run may have the number. */
const isOwn = (sql: SqlClient.SqlClient, runId: bigint, { companyId, resource, lane }: RunOwner) =>
  sql`id = ${runId} and company_id = ${companyId} and resource = ${resource} and lane = ${lane}`

/** Closes a run. Best effort: when the database is gone, the outcome says so itself. */
export const close = Effect.fnUntraced(function* (
  runId: bigint,
  outcome: Outcome
): Effect.fn.Return<void, never, SqlClient.SqlClient> {
  const status = outcome.status === "skipped" ? "failed" : outcome.status
  const blocked =
    outcome.massDeleteBlocked === null
      ? null
      : `the mass-delete guard stopped the deletion of ${outcome.massDeleteBlocked.gone} of ${outcome.massDeleteBlocked.live} rows`
  const failedRequests = outcome.failure?.requests ?? 0
  const sql = yield* SqlClient.SqlClient
  // Written by hand: a sync does not load the query builder.
  yield* sql`
    update tributary.runs
       set status = ${status}, finished_at = tributary.now(),
           error_kind = ${outcome.failure?.kind ?? (blocked === null ? null : "MassDeleteBlocked")},
           error = ${outcome.failure?.message ?? blocked},
           note = ${outcome.notes.length === 0 ? null : outcome.notes.join("; ")},
           remedy = ${outcome.failure?.remedy ?? null},
           requests = requests + ${failedRequests}, retries = retries + ${Math.max(0, failedRequests - 1)}
     where ${isOwn(sql, runId, outcome)} and (status = 'running' or error_kind = ${processLost})`.pipe(Effect.ignore)
})

/** How long a process that ends waits for the database. */
const abandonTimeoutMs = 2_000

/** Closes a run that was interrupted. What it landed stays, and the next run goes on from there. */
export const abandon = (runId: bigint, owner: RunOwner): Effect.Effect<void, never, SqlClient.SqlClient> =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      update tributary.runs
         set status = 'abandoned', finished_at = tributary.now(), error_kind = 'Interrupted',
             error = 'stopped: the process was asked to end', remedy = 'nothing is lost: the next run goes on from here'
       where ${isOwn(sql, runId, owner)} and status = 'running'`
  ).pipe(Effect.interruptible, Effect.timeoutOption(abandonTimeoutMs), Effect.ignore)

/**
 * Closes the runs that are running although no process has the lock of their lane; returns how many. A run that just
 * released its lock may be among them: its process still writes how it ended.
 */
export const markAbandoned: Effect.Effect<number, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ended = yield* sql.unsafe(
    `update tributary.runs r
        set status = 'abandoned', finished_at = tributary.now(), error_kind = $1,
            error = 'its process is gone: it was killed, or lost the warehouse',
            remedy = 'nothing is lost: the next run goes on from here'
      where r.status = 'running' and not ${LaneLock.isHeldSql("r")}
      returning 1`,
    [processLost]
  )
  return ended.length
})

const abandonedCheckMs = 15_000

/** {@link markAbandoned} at once and then every {@link abandonedCheckMs}, for ever. */
export const watchAbandoned: Effect.Effect<never, SqlError, SqlClient.SqlClient> = Effect.forever(
  Effect.andThen(markAbandoned, Effect.sleep(abandonedCheckMs))
)
