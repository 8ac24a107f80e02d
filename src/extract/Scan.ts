/**
 * What to ask the source for.
 *
 * Promise: a scan reads from its first page to its last, one page after the other; a page token that repeats stops it,
 * and so do {@link emptyPagesMax} pages in a row without a record that an earlier page of the scan had not.
 * An empty page that would end a scan although there should be records is read a second time, and that answer counts.
 * What a completed scan may store as cursor comes from its first page, and is the earliest of those that its pages
 * carried, so that nothing that changed while the pages were read can be missed by the next one. An incremental scan
 * begins before the stored cursor by the overlap, so that rows which became visible after their own stamp are met.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { ConnectorShape, Page } from "../connector/Connector.ts"
import { emptyPagesMax, makeNews } from "../connector/Repeats.ts"
import { PagingBroken, SourceError } from "../connector/SourceError.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { Checkpoint, OpenScan } from "../land/Checkpoint.ts"
import { before, earlier, isAfter, millisecondsOf } from "../connector/Instant.ts"

/** One page, the scan as it stands after it, and whether it was the last. */
export interface ScannedPage {
  readonly page: Page
  readonly scan: OpenScan
  readonly complete: boolean
}

/** How the resources of an installation are to be read; from its configuration. */
export interface ScanSettings {
  /** How far before the cursor a scan begins at least, in milliseconds (spec A-05). */
  readonly overlapMs: number
  /** A resource with a cursor is read in full when its last full scan began longer ago than this; null never. */
  readonly fullScanEveryMs: number | null
  /** A resource without a cursor is read in full when its last full scan began longer ago than this. */
  readonly cursorlessScanEveryMs: number
}

export const settingsDefault: ScanSettings = {
  overlapMs: 300_000,
  fullScanEveryMs: 7 * 24 * 60 * 60 * 1000,
  cursorlessScanEveryMs: 0
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
  /** The cursor that the scan goes on from, as stored; null where there is none. */
  readonly cursor: string | null
  /** How far before the cursor it begins, in milliseconds. */
  readonly overlapMs: number
  /** Why it is a full scan although nobody asked for one; null otherwise. */
  readonly reason: string | null
}

/** Only the children of parents that changed are read: between two full scans of a resource without cursor. */
export interface ChildrenPlan {
  readonly kind: "children"
}

export const effectiveOverlapMs = (checkpoint: Checkpoint, settings: ScanSettings): number =>
  Math.max(settings.overlapMs, checkpoint.overlapMs)

/** Chooses what a run reads. A scan in progress goes on, unless a full one is wished and it is none. */
export const plan = (
  resource: Resource,
  checkpoint: Checkpoint,
  wish: ScanRequest,
  settings: ScanSettings,
  nowMs: number
): ScanPlan | ChildrenPlan => {
  const { scan, cursor, fullScanAt, fullScanReason } = checkpoint
  const overlapMs = effectiveOverlapMs(checkpoint, settings)
  const ageMs = fullScanAt === null ? Infinity : nowMs - fullScanAt
  const isOld = settings.fullScanEveryMs !== null && fullScanAt !== null && ageMs >= settings.fullScanEveryMs
  const incremental = resource.modifiedSince && cursor !== null && !wish.full && fullScanReason === null && !isOld
  const common = { until: null, cursor, overlapMs }
  if (scan !== null && (scan.kind === "full" || incremental)) {
    return { ...common, kind: scan.kind, since: scan.since, resume: scan, reason: null }
  }
  if (incremental) {
    return { ...common, kind: "incremental", since: before(cursor, overlapMs), resume: null, reason: null }
  }
  const { cursorlessScanEveryMs } = settings
  const isSwept = !resource.modifiedSince && cursorlessScanEveryMs > 0 && ageMs < cursorlessScanEveryMs
  if (isSwept && !wish.full && fullScanReason === null) return { kind: "children" }
  const reason = wish.full ? null : (fullScanReason ?? (isOld ? "the last full scan is old" : null))
  return { ...common, kind: "full", since: null, resume: null, reason }
}

/** What a backfill reads: everything, or what changed since an instant, up to another. */
export const planBackfill = (
  resource: Resource,
  checkpoint: Checkpoint,
  range: { readonly since: string | null; readonly until: string | null }
): ScanPlan => {
  const since = resource.modifiedSince ? range.since : null
  const { until } = range
  const kind = since === null ? "full" : "incremental"
  const { scan } = checkpoint
  const resume = scan !== null && scan.since === since && scan.until === until ? scan : null
  return { kind, since, until, resume, cursor: null, overlapMs: 0, reason: null }
}

/** A `synced_through` may be this far after the time of its answer. */
const futureMsMax = 60 * 60 * 1000

/**
 * The position that a page proves. The time of the answer stands in for a `synced_through` that the source does not give
 * (spec A-05), or that lies in the future: the next scan would miss every change before it.
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
  const stamp = resource.fields.findIndex((field) => field.name === "lastchangedate")
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

/** The source's time went back: it may show changes again under stamps that were read already. */
export class SourceClockRegressed extends Data.TaggedError("SourceClockRegressed")<{
  readonly from: string
  readonly to: string
}> {
  override get message(): string {
    return `the source says it is synced through ${this.to}, and said ${this.from} before: its clock was set back, or it was restored`
  }
}

/** Whether a scan's first page takes back what an earlier scan was told, by more than the overlap covers. */
export const clockRegression = (plan: ScanPlan, page: Page): SourceClockRegressed | null => {
  const { cursor, overlapMs } = plan
  if (cursor === null || page.syncedThrough === null) return null
  const [had, has] = [millisecondsOf(cursor), millisecondsOf(page.syncedThrough)]
  return had !== undefined && has !== undefined && has < had - overlapMs
    ? new SourceClockRegressed({ from: cursor, to: page.syncedThrough })
    : null
}

/** Before an empty list is read a second time: a source that is just starting, or rebuilding, may need a moment. */
const emptyRetryDelayMs = 1_000

/**
 * Reads a scan to its end, handing every page over in order. Waits when `offer` waits, so that pages do not pile up.
 * `timeOf` gives the warehouse's time of an instant on the program's monotonic clock. `hasLive` tells whether the
 * warehouse holds records that a full scan should meet.
 */
export const scan = Effect.fnUntraced(function* <E, R, E2>(
  connector: ConnectorShape,
  resource: Resource,
  from: ScanPlan,
  timeOf: (monotonicMs: number) => number,
  hasLive: Effect.Effect<boolean, E2>,
  offer: (page: ScannedPage) => Effect.Effect<unknown, E, R>
): Effect.fn.Return<void, SourceError | E | E2, R> {
  const tokens = new Set<string>()
  const isNews = makeNews()
  let state = from.resume
  let empty = 0
  /**
   * A list of changes may well be empty; all of what exists is not, nor is a page that the one before announced. Where the
   * warehouse has no rows, an empty list is believed: most resources of a company are empty at its first read, and a pause
   * before each second request would add many seconds to it. The next full scan reads what a mistake left out.
   */
  const isStrange = Effect.fnUntraced(function* (page: Page, token: string | null) {
    if (!isEmpty(page) || page.next !== null) return false
    if (token !== null) return true
    if (from.kind !== "full" || !(yield* hasLive)) return false
    yield* Effect.sleep(emptyRetryDelayMs)
    return true
  })
  for (;;) {
    const token = state?.token ?? null
    const ask = connector.page({ resource, since: from.since, token })
    const first = yield* ask
    const read = (yield* isStrange(first, token)) ? secondAnswer(first, yield* ask) : first
    const page = from.until === null ? read : recordsUntil(resource, read, from.until)
    empty = isNews(idsOf(read)) ? 0 : empty + 1
    if (page.next !== null) {
      if (empty >= emptyPagesMax) return yield* endlessPages(`/${resource.path}`)
      if (page.next === token || tokens.has(page.next)) {
        return yield* new SourceError({
          reason: new PagingBroken({ detail: `page ${(state?.pages ?? 0) + 1} leads back to a page already read` }),
          request: { method: "GET", path: `/${resource.path}`, requestId: null }
        })
      }
      tokens.add(page.next)
    }
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

const endlessPages = (path: string) =>
  new SourceError({
    reason: new PagingBroken({ detail: `${emptyPagesMax} pages in a row had no new record and named a next page` }),
    request: { method: "GET", path, requestId: null }
  })

const isEmpty = ({ records, rejected }: Page): boolean => records.length === 0 && rejected.length === 0

const idsOf = ({ records, rejected }: Page) => [...records, ...rejected].map(({ id }) => id)

/** The second answer, with what both of them cost. */
const secondAnswer = (first: Page, second: Page): Page => ({
  ...second,
  bytes: first.bytes + second.bytes,
  attempts: first.attempts + second.attempts
})

/**
 * Reads every record whose field has a value: the children of one parent. An empty list is believed, since many parents
 * have no children. It deletes nothing: only a full scan, or the answer to a request for one record, tells that a record
 * is gone. An empty list by mistake leaves changed children as they are until the next full scan.
 */
export const children = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  where: { readonly field: string; readonly value: string }
): Effect.fn.Return<ReadonlyArray<Page>, SourceError> {
  const pages: Array<Page> = []
  const tokens = new Set<string>()
  const isNews = makeNews()
  let empty = 0
  for (let token: string | null = null; ;) {
    const page: Page = yield* connector.page({ resource, since: null, token, where })
    pages.push(page)
    if (page.next === null) return pages
    empty = isNews(idsOf(page)) ? 0 : empty + 1
    if (empty >= emptyPagesMax) return yield* endlessPages(`/${resource.path}?${where.field}=${where.value}`)
    if (tokens.has(page.next)) {
      return yield* new SourceError({
        reason: new PagingBroken({ detail: `page ${pages.length} leads back to a page already read` }),
        request: { method: "GET", path: `/${resource.path}?${where.field}=${where.value}`, requestId: null }
      })
    }
    tokens.add(page.next)
    token = page.next
  }
})
