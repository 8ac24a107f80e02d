/**
 * One run: a resource of one company, from its checkpoint to the end of the scan.
 *
 * Promise: take over, read, land, close. Reading goes ahead of landing by a bounded number of pages; what was read
 * before a failure is landed; a fault of the database is retried from the checkpoint, never from memory; the run's row
 * in the ledger says how it ended unless the process is killed, and then the next run says so.
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
import * as Scan from "../extract/Scan.ts"
import * as Lander from "../land/Lander.ts"
import type { Table } from "../model/Table.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { failureOf, noTotals, type Outcome, type RunTotals } from "./Outcome.ts"
import { Progress, type RunBegan } from "./Progress.ts"
import * as RunLedger from "./RunLedger.ts"

export interface SyncResourceOptions {
  readonly companyId: bigint
  readonly connector: ConnectorShape
  readonly table: Table
  /** Read every record even where a cursor would do. */
  readonly full: boolean
  readonly acceptDeletions: boolean
  /** Records landed in one transaction, about. */
  readonly batchRecordsMax: number
}

export const batchRecordsMaxDefault = 2_500

/** Batches held in memory: one that is landing and one that is read meanwhile. */
const batchesHeld = 2
/** However small its pages, a batch has no more than these. */
const batchPagesMax = 64
/** A database that fails is tried this often before the run gives up. */
const databaseAttemptsMax = 6
/** A page token that is refused sends the scan back to its first page this often. */
const restartsMax = 2

const add = (totals: RunTotals, landed: Lander.Landed, pages: ReadonlyArray<Scan.ScannedPage>): RunTotals => ({
  pages: totals.pages + pages.length,
  requests: totals.requests + pages.reduce((sum, { page }) => sum + page.attempts, 0),
  bytes: totals.bytes + pages.reduce((sum, { page }) => sum + page.bytes, 0),
  records: totals.records + landed.records,
  inserted: totals.inserted + landed.inserted,
  updated: totals.updated + landed.updated,
  unchanged: totals.unchanged + landed.unchanged,
  deleted: totals.deleted + landed.deleted,
  quarantined: totals.quarantined + landed.quarantined
})

/** What the attempts of one run share. */
interface RunState {
  runId: bigint | null
  began: RunBegan | null
  totals: RunTotals
  cursor: string | null
  disbelieved: Lander.DisbelievedDeletions | null
}

/** Reads and lands until the scan is complete. */
const readAndLand = Effect.fnUntraced(function* (
  options: SyncResourceOptions,
  lander: Lander.Lander,
  plan: Scan.ScanPlan,
  state: RunState
) {
  const progress = yield* Progress
  const queue = yield* Queue.unbounded<Scan.ScannedPage, SourceError | Cause.Done>()
  /** A permit for each record in memory; a page that holds more than there are takes them all. */
  const permitsMax = options.batchRecordsMax * batchesHeld
  const held = yield* Semaphore.make(permitsMax)
  const permitsOf = ({ page }: Scan.ScannedPage) => Math.min(permitsMax, Math.max(1, page.records.length))
  const reader = yield* Scan.scan(options.connector, options.table.resource, plan, (page) =>
    Effect.andThen(held.take(permitsOf(page)), Queue.offer(queue, page))
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
    const landed = yield* lander.land({
      pages: pages.map(({ page }) => page),
      scan: last.scan,
      complete: last.complete
    })
    yield* held.release(pages.reduce((sum, page) => sum + permitsOf(page), 0))
    complete = last.complete
    const recordsPerPage = Math.max(1, last.page.records.length)
    pagesMax = Math.max(1, Math.min(batchPagesMax, Math.floor(options.batchRecordsMax / recordsPerPage)))
    state.totals = add(state.totals, landed, pages)
    state.disbelieved = landed.disbelieved ?? state.disbelieved
    if (complete) state.cursor = last.scan.syncedThrough ?? state.cursor
    if (state.began !== null) yield* progress.landed(state.began, state.totals)
  }
  yield* Fiber.join(reader)
}, Effect.scoped)

/** One attempt: takes the resource over, and reads from what its checkpoint says. */
const attempt = Effect.fnUntraced(function* (options: SyncResourceOptions, state: RunState) {
  const { connector, table, companyId } = options
  const { resource } = table
  const progress = yield* Progress
  let planned: Scan.ScanPlan | undefined
  const lander = yield* Lander.open(options, (checkpoint) => {
    planned = Scan.plan(resource, checkpoint, { full: options.full })
    return { kind: planned.kind, resumed: planned.resume !== null, cursorFrom: planned.since }
  })
  state.runId = lander.runId
  state.cursor = lander.checkpoint.cursor
  let plan = planned!
  if (lander.checkpoint.scan !== null && plan.resume === null) yield* lander.restart
  state.began = { companyId, resource: resource.path, kind: plan.kind, resumed: plan.resume !== null }
  yield* progress.began(state.began)
  for (let restarts = 0; ; restarts += 1) {
    const result = yield* Effect.result(readAndLand({ ...options, connector }, lander, plan, state))
    if (result._tag === "Success") return
    const error = result.failure
    const refused = error instanceof SourceError && error.reason._tag === "PageTokenRefused"
    if (!refused || restarts >= restartsMax) return yield* error
    yield* progress.note(`${resource.path}: ${error.message}; the scan begins again at its first page`)
    yield* lander.restart
    plan = { ...plan, resume: null }
  }
}, Effect.scoped)

/** Syncs one resource of one company. Never fails: how it went is in the outcome. */
export const syncResource = Effect.fn("syncResource")(function* (
  options: SyncResourceOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  const { table, companyId } = options
  const { resource } = table
  const progress = yield* Progress
  const clock = yield* Clock.Clock
  const beganAt = clock.monotonicTimeNanosUnsafe()
  const state: RunState = { runId: null, began: null, totals: noTotals, cursor: null, disbelieved: null }

  const run = (wish: SyncResourceOptions) =>
    attempt(wish, state).pipe(
      Effect.tapError((error) =>
        error instanceof DatabaseError && error.isRetryable
          ? progress.note(`${resource.path}: ${error.message}; trying again from the checkpoint`)
          : Effect.void
      ),
      Effect.retry({
        while: (error) => error instanceof DatabaseError && error.isRetryable,
        times: databaseAttemptsMax - 1,
        schedule: Schedule.exponential("250 millis").pipe(Schedule.jittered)
      }),
      Effect.result
    )

  const outcomeOf = (result: Effect.Success<ReturnType<typeof run>>, resumed: boolean): Outcome => {
    const failure = result._tag === "Success" ? null : failureOf(result.failure)
    const incomplete = state.totals.quarantined > 0 || state.disbelieved !== null
    return {
      companyId,
      resource: resource.path,
      status: failure !== null ? "failed" : incomplete ? "quarantined" : "done",
      kind: state.began?.kind ?? null,
      resumed,
      runId: state.runId,
      cursor: state.cursor,
      durationMs: Number((clock.monotonicTimeNanosUnsafe() - beganAt) / 1_000_000n),
      totals: state.totals,
      disbelieved: state.disbelieved,
      failure
    }
  }
  const close = (outcome: Outcome) => (state.runId === null ? Effect.void : RunLedger.close(state.runId, outcome))

  let result = yield* run(options)
  const resumed = state.began?.resumed ?? false
  if (result._tag === "Success" && resumed && resource.modifiedSince) {
    // The scan that was resumed shows the source as it was when it began; what changed since is one request away.
    yield* close(outcomeOf(result, resumed))
    result = yield* run({ ...options, full: false })
  }
  const outcome = outcomeOf(result, resumed)
  yield* close(outcome)
  yield* progress.ended(outcome)
  return outcome
})
