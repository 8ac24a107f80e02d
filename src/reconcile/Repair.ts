/** Runs that read the resources of a company's delivery gaps again. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Priority } from "../budget/Budget.ts"
import { isComplete, refresh } from "../inbox/Refresh.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Company } from "../sync/Company.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"

export interface Repairs {
  readonly closed: ReadonlyArray<DeliveryGaps.ClosedGap>
  /** Runs that were made, by resource. */
  readonly repaired: ReadonlyArray<{ readonly resource: string; readonly runId: bigint | null }>
  readonly notes: ReadonlyArray<string>
  /** Time to the next attempt; null when there is none. */
  readonly dueInMs: number | null
}

/** Which resources are read: those that need a cursor scan, those that need every record, or both. */
export type RepairMode = "cursor" | "whole" | "all"

/** Full scans for gaps take at most this share of the time and of the request budget. */
const fullScanShare = 1 / 3
const repairConcurrency = 4

interface Repair {
  readonly company: Company
  readonly companyId: bigint
  readonly mode: RepairMode
  readonly tables: Effect.Success<Company["tables"]>
  readonly closed: Array<DeliveryGaps.ClosedGap>
  readonly notes: Array<string>
}

const openGapOf = (company: string, resource: string) =>
  Effect.map(DeliveryGaps.openGaps(company), (all) => all.find((one) => one.resource === resource))

/** Reads a resource again. Returns the run; none if a run is not due or does not help. */
const readAgain = Effect.fnUntraced(function* (repair: Repair, { resource, isFullDue }: DeliveryGaps.OpenGap) {
  const { company, companyId, mode, tables, closed, notes } = repair
  const { name } = company
  const overlapMs = Duration.toMillis(company.engine.overlap)
  const table = tables.get(resource)
  if (table === undefined) {
    yield* DeliveryGaps.closeUnsynced(name, resource)
    return []
  }
  if (!(yield* DeliveryGaps.isLoaded(companyId, resource))) {
    yield* DeliveryGaps.recordRepairFailure(
      name,
      resource,
      "the resource has not been loaded yet; the first sync closes the gap"
    )
    return []
  }
  const { modifiedSince } = table.resource
  let isEverything = isFullDue
  if (mode !== "all" && (isFullDue || !modifiedSince)) {
    const { requestsPerMinute = null } = company
    const waitMs = yield* DeliveryGaps.fullScanDelay(companyId, resource, fullScanShare, requestsPerMinute)
    if (waitMs > 0) {
      // A cursor scan need not wait.
      yield* DeliveryGaps.postpone(name, resource, waitMs, modifiedSince)
      if ((yield* openGapOf(name, resource))?.dueInMs !== 0) return []
      isEverything = false
    }
  }
  const reads = isEverything ? "everything" : "changes"
  const read = refresh({ company, companyId, tables, table, reads, whenHeld: "fail" })
  // A long read gives way to live runs.
  const outcome = yield* isEverything || !modifiedSince
    ? Effect.provideService(read, Priority, { class: "live", dueAt: Number.POSITIVE_INFINITY })
    : read
  // Another run reads the resource.
  if (outcome.failure?.disposition === "contended") return []
  if (isComplete(outcome)) yield* Statement.run(DeliveryGaps.markRead, [name, resource, overlapMs, outcome.runId])
  closed.push(...(yield* DeliveryGaps.closeCovered(name, companyId, overlapMs)))
  const reason =
    outcome.failure === null
      ? `run ${outcome.runId} does not prove that nothing is missing (${outcome.status})`
      : `${outcome.failure.message}; ${outcome.failure.remedy}`
  if (yield* DeliveryGaps.recordRepairFailure(name, resource, reason)) notes.push(`${resource}: ${reason}`)
  return [{ resource, runId: outcome.runId }]
})

/** Closes the gaps that runs cover, and reads the resources that are due again. */
export const repairGaps = Effect.fnUntraced(function* (company: Company, companyId: bigint, mode: RepairMode) {
  const { name } = company
  const nothing: Repairs = { closed: [], repaired: [], notes: [], dueInMs: null }
  if ((yield* DeliveryGaps.openGaps(name)).length === 0) return nothing
  const closed = [...(yield* DeliveryGaps.closeCovered(name, companyId, Duration.toMillis(company.engine.overlap)))]
  const repair: Repair = { company, companyId, mode, tables: yield* company.tables, closed, notes: [] }
  const isOfMode = ({ resource, requiresFullScan }: DeliveryGaps.OpenGap) => {
    const isWhole = requiresFullScan || repair.tables.get(resource)?.resource.modifiedSince === false
    return mode === "all" || isWhole === (mode === "whole")
  }
  const due = (yield* DeliveryGaps.openGaps(name)).filter((one) => isOfMode(one) && one.dueInMs === 0)
  const repaired = yield* Effect.forEach(
    due,
    Effect.fnUntraced(function* ({ resource }) {
      // Another process may have repaired it meanwhile.
      const gap = yield* openGapOf(name, resource)
      return gap?.dueInMs === 0 ? yield* readAgain(repair, gap) : []
    }),
    { concurrency: repairConcurrency }
  )
  const left = (yield* DeliveryGaps.openGaps(name)).filter(isOfMode).map(({ dueInMs }) => dueInMs)
  const dueInMs = left.length === 0 ? null : Math.min(...left)
  return { closed, repaired: repaired.flat(), notes: repair.notes, dueInMs } satisfies Repairs
})
