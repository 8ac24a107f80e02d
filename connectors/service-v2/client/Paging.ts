/**
 * Continuation from one page to the next, and detection of lost or repeated pages.
 *
 * Promise: a scan ends only where the source says so. A page that announces more records without a continuation, a full
 * page without any statement, and a repeated page are errors, never the end.
 *
 * Counted pages move when a record before them is removed: the first record of the next page slides into the page that
 * was read already, and would be lost. So each counted page is joined to the one before by the last record read, the
 * edge. The records after the edge in one answer are those not read yet, as long as the source keeps the order of
 * unchanged records. Offsets are requested with an overlap of one record, so that the answer contains the edge. Page
 * numbers overlap when the limit varies: page 3 of 249 records contains the last two of page 2 of 250. An overlap is
 * impossible where no limit is sent, for pages of one record and for links that count. There the page before is read
 * once more afterwards and must still end with the edge, unless the page itself contains it. Where none of this holds,
 * the result is a {@link SourceError.PageDrift}. Cursors, and links that do not count, are trusted.
 *
 * Not detected: a source that sorts records of equal rank differently each time. Without an overlap also: one record
 * removed and one added before the edge, both between the two requests.
 */
import { createHash } from "node:crypto"
import { isAfter } from "../../../src/connector/Instant.ts"
import * as SourceError from "../../../src/connector/SourceError.ts"
import type { BaseAddress } from "./BaseAddress.ts"
import { isObject, type JsonObject, member } from "./Envelope.ts"
import type { PageBoundary, PageToken, Place } from "./PageToken.ts"
import { plural } from "../../../src/text/Count.ts"

/** The paging mode of an installation. */
export type PagingMode = "auto" | "cursor" | "page" | "offset" | "link" | "none"

export interface PagingSettings {
  /** `auto` follows `_meta.next_cursor`, `_meta.next` or `Link: rel=next`, whichever is present. */
  readonly mode: PagingMode
  readonly limitParameter: string
  readonly cursorParameter: string
  readonly pageParameter: string
  /** Number of the first page. */
  readonly pageFirst: number
  readonly offsetParameter: string
}

export const defaults: PagingSettings = {
  mode: "auto",
  limitParameter: "limit",
  cursorParameter: "cursor",
  pageParameter: "page",
  pageFirst: 1,
  offsetParameter: "offset"
}

/** The paging metadata of a page. */
export interface PageFacts {
  readonly meta: JsonObject
  readonly link: string | undefined
  readonly records: number
  /** Identities of the records, in the order sent; used only where pages are counted. */
  readonly identities: () => ReadonlyArray<string>
}

/** The page before, to be read once more. */
export interface Again {
  readonly path: string
  /** The record that it must end with. */
  readonly last: string
  /** `synced_through` of the page after it: an earlier answer proves nothing. Null where the page has none. */
  readonly syncedThrough: string | null
}

/** How a page joins the one before. */
export interface Joint {
  /** Number of first records that are the last ones of the page before. */
  readonly repeated: number
  /** Null when the join is proven. */
  readonly again: Again | null
}

/** The request of a page. */
export interface RequestedPage {
  readonly token: PageToken | null
  /** Path and query below the base address. */
  readonly path: string
  /** The size that was requested; null where none was sent. */
  readonly pageSize: number | null
  /** Whether a person set the size. Another one may be ignored by the source. */
  readonly isConfigured: boolean
}

/** Usual page sizes of services: a list of such a length may have been cut. */
const usualPageSizes: ReadonlySet<number> = new Set([100, 200, 250, 500, 1000, 2000, 5000, 10_000])

/** The paging parameter that a token adds to a request; null when the token is a whole address. */
export const parameter = (place: Place, settings: PagingSettings): readonly [name: string, value: string] | null => {
  if ("cursor" in place) return [settings.cursorParameter, place.cursor]
  if ("page" in place) return [settings.pageParameter, String(place.page)]
  if ("offset" in place) return [settings.offsetParameter, String(place.offset)]
  return null
}

const broken = (detail: string) => new SourceError.PagingBroken({ detail })
const drifted = (detail: string) => new SourceError.PageDrift({ detail })

/**
 * The identity of one state of a record, as far as a list may be sorted by it: its number and the time of its last
 * change. Without that time, or with whole seconds only, a hash of the whole record.
 */
export const identity = (item: unknown, text: () => string): string => {
  const id = isObject(item) ? member(item, "id") : undefined
  const changed = isObject(item) ? member(item, "lastchangedate") : undefined
  return Number.isSafeInteger(id) && typeof changed === "string" && changed.length <= 40 && changed.includes(".")
    ? `${id as number} ${changed}`
    : `sha256 ${createHash("sha256").update(text()).digest("base64url")}`
}

/** How a page joins the one before. */
export const join = (
  { meta, records, identities }: PageFacts,
  token: PageToken | null
): Joint | SourceError.PageDrift | SourceError.PagingBroken => {
  const edge = token?.edge ?? null
  if (token === null || edge === null) return { repeated: 0, again: null }
  const { last, before, overlap } = edge
  const { place } = token
  const seen = identities()
  if ("page" in place && place.size !== null && records > place.size) {
    return broken(
      `the page has ${plural(records, "record")}, but at most ${place.size} were requested; remove page_size`
    )
  }
  if (isSame(seen, token, edge)) {
    // By offset, a page this short is also repeated when one record was added before it.
    return records <= 2 && "offset" in place
      ? drifted("the same records come again at another offset")
      : broken("the same page comes again: the source ignores the parameter that names the page")
  }
  const at = seen.indexOf(last)
  if (at >= 0) return { repeated: at + 1 === overlap ? overlap : 0, again: null }
  if (before !== null) return { repeated: 0, again: { path: before, last, syncedThrough: syncedThroughOf(meta) } }
  return "page" in place && place.size !== null && records < place.size && member(meta, "has_more") === true
    ? broken(`the page has ${records} of more records, but ${place.size} were requested; remove page_size`)
    : drifted("the page does not contain the last record of the page before")
}

/** Whether a page is a repetition of the page before. */
const isSame = (
  seen: ReadonlyArray<string>,
  { place, step }: PageToken,
  { first, last, before }: PageBoundary
): boolean => {
  if (seen.length === 0 || seen[0] !== first) return false
  // With another limit the same page ends elsewhere. A source that ignores the number shows this at the second page.
  if (before === null && "page" in place) return step === 1
  // At the end of a list, a page requested with an overlap contains the edge alone.
  return seen.at(-1) === last && (before !== null || seen.length > 1)
}

const syncedThroughOf = (meta: JsonObject): string | null => {
  const position = member(meta, "synced_through")
  return typeof position === "string" ? position : null
}

/** Checks that the page before still ends with the same record; the drift when it does not. */
export const confirm = (
  { identities, meta }: PageFacts,
  { last, syncedThrough }: Again
): SourceError.PageDrift | null => {
  if (identities().at(-1) !== last) return drifted("the page before, read once more, ends with another record")
  const position = syncedThroughOf(meta)
  return syncedThrough !== null && position !== null && isAfter(syncedThrough, position) === true
    ? drifted("the page before, read once more, is an earlier answer than the page after it")
    : null
}

/** The next page's token; null when this was the last page. */
export const next = (
  facts: PageFacts,
  asked: RequestedPage,
  settings: PagingSettings,
  base: BaseAddress
): PageToken | null | SourceError.PagingBroken => {
  const hasMore = member(facts.meta, "has_more")
  switch (settings.mode) {
    case "none":
      return hasMore === true ? broken("more records are announced, but paging.mode is none") : null
    case "page":
    case "offset":
      return nextNumbered(facts, asked, settings, hasMore, settings.mode)
    default:
  }
  if (hasMore === false) return null
  const found = continuation(facts, settings.mode)
  if (found !== null) return follow(found, facts, asked, settings, base)
  if (hasMore === true) return broken("more records are announced without a link or cursor to them")
  // A continuation that was used before, or that is configured, is present whenever there is more.
  if (settings.mode !== "auto" || asked.token !== null || saysEnd(facts.meta)) return null
  const limit = member(facts.meta, "limit")
  const { isConfigured, pageSize } = asked
  if (facts.records > 0 && pageSize !== null && !isConfigured) {
    // The source may have cut the list at a size of its own, and may repeat the requested one as its limit.
    return broken("the page has neither an end mark nor a link to the next page")
  }
  const sizes = [typeof limit === "number" ? limit : null, pageSize].filter((size) => size !== null)
  const isFull = sizes.length === 0 ? usualPageSizes.has(facts.records) : sizes.some((size) => facts.records >= size)
  return isFull && facts.records > 0
    ? broken(
        `the page is full (${plural(facts.records, "record")}) and has neither an end mark nor a link to the next page`
      )
    : null
}

/** Whether a continuation is present and empty. */
const saysEnd = (meta: JsonObject): boolean =>
  ["next_cursor", "next"].some((name) => {
    const value = member(meta, name)
    return value === null || value === ""
  })

type Continuation = { readonly cursor: string } | { readonly link: string }

const continuation = ({ meta, link }: PageFacts, mode: PagingMode): Continuation | null => {
  if (mode !== "link") {
    const cursor = member(meta, "next_cursor")
    if (typeof cursor === "string" && cursor !== "") return { cursor }
    if (typeof cursor === "number" && Number.isSafeInteger(cursor)) return { cursor: String(cursor) }
  }
  if (mode !== "cursor") {
    const url = member(meta, "next")
    if (typeof url === "string" && url !== "") return { link: url }
    const header = nextLink(link)
    if (header !== null) return { link: header }
  }
  return null
}

const countingParameters = ["page", "page_number", "offset", "skip", "start"]

/** Whether an address selects its page by counting. */
const isCounted = (url: string, { pageParameter, offsetParameter }: PagingSettings): boolean => {
  const parameters = new URLSearchParams(url.slice(url.indexOf("?") + 1))
  return [pageParameter, offsetParameter, ...countingParameters].some((name) =>
    /^\d{1,15}$/.test(parameters.get(name) ?? "")
  )
}

/** The boundary after a page without overlap; an empty page leaves it unchanged. */
const edgeBehind = ({ identities }: PageFacts, asked: RequestedPage): PageBoundary | null => {
  const seen = identities()
  const first = seen[0]
  const last = seen.at(-1)
  return first === undefined || last === undefined
    ? (asked.token?.edge ?? null)
    : { first, last, before: asked.path, overlap: 0 }
}

const follow = (
  found: Continuation,
  facts: PageFacts,
  asked: RequestedPage,
  settings: PagingSettings,
  base: BaseAddress
): PageToken | SourceError.PagingBroken => {
  let place: { readonly cursor: string } | { readonly url: string }
  let edge: PageBoundary | null = null
  if ("cursor" in found) {
    place = { cursor: found.cursor }
  } else {
    const url = base.below(found.link, asked.path)
    if (url === null) return broken("the link to the next page leaves the configured base address")
    place = { url }
    if (isCounted(url, settings)) edge = edgeBehind(facts, asked)
  }
  const mark = "cursor" in place ? place.cursor : place.url
  const { token } = asked
  if (token === null) {
    return mark === asked.path ? broken("the page links to itself as the next page") : { place, step: 1, mark, edge }
  }
  const self = "cursor" in token.place ? token.place.cursor : "url" in token.place ? token.place.url : null
  if (mark === token.mark || mark === self) {
    return broken(`a page links to one that was read already, after ${token.step + 1} pages`)
  }
  const step = token.step + 1
  return { place, step, mark: Number.isInteger(Math.log2(step)) ? mark : token.mark, edge }
}

const nextNumbered = (
  facts: PageFacts,
  asked: RequestedPage,
  settings: PagingSettings,
  hasMore: unknown,
  mode: "page" | "offset"
): PageToken | null | SourceError.PagingBroken => {
  const { records } = facts
  const { token } = asked
  if (hasMore === false) return null
  // A short page proves nothing: a source may return fewer records than requested. Without an end mark, the scan ends
  // at the first empty page.
  if (records === 0) return hasMore === true ? broken("an empty page announces more records") : null
  const edge = edgeBehind(facts, asked)
  const step = (token?.step ?? 0) + 1
  if (mode === "page") {
    const { overlap, place } = nextPage(records, asked, settings)
    return { place, step, mark: "", edge: edge !== null && overlap > 0 ? { ...edge, before: null, overlap } : edge }
  }
  const end = (token !== null && "offset" in token.place ? token.place.offset : 0) + records
  // A page with nothing but the overlap: the list ends here, or its pages have one record.
  const isOverlapAlone = token?.edge?.before === null && records === 1
  return isOverlapAlone || edge === null
    ? { place: { offset: end }, step, mark: "", edge }
    : { place: { offset: end - 1 }, step, mark: "", edge: { ...edge, before: null, overlap: 1 } }
}

/** The next numbered page, and how many records of this one it contains. */
const nextPage = (
  records: number,
  { isConfigured, pageSize, token }: RequestedPage,
  { pageFirst }: PagingSettings
): { readonly place: Place; readonly overlap: number } => {
  const { page, size, most } =
    token !== null && "page" in token.place
      ? token.place
      : { page: pageFirst, size: pageSize, most: isConfigured ? pageSize : null }
  // A page that is not full shows that number and limit do not determine where it ends.
  if (size === null || most === null || records !== size) {
    // A source that ignores a size that is not configured may return more.
    const isIgnored = !isConfigured && size !== null && records > size
    return { place: { page: page + 1, size: isIgnored ? null : size, most: null }, overlap: 0 }
  }
  const start = (page - pageFirst) * size
  const end = start + size
  const limit = overlappingLimit(start, end, most)
  return limit === null
    ? { place: { page: page + 1, size, most }, overlap: 0 }
    : { place: { page: pageFirst + Math.floor(end / limit), size: limit, most }, overlap: end % limit }
}

/**
 * The limit at which a page contains the record before `end` and reaches as far as possible beyond it; null when all
 * limits cut at `end`. From 20 records a page on, this does not happen before record 232,792,560.
 */
const overlappingLimit = (start: number, end: number, most: number): number | null => {
  let best: number | null = null
  let furthest = end
  for (let limit = most; limit >= 2; limit--) {
    const from = end - (end % limit)
    if (end % limit === 0 || from <= start || from + limit <= furthest) continue
    best = limit
    furthest = from + limit
  }
  return best
}

/** The target of `rel=next` in a Link header; null when there is none. */
const nextLink = (header: string | undefined): string | null => {
  if (header === undefined) return null
  for (const match of header.matchAll(/<([^>]*)>((?:\s*;\s*[^\s=;,]+\s*(?:=\s*(?:"[^"]*"|[^\s;,]*))?)*)/g)) {
    const [, target, parameters] = match
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,]*))/i.exec(parameters ?? "")
    const relations = (rel?.[1] ?? rel?.[2] ?? "").toLowerCase().split(/\s+/)
    if (target !== undefined && relations.includes("next")) return target
  }
  return null
}
