/**
 * Reads that answer many events at once: a scan of the resource, or the children of some parents.
 *
 * Promise: an event is resolved only by a read that began after it was due. The resolution that a failed read gives its
 * events depends on what failed: the source, the resource or the records.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Priority } from "../budget/Budget.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Failure, Outcome } from "../sync/Outcome.ts"
import { parentsMax } from "../sync/SyncResource.ts"
import * as CompareWithRow from "./CompareWithRow.ts"
import { fetchDueEvents, parentsOf } from "./DueEvents.ts"
import * as InboxStore from "./InboxStore.ts"
import { type InboxWorker, isRetrievable, live, type ResourceTarget, stateOf, urgent } from "./InboxWorker.ts"
import { retryOrDeadLetter, visibilityDelay } from "./ResolveFetches.ts"
import * as RefetchRequests from "./RefetchRequests.ts"
import { isComplete, refresh, type RefreshOptions } from "./Refresh.ts"
import { type SyncPosition, syncPositionOf } from "./SyncPosition.ts"

/** The pause of a resource with contention. */
export const contendedPauseMs = 2_000
/** Minimum time before a scan is repeated that failed, or resolved few events. */
export const scanRetryMs = 60_000
/** Minimum time between two reads of every record on behalf of events. */
const fullReadEveryMs = 60_000
/**
 * Reads of a whole resource take at most this share of the time, and of the request budget. Events gather meanwhile:
 * each scan repeats its overlap.
 */
const fullReadShare = 1 / 3
/** Minimum time between two reads of the children of changed parents. */
const childrenEveryMs = 5_000

/** More records than this are due before a scan is considered. */
const scanMinEvents = 25
/** A page of a scan costs about as much as this many concurrent fetches. */
const fetchesPerPage = 10
const positionEveryMs = 1_000

/** Whether a scan from the cursor costs less than a fetch of each record. */
export const isScanCheaper = Effect.fnUntraced(function* (
  worker: InboxWorker,
  { path, table, companyId }: ResourceTarget,
  records: number
) {
  const state = stateOf(worker, path)
  const now = worker.now()
  if (records <= scanMinEvents || !table.resource.modifiedSince || now < state.nextScanAt) return false
  const isCheaper = (repeated: number) => records > fetchesPerPage * (1 + (records + repeated) / state.pageRecords)
  if (!isCheaper(0)) return false
  const { hasCursor, overlapMs, lastScan } = yield* syncPositionOf(companyId, path)
  state.overlapMs = Math.max(Duration.toMillis(worker.company.engine.overlap), overlapMs)
  // Within the overlap, a scan repeats the records of the last scan and the fetches since then.
  const last = lastScan !== null && lastScan.msAgo <= state.overlapMs ? lastScan : null
  const since = worker.now() - (last?.msAgo ?? state.overlapMs)
  const repeated = state.recentFetches.reduce(
    (sum, fetches) => (fetches.at >= since ? sum + fetches.records : sum),
    last?.records ?? 0
  )
  if (hasCursor && isCheaper(repeated)) return true
  state.nextScanAt = worker.now() + positionEveryMs
  return false
})

/** Runs the live lane. Where another process has the lane, the run fails at once. */
export const runLiveLane = Effect.fnUntraced(function* (
  worker: InboxWorker,
  { companyId, tables, table, path }: ResourceTarget,
  reads: RefreshOptions["reads"],
  priority: Priority = urgent
) {
  const { company } = worker
  const startedAt = worker.now()
  const outcome = yield* refresh({ company, companyId, tables, table, reads, whenHeld: "evict" }).pipe(
    Effect.provideService(Priority, priority)
  )
  const { kind, totals } = outcome
  const state = stateOf(worker, path)
  if (totals.pages > 0) state.pageRecords = Math.max(state.pageRecords, Math.ceil(totals.records / totals.pages))
  if (kind !== null && kind !== "children") {
    const requestsMs = (totals.requests * 60_000) / (company.requestsPerMinute ?? Number.POSITIVE_INFINITY)
    state.nextFullReadAt = startedAt + Math.max(requestsMs, worker.now() - startedAt) / fullReadShare
  }
  return { outcome, startedAt }
})

/** Whether a scan reads from the cursor on. */
const isIncremental = ({ table }: ResourceTarget, { hasCursor }: SyncPosition) =>
  table.resource.modifiedSince && hasCursor

/** Time until the whole resource may be read. Scheduled scans in this time answer its events too. */
export const fullReadDelayMs = (worker: InboxWorker, target: ResourceTarget, position: SyncPosition): number => {
  const { fullMsAgo } = position
  const intervalMs = fullMsAgo === null || isIncremental(target, position) ? 0 : fullReadEveryMs - fullMsAgo
  return Math.max(0, stateOf(worker, target.path).nextFullReadAt - worker.now(), intervalMs)
}

/** Whether a scan of the resource runs beside the events. */
export const isOwnTask = (target: ResourceTarget, position: SyncPosition): boolean => !isIncremental(target, position)

/** Whether reading the children of this many more parents may become a read of every record. */
export const mayReadEverything = ({ canRefetchChildren, refetchRequests }: SyncPosition, moreParents: number) =>
  !canRefetchChildren || refetchRequests + moreParents > parentsMax

/** Reads the changes of the whole resource, for events that no smaller read answers. */
export const readChanges = Effect.fnUntraced(function* (
  worker: InboxWorker,
  target: ResourceTarget,
  position: SyncPosition,
  events: ReadonlyArray<InboxStore.PendingEvent>
) {
  // A full scan takes long. One event does not justify an urgent one.
  const priority = isIncremental(target, position) ? urgent : yield* live
  const { outcome, startedAt } = yield* runLiveLane(worker, target, "changes", priority)
  if (outcome.failure === null) yield* worker.breaker.noteAnswer
  else yield* resolveFailedRead(worker, events, outcome, startedAt)
})

/** Reads the children of these parents, for the events that name them. Returns whether the read was complete. */
export const readChildrenOf = Effect.fnUntraced(function* (
  worker: InboxWorker,
  target: ResourceTarget,
  parents: ReadonlyMap<bigint, string>,
  candidates: ReadonlyArray<InboxStore.PendingEvent>,
  priority: Priority
) {
  const { companyId, table, path } = target
  const { field } = table.resource.parent!
  const events = candidates.filter(({ id }) => parents.has(id))
  const values = JSON.stringify([...new Set(parents.values())])
  yield* Statement.run(RefetchRequests.request, [companyId, path, field, values])
  const { outcome, startedAt } = yield* runLiveLane(worker, target, "children", priority)
  if (!isComplete(outcome)) {
    yield* resolveFailedRead(worker, events, outcome, startedAt)
    return false
  }
  yield* worker.breaker.noteAnswer
  const requests = yield* RefetchRequests.pending(companyId, path, field)
  const pending = new Set(requests.map(({ value }) => value))
  const answered = events.filter(({ id }) => !pending.has(parents.get(id)!))
  const rows = yield* CompareWithRow.compareWithRow(table, companyId, answered)
  yield* resolveListed(worker, answered, rows, outcome.runId)
  return true
})

/** Resolves events whose records a list should contain: the record is there, not visible yet, or gone. */
export const resolveListed = (
  worker: InboxWorker,
  events: ReadonlyArray<InboxStore.PendingEvent>,
  rows: ReadonlyMap<bigint, CompareWithRow.RowState>,
  runId: bigint | null
) => {
  const overlapMs = Duration.toMillis(worker.company.engine.overlap)
  const resolutions = events.map(({ id, ageMs }): InboxStore.Resolution => {
    if (rows.get(id)?.isCurrent === true) return { id, state: "done", reason: null }
    if (ageMs >= overlapMs) return { id, state: "done", reason: "the source does not list the record" }
    const pauseMs = visibilityDelay(ageMs, overlapMs)
    return { id, state: "pending", reason: "the source does not show the record yet", pauseMs }
  })
  return InboxStore.resolve(resolutions, runId)
}

/** Resolves the events of a scan that failed. */
const resolveFailedRead = Effect.fnUntraced(function* (
  worker: InboxWorker,
  events: ReadonlyArray<InboxStore.PendingEvent>,
  { failure, runId }: Outcome,
  startedAt: number
) {
  if (failure === null) return
  if (failure.kind === "DatabaseError") return yield* failWithDatabase(failure)
  const scope = yield* worker.breaker.classify(failure, startedAt)
  const reason = `${failure.message}; ${failure.remedy}`
  // The events stay due and the resource pauses.
  if (scope === "company" || scope === "contended") return
  yield* InboxStore.resolve(
    events.map((event): InboxStore.Resolution =>
      scope === "record" ? retryOrDeadLetter(event, reason) : { id: event.id, state: "dead_letter", reason }
    ),
    runId
  )
})

export const failWithDatabase = ({ message }: Failure) =>
  Effect.fail(new DatabaseError({ operation: "act on events", code: undefined, message, isRetryable: false }))

/** Notes that events of a resource want a read of every record. They say it again while they do. */
export const wantFullRead = (worker: InboxWorker, path: string): void => {
  stateOf(worker, path).wantsFullReadUntil = worker.now() + contendedPauseMs
}

/** Reads every record of a resource, or the children of many parents, for the events that require it. */
export const readForEvents = Effect.fnUntraced(function* (worker: InboxWorker, target: ResourceTarget) {
  const { path, companyId, table } = target
  stateOf(worker, path).wantsFullReadUntil = Number.NEGATIVE_INFINITY
  const { unanswered } = yield* fetchDueEvents(worker, target, new Set())
  const events = isRetrievable(table) ? unanswered.filter(({ recordId }) => recordId === null) : unanswered
  const position = yield* syncPositionOf(companyId, path)
  const parents = parentsOf(worker, target, position, events)
  const parentCount = new Set(parents.values()).size
  if (parents.size > 0 && mayReadEverything(position, parentCount)) {
    yield* readChildrenOf(worker, target, parents, events, yield* live)
  } else if (events.length > 0) yield* readChanges(worker, target, position, events)
})

/** Whether the children of changed parents may be read now. */
export const mayReadChildren = (worker: InboxWorker, path: string): boolean =>
  worker.now() >= stateOf(worker, path).nextChildrenAt

/** The children of changed parents are not read before this has passed. */
export const postponeChildren = (worker: InboxWorker, path: string, ms: number): void => {
  stateOf(worker, path).nextChildrenAt = worker.now() + ms
}

/** Reads the children of parents that changed. */
export const refetchChildren = Effect.fnUntraced(function* (worker: InboxWorker, target: ResourceTarget) {
  const { breaker } = worker
  const { path, companyId } = target
  postponeChildren(worker, path, childrenEveryMs)
  const position = yield* syncPositionOf(companyId, path)
  // Without a full scan so far, the first one fulfils every request.
  if (position.refetchRequests === 0 || position.fullMsAgo === null) return
  if (mayReadEverything(position, 0) && fullReadDelayMs(worker, target, position) > 0) return
  const { outcome, startedAt } = yield* runLiveLane(worker, target, "children", yield* live)
  if (outcome.failure === null) return yield* breaker.noteAnswer
  const scope = yield* breaker.classify(outcome.failure, startedAt)
  if (scope === "blocked" || scope === "record") postponeChildren(worker, path, scanRetryMs)
  if (outcome.failure.kind === "DatabaseError") return yield* failWithDatabase(outcome.failure)
})
