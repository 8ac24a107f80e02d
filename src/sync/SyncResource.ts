/**
 * One run: a resource of one company, from its checkpoint to the end of what is to be read.
 *
 * Promise: take over, read, land, close. Reading goes ahead of landing by a bounded number of records; what was read
 * before a failure is landed; a fault of the database is retried from the checkpoint, never from memory; the run's row
 * in the ledger says how it ended, also when it was interrupted, unless the process is killed, and then the next run says
 * so. A run never fails: how it went is in its outcome, and what it could not be sure of is said there.
 */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape } from "../connector/Connector.ts"
import { SourceError } from "../connector/SourceError.ts"
import { millisecondsOf } from "../connector/Instant.ts"
import * as Scan from "../extract/Scan.ts"
import type { Checkpoint, RunKind } from "../land/Checkpoint.ts"
import * as Lander from "../land/WriteSession.ts"
import type { Table } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { attributesOf, failureOf, noTotals, type Outcome, type RunTotals, sum } from "./Outcome.ts"
import { Progress, type RunBegan } from "./Progress.ts"
import * as RunStore from "./RunStore.ts"

/** How an installation is read and how much it is believed; from its configuration. */
export interface EngineSettings extends Scan.ScanSettings {
  /** A full scan may delete at most this share of the rows (0 to 1) without being told to. */
  readonly deletionsShareMax: number
}

export const engineDefault: EngineSettings = { ...Scan.settingsDefault, deletionsShareMax: 0.5 }

export interface SyncResourceOptions {
  readonly companyId: bigint
  readonly connector: ConnectorShape
  readonly table: Table
  /** Read every record even where a cursor would do. */
  readonly full: boolean
  readonly acceptDeletions: boolean
  /** The source was restored: what it says now wins over newer versions. Reads every record. */
  readonly acceptRestored?: boolean
  /** Rows that a newer catalogue has written are read again under this program's older one. */
  readonly acceptsOlderCatalogue?: boolean
  /** Forgets the overlap that late rows asked for. */
  readonly resetOverlap?: boolean
  /** Records landed in one transaction, about. */
  readonly batchRecordsMax: number
  readonly engine?: EngineSettings
  /** Whose records are read again when a row changes here. */
  readonly children?: ReadonlyArray<{ readonly resource: string; readonly field: string }>
  /** Reads this range beside live syncing instead of following the source; RFC 3339 in UTC. */
  readonly backfill?: { readonly since: string | null; readonly until: string | null }
  /** A process that was at it has given no sign of life for long: its lock does not hold this one up. */
  readonly takesOver?: boolean
  /** Whether it waits for a moment for a run that may just be ending; default true. */
  readonly waits?: boolean
}

export const batchRecordsMaxDefault = 2_500

/** Batches held in memory: one that is landing and one that is read meanwhile. */
const batchesHeld = 2
/** However small its pages, a batch has no more than these. */
const batchPagesMax = 64
/** A database that fails is tried this often before the run gives up. */
const databaseAttemptsMax = 6
/** A page token that is refused, or pages that drift, send the scan back to its first page this often. */
const restartsMax = 4
/** Parents whose children are read and landed together. */
const parentsPerLanding = 40
/** Requests in flight while children are read. */
const childrenConcurrency = 4
/** More parents than this, and than a hundredth of the rows, are dearer than a full scan. */
export const parentsMax = 50

const add = (totals: RunTotals, landed: Lander.LandingResult, pages: ReadonlyArray<Lander.ObservedPage>): RunTotals =>
  sum(totals, {
    ...landed,
    pages: pages.length,
    requests: pages.reduce((count, { page }) => count + page.attempts, 0),
    bytes: pages.reduce((count, { page }) => count + page.bytes, 0)
  })

/** What the attempts of one run share. */
export interface RunState {
  runId: bigint | null
  began: RunBegan | null
  totals: RunTotals
  cursor: string | null
  disbelieved: Lander.MassDeleteBlocked | null
  readonly notes: Set<string>
}

export const newState = (): RunState => ({
  runId: null,
  began: null,
  totals: noTotals,
  cursor: null,
  disbelieved: null,
  notes: new Set()
})

/** Adds what a landing did to the run. */
export const addTotals = Effect.fnUntraced(function* (
  state: RunState,
  landed: Lander.LandingResult,
  pages: ReadonlyArray<Lander.ObservedPage>
) {
  state.totals = add(state.totals, landed, pages)
  state.disbelieved = landed.disbelieved ?? state.disbelieved
  if (landed.drift !== null) state.notes.add(landed.drift)
  if (state.began !== null) yield* (yield* Progress).landed(state.began, state.totals)
})

/** Reads and lands until the scan is complete. */
const readAndLand = Effect.fnUntraced(function* (
  options: SyncResourceOptions,
  lander: Lander.WriteSession,
  plan: Scan.ScanPlan,
  state: RunState
) {
  const queue = yield* Queue.unbounded<
    Scan.ScannedPage,
    SourceError | DatabaseError | Scan.SourceClockRegressed | Cause.Done
  >()
  /** A permit for each record in memory; a page that holds more than there are takes them all. */
  const permitsMax = options.batchRecordsMax * batchesHeld
  const held = yield* Semaphore.make(permitsMax)
  const permitsOf = ({ page }: Scan.ScannedPage) => Math.min(permitsMax, Math.max(1, page.records.length))
  const offer = (scanned: Scan.ScannedPage): Effect.Effect<unknown, Scan.SourceClockRegressed> => {
    const back =
      scanned.scan.pages === 1 && plan.kind === "incremental" ? Scan.clockRegression(plan, scanned.page) : null
    if (back !== null) return Effect.fail(back)
    return Effect.andThen(held.take(permitsOf(scanned)), Queue.offer(queue, scanned))
  }
  const reader = yield* Scan.scan(
    options.connector,
    options.table.resource,
    plan,
    lander.timeOf,
    lander.hasLive,
    offer
  ).pipe(
    Effect.matchCauseEffect({
      onFailure: (cause) => Queue.failCause(queue, cause),
      onSuccess: () => Queue.end(queue)
    }),
    // Ends with this effect, so that a landing that fails stops the reading too.
    Effect.forkScoped
  )
  let pagesMax = 1
  for (let complete = false; !complete;) {
    const pages = yield* Queue.takeBetween(queue, 1, pagesMax).pipe(
      // The last page says so, and nothing is taken after it.
      Effect.catchTag("Done", () => Effect.die("a scan ended without a last page"))
    )
    const last = pages.at(-1)!
    const landed = yield* lander.land({ pages, scan: last.scan, complete: last.complete })
    yield* held.release(pages.reduce((sum, page) => sum + permitsOf(page), 0))
    complete = last.complete
    const recordsPerPage = Math.max(1, last.page.records.length)
    pagesMax = Math.max(1, Math.min(batchPagesMax, Math.floor(options.batchRecordsMax / recordsPerPage)))
    if (complete && landed.disbelieved === null) state.cursor = last.scan.syncedThrough ?? state.cursor
    yield* addTotals(state, landed, pages)
  }
  yield* Fiber.join(reader)
}, Effect.scoped)

/** Reads the children of the parents that changed, and lands them with the questions that they answer. */
const readChildren = Effect.fnUntraced(function* (
  { connector, table }: SyncResourceOptions,
  lander: Lander.WriteSession,
  state: RunState
) {
  for (;;) {
    const asked = yield* lander.rereads(parentsPerLanding)
    if (asked.length === 0) return
    const read = yield* Effect.forEach(asked, (question) => Scan.children(connector, table.resource, question), {
      concurrency: childrenConcurrency
    })
    const pages = read.flat().map((page) => ({ page, observedAt: lander.timeOf(page.beganAt) }))
    const landed = yield* lander.land({ pages, scan: null, complete: false, answered: asked })
    yield* addTotals(state, landed, pages)
  }
})

/** The cursor as an instant, for telling late rows; null when it is none, or when something is wrong with the source. */
const latenessOf = (plan: Scan.ScanPlan, checkpoint: Checkpoint): Lander.LateArrival | null => {
  const cursorMs = plan.cursor === null ? undefined : millisecondsOf(plan.cursor)
  return cursorMs === undefined || checkpoint.fullWanted !== null
    ? null
    : { cursorMs, toleratedMs: plan.kind === "full" ? plan.overlapMs : 0 }
}

/** One attempt: takes the resource over, and reads from what its checkpoint says. */
const attempt = Effect.fnUntraced(function* (options: SyncResourceOptions, state: RunState) {
  const { table, companyId, backfill } = options
  const { resource } = table
  const engine = options.engine ?? engineDefault
  const progress = yield* Progress
  let planned: Scan.ScanPlan | Scan.ChildrenPlan | undefined
  const lander = yield* Lander.open(
    {
      table,
      connector: options.connector,
      companyId,
      acceptsOlderCatalogue: options.acceptsOlderCatalogue ?? false,
      lane: backfill === undefined ? "live" : "backfill",
      origin: "scan",
      authority: options.acceptRestored === true ? "source" : "newer",
      acceptDeletions: options.acceptDeletions,
      deletionsShareMax: engine.deletionsShareMax,
      children: options.children ?? [],
      takesOver: options.takesOver ?? false,
      waits: options.waits ?? true
    },
    Effect.fnUntraced(function* (stored, look) {
      const checkpoint = options.resetOverlap === true ? { ...stored, overlapMs: 0 } : stored
      const wish = { full: options.full || options.acceptRestored === true }
      planned =
        backfill === undefined
          ? Scan.plan(resource, checkpoint, wish, engine, look.nowMs)
          : Scan.planBackfill(resource, checkpoint, backfill)
      if (planned.kind === "children") {
        const asked = yield* look.rereads(parentsMax + 1)
        if (asked.length > parentsMax && asked.length > (yield* look.countLive) / 100) {
          planned = Scan.plan(resource, checkpoint, { full: true }, engine, look.nowMs)
        }
      }
      if (planned.kind === "children") {
        return { kind: "children", resumed: false, cursorFrom: null, lateness: null } satisfies Lander.RunStart
      }
      const { kind, resume, since } = planned
      return { kind, resumed: resume !== null, cursorFrom: since, lateness: latenessOf(planned, checkpoint) }
    })
  )
  state.runId = lander.runId
  state.cursor = lander.checkpoint.cursor
  if (options.resetOverlap === true) {
    yield* lander.transaction((run) =>
      run(
        "reset the overlap of",
        `update tributary.checkpoints set overlap_ms = 0, late_ms = 0
          where company_id = $1 and resource = $2 and lane = 'live'`,
        [companyId, resource.path]
      )
    )
  }
  const begin = (kind: RunKind, resumed: boolean) => {
    state.began = { companyId, resource: resource.path, kind, resumed }
    return progress.began(state.began)
  }
  if (planned!.kind === "children") {
    yield* begin("children", false)
    return yield* readChildren(options, lander, state)
  }
  let plan = planned!
  if (lander.checkpoint.scan !== null && plan.resume === null) yield* lander.restart()
  if (plan.because !== null && plan.resume === null) state.notes.add(`read in full: ${plan.because}`)
  yield* begin(plan.kind, plan.resume !== null)
  for (let restarts = 0; ; restarts += 1) {
    const result = yield* Effect.result(readAndLand(options, lander, plan, state))
    if (result._tag === "Success") return
    const error = result.failure
    if (error instanceof Scan.SourceClockRegressed) {
      // What it shows now may be stamped before what was read already: only reading everything finds it.
      yield* progress.note(`${resource.path}: ${error.message}; every record is read`)
      yield* lander.restart(error.message)
      return yield* error
    }
    const tag = error instanceof SourceError ? error.reason._tag : null
    // What looks broken may be rows that moved far while nobody read: once more from the first page, it shows.
    const restartsMost =
      tag === "PagingBroken" ? 1 : tag === "PageTokenRefused" || tag === "PageDrift" ? restartsMax : null
    if (restartsMost === null) return yield* error
    // Also when this run gives up: the next one must not go on in the middle of what cannot be trusted.
    yield* lander.restart()
    if (restarts >= restartsMost) return yield* error
    yield* progress.note(`${resource.path}: ${error.message}; the scan begins again at its first page`)
    plan = { ...plan, resume: null }
  }
}, Effect.scoped)

const seconds = (milliseconds: number) => `${Math.round(milliseconds / 100) / 10} s`

/** What the counts of a run mean for a person. */
const notesOf = (state: RunState): ReadonlyArray<string> => {
  const { late, lateMs, wentBack } = state.totals
  return [
    ...state.notes,
    ...(late === 0
      ? []
      : [
          `${late} rows became visible up to ${seconds(lateMs)} after the cursor had passed them; scans now begin earlier`
        ]),
    ...(wentBack === 0
      ? []
      : [
          `${wentBack} records came in an older version than the warehouse holds, which was kept: a stale replica answered, ` +
            `or the source was restored; if it was, run sync --accept-restored`
        ])
  ]
}

/** The outcome of a run as it stands. */
export const outcomeOf = (
  options: Pick<SyncResourceOptions, "companyId" | "table" | "backfill">,
  state: RunState,
  error: Parameters<typeof failureOf>[0] | null,
  resumed: boolean,
  durationMs: number
): Outcome => {
  const failure = error === null ? null : failureOf(error)
  const incomplete = state.totals.quarantined > 0 || state.disbelieved !== null || state.totals.wentBack > 0
  return {
    companyId: options.companyId,
    resource: options.table.resource.path,
    status: failure !== null ? "failed" : incomplete ? "quarantined" : "done",
    lane: options.backfill === undefined ? "live" : "backfill",
    kind: state.began?.kind ?? null,
    resumed,
    runId: state.runId,
    cursor: state.cursor,
    durationMs,
    totals: { ...state.totals, requests: state.totals.requests + (failure?.requests ?? 0) },
    disbelieved: state.disbelieved,
    notes: notesOf(state),
    failure
  }
}

/** A fault of the database sends the work back to what is durable, with a new connection. */
export const retryFromCheckpoint = <A, E extends { readonly _tag: string }, R>(
  resource: string,
  work: Effect.Effect<A, E | DatabaseError, R>
): Effect.Effect<A, E | DatabaseError, R> =>
  work.pipe(
    Effect.tapError((error) =>
      error instanceof DatabaseError && error.isRetryable
        ? Effect.flatMap(Progress, (progress) =>
            progress.note(`${resource}: ${error.message}; trying again from the checkpoint`)
          )
        : Effect.void
    ),
    Effect.retry({
      while: (error) => error instanceof DatabaseError && error.isRetryable,
      times: databaseAttemptsMax - 1,
      schedule: Schedule.exponential("250 millis").pipe(Schedule.jittered)
    })
  )

/** Syncs one resource of one company. Never fails: how it went is in the outcome. */
export const syncResource = Effect.fn("syncResource")(function* (
  options: SyncResourceOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  const { resource } = options.table
  const progress = yield* Progress
  const clock = yield* Clock.Clock
  const beganAt = clock.monotonicTimeNanosUnsafe()
  const state = newState()
  const run = (wish: SyncResourceOptions) => {
    const attempts = retryFromCheckpoint(resource.path, attempt(wish, state))
    return Effect.result(
      Effect.catchTag(attempts, ["SourceClockRegressed", "TableReplaced", "WarehouseClockRegressed"], () => attempts)
    )
  }
  const outcome = (result: Effect.Success<ReturnType<typeof run>>, resumed: boolean) =>
    outcomeOf(
      options,
      state,
      result._tag === "Success" ? null : result.failure,
      resumed,
      Number((clock.monotonicTimeNanosUnsafe() - beganAt) / 1_000_000n)
    )
  const close = (ended: Outcome) => (state.runId === null ? Effect.void : RunStore.close(state.runId, ended))

  const toItsEnd = Effect.gen(function* () {
    let result = yield* run(options)
    const resumed = state.began?.resumed ?? false
    if (result._tag === "Success" && resumed && options.backfill === undefined) {
      // The scan that was resumed shows the source as it was when it began; what changed since is read now.
      yield* close(outcome(result, resumed))
      result = yield* run({ ...options, full: false, acceptRestored: false, resetOverlap: false })
    }
    const ended = outcome(result, resumed)
    yield* close(ended)
    return ended
  })
  const ended = yield* Effect.onInterrupt(toItsEnd, () =>
    Effect.suspend(() =>
      state.runId === null
        ? Effect.void
        : RunStore.abandon(state.runId, {
            companyId: options.companyId,
            resource: resource.path,
            lane: options.backfill === undefined ? "live" : "backfill"
          })
    )
  )
  yield* progress.ended(ended)
  yield* Effect.annotateCurrentSpan(attributesOf(ended))
  return ended
})
