/**
 * A forecast of the next run: which scan of which resource and why, and how many records and requests it takes.
 *
 * Promise: nothing is changed. Requests are sent only where `probe` allows it, only for resources that were never read,
 * and a bounded number of times. The code of a run chooses the scan here too.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { keptPart, type Resource } from "../catalogue/Resource.ts"
import type { Identity } from "../connector/Connector.ts"
import * as Scan from "../extract/Scan.ts"
import type { RunKind } from "../land/Checkpoint.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { type Failure, failureOf } from "./Outcome.ts"
import { type Certainty, estimateReads, type ReadEstimate } from "./ReadEstimate.ts"
import { noCheckpoint, noHistory, readHistory, type SyncHistory } from "./SyncHistory.ts"
import { freshnessDefault } from "./EngineSettings.ts"
import { accessBlockOf, isAccessBlock, type SyncCompany } from "./Sync.ts"
import { engineDefault } from "./EngineSettings.ts"
import { parentsMax } from "./SyncResource.ts"

/** The forecast of the next run of one resource. */
export interface PlannedResource extends ReadEstimate {
  readonly resource: string
  /** The kind of the run; null when the resource is not read: see `skipped` and `failure`. */
  readonly kind: Exclude<RunKind, "fetch"> | null
  /** Why every record is read although no full scan was requested, and other remarks. */
  readonly because: string | null
  /** The page, counted from 1, at which an interrupted scan resumes; null for a scan from the first page. */
  readonly resumesAt: number | null
  /** Why the run would skip it. */
  readonly skipped: string | null
  /** Why there is no estimate: the source rejected the request. */
  readonly failure: Failure | null
  /** The age of the warehouse's rows; null before the first completed scan. */
  readonly ageMs: number | null
  /** The freshness target. */
  readonly freshnessMs: number
}

export interface PlannedCompany {
  readonly name: string
  readonly companyId: bigint | null
  readonly resources: ReadonlyArray<PlannedResource>
  /** Requests of the run besides those of its resources: the identification of the token. */
  readonly overhead: number
  /** Why there is no plan for the company. */
  readonly failure: Failure | null
}

export interface PlanReport {
  readonly companies: ReadonlyArray<PlannedCompany>
}

export interface PlanCompany extends SyncCompany {
  /** The company's number where it is known without a request. */
  readonly companyId?: bigint | null
}

export interface PlanOptions {
  readonly companies: ReadonlyArray<PlanCompany>
  readonly datasets: Datasets
  readonly full: boolean
  readonly freshnessOf?: (resource: string) => Duration.Duration
  /** Plans a backfill of this range instead of a sync. */
  readonly backfill?: { readonly since: string | null; readonly until: string | null }
  /** Whether requests to the source are allowed. */
  readonly probe: boolean
  /** Resources of one company that are planned at the same time. */
  readonly concurrency: number
}

const describeRange = ({ since, until }: { readonly since: string | null; readonly until: string | null }): string =>
  since === null && until === null ? "everything" : `${since ?? "the beginning"} to ${until ?? "now"}`

const planResource = Effect.fnUntraced(function* (
  company: PlanCompany,
  resource: Resource,
  identity: Identity | null,
  options: PlanOptions,
  history: SyncHistory
) {
  const { path } = resource
  const { engine = engineDefault } = company
  const readAt = history.readAt.get(path)
  const base = {
    resource: path,
    kind: null,
    because: null,
    resumesAt: null,
    skipped: null,
    failure: null,
    records: null,
    requests: 0,
    certainty: "exact",
    basis: "",
    asked: 0,
    ageMs: readAt === undefined ? null : Math.max(0, Math.round(history.nowMs - readAt)),
    freshnessMs: Duration.toMillis((options.freshnessOf ?? (() => freshnessDefault))(path))
  } satisfies PlannedResource
  const barrier = identity === null || company.named === true ? null : accessBlockOf(resource, identity)
  if (barrier !== null) return { ...base, skipped: barrier.reason }

  const { backfill } = options
  const checkpoint = (backfill === undefined ? history.live : history.backfill).get(path) ?? noCheckpoint
  const seen = history.resources.get(path) ?? noHistory
  const choose = (full: boolean) => Scan.plan(resource, checkpoint, { full }, engine, history.nowMs)
  let plan = backfill === undefined ? choose(options.full) : Scan.planBackfill(resource, checkpoint, backfill)
  if (plan.kind === "children" && seen.pendingRefetches > parentsMax && seen.pendingRefetches > (seen.rows ?? 0) / 100)
    plan = choose(true)
  if (plan.kind === "children") {
    return {
      ...base,
      kind: "children",
      requests: seen.pendingRefetches,
      certainty: "atLeast",
      basis: `${seen.pendingRefetches} parents that changed, and those that change during the run`
    } satisfies PlannedResource
  }
  const { scan } = checkpoint
  const part = keptPart(resource)
  const isGivenUp = scan !== null && plan.resume === null
  const because = [
    ...(plan.reason === null || plan.resume !== null ? [] : [plan.reason]),
    ...(backfill !== undefined && backfill.since !== null && plan.since === null
      ? ["the resource offers no modifiedsince: every record is read"]
      : []),
    ...(plan.kind === "incremental" || part === null ? [] : [part]),
    ...(isGivenUp ? [`an interrupted scan of ${describeRange(scan)} is abandoned at page ${scan.pages + 1}`] : [])
  ]
  const scanned = {
    ...base,
    kind: plan.kind,
    because: because.length === 0 ? null : because.join("; "),
    resumesAt: plan.resume === null ? null : plan.resume.pages + 1
  }
  const numbers = yield* Effect.result(
    estimateReads(company.connector, resource, plan, { ...options, pageSize: company.pageSize ?? null }, history)
  )
  if (numbers._tag === "Success") return { ...scanned, ...numbers.success } satisfies PlannedResource
  const failure = failureOf(numbers.failure)
  const asked = { requests: 1, asked: 1, certainty: "unknown", basis: "probed: refused" } as const
  return company.named !== true && isAccessBlock(failure)
    ? ({ ...scanned, ...asked, kind: null, skipped: failure.message } satisfies PlannedResource)
    : ({ ...scanned, ...asked, failure } satisfies PlannedResource)
})

/** The companies that the warehouse knows, two at most: for a plan without requests to the source. */
export const knownCompaniesStatement = Statement.make({
  name: "read known companies",
  columns: { companyId: "int8" },
  text: 'select distinct company_id as "companyId" from tributary.checkpoints limit 2'
})

const nothingKnown: SyncHistory = {
  nowMs: 0,
  live: new Map(),
  backfill: new Map(),
  readAt: new Map(),
  resources: new Map(),
  pageSize: null
}

const unnamed: Failure = {
  kind: "CompanyUnknown",
  message: "the number of the company is not known without a request to the source",
  remedy: "set its company_id in the configuration, or run without --no-probe",
  disposition: "configuration",
  stops: "company"
}

const planCompany = Effect.fn("planCompany")(function* (options: PlanOptions, company: PlanCompany) {
  const failed = (failure: Failure): PlannedCompany => ({
    name: company.name,
    companyId: null,
    resources: [],
    overhead: 1,
    failure
  })
  let identity: Identity | null = null
  let companyId = company.companyId ?? null
  if (options.probe) {
    const identified = yield* Effect.result(company.connector.identify)
    if (identified._tag === "Failure") return failed(failureOf(identified.failure))
    identity = identified.success
    companyId = identity.companyId
  }
  let history = nothingKnown
  if (companyId === null) {
    const candidates = yield* Statement.run(knownCompaniesStatement)
    if (candidates.length > 1 || (candidates.length === 1 && options.companies.length > 1)) return failed(unnamed)
    companyId = candidates[0]?.companyId ?? null
  }
  // A warehouse that knows no company yet has no history.
  if (companyId !== null) history = yield* readHistory(companyId, company.resources, options.datasets)
  const resources = yield* Effect.forEach(
    company.resources,
    (resource) => planResource(company, resource, identity, options, history),
    { concurrency: options.concurrency }
  )
  return { name: company.name, companyId, resources, overhead: 1, failure: null } satisfies PlannedCompany
})

/** Plans what a run with these options would do. */
export const plan = Effect.fn("plan")(function* (
  options: PlanOptions
): Effect.fn.Return<PlanReport, DatabaseError, SqlClient.SqlClient> {
  const companies = yield* Effect.forEach(options.companies, (company) => planCompany(options, company), {
    concurrency: "unbounded"
  })
  return { companies }
})

/** Sums of numbers that are not all equally certain. */
export interface PlannedTotals {
  readonly records: number
  readonly requests: number
  /** `atLeast` when a number is unknown; `exact` when all of them are. */
  readonly certainty: Certainty
}

export const totalsOf = ({ resources, overhead }: PlannedCompany): PlannedTotals => {
  const has = (...certainties: ReadonlyArray<Certainty>) =>
    resources.some(({ certainty, kind }) => kind !== null && certainties.includes(certainty))
  return {
    records: resources.reduce((sum, { records }) => sum + (records ?? 0), 0),
    requests: resources.reduce((sum, { requests }) => sum + requests, overhead),
    certainty: has("atLeast", "unknown") ? "atLeast" : has("about") ? "about" : has("atMost") ? "atMost" : "exact"
  }
}
