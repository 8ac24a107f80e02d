/** The state of a worker: its companies, its work, and the warehouse's clock. */
import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import type * as Latch from "effect/Latch"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { InboxWorker } from "../inbox/InboxWorker.ts"
import type { CircuitBreaker } from "../sync/CircuitBreaker.ts"
import type { Company } from "../sync/Company.ts"
import type { PushSettings } from "../outbox/PushSession.ts"
import type { Index } from "../warehouse/Indexes.ts"
import type { Model } from "../warehouse/Model.ts"
import type { Datasets } from "../warehouse/Table.ts"
import type { CheckState } from "./CheckWork.ts"
import * as Cron from "./Cron.ts"
import type { TakenTask, TaskKey } from "./DueTasks.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Backoff from "../time/Backoff.ts"

export interface TaskWorkerOptions {
  readonly scheduleOf: (resource: string) => Cron.ResourceSchedule
  /** The freshness target: the maximum age of a resource's data. */
  readonly freshnessOf: (resource: string) => Duration.Duration
  /** Resources of one company that are synced at the same time. */
  readonly concurrency: number
  readonly reader: DeliveryReader
  /** How often due events of other processes are looked for; default 250 ms. */
  readonly lookEveryMs?: number
  /** Whether nothing but events is worked on; default false. */
  readonly isForEventsOnly?: boolean
  readonly datasets: Datasets
  /** Views for people, kept up to date beside the tables. */
  readonly models: ReadonlyArray<Model>
  /** Indexes beside those of the models. */
  readonly indexes?: ReadonlyArray<Index>
  /** Absent: rows in the outbox stay there. */
  readonly push?: PushSettings
  /** The checks for missed events; absent: none. */
  readonly checks?: {
    readonly interval: Duration.Duration
    /** The address from outside to which the source delivers the events of a company; null where it is not configured. */
    readonly urlOf: (company: string) => string | null
  }
}

export interface CompanyState {
  readonly company: Company
  readonly breaker: CircuitBreaker
  /** Whether its schedules are stored. */
  isScheduled: boolean
  isIdentifying: boolean
  /** What is known about its pending events; null while it has none. */
  inbox: InboxWorker | null
  inboxUsedAtMs: number
  /** Null before the time of its first check is known. */
  check: CheckState | null
}

/** `tasks`: due tasks and rows of the outbox. `events`: due events and refetch requests. `checks`: {@link CheckState}. */
export const workGroups = ["tasks", "events", "checks"] as const
export type WorkGroup = (typeof workGroups)[number]

interface GroupState {
  /** Its work in this process, by {@link taskKey}. */
  readonly running: Map<string, TaskKey>
  /** When the last look for due work ended, on the process's monotonic clock, and how long it took. */
  lookedAtMs: number
  lookMs: number
  /** Whether something happened since the last look began, so that the next one is soon. */
  isWanted: boolean
  /** Opens when a look is wanted. */
  readonly wakeUp: Latch.Latch
}

export interface WorkerState {
  readonly options: TaskWorkerOptions
  readonly clock: Clock.Clock
  /** The difference of the warehouse's clock to the process's monotonic clock. */
  clockOffsetMs: number
  /** The companies that this process owns. */
  readonly companies: Map<string, CompanyState>
  /** Syncs and pushes of this process at the same time, and as many resources whose events are processed. */
  readonly runsMax: number
  readonly groups: Readonly<Record<WorkGroup, GroupState>>
  readonly fibers: FiberMap.FiberMap<string>
  /** Work that is not begun, with the end of its pause on the process's monotonic clock. */
  readonly resting: Map<string, { readonly task: TaskKey; readonly untilMs: number }>
  /** Failures in a row of pushes, by {@link taskKey}. */
  readonly pushFailures: Map<string, number>
  /** The companies with due events that wait for a place; `all`: the process has no place for events left. */
  crowded: ReadonlySet<string> | "all"
  readonly refreshViews: Effect.Effect<void, never, SqlClient.SqlClient>
}

export const monotonicMs = ({ clock }: WorkerState): number => MonotonicClock.nowMs(clock)

export const warehouseMs = (worker: WorkerState): number => monotonicMs(worker) + worker.clockOffsetMs

/** The next time of a resource's schedule after a time, or after now; null where it has none. */
export const nextRunMs = (
  worker: WorkerState,
  company: string,
  resource: string,
  lastBeganMs: number | null,
  afterMs = warehouseMs(worker)
): number | null => Cron.next(worker.options.scheduleOf(resource), afterMs, `${company} ${resource}`, lastBeganMs)

const backoffMinMs = 30_000
const backoffMaxMs = 15 * 60_000

/** The delay before a failed task is tried again: it doubles with each failure. */
export const backoffMs = (failures: number): number => Backoff.delayMs(failures, backoffMinMs, backoffMaxMs)

export const taskKey = ({ company, resource, kind }: TaskKey): string => JSON.stringify([company, resource, kind])

/** Looks for due work soon. */
export const wake = ({ groups }: WorkerState, group: WorkGroup): void => {
  groups[group].isWanted = true
  groups[group].wakeUp.openUnsafe()
}

/** Begins work, unless the process has lost its company meanwhile. Its end is followed by a look for more. */
export const begin = <R>(worker: WorkerState, group: WorkGroup, task: TaskKey, work: Effect.Effect<void, never, R>) =>
  Effect.suspend(() => {
    const { companies, fibers, groups } = worker
    const { running } = groups[group]
    const key = taskKey(task)
    if (!companies.has(task.company)) return Effect.void
    running.set(key, task)
    const ended = Effect.sync(() => {
      running.delete(key)
      wake(worker, group)
    })
    return FiberMap.run(fibers, key, Effect.ensuring(work, ended))
  })

/** The pause of a task that cannot run now, because another run has its lane or its company is blocked. */
export const contendedMs = 5_000

/** Work stays due, and begins no earlier than after this. */
export const rest = (worker: WorkerState, task: TaskKey, ms: number): void => {
  worker.resting.set(taskKey(task), { task, untilMs: monotonicMs(worker) + ms })
}

/** The tasks that this process runs or lets rest. */
export const takenTasks = (worker: WorkerState): ReadonlyArray<TakenTask> => {
  const { resting, groups } = worker
  const { running } = groups.tasks
  for (const [key, { untilMs }] of resting) if (untilMs <= monotonicMs(worker)) resting.delete(key)
  const keyOf = ({ company, resource, kind }: TaskKey) => ({ company, resource, kind })
  return [
    ...[...running.values()].map((task) => ({ ...keyOf(task), runs: true })),
    ...[...resting.values()].map(({ task }) => ({ ...keyOf(task), runs: false }))
  ]
}
