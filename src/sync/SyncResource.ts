/**
 * One run of a resource: acquire, read, land, close.
 *
 * Promise: pages that were read before a failure are landed, and the run keeps the promises of `Run.ts`.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape } from "../connector/Connector.ts"
import { SourceError } from "../connector/SourceError.ts"
import { millisecondsOf } from "../connector/Instant.ts"
import * as Scan from "../extract/Scan.ts"
import type { Checkpoint, RunKind } from "../land/Checkpoint.ts"
import { resetOverlapStatement } from "../land/CheckpointStore.ts"
import { countLive } from "../land/SoftDelete.ts"
import * as Refetch from "../land/Refetch.ts"
import * as ResourceLock from "../land/ResourceLock.ts"
import * as QuietRun from "../land/QuietRun.ts"
import * as WriteSession from "../land/WriteSession.ts"
import type { LateArrival, NewRun, OpenOptions } from "../land/SessionContext.ts"
import type { Table } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import { batchRecordsMaxDefault, engineDefault, type EngineSettings } from "./EngineSettings.ts"
import type { Outcome } from "./Outcome.ts"
import { Progress } from "./Progress.ts"
import { type Attempt, readAndLand, readChildren } from "./ReadAndLand.ts"
import { withRun } from "./Run.ts"
import type { RunState } from "./RunState.ts"

/** Where the records come from and where they land. */
export interface SyncTarget {
  readonly companyId: bigint
  readonly connector: ConnectorShape
  readonly table: Table
  /** Resources whose records are read again when a row changes here. */
  readonly children?: ReadonlyArray<{ readonly resource: string; readonly field: string }>
}

/** What a sync reads, and which differences it accepts; without any, it follows the source. */
export interface SyncMode {
  /** Read every record even where a cursor would do. */
  readonly full?: boolean
  /** The mass-delete guard is off. */
  readonly acceptDeletions?: boolean
  /** The source was restored: its versions win over newer ones. Reads every record. */
  readonly acceptRestored?: boolean
  /** Rows that a newer catalogue has written are read again under this program's older one. */
  readonly acceptsOlderCatalogue?: boolean
  /** Forgets the learned overlap. */
  readonly resetOverlap?: boolean
  /** Reads the records that changed in this range instead of those after the cursor; null: without a bound. */
  readonly backfill?: { readonly since: string | null; readonly until: string | null } | undefined
}

export interface SyncResourceOptions {
  readonly mode?: SyncMode
  /** Approximate number of records landed in one transaction. */
  readonly batchRecordsMax?: number
  readonly engine?: EngineSettings
  /** What to do while another run has the lane; default `wait`. */
  readonly whenHeld?: ResourceLock.WhenHeld
  /** Whether the run has its row from its begin, because a person follows it; default false: once it finds something. */
  readonly isFollowed?: boolean
}

/** Restarts of a scan whose page token is refused or whose pages drift. */
const restartsMax = 4
/** Above this many parents, and above a hundredth of the rows, a full scan costs less. */
export const parentsMax = 50

/** The lane of a run that reads the whole resource or a range of it. */
export const laneOf = ({ backfill }: SyncMode) => (backfill === undefined ? "live" : "backfill")

/** Chooses what a run of the acquired resource reads. */
const planRun = Effect.fnUntraced(function* (lock: ResourceLock.ResourceLock, mode: SyncMode, engine: EngineSettings) {
  const { resource } = lock.table
  if (mode.backfill !== undefined) return Scan.planBackfill(resource, lock.checkpoint, mode.backfill)
  const checkpoint = mode.resetOverlap === true ? { ...lock.checkpoint, overlapMs: 0 } : lock.checkpoint
  const nowMs = yield* lock.now
  const request = { full: mode.full === true || mode.acceptRestored === true }
  const plan = Scan.plan(resource, checkpoint, request, engine, nowMs)
  if (plan.kind !== "children") return plan
  const { length: parents } = yield* Refetch.pendingRequests(lock, parentsMax + 1)
  return parents > parentsMax && parents > (yield* countLive(lock)) / 100
    ? Scan.plan(resource, checkpoint, { full: true }, engine, nowMs)
    : plan
})

/** How late rows are recognized; null without a cursor, and while a full scan is required. */
const latenessOf = (plan: Scan.ScanPlan, checkpoint: Checkpoint): LateArrival | null => {
  const cursorMs = plan.cursor === null ? undefined : millisecondsOf(plan.cursor)
  return cursorMs === undefined || checkpoint.fullScanReason !== null
    ? null
    : { cursorMs, toleratedMs: plan.kind === "full" ? plan.overlapMs : 0 }
}

const newRunOf = (plan: Scan.ScanPlan | Scan.ChildrenPlan, checkpoint: Checkpoint): NewRun =>
  plan.kind === "children"
    ? { kind: plan.kind }
    : {
        kind: plan.kind,
        resumed: plan.resume !== null,
        cursorFrom: plan.since,
        lateness: latenessOf(plan, checkpoint)
      }

/** The restarts that a scan with this error may make; null when it must not restart. */
const restartsMaxOf = (error: unknown): number | null => {
  const tag = error instanceof SourceError ? error.reason._tag : null
  // Broken pages may be rows that moved far between two reads: a second scan shows which it is.
  return tag === "PagingBroken" ? 1 : tag === "PageTokenRefused" || tag === "PageDrift" ? restartsMax : null
}

/** Reads and lands a scan. It restarts at its first page when its pages cannot be followed. */
const runScan = Effect.fnUntraced(function* (attempt: Attempt, planned: Scan.ScanPlan) {
  const { session } = attempt
  const { resource } = attempt.lock
  const progress = yield* Progress
  let plan = planned
  for (let restarts = 0; ; restarts += 1) {
    const result = yield* Effect.result(readAndLand(attempt, plan))
    if (result._tag === "Success") return
    const error = result.failure
    if (error instanceof Scan.SourceClockRegressed) {
      // Changes may now be stamped before the cursor: only a full scan finds them.
      yield* progress.note(`${resource}: ${error.message}; every record is read`)
      yield* session.restart(error.message)
      return yield* error
    }
    const restartsAllowed = restartsMaxOf(error)
    if (restartsAllowed === null) return yield* error
    // Also before the run fails: the next run must not resume within pages that cannot be trusted.
    yield* session.restart()
    if (restarts >= restartsAllowed) return yield* error
    yield* progress.note(`${resource}: ${error.message}; the scan begins again at its first page`)
    plan = { ...plan, resume: null }
  }
})

/** Begins the run: at once, or with its first landing of something where it may find nothing. */
const openSession = Effect.fnUntraced(function* (
  lock: ResourceLock.ResourceLock,
  plan: Scan.ScanPlan | Scan.ChildrenPlan,
  options: OpenOptions,
  state: RunState,
  isFollowed: boolean
) {
  const entered = ({ runId, isQuiet }: QuietRun.RunEntry) => {
    state.runId = runId
    state.isQuiet = isQuiet
  }
  const mayFindNothing =
    !isFollowed &&
    lock.lane === "live" &&
    plan.kind === "incremental" &&
    lock.checkpoint.scan === null &&
    state.runId === null
  if (mayFindNothing) return yield* QuietRun.open(lock, options, entered)
  const session = yield* WriteSession.open(lock, options)
  entered({ runId: session.runId, isQuiet: false })
  return { ...session, open: Effect.void }
})

/** One attempt: acquires the resource, and reads from its checkpoint. */
const attemptRun = Effect.fnUntraced(function* (target: SyncTarget, options: SyncResourceOptions, state: RunState) {
  const { table, connector, companyId, children = [] } = target
  const { mode = {}, engine = engineDefault, batchRecordsMax = batchRecordsMaxDefault } = options
  const progress = yield* Progress
  const lock = yield* ResourceLock.acquire({
    table,
    connector,
    companyId,
    lane: laneOf(mode),
    acceptsOlderCatalogue: mode.acceptsOlderCatalogue ?? false,
    whenHeld: options.whenHeld ?? "wait"
  })
  const plan = yield* planRun(lock, mode, engine)
  const session = yield* openSession(
    lock,
    plan,
    {
      run: { ...newRunOf(plan, lock.checkpoint), overlapMs: Scan.effectiveOverlapMs(lock.live, engine) },
      origin: "scan",
      authority: mode.acceptRestored === true ? "source" : "newer",
      acceptDeletions: mode.acceptDeletions ?? false,
      deletionsShareMax: engine.deletionsShareMax,
      children
    },
    state,
    options.isFollowed ?? false
  )
  state.cursor = session.checkpoint.cursor
  if (mode.resetOverlap === true)
    yield* session.transaction(() => lock.runStatement(resetOverlapStatement, [companyId, lock.resource]))
  const attempt: Attempt = { connector, batchRecordsMax, lock, session, state }
  const begin = (kind: RunKind, resumed: boolean) => {
    state.began = { companyId, resource: lock.resource, kind, resumed }
    return progress.began(state.began)
  }
  if (plan.kind === "children") {
    yield* begin("children", false)
    return yield* readChildren(attempt)
  }
  if (session.checkpoint.scan !== null && plan.resume === null) yield* session.restart()
  if (plan.reason !== null && plan.resume === null) state.notes.add(`read in full: ${plan.reason}`)
  yield* begin(plan.kind, plan.resume !== null)
  // A run that fails has a row, so that its error is shown.
  yield* Effect.tapError(runScan(attempt, plan), () => Effect.ignore(session.open))
}, Effect.scoped)

/** Syncs one resource of one company. Never fails: the outcome has the failure. */
export const syncResource = Effect.fn("syncResource")(function* (
  target: SyncTarget,
  options: SyncResourceOptions = {}
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  const { companyId, table } = target
  const { mode = {} } = options
  return yield* withRun(
    { companyId, table, lane: laneOf(mode) },
    Effect.fnUntraced(function* (run) {
      const read = (read: SyncMode) => {
        const attempts = run.attempt(attemptRun(target, { ...options, mode: read }, run.state))
        const again = () => attempts
        return Effect.catchTag(
          attempts,
          ["SourceClockRegressed", "TableReplaced", "WarehouseClockStepped"],
          again
        ).pipe(Effect.match({ onFailure: (error) => error, onSuccess: () => null }))
      }
      const error = yield* read(mode)
      const resumed = run.state.began?.resumed ?? false
      if (error !== null || !resumed || mode.backfill !== undefined) return run.outcome(error, resumed)
      // The resumed scan shows the source as of its beginning; the later changes are read now.
      yield* run.closePart(run.outcome(null, resumed))
      return run.outcome(yield* read({ ...mode, full: false, acceptRestored: false, resetOverlap: false }), resumed)
    })
  )
})
