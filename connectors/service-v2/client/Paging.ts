/**
 * From one page to the next.
 *
 * Promise: a scan ends only where the source says so. A page that announces more without saying where, a full page
 * that says nothing, and a page that comes again are errors, never ends.
 *
 * Pages that are counted off move when a record before them goes: the first record of the next page slides into the
 * page that was read already, and is not read. So each counted page is joined to the one before by the last record
 * read, the edge: what stands behind the edge in one answer is what was not read yet, as long as the source keeps the
 * order of records that do not change. Offsets are asked with an overlap of one record, so that the answer shows the
 * edge itself. Page numbers overlap when the limit varies: page 3 of 249 records holds the last two of page 2 of 250.
 * Where no overlap can be asked for (no limit is sent, pages of one record, links that count), the page before is read
 * once more afterwards and must still end with the edge, unless the page happens to show it. Where none of this is so,
 * the answer is a {@link SourceError.PageDrift}. Cursors, and links that do not count, are the source's own marks and
 * trusted.
 *
 * What this cannot see: a source that gives records of one rank in another order each time; and without an overlap, a
 * record that goes and one that comes before the edge, both while the two requests are made.
 */
import { createHash } from "node:crypto"
import * as SourceError from "../../../src/connector/SourceError.ts"
import type { BaseAddress } from "./BaseAddress.ts"
import { isObject, type JsonObject, member } from "./Envelope.ts"
import type { PageBoundary, PageToken, Place } from "./PageToken.ts"

/** How an installation pages. */
export type PagingMode = "auto" | "cursor" | "page" | "offset" | "link" | "none"

export interface PagingSettings {
  /** `auto` follows `_meta.next_cursor`, `_meta.next` and `Link: rel=next`, whichever comes. */
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

/** What a page said of itself. */
export interface PageFacts {
  readonly meta: JsonObject
  readonly link: string | undefined
  readonly records: number
  /** Of each record, in the order sent; asked for only where pages are counted. */
  readonly identities: () => ReadonlyArray<string>
}

/** How a page joins the one before. */
export interface Joint {
  /** How many of the first records are those that the page before ended with. */
  readonly repeated: number
  /** The page before that must be read once more, and the record that it must end with; null when all is proven. */
  readonly again: { readonly path: string; readonly last: string } | null
}

/** What a page was asked for. */
export interface RequestedPage {
  readonly token: PageToken | null
  /** Path and query below the base address. */
  readonly path: string
  readonly pageSize: number | null
}

/** Lengths at which services usually cut a page: a list as long as that may have been cut. */
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
 * What tells a record from all others and from itself after a change, as far as a list may be ordered by it: its number
 * and the time of its last change, or everything when that time is not there or whole seconds only.
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
    return broken(`${records} records came where at most ${place.size} were asked for; leave page_size out`)
  }
  if (isSame(seen, token, edge)) {
    // So short a page by offset also comes again when one record came before it.
    return records <= 2 && "offset" in place
      ? drifted("the same records come again, at another offset")
      : broken("the same page comes again: the source does not heed the parameter that names the page")
  }
  const at = seen.indexOf(last)
  if (at >= 0) return { repeated: at + 1 === overlap ? overlap : 0, again: null }
  if (before !== null) return { repeated: 0, again: { path: before, last } }
  return "page" in place && place.size !== null && records < place.size && member(meta, "has_more") === true
    ? broken(`${records} of more records came where ${place.size} were asked for; leave page_size out`)
    : drifted("the page does not hold the last record of the page before")
}

/** Whether a page is the one before. */
const isSame = (
  seen: ReadonlyArray<string>,
  { place, step }: PageToken,
  { first, last, before }: PageBoundary
): boolean => {
  if (seen.length === 0 || seen[0] !== first) return false
  // Asked with another limit, the same page ends elsewhere; who does not heed the number shows it at once.
  if (before === null && "page" in place) return step === 1
  // A page with the edge alone is what the end of a list looks like when it is asked for with an overlap.
  return seen.at(-1) === last && (before !== null || seen.length > 1)
}

/** Whether the page before still ends as it did; the drift when it does not. */
export const confirm = ({ identities }: PageFacts, last: string): SourceError.PageDrift | null =>
  identities().at(-1) === last ? null : drifted("the page before, read once more, ends with another record")

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
      return hasMore === true ? broken("more records are announced, and paging.mode is none") : null
    case "page":
    case "offset":
      return nextNumbered(facts, asked, settings, hasMore, settings.mode)
    default:
  }
  if (hasMore === false) return null
  const found = continuation(facts, settings.mode)
  if (found !== null) return follow(found, facts, asked, settings, base)
  if (hasMore === true) return broken("more records are announced, but not where they are")
  // The way that led here, or the way that is configured, is known to say so when there is more.
  if (settings.mode !== "auto" || asked.token !== null || saysEnd(facts.meta)) return null
  const limit = member(facts.meta, "limit")
  const sizes = [typeof limit === "number" ? limit : null, asked.pageSize].filter((size) => size !== null)
  const isFull = sizes.length === 0 ? usualPageSizes.has(facts.records) : sizes.some((size) => facts.records >= size)
  return isFull && facts.records > 0
    ? broken(`the page is full (${facts.records} records) and says neither that it is the last nor what comes next`)
    : null
}

/** A continuation that is there and empty. */
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

/** Whether an address names its page by counting. */
const isCounted = (url: string, { pageParameter, offsetParameter }: PagingSettings): boolean => {
  const parameters = new URLSearchParams(url.slice(url.indexOf("?") + 1))
  return [pageParameter, offsetParameter, ...countingParameters].some((name) =>
    /^\d{1,15}$/.test(parameters.get(name) ?? "")
  )
}

/** Where a page without overlap ends; an empty one changes nothing. */
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
    return mark === asked.path ? broken("the page names itself as the next one") : { place, step: 1, mark, edge }
  }
  const self = "cursor" in token.place ? token.place.cursor : "url" in token.place ? token.place.url : null
  if (mark === token.mark || mark === self) {
    return broken(`a page names one that was read before as the next one, after ${token.step + 1} pages`)
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
  // A short page proves nothing: a source may give less than it could and not say so. Without its word, the scan ends
  // at the first page that is empty.
  if (records === 0) return hasMore === true ? broken("an empty page announces more records") : null
  const edge = edgeBehind(facts, asked)
  const step = (token?.step ?? 0) + 1
  if (mode === "page") {
    const { overlap, place } = nextPage(records, asked, settings)
    return { place, step, mark: "", edge: edge !== null && overlap > 0 ? { ...edge, before: null, overlap } : edge }
  }
  const end = (token !== null && "offset" in token.place ? token.place.offset : 0) + records
  // A page that held nothing but the overlap: the list ends here, or its pages are of one record.
  const isOverlapAlone = token?.edge?.before === null && records === 1
  return isOverlapAlone || edge === null
    ? { place: { offset: end }, step, mark: "", edge }
    : { place: { offset: end - 1 }, step, mark: "", edge: { ...edge, before: null, overlap: 1 } }
}

/** The numbered page that goes on, and how many records of this one it holds. */
const nextPage = (
  records: number,
  { pageSize, token }: RequestedPage,
  { pageFirst }: PagingSettings
): { readonly place: Place; readonly overlap: number } => {
  const { page, size, most } =
    token !== null && "page" in token.place ? token.place : { page: pageFirst, size: pageSize, most: pageSize }
  // A page that is not full tells that its number and limit do not say where it ends.
  if (size === null || most === null || records !== size) {
    return { place: { page: page + 1, size, most: null }, overlap: 0 }
  }
  const start = (page - pageFirst) * size
  const end = start + size
  const limit = overlappingLimit(start, end, most)
  return limit === null
    ? { place: { page: page + 1, size, most }, overlap: 0 }
    : { place: { page: pageFirst + Math.floor(end / limit), size: limit, most }, overlap: end % limit }
}

/**
 * The limit by which some page holds the record before `end` and goes on behind it as far as possible; null when all
 * limits cut there, which from 20 records a page on never happens (before 232,792,560 records).
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
export const nextLink = (header: string | undefined): string | null => {
  if (header === undefined) return null
  for (const match of header.matchAll(/<([^>]*)>((?:\s*;\s*[^\s=;,]+\s*(?:=\s*(?:"[^"]*"|[^\s;,]*))?)*)/g)) {
    const [, target, parameters] = match
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,]*))/i.exec(parameters ?? "")
    const relations = (rel?.[1] ?? rel?.[2] ?? "").toLowerCase().split(/\s+/)
    if (target !== undefined && relations.includes("next")) return target
  }
  return null
}
