/** The state of a task worker: its companies, its claims, and the warehouse's clock. */
import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as FiberMap from "effect/FiberMap"
import type * as Latch from "effect/Latch"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ConnectorShape, Identity } from "../connector/Connector.ts"
import type { EngineSettings } from "../sync/EngineSettings.ts"
import type { Index } from "../warehouse/Indexes.ts"
import type { Model } from "../warehouse/Model.ts"
import type { Datasets, Table } from "../warehouse/Table.ts"
import * as Cron from "./Cron.ts"
import type { ClaimedTask, TaskClaim } from "./TaskClaims.ts"
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
}

export interface TaskWorkerOptions {
  /** The name of this process in claims. */
  readonly processId: string
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
}

export interface CompanyState {
  readonly company: ScheduledCompany
  /** Whether its schedules are stored. */
  isScheduled: boolean
  /** Whether it may have tasks that no process runs although they are claimed. */
  mustRelease: boolean
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
  readonly claims: Map<string, ClaimedTask>
  readonly running: FiberMap.FiberMap<string>
  /** Resources that another run has, with the end of their pause on the process's monotonic clock. */
  readonly busy: Map<string, { readonly company: string; readonly resource: string; readonly untilMs: number }>
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

export const resourceKey = ({ company, resource }: Pick<TaskClaim, "company" | "resource">): string =>
  JSON.stringify([company, resource])

export const taskKey = ({ company, resource, kind }: Pick<TaskClaim, "company" | "resource" | "kind">): string =>
  JSON.stringify([company, resource, kind])

/** Releases the claimed tasks of these companies that this process does not run, at the next poll. */
export const requireRelease = ({ companies }: WorkerState, names: ReadonlyArray<string>): void => {
  for (const name of names) {
    const state = companies.get(name)
    if (state !== undefined) state.mustRelease = true
  }
}
