/**
 * One run of a due task.
 *
 * Promise: the task stays due until its result is stored. When the run is interrupted, landed pages stay, and the next
 * owner goes on at once.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as CompanyLog from "../log/CompanyLog.ts"
import { Priority } from "../budget/Budget.ts"
import type { Identity } from "../connector/Connector.ts"
import type { Database } from "../postgres/Database.ts"
import { retryTransient } from "../postgres/Transaction.ts"
import { Progress, type ProgressShape } from "../sync/Progress.ts"
import * as DeliveryGaps from "../reconcile/DeliveryGaps.ts"
import * as GapReads from "../reconcile/GapReads.ts"
import { accessBlockOf } from "../sync/Sync.ts"
import { syncResource } from "../sync/SyncResource.ts"
import * as ColumnPromotion from "../warehouse/ColumnPromotion.ts"
import { childrenOf, type Table } from "../warehouse/Table.ts"
import { readHistory, type ResourceHistory } from "./ResourceHistory.ts"
import * as DueTasks from "./DueTasks.ts"
import { alreadyDone, crashed, resultOf, skipped } from "./TaskResults.ts"
import { type CompanyState, contendedMs, rest, type WorkerState } from "./WorkerState.ts"

/** An access block is checked again at the source after this. */
const identityMaxMs = 5 * 60_000
/** The progress of a run, for the log. */
export const logProgress: ProgressShape = {
  identified: () => Effect.void,
  began: () => Effect.void,
  landed: () => Effect.void,
  ended: () => Effect.void,
  note: (text) => Effect.logInfo(text)
}

const sync = (
  worker: WorkerState,
  task: DueTasks.DueTask,
  target: {
    readonly state: CompanyState
    readonly identity: Identity
    readonly table: Table
    readonly tables: ReadonlyMap<string, Table>
    readonly history: ResourceHistory
    readonly gapReads: Effect.Success<ReturnType<typeof GapReads.plan>>
  }
) => {
  const { gapReads, history, identity, state, table, tables } = target
  const { batchRecordsMax, connector, engine } = state.company
  const isBackfill = task.kind === "backfill"
  const { companyId } = identity
  return syncResource(
    { companyId, connector, table, children: childrenOf(tables, task.resource) },
    {
      mode: {
        full: task.full || gapReads === "everything",
        backfill: isBackfill ? { since: task.since, until: task.until } : undefined
      },
      batchRecordsMax,
      engine,
      whenHeld: "evict",
      isFollowed: task.requestedAt !== null
    }
  ).pipe(
    Effect.provideService(Priority, {
      class: isBackfill ? "backfill" : "live",
      // A full scan for a gap gives way to other live runs.
      dueAt:
        gapReads === "everything"
          ? Number.POSITIVE_INFINITY
          : history.syncedMs + Duration.toMillis(worker.options.freshnessOf(task.resource))
    })
  )
}

/** The result; null where the task cannot run now. */
const syncTask = Effect.fnUntraced(function* (
  worker: WorkerState,
  task: DueTasks.DueTask
): Effect.fn.Return<DueTasks.TaskResult | null, DatabaseError, Database | SqlClient.SqlClient> {
  const { resource } = task
  const state = worker.companies.get(task.company)
  if (state === undefined) return null
  const tables = yield* state.company.tables
  const table = tables.get(resource)
  if (table === undefined) return skipped(worker, task, `${resource} is not configured`, "nothing to do")
  const { breaker } = state
  const known = breaker.identity()
  if (known !== null && accessBlockOf(table.resource, known) !== null) {
    yield* Effect.ignore(breaker.identifiedWithin(task.requestedAt === null ? identityMaxMs : 0))
  }
  const identity = breaker.identity()
  // The source is unavailable, and the reason is stored and logged once.
  if (identity === null) return null
  const block = accessBlockOf(table.resource, identity)
  if (block !== null) return skipped(worker, task, `${resource}: ${block.reason}`, block.remedy)

  const { companyId } = identity
  if (task.hasGap) yield* GapReads.closeCovered(state.company, companyId)
  const gapReads = task.hasGap ? yield* GapReads.plan(state.company, companyId, table, true) : null
  if (gapReads === null && task.isForGap) return null
  const history = yield* readHistory(companyId, resource)
  const done = gapReads === null ? alreadyDone(worker, task, history) : null
  if (done !== null) return done
  const outcome = yield* sync(worker, task, { state, identity, table, tables, history, gapReads })
  if (task.hasGap && outcome.failure?.disposition !== "contended") {
    yield* GapReads.settle(state.company, companyId, outcome)
  }
  if (outcome.failure === null) {
    yield* breaker.noteAnswer
    const inferred = yield* ColumnPromotion.inferAll([table.resource], worker.options.datasets)
    for (const sentence of inferred) yield* Effect.logInfo(sentence)
    if (inferred.length > 0) yield* worker.refreshViews
    // The source fails, and not the task, which runs when the source answers again.
  } else if ((yield* breaker.classify(outcome.failure)) === "company") return null
  return resultOf(worker, task, outcome)
})

const logResult = (task: DueTasks.DueTask, result: DueTasks.TaskResult) => {
  const subject = `${task.company}: ${task.kind === "backfill" ? "backfill of " : ""}${task.resource}`
  if (result.status === "failed" && result.failures === 1) {
    return CompanyLog.about(task.company)(Effect.logWarning(`${subject}: ${result.error}; ${result.remedy}`))
  }
  return task.failures > 0 && (result.status === "done" || result.status === "quarantined")
    ? Effect.logInfo(`${subject}: succeeds again`)
    : Effect.void
}

/** Runs a task and stores its result. */
export const runTask = (worker: WorkerState, task: DueTasks.DueTask) =>
  Effect.gen(function* () {
    const result = yield* Effect.catchCause(syncTask(worker, task), (cause) =>
      Effect.succeed(crashed(worker, task, cause))
    )
    if (result === null) return rest(worker, task, contendedMs)
    yield* retryTransient(DueTasks.completeTask(task, result))
    const { error, remedy, status } = result
    if (task.hasGap && (status === "failed" || status === "skipped")) {
      yield* DeliveryGaps.recordReadFailure(task.company, task.resource, `${error}; ${remedy}`)
    }
    yield* logResult(task, result)
  }).pipe(
    // Another run of the task would find its work done, and store that.
    Effect.catch(() => Effect.sync(() => rest(worker, task, contendedMs))),
    Effect.provideService(Progress, logProgress)
  )
