/**
 * A scan: the choice between full and incremental, and its pages from the first to the last.
 *
 * Promise: a page token that repeats stops a scan, and so do {@link emptyPagesMax} pages in a row without a new record. An
 * empty page that should have records is read a second time, and the second answer counts. An empty list that the
 * mass-delete guard would let pass counts only when the source does not have a record of the warehouse either. The cursor of a completed scan
 * is the earliest position of its pages, so that the next scan misses no change. An incremental scan begins before the
 * stored cursor by the overlap, so that it reads rows that became visible after their own stamp.
 */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type ConnectorShape, namedBy, type Page } from "../connector/Connector.ts"
import { emptyPagesMax, makeNews } from "../connector/Repeats.ts"
import { PagingBroken, SourceError } from "../connector/SourceError.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { Checkpoint, OpenScan } from "../land/Checkpoint.ts"
import type { ExpectedRows } from "../land/SoftDelete.ts"
import { before, cursorFrom, earlier, isAfter, later, millisecondsOf } from "../connector/Instant.ts"

/** One page, the state of the scan after it, and whether it was the last. */
export interface ScannedPage {
  readonly page: Page
  readonly scan: OpenScan
  readonly complete: boolean
}

/** How resources are read; from the configuration. */
export interface ScanSettings {
  /** Minimum overlap, in milliseconds (spec A-05). */
  readonly overlap: Duration.Duration
  /** A resource with a cursor is read in full when its last full scan began longer ago than this. */
  readonly fullScanInterval: Duration.Duration
  /** A resource without a cursor is read in full when its last full scan began longer ago than this. */
  readonly cursorlessScanInterval: Duration.Duration
}

export interface ScanRequest {
  /** Read every record even where a cursor would do. */
  readonly full: boolean
}

/** Which scan a run makes: the one in progress, an incremental one where there is a cursor, or a full one. */
export interface ScanPlan {
  readonly kind: OpenScan["kind"]
  readonly since: string | null
  readonly until: string | null
  /** Null begins at the first page. */
  readonly resume: OpenScan | null
  /** The stored cursor from which the scan goes on; null where there is none. */
  readonly cursor: string | null
  /** The overlap, in milliseconds. */
  readonly overlapMs: number
  /** Why it is a full scan although none was requested; null otherwise. */
  readonly reason: string | null
}

/** Between two full scans of a resource without cursor, only the children of changed parents are read. */
export interface ChildrenPlan {
  readonly kind: "children"
}

/** The overlap of the configuration, or the learned one where that is longer; in milliseconds. */
export const effectiveOverlapMs = (checkpoint: Checkpoint, settings: ScanSettings): number =>
  Math.max(Duration.toMillis(settings.overlap), checkpoint.overlapMs)

/** Chooses what a run reads. A scan in progress goes on, unless it is incremental and a full one is requested. */
export const plan = (
  resource: Resource,
  checkpoint: Checkpoint,
  request: ScanRequest,
  settings: ScanSettings,
  nowMs: number
): ScanPlan | ChildrenPlan => {
  const { scan, cursor, fullScanAt, fullScanReason } = checkpoint
  const overlapMs = effectiveOverlapMs(checkpoint, settings)
  const ageMs = fullScanAt === null ? Infinity : nowMs - fullScanAt
  const isOld = fullScanAt !== null && ageMs >= Duration.toMillis(settings.fullScanInterval)
  const incremental = resource.modifiedSince && cursor !== null && !request.full && fullScanReason === null && !isOld
  const common = { until: null, cursor, overlapMs }
  if (scan !== null && (scan.kind === "full" || incremental)) {
    return { ...common, kind: scan.kind, since: scan.since, resume: scan, reason: null }
  }
  if (incremental) {
    const since = later(before(cursor, overlapMs), cursorFrom(resource.since))
    return { ...common, kind: "incremental", since, resume: null, reason: null }
  }
  const intervalMs = Duration.toMillis(settings.cursorlessScanInterval)
  const isSwept = !resource.modifiedSince && intervalMs > 0 && ageMs < intervalMs
  if (isSwept && !request.full && fullScanReason === null) return { kind: "children" }
  const reason = request.full ? null : (fullScanReason ?? (isOld ? "the last full scan is old" : null))
  return { ...common, kind: "full", since: cursorFrom(resource.since), resume: null, reason }
}

/** The plan of a backfill: everything, or the changes of a range; of both what the resource does not leave out. */
export const planBackfill = (
  resource: Resource,
  checkpoint: Checkpoint,
  range: { readonly since: string | null; readonly until: string | null }
): ScanPlan => {
  const isRange = resource.modifiedSince && range.since !== null
  const first = cursorFrom(resource.since)
  const since = isRange ? later(range.since, first) : first
  const { until } = range
  const kind = isRange ? "incremental" : "full"
  const { scan } = checkpoint
  const resume = scan !== null && scan.since === since && scan.until === until ? scan : null
  return { kind, since, until, resume, cursor: null, overlapMs: 0, reason: null }
}

/** A `synced_through` may be this far after the time of its answer. */
const futureMsMax = 60 * 60 * 1000

/**
 * The position that a page proves. The time of the answer replaces a `synced_through` that the source does not give (spec
 * A-05), or that lies in the future: with such a cursor the next scan would miss every change before it.
 */
const cursorOf = (resource: Resource, page: Page, overlapMs: number): string | null => {
  const answeredAt = page.answeredAt ?? null
  const isAhead =
    page.syncedThrough !== null && answeredAt !== null && isAfter(before(page.syncedThrough, futureMsMax), answeredAt)
  if (page.syncedThrough !== null && isAhead !== true) return page.syncedThrough
  return !resource.modifiedSince || answeredAt === null ? null : before(answeredAt, overlapMs)
}

/** The records of a page that a backfill may land: those that changed at its end or before. */
const recordsUntil = (resource: Resource, page: Page, until: string): Page => {
  const stamp = resource.fields.findIndex(({ name }) => name === resource.roles.modifiedAt)
  return stamp === -1
    ? page
    : {
        ...page,
        records: page.records.filter(({ columns }) => {
          const changed = columns[stamp]
          return changed === null || changed === undefined || isAfter(changed, until) !== true
        })
      }
}

/** The source's clock went back: it may stamp changes before the cursor. */
export class SourceClockRegressed extends Data.TaggedError("SourceClockRegressed")<{
  readonly from: string
  readonly to: string
}> {
  override get message(): string {
    return `the source reports synced_through ${this.to}, earlier than its previous ${this.from}: its clock was set back, or it was restored`
  }
}

/** Fails a scan whose first page is behind the cursor by more than the overlap. */
export const clockRegression = (plan: ScanPlan, page: Page): SourceClockRegressed | null => {
  const { cursor, overlapMs } = plan
  if (cursor === null || page.syncedThrough === null) return null
  const [had, has] = [millisecondsOf(cursor), millisecondsOf(page.syncedThrough)]
  return had !== undefined && has !== undefined && has < had - overlapMs
    ? new SourceClockRegressed({ from: cursor, to: page.syncedThrough })
    : null
}

/** The delay before an empty list is read again: a source that just starts may need a moment. */
const emptyRetryDelayMs = 1_000

/**
 * Reads a scan to its end and offers every page in order. It waits while `offer` waits, so that pages do not pile up.
 * `timeOf` converts an instant of the process' monotonic clock to the warehouse's time. `expectedRows`: the rows of the
 * warehouse that a full scan should return.
 */
export const scan = Effect.fnUntraced(function* <E, R, E2>(
  connector: ConnectorShape,
  resource: Resource,
  from: ScanPlan,
  timeOf: (monotonicMs: number) => number,
  expectedRows: Effect.Effect<ExpectedRows | null, E2>,
  offer: (page: ScannedPage) => Effect.Effect<unknown, E, R>
): Effect.fn.Return<void, SourceError | E | E2, R> {
  const checkProgress = makeProgressCheck(`/${resource.path}`)
  let state = from.resume
  let expected = null as ExpectedRows | null
  /**
   * Whether an empty list is unlikely: a full scan although rows exist, or a page that the previous page announced. Without
   * rows an empty list counts at once: most resources are empty at the first read, and each second request would add a
   * pause. The next full scan reads what a wrong answer left out.
   */
  const isUnlikely = Effect.fnUntraced(function* (token: string | null) {
    if (token !== null) return true
    if (from.kind !== "full") return false
    expected = yield* expectedRows
    if (expected === null) return false
    yield* Effect.sleep(emptyRetryDelayMs)
    return true
  })
  for (;;) {
    const token = state?.token ?? null
    const read = yield* readPage(connector.page({ resource, since: from.since, token }), isUnlikely(token))
    if (token === null && isEmpty(read) && expected !== null) yield* confirmEmpty(connector, resource, expected)
    const page = from.until === null ? read : recordsUntil(resource, read, from.until)
    yield* checkProgress(read, token, (state?.pages ?? 0) + 1)
    const cursor = cursorOf(resource, page, from.overlapMs)
    state = {
      kind: from.kind,
      since: from.since,
      until: from.until,
      token: page.next,
      pages: (state?.pages ?? 0) + 1,
      syncedThrough: state === null ? cursor : earlier(state.syncedThrough, cursor),
      beganAt: state?.beganAt ?? timeOf(page.beganAt)
    }
    const complete = page.next === null
    yield* offer({ page, scan: state, complete })
    if (complete) return
  }
})

const broken = (path: string, detail: string) =>
  Effect.fail(
    new SourceError({ reason: new PagingBroken({ detail }), request: { method: "GET", path, requestId: null } })
  )

/**
 * Fails when the source has a record that its empty list does not show. Every row is asked for: one that was removed, or
 * that left the filter, says nothing about the others. Only few rows are confirmed: of more rows the mass-delete guard
 * deletes none.
 */
const confirmEmpty = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  { ids, areUnguarded }: ExpectedRows
) {
  if (!areUnguarded || !resource.operations.includes("R")) return
  for (const id of ids) {
    const { record, rejected } = yield* connector.get(resource, id)
    if (record === null && rejected === null) continue
    return yield* broken(`/${resource.path}`, `the list was empty twice, and the source has the record ${id}`)
  }
})

/** Fails when a page token repeats, and after {@link emptyPagesMax} pages in a row without a new record. */
const makeProgressCheck = (path: string) => {
  const tokens = new Set<string>()
  const isNews = makeNews()
  let empty = 0
  return (page: Page, token: string | null, number: number): Effect.Effect<void, SourceError> =>
    Effect.suspend(() => {
      empty = isNews(idsOf(page)) ? 0 : empty + 1
      if (page.next === null) return Effect.void
      if (empty >= emptyPagesMax)
        return broken(path, `${emptyPagesMax} pages in a row had no new record and named a next page`)
      if (page.next === token || tokens.has(page.next))
        return broken(path, `page ${number} leads back to a page already read`)
      tokens.add(page.next)
      return Effect.void
    })
}

const isEmpty = (page: Page): boolean => namedBy(page).length === 0

const idsOf = (page: Page) => namedBy(page).map(({ id }) => id)

/** Reads a page. An empty last page that is unlikely is read a second time: that answer counts, with the cost of both. */
const readPage = Effect.fnUntraced(function* <E>(
  request: Effect.Effect<Page, SourceError>,
  isUnlikely: Effect.Effect<boolean, E>
): Effect.fn.Return<Page, SourceError | E> {
  const first = yield* request
  if (!isEmpty(first) || first.next !== null || !(yield* isUnlikely)) return first
  const second = yield* request
  return { ...second, bytes: first.bytes + second.bytes, attempts: first.attempts + second.attempts }
})

/** A list that is read apart from the checkpoint. */
export interface ListRequest {
  readonly resource: Resource
  readonly since?: string
  readonly where?: { readonly field: string; readonly value: string }
  /** Whether an empty list is read a second time. */
  readonly isEmptyUnlikely: boolean
}

/** Reads a list page by page, until its end or until `use` returns false. Returns whether it was read to its end. */
export const readList = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  { resource, since, where, isEmptyUnlikely }: ListRequest,
  use: (page: Page, number: number) => boolean
): Effect.fn.Return<boolean, SourceError> {
  const query = where === undefined ? "" : `?${where.field}=${where.value}`
  const checkProgress = makeProgressCheck(`/${resource.path}${query}`)
  let token: string | null = null
  for (let number = 1; ; number += 1) {
    const request = { resource, since: since ?? null, token, where: where === undefined ? [] : [where] }
    const page: Page = yield* readPage(connector.page(request), Effect.succeed(isEmptyUnlikely))
    const goesOn = use(page, number)
    yield* checkProgress(page, token, number)
    if (page.next === null) return true
    if (!goesOn) return false
    token = page.next
  }
})

/**
 * Reads every record whose field has a value: the children of one parent. An empty list of them is unlikely: a parent that
 * is read here has changed, perhaps by its first child.
 */
export const children = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  where: { readonly field: string; readonly value: string }
): Effect.fn.Return<ReadonlyArray<Page>, SourceError> {
  const pages: Array<Page> = []
  yield* readList(connector, { resource, where, isEmptyUnlikely: true }, (page) => pages.push(page) > 0)
  return pages
})
