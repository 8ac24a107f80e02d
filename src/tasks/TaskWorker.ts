/**
 * Syncing by schedule, for as long as a service runs.
 *
 * Promise: what is due is begun within about a second, as long as fewer resources of the company are at work than may be.
 * Several processes on one warehouse share the tasks; each task is run by one of them, and what a killed one leaves is
 * taken up by another within {@link TaskQueue.leaseMs} and a look. What fails is tried again after a pause that grows, and
 * says why and what to do; a token that is no longer good rests its company and nothing else. A run that somebody else
 * made counts. When it is interrupted, what was landed stays, the runs are closed and the tasks are let go of, so that
 * others go on at once. A warehouse that is away is waited for.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberMap from "effect/FiberMap"
import * as Latch from "effect/Latch"
import * as Random from "effect/Random"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { Priority } from "../budget/Budget.ts"
import type { ConnectorShape, Identity } from "../connector/Connector.ts"
import * as Adoption from "../warehouse/Adoption.ts"
import type { Model } from "../warehouse/Model.ts"
import { childrenOf, type Datasets, type Table } from "../warehouse/Table.ts"
import type { Failure, Outcome } from "../sync/Outcome.ts"
import { Progress, type ProgressShape } from "../sync/Progress.ts"
import * as SourceGuard from "../sync/SourceGuard.ts"
import { applyViews, accessBlockOf, isAccessBlock } from "../sync/Sync.ts"
import { type EngineSettings, syncResource } from "../sync/SyncResource.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { retryTransient } from "../postgres/Transaction.ts"
import * as TaskQueue from "./TaskQueue.ts"
import * as Cron from "./Cron.ts"

/** A company whose resources are synced by their schedules. */
export interface ScheduledCompany {
  readonly name: string
  readonly connector: ConnectorShape
  /** The tables of the resources that are synced, by path, with the columns learnt so far; read anew at each use. */
  readonly tables: Effect.Effect<ReadonlyMap<string, Table>, SqlError>
  readonly engine: EngineSettings
  readonly batchRecordsMax: number
}

export interface TaskWorkerOptions {
  readonly companies: ReadonlyArray<ScheduledCompany>
  readonly scheduleOf: (resource: string) => Cron.ResourceSchedule
  /** How old a resource may be at most, in milliseconds. */
  readonly freshnessOf: (resource: string) => number
  /** Resources of one company that are read at the same time, by whichever processes. */
  readonly concurrency: number
  readonly datasets: Datasets
  /** Views for people, kept up to date beside the tables. */
  readonly models: ReadonlyArray<Model>
}

const lookEveryMs = 1_000
/** Most of a run is waiting for the source: so many are under way for each connection that lands. */
const runsPerLanding = 8
const restMaxMs = 250
const renewEveryMs = 3_000
const renewSoonMs = 1_000
/** What failed is tried again after this, and longer each time. */
const pauseMinMs = 30_000
const pauseMaxMs = 15 * 60_000
/** However often a schedule says, what failed is not tried sooner. */
const pauseLeastMs = 5_000
/** What may not be read, or cannot be asked for, is looked at again after this. */
const barredAgainMs = 15 * 60_000
/** What the source says of a token is believed for this long where it forbids something. */
const identityMaxMs = 5 * 60_000
/** Somebody else is at it, or the table has just changed. */
const soonMs = 5_000
/** Whoever is told to stop waits no longer than this for the database. */
const farewellMaxMs = 2_000

const pauseOf = (failures: number): number => Math.min(pauseMaxMs, pauseMinMs * 2 ** Math.min(failures - 1, 10))

const why = "stopped: the process was told to end"

/** A company as it stands. */
interface Standing {
  readonly company: ScheduledCompany
  /** Null while the token is not known to be good: nothing is run then. */
  identity: Identity | null
  identifiedAtMs: number
  isAsking: boolean
  failures: number
  /** Nothing is asked before, on the process's monotonic clock. */
  restsUntilMs: number
  told: string | null
}

/** What the warehouse knows of a resource before it is run. */
interface Known {
  /** When it was last brought up to date, in milliseconds since 1970. */
  readonly syncedMs: number
  /** The last run that ended well, whoever made it. */
  readonly last: {
    readonly runId: bigint
    readonly isFull: boolean
    readonly isWhole: boolean
    readonly beganMs: number
  } | null
  /** Whether a run is under way that began after the lease ran out, if there was one. */
  readonly isTaken: boolean
}

type Verdict = TaskQueue.TaskResult | { readonly status: "postponed"; readonly nextMs: number }

/** Not the resource's fault, and soon over. */
const passing: ReadonlySet<string> = new Set([
  "AlreadyRunning",
  "FenceLost",
  "TableChanged",
  "TableReplaced",
  "WarehouseClockRegressed"
])

const faultText = (cause: Cause.Cause<unknown>): string => `this is a fault of the program: ${Cause.pretty(cause)}`

const sentenceOf = (cause: Cause.Cause<{ readonly message: string }>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** A last word to the database. */
const bounded = <A, R>(effect: Effect.Effect<A, SqlError, R>): Effect.Effect<void, never, R> =>
  effect.pipe(Effect.interruptible, Effect.timeoutOption(farewellMaxMs), Effect.ignore)

/** What a run tells, for the log. */
const progress: ProgressShape = {
  began: () => Effect.void,
  landed: () => Effect.void,
  ended: () => Effect.void,
  note: (text) => Effect.logInfo(text)
}

/** Tries until it goes well; the first failure of a row is told. */
const persistently = Effect.fnUntraced(function* <A, R>(
  what: string,
  effect: Effect.Effect<A, SqlError, R>
): Effect.fn.Return<A, never, R> {
  for (let failures = 0; ; failures += 1) {
    const tried = yield* Effect.result(effect)
    if (tried._tag === "Success") return tried.success
    if (failures === 0) {
      yield* Effect.logWarning(`${what}: ${DatabaseError.from("ask the warehouse")(tried.failure).message}`)
    }
    yield* Effect.sleep(lookEveryMs)
  }
})

const knownFrom = (row: KnownRow | undefined): Known => ({
  syncedMs: Math.max(row?.cursorMs ?? 0, row?.fullScanMs ?? 0),
  last:
    row === undefined || row.runId === null
      ? null
      : {
          runId: row.runId,
          isFull: row.kind === "full",
          isWhole: row.status === "done",
          beganMs: row.beganMs ?? 0
        },
  isTaken: row?.isTaken ?? false
})

interface KnownRow {
  readonly cursorMs: number | null
  readonly fullScanMs: number | null
  readonly runId: bigint | null
  readonly kind: string | null
  readonly status: string | null
  readonly beganMs: number | null
  readonly isTaken: boolean
}

const knownOf = Effect.fnUntraced(function* (companyId: bigint, resource: string, lane: string, leftAt: Date | null) {
  const sql = yield* SqlClient.SqlClient
  const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`
  const [row] = yield* sql.unsafe<KnownRow>(
    `select ${ms("c.cursor_at")} as "cursorMs", ${ms("c.full_scan_at")} as "fullScanMs",
            r.id as "runId", r.kind, r.status, ${ms("r.began_at")} as "beganMs",
            exists (select 1 from tributary.runs o
                     where o.company_id = $1 and o.resource = $2 and o.lane = $3 and o.status = 'running'
                       and o.began_at > $4::timestamptz) as "isTaken"
       from (select 1) one
       left join tributary.checkpoints c on c.company_id = $1 and c.resource = $2 and c.lane = 'live'
       left join lateral (select id, kind, status, began_at from tributary.runs
                           where company_id = $1 and resource = $2 and lane = 'live' and kind in ('full', 'incremental')
                             and status in ('done', 'quarantined')
                           order by id desc limit 1) r on true`,
    [companyId, resource, lane, leftAt]
  )
  return knownFrom(row)
})

const placeOf = ({ company, resource }: Pick<TaskQueue.TaskLease, "company" | "resource">): string =>
  JSON.stringify([company, resource])

const keyOf = ({ company, resource, kind }: Pick<TaskQueue.TaskLease, "company" | "resource" | "kind">): string =>
  JSON.stringify([company, resource, kind])

/** Runs what is due of these companies, for ever. */
export const run = (options: TaskWorkerOptions): Effect.Effect<never, never, Database | SqlClient.SqlClient> =>
  Effect.scoped(schedule(options))

const schedule = Effect.fnUntraced(function* (options: TaskWorkerOptions) {
  const { scheduleOf, freshnessOf } = options
  const clock = yield* Clock.Clock
  const monotonicMs = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const drawn = [yield* Random.nextInt, yield* Random.nextInt]
  const owner = drawn.map((part) => Math.abs(part).toString(36)).join("-")
  /** How far the warehouse's clock is ahead of ours. */
  let aheadMs = 0
  const warehouseMs = () => monotonicMs() + aheadMs
  const nextOf = (company: string, resource: string, lastBeganMs: number | null, afterMs = warehouseMs()) =>
    Cron.next(scheduleOf(resource), afterMs, `${company} ${resource}`, lastBeganMs)

  const standings = new Map(
    options.companies.map((company): [string, Standing] => [
      company.name,
      { company, identity: null, identifiedAtMs: 0, isAsking: false, failures: 0, restsUntilMs: 0, told: null }
    ])
  )
  const names = [...standings.keys()]
  const runsMax = yield* Effect.map(
    Effect.orElseSucceed(
      Effect.map((yield* Database).budget, ({ landings }) => landings),
      () => 1
    ),
    (landings) => landings * runsPerLanding
  )
  /** Runs that end close together are replaced together: a look goes through the tasks of every company. */
  const restMs = Math.min(restMaxMs, names.length)
  const running = yield* FiberMap.make<string>()
  const claims = new Map<string, TaskQueue.ClaimedTask>()
  /** Until when a resource is left alone, since somebody else is at it; on the process's monotonic clock. */
  const busyUntilMs = new Map<string, number>()
  const freed = Latch.makeUnsafe(false)
  const oneAtATime = yield* Semaphore.make(1)
  const views = oneAtATime.withPermit(applyViews(options))

  // ------------------------------------------------------------------------------------------------------- who we are

  /** Nothing of the company is run until the source knows its token again. */
  const rest = Effect.fnUntraced(function* (standing: Standing, error: string, remedy: string) {
    standing.failures += 1
    const pauseMs = pauseOf(standing.failures)
    standing.identity = null
    standing.restsUntilMs = monotonicMs() + pauseMs
    if (standing.told !== error) {
      standing.told = error
      yield* Effect.logWarning(
        `company ${standing.company.name}: nothing is synced: ${error}; ${remedy}; asked again in ${pauseMs / 1000} s, then less often`
      )
    }
    yield* Effect.ignore(TaskQueue.blockCompany(standing.company.name, error, remedy))
  })

  const identify = Effect.fnUntraced(function* (standing: Standing) {
    const { name, connector } = standing.company
    const identified = yield* Effect.result(connector.identify)
    if (identified._tag === "Failure") {
      const { message, remedy } = identified.failure
      return yield* rest(standing, message, remedy)
    }
    const identity = identified.success
    yield* persistently(
      `company ${name}: its number cannot be written down`,
      SourceGuard.saveCompanyId(name, identity.companyId)
    )
    if (standing.told !== null) yield* Effect.logInfo(`company ${name}: the source answers again`)
    standing.identity = identity
    standing.identifiedAtMs = monotonicMs()
    standing.failures = 0
    standing.told = null
  })

  const asking = (standing: Standing) =>
    Effect.suspend(() => {
      standing.isAsking = true
      return identify(standing)
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          standing.isAsking = false
          freed.openUnsafe()
        })
      )
    )

  // ------------------------------------------------------------------------------------------------------ one run of it

  /** When it is tried again after so many failures; its schedule may say sooner. */
  const retryMs = (claim: TaskQueue.ClaimedTask, failures: number): number | null => {
    const now = warehouseMs()
    const pausedMs = now + pauseOf(failures)
    if (claim.kind === "backfill") return pausedMs
    const nextMs = nextOf(claim.company, claim.resource, claim.nowMs, now)
    return nextMs === null ? null : Math.max(now + pauseLeastMs, Math.min(pausedMs, nextMs))
  }

  const failed = (
    claim: TaskQueue.ClaimedTask,
    runId: bigint | null,
    error: string,
    remedy: string
  ): TaskQueue.TaskResult => {
    const failures = claim.failures + 1
    return { status: "failed", runId, error, remedy, failures, nextMs: retryMs(claim, failures) }
  }

  const skippedOf = (claim: TaskQueue.ClaimedTask, error: string, remedy: string): TaskQueue.TaskResult => ({
    status: "skipped",
    runId: null,
    error,
    remedy,
    failures: 0,
    nextMs:
      claim.kind === "sync" && scheduleOf(claim.resource).timing.kind !== "off" ? warehouseMs() + barredAgainMs : null
  })

  /** Whether a run that somebody else made is what was due. */
  const isCovered = (claim: TaskQueue.ClaimedTask, { last }: Known): boolean => {
    if (claim.kind === "backfill" || claim.leftAt !== null || last === null) return false
    if (claim.askedAt !== null) return last.beganMs >= claim.askedAt.getTime() && (last.isFull || !claim.full)
    const dueMs = nextOf(claim.company, claim.resource, last.beganMs, last.beganMs)
    return dueMs !== null && dueMs > warehouseMs()
  }

  const verdictOf = (claim: TaskQueue.ClaimedTask, outcome: Outcome): Verdict => {
    const { failure, runId, totals, disbelieved } = outcome
    if (failure !== null) {
      if (passing.has(failure.kind)) return { status: "postponed", nextMs: warehouseMs() + soonMs }
      return isAccessBlock(outcome)
        ? skippedOf(claim, failure.message, failure.remedy)
        : failed(claim, runId, failure.message, failure.remedy)
    }
    const [error, remedy] =
      disbelieved !== null
        ? [
            `${disbelieved.gone} of ${disbelieved.live} rows were absent from a full scan and not believed deleted`,
            `if they are gone, say so: npx tributary sync ${claim.resource} --full --accept-deletions`
          ]
        : totals.quarantined > 0
          ? [
              totals.quarantined === 1
                ? "1 record is in quarantine"
                : `${totals.quarantined} records are in quarantine`,
              "see why on the page of the quarantine, or in tributary.quarantine"
            ]
          : outcome.status === "quarantined"
            ? [outcome.notes.join("; "), "see what the note says"]
            : [null, null]
    return {
      status: outcome.status === "quarantined" ? "quarantined" : "done",
      runId,
      error,
      remedy,
      failures: 0,
      nextMs: claim.kind === "backfill" ? null : nextOf(claim.company, claim.resource, claim.nowMs)
    }
  }

  const work = Effect.fnUntraced(function* (
    claim: TaskQueue.ClaimedTask
  ): Effect.fn.Return<Verdict, SqlError, Database | SqlClient.SqlClient> {
    const { resource: path } = claim
    const standing = standings.get(claim.company)!
    const { company } = standing
    const tables = yield* company.tables
    const table = tables.get(path)
    if (table === undefined) return skippedOf(claim, `${path} is not configured`, "nothing to do")
    if (standing.identity !== null && accessBlockOf(table.resource, standing.identity) !== null) {
      if (claim.askedAt !== null || monotonicMs() - standing.identifiedAtMs > identityMaxMs) yield* identify(standing)
    }
    const { identity } = standing
    // Its company rests, and says why itself.
    if (identity === null) return { status: "postponed", nextMs: warehouseMs() + soonMs }
    const barrier = accessBlockOf(table.resource, identity)
    if (barrier !== null) return skippedOf(claim, `${path}: ${barrier.reason}`, barrier.remedy)

    const { companyId } = identity
    const lane = claim.kind === "backfill" ? "backfill" : "live"
    const known = yield* knownOf(companyId, path, lane, claim.leftAt)
    if (isCovered(claim, known)) {
      const { runId, isWhole } = known.last!
      return {
        status: isWhole ? "done" : "quarantined",
        runId,
        error: null,
        remedy: null,
        failures: 0,
        nextMs: nextOf(claim.company, path, known.last!.beganMs)
      }
    }
    const outcome = yield* syncResource({
      companyId,
      connector: company.connector,
      table,
      full: claim.full,
      acceptDeletions: false,
      batchRecordsMax: company.batchRecordsMax,
      engine: company.engine,
      children: childrenOf(tables, path),
      evictHolder: claim.leftAt !== null && !known.isTaken,
      // What another run is at is looked at again, and counted.
      waitForHolder: false,
      ...(claim.kind === "backfill" ? { backfill: { since: claim.since, until: claim.until } } : {})
    }).pipe(
      Effect.provideService(Priority, {
        class: claim.kind === "backfill" ? "backfill" : "live",
        dueAt: known.syncedMs + freshnessOf(path)
      })
    )
    if (outcome.failure?.stops === "company") yield* restAfter(standing, outcome.failure)
    else if (outcome.failure === null) {
      const learnt = yield* Adoption.inferAll([table.resource], options.datasets)
      for (const sentence of learnt) yield* Effect.logInfo(sentence)
      if (learnt.length > 0) yield* views
    }
    return verdictOf(claim, outcome)
  })

  /** Others of the company meet the same refusal: it is told once. */
  const restAfter = (standing: Standing, { message, remedy }: Failure) =>
    standing.identity === null ? Effect.void : rest(standing, message, remedy)

  const tell = (claim: TaskQueue.ClaimedTask, ending: TaskQueue.TaskResult) => {
    const what = `${claim.company}: ${claim.kind === "backfill" ? "backfill of " : ""}${claim.resource}`
    if (ending.status === "failed" && ending.failures === 1) {
      return Effect.logWarning(`${what}: ${ending.error}; ${ending.remedy}`)
    }
    return claim.failures > 0 && (ending.status === "done" || ending.status === "quarantined")
      ? Effect.logInfo(`${what}: goes well again`)
      : Effect.void
  }

  const forget = (claim: TaskQueue.ClaimedTask) => {
    if (claims.get(keyOf(claim)) === claim) claims.delete(keyOf(claim))
  }

  const perform = (claim: TaskQueue.ClaimedTask) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const ended = yield* Effect.exit(restore(work(claim)))
        if (Exit.isFailure(ended) && Cause.hasInterruptsOnly(ended.cause))
          return yield* bounded(TaskQueue.returnTask(claim, why))
        const verdict = Exit.isSuccess(ended)
          ? ended.value
          : Cause.hasDies(ended.cause)
            ? failed(claim, null, faultText(ended.cause), "please report it")
            : failed(
                claim,
                null,
                sentenceOf(ended.cause),
                "check the database; the next run goes on where this one stopped"
              )
        const written =
          verdict.status === "postponed"
            ? TaskQueue.reschedule(claim, verdict.nextMs)
            : TaskQueue.complete(claim, verdict)
        // From here on nobody has to be told that it is held. Where this cannot be written, the lease runs out.
        forget(claim)
        yield* restore(retryTransient(written)).pipe(
          Effect.ignore,
          Effect.onInterrupt(() => bounded(written))
        )
        if (verdict.status !== "postponed") return yield* tell(claim, verdict)
        busyUntilMs.set(placeOf(claim), monotonicMs() + soonMs)
      })
    ).pipe(
      Effect.provideService(Progress, progress),
      Effect.ensuring(
        Effect.sync(() => {
          forget(claim)
          freed.openUnsafe()
        })
      )
    )

  // --------------------------------------------------------------------------------------------------------- the looks

  /** Takes what is due until there is nothing more to take. */
  const take = Effect.fnUntraced(function* (ready: ReadonlyArray<Standing>) {
    const runnable = yield* Effect.forEach(ready, ({ company }) =>
      Effect.map(company.tables, (tables) =>
        [...tables.values()]
          .map(({ resource }) => ({
            company: company.name,
            resource: resource.path,
            parent: resource.parent?.resource ?? null
          }))
          .filter((one) => (busyUntilMs.get(placeOf(one)) ?? 0) <= monotonicMs())
      )
    )
    for (;;) {
      const room = runsMax - claims.size
      if (room <= 0) return
      const taken = yield* Effect.uninterruptible(
        Effect.tap(TaskQueue.claim(owner, runnable.flat(), options.concurrency, room), (all) =>
          Effect.forEach(all, (claim) => {
            claims.set(keyOf(claim), claim)
            return FiberMap.run(running, keyOf(claim), perform(claim))
          })
        )
      )
      if (taken.length === 0) return
    }
  })

  const look = Effect.gen(function* () {
    const { nowMs, due, asked } = yield* TaskQueue.pollDue(names)
    aheadMs = nowMs - monotonicMs()
    for (const standing of standings.values()) {
      const isResting = standing.restsUntilMs > monotonicMs() && !asked.includes(standing.company.name)
      if (standing.identity === null && !standing.isAsking && !isResting) yield* Effect.forkScoped(asking(standing))
    }
    const ready = due.flatMap((name) => standings.get(name) ?? []).filter(({ identity }) => identity !== null)
    if (ready.length > 0) yield* take(ready)
  })

  const keepLeases = Effect.gen(function* () {
    for (;;) {
      const held = [...claims.values()]
      const renewed = yield* Effect.exit(TaskQueue.renew(held))
      if (Exit.isFailure(renewed)) {
        yield* Effect.sleep(renewSoonMs)
        continue
      }
      const kept = new Set(renewed.value.map(keyOf))
      for (const claim of held) {
        // One that has just ended is not among them either.
        if (kept.has(keyOf(claim)) || claims.get(keyOf(claim)) !== claim) continue
        yield* Effect.logWarning(`${claim.company}: ${claim.resource}: another process has taken it over`)
        yield* Effect.forkScoped(FiberMap.remove(running, keyOf(claim)))
      }
      yield* Effect.sleep(renewEveryMs)
    }
  })

  const adopt = Effect.gen(function* () {
    const all = yield* Effect.forEach(options.companies, (company) =>
      Effect.map(company.tables, (tables) =>
        [...tables.keys()].map((resource): TaskQueue.TaskSchedule => {
          const of = scheduleOf(resource)
          return {
            company: company.name,
            resource,
            schedule: of.timing.kind === "off" ? null : Cron.describe(of),
            promiseMs: freshnessOf(resource),
            missed: of.missed,
            next: (afterMs, lastBeganMs) => nextOf(company.name, resource, lastBeganMs, afterMs)
          }
        })
      )
    )
    yield* TaskQueue.upsertSchedules(all.flat())
  })
  yield* persistently("the schedule cannot be written down", adopt)
  yield* Effect.provideService(views, Progress, progress)
  yield* Effect.forkScoped(keepLeases)
  return yield* Effect.forever(
    Effect.andThen(
      persistently("the schedule cannot be read", look),
      Effect.timeoutOption(freed.await, lookEveryMs).pipe(
        Effect.andThen(Effect.sleep(restMs)),
        Effect.andThen(freed.close)
      )
    )
  )
})
