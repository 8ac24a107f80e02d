/**
 * An estimate of the records and requests of a scan: from the history in the warehouse, else from the source's answers.
 *
 * Promise: every number has its certainty. An estimate is never called exact.
 */
import * as Effect from "effect/Effect"
import type { Resource } from "../catalogue/Resource.ts"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type * as Scan from "../extract/Scan.ts"
import { findHighestId, idRangeOf, searchKeyOf } from "./IdSearch.ts"
import { noCheckpoint, noHistory, type SyncHistory } from "./SyncHistory.ts"
import { plural } from "../text/Count.ts"

/** The certainty of a number; `unknown` has no number. */
export type Certainty = "exact" | "about" | "atMost" | "atLeast" | "unknown"

/** The cost of a scan, as members of the plan's report. */
export interface ReadEstimate {
  /** Records that the run would read; null when that is not known. */
  readonly records: number | null
  /** Requests that the run would make; at least this many when `certainty` is `atLeast` or `unknown`. */
  readonly requests: number
  readonly certainty: Certainty
  /** Where the numbers come from, for people. */
  readonly basis: string
  /** Requests that this plan made for the estimate. */
  readonly asked: number
}

export interface ReadEstimateOptions {
  /** A backfill of a range is estimated instead of a sync. */
  readonly backfill?: object
  /** Records per page as configured; null takes it from the history. */
  readonly pageSize: number | null
  /** Whether requests to the source are allowed. */
  readonly probe: boolean
}

const hourMs = 3_600_000

const pagesOf = (records: number, pageSize: number | null): number =>
  pageSize === null || pageSize <= 0 ? 1 : Math.max(1, Math.ceil(records / pageSize))

const pageSizeOf = (resource: Resource, options: ReadEstimateOptions, history: SyncHistory): number | null => {
  if (options.pageSize !== null) return options.pageSize
  const own = history.resources.get(resource.path)
  return own?.isPageSize === true ? own.perPage : history.pageSize
}

/** Requests the page that a scan would read next, and searches for the highest id behind it. */
const probe = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  plan: Pick<Scan.ScanPlan, "kind" | "since" | "resume">,
  atMost: number | null
): Effect.fn.Return<ReadEstimate & { readonly perPage: number | null }, SourceError> {
  const page = yield* connector.page({ resource, since: plan.since, token: plan.resume?.token ?? null })
  const read = page.records.length + page.rejected.length
  const askedPage = page.attempts
  if (page.next === null) {
    return { records: read, requests: 1, certainty: "exact", basis: "probed", asked: askedPage, perPage: null }
  }
  const perPage = Math.max(1, read)
  if (atMost !== null) {
    const basis = "at most the rows in the warehouse"
    const requests = pagesOf(atMost, perPage)
    return { records: atMost, requests, certainty: "atMost", basis, asked: askedPage, perPage }
  }
  const ids = idRangeOf(page.records.map(({ id }) => id))
  // Ids tell nothing about the number of records that changed after a day, or that pass filters.
  const isPart = (plan.kind === "full" && plan.since !== null) || resource.where.length > 0
  const key = isPart ? null : searchKeyOf(connector, resource, page)
  const atLeast = {
    records: read + 1,
    requests: 2,
    certainty: "atLeast",
    basis: "probed: there are more pages",
    asked: askedPage,
    perPage
  } as const
  if (ids === null || key === null) return atLeast
  const found = yield* Effect.result(findHighestId(key, ids))
  // The search failed, but the first page has already named a next page.
  if (found._tag === "Failure") return { ...atLeast, asked: askedPage + 1 }
  const { highest, requests, isBounded } = found.success
  const beyond = Math.max(0, Number(highest - ids.last))
  const records = ids.isRising
    ? read + Math.ceil(beyond * ids.density)
    : Math.max(read + 1, Number(highest - ids.first) + 1)
  const by = key.name === "ids" ? plural(requests, "request") : `${plural(requests, "request")} by ${key.name}`
  return {
    records,
    requests: Math.max(2, pagesOf(records, perPage)),
    certainty: isBounded ? "atMost" : "atLeast",
    basis: `ids go ${isBounded ? "to about" : "beyond"} ${highest} (${by})`,
    asked: askedPage + requests,
    perPage
  }
})

/** Estimates an incremental scan by the rate of change of recent runs. */
const estimateByRate = (
  resource: Resource,
  plan: Scan.ScanPlan,
  options: ReadEstimateOptions,
  history: SyncHistory
): ReadEstimate => {
  const { changesPerHour } = history.resources.get(resource.path) ?? noHistory
  if (changesPerHour === null) {
    return { records: null, requests: 1, certainty: "about", basis: "no incremental run yet", asked: 0 }
  }
  const readAt = history.readAt.get(resource.path) ?? history.nowMs
  const hours = (Math.max(0, history.nowMs - readAt) + plan.overlapMs) / hourMs
  const records = Math.ceil(changesPerHour * hours)
  const rate = changesPerHour < 10 ? changesPerHour.toFixed(1) : changesPerHour.toFixed(0)
  return {
    records,
    requests: pagesOf(records, pageSizeOf(resource, options, history)),
    certainty: "about",
    basis: `${rate} changes an hour lately`,
    asked: 0
  }
}

/** Estimates a scan from the history, else from the source's answers. */
export const estimateReads = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  plan: Scan.ScanPlan,
  options: ReadEstimateOptions,
  history: SyncHistory
): Effect.fn.Return<ReadEstimate, SourceError> {
  const { path } = resource
  const { rows: rowsCounted } = history.resources.get(path) ?? noHistory
  // A backfill of a range leaves a cursor of its own, and only part of the rows.
  const live = history.live.get(path) ?? noCheckpoint
  const wasRead =
    live.fullScanAt !== null || live.cursor !== null || (history.backfill.get(path)?.fullScanAt ?? null) !== null
  const rows = wasRead && rowsCounted !== null ? Math.max(0, rowsCounted) : null
  const pageSize = pageSizeOf(resource, options, history)
  const pagesRead = plan.resume?.pages ?? 0
  const unknown = { records: null, requests: 1, certainty: "unknown", basis: "never read", asked: 0 } as const

  const first: ReadEstimate & { readonly perPage?: number | null } = yield* Effect.gen(function* () {
    if (plan.kind === "incremental" && options.backfill === undefined)
      return estimateByRate(resource, plan, options, history)
    if (plan.kind === "full" && rows !== null) {
      const pages = Math.max(1, pagesOf(rows, pageSize) - pagesRead)
      const records = pagesRead === 0 || pageSize === null ? rows : Math.max(0, rows - pagesRead * pageSize)
      return { records, requests: pages, certainty: "about", basis: "rows in the warehouse", asked: 0 } as const
    }
    if (options.probe) return yield* probe(connector, resource, plan, plan.kind === "full" ? null : rows)
    if (rows === null) return unknown
    const basis = "at most the rows in the warehouse"
    return { records: rows, requests: pagesOf(rows, pageSize), certainty: "atMost", basis, asked: 0 } as const
  })
  const { perPage, ...numbers } = first
  if (plan.resume === null || options.backfill !== undefined) return numbers
  // A resumed scan shows the source as of its beginning: the run reads the later changes too.
  const again = resource.modifiedSince
    ? 1
    : numbers.records === null
      ? pagesRead + numbers.requests
      : pagesOf(rows ?? numbers.records + pagesRead * (perPage ?? pageSize ?? 0), perPage ?? pageSize)
  return {
    ...numbers,
    requests: numbers.requests + again,
    certainty: numbers.certainty === "exact" ? "about" : numbers.certainty,
    basis: `${numbers.basis}; then the changes since the scan began`
  }
})
