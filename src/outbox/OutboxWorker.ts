/**
 * Pushing of the pending rows of a resource to the source.
 *
 * Promise: one process at a time pushes a resource of a company, under a lock and a fence of its own. It completes the
 * requests that an earlier process left open first. It works until no row of the scope is pending, or stops with a reason.
 * However it ends, the database has everything that the next process needs. A push never fails: the report has the
 * failure.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import * as ResourceLock from "../land/ResourceLock.ts"
import * as WriteSession from "../land/WriteSession.ts"
import { type Failure, failureOf } from "../sync/Outcome.ts"
import { Progress } from "../sync/Progress.ts"
import { type Run, withRun } from "../sync/Run.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { completeRequest } from "./CompleteRequest.ts"
import { findExisting } from "./Deduplicate.ts"
import { counting, countsOf, noCounts } from "./OutboxCounts.ts"
import { rowsOf } from "./OutboxRow.ts"
import { blockersStatement, finishPushesStatement, lastPendingStatement, parametersOf } from "./OutboxStore.ts"
import type { Counts } from "./Push.ts"
import { pushChanges } from "./PushChanges.ts"
import { pushCreates } from "./PushCreates.ts"
import * as PushPause from "./PushPause.ts"
import {
  isStopped,
  openSession,
  outboxScopeOf,
  type PushOptions,
  type PushProgress,
  type PushSession,
  recount,
  scopeOf,
  stop,
  transaction
} from "./PushSession.ts"
import { nextOpenRequest } from "./RequestStore.ts"
import { validateRows } from "./ValidateRows.ts"
import { partial } from "./WriteSchema.ts"

/** The result of a push. */
export interface PushReport {
  /** `stopped`: rows are pending, and the failure says why. */
  readonly status: "done" | "stopped"
  readonly counts: Counts
  readonly calls: { readonly sent: number; readonly batches: number }
  readonly failure: Failure | null
  readonly durationMs: number
}

const pollMs = 1_000
/** The session stops after this many consecutive rounds that find pending rows and resolve none. */
const idleRoundsMax = 3

/** Completes the requests that an earlier process left open. */
const completeOpenRequests = Effect.fnUntraced(function* (session: PushSession) {
  for (let after = -1n; !isStopped(session);) {
    const request = yield* transaction(session, (run) => nextOpenRequest(run, scopeOf(session), after))
    if (request === null) return
    after = request.id
    yield* completeRequest(session, request)
  }
})

const stuck: Failure = {
  kind: "Stuck",
  message: "rows are pending, and none of them can be sent",
  remedy: "this is a fault of the program, please report it with the pending rows of tributary.outbox",
  disposition: "defect",
  stops: "resource"
}

const partialFailure = (message: string): Failure => ({
  kind: "PartOfResource",
  message,
  remedy: "take the filters out of the configuration, sync, and push again; pending rows stay",
  disposition: "configuration",
  stops: "resource"
})

/** Adds the blockers of the pending rows to the scope; returns whether there are new ones. */
const addBlockers = Effect.fnUntraced(function* (session: PushSession) {
  const { state } = session
  const blockers = yield* transaction(session, (run) => rowsOf(run, blockersStatement, parametersOf(scopeOf(session))))
  const added = blockers.map(({ id }) => id).filter((id) => !state.blockers.includes(id))
  state.blockers = [...state.blockers, ...added]
  return added.length > 0
})

/** One round: validates, deduplicates and pushes the pending rows up to this one. */
const pushRows = Effect.fnUntraced(function* (session: PushSession, through: bigint) {
  yield* validateRows(session, through)
  yield* findExisting(session, through)
  if (!isStopped(session)) yield* pushCreates(session, through)
  if (!isStopped(session)) yield* pushChanges(session, through)
})

/** Pushes until no row is pending or the session stops. */
const pushUntilDone = Effect.fnUntraced(function* (session: PushSession) {
  const { progress } = session
  let resolvedBefore = -1
  let idleRounds = 0
  while (!isStopped(session)) {
    yield* recount(session)
    const [pending] = yield* transaction(session, (run) =>
      rowsOf(run, lastPendingStatement, parametersOf(scopeOf(session)))
    )
    const through = pending!.last
    if (through === null) return
    const isIdle = progress.resolved === resolvedBefore && !(yield* addBlockers(session))
    // Another process may have changed rows between two statements: a round without progress is repeated.
    idleRounds = isIdle ? idleRounds + 1 : 0
    if (idleRounds >= idleRoundsMax) return stop(session, stuck)
    if (isIdle) yield* Effect.sleep(pollMs)
    resolvedBefore = progress.resolved
    yield* pushRows(session, through)
  }
})

/** One session under the lock. */
const runSession = Effect.fnUntraced(function* (options: PushOptions, progress: PushProgress) {
  const { table, companyId, company, children } = options
  const { runState } = progress
  const resource = table.resource.path
  const part = partial(table.resource)
  if (part !== null) {
    progress.failure ??= partialFailure(part)
    return
  }
  const lock = yield* ResourceLock.acquire({ table, connector: company.connector, companyId, lane: "push" })
  const writeSession = yield* WriteSession.open(lock, {
    run: { kind: "push" },
    origin: "push",
    authority: "newer",
    acceptDeletions: true,
    deletionsShareMax: company.engine.deletionsShareMax,
    children
  })
  runState.runId = writeSession.runId
  runState.began = { companyId, resource, kind: "push", resumed: false }
  yield* (yield* Progress).began(runState.began)
  const [pause] = yield* writeSession.transaction((run) => rowsOf(run, PushPause.reasonStatement, []))
  const pauseReason = pause!.reason
  if (pauseReason !== null) {
    progress.failure ??= PushPause.failureOf(pauseReason)
    return
  }
  const session = yield* openSession(options, writeSession, progress)
  yield* completeOpenRequests(session)
  yield* pushUntilDone(session)
  const scope = [options.company.name, table.resource.path] as const
  yield* transaction(session, (run) => rowsOf(run, finishPushesStatement, scope))
  yield* recount(session)
}, Effect.scoped)

/** Reports the counts while another process has the lock. */
const reportWhileLocked = Effect.fnUntraced(function* (options: PushOptions, progress: PushProgress) {
  progress.counts = countsOf(yield* Statement.run(...counting(outboxScopeOf(options, []))))
  yield* options.onProgress?.(progress.counts) ?? Effect.void
  yield* Effect.sleep(pollMs)
})

/** Runs sessions until one of them has ended; a failure of the last one is kept in the progress. */
const runSessions = Effect.fnUntraced(function* (options: PushOptions, progress: PushProgress, run: Run) {
  for (;;) {
    const resolvedBefore = progress.resolved
    const result = yield* Effect.result(
      run.attempt(
        runSession(options, progress).pipe(
          // Another process has the lock: this one waits, and continues with what is left.
          Effect.tapErrorTag("AlreadyRunning", () => reportWhileLocked(options, progress)),
          Effect.retry({ while: (error) => error._tag === "AlreadyRunning" })
        )
      )
    )
    if (result._tag === "Success") return
    const error = result.failure
    const isRetryable = error instanceof DatabaseError && error.isRetryable
    // A database that fails now and then is retried while there is progress.
    if (isRetryable && progress.resolved > resolvedBefore) continue
    progress.failure = failureOf(error)
    return
  }
})

/** Pushes until no row of the scope is pending, or it cannot continue. */
export const push = Effect.fn("push")(function* (
  options: PushOptions
): Effect.fn.Return<PushReport, never, Database | SqlClient.SqlClient> {
  const { companyId, table } = options
  const { calls, counts, durationMs, failure } = yield* withRun(
    { companyId, table, lane: "push" },
    Effect.fnUntraced(function* (run) {
      const progress: PushProgress = {
        runState: run.state,
        counts: noCounts,
        requests: 0,
        batches: 0,
        resolved: 0,
        failure: null
      }
      yield* runSessions(options, progress, run)
      const { batches, counts, failure, requests } = progress
      const ended = { ...run.outcome(null), counts, calls: { sent: requests, batches } }
      return failure === null ? ended : { ...ended, status: "failed" as const, failure }
    })
  )
  return { status: failure === null ? "done" : "stopped", counts, calls, failure, durationMs }
})
