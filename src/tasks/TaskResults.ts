/** The results of tasks, from the outcomes of their runs: the stored state, and the time of the next run. */
import * as Cause from "effect/Cause"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Remedy from "../postgres/Remedy.ts"
import { isAccessBlock } from "../sync/Sync.ts"
import type { Outcome } from "../sync/Outcome.ts"
import type { ResourceHistory } from "./ResourceHistory.ts"
import type { DueTask, TaskResult } from "./DueTasks.ts"
import { backoffMs, nextRunMs, warehouseMs, type WorkerState } from "./WorkerState.ts"
import { count, plural } from "../text/Count.ts"

/** A failed task is not tried again sooner, however often its schedule is due. */
const retryDelayMinMs = 5_000
/** A resource with an access block, or one that is not configured, is checked again after this. */
const blockedDelayMs = 15 * 60_000

/** The time of the next attempt: by the backoff, or sooner where the schedule is due sooner. */
const retryMs = (worker: WorkerState, task: DueTask, failures: number): number | null => {
  const now = warehouseMs(worker)
  const backedOffMs = now + backoffMs(failures)
  if (task.kind === "backfill") return backedOffMs
  const nextMs = nextRunMs(worker, task.company, task.resource, task.nowMs, now)
  return nextMs === null ? null : Math.max(now + retryDelayMinMs, Math.min(backedOffMs, nextMs))
}

const failed = (
  worker: WorkerState,
  task: DueTask,
  runId: bigint | null,
  { kind, message, remedy }: { readonly kind: string; readonly message: string; readonly remedy: string }
): TaskResult => {
  const failures = task.failures + 1
  const nextMs = retryMs(worker, task, failures)
  return { status: "failed", runId, error: message, remedy, failures, nextMs, failureKind: kind }
}

/** The result of a task whose run ended without an outcome: the database failed, or the program has a fault. */
export const crashed = (
  worker: WorkerState,
  task: DueTask,
  cause: Cause.Cause<{ readonly message: string }>
): TaskResult => {
  if (Cause.hasDies(cause)) {
    const message = `this is a fault of the program: ${Cause.pretty(cause)}`
    return failed(worker, task, null, { kind: "Defect", message, remedy: "please report it" })
  }
  const error = Cause.squash(cause)
  const message = error instanceof Error ? error.message : String(error)
  const action = Remedy.remedyOf(DatabaseError.from("run the task")(error)) ?? Remedy.readLog
  const remedy = `${action}; the next run goes on where this one stopped`
  return failed(worker, task, null, { kind: "DatabaseError", message, remedy })
}

export const skipped = (
  worker: WorkerState,
  { kind, resource }: DueTask,
  error: string,
  remedy: string
): TaskResult => {
  const isScheduled = kind === "sync" && worker.options.scheduleOf(resource).timing.kind !== "off"
  const nextMs = isScheduled ? warehouseMs(worker) + blockedDelayMs : null
  return { status: "skipped", runId: null, error, remedy, failures: 0, nextMs }
}

/** The result of a task that another run has done already; null where the task has to be run. */
export const alreadyDone = (worker: WorkerState, task: DueTask, { lastRun }: ResourceHistory): TaskResult | null => {
  if (task.kind === "backfill" || lastRun === null) return null
  const { beganMs, isComplete, isFull, runId } = lastRun
  const nextAfter = (afterMs?: number) => nextRunMs(worker, task.company, task.resource, beganMs, afterMs)
  if (task.requestedAt === null) {
    const dueMs = nextAfter(beganMs)
    if (dueMs === null || dueMs <= warehouseMs(worker)) return null
  } else if (beganMs * 1000 < task.requestedAt || (task.full && !isFull)) return null
  const status = isComplete ? "done" : "quarantined"
  return { status, runId, error: null, remedy: null, failures: 0, nextMs: nextAfter() }
}

/** The warning about a run that did not fail: an error and its remedy. */
const warningOf = ({ resource }: DueTask, { massDeleteBlocked, notes, status, totals }: Outcome) => {
  if (massDeleteBlocked !== null) {
    return [
      `the mass-delete guard stopped the deletion of ${count(massDeleteBlocked.gone)} of ${plural(massDeleteBlocked.live, "row")} that a full scan did not return`,
      `if the source deleted them, run: tributary sync ${resource} --full --accept-deletions`
    ] as const
  }
  const { quarantined } = totals
  if (quarantined > 0) {
    return [
      `${plural(quarantined, "record is", "records are")} in quarantine`,
      "the dashboard's page Quarantine, or tributary.quarantine, shows the reason"
    ] as const
  }
  return status === "quarantined" ? ([notes.join("; "), "see the note"] as const) : ([null, null] as const)
}

/** The result of a run; null where another run has the resource. */
export const resultOf = (worker: WorkerState, task: DueTask, outcome: Outcome): TaskResult | null => {
  const { failure, runId } = outcome
  if (failure !== null) {
    if (failure.disposition === "contended") return null
    return isAccessBlock(failure)
      ? skipped(worker, task, failure.message, failure.remedy)
      : failed(worker, task, runId, failure)
  }
  const [error, remedy] = warningOf(task, outcome)
  return {
    status: outcome.status === "quarantined" ? "quarantined" : "done",
    runId,
    error,
    remedy,
    failures: 0,
    nextMs: task.kind === "backfill" ? null : nextRunMs(worker, task.company, task.resource, task.nowMs)
  }
}
