/**
 * A worker that runs the tasks of the schedule, for as long as a process of `serve` lives.
 *
 * Promise: a task that is due begins within about a second, unless the company has its maximum of runs. Processes on one
 * warehouse share the tasks, and one process runs each. Another process claims the tasks of a killed one within
 * {@link TaskLeases.leaseMs} and a poll. A failed task is tried again after a growing delay, with an error and a remedy.
 * A token that the source refuses blocks its company only. A run of another process or command counts. When the worker is
 * interrupted, landed pages stay, runs are closed and tasks are returned. The worker waits for an unavailable warehouse.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberMap from "effect/FiberMap"
import * as Latch from "effect/Latch"
import * as Random from "effect/Random"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import { Database } from "../postgres/Database.ts"
import { Progress } from "../sync/Progress.ts"
import { applyViews } from "../sync/Sync.ts"
import * as Cron from "./Cron.ts"
import { identifyInBackground } from "./IdentifyCompany.ts"
import { retryEveryMs, retryForever } from "./RetryForever.ts"
import { logProgress, runTask } from "./RunTask.ts"
import * as TaskLeases from "./TaskLeases.ts"
import { type TaskSchedule, upsertSchedules } from "./TaskSchedules.ts"
import {
  type CompanyState,
  monotonicMs,
  nextRunMs,
  resourceKey,
  taskKey,
  type TaskWorkerOptions,
  type WorkerState
} from "./WorkerState.ts"

const pollEveryMs = retryEveryMs
/** A run waits for the source most of the time: this many run for each connection that lands. */
const runsPerLanding = 8
/** A poll reads the tasks of every company: runs that end within this time are followed by one poll. */
const pollDelayMaxMs = 250
const renewEveryMs = 3_000
const renewRetryMs = 1_000

const ownerName = Effect.gen(function* () {
  const parts = [yield* Random.nextInt, yield* Random.nextInt]
  return parts.map((part) => Math.abs(part).toString(36)).join("-")
})

const runsMaxOf = Effect.gen(function* () {
  const { budget } = yield* Database
  const landings = yield* Effect.orElseSucceed(
    Effect.map(budget, (one) => one.landings),
    () => 1
  )
  return landings * runsPerLanding
})

const initialState = (company: TaskWorkerOptions["companies"][number]): CompanyState => ({
  company,
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
    owner: yield* ownerName,
    clock: yield* Clock.Clock,
    clockOffsetMs: 0,
    companies: new Map(options.companies.map((company) => [company.name, initialState(company)])),
    runsMax: yield* runsMaxOf,
    claims: new Map(),
    running: yield* FiberMap.make<string>(),
    busyUntilMs: new Map(),
    wakeUp: Latch.makeUnsafe(false),
    refreshViews: oneAtATime.withPermit(applyViews(options))
  }
  return state
})

const storeSchedules = Effect.fnUntraced(function* (worker: WorkerState) {
  const { companies, freshnessOf, scheduleOf } = worker.options
  const schedules = yield* Effect.forEach(companies, ({ name, tables }) =>
    Effect.map(tables, (all) =>
      [...all.keys()].map((resource): TaskSchedule => {
        const schedule = scheduleOf(resource)
        return {
          company: name,
          resource,
          schedule: schedule.timing.kind === "off" ? null : Cron.describe(schedule),
          freshnessTarget: freshnessOf(resource),
          missed: schedule.missed,
          next: (afterMs, lastBeganMs) => nextRunMs(worker, name, resource, lastBeganMs, afterMs)
        }
      })
    )
  )
  yield* upsertSchedules(schedules.flat())
})

/** Claims and starts due tasks until there is none, or the process has its maximum of runs. */
const claimTasks = Effect.fnUntraced(function* (worker: WorkerState, companies: ReadonlyArray<CompanyState>) {
  const { busyUntilMs, claims, options, owner, running, runsMax } = worker
  const runnable = yield* Effect.forEach(companies, ({ company }) =>
    Effect.map(company.tables, (tables) =>
      [...tables.values()]
        .map(({ resource }) => ({
          company: company.name,
          resource: resource.path,
          parent: resource.parent?.resource ?? null
        }))
        .filter((one) => (busyUntilMs.get(resourceKey(one)) ?? 0) <= monotonicMs(worker))
    )
  )
  for (;;) {
    const limit = runsMax - claims.size
    if (limit <= 0) return
    const claimed = yield* Effect.uninterruptible(
      Effect.tap(TaskLeases.claimTasks(owner, runnable.flat(), options.concurrency, limit), (tasks) =>
        Effect.forEach(tasks, (task) => {
          claims.set(taskKey(task), task)
          return FiberMap.run(running, taskKey(task), runTask(worker, task))
        })
      )
    )
    if (claimed.length === 0) return
  }
})

const poll = Effect.fnUntraced(function* (worker: WorkerState) {
  const { companies } = worker
  const { nowMs, due, requested } = yield* TaskLeases.pollDue([...companies.keys()])
  worker.clockOffsetMs = nowMs - monotonicMs(worker)
  for (const [name, state] of companies) {
    const isBlocked = state.blockedUntilMs > monotonicMs(worker) && !requested.includes(name)
    if (state.identity === null && !state.isIdentifying && !isBlocked) {
      yield* Effect.forkScoped(identifyInBackground(worker, state))
    }
  }
  const ready = due.flatMap((name) => companies.get(name) ?? []).filter(({ identity }) => identity !== null)
  if (ready.length > 0) yield* claimTasks(worker, ready)
})

/** Renews the leases of running tasks, and interrupts a run whose lease another process took over. */
const renewLeases = Effect.fnUntraced(function* (worker: WorkerState) {
  const { claims, running } = worker
  for (;;) {
    const tasks = [...claims.values()]
    const renewed = yield* Effect.exit(TaskLeases.renewLeases(tasks))
    if (Exit.isFailure(renewed)) {
      yield* Effect.sleep(renewRetryMs)
      continue
    }
    const kept = new Set(renewed.value.map(taskKey))
    for (const task of tasks) {
      // A task that has just ended is not among the renewed ones either.
      if (kept.has(taskKey(task)) || claims.get(taskKey(task)) !== task) continue
      yield* Effect.logWarning(`${task.company}: ${task.resource}: another process has taken over the task`)
      yield* Effect.forkScoped(FiberMap.remove(running, taskKey(task)))
    }
    yield* Effect.sleep(renewEveryMs)
  }
})

const work = Effect.fnUntraced(function* (options: TaskWorkerOptions) {
  const worker = yield* makeState(options)
  const { companies, refreshViews, wakeUp } = worker
  yield* retryForever("the schedule cannot be stored", storeSchedules(worker))
  yield* Effect.provideService(refreshViews, Progress, logProgress)
  yield* Effect.forkScoped(renewLeases(worker))
  return yield* Effect.forever(
    Effect.andThen(
      retryForever("the schedule cannot be read", poll(worker)),
      Effect.timeoutOption(wakeUp.await, pollEveryMs).pipe(
        Effect.andThen(Effect.sleep(Math.min(pollDelayMaxMs, companies.size))),
        Effect.andThen(wakeUp.close)
      )
    )
  )
})

/** Runs the due tasks of these companies, for ever. */
export const runTasks = (options: TaskWorkerOptions): Effect.Effect<never, never, Database | SqlClient.SqlClient> =>
  Effect.scoped(work(options))
