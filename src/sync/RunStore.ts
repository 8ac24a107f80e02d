/**
 * The end of runs in `tributary.runs`; the statements are those of land/RunRow.ts.
 *
 * Promise: a run is closed only while it is open, so that a process that lost its lane cannot mark its run as done. An
 * interrupted run is closed too. A run whose process was killed, or had lost the database, is closed by the next run of
 * its lane (land/ResourceLock.ts), by every sync and by every service.
 */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import { describeBlocked } from "../land/Landing.ts"
import { abandonStatement, closeStatement, markStatement } from "../land/RunRow.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Outcome } from "./Outcome.ts"
import type { RunPhases } from "./RunPhases.ts"

type RunOwner = Pick<Outcome, "companyId" | "resource" | "lane">

/** Closes a run, and gives its changes positions in the feed. Best effort: the outcome itself reports a lost database. */
export const close = (
  runId: bigint,
  outcome: Outcome,
  phases: RunPhases | null = null
): Effect.Effect<void, never, SqlClient> => {
  const { companyId, resource, lane, failure, notes, massDeleteBlocked } = outcome
  const blocked = massDeleteBlocked === null ? null : describeBlocked(massDeleteBlocked)
  return Effect.ignore(
    Effect.andThen(
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
        failure?.requests ?? 0,
        phases === null ? null : JSON.stringify(phases)
      ]),
      ChangeFeed.order
    )
  )
}

/** How long a process that ends waits for the database. */
const abandonTimeoutMs = 2_000

/** Closes an interrupted run. Its landed pages stay, and the next run goes on from there. */
export const abandon = (
  runId: bigint,
  { companyId, resource, lane }: RunOwner,
  phases: RunPhases | null = null
): Effect.Effect<void, never, SqlClient> =>
  Statement.run(abandonStatement, [
    runId,
    companyId,
    resource,
    lane,
    phases === null ? null : JSON.stringify(phases)
  ]).pipe(Effect.interruptible, Effect.timeoutOption(abandonTimeoutMs), Effect.ignore)

/**
 * Closes the runs that are running although no process has the lock of their lane; returns how many. A run that just
 * released its lock may be among them: its process still writes how it ended.
 */
export const markAbandoned: Sql.Query<number> = Effect.map(Statement.run(markStatement), ({ length }) => length)

/** {@link markAbandoned} at once and then every 15 s, for ever. */
export const watchAbandoned: Sql.Query<never> = Effect.forever(
  Effect.andThen(markAbandoned, Effect.sleep("15 seconds"))
)
