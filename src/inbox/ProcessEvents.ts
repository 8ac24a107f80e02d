/**
 * A worker's time slice on the events of one resource.
 *
 * A record is read by its number, as long as that is cheap. One scan answers all events if more than `scanMinEvents`
 * (BulkReads.ts) records are due, and if fetching them costs more than the pages of a scan from the cursor. Events about the
 * whole resource, and those of a resource without single records, are answered by a list.
 *
 * Promise: the slice ends soon after another resource needs its slot. Then the events are due as before. Two processes may
 * work on a resource while its owner changes: the lock of the lane lets one of them read, and the fence lets one write.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import {
  contendedPauseMs,
  failWithDatabase,
  fullReadDelayMs,
  isOwnTask,
  isScanCheaper,
  mayReadEverything,
  readChanges,
  readChildrenOf,
  resolveListed,
  runLiveLane,
  scanRetryMs,
  wantFullRead
} from "./BulkReads.ts"
import { type DueEvents, fetchDueEvents, fetchRequestsOf, parentsOf } from "./DueEvents.ts"
import type { ClaimedEvent } from "./InboxStore.ts"
import {
  type InboxWorker,
  isRetrievable,
  noteFetches,
  pause,
  type ResourceTarget,
  shouldYield,
  stateOf,
  urgent
} from "./InboxWorker.ts"
import { fetchRecords, sliceMs } from "./RecordFetcher.ts"
import { isComplete } from "./Refresh.ts"
import type { FetchRequest } from "./ResolveFetches.ts"
import { syncPositionOf } from "./SyncPosition.ts"

const lookEveryMs = 1_000
/** How long a worker keeps a resource without due events. */
const idleTimeout = Duration.seconds(2)
/** A pause after a failed task on a resource. */
export const failurePauseMs = 5_000
/** A pause between two long slices, in which another process can acquire the resource. */
const yieldMs = 300

interface TimeSlice {
  readonly worker: InboxWorker
  readonly target: ResourceTarget
  readonly startedAt: number
  /** Whether the last scan resolved nothing: then another scan does not help. */
  wasScanUseless: boolean
  /** The events for which the last scan ran. */
  scannedFor: ReadonlySet<bigint>
  /** When the whole resource may be read, for an event that requires it. */
  nextFullReadAt: number
}

type NextStep = "continue" | "end"

/** Ends the slice, and pauses the resource. */
const endWithPause = ({ worker, target }: TimeSlice, ms: number): NextStep => {
  pause(worker, target.path, ms)
  return "end"
}

/** Processes the due events of a resource. */
export const processResource = (worker: InboxWorker, target: ResourceTarget) =>
  Effect.suspend(() =>
    processEvents({
      worker,
      target,
      startedAt: worker.now(),
      wasScanUseless: false,
      scannedFor: new Set(),
      nextFullReadAt: Number.NEGATIVE_INFINITY
    })
  ).pipe(
    Effect.withSpan("webhook.act", {
      attributes: { "tributary.company": worker.company.name, "tributary.resource": target.path }
    })
  )

/** Processes events until none is due, or the slice is over. Fails only with the database. */
const processEvents = Effect.fnUntraced(function* (slice: TimeSlice) {
  const { worker, target, startedAt } = slice
  while (!worker.breaker.isOpen()) {
    if (shouldYield(worker, startedAt)) return
    if (worker.now() - startedAt >= sliceMs) return pause(worker, target.path, yieldMs)
    const due = yield* fetchDueEvents(worker, target, new Set())
    noteScanResult(slice, due)
    if (due.count === 0) return
    if (due.unanswered.length === 0) continue
    const next = isRetrievable(target.table)
      ? yield* readByNumber(slice, due.unanswered)
      : yield* readByList(slice, due)
    if (next === "end") return
  }
})

/** Notes which events the previous scan has resolved. */
const noteScanResult = (slice: TimeSlice, { unanswered, count }: DueEvents) => {
  const { worker, target, scannedFor } = slice
  // A scan that left more than half of its events is not repeated soon.
  if (unanswered.filter(({ id }) => scannedFor.has(id)).length * 2 > scannedFor.size) {
    stateOf(worker, target.path).nextScanAt = worker.now() + scanRetryMs
  }
  slice.scannedFor = new Set()
  if (unanswered.length < count) slice.wasScanUseless = false
}

/** Reads a resource whose records cannot be fetched by number: the children of the parents, or everything. */
const readByList = Effect.fnUntraced(function* (slice: TimeSlice, { unanswered, rows }: DueEvents) {
  const { worker, target } = slice
  const numbered = unanswered.filter(({ recordId }) => recordId !== null)
  const covered = numbered.filter(({ id }) => rows.get(id)?.isCovered === true)
  if (covered.length > 0) {
    yield* resolveListed(worker, covered, rows, null)
    slice.wasScanUseless = false
    return "continue"
  }
  const position = yield* syncPositionOf(target.companyId, target.path)
  const delayMs = slice.wasScanUseless ? contendedPauseMs : fullReadDelayMs(worker, target, position)
  const parents = parentsOf(worker, target, position, numbered)
  const mayBeAll = mayReadEverything(position, new Set(parents.values()).size)
  if (parents.size > 0 && !mayBeAll) {
    const isDone = yield* readChildrenOf(worker, target, parents, numbered, urgent)
    if (!isDone) return endWithPause(slice, contendedPauseMs)
    if (parents.size === unanswered.length) return "continue"
  }
  if (delayMs > 0) return endWithPause(slice, Math.min(delayMs, contendedPauseMs))
  if (isOwnTask(target, position)) {
    wantFullRead(worker, target.path)
    return endWithPause(slice, contendedPauseMs)
  }
  const rest = unanswered.filter(({ id }) => !parents.has(id))
  yield* readChanges(worker, target, position, rest)
  slice.wasScanUseless = true
  return "continue"
})

/** Fetches the records of the events by number, or scans from the cursor where that is cheaper. */
const readByNumber = Effect.fnUntraced(function* (slice: TimeSlice, unanswered: ReadonlyArray<ClaimedEvent>) {
  const { worker, target } = slice
  const numbered = unanswered.filter(({ recordId }) => recordId !== null)
  const unnumbered = unanswered.filter(({ recordId }) => recordId === null)
  if (unnumbered.length > 0 && worker.now() >= slice.nextFullReadAt) {
    const hasRead = yield* readWholeResource(slice, unnumbered)
    if (hasRead && numbered.length === 0) return "continue"
  }
  if (numbered.length === 0) {
    return endWithPause(slice, Math.min(slice.nextFullReadAt - worker.now(), contendedPauseMs))
  }
  const requests = fetchRequestsOf(numbered)
  if (yield* isScanCheaper(worker, target, requests.length)) {
    yield* scanForMany(slice, numbered)
    return "continue"
  }
  return yield* fetchByNumber(slice, requests)
})

/** Reads the whole resource, unless a separate task does that. Returns whether it was read. */
const readWholeResource = Effect.fnUntraced(function* (slice: TimeSlice, events: ReadonlyArray<ClaimedEvent>) {
  const { worker, target } = slice
  const position = yield* syncPositionOf(target.companyId, target.path)
  const delayMs = slice.wasScanUseless ? contendedPauseMs : fullReadDelayMs(worker, target, position)
  slice.nextFullReadAt = worker.now() + delayMs
  if (delayMs > 0) return false
  if (isOwnTask(target, position)) {
    wantFullRead(worker, target.path)
    slice.nextFullReadAt = worker.now() + contendedPauseMs
    return false
  }
  yield* readChanges(worker, target, position, events)
  slice.wasScanUseless = true
  return true
})

/** Scans from the cursor, for many events. Events that the scan does not resolve are fetched by number. */
const scanForMany = Effect.fnUntraced(function* (slice: TimeSlice, events: ReadonlyArray<ClaimedEvent>) {
  const { worker, target } = slice
  const { outcome, startedAt } = yield* runLiveLane(worker, target, "changes")
  const scope =
    outcome.failure === null
      ? yield* Effect.as(worker.breaker.noteAnswer, null)
      : yield* worker.breaker.classify(outcome.failure, startedAt)
  const isDone = isComplete(outcome)
  const pauseMs = isDone ? lookEveryMs : scope === "contended" ? failurePauseMs : scanRetryMs
  stateOf(worker, target.path).nextScanAt = worker.now() + pauseMs
  slice.scannedFor = new Set(isDone ? events.map(({ id }) => id) : [])
})

const fetchByNumber = Effect.fnUntraced(function* (slice: TimeSlice, first: ReadonlyArray<FetchRequest>) {
  const { worker, target, startedAt } = slice
  const { path } = target
  const never = { arrivals: -1, ms: Number.NEGATIVE_INFINITY }
  let lastLook = never
  const outcome = yield* fetchRecords(worker, target, {
    first,
    more: (inFlight) =>
      Effect.gen(function* () {
        // Without new events of this process, events of other processes are looked for once per interval.
        const isFresh = lastLook.arrivals === worker.arrivals && worker.now() - lastLook.ms < lookEveryMs
        if (isFresh) return []
        const look = { arrivals: worker.arrivals, ms: worker.now() }
        const { unanswered } = yield* fetchDueEvents(worker, target, inFlight)
        const requests = fetchRequestsOf(unanswered)
        const hasUnnumbered = unanswered.some(({ recordId }) => recordId === null)
        if (hasUnnumbered && worker.now() >= slice.nextFullReadAt) return null
        if (yield* isScanCheaper(worker, target, requests.length)) return null
        if (requests.length === 0) lastLook = look
        return requests
      }),
    shouldYield: () => shouldYield(worker, startedAt),
    idleTimeout,
    onResolved: (landed) => {
      // The last look left out the events of records in flight.
      lastLook = never
      if (landed === null) return
      noteFetches(worker, path, landed.inserted + landed.updated)
    }
  })
  if (outcome.failure === null) return "continue"
  const { kind } = outcome.failure
  if (kind === "DatabaseError") return yield* failWithDatabase(outcome.failure)
  // Another run has the lane. The events stay due.
  return endWithPause(slice, kind === "TableChanged" ? 0 : contendedPauseMs)
})
