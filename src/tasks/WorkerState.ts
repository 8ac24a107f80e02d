/** The state of a task worker: its companies, its runs, and the warehouse's clock. */
import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as FiberMap from "effect/FiberMap"
import type * as Latch from "effect/Latch"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ConnectorShape, Identity } from "../connector/Connector.ts"
import type { EngineSettings } from "../sync/EngineSettings.ts"
import type { PushSettings } from "../outbox/PushSession.ts"
import type { Index } from "../warehouse/Indexes.ts"
import type { Model } from "../warehouse/Model.ts"
import type { Datasets, Table } from "../warehouse/Table.ts"
import * as Cron from "./Cron.ts"
import type { TakenTask, TaskKey } from "./DueTasks.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Backoff from "../time/Backoff.ts"

/** A company whose resources are synced by their schedules. */
export interface ScheduledCompany {
  readonly name: string
  readonly connector: ConnectorShape
  /** The tables of the synced resources by path, with the inferred columns; read again at each use. */
  readonly tables: Effect.Effect<ReadonlyMap<string, Table>, DatabaseError>
  readonly engine: EngineSettings
  readonly batchRecordsMax: number
  /** The limit of the token's budget; null or absent is no limit. */
  readonly requestsPerMinute?: number | null
}

export interface TaskWorkerOptions {
  readonly scheduleOf: (resource: string) => Cron.ResourceSchedule
  /** The freshness target: the maximum age of a resource's data. */
  readonly freshnessOf: (resource: string) => Duration.Duration
  /** Resources of one company that are read at the same time. */
  readonly concurrency: number
  readonly datasets: Datasets
  /** Views for people, kept up to date beside the tables. */
  readonly models: ReadonlyArray<Model>
  /** Indexes beside those of the models. */
  readonly indexes?: ReadonlyArray<Index>
  /** Absent: rows in the outbox stay there. */
  readonly push?: PushSettings
}

export interface CompanyState {
  readonly company: ScheduledCompany
  /** Whether its schedules are stored. */
  isScheduled: boolean
  /** Null until its first task is due and the source has accepted the token: no task of the company runs before. */
  identity: Identity | null
  identifiedAtMs: number
  isIdentifying: boolean
  consecutiveFailures: number
  /** The source gets no request before this time of the process's monotonic clock. */
  blockedUntilMs: number
  /** The last error that was logged, so that each is logged once. */
  loggedError: string | null
}

export interface WorkerState {
  readonly options: TaskWorkerOptions
  readonly clock: Clock.Clock
  /** The difference of the warehouse's clock to the process's monotonic clock. */
  clockOffsetMs: number
  /** The companies that this process owns. */
  readonly companies: Map<string, CompanyState>
  /** Runs of this process at the same time. */
  readonly runsMax: number
  /** The work of this process, by {@link taskKey}. */
  readonly running: Map<string, TaskKey>
  readonly fibers: FiberMap.FiberMap<string>
  /** Work that is not begun, with the end of its pause on the process's monotonic clock. */
  readonly resting: Map<string, { readonly task: TaskKey; readonly untilMs: number }>
  /** Failures in a row of pushes, by {@link taskKey}. */
  readonly pushFailures: Map<string, number>
  /** Opens when a run ended or a company was identified, so that the worker polls at once. */
  readonly wakeUp: Latch.Latch
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

/** The delay before a failed task, or a company, is tried again: it doubles with each failure. */
export const backoffMs = (failures: number): number => Backoff.delayMs(failures, backoffMinMs, backoffMaxMs)

export const taskKey = ({ company, resource, kind }: TaskKey): string => JSON.stringify([company, resource, kind])

/** The pause of a task that cannot run now, because another run has its lane or its company is blocked. */
export const contendedMs = 5_000

/** Work stays due, and begins no earlier than after this. */
export const rest = (worker: WorkerState, task: TaskKey, ms: number): void => {
  worker.resting.set(taskKey(task), { task, untilMs: monotonicMs(worker) + ms })
}

/** The tasks that this process runs or lets rest. */
export const takenTasks = (worker: WorkerState): ReadonlyArray<TakenTask> => {
  const { resting, running } = worker
  for (const [key, { untilMs }] of resting) if (untilMs <= monotonicMs(worker)) resting.delete(key)
  const keyOf = ({ company, resource, kind }: TaskKey) => ({ company, resource, kind })
  return [
    ...[...running.values()].map((task) => ({ ...keyOf(task), runs: true })),
    ...[...resting.values()].map(({ task }) => ({ ...keyOf(task), runs: false }))
  ]
}
