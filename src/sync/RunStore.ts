/**
 * The end of runs in `tributary.runs`.
 *
 * Promise: a run is closed only while it is open, so that a process that lost its lane cannot mark its run as done. An
 * interrupted run is closed too. A run whose process was killed, or had lost the database, is closed by the next run of
 * its lane (land/ResourceLock.ts), by every sync and by every service.
 */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import { describeBlocked } from "../land/Landing.ts"
import { markStatement, processLost } from "../land/RunRow.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import type { Outcome } from "./Outcome.ts"
import type { RunPhases } from "./RunPhases.ts"

type RunOwner = Pick<Outcome, "companyId" | "resource" | "lane">

/** The row of the owner's run: a restored control plane gives ids again, so that another run may have the number. */
const updateOwn = (runId: bigint, { companyId, resource, lane }: RunOwner, phases: RunPhases | null) =>
  control
    .updateTable("tributary.runs")
    .set({ finished_at: Query.now, phases: phases === null ? null : JSON.stringify(phases) })
    .where((is) => is.and({ id: runId, company_id: companyId, resource, lane }))

/** Closes a run, and gives its changes positions in the feed. Best effort: the outcome itself reports a lost database. */
export const close = (
  runId: bigint,
  outcome: Outcome,
  phases: RunPhases | null = null
): Effect.Effect<void, never, SqlClient> => {
  const { failure, notes, massDeleteBlocked, status } = outcome
  const blocked = massDeleteBlocked === null ? null : describeBlocked(massDeleteBlocked)
  const requests = failure?.requests ?? 0
  const update = updateOwn(runId, outcome, phases)
    .set((of) => ({
      status: status === "skipped" ? "failed" : status,
      error_kind: failure?.kind ?? (blocked === null ? null : "MassDeleteBlocked"),
      error: failure?.message ?? blocked,
      note: notes.length === 0 ? null : notes.join("; "),
      remedy: failure?.remedy ?? null,
      requests: of("requests", "+", BigInt(requests)),
      retries: of("retries", "+", BigInt(Math.max(0, requests - 1)))
    }))
    .where((is) => is.or([is("status", "=", "running"), is("error_kind", "=", processLost)]))
  return Effect.ignore(Effect.andThen(Query.run(update), ChangeFeed.order))
}

/** How long a process that ends waits for the database. */
const abandonTimeoutMs = 2_000

/** Closes an interrupted run. Its landed pages stay, and the next run goes on from there. */
export const abandon = (
  runId: bigint,
  owner: RunOwner,
  phases: RunPhases | null = null
): Effect.Effect<void, never, SqlClient> => {
  const update = updateOwn(runId, owner, phases)
    .set({
      status: "abandoned",
      error_kind: "Interrupted",
      error: "stopped: the process was asked to end",
      remedy: "nothing is lost: the next run goes on from here"
    })
    .where("status", "=", "running")
  return Query.run(update).pipe(Effect.interruptible, Effect.timeoutOption(abandonTimeoutMs), Effect.ignore)
}

/**
 * Closes the runs that are running although no process has the lock of their lane; returns how many. A run that just
 * released its lock may be among them: its process still writes how it ended.
 */
export const markAbandoned: Sql.Query<number> = Effect.map(Statement.run(markStatement), ({ length }) => length)

/** {@link markAbandoned} at once and then every 15 s, for ever. */
export const watchAbandoned: Sql.Query<never> = Effect.forever(
  Effect.andThen(markAbandoned, Effect.sleep("15 seconds"))
)
