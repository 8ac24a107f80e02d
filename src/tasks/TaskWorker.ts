/**
 * A worker that runs due tasks and pushes the outbox, for as long as a process of `serve` lives.
 *
 * Promise: a task that is due begins within about a second, unless the company has its maximum of runs. The process that
 * owns a company runs its tasks; the next owner continues what a former one left. A failed task is tried again after a
 * growing delay, with an error and a remedy. A token that the source refuses blocks its company only. A run of another
 * process or command counts. When the worker is interrupted, landed pages stay, runs are closed and tasks stay due. The
 * worker waits for an unavailable warehouse.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import { Database } from "../postgres/Database.ts"
import { Progress } from "../sync/Progress.ts"
import { applyViews } from "../sync/Sync.ts"
import * as Cron from "./Cron.ts"
import { identifyInBackground } from "./IdentifyCompany.ts"
import { retryEveryMs, retryForever } from "./RetryForever.ts"
import * as PushOutbox from "./PushOutbox.ts"
import { logProgress, runTask } from "./RunTask.ts"
import * as DueTasks from "./DueTasks.ts"
import { differingCompanies, type TaskSchedule, upsertSchedules } from "./TaskSchedules.ts"
import {
  type CompanyState,
  monotonicMs,
  nextRunMs,
  type ScheduledCompany,
  takenTasks,
  taskKey,
  type TaskWorkerOptions,
  type WorkerState
} from "./WorkerState.ts"

const pollEveryMs = retryEveryMs
/** A run waits for the source most of the time: this many run for each connection that lands. */
const runsPerLanding = 8
/** A poll reads the tasks of every company: runs that end within this time are followed by one poll. */
const pollDelayMaxMs = 250
/** Companies whose source is asked for their identity at the same time. */
const identifiedAtOnce = 256
/** Schedules of so many companies are stored by one transaction. */
const companiesPerStatement = 200

const runsMaxOf = Effect.gen(function* () {
  const { budget } = yield* Database
  const landings = yield* Effect.orElseSucceed(
    Effect.map(budget, (one) => one.landings),
    () => 1
  )
  return landings * runsPerLanding
})

const initialState = (company: ScheduledCompany): CompanyState => ({
  company,
  isScheduled: false,
  identity: null,
  identifiedAtMs: 0,
  isIdentifying: false,
  consecutiveFailures: 0,
  blockedUntilMs: 0,
  loggedError: null
})

const makeState = Effect.fnUntraced(function* (options: TaskWorkerOptions) {
  const oneAtATime = yield* Semaphore.make(1)
  const state: WorkerState = {
    options,
    clock: yield* Clock.Clock,
    clockOffsetMs: 0,
    companies: new Map(),
    runsMax: yield* runsMaxOf,
    running: new Map(),
    fibers: yield* FiberMap.make<string>(),
    resting: new Map(),
    pushFailures: new Map(),
    wakeUp: Latch.makeUnsafe(false),
    refreshViews: oneAtATime.withPermit(applyViews(options))
  }
  return state
})

const schedulesOf = (worker: WorkerState, { name, tables }: ScheduledCompany) =>
  Effect.map(tables, (all) =>
    [...all].map(([resource, table]): TaskSchedule => {
      const schedule = worker.options.scheduleOf(resource)
      return {
        company: name,
        resource,
        parent: table.resource.parent?.resource ?? null,
        schedule: schedule.timing.kind === "off" ? null : Cron.describe(schedule),
        freshnessTarget: worker.options.freshnessOf(resource),
        missed: schedule.missed,
        next: (afterMs, lastBeganMs) => nextRunMs(worker, name, resource, lastBeganMs, afterMs)
      }
    })
  )

/** Stores the schedules of new companies. */
const storeSchedules = Effect.fnUntraced(function* (worker: WorkerState) {
  const added = [...worker.companies.values()].filter(({ isScheduled }) => !isScheduled)
  // Companies with the same resources have the same schedules.
  for (const alike of Map.groupBy(added, ({ company }) => company.tables).values()) {
    const schedules = yield* schedulesOf(worker, alike[0]!.company)
    for (const chunk of Arr.chunksOf(alike, companiesPerStatement)) {
      const differing = yield* differingCompanies(
        chunk.map(({ company }) => company.name),
        schedules
      )
      const changed = chunk.filter(({ company }) => differing.has(company.name))
      yield* upsertSchedules((yield* Effect.forEach(changed, ({ company }) => schedulesOf(worker, company))).flat())
      for (const state of chunk) state.isScheduled = true
    }
  }
})

/** Begins work, unless the process has lost its company meanwhile. */
const start = <R>(worker: WorkerState, task: DueTasks.TaskKey, work: Effect.Effect<void, never, R>) =>
  Effect.suspend(() => {
    const { companies, fibers, running, wakeUp } = worker
    const key = taskKey(task)
    if (!companies.has(task.company)) return Effect.void
    running.set(key, task)
    const ended = Effect.sync(() => {
      running.delete(key)
      wakeUp.openUnsafe()
    })
    return FiberMap.run(fibers, key, Effect.ensuring(work, ended))
  })

/**
 * Starts due tasks until there is none, or the process has its maximum of runs. Each statement selects one sync of a
 * company. There are as many as a company has runs at the same time, and a poll between them and the next ones: while
 * many short runs end, a company with a new request would wait otherwise.
 */
const startTasks = Effect.fnUntraced(function* (worker: WorkerState, companies: ReadonlyArray<string>) {
  const { options, running, runsMax } = worker
  const { concurrency } = options
  for (let statements = 0; statements < concurrency; statements += 1) {
    const limit = runsMax - running.size
    if (limit <= 0) return
    const tasks = yield* DueTasks.nextTasks({ companies, taken: takenTasks(worker), concurrency, limit })
    if (tasks.length === 0) return
    yield* Effect.forEach(tasks, (task) => start(worker, task, runTask(worker, task)), { discard: true })
  }
})

/** The companies that have a due task and no identity yet, within the bound; requested ones first, failing ones last. */
const companiesToIdentify = (
  worker: WorkerState,
  due: ReadonlyArray<string>,
  requested: ReadonlyArray<string>
): ReadonlyArray<CompanyState> => {
  const { companies } = worker
  const isRequested = new Set(requested)
  const states = [...new Set([...requested, ...due])].flatMap((name) => companies.get(name) ?? [])
  const isWaiting = ({ company, identity, isIdentifying, blockedUntilMs }: CompanyState) =>
    identity === null && !isIdentifying && (blockedUntilMs <= monotonicMs(worker) || isRequested.has(company.name))
  const waiting = states.filter(isWaiting)
  if (waiting.length === 0) return waiting
  const running = [...companies.values()].filter(({ isIdentifying }) => isIdentifying).length
  return waiting
    .toSorted((one, other) => one.consecutiveFailures - other.consecutiveFailures)
    .slice(0, Math.max(0, identifiedAtOnce - running))
}

const poll = Effect.fnUntraced(function* (worker: WorkerState) {
  const { companies } = worker
  yield* storeSchedules(worker)
  if (companies.size === 0) return
  const { nowMs, due, requested } = yield* DueTasks.pollDue(companies, takenTasks(worker))
  worker.clockOffsetMs = nowMs - monotonicMs(worker)
  const { push } = worker.options
  const pushes = push === undefined ? [] : yield* PushOutbox.openRows(worker)
  const busy = [...due, ...pushes.map(({ company }) => company)]
  for (const state of companiesToIdentify(worker, busy, requested)) {
    yield* Effect.forkScoped(identifyInBackground(worker, state))
  }
  const isReady = (name: string) => (companies.get(name)?.identity ?? null) !== null
  const ready = due.filter(isReady)
  if (ready.length > 0) yield* startTasks(worker, ready)
  for (const rows of pushes) {
    if (push !== undefined && isReady(rows.company)) yield* start(worker, rows, PushOutbox.pushRows(worker, push, rows))
  }
})

const pollForever = Effect.fnUntraced(function* (worker: WorkerState) {
  const { companies, refreshViews, wakeUp } = worker
  yield* Effect.provideService(refreshViews, Progress, logProgress)
  return yield* Effect.forever(
    Effect.andThen(
      retryForever("the schedule cannot be read", poll(worker)),
      Effect.timeoutOption(wakeUp.await, pollEveryMs).pipe(
        Effect.andThen(Effect.suspend(() => Effect.sleep(Math.min(pollDelayMaxMs, companies.size)))),
        Effect.andThen(wakeUp.close)
      )
    )
  )
}, Effect.scoped)

export interface TaskWorker {
  /** Runs the tasks of a company until the end of the scope, which waits for the end of its runs. */
  readonly own: (company: ScheduledCompany) => Effect.Effect<void, never, Scope.Scope>
  /** Runs the due tasks of the owned companies and pushes their outboxes, for ever. */
  readonly run: Effect.Effect<never, never, Database | SqlClient.SqlClient>
}

export const make = Effect.fnUntraced(function* (
  options: TaskWorkerOptions
): Effect.fn.Return<TaskWorker, never, Database | Scope.Scope> {
  const worker = yield* makeState(options)
  const { companies, fibers, running, wakeUp } = worker
  const stopRuns = (name: string) =>
    Effect.forEach(
      [...running.values()].filter(({ company }) => company === name),
      (task) => FiberMap.remove(fibers, taskKey(task)),
      { concurrency: "unbounded", discard: true }
    )
  return {
    own: (company) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => {
            const state = initialState(company)
            companies.set(company.name, state)
            wakeUp.openUnsafe()
            return state
          }),
          (state) =>
            Effect.suspend(() => {
              // A keeper that ends slowly may end after the next one has begun.
              if (companies.get(company.name) !== state) return Effect.void
              companies.delete(company.name)
              return stopRuns(company.name)
            })
        )
      ),
    run: pollForever(worker)
  }
})
