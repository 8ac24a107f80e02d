/**
 * What the next run would do, told beforehand: which scan of which resource and why, how many records and requests, and
 * how that is known.
 *
 * Promise: nothing is changed. What is known stands in the control plane and in the statistics of Postgres, and is read
 * in a read-only transaction; the source is asked only for what was never read, a bounded number of times, and only when
 * that is wished. The scan is chosen by the code that a run chooses it by. A number says how far it can be trusted: it
 * is never called exact when it is an estimate.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Resource } from "../catalogue/Resource.ts"
import type { ConnectorShape, Identity, Page } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import * as Scan from "../extract/Scan.ts"
import {
  type Checkpoint,
  checkpointColumns,
  type CheckpointRow,
  fromRow,
  type Lane,
  type RunKind
} from "../land/Checkpoint.ts"
import { type Datasets, tableOf } from "../warehouse/Table.ts"
import { type Failure, failureOf } from "./Outcome.ts"
import { transaction } from "../postgres/Transaction.ts"
import { accessBlockOf, freshnessDefaultMs, type SyncCompany } from "./Sync.ts"
import { engineDefault, type EngineSettings, parentsMax } from "./SyncResource.ts"

/** How far a number can be trusted; `unknown` comes without a number. */
export type Certainty = "exact" | "about" | "atMost" | "atLeast" | "unknown"

/** What the next run of one resource would do. */
export interface PlannedResource {
  readonly resource: string
  /** The way it reads; null when it does not: see `skipped` and `failure`. */
  readonly kind: Exclude<RunKind, "records"> | null
  /** Why it reads in full although nobody asked for it, and what else there is to say. */
  readonly because: string | null
  /** The page, counted from 1, at which an interrupted scan goes on; null when it begins anew. */
  readonly resumesAt: number | null
  /** Why the run would pass it over. */
  readonly skipped: string | null
  /** Why nothing can be said: the source refused to be asked. */
  readonly failure: Failure | null
  /** Records that the run would read; null when that is not known. */
  readonly records: number | null
  /** Requests that the run would make; at least so many when `certainty` is `atLeast` or `unknown`. */
  readonly requests: number
  readonly certainty: Certainty
  /** Where the numbers come from, for people. */
  readonly basis: string
  /** Requests that this plan made to know it. */
  readonly asked: number
  /** How long ago what the warehouse holds was read; null when it was never read to an end. */
  readonly ageMs: number | null
  /** How old it may be. */
  readonly freshnessMs: number
}

export interface PlannedCompany {
  readonly name: string
  readonly companyId: bigint | null
  readonly resources: ReadonlyArray<PlannedResource>
  /** Requests of the run beside those of its resources: who the token is. */
  readonly overhead: number
  /** Why nothing of the company is known. */
  readonly failure: Failure | null
}

export interface PlanReport {
  readonly companies: ReadonlyArray<PlannedCompany>
}

export interface PlanCompany extends SyncCompany {
  /** The company's number where it is known without asking. */
  readonly companyId?: bigint | null
}

export interface PlanOptions {
  readonly companies: ReadonlyArray<PlanCompany>
  readonly datasets: Datasets
  readonly full: boolean
  readonly engine?: EngineSettings
  readonly freshnessOf?: (resource: string) => number
  /** Plans a backfill of this range instead of a sync. */
  readonly backfill?: { readonly since: string | null; readonly until: string | null }
  /** Records per page as configured; null leaves it to what was seen. */
  readonly pageSize: number | null
  /** Whether the source may be asked. */
  readonly probe: boolean
  /** Resources of one company that are asked about at the same time. */
  readonly concurrency: number
}

/** Recent runs tell the pace of change and the size of pages. */
const recentRuns = 20
const recentDays = 7
/** Few runs in a short time tell little: a pace is taken over this at least. */
const paceSpanHoursMin = 1
const hourMs = 3_600_000

// ------------------------------------------------------------------------------------------------- how far the ids go

/** One question in a gallop: whether there is a record of the number. */
export type Exists<E> = (id: bigint) => Effect.Effect<boolean, E>

export interface SearchResult {
  /** No record beyond this number was found. */
  readonly highest: bigint
  readonly requests: number
  /** False when the questions were used up before an end was found. */
  readonly isBounded: boolean
}

/** A gallop asks at most this often. */
export const searchRequestsMax = 40
/** The end is looked for until it is known to this share of the way. */
const gallopTolerance = 0.04
/** A number without a record is told from the end by asking for its neighbours, up to so many. */
const neighboursMax = 4
const missChance = 0.02

/**
 * How far the numbers of records go: asks beyond the last number known in steps that double, then halves the gap.
 * `density` is the share of numbers that have a record.
 */
export const exponentialSearch = Effect.fnUntraced(function* <E>(
  exists: Exists<E>,
  from: { readonly first: bigint; readonly last: bigint; readonly density: number }
): Effect.fn.Return<SearchResult, E> {
  const { first, last, density } = from
  const sparse = Math.min(0.95, Math.max(0.05, density))
  const neighbours = Math.min(neighboursMax, Math.max(2, Math.ceil(Math.log(missChance) / Math.log(1 - sparse))))
  let requests = 0
  const mayAsk = () => requests < searchRequestsMax
  const isInside = Effect.fnUntraced(function* (id: bigint) {
    for (let next = 0; next < neighbours && mayAsk(); next += 1) {
      requests += 1
      if (yield* exists(id + BigInt(next))) return true
    }
    return false
  })
  const span = last - first + 1n
  let [low, step] = [last, span]
  let high: bigint | null = null
  while (high === null && mayAsk()) {
    const next: bigint = low + step
    if (yield* isInside(next)) {
      low = next
      step *= 2n
    } else high = next
  }
  if (high === null) return { highest: low, requests, isBounded: false }
  const isCoarse = (): boolean =>
    Number(high! - low) > Math.max(Number(span) / 2, gallopTolerance * Number(low - first))
  while (isCoarse() && mayAsk()) {
    const middle: bigint = low + (high - low) / 2n
    if (yield* isInside(middle)) low = middle
    else high = middle
  }
  return { highest: high - 1n, requests, isBounded: true }
})

// ------------------------------------------------------------------------------------------- what the warehouse knows

interface Seen {
  /** Live rows, as the runs counted them; null when no run has. */
  readonly rows: number | null
  /** The most records that pages of one run had on average; null when there was none. */
  readonly perPage: number | null
  /** Whether that is the source's page size, as a scan of several pages shows, or only the size of a short list. */
  readonly isPageSize: boolean
  /** Changes per hour; null when nothing was followed yet. */
  readonly changesPerHour: number | null
  /** Questions about children that wait. */
  readonly rereads: number
}

interface Known {
  readonly nowMs: number
  readonly live: ReadonlyMap<string, Checkpoint>
  readonly backfill: ReadonlyMap<string, Checkpoint>
  /** When what the live lane holds was read, in milliseconds since 1970. */
  readonly readAt: ReadonlyMap<string, number>
  readonly seen: ReadonlyMap<string, Seen>
  /** The size of pages that this source gives, judged by all resources. */
  readonly pageSize: number | null
}

interface KnownCheckpointRow extends CheckpointRow {
  readonly lane: Lane
  readonly resource: string
  readonly cursor_at: Date | null
}

interface SeenRow {
  readonly resource: string
  readonly rows: number | null
  readonly per_page: number | null
  readonly pages: number | null
  readonly changes: number | null
  readonly hours: number | null
  readonly rereads: number | null
}

const nothingSeen: Seen = { rows: null, perPage: null, isPageSize: false, changesPerHour: null, rereads: 0 }
const noCheckpoint: Checkpoint = {
  fence: 0n,
  cursor: null,
  fullScanAt: null,
  overlapMs: 0,
  fullWanted: null,
  scan: null,
  adoptsSource: false
}

/** Reads what there is about a company, in one snapshot and without a right to write. */
const know = Effect.fnUntraced(function* (companyId: bigint, company: PlanCompany, datasets: Datasets) {
  const sql = yield* SqlClient.SqlClient
  const gathered = yield* transaction(
    Effect.gen(function* () {
      yield* sql`set transaction isolation level repeatable read, read only`
      const [clock] = yield* sql<{ now_ms: number }>`
        select (extract(epoch from tributary.now()) * 1000)::float8 as now_ms`
      const checkpoints = yield* sql.unsafe<KnownCheckpointRow>(
        `select lane, resource, cursor_at, ${checkpointColumns} from tributary.checkpoints c where company_id = $1`,
        [companyId]
      )
      const rows = yield* sql<SeenRow>`
        with mine as (
          select r.*, row_number() over (partition by r.resource order by r.id desc) as back,
                 r.began_at >= tributary.now() - make_interval(days => ${recentDays}) as is_recent
            from tributary.runs r where r.company_id = ${companyId}
        ), counted as (
          select resource, (sum(inserted) - sum(deleted))::float8 as rows from mine group by resource
        ), paged as (
          select distinct on (resource) resource, ceil(records::float8 / pages) as per_page, pages::float8 as pages
            from mine where back <= ${recentRuns} and pages > 0 and kind in ('full', 'incremental')
           order by resource, ceil(records::float8 / pages) desc, pages desc
        ), followed as (
          select resource,
                 sum(inserted + updated + deleted) filter (where kind in ('incremental', 'children'))::float8 as changes,
                 (extract(epoch from max(began_at) filter (where kind in ('incremental', 'children')) - min(began_at))
                   / 3600)::float8 as hours
            from mine where lane = 'live' and status in ('done', 'quarantined') and is_recent group by resource
        ), asked as (
          select resource, count(*)::float8 as rereads from tributary.rereads where company_id = ${companyId} group by resource
        )
        select resource, counted.rows, paged.per_page, paged.pages, followed.changes, followed.hours, asked.rereads
          from counted full join paged using (resource) full join followed using (resource) full join asked using (resource)`
      // A table that came from elsewhere has rows that no run has counted; Postgres has an idea of them.
      const guessed = yield* sql<{ name: string; rows: number }>`
        select c.relname as name, c.reltuples::float8 as rows from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = ${datasets.current} and c.relkind = 'r' and c.reltuples > 0`
      return { nowMs: clock!.now_ms, checkpoints, rows, guessed }
    })
  )
  const { checkpoints, rows, nowMs } = gathered
  const lane = (which: Lane) =>
    new Map(checkpoints.filter((row) => row.lane === which).map((row) => [row.resource, fromRow(row)]))
  const guesses = new Map(gathered.guessed.map((row) => [row.name, Math.round(row.rows)]))
  const seen = new Map(
    rows.map((row): readonly [string, Seen] => [
      row.resource,
      {
        rows: row.rows,
        perPage: row.per_page,
        isPageSize: (row.pages ?? 0) > 1,
        changesPerHour:
          row.changes === null || row.hours === null ? null : row.changes / Math.max(paceSpanHoursMin, row.hours),
        rereads: row.rereads ?? 0
      }
    ])
  )
  for (const resource of company.resources) {
    const one = seen.get(resource.path) ?? nothingSeen
    const guess = guesses.get(tableOf(resource, datasets).name)
    if ((one.rows ?? 0) <= 0 && guess !== undefined) seen.set(resource.path, { ...one, rows: guess })
  }
  const sizes = [...seen.values()].flatMap(({ perPage }) => (perPage === null ? [] : [perPage]))
  return {
    nowMs,
    live: lane("live"),
    backfill: lane("backfill"),
    readAt: new Map(
      checkpoints
        .filter((row) => row.lane === "live" && (row.cursor_at !== null || row.full_scan_at !== null))
        .map((row) => [row.resource, Math.max(row.cursor_at?.getTime() ?? 0, row.full_scan_at?.getTime() ?? 0)])
    ),
    seen,
    pageSize: sizes.length === 0 ? null : Math.max(...sizes)
  } satisfies Known
})

// ------------------------------------------------------------------------------------------------------- one resource

type Numbers = Pick<PlannedResource, "records" | "requests" | "certainty" | "basis" | "asked">

const pagesOf = (records: number, pageSize: number | null): number =>
  pageSize === null || pageSize <= 0 ? 1 : Math.max(1, Math.ceil(records / pageSize))

const pageSizeOf = (resource: Resource, options: PlanOptions, known: Known): number | null => {
  if (options.pageSize !== null) return options.pageSize
  const own = known.seen.get(resource.path)
  return own?.isPageSize === true ? own.perPage : known.pageSize
}

/** Numbers that stand on a page: where they begin and end, whether they never fall, and how close they stand. */
const numbersOn = (texts: ReadonlyArray<string | null | undefined>) => {
  if (texts.length === 0 || texts.some((text) => typeof text !== "string" || !/^[1-9]\d{0,17}$/.test(text))) return null
  const numbers = texts.map((text) => BigInt(text!))
  const first = numbers.reduce((a, b) => (b < a ? b : a))
  const last = numbers.reduce((a, b) => (b > a ? b : a))
  const isRising = numbers.every((number, index) => index === 0 || number >= numbers[index - 1]!)
  return { first, last, isRising, density: Math.min(1, new Set(texts).size / Number(last - first + 1n)) }
}

/** What can be galloped along: the ids themselves, or a field that rises with them and that lists can be filtered by. */
interface Track {
  readonly name: string
  readonly first: bigint
  readonly last: bigint
  readonly density: number
  /** The highest id of a record that stands at the number; null when none does. */
  readonly idAt: (value: bigint) => Effect.Effect<bigint | null, SourceError>
}

const trackOf = (connector: ConnectorShape, resource: Resource, page: Page): Track | null => {
  const ids = numbersOn(page.records.map(({ id }) => id))
  if (ids === null) return null
  if (resource.operations.includes("R")) {
    const idAt: Track["idAt"] = (id) =>
      Effect.map(connector.get(resource, id.toString()), ({ record, rejected }) =>
        record === null && rejected === null ? null : id
      )
    return { ...ids, name: "ids", idAt }
  }
  for (const { field, match } of resource.filters) {
    const index = resource.fields.findIndex(({ name, type }) => name === field && type._tag === "integer")
    if (match !== "exact" || index === -1) continue
    const values = numbersOn(page.records.map(({ columns }) => columns[index]))
    if (values === null || !values.isRising || values.first === values.last) continue
    const idAt: Track["idAt"] = (value) =>
      Effect.map(
        connector.page({ resource, since: null, token: null, where: { field, value: value.toString() } }),
        ({ records }) => numbersOn(records.map(({ id }) => id))?.last ?? null
      )
    return { ...values, name: field, idAt }
  }
  return null
}

/** How far the ids of a resource go, judged from a page of it. */
const highestId = Effect.fnUntraced(function* (track: Track, ids: { readonly first: bigint; readonly last: bigint }) {
  let at = { value: track.last, id: ids.last }
  const exists = (value: bigint) =>
    Effect.map(track.idAt(value), (id) => {
      if (id !== null && value > at.value) at = { value, id }
      return id !== null
    })
  const galloped = yield* exponentialSearch(exists, track)
  // Beyond the last one found, ids go on as they did up to it.
  const idsPerValue = Number(at.id - ids.first + 1n) / Number(at.value - track.first + 1n)
  const beyond = Math.ceil(idsPerValue * Math.max(0, Number(galloped.highest - at.value)))
  return { ...galloped, highest: at.id + BigInt(beyond) }
})

/** Asks for the page that a scan would read next, and for what may lie behind it. */
const probe = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  plan: Pick<Scan.ScanPlan, "since" | "resume">,
  atMost: number | null
): Effect.fn.Return<Numbers & { readonly perPage: number | null }, SourceError> {
  const page = yield* connector.page({ resource, since: plan.since, token: plan.resume?.token ?? null })
  const read = page.records.length + page.rejected.length
  const askedPage = page.attempts
  if (page.next === null) {
    return { records: read, requests: 1, certainty: "exact", basis: "asked", asked: askedPage, perPage: null }
  }
  const perPage = Math.max(1, read)
  if (atMost !== null) {
    const basis = "at most the rows in the warehouse"
    const requests = pagesOf(atMost, perPage)
    return { records: atMost, requests, certainty: "atMost", basis, asked: askedPage, perPage }
  }
  const ids = numbersOn(page.records.map(({ id }) => id))
  const track = trackOf(connector, resource, page)
  const atLeast = {
    records: read + 1,
    requests: 2,
    certainty: "atLeast",
    basis: "asked: there are more pages",
    asked: askedPage,
    perPage
  } as const
  if (ids === null || track === null) return atLeast
  const galloped = yield* Effect.result(highestId(track, ids))
  // A source that does not answer such questions still said that there is more.
  if (galloped._tag === "Failure") return { ...atLeast, asked: askedPage + 1 }
  const { highest, requests, isBounded } = galloped.success
  const beyond = Math.max(0, Number(highest - ids.last))
  const records = ids.isRising
    ? read + Math.ceil(beyond * ids.density)
    : Math.max(read + 1, Number(highest - ids.first) + 1)
  const by = track.name === "ids" ? `${requests} questions` : `${requests} questions by ${track.name}`
  return {
    records,
    requests: Math.max(2, pagesOf(records, perPage)),
    certainty: isBounded ? "atMost" : "atLeast",
    basis: `ids go ${isBounded ? "to about" : "beyond"} ${highest} (${by})`,
    asked: askedPage + requests,
    perPage
  }
})

const rangeTold = ({ since, until }: { readonly since: string | null; readonly until: string | null }): string =>
  since === null && until === null ? "everything" : `${since ?? "the beginning"} to ${until ?? "now"}`

/** What an incremental scan would read, by the pace of recent runs. */
const byPace = (resource: Resource, plan: Scan.ScanPlan, options: PlanOptions, known: Known): Numbers => {
  const { changesPerHour } = known.seen.get(resource.path) ?? nothingSeen
  if (changesPerHour === null) {
    return { records: null, requests: 1, certainty: "about", basis: "no change was followed yet", asked: 0 }
  }
  const readAt = known.readAt.get(resource.path) ?? known.nowMs
  const hours = (Math.max(0, known.nowMs - readAt) + plan.overlapMs) / hourMs
  const records = Math.ceil(changesPerHour * hours)
  const pace = changesPerHour < 10 ? changesPerHour.toFixed(1) : changesPerHour.toFixed(0)
  return {
    records,
    requests: pagesOf(records, pageSizeOf(resource, options, known)),
    certainty: "about",
    basis: `${pace} changes an hour lately`,
    asked: 0
  }
}

/** What a scan would read, from what is known, else from what the source answers. */
const numbersOf = Effect.fnUntraced(function* (
  company: PlanCompany,
  resource: Resource,
  plan: Scan.ScanPlan,
  options: PlanOptions,
  known: Known
): Effect.fn.Return<Numbers, SourceError> {
  const { path } = resource
  const seen = known.seen.get(path) ?? nothingSeen
  // A backfill of a range leaves a cursor of its own, and rows that are not all.
  const live = known.live.get(path) ?? noCheckpoint
  const wasRead =
    live.fullScanAt !== null || live.cursor !== null || (known.backfill.get(path)?.fullScanAt ?? null) !== null
  const rows = wasRead && seen.rows !== null ? Math.max(0, seen.rows) : null
  const pageSize = pageSizeOf(resource, options, known)
  const pagesRead = plan.resume?.pages ?? 0
  const unknown = { records: null, requests: 1, certainty: "unknown", basis: "never read", asked: 0 } as const

  const first: Numbers & { readonly perPage?: number | null } = yield* Effect.gen(function* () {
    if (plan.kind === "incremental" && options.backfill === undefined) return byPace(resource, plan, options, known)
    if (plan.kind === "full" && rows !== null) {
      const pages = Math.max(1, pagesOf(rows, pageSize) - pagesRead)
      const records = pagesRead === 0 || pageSize === null ? rows : Math.max(0, rows - pagesRead * pageSize)
      return { records, requests: pages, certainty: "about", basis: "rows in the warehouse", asked: 0 } as const
    }
    if (options.probe) return yield* probe(company.connector, resource, plan, plan.kind === "full" ? null : rows)
    if (rows === null) return unknown
    const basis = "at most the rows in the warehouse"
    return { records: rows, requests: pagesOf(rows, pageSize), certainty: "atMost", basis, asked: 0 } as const
  })
  const { perPage, ...numbers } = first
  if (plan.resume === null || options.backfill !== undefined) return numbers
  // A scan that was resumed shows the source as it was when it began: a run reads what changed since, too.
  const again = resource.modifiedSince
    ? 1
    : numbers.records === null
      ? pagesRead + numbers.requests
      : pagesOf(rows ?? numbers.records + pagesRead * (perPage ?? pageSize ?? 0), perPage ?? pageSize)
  return {
    ...numbers,
    requests: numbers.requests + again,
    certainty: numbers.certainty === "exact" ? "about" : numbers.certainty,
    basis: `${numbers.basis}; then what changed since the scan began`
  }
})

const planResource = Effect.fnUntraced(function* (
  company: PlanCompany,
  resource: Resource,
  identity: Identity | null,
  options: PlanOptions,
  known: Known
) {
  const { path } = resource
  const engine = options.engine ?? engineDefault
  const readAt = known.readAt.get(path)
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
    ageMs: readAt === undefined ? null : Math.max(0, Math.round(known.nowMs - readAt)),
    freshnessMs: (options.freshnessOf ?? (() => freshnessDefaultMs))(path)
  } satisfies PlannedResource
  const barrier = identity === null || company.named === true ? null : accessBlockOf(resource, identity)
  if (barrier !== null) return { ...base, skipped: barrier.reason }

  const { backfill } = options
  const checkpoint = (backfill === undefined ? known.live : known.backfill).get(path) ?? noCheckpoint
  const seen = known.seen.get(path) ?? nothingSeen
  const choose = (full: boolean) => Scan.plan(resource, checkpoint, { full }, engine, known.nowMs)
  let plan = backfill === undefined ? choose(options.full) : Scan.planBackfill(resource, checkpoint, backfill)
  if (plan.kind === "children" && seen.rereads > parentsMax && seen.rereads > (seen.rows ?? 0) / 100)
    plan = choose(true)
  if (plan.kind === "children") {
    return {
      ...base,
      kind: "children",
      requests: seen.rereads,
      certainty: "atLeast",
      basis: `${seen.rereads} parents that changed, and those that change meanwhile`
    } satisfies PlannedResource
  }
  const { scan } = checkpoint
  const isGivenUp = scan !== null && plan.resume === null
  const because = [
    ...(plan.because === null || plan.resume !== null ? [] : [plan.because]),
    ...(backfill !== undefined && backfill.since !== null && plan.since === null
      ? ["it offers no modifiedsince: every record is read"]
      : []),
    ...(isGivenUp ? [`an interrupted scan of ${rangeTold(scan)} is given up at page ${scan.pages + 1}`] : [])
  ]
  const scanned = {
    ...base,
    kind: plan.kind,
    because: because.length === 0 ? null : because.join("; "),
    resumesAt: plan.resume === null ? null : plan.resume.pages + 1
  }
  const numbers = yield* Effect.result(numbersOf(company, resource, plan, options, known))
  if (numbers._tag === "Success") return { ...scanned, ...numbers.success } satisfies PlannedResource
  const failure = failureOf(numbers.failure)
  const asked = { requests: 1, asked: 1, certainty: "unknown", basis: "asked: refused" } as const
  return company.named !== true && failure.kind === "Forbidden" && failure.stops === "resource"
    ? ({ ...scanned, ...asked, kind: null, skipped: failure.message } satisfies PlannedResource)
    : ({ ...scanned, ...asked, failure } satisfies PlannedResource)
})

/** The companies that the warehouse knows, two at most: for a plan that asks nobody. */
const knownCompanies = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ company_id: bigint }>`select distinct company_id from tributary.checkpoints limit 2`
  return rows.map((row) => row.company_id)
})

const nothingKnown: Known = {
  nowMs: 0,
  live: new Map(),
  backfill: new Map(),
  readAt: new Map(),
  seen: new Map(),
  pageSize: null
}

const unnamed: Failure = {
  kind: "CompanyUnknown",
  message: "the number of the company is not known without asking the source",
  remedy: "set its company_id in the configuration, or leave --no-probe out",
  stops: "company",
  refused: false
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
  let known = nothingKnown
  if (companyId === null) {
    const candidates = yield* knownCompanies()
    if (candidates.length > 1 || (candidates.length === 1 && options.companies.length > 1)) return failed(unnamed)
    companyId = candidates[0] ?? null
  }
  // A warehouse that knows no company yet has nothing to tell.
  if (companyId !== null) known = yield* know(companyId, company, options.datasets)
  const resources = yield* Effect.forEach(
    company.resources,
    (resource) => planResource(company, resource, identity, options, known),
    { concurrency: options.concurrency }
  )
  return { name: company.name, companyId, resources, overhead: 1, failure: null } satisfies PlannedCompany
})

/** Says what a run with these options would do. */
export const plan = Effect.fn("plan")(function* (
  options: PlanOptions
): Effect.fn.Return<PlanReport, SqlError, SqlClient.SqlClient> {
  const companies = yield* Effect.forEach(options.companies, (company) => planCompany(options, company), {
    concurrency: "unbounded"
  })
  return { companies }
})

/** Sums of numbers that are not all equally certain. */
export interface PlannedTotals {
  readonly records: number
  readonly requests: number
  /** What the sums are at best: `atLeast` when something is not known, `exact` when everything was asked for. */
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
