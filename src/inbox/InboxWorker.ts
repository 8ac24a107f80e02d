/** The state of one inbox worker: what a process knows about the pending events of one company. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Priority } from "../budget/Budget.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { WhenHeld } from "../land/ResourceLock.ts"
import type { Company } from "../sync/Company.ts"
import { childrenOf } from "../warehouse/Table.ts"
import { failureOf } from "../sync/Outcome.ts"
import type { Table } from "../warehouse/Table.ts"
import * as CircuitBreaker from "./CircuitBreaker.ts"
import * as FairShare from "./FairShare.ts"
import * as InboxStore from "./InboxStore.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** Records that were fetched by number at about the same time. */
interface RecentFetches {
  readonly at: number
  records: number
}

/** The worker's state of one resource. All times are of the monotonic clock, in milliseconds. */
export interface ResourceState {
  /** The resource is not read before this time. */
  pausedUntil: number
  /** Many events are not answered by a scan before this time. */
  nextScanAt: number
  /** The whole resource is not read before this time. */
  nextFullReadAt: number
  /** The children of changed parents are not read before this time. */
  nextChildrenAt: number
  /** The largest page size that scans have shown. */
  pageRecords: number
  /** The overlap of a scan. */
  overlapMs: number
  /** Fetches that a scan from the cursor would repeat. */
  readonly recentFetches: Array<RecentFetches>
}

export interface InboxWorker {
  readonly company: Company
  readonly reader: DeliveryReader
  /** Whether the worker ends as soon as no event is due. */
  readonly isDrain: boolean
  /** The monotonic clock, in milliseconds. */
  readonly now: () => number
  readonly breaker: CircuitBreaker.CircuitBreaker
  readonly shares: FairShare.FairShare
  readonly totals: { done: number; dead: number; ignored: number; postponed: number }
  readonly resources: Map<string, ResourceState>
  /** Child resources whose parents have changed. */
  readonly childrenToRefetch: Set<string>
  /** Resources with events that only a read of every record answers. */
  readonly fullReads: Set<string>
  /** Null until the source has identified the company. */
  companyId: bigint | null
  /** Its number there. */
  sourceNumber: bigint | null
  /** How often this process has stored new events. */
  arrivals: number
  /** When the refetch requests of other processes were last listed. */
  refetchesListedAt: number
}

/** The resource that a task works on. */
export interface ResourceTarget {
  readonly companyId: bigint
  readonly tables: ReadonlyMap<string, Table>
  readonly table: Table
  readonly path: string
}

const pageRecordsDefault = 100

export const make = Effect.fnUntraced(function* (
  options: { readonly company: Company; readonly reader: DeliveryReader },
  isDrain: boolean
) {
  const { company, reader } = options
  const now = yield* MonotonicClock.make
  const worker: InboxWorker = {
    company,
    reader,
    isDrain,
    now,
    breaker: yield* CircuitBreaker.make(company.name, company.connector),
    shares: FairShare.make(now),
    totals: { done: 0, dead: 0, ignored: 0, postponed: 0 },
    resources: new Map(),
    childrenToRefetch: new Set(),
    fullReads: new Set(),
    companyId: null,
    sourceNumber: null,
    arrivals: 0,
    refetchesListedAt: Number.NEGATIVE_INFINITY
  }
  return worker
})

export const stateOf = ({ company, resources }: InboxWorker, path: string): ResourceState => {
  const state = resources.get(path) ?? {
    pausedUntil: 0,
    nextScanAt: 0,
    nextFullReadAt: 0,
    nextChildrenAt: Number.NEGATIVE_INFINITY,
    pageRecords: pageRecordsDefault,
    overlapMs: Duration.toMillis(company.engine.overlap),
    recentFetches: []
  }
  resources.set(path, state)
  return state
}

/** Pauses a resource. */
export const pause = (worker: InboxWorker, path: string, ms: number): void => {
  stateOf(worker, path).pausedUntil = worker.now() + ms
}

const totalOf = { done: "done", dead_letter: "dead", skipped: "ignored", pending: "postponed" } as const

/** The company's number in the warehouse; null while the source does not answer. */
export const identify = (worker: InboxWorker): Effect.Effect<bigint | null> =>
  Effect.suspend(() => {
    if (worker.companyId !== null) return Effect.succeed(worker.companyId)
    const startedAt = worker.now()
    return worker.company.connector.identify.pipe(
      Effect.matchEffect({
        onSuccess: ({ companyId, sourceNumber }) => {
          worker.companyId = companyId
          worker.sourceNumber = sourceNumber
          return Effect.as(worker.breaker.succeed, companyId)
        },
        // A source that does not answer even this request is unavailable, whatever its error says.
        onFailure: (error) =>
          Effect.as(worker.breaker.classify({ ...failureOf(error), stops: "company" }, startedAt), null)
      })
    )
  })

export const countResolutions = ({ totals }: InboxWorker, resolutions: ReadonlyArray<InboxStore.Resolution>): void => {
  for (const { state } of resolutions) totals[totalOf[state]] += 1
}

/** Resolves events, and counts them once that is committed. */
export const resolve = (
  worker: InboxWorker,
  resolutions: ReadonlyArray<InboxStore.Resolution>,
  runId: bigint | null = null
) =>
  Effect.andThen(
    InboxStore.resolve(resolutions, runId),
    Effect.sync(() => countResolutions(worker, resolutions))
  )

/** Notes that rows of a resource have changed: its children are read again. */
export const noteChanges = (
  worker: InboxWorker,
  { tables, path }: Pick<ResourceTarget, "tables" | "path">,
  changedRows: number
): void => {
  if (changedRows > 0) for (const child of childrenOf(tables, path)) worker.childrenToRefetch.add(child.resource)
}

/** Notes records that were fetched by number. Their time is kept to a hundredth of the overlap. */
export const noteFetches = (worker: InboxWorker, path: string, records: number): void => {
  if (records === 0) return
  const { recentFetches, overlapMs } = stateOf(worker, path)
  const now = worker.now()
  const last = recentFetches.at(-1)
  if (last !== undefined && now - last.at < overlapMs / 100) last.records += records
  else recentFetches.push({ at: now, records })
  while (recentFetches.length > 1 && now - recentFetches[0]!.at > overlapMs) recentFetches.shift()
}

/** A drain does not own the company. */
export const whenHeld = ({ isDrain }: InboxWorker): WhenHeld => (isDrain ? "fail" : "evict")

export const isRetrievable = ({ resource }: Table): boolean => resource.operations.includes("R")

/** The priority of reads for which an event waits. */
export const urgent: Priority = { class: "urgent", dueAt: 0 }

/** The priority of reads for which no single event waits: that of a scheduled run that is due now. */
export const live = Effect.map(Clock.currentTimeMillis, (dueAt): Priority => ({ class: "live", dueAt }))
