/**
 * The pages of a scan, or the children of changed parents, from the source into the warehouse.
 *
 * Promise: reading is ahead of landing by a bounded number of records. Pages that were read before a failure are landed.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Semaphore from "effect/Semaphore"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import * as Scan from "../extract/Scan.ts"
import { expectedRows } from "../land/SoftDelete.ts"
import * as Refetch from "../land/Refetch.ts"
import type { ResourceLock } from "../land/ResourceLock.ts"
import type { WriteSession } from "../land/WriteSession.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as RunPhases from "./RunPhases.ts"
import { addTotals, type RunState } from "./RunState.ts"

/** One batch lands while the next one is read. */
const batchesInMemory = 2
/** Maximum pages of one landing. */
const batchPagesMax = 64
/** Parents whose children are read and landed together. */
const parentsPerLanding = 40
/** Requests in flight while children are read. */
const childrenConcurrency = 4

/** One attempt of a run: the connector that it reads from, and the session that it writes to. */
export interface Attempt {
  readonly connector: ConnectorShape
  /** Approximate number of records landed in one transaction. */
  readonly batchRecordsMax: number
  readonly lock: ResourceLock
  readonly session: WriteSession
  readonly state: RunState
}

type ReadError = SourceError | DatabaseError | Scan.SourceClockRegressed

/** Reads and lands until the scan is complete. */
export const readAndLand = Effect.fnUntraced(function* (attempt: Attempt, plan: Scan.ScanPlan) {
  const { connector, batchRecordsMax, lock, session, state } = attempt
  const { resource } = lock.table
  const queue = yield* Queue.unbounded<Scan.ScannedPage, ReadError | Cause.Done>()
  /** A permit for each record in memory; a page with more records than permits takes all of them. */
  const permitsMax = batchRecordsMax * batchesInMemory
  const permits = yield* Semaphore.make(permitsMax)
  const permitsOf = ({ page }: Scan.ScannedPage) => Math.min(permitsMax, Math.max(1, page.records.length))
  const offer = (scanned: Scan.ScannedPage): Effect.Effect<unknown, Scan.SourceClockRegressed> => {
    const regression =
      scanned.scan.pages === 1 && plan.kind === "incremental" ? Scan.clockRegression(plan, scanned.page) : null
    if (regression !== null) return Effect.fail(regression)
    return Effect.andThen(permits.take(permitsOf(scanned)), Queue.offer(queue, scanned))
  }
  const reader = yield* Scan.scan(connector, resource, plan, session.timeOf, expectedRows(lock), offer).pipe(
    Effect.matchCauseEffect({
      onFailure: (cause) => Queue.failCause(queue, cause),
      onSuccess: () => Queue.end(queue)
    }),
    // The fiber ends with this scope, so that a failed landing stops the reading too.
    Effect.forkScoped
  )
  let pagesMax = 1
  for (let complete = false; !complete;) {
    const pages = yield* Queue.takeBetween(queue, 1, pagesMax).pipe(
      // The loop ends with the last page.
      Effect.catchTag("Done", () => Effect.die("a scan ended without a last page"))
    )
    const last = pages.at(-1)!
    const landed = yield* RunPhases.timed(
      state.phases,
      "landing",
      session.land({ pages, scan: last.scan, complete: last.complete })
    )
    yield* permits.release(pages.reduce((sum, page) => sum + permitsOf(page), 0))
    complete = last.complete
    const recordsPerPage = Math.max(1, last.page.records.length)
    pagesMax = Math.max(1, Math.min(batchPagesMax, Math.floor(batchRecordsMax / recordsPerPage)))
    if (complete && landed.massDeleteBlocked === null) state.cursor = last.scan.syncedThrough ?? state.cursor
    yield* addTotals(state, landed, pages)
  }
  yield* Fiber.join(reader)
}, Effect.scoped)

/** Reads the children of the parents that changed, and lands them with the refetch requests that they fulfil. */
export const readChildren = Effect.fnUntraced(function* ({ connector, lock, session, state }: Attempt) {
  for (;;) {
    const requests = yield* Refetch.pendingRequests(lock, parentsPerLanding)
    if (requests.length === 0) return
    const read = yield* Effect.forEach(requests, (request) => Scan.children(connector, lock.table.resource, request), {
      concurrency: childrenConcurrency
    })
    const pages = read.flat().map((page) => ({ page }))
    const landed = yield* RunPhases.timed(
      state.phases,
      "landing",
      session.land({ pages, scan: null, complete: false, fulfilled: requests })
    )
    yield* addTotals(state, landed, pages)
  }
})
