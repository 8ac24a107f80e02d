/**
 * One run of a claimed task.
 *
 * Promise: the result is stored, or the task is released as abandoned and runs again. When the run is interrupted,
 * landed pages stay, and the task is returned, so that its next owner goes on at once.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as CompanyLog from "../log/CompanyLog.ts"
import { Priority } from "../budget/Budget.ts"
import type { Identity } from "../connector/Connector.ts"
import type { Database } from "../postgres/Database.ts"
import { retryTransient } from "../postgres/Transaction.ts"
import { Progress, type ProgressShape } from "../sync/Progress.ts"
import { accessBlockOf } from "../sync/Sync.ts"
import { syncResource } from "../sync/SyncResource.ts"
import * as ColumnPromotion from "../warehouse/ColumnPromotion.ts"
import { childrenOf, type Table } from "../warehouse/Table.ts"
import { blockCompany, identifyCompany } from "./IdentifyCompany.ts"
import { readHistory, type ResourceHistory } from "./ResourceHistory.ts"
import * as TaskClaims from "./TaskClaims.ts"
import {
  alreadyDone,
  contendedDelayMs,
  crashed,
  type PostponedTask,
  postponed,
  resultOf,
  skipped
} from "./TaskResults.ts"
import {
  type CompanyState,
  monotonicMs,
  requireRelease,
  resourceKey,
  taskKey,
  type WorkerState
} from "./WorkerState.ts"

/** An access block is checked again at the source after this. */
const identityMaxMs = 5 * 60_000
/** A process that ends waits no longer than this for the database. */
const shutdownTimeoutMs = 2_000

const interruptedReason = "stopped: the process was shut down"

/** The progress of a run, for the log. */
export const logProgress: ProgressShape = {
  identified: () => Effect.void,
  began: () => Effect.void,
  landed: () => Effect.void,
  ended: () => Effect.void,
  note: (text) => Effect.logInfo(text)
}

/** A last statement before the process ends. */
const bestEffort = <A, R>(effect: Effect.Effect<A, DatabaseError, R>): Effect.Effect<void, never, R> =>
  effect.pipe(Effect.interruptible, Effect.timeoutOption(shutdownTimeoutMs), Effect.ignore)

const sync = (
  worker: WorkerState,
  task: TaskClaims.ClaimedTask,
  target: {
    readonly state: CompanyState
    readonly identity: Identity
    readonly table: Table
    readonly tables: ReadonlyMap<string, Table>
    readonly history: ResourceHistory
  }
) => {
  const { history, identity, state, table, tables } = target
  const { batchRecordsMax, connector, engine } = state.company
  const isBackfill = task.kind === "backfill"
  const { companyId } = identity
  return syncResource(
    { companyId, connector, table, children: childrenOf(tables, task.resource) },
    {
      mode: { full: task.full, backfill: isBackfill ? { since: task.since, until: task.until } : undefined },
      batchRecordsMax,
      engine,
      evictHolder: task.abandonedAt !== null && !history.isRunning,
      // A resource that another run has is tried again later, and does not keep this process waiting.
      waitForHolder: false,
      isFollowed: task.requestedAt !== null
    }
  ).pipe(
    Effect.provideService(Priority, {
      class: isBackfill ? "backfill" : "live",
      dueAt: history.syncedMs + Duration.toMillis(worker.options.freshnessOf(task.resource))
    })
  )
}

const syncTask = Effect.fnUntraced(function* (
  worker: WorkerState,
  task: TaskClaims.ClaimedTask
): Effect.fn.Return<TaskClaims.TaskResult | PostponedTask, DatabaseError, Database | SqlClient.SqlClient> {
  const { resource } = task
  const state = worker.companies.get(task.company)
  if (state === undefined) return postponed(worker)
  const tables = yield* state.company.tables
  const table = tables.get(resource)
  if (table === undefined) return skipped(worker, task, `${resource} is not configured`, "nothing to do")
  if (state.identity !== null && accessBlockOf(table.resource, state.identity) !== null) {
    const isOld = monotonicMs(worker) - state.identifiedAtMs > identityMaxMs
    if (task.requestedAt !== null || isOld) yield* identifyCompany(worker, state)
  }
  const { identity } = state
  // The company is blocked, and its block is logged once.
  if (identity === null) return postponed(worker)
  const block = accessBlockOf(table.resource, identity)
  if (block !== null) return skipped(worker, task, `${resource}: ${block.reason}`, block.remedy)

  const lane = task.kind === "backfill" ? "backfill" : "live"
  const history = yield* readHistory(identity.companyId, resource, lane, task.abandonedAt)
  const done = alreadyDone(worker, task, history)
  if (done !== null) return done
  const outcome = yield* sync(worker, task, { state, identity, table, tables, history })
  if (outcome.failure === null) {
    const inferred = yield* ColumnPromotion.inferAll([table.resource], worker.options.datasets)
    for (const sentence of inferred) yield* Effect.logInfo(sentence)
    if (inferred.length > 0) yield* worker.refreshViews
  } else if (outcome.failure.stops === "company" && state.identity !== null) {
    // The source refuses the identity: the first run that meets it blocks the company.
    yield* blockCompany(worker, state, outcome.failure)
  }
  return resultOf(worker, task, outcome)
})

const logResult = (task: TaskClaims.ClaimedTask, result: TaskClaims.TaskResult) => {
  const subject = `${task.company}: ${task.kind === "backfill" ? "backfill of " : ""}${task.resource}`
  if (result.status === "failed" && result.failures === 1) {
    return CompanyLog.about(task.company)(Effect.logWarning(`${subject}: ${result.error}; ${result.remedy}`))
  }
  return task.failures > 0 && (result.status === "done" || result.status === "quarantined")
    ? Effect.logInfo(`${subject}: succeeds again`)
    : Effect.void
}

/** Runs a task and stores its result. */
export const runTask = (worker: WorkerState, task: TaskClaims.ClaimedTask) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(restore(syncTask(worker, task)))
      if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) {
        return yield* bestEffort(TaskClaims.returnTask(task, interruptedReason))
      }
      const result = Exit.isSuccess(exit) ? exit.value : crashed(worker, task, exit.cause)
      const write =
        result.status === "postponed"
          ? TaskClaims.rescheduleTask(task, result.nextMs)
          : TaskClaims.completeTask(task, result)
      yield* restore(retryTransient(write)).pipe(
        Effect.catch(() =>
          Effect.sync(() => {
            worker.claims.delete(taskKey(task))
            requireRelease(worker, [task.company])
          })
        ),
        Effect.onInterrupt(() => bestEffort(write))
      )
      if (result.status !== "postponed") return yield* logResult(task, result)
      const { company, resource } = task
      worker.busy.set(resourceKey(task), { company, resource, untilMs: monotonicMs(worker) + contendedDelayMs })
    })
  ).pipe(
    Effect.provideService(Progress, logProgress),
    Effect.ensuring(
      Effect.sync(() => {
        worker.claims.delete(taskKey(task))
        worker.wakeUp.openUnsafe()
      })
    )
  )
