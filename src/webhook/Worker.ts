/**
 * Acting on events: reading what they hint at.
 *
 * Promise: every event that waits is answered by a read that began after it had come, or by a row that shows that it needs
 * none, and is settled with a reason where that is not plain; nothing of its body is ever loaded. Whatever fails is tried
 * again, the others meanwhile go on, and what is given up stays for a person. Several processes may work on one inbox,
 * and any of them may end at any point: no event is lost, and acting on one twice does no harm.
 *
 * How a record is read: by its number, as long as that is cheap. Where more than {@link manyMin} records of a resource
 * wait, and there are more of them than {@link pagePrice} times the pages that a scan from the cursor would have (it
 * reads again what changed within its overlap), one scan answers them together.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Latch from "effect/Latch"
import * as EffectQueue from "effect/Queue"
import * as Random from "effect/Random"
import type * as SqlClient from "effect/sql/SqlClient"
import { Priority } from "../budget/Budget.ts"
import { type DeliveryReader, isEvent } from "../connector/Delivery.ts"
import type { Landed } from "../land/Lander.ts"
import type { Table } from "../model/Table.ts"
import type { Failure, Outcome } from "../pipeline/Outcome.ts"
import { failureOf } from "../pipeline/Outcome.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { childrenOf, type Company } from "./Company.ts"
import * as Health from "./Health.ts"
import { failed, type Item, oneByOne, turnMs, untilVisible } from "./OneByOne.ts"
import * as Queue from "./Queue.ts"
import { isRead, refresh } from "./Refresh.ts"

export interface WorkerOptions {
  readonly company: Company
  readonly reader: DeliveryReader
  /** Whose `arrived` wakes the worker; without one it looks about once a second. */
  readonly inbox?: { readonly arrived: Latch.Latch } | undefined
}

/** What a worker did. */
export interface Worked {
  readonly done: number
  readonly dead: number
  readonly ignored: number
  /** Times that an event was put off: its record is not visible yet, or its read failed. */
  readonly putOff: number
  /** Why the rest still waits; null when nothing that is due does. */
  readonly stopped: string | null
}

/** Resources worked on at the same time. */
const concurrency = 4
/** Events looked at together. */
const takenMax = 500
const lookEveryMs = 1_000
/** How soon after a look the next one may follow: what comes meanwhile is found by it together. */
const lookAgainMs = 100
const renewEveryMs = 3_000
const lingerMs = 2_000
/** A resource that somebody else holds is left alone for so long… */
const restMs = 2_000
/** … and one on which the work failed for so long. */
const failedRestMs = 5_000
/** Between two long turns on a resource, so that somebody else who wants it (a repair, a new column) gets it. */
const handOverMs = 300
/** Every record of a resource is read at most so often on behalf of events. */
const sweepEveryMs = 60_000
/**
 * Reading the whole of a resource on behalf of events takes at most this share of the time, and of the request budget;
 * meanwhile they gather: each scan reads again what changed within its overlap.
 */
const wholeShare = 1 / 3
/** Children of changed parents are read at most so often. */
const childrenEveryMs = 5_000
/** A scan that did not go well is not tried again for many for so long. */
const scanAgainMs = 60_000
/** A drain waits so long for what another process has claimed before it looks again. */
const claimedWaitMs = 250
const drainFailuresMax = 3

/** More records than this wait before a scan is thought of. */
export const manyMin = 25
/** A page of a scan costs about as much as so many records read side by side. */
export const pagePrice = 10
const pageRecordsDefault = 100

/** Records that a scan from the cursor would meet again. */
interface Met {
  readonly at: number
  readonly records: number
}

/** What is known of a resource while the process lives. */
interface Known {
  restUntil: number
  scanUntil: number
  /** When the whole of it may be read again. */
  wholeAt: number
  childrenAt: number
  pageRecords: number
  met: Array<Met>
}

const priority = { urgent: { class: "urgent", dueAt: 0 }, live: { class: "live", dueAt: 0 } } as const

const make = Effect.fnUntraced(function* (options: WorkerOptions, isDrain: boolean) {
  const { company, reader } = options
  const { name, connector } = company
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const health = yield* Health.make(name, connector)
  const drawn = [yield* Random.nextInt, yield* Random.nextInt]
  const owner = drawn.map((part) => Math.abs(part).toString(36)).join("-")
  const totals = { done: 0, dead: 0, ignored: 0, putOff: 0 }
  /** How often something new was stored by this process. */
  let arrivals = 0
  let identified: bigint | null = null
  /** Child resources whose parents have changed. */
  const kin = new Set<string>()
  let isKinKnown = false
  const busy = new Set<string>()
  const resources = new Map<string, Known>()
  const known = (path: string): Known => {
    const one = resources.get(path) ?? {
      restUntil: 0,
      scanUntil: 0,
      wholeAt: 0,
      childrenAt: Number.NEGATIVE_INFINITY,
      pageRecords: pageRecordsDefault,
      met: []
    }
    resources.set(path, one)
    return one
  }

  const told = (verdicts: ReadonlyArray<Queue.Verdict>) => {
    for (const { state } of verdicts) totals[state === "waiting" ? "putOff" : state] += 1
  }
  const judge = (verdicts: ReadonlyArray<Queue.Verdict>, runId: bigint | null = null) =>
    Effect.andThen(
      Queue.judge(verdicts, runId),
      Effect.sync(() => told(verdicts))
    )

  const identify = Effect.suspend(() => {
    if (identified !== null) return Effect.succeed(identified)
    const askedAt = now()
    return connector.identify.pipe(
      Effect.matchEffect({
        onSuccess: ({ companyId }) => {
          identified = companyId
          return Effect.as(health.answered, companyId)
        },
        // A source that does not answer this either is away, whatever it says.
        onFailure: (error) => Effect.as(health.blame({ ...failureOf(error), stops: "company" }, askedAt), null)
      })
    )
  })

  const rest = (path: string, ms: number) => {
    known(path).restUntil = now() + ms
  }

  /** One resource of a company that is being worked on. */
  interface Place {
    readonly companyId: bigint
    readonly tables: ReadonlyMap<string, Table>
    readonly table: Table
    readonly path: string
    /** Whether the claim is still ours. */
    readonly isOurs: () => boolean
  }

  const changed = ({ tables, path }: Place, written: number) => {
    if (written > 0) for (const child of childrenOf(tables, path)) kin.add(child.resource)
  }

  /** Notes records that a scan from the cursor would meet again, and answers how many there are. */
  const meet = (path: string, records: number) => {
    const one = known(path)
    const since = now() - company.engine.overlapMs
    one.met = [...one.met.filter(({ at }) => at >= since), ...(records > 0 ? [{ at: now(), records }] : [])]
    return one.met.reduce((sum, { records: each }) => sum + each, 0)
  }

  /** Due events, without those that need no read: they are settled here. */
  const look = Effect.fnUntraced(function* (place: Place, inHand: ReadonlySet<string>) {
    const { path, companyId, table } = place
    const asked = yield* Queue.take({ company: name, resource: path, inHand, atMost: takenMax })
    const foreign: Array<Queue.Verdict> = []
    const own = asked.filter(({ id, body }) => {
      const event = reader.read(body)
      if (!isEvent(event) || event.companyId === null || event.companyId === companyId) return true
      const reason =
        `the event is of company ${event.companyId}, and the token of company ${companyId}: ` +
        `the subscription that sends here belongs to another token; delete it, or give its address to the right company`
      foreign.push({ id, state: "dead", reason })
      return false
    })
    const rows = yield* Queue.compare(table, companyId, own)
    const settled: Array<Queue.Verdict> = own.flatMap(({ id, recordId }) => {
      const row = rows.get(id)
      if (row === undefined) return []
      if (recordId === null) {
        return row.isCovered
          ? [{ id, state: "done", reason: "a scan that began after the event had come has read the resource" }]
          : []
      }
      return row.satisfied === null ? [] : [{ id, state: "done", reason: row.satisfied }]
    })
    yield* judge([...foreign, ...settled])
    const gone = new Set(settled.map(({ id }) => id))
    const left = own.filter(({ id }) => !gone.has(id))
    return { left, rows, count: asked.length }
  })

  const items = (events: ReadonlyArray<Queue.Asked>): ReadonlyArray<Item> => {
    const byRecord = new Map<string, Array<Queue.Asked>>()
    for (const event of events) {
      if (event.recordId === null) continue
      const others = byRecord.get(event.recordId)
      if (others === undefined) byRecord.set(event.recordId, [event])
      else others.push(event)
    }
    return [...byRecord].map(([recordId, asked]) => ({ recordId, events: asked }))
  }

  /** Whether one scan is worth more than so many reads. */
  const isScanWorth = ({ path, table, companyId }: Place, records: number) =>
    Effect.gen(function* () {
      const one = known(path)
      if (records <= manyMin || !table.resource.modifiedSince || now() < one.scanUntil) return false
      const pages = 1 + (records + meet(path, 0)) / one.pageRecords
      return records > pagePrice * pages && (yield* Queue.followed(companyId, path)).byCursor
    })

  const learn = (place: Place, { totals: { inserted, updated, deleted, records, pages } }: Outcome) => {
    if (pages > 0) known(place.path).pageRecords = Math.max(known(place.path).pageRecords, Math.ceil(records / pages))
    meet(place.path, inserted + updated)
    changed(place, inserted + updated + deleted)
  }

  /** Writes down what the failure of a scan means for the events that asked for it. */
  const scanFailed = Effect.fnUntraced(function* (
    events: ReadonlyArray<Queue.Asked>,
    failure: Failure,
    beganAt: number
  ) {
    if (failure.kind === "DatabaseError") return yield* databaseFailed(failure)
    const blame = yield* health.blame(failure, beganAt)
    const reason = `${failure.message}; ${failure.remedy}`
    if (blame === "away") return
    yield* judge(
      events.map((event): Queue.Verdict => {
        if (blame === "one") return failed(event, reason)
        if (blame === "barred") return { id: event.id, state: "dead", reason }
        return { id: event.id, state: "waiting", reason, pauseMs: restMs }
      })
    )
  })

  const databaseFailed = ({ message }: Failure) =>
    Effect.fail(new DatabaseError({ operation: "act on events", code: undefined, message, isRetryable: false }))

  /** Reads what changed in the whole resource, for events that nothing less answers. */
  const readWhole = Effect.fnUntraced(function* (place: Place, events: ReadonlyArray<Queue.Asked>) {
    const { companyId, tables, table, path } = place
    const beganAt = now()
    const outcome = yield* refresh({ company, companyId, tables, table, reads: "changes" }).pipe(
      Effect.provideService(Priority, table.resource.modifiedSince ? priority.urgent : priority.live)
    )
    learn(place, outcome)
    const requestsMs = (outcome.totals.requests * 60_000) / (company.requestsPerMinute ?? Number.POSITIVE_INFINITY)
    known(path).wholeAt = beganAt + Math.max(requestsMs, now() - beganAt) / wholeShare
    if (outcome.failure !== null) return yield* scanFailed(events, outcome.failure, beganAt)
    yield* health.answered
  })

  /** How long the whole of a resource is not to be read. What others read meanwhile answers its events too. */
  const wholeWaitMs = Effect.fnUntraced(function* ({ companyId, table, path }: Place, scannedInVain: boolean) {
    if (scannedInVain) return restMs
    if (isDrain) return 0
    const budgetMs = known(path).wholeAt - now()
    if (table.resource.modifiedSince) return Math.max(0, budgetMs)
    const { fullMsAgo } = yield* Queue.followed(companyId, path)
    return Math.max(0, budgetMs, fullMsAgo === null ? 0 : sweepEveryMs - fullMsAgo)
  })

  /** Reads the records of the parents that events name. */
  const readSiblings = Effect.fnUntraced(function* (
    place: Place,
    field: string,
    byParent: ReadonlyMap<bigint, string>,
    events: ReadonlyArray<Queue.Asked>
  ) {
    const { companyId, tables, table, path } = place
    const beganAt = now()
    yield* Queue.askForChildren(companyId, path, field, new Set(byParent.values()))
    const outcome = yield* refresh({ company, companyId, tables, table, reads: "children" }).pipe(
      Effect.provideService(Priority, priority.urgent)
    )
    learn(place, outcome)
    if (!isRead(outcome)) {
      if (outcome.failure !== null) yield* scanFailed(events, outcome.failure, beganAt)
      return
    }
    yield* health.answered
    const unanswered = yield* Queue.unansweredOf(companyId, path, field)
    const answered = events.filter(({ id }) => !unanswered.has(byParent.get(id) ?? ""))
    yield* judgeRead(answered, yield* Queue.compare(table, companyId, answered), outcome.runId)
  })

  /** Settles events whose records were read by a list: found, or not to be seen yet, or not there. */
  const judgeRead = (
    events: ReadonlyArray<Queue.Asked>,
    rows: ReadonlyMap<bigint, Queue.Compared>,
    runId: bigint | null
  ) =>
    judge(
      events.map(({ id, ageMs }): Queue.Verdict => {
        const { overlapMs } = company.engine
        if (rows.get(id)?.isCurrent === true) return { id, state: "done", reason: null }
        return ageMs >= overlapMs
          ? { id, state: "done", reason: "the source does not list it" }
          : {
              id,
              state: "waiting",
              reason: "the source does not show it yet",
              pauseMs: untilVisible(ageMs, overlapMs)
            }
      }),
      runId
    )

  /** Acts on what is due until nothing is; fails only with the database. */
  const workThrough = Effect.fnUntraced(function* (place: Place) {
    const { path, table, companyId, tables } = place
    const { operations, parent, modifiedSince } = table.resource
    const isRetrievable = operations.includes("R")
    const nothing: ReadonlySet<string> = new Set()
    /** Whether the last scan settled nothing: then it is not the scan that is missing. */
    let scannedInVain = false
    while (health.awayMs() === 0 && place.isOurs()) {
      const { left, rows, count } = yield* look(place, nothing)
      if (count === 0) return
      if (left.length < count) scannedInVain = false
      if (left.length === 0) continue
      const whole = left.filter(({ recordId }) => recordId === null)
      const numbered = left.filter(({ recordId }) => recordId !== null)
      if (!isRetrievable) {
        const covered = numbered.filter(({ id }) => rows.get(id)?.isCovered === true)
        if (covered.length > 0) {
          yield* judgeRead(covered, rows, null)
          scannedInVain = false
          continue
        }
        const byParent = new Map(
          parent === null || modifiedSince
            ? []
            : numbered.flatMap(({ id, body }) => {
                const event = reader.read(body)
                const value = isEvent(event) ? event.value(parent.field) : null
                return value !== null && Queue.isNumber(value) ? [[id, value] as const] : []
              })
        )
        if (parent !== null && byParent.size > 0 && (yield* Queue.followed(companyId, path)).fullMsAgo !== null) {
          const siblings = numbered.filter(({ id }) => byParent.has(id))
          yield* readSiblings(place, parent.field, byParent, siblings)
          if (siblings.length === left.length) continue
        }
        const others = left.filter(({ id }) => !byParent.has(id))
        if (others.length === 0) continue
        const waitMs = yield* wholeWaitMs(place, scannedInVain)
        if (waitMs > 0) return rest(path, Math.min(waitMs, restMs))
        yield* readWhole(place, others)
        scannedInVain = true
        continue
      }
      if (whole.length > 0) {
        const waitMs = yield* wholeWaitMs(place, scannedInVain)
        if (waitMs > 0 && numbered.length === 0) return rest(path, Math.min(waitMs, restMs))
        if (waitMs === 0) {
          yield* readWhole(place, whole)
          scannedInVain = true
          if (numbered.length === 0) continue
        }
      }
      const first = items(numbered)
      if (yield* isScanWorth(place, first.length)) {
        const beganAt = now()
        const outcome = yield* refresh({ company, companyId, tables, table, reads: "changes" }).pipe(
          Effect.provideService(Priority, priority.urgent)
        )
        learn(place, outcome)
        if (outcome.failure === null) yield* health.answered
        else yield* health.blame(outcome.failure, beganAt)
        // What it left is read one by one.
        known(path).scanUntil = now() + (isRead(outcome) ? lookEveryMs : scanAgainMs)
        continue
      }
      const never = { arrivals: -1, ms: Number.NEGATIVE_INFINITY }
      let lookedAt = never
      const outcome = yield* oneByOne({
        company,
        companyId,
        tables,
        table,
        health,
        first,
        more: (inHand) =>
          Effect.gen(function* () {
            if (!place.isOurs()) return null
            // While nothing new is heard of, what others store is looked for once in a while.
            if (!isDrain && lookedAt.arrivals === arrivals && now() - lookedAt.ms < lookEveryMs) return []
            const at = { arrivals, ms: now() }
            const found = yield* look(place, inHand)
            const isOther = found.left.some(({ recordId }) => recordId === null)
            const next = items(found.left)
            if (isOther || (yield* isScanWorth(place, next.length))) return null
            if (next.length === 0) lookedAt = at
            return next
          }),
        lingerMs: isDrain ? 0 : lingerMs,
        told: (verdicts, landed: Landed | null) => {
          told(verdicts)
          // What came for a record in hand was left out.
          lookedAt = never
          if (landed === null) return
          meet(path, landed.inserted + landed.updated)
          changed(place, landed.inserted + landed.updated + landed.deleted)
        }
      }).pipe(Effect.provideService(Priority, priority.urgent))
      if (outcome.failure !== null) {
        const { kind } = outcome.failure
        if (kind === "DatabaseError") return yield* databaseFailed(outcome.failure)
        // Somebody else has it: what waits goes on waiting.
        return rest(path, kind === "TableChanged" ? 0 : restMs)
      }
      if (outcome.durationMs >= turnMs) yield* Effect.sleep(handOverMs)
    }
  })

  /** Works on a resource under a claim; true when it was ours. */
  const work = (companyId: bigint, tables: ReadonlyMap<string, Table>, table: Table) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { path } = table.resource
        let isOurs = yield* Queue.claim(name, path, owner)
        if (!isOurs) return
        yield* Effect.addFinalizer(() => Effect.ignore(Queue.release(name, path, owner)))
        const renew = Effect.delay(Queue.claim(name, path, owner), renewEveryMs).pipe(
          Effect.tap((ours) =>
            Effect.sync(() => {
              isOurs = ours
            })
          ),
          Effect.ignore
        )
        yield* Effect.forkScoped(Effect.forever(renew))
        yield* workThrough({ companyId, tables, table, path, isOurs: () => isOurs }).pipe(
          Effect.withSpan("webhook.act", { attributes: { "tributary.company": name, "tributary.resource": path } })
        )
      })
    )

  /** Reads the children of the parents that changed. */
  const readKin = Effect.fnUntraced(function* (companyId: bigint, tables: ReadonlyMap<string, Table>, table: Table) {
    const { path } = table.resource
    const beganAt = now()
    kin.delete(path)
    known(path).childrenAt = beganAt
    if (!(yield* Queue.asksForChildren(companyId)).includes(path)) return
    const outcome = yield* refresh({ company, companyId, tables, table, reads: "children" }).pipe(
      Effect.provideService(Priority, priority.live)
    )
    const place = { companyId, tables, table, path, isOurs: () => true }
    learn(place, outcome)
    if (outcome.failure === null) return yield* health.answered
    const blame = yield* health.blame(outcome.failure, beganAt)
    // What a drain leaves is durable: the next worker finds it.
    if (blame !== "barred" && !isDrain) kin.add(path)
    if (outcome.failure.kind === "DatabaseError") return yield* databaseFailed(outcome.failure)
  })

  interface Task {
    readonly path: string
    readonly run: Effect.Effect<void, DatabaseError, Database | SqlClient.SqlClient>
  }

  /** What there is to do now; `waits` when another process is at the rest. */
  const tasks = Effect.gen(function* () {
    const none = { tasks: [] as ReadonlyArray<Task>, waits: false }
    if (health.awayMs() > 0) return none
    const due = yield* Queue.due(name, owner)
    const isAtWork = due.every(({ resource }) => resource !== null && busy.has(resource))
    if (isAtWork && kin.size === 0 && isKinKnown) return none
    const tables = yield* Effect.mapError(company.tables, DatabaseError.from("read the tables"))
    if (due.some(({ resource }) => resource === null || !tables.has(resource))) {
      totals.ignored += yield* Queue.ignoreOthers(name, tables.keys())
    }
    const own = due.flatMap(({ resource, isClaimed }) => {
      const table = resource === null ? undefined : tables.get(resource)
      return table === undefined ? [] : [{ path: table.resource.path, table, isClaimed }]
    })
    if (own.length === 0 && kin.size === 0 && isKinKnown) return none
    const companyId = yield* identify
    if (companyId === null) return none
    if (!isKinKnown) {
      for (const path of yield* Queue.asksForChildren(companyId)) kin.add(path)
      isKinKnown = true
    }
    const isIdle = (path: string) => !busy.has(path) && now() >= known(path).restUntil
    const events = own
      .filter(({ path, isClaimed }) => !isClaimed && isIdle(path))
      .map(({ path, table }): Task => ({ path, run: work(companyId, tables, table) }))
    const taken = new Set(events.map(({ path }) => path))
    const children = [...kin].flatMap((path): ReadonlyArray<Task> => {
      const table = tables.get(path)
      if (table === undefined) kin.delete(path)
      const isDue = isDrain || now() - known(path).childrenAt >= childrenEveryMs
      return table === undefined || !isDue || !isIdle(path) || taken.has(path)
        ? []
        : [{ path, run: readKin(companyId, tables, table) }]
    })
    return { tasks: [...events, ...children], waits: own.some(({ path, isClaimed }) => isClaimed || !isIdle(path)) }
  })

  /** Holds the resource against itself while the task runs. */
  const running = ({ path, run }: Task) =>
    Effect.suspend(() => {
      busy.add(path)
      return run
    }).pipe(
      Effect.tapCause(() =>
        Effect.sync(() => {
          rest(path, failedRestMs)
        })
      ),
      Effect.ensuring(
        Effect.sync(() => {
          busy.delete(path)
        })
      )
    )

  const arrived = () => {
    arrivals += 1
  }

  return { tasks, running, busy, health, totals, arrived }
})

/** Tells of failures of the database once, until it answers again. */
const teller = (name: string) => {
  let isFailing = false
  return {
    failed: (error: DatabaseError) =>
      Effect.suspend(() => {
        if (isFailing) return Effect.void
        isFailing = true
        return Effect.logWarning(`company ${name}: events cannot be acted on now: ${error.message}`)
      }),
    fine: () => {
      isFailing = false
    }
  }
}

/** Acts on the company's events for ever. */
export const run = (options: WorkerOptions): Effect.Effect<never, never, Database | SqlClient.SqlClient> =>
  Effect.scoped(
    Effect.gen(function* () {
      const worker = yield* make(options, false)
      const tell = teller(options.company.name)
      const ended = yield* EffectQueue.sliding<void>(1)
      const fibers = yield* FiberSet.make()
      const latch = options.inbox?.arrived
      const woken = latch === undefined ? Effect.never : Effect.tap(latch.await, () => Effect.sync(worker.arrived))
      for (;;) {
        if (latch !== undefined) yield* latch.close
        const found = yield* Effect.result(worker.tasks)
        if (found._tag === "Failure") yield* tell.failed(found.failure)
        else {
          tell.fine()
          for (const task of found.success.tasks.slice(0, concurrency - worker.busy.size)) {
            worker.busy.add(task.path)
            yield* FiberSet.run(
              fibers,
              worker.running(task).pipe(
                Effect.catch(tell.failed),
                Effect.catchDefect((defect) =>
                  Effect.logError(
                    `company ${options.company.name}: ${task.path}: this is a fault of the program`,
                    defect
                  )
                ),
                Effect.andThen(EffectQueue.offer(ended, undefined))
              )
            )
          }
        }
        yield* Effect.sleep(lookAgainMs)
        yield* Effect.timeoutOption(Effect.raceFirst(woken, EffectQueue.take(ended)), lookEveryMs)
      }
    })
  )

/**
 * Acts on the company's events until none is due, and says what it did. Fails when the database keeps failing; where the
 * source is away, it ends and says so.
 */
export const drain = (options: WorkerOptions): Effect.Effect<Worked, DatabaseError, Database | SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const worker = yield* make(options, true)
    let failures = 0
    for (;;) {
      const result = yield* Effect.result(
        Effect.gen(function* () {
          const { tasks, waits } = yield* worker.tasks
          yield* Effect.forEach(tasks, worker.running, { concurrency, discard: true })
          return tasks.length > 0 ? "more" : waits ? "waits" : "nothing"
        })
      )
      if (result._tag === "Failure") {
        failures += 1
        if (failures >= drainFailuresMax) return yield* Effect.fail(result.failure)
        yield* Effect.sleep(claimedWaitMs)
        continue
      }
      if (result.success === "more") failures = 0
      if (result.success === "waits") yield* Effect.sleep(claimedWaitMs)
      if (result.success === "nothing") return { ...worker.totals, stopped: worker.health.reason() }
    }
  })
