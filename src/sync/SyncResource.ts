/**
 * One run of a resource: acquire, read, land, close.
 *
 * Promise: what was read before a failure is landed. After a database error the run retries from the checkpoint, never
 * from memory. `tributary.runs` has how the run ended, also when it was interrupted; when the process is killed, the next
 * run closes it. A run never fails: its outcome has the failure and the remarks.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape } from "../connector/Connector.ts"
import { SourceError } from "../connector/SourceError.ts"
import { millisecondsOf } from "../connector/Instant.ts"
import * as Scan from "../extract/Scan.ts"
import type { Checkpoint, RunKind } from "../land/Checkpoint.ts"
import { resetOverlap } from "../land/CheckpointStore.ts"
import { countLive } from "../land/SoftDelete.ts"
import * as Refetch from "../land/Refetch.ts"
import * as ResourceLock from "../land/ResourceLock.ts"
import * as WriteSession from "../land/WriteSession.ts"
import type { LateArrival, NewRun } from "../land/SessionContext.ts"
import type { Table } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import { attributesOf, type Outcome } from "./Outcome.ts"
import { Progress } from "./Progress.ts"
import { type Attempt, readAndLand, readChildren } from "./ReadAndLand.ts"
import * as RunStore from "./RunStore.ts"
import { newState, outcomeOf, retryFromCheckpoint, type RunState } from "./RunState.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** The settings of scans and of the mass-delete guard, from the configuration. */
export interface EngineSettings extends Scan.ScanSettings {
  /** A full scan deletes at most this share of the rows (0 to 1), unless deletions are accepted. */
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
  /** The source was restored: its versions win over newer ones. Reads every record. */
  readonly acceptRestored?: boolean
  /** Rows that a newer catalogue has written are read again under this program's older one. */
  readonly acceptsOlderCatalogue?: boolean
  /** Forgets the learned overlap. */
  readonly resetOverlap?: boolean
  /** Records landed in one transaction, about. */
  readonly batchRecordsMax: number
  readonly engine?: EngineSettings
  /** Resources whose records are read again when a row changes here. */
  readonly children?: ReadonlyArray<{ readonly resource: string; readonly field: string }>
  /** Reads this range beside live syncing instead of following the source; RFC 3339 in UTC. */
  readonly backfill?: { readonly since: string | null; readonly until: string | null }
  /** The process that has the lock has sent no heartbeat for long: the server ends its session. */
  readonly evictHolder?: boolean
  /** Whether to wait a moment for a run that may just be ending; default true. */
  readonly waitForHolder?: boolean
}

export const batchRecordsMaxDefault = 2_500

/** Restarts of a scan whose page token is refused or whose pages drift. */
const restartsMax = 4
/** More parents than this, and than a hundredth of the rows, cost more than a full scan. */
export const parentsMax = 50

/** The lane of a run that reads the whole resource or a range of it. */
const laneOf = ({ backfill }: SyncResourceOptions) => (backfill === undefined ? "live" : "backfill")

/** Chooses what a run of the acquired resource reads. */
const planRun = Effect.fnUntraced(function* (options: SyncResourceOptions, lock: ResourceLock.ResourceLock) {
  const { resource } = lock.table
  const engine = options.engine ?? engineDefault
  if (options.backfill !== undefined) return Scan.planBackfill(resource, lock.checkpoint, options.backfill)
  const checkpoint = options.resetOverlap === true ? { ...lock.checkpoint, overlapMs: 0 } : lock.checkpoint
  const nowMs = yield* lock.now
  const request = { full: options.full || options.acceptRestored === true }
  const plan = Scan.plan(resource, checkpoint, request, engine, nowMs)
  if (plan.kind !== "children") return plan
  const { length: parents } = yield* Refetch.pendingRequests(lock, parentsMax + 1)
  return parents > parentsMax && parents > (yield* countLive(lock)) / 100
    ? Scan.plan(resource, checkpoint, { full: true }, engine, nowMs)
    : plan
})

/** How late rows are recognised; null without a cursor, and while a full scan is required. */
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

/** How often a scan that failed begins again at its first page; null when it must not. */
const restartsMaxOf = (error: unknown): number | null => {
  const tag = error instanceof SourceError ? error.reason._tag : null
  // Pages that look broken may be rows that moved far between two reads: a second scan shows which it is.
  return tag === "PagingBroken" ? 1 : tag === "PageTokenRefused" || tag === "PageDrift" ? restartsMax : null
}

/** Reads and lands a scan; pages that cannot be followed send it back to its first page. */
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
    // Also when this run gives up: the next one must not go on in the middle of pages that cannot be trusted.
    yield* session.restart()
    if (restarts >= restartsAllowed) return yield* error
    yield* progress.note(`${resource}: ${error.message}; the scan begins again at its first page`)
    plan = { ...plan, resume: null }
  }
})

/** One attempt: acquires the resource, and reads from what its checkpoint says. */
const attemptRun = Effect.fnUntraced(function* (options: SyncResourceOptions, state: RunState) {
  const { table, connector, companyId, batchRecordsMax } = options
  const progress = yield* Progress
  const lock = yield* ResourceLock.acquire({
    table,
    connector,
    companyId,
    lane: laneOf(options),
    acceptsOlderCatalogue: options.acceptsOlderCatalogue ?? false,
    evictHolder: options.evictHolder ?? false,
    waitForHolder: options.waitForHolder ?? true
  })
  const plan = yield* planRun(options, lock)
  const session = yield* WriteSession.open(lock, {
    run: newRunOf(plan, lock.checkpoint),
    origin: "scan",
    authority: options.acceptRestored === true ? "source" : "newer",
    acceptDeletions: options.acceptDeletions,
    deletionsShareMax: (options.engine ?? engineDefault).deletionsShareMax,
    children: options.children ?? []
  })
  state.runId = session.runId
  state.cursor = session.checkpoint.cursor
  if (options.resetOverlap === true) yield* session.transaction(() => resetOverlap(lock))
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
  yield* runScan(attempt, plan)
}, Effect.scoped)

/** Syncs one resource of one company. Never fails: the outcome has the failure. */
export const syncResource = Effect.fn("syncResource")(function* (
  options: SyncResourceOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  const { resource } = options.table
  const progress = yield* Progress
  const clock = yield* Clock.Clock
  const beganAt = MonotonicClock.nowMs(clock)
  const state = newState()
  const scope = { companyId: options.companyId, table: options.table, lane: laneOf(options) } as const
  const run = (request: SyncResourceOptions) => {
    const attempts = retryFromCheckpoint(resource.path, attemptRun(request, state))
    return Effect.result(
      Effect.catchTag(attempts, ["SourceClockRegressed", "TableReplaced", "WarehouseClockStepped"], () => attempts)
    )
  }
  const outcome = (result: Effect.Success<ReturnType<typeof run>>, resumed: boolean) =>
    outcomeOf(
      scope,
      state,
      result._tag === "Success" ? null : result.failure,
      resumed,
      Math.floor(MonotonicClock.nowMs(clock) - beganAt)
    )
  const close = (ended: Outcome) => (state.runId === null ? Effect.void : RunStore.close(state.runId, ended))

  const runToCompletion = Effect.gen(function* () {
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
  const ended = yield* Effect.onInterrupt(runToCompletion, () =>
    Effect.suspend(() =>
      state.runId === null
        ? Effect.void
        : RunStore.abandon(state.runId, {
            companyId: options.companyId,
            resource: resource.path,
            lane: scope.lane
          })
    )
  )
  yield* progress.ended(ended)
  yield* Effect.annotateCurrentSpan(attributesOf(ended))
  return ended
})
