/**
 * The end of runs in `tributary.runs`; their counts are written with the pages (land/RunRow.ts).
 *
 * Promise: a run is closed only while it is open, so that a process that lost its lane cannot call its run done. A run
 * that is interrupted is closed too. A run whose process was killed, or had lost the database, is closed by the next run
 * of its lane (land/ResourceLock.ts), by every sync and by every service.
 */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { describeBlocked } from "../land/Landing.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import * as LaneLock from "../warehouse/LaneLock.ts"
import type { Outcome } from "./Outcome.ts"

type RunOwner = Pick<Outcome, "companyId" | "resource" | "lane">

/** The error kind of a run whose process is gone. The process may still close the run itself later. */
const processLost = "ProcessLost"

/** The run of this owner: a restored control plane gives ids again, so that another run may have the number. */
const isOwn = "id = $1 and company_id = $2 and resource = $3 and lane = $4"

export const closeStatement = Statement.make({
  name: "close a run",
  params: ["int8", "int8", "text", "text", "text", "text?", "text?", "text?", "text?", "int8"],
  text: `update tributary.runs set status = $5, finished_at = tributary.now(), error_kind = $6, error = $7, note = $8,
           remedy = $9, requests = requests + $10, retries = retries + greatest(0, $10 - 1)
     where ${isOwn} and (status = 'running' or error_kind = '${processLost}')`
})

/** Closes a run. Best effort: when the database is gone, the outcome says so itself. */
export const close = (runId: bigint, outcome: Outcome): Effect.Effect<void, never, SqlClient> => {
  const { companyId, resource, lane, failure, notes, massDeleteBlocked } = outcome
  const blocked = massDeleteBlocked === null ? null : describeBlocked(massDeleteBlocked)
  return Effect.ignore(
    Statement.run(closeStatement, [
      runId,
      companyId,
      resource,
      lane,
      outcome.status === "skipped" ? "failed" : outcome.status,
      failure?.kind ?? (blocked === null ? null : "MassDeleteBlocked"),
      failure?.message ?? blocked,
      notes.length === 0 ? null : notes.join("; "),
      failure?.remedy ?? null,
      failure?.requests ?? 0
    ])
  )
}

/** How long a process that ends waits for the database. */
const abandonTimeoutMs = 2_000

export const abandonStatement = Statement.make({
  name: "close an interrupted run",
  params: ["int8", "int8", "text", "text"],
  text: `update tributary.runs set status = 'abandoned', finished_at = tributary.now(), error_kind = 'Interrupted',
             error = 'stopped: the process was asked to end', remedy = 'nothing is lost: the next run goes on from here'
       where ${isOwn} and status = 'running'`
})

/** Closes a run that was interrupted. What it landed stays, and the next run goes on from there. */
export const abandon = (
  runId: bigint,
  { companyId, resource, lane }: RunOwner
): Effect.Effect<void, never, SqlClient> =>
  Statement.run(abandonStatement, [runId, companyId, resource, lane]).pipe(
    Effect.interruptible,
    Effect.timeoutOption(abandonTimeoutMs),
    Effect.ignore
  )

export const markStatement = Statement.make({
  name: "close runs whose process is gone",
  columns: { id: "int8" },
  text: `update tributary.runs r set status = 'abandoned', finished_at = tributary.now(), error_kind = '${processLost}',
            error = 'its process is gone: it was killed, or lost the warehouse',
            remedy = 'nothing is lost: the next run goes on from here'
      where r.status = 'running' and not ${LaneLock.isHeldSql("r")} returning id`
})

/**
 * Closes the runs that are running although no process has the lock of their lane; returns how many. A run that just
 * released its lock may be among them: its process still writes how it ended.
 */
export const markAbandoned: Sql.Query<number> = Effect.map(Statement.run(markStatement), ({ length }) => length)

/** {@link markAbandoned} at once and then every 15 s, for ever. */
export const watchAbandoned: Sql.Query<never> = Effect.forever(
  Effect.andThen(markAbandoned, Effect.sleep("15 seconds"))
)
