/**
 * The reads that delivery gaps need: what a run reads for them, and what it proves.
 *
 * A gap that has ended wants a run of its resource. The worker of the tasks makes it (`tasks/RunTask.ts`), or the command
 * that checks for missed events.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { isComplete, refresh } from "../inbox/Refresh.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Company } from "../sync/Company.ts"
import type { Outcome } from "../sync/Outcome.ts"
import type { Table } from "../warehouse/Table.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"

/** Full scans for gaps take at most this share of the time and of the request budget. */
const fullScanShare = 1 / 3
const concurrency = 4

/** A company whose gaps are closed. */
export type GapCompany = Pick<Company, "name" | "engine" | "requestsPerMinute">

const overlapMsOf = ({ engine }: GapCompany) => Duration.toMillis(engine.overlap)

/** Closes the gaps that runs cover, and logs that. */
export const closeCovered = (company: GapCompany, companyId: bigint) =>
  Effect.tap(DeliveryGaps.closeCovered(company.name, companyId, overlapMsOf(company)), (closed) =>
    Effect.forEach(
      closed,
      ({ resource, cause, closedBy }) =>
        Effect.logInfo(`${company.name}: ${resource}: a gap (${cause.replaceAll("_", " ")}) was closed by ${closedBy}`),
      { discard: true }
    )
  )

/**
 * What a run has to read for the gaps of a resource that are due; null where none is due. With `sharesTime`, a full scan is
 * postponed that would exceed its share of the time; a cursor scan need not wait.
 */
export const plan = Effect.fnUntraced(function* (
  { name, requestsPerMinute = null }: GapCompany,
  companyId: bigint,
  { resource: { modifiedSince, path } }: Table,
  sharesTime: boolean
) {
  const due = DeliveryGaps.dueOf(name, path)
  const gap = yield* due
  if (gap === null) return null
  const reads = (isFullDue: boolean) => (isFullDue || !modifiedSince ? "everything" : "changes")
  if (!sharesTime || reads(gap.isFullDue) === "changes") return reads(gap.isFullDue)
  const waitMs = yield* DeliveryGaps.fullScanDelay(companyId, path, fullScanShare, requestsPerMinute)
  if (waitMs === 0) return "everything"
  yield* DeliveryGaps.postpone(name, path, waitMs, modifiedSince)
  return (yield* due) === null ? null : "changes"
})

/** Closes what a run covers, and stores why other gaps of the resource stay open. Returns that reason; null for none. */
export const settle = Effect.fnUntraced(function* (company: GapCompany, companyId: bigint, outcome: Outcome) {
  const { failure, resource, runId, status } = outcome
  const { name } = company
  if (isComplete(outcome)) yield* Statement.run(DeliveryGaps.markRead, [name, resource, overlapMsOf(company), runId])
  const closed = yield* closeCovered(company, companyId)
  const reason =
    failure === null
      ? `run ${runId} does not prove that nothing is missing (${status})`
      : `${failure.message}; ${failure.remedy}`
  const isOpen = yield* DeliveryGaps.recordReadFailure(name, resource, reason)
  return { closed, reason: isOpen ? reason : null }
})

export interface GapReads {
  readonly closed: ReadonlyArray<DeliveryGaps.ClosedGap>
  /** Runs that were made, by resource. */
  readonly repaired: ReadonlyArray<{ readonly resource: string; readonly runId: bigint | null }>
  readonly notes: ReadonlyArray<string>
}

/** Reads what the due gaps of a company need, now, with the priority of the fiber. */
export const readNow = Effect.fnUntraced(function* (company: Company, companyId: bigint) {
  const { name } = company
  const tables = yield* company.tables
  const closed = [...(yield* closeCovered(company, companyId))]
  const notes: Array<string> = []
  const read = Effect.fnUntraced(function* (resource: string) {
    const table = tables.get(resource)
    if (table === undefined) return []
    if (!(yield* DeliveryGaps.isLoaded(companyId, resource))) {
      const reason = "the resource has not been loaded yet; the first sync closes the gap"
      yield* DeliveryGaps.recordReadFailure(name, resource, reason)
      return []
    }
    const reads = yield* plan(company, companyId, table, false)
    if (reads === null) return []
    const outcome = yield* refresh({ company, companyId, tables, table, reads, whenHeld: "fail" })
    // Another run reads the resource.
    if (outcome.failure?.disposition === "contended") return []
    const settled = yield* settle(company, companyId, outcome)
    closed.push(...settled.closed)
    if (settled.reason !== null) notes.push(`${resource}: ${settled.reason}`)
    return [{ resource, runId: outcome.runId }]
  })
  const repaired = yield* Effect.forEach(yield* DeliveryGaps.dueResources(name), read, { concurrency })
  return { closed, repaired: repaired.flat(), notes } satisfies GapReads
})
