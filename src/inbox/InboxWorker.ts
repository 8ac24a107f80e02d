/** What a process knows about the pending events of one company while it processes them. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Priority } from "../budget/Budget.ts"
import type { Identity } from "../connector/Connector.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { Company } from "../sync/Company.ts"
import type { Table } from "../warehouse/Table.ts"
import type { CircuitBreaker } from "../sync/CircuitBreaker.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** `events` processes the events of a resource. `read` reads all of it, or the children of changed parents. */
export type WorkKind = "events" | "read"

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
  /** Until this time its events want a read of every record, beside the events. */
  wantsFullReadUntil: number
  /** The children of changed parents are not read before this time. */
  nextChildrenAt: number
  /** When its last work of a kind ended. */
  readonly servedAt: Record<WorkKind, number>
  /** The largest page size that scans have shown. */
  pageRecords: number
  /** The overlap of a scan. */
  overlapMs: number
  /** Fetches that a scan from the cursor would repeat. */
  readonly recentFetches: Array<RecentFetches>
}

export interface InboxWorker {
  readonly company: Omit<Company, "events">
  readonly reader: DeliveryReader
  /** The company, as the source identifies it. */
  identity: Identity
  /** The monotonic clock, in milliseconds. */
  readonly now: () => number
  readonly breaker: CircuitBreaker
  readonly resources: Map<string, ResourceState>
  /** Work that waits for the warehouse, each logged once. */
  readonly failing: Set<string>
  /** Whether due events of other resources wait for a place. */
  readonly isCrowded: () => boolean
  /** How often this process has stored new events. */
  arrivals: number
}

/** The resource that is worked on. */
export interface ResourceTarget {
  readonly companyId: bigint
  readonly tables: ReadonlyMap<string, Table>
  readonly table: Table
  readonly path: string
}

const pageRecordsDefault = 100
/** Processing the events of a resource may end after this where other resources wait. */
const sliceMs = 500

export const make = Effect.fnUntraced(function* (
  options: Pick<InboxWorker, "company" | "reader" | "breaker" | "identity" | "isCrowded">
) {
  const worker: InboxWorker = {
    ...options,
    now: yield* MonotonicClock.make,
    resources: new Map(),
    failing: new Set(),
    arrivals: 0
  }
  return worker
})

export const stateOf = ({ company, resources }: InboxWorker, path: string): ResourceState => {
  const never = Number.NEGATIVE_INFINITY
  const state = resources.get(path) ?? {
    pausedUntil: 0,
    nextScanAt: 0,
    nextFullReadAt: 0,
    wantsFullReadUntil: never,
    nextChildrenAt: never,
    servedAt: { events: never, read: never },
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

/** Whether work that began at this time ends, since due events of other resources wait for a place. */
export const shouldYield = ({ isCrowded, now }: InboxWorker, startedAt: number): boolean =>
  now() - startedAt >= sliceMs && isCrowded()

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

export const isRetrievable = ({ resource }: Table): boolean => resource.operations.includes("R")

/** The priority of reads for which an event waits. */
export const urgent: Priority = { class: "urgent", dueAt: 0 }

/** The priority of reads for which no single event waits: that of a scheduled run that is due now. */
export const live = Effect.map(Clock.currentTimeMillis, (dueAt): Priority => ({ class: "live", dueAt }))
