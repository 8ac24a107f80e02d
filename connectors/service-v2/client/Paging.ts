/**
 * From one page to the next.
 *
 * Promise: a scan ends only where the source says so. A page that announces more without saying where, a full page
 * that says nothing, and a page that comes again are errors, never ends. A page token says all that is needed to read
 * its page in another process, and carries enough of the way behind it to notice a circle.
 */
import * as SourceError from "../../../src/connector/SourceError.ts"
import type { BaseAddress } from "./BaseAddress.ts"
import { isObject, type JsonObject, member } from "./Envelope.ts"

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

/** Where a page is. */
type Place =
  | { readonly cursor: string }
  | { readonly page: number }
  | { readonly offset: number }
  /** Path and query below the base address. */
  | { readonly url: string }

/** What the token of a page says. */
export interface PageToken {
  readonly place: Place
  /** How many pages came before this one. */
  readonly step: number
  /**
   * What a later page is compared with: the place of the last page whose step was a power of two, so that a circle of
   * any length is noticed (Brent); for numbered pages the first record of the page before.
   */
  readonly mark: string
}

/** What a page said of itself. */
export interface PageFacts {
  readonly meta: JsonObject
  readonly link: string | undefined
  readonly records: number
  /** Number of the first record, to notice a page that comes again. */
  readonly firstId: string | null
}

/** What a page was asked for. */
export interface Asked {
  readonly token: PageToken | null
  /** Path and query below the base address. */
  readonly path: string
  readonly pageSize: number | null
}

/** Lengths at which services usually cut a page: a list as long as that may have been cut. */
const usualPageSizes: ReadonlySet<number> = new Set([100, 200, 250, 500, 1000, 2000, 5000, 10_000])

export const encode = (token: PageToken): string =>
  JSON.stringify({ ...token.place, step: token.step, mark: token.mark })

/** Reads a page token; null when it is none of this connector's. */
export const decode = (text: string): PageToken | null => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (!isObject(value)) return null
  const step = member(value, "step")
  const mark = member(value, "mark")
  const place = placeOf(value)
  if (place === null || typeof mark !== "string") return null
  if (typeof step !== "number" || !Number.isSafeInteger(step) || step < 1) return null
  return { place, step, mark }
}

const placeOf = (value: JsonObject): Place | null => {
  const cursor = member(value, "cursor")
  if (typeof cursor === "string" && cursor !== "") return { cursor }
  const url = member(value, "url")
  if (typeof url === "string" && url.startsWith("/")) return { url }
  const page = member(value, "page")
  if (typeof page === "number" && Number.isSafeInteger(page)) return { page }
  const offset = member(value, "offset")
  if (typeof offset === "number" && Number.isSafeInteger(offset)) return { offset }
  return null
}

/** The paging parameter that a token adds to a request; null when the token is a whole address. */
export const parameter = (place: Place, settings: PagingSettings): readonly [name: string, value: string] | null => {
  if ("cursor" in place) return [settings.cursorParameter, place.cursor]
  if ("page" in place) return [settings.pageParameter, String(place.page)]
  if ("offset" in place) return [settings.offsetParameter, String(place.offset)]
  return null
}

const broken = (detail: string) => new SourceError.PagingBroken({ detail })

/** The next page's token; null when this was the last page. */
export const next = (
  facts: PageFacts,
  asked: Asked,
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
  if (found !== null) return follow(found, asked, base)
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

const follow = (found: Continuation, asked: Asked, base: BaseAddress): PageToken | SourceError.PagingBroken => {
  let place: { readonly cursor: string } | { readonly url: string }
  if ("cursor" in found) {
    place = { cursor: found.cursor }
  } else {
    const url = base.below(found.link, asked.path)
    if (url === null) return broken("the link to the next page leaves the configured base address")
    place = { url }
  }
  const mark = "cursor" in place ? place.cursor : place.url
  const { token } = asked
  if (token === null) {
    return mark === asked.path ? broken("the page names itself as the next one") : { place, step: 1, mark }
  }
  const self = "cursor" in token.place ? token.place.cursor : "url" in token.place ? token.place.url : null
  if (mark === token.mark || mark === self) {
    return broken(`a page names one that was read before as the next one, after ${token.step + 1} pages`)
  }
  const step = token.step + 1
  return { place, step, mark: Number.isInteger(Math.log2(step)) ? mark : token.mark }
}

const nextNumbered = (
  { meta, records, firstId }: PageFacts,
  { token }: Asked,
  settings: PagingSettings,
  hasMore: unknown,
  mode: "page" | "offset"
): PageToken | null | SourceError.PagingBroken => {
  if (hasMore === false) return null
  if (records === 0) return hasMore === true ? broken("an empty page announces more records") : null
  // A page shorter than the source's own limit is the last one. What we asked for proves nothing: a source may give
  // less than it was asked for and not say so; then the scan ends at the first empty page.
  const limit = member(meta, "limit")
  if (hasMore !== true && typeof limit === "number" && records < limit) return null
  const mark = firstId ?? ""
  if (token !== null && mark !== "" && mark === token.mark) {
    const parameter = mode === "page" ? settings.pageParameter : settings.offsetParameter
    return broken(`the same page comes again: the source does not heed the parameter ${parameter}`)
  }
  const step = (token?.step ?? 0) + 1
  if (mode === "page") {
    const page = token !== null && "page" in token.place ? token.place.page : settings.pageFirst
    return { place: { page: page + 1 }, step, mark }
  }
  const offset = token !== null && "offset" in token.place ? token.place.offset : 0
  return { place: { offset: offset + records }, step, mark }
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
