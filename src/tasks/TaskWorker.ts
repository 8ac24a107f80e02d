/**
 * The worker of a process of `serve`: it runs due tasks, pushes the outbox and processes events.
 *
 * Promise: a task that is due begins within about a second, unless the company has its maximum of runs. An event that this
 * process has stored is processed at once, one of another process within {@link lookEveryMs}, a refetch request too. The
 * process that owns a company does its work; the next owner continues what a former one left. A failed task is tried again
 * after a growing delay, with an error and a remedy. A token that the source refuses blocks its company only. A run of
 * another process or command counts. When the worker is interrupted, landed pages stay, runs are closed, and tasks and
 * events stay due. The worker waits for an unavailable warehouse.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import * as CompanyLog from "../log/CompanyLog.ts"
import { Database } from "../postgres/Database.ts"
import * as CircuitBreaker from "../sync/CircuitBreaker.ts"
import type { Company } from "../sync/Company.ts"
import { Progress } from "../sync/Progress.ts"
import { applyViews } from "../sync/Sync.ts"
import * as CheckWork from "./CheckWork.ts"
import * as Cron from "./Cron.ts"
import * as EventWork from "./EventWork.ts"
import { retryEveryMs, retryForever } from "./RetryForever.ts"
import * as PushOutbox from "./PushOutbox.ts"
import { logProgress, runTask } from "./RunTask.ts"
import * as DueTasks from "./DueTasks.ts"
import { differingCompanies, type TaskSchedule, upsertSchedules } from "./TaskSchedules.ts"
import {
  begin,
  type CompanyState,
  monotonicMs,
  nextRunMs,
  takenTasks,
  taskKey,
  type TaskWorkerOptions,
  wake,
  type WorkerState,
  type WorkGroup,
  workGroups
} from "./WorkerState.ts"

const pollEveryMs = retryEveryMs
const lookEveryMs = 250
/** Events that arrive within this time are found by one look. */
const lookPauseMs = 100
/** A poll reads the tasks of every company: runs that end within this time are followed by one poll. */
const pollPauseMaxMs = 250
/** Looks for events take at most this share of the time. A poll is not delayed so: tasks begin by it only. */
const lookShare = 1 / 4
/** A run waits for the source most of the time: this many run for each connection that lands. */
const runsPerLanding = 8
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

const initialState = Effect.fnUntraced(function* (company: Company) {
  const onOpen = (failure: DueTasks.CompanyFailure) => Effect.ignore(DueTasks.blockCompany(company.name, failure))
  const state: CompanyState = {
    company,
    breaker: yield* CircuitBreaker.make(company, { onOpen }),
    isScheduled: false,
    isIdentifying: false,
    inbox: null,
    inboxUsedAtMs: 0,
    check: null
  }
  return state
})

const initialGroup = () => ({
  running: new Map(),
  lookedAtMs: Number.NEGATIVE_INFINITY,
  lookMs: 0,
  isWanted: false,
  wakeUp: Latch.makeUnsafe(false)
})

const makeState = Effect.fnUntraced(function* (options: TaskWorkerOptions) {
  const oneAtATime = yield* Semaphore.make(1)
  const state: WorkerState = {
    options,
    clock: yield* Clock.Clock,
    clockOffsetMs: 0,
    companies: new Map(),
    runsMax: yield* runsMaxOf,
    groups: { tasks: initialGroup(), events: initialGroup(), checks: initialGroup() },
    fibers: yield* FiberMap.make<string>(),
    resting: new Map(),
    pushFailures: new Map(),
    crowded: new Set(),
    refreshViews: oneAtATime.withPermit(applyViews(options))
  }
  return state
})

const schedulesOf = (worker: WorkerState, { name, tables }: Company) =>
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

/**
 * Starts due tasks until there is none, or the process has its maximum of runs. Each statement selects one sync of a
 * company. There are as many as a company has runs at the same time, and a poll between them and the next ones: while
 * many short runs end, a company with a new request would wait otherwise.
 */
const startTasks = Effect.fnUntraced(function* (worker: WorkerState, companies: ReadonlyArray<string>) {
  const { groups, options, runsMax } = worker
  const { concurrency } = options
  for (let statements = 0; statements < concurrency; statements += 1) {
    const limit = runsMax - groups.tasks.running.size
    if (limit <= 0) return
    const tasks = yield* DueTasks.nextTasks({ companies, taken: takenTasks(worker), concurrency, limit })
    if (tasks.length === 0) return
    yield* Effect.forEach(tasks, (task) => begin(worker, "tasks", task, runTask(worker, task)), { discard: true })
  }
})

/** Asks the source for the identity of companies with due work, within the bound; requested ones first, failing ones last. */
const identify = Effect.fnUntraced(function* (
  worker: WorkerState,
  due: ReadonlyArray<string>,
  requested: ReadonlyArray<string>
) {
  const { companies } = worker
  const isRequested = new Set(requested)
  const states = [...new Set([...requested, ...due])].flatMap((name) => companies.get(name) ?? [])
  const isWaiting = ({ breaker, company, isIdentifying }: CompanyState) =>
    !isIdentifying && breaker.identity() === null && (breaker.mayIdentify() || isRequested.has(company.name))
  const waiting = states.filter(isWaiting)
  if (waiting.length === 0) return
  const running = [...companies.values()].filter(({ isIdentifying }) => isIdentifying).length
  const next = waiting
    .toSorted((one, other) => one.breaker.failures() - other.breaker.failures())
    .slice(0, Math.max(0, identifiedAtOnce - running))
  for (const state of next) {
    state.isIdentifying = true
    const ended = Effect.sync(() => {
      state.isIdentifying = false
      for (const group of workGroups) wake(worker, group)
    })
    const { breaker, company } = state
    yield* Effect.forkScoped(
      Effect.ignore(breaker.identify).pipe(CompanyLog.about(company.name), Effect.ensuring(ended))
    )
  }
})

/** Begins due tasks and pushes. */
const poll = Effect.fnUntraced(function* (worker: WorkerState) {
  const { companies } = worker
  EventWork.forgetIdle(worker)
  yield* storeSchedules(worker)
  if (companies.size === 0) return
  const { nowMs, due, requested } = yield* DueTasks.pollDue(companies, takenTasks(worker))
  worker.clockOffsetMs = nowMs - monotonicMs(worker)
  const { push } = worker.options
  const pushes = push === undefined ? [] : yield* PushOutbox.openRows(worker)
  yield* identify(worker, [...due, ...pushes.map(({ company }) => company)], requested)
  const isReady = (name: string) => (companies.get(name)?.breaker.identity() ?? null) !== null
  const ready = due.filter(isReady)
  if (ready.length > 0) yield* startTasks(worker, ready)
  for (const rows of pushes) {
    if (push !== undefined && isReady(rows.company)) {
      yield* begin(worker, "tasks", rows, PushOutbox.pushRows(worker, push, rows))
    }
  }
})

/** Begins work on due events. */
const lookForEvents = Effect.fnUntraced(function* (worker: WorkerState) {
  if (worker.companies.size > 0) yield* identify(worker, yield* EventWork.beginDue(worker), [])
})

/** When the next look for due work of a group is. */
const nextLookMs = ({ companies, groups, options }: WorkerState, group: WorkGroup) => {
  const { isWanted, lookMs, lookedAtMs } = groups[group]
  if (group !== "events") return lookedAtMs + (isWanted ? Math.min(pollPauseMaxMs, companies.size) : pollEveryMs)
  const pauseMs = isWanted ? lookPauseMs : (options.lookEveryMs ?? lookEveryMs)
  return lookedAtMs + Math.max(pauseMs, lookMs / lookShare - lookMs)
}

/** Looks for due work of a group, for ever. */
const lookForever = (worker: WorkerState, group: WorkGroup) => {
  const state = worker.groups[group]
  const looks = {
    tasks: retryForever("the schedule cannot be read", poll(worker)),
    events: retryForever("due events cannot be read", lookForEvents(worker)),
    checks: CheckWork.beginDue(worker)
  }
  return Effect.forever(
    Effect.gen(function* () {
      yield* state.wakeUp.close
      const startedAtMs = monotonicMs(worker)
      const leftMs = nextLookMs(worker, group) - startedAtMs
      if (leftMs > 0) yield* Effect.timeoutOption(state.wakeUp.await, Math.ceil(leftMs))
      else {
        state.isWanted = false
        yield* looks[group]
        state.lookedAtMs = monotonicMs(worker)
        state.lookMs = state.lookedAtMs - startedAtMs
      }
    })
  )
}

/** A poll of many due tasks takes long. It delays no event. */
const run = (worker: WorkerState) => {
  const events = lookForever(worker, "events")
  const views = Effect.provideService(worker.refreshViews, Progress, logProgress)
  const tasks = Effect.andThen(views, lookForever(worker, "tasks"))
  const all = [events, tasks, lookForever(worker, "checks")]
  return Effect.scoped(worker.options.isForEventsOnly === true ? events : Effect.raceAllFirst(all))
}

export interface TaskWorker {
  /** Does the work of a company until the end of the scope, which waits for the end of its runs. */
  readonly own: (company: Company) => Effect.Effect<void, never, Scope.Scope>
  /** Notes that this process has stored events of these companies. */
  readonly noteEvents: (companies: Iterable<string>) => void
  /** Does the due work of the owned companies, for ever. */
  readonly run: Effect.Effect<never, never, Database | SqlClient.SqlClient>
}

export const make = Effect.fnUntraced(function* (
  options: TaskWorkerOptions
): Effect.fn.Return<TaskWorker, never, Database | SqlClient.SqlClient | Scope.Scope> {
  const worker = yield* makeState(options)
  const { companies, fibers, groups } = worker
  const warehouse = yield* Effect.context<SqlClient.SqlClient>()
  const stopRuns = (name: string) =>
    Effect.forEach(
      workGroups.flatMap((group) => [...groups[group].running.values()].filter(({ company }) => company === name)),
      (task) => FiberMap.remove(fibers, taskKey(task)),
      { concurrency: "unbounded", discard: true }
    )
  return {
    own: (company) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.gen(function* () {
            const state = yield* initialState(company)
            companies.set(company.name, state)
            for (const group of workGroups) wake(worker, group)
            return state
          }).pipe(Effect.provideContext(warehouse)),
          (state) =>
            Effect.suspend(() => {
              // A keeper that ends slowly may end after the next one has begun.
              if (companies.get(company.name) !== state) return Effect.void
              companies.delete(company.name)
              return stopRuns(company.name)
            })
        )
      ),
    noteEvents: (names) => {
      for (const name of names) {
        const state = companies.get(name)
        // The owner of the company looks for events that other processes have stored.
        if (state === undefined) continue
        if (state.inbox !== null) state.inbox.arrivals += 1
        wake(worker, "events")
      }
    },
    run: run(worker)
  }
})
