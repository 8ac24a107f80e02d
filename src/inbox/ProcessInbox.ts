/**
 * Workers that process the inbox: they read the records of events.
 *
 * Promise: every pending event is answered by a read that began after it was due, or by a row that shows that no read is
 * needed. No value of an event's body is ever loaded. A failed event is retried while the others go on; a dead letter stays
 * until a person replays it. A process may end at any point, and two may work on one inbox while its owner changes: no
 * event is lost, and processing an event twice does no harm.
 *
 * Resources share the worker (see FairShare.ts). Full scans, and reads of the children of changed parents, run as tasks
 * beside the events.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Latch from "effect/Latch"
import * as EffectQueue from "effect/Queue"
import type * as SqlClient from "effect/sql/SqlClient"
import { Priority } from "../budget/Budget.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { Company } from "../sync/Company.ts"
import type { Table } from "../warehouse/Table.ts"
import { childrenEveryMs, readForEvents, refetchChildren } from "./BulkReads.ts"
import * as FairShare from "./FairShare.ts"
import * as InboxStore from "./InboxStore.ts"
import * as InboxWorker from "./InboxWorker.ts"
import { failurePauseMs, processResource } from "./ProcessEvents.ts"
import * as RefetchRequests from "./RefetchRequests.ts"

export { fetchesPerPage, scanMinEvents } from "./BulkReads.ts"

export interface WorkerOptions {
  readonly company: Company
  readonly reader: DeliveryReader
  /** Opens when the company has new or due events (`NewEvents.ts`, `PendingWork.ts`); without one the worker polls. */
  readonly arrived?: Latch.Latch
}

/** The result of a drain. */
export interface WorkerStats {
  readonly done: number
  readonly dead: number
  readonly ignored: number
  /** How often an event was postponed: its record is not visible yet, or its read failed. */
  readonly postponed: number
  /** Why events are still due; null when none is. */
  readonly stopped: string | null
}

const pollInterval = Duration.seconds(1)
/** Minimum time between two looks. */
const lookPauseMs = 100
/** How long a drain waits for events that pause. */
const contendedWaitMs = 250
const drainFailuresMax = 3

interface Task extends FairShare.Task {
  readonly run: Effect.Effect<void, DatabaseError, Database | SqlClient.SqlClient>
}

interface RunnableTasks {
  readonly tasks: ReadonlyArray<Task>
  /** Whether events are due that pause. */
  readonly mustWait: boolean
}

const noTasks: RunnableTasks = { tasks: [], mustWait: false }

const isRefetchDue = (worker: InboxWorker.InboxWorker, path: string) =>
  worker.isDrain || worker.now() >= InboxWorker.stateOf(worker, path).nextChildrenAt

/** Whether the refetch requests were listed lately; a drain lists them once. */
const areRefetchesListed = ({ isDrain, now, refetchesListedAt }: InboxWorker.InboxWorker) =>
  now() - refetchesListedAt < (isDrain ? Number.POSITIVE_INFINITY : childrenEveryMs)

const hasNoReads = (worker: InboxWorker.InboxWorker) =>
  areRefetchesListed(worker) &&
  worker.fullReads.size === 0 &&
  ![...worker.childrenToRefetch].some((path) => isRefetchDue(worker, path))

/** Lists the tasks that can run now. */
const listTasks = Effect.fnUntraced(function* (worker: InboxWorker.InboxWorker) {
  const { company, shares } = worker
  if (worker.breaker.retryAfterMs() > 0) return noTasks
  const due = yield* InboxStore.dueResources(company.name)
  const isBusy = due.every(({ resource }) => resource !== null && shares.isBusy("events", resource))
  if (isBusy && hasNoReads(worker)) return noTasks
  const tables = yield* company.tables
  if (due.some(({ resource }) => resource === null || !tables.has(resource))) {
    worker.totals.ignored += yield* InboxStore.skipUnsynced(company.name, tables.keys())
  }
  const synced = due.flatMap(({ resource }) => (resource === null ? [] : (tables.get(resource) ?? [])))
  if (synced.length === 0 && hasNoReads(worker)) return noTasks
  const companyId = yield* InboxWorker.identify(worker)
  if (companyId === null) return noTasks
  if (!areRefetchesListed(worker)) {
    const requested = yield* RefetchRequests.resources(companyId)
    for (const { resource } of requested) worker.childrenToRefetch.add(resource)
    worker.refetchesListedAt = worker.now()
  }
  const scans = scanTasks(worker, companyId, tables)
  const scanned = new Set(scans.map(({ path }) => path))
  const isScanned = (path: string) => scanned.has(path) || shares.isBusy("scan", path)
  const isIdle = (path: string) =>
    !shares.isBusy("events", path) && worker.now() >= InboxWorker.stateOf(worker, path).pausedUntil
  const events = synced.flatMap((table): ReadonlyArray<Task> => {
    const { path } = table.resource
    if (!isIdle(path) || (!InboxWorker.isRetrievable(table) && isScanned(path))) return []
    return [{ path, kind: "events", run: processResource(worker, { companyId, tables, table, path }) }]
  })
  const mustWait = synced.some(({ resource }) => !isIdle(resource.path))
  const runnable: RunnableTasks = { tasks: [...events, ...scans], mustWait }
  return runnable
})

/** Tasks that read a whole resource, or the children of changed parents. */
const scanTasks = (
  worker: InboxWorker.InboxWorker,
  companyId: bigint,
  tables: ReadonlyMap<string, Table>
): ReadonlyArray<Task> => {
  const { childrenToRefetch, fullReads, shares } = worker
  const dueRefetches = [...childrenToRefetch].filter((path) => isRefetchDue(worker, path))
  return [...new Set([...fullReads, ...dueRefetches])].flatMap((path): ReadonlyArray<Task> => {
    const table = tables.get(path)
    if (table === undefined) {
      childrenToRefetch.delete(path)
      fullReads.delete(path)
      return []
    }
    // Events that a list answers need the same lane.
    const isLaneFree = InboxWorker.isRetrievable(table) || !shares.isBusy("events", path)
    if (!isLaneFree || shares.isBusy("scan", path)) return []
    const target = { companyId, tables, table, path }
    const run = fullReads.has(path) ? readForEvents(worker, target) : refetchChildren(worker, target)
    return [{ path, kind: "scan", run }]
  })
}

/** Runs a task. No other task of its kind runs on the resource meanwhile. */
const runTask = (worker: InboxWorker.InboxWorker, task: Task) => {
  const { path, kind, run } = task
  return Effect.suspend(() => {
    worker.shares.begin(task)
    return Effect.provideService(run, Priority, InboxWorker.urgent)
  }).pipe(
    Effect.tap(() =>
      Effect.sync(() => {
        // The events that a scan answered are resolved at once.
        if (kind === "scan") InboxWorker.pause(worker, path, 0)
      })
    ),
    Effect.tapCause(() => Effect.sync(() => InboxWorker.pause(worker, path, failurePauseMs))),
    Effect.ensuring(Effect.sync(() => worker.shares.end(task)))
  )
}

/** A log of database failures: one line for each kind of work, until that work succeeds again. */
const onceLogger = (company: string) => {
  const failing = new Set<string>()
  return {
    failed: (work: string) => (error: DatabaseError) =>
      Effect.suspend(() => {
        if (failing.has(work)) return Effect.void
        failing.add(work)
        return Effect.logWarning(`company ${company}: ${work}: waiting for the warehouse: ${error.message}`)
      }),
    succeeded: (work: string) => {
      failing.delete(work)
    }
  }
}

/** Processes the company's events for ever. */
export const run = (options: WorkerOptions): Effect.Effect<never, never, Database | SqlClient.SqlClient> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { name } = options.company
      const worker = yield* InboxWorker.make(options, false)
      const list = Effect.provideService(listTasks(worker), Priority, InboxWorker.urgent)
      const log = onceLogger(name)
      const ended = yield* EffectQueue.sliding<void>(1)
      const fibers = yield* FiberSet.make()
      const start = (task: Task) => {
        const work = `${task.kind === "events" ? "events of" : "reading"} ${task.path}`
        return runTask(worker, task).pipe(
          Effect.tap(() => Effect.sync(() => log.succeeded(work))),
          Effect.catch(log.failed(work)),
          Effect.catchDefect((defect) =>
            Effect.logError(`company ${name}: ${task.path}: this is a fault of the program`, defect)
          ),
          Effect.andThen(EffectQueue.offer(ended, undefined)),
          (logged) => FiberSet.run(fibers, logged)
        )
      }
      const latch = options.arrived
      const woken =
        latch === undefined
          ? Effect.never
          : Effect.tap(latch.await, () =>
              Effect.sync(() => {
                worker.arrivals += 1
              })
            )
      for (;;) {
        if (latch !== undefined) yield* latch.close
        const listed = yield* Effect.result(list)
        // The watches know neither of a failed look nor of reads that this worker has to make.
        const isPolling =
          latch === undefined || listed._tag === "Failure" || worker.fullReads.size + worker.childrenToRefetch.size > 0
        if (listed._tag === "Failure") yield* log.failed("events")(listed.failure)
        else {
          log.succeeded("events")
          for (const task of worker.shares.admit(listed.success.tasks)) yield* start(task)
        }
        yield* Effect.sleep(lookPauseMs)
        const next = Effect.raceFirst(woken, EffectQueue.take(ended))
        yield* isPolling ? Effect.timeoutOption(next, pollInterval) : next
      }
    })
  )

/**
 * Processes the company's events until none is due, and returns its counts. Fails when the database keeps failing. When the
 * source is unavailable, it ends with the reason.
 */
export const drain = (
  options: WorkerOptions
): Effect.Effect<WorkerStats, DatabaseError, Database | SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const worker = yield* InboxWorker.make(options, true)
    const list = Effect.provideService(listTasks(worker), Priority, InboxWorker.urgent)
    const round = Effect.gen(function* () {
      const { tasks, mustWait } = yield* list
      yield* Effect.forEach(tasks, (task) => runTask(worker, task), {
        concurrency: FairShare.concurrency.events,
        discard: true
      })
      return tasks.length > 0 ? "worked" : mustWait ? "waiting" : "empty"
    })
    let failures = 0
    for (;;) {
      const result = yield* Effect.result(round)
      if (result._tag === "Failure") {
        failures += 1
        if (failures >= drainFailuresMax) return yield* Effect.fail(result.failure)
        yield* Effect.sleep(contendedWaitMs)
        continue
      }
      if (result.success === "worked") failures = 0
      if (result.success === "waiting") yield* Effect.sleep(contendedWaitMs)
      if (result.success === "empty") return { ...worker.totals, stopped: worker.breaker.reason() }
    }
  })
