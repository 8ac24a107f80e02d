/**
 * The token of a page: all that is needed to read the page in another process, and enough of the way behind it to notice
 * a circle.
 */
import { isObject, type JsonObject, member } from "./Envelope.ts"

/** Where a page is. */
export type Place =
  | { readonly cursor: string }
  /**
   * `size` is the limit that the number counts in; null when none is sent. `most` is the limit that may be asked for
   * when pages are made to overlap; null when the source's pages are not cut where the limit says.
   */
  | { readonly page: number; readonly size: number | null; readonly most: number | null }
  | { readonly offset: number }
  /** Path and query below the base address. */
  | { readonly url: string }

/** What the token of a page says. */
export interface PageToken {
  readonly place: Place
  /** How many pages came before this one. */
  readonly step: number
  /**
   * The place of the last page whose step was a power of two, so that a circle of any length is noticed (Brent); empty
   * for counted pages.
   */
  readonly mark: string
  /** How the page joins the one before; null where the source's own mark says it. */
  readonly edge: PageBoundary | null
}

/** Where the pages read so far end. */
export interface PageBoundary {
  /** Identity of the first record of the page before, to notice a page that comes again. */
  readonly first: string
  /** Identity of the last record that was read. */
  readonly last: string
  /** Path of the page before, which must still end with `last`; null when the page asked for must hold it. */
  readonly before: string | null
  /** How many records of the page asked for were read already when nothing moves, `last` being the last of them. */
  readonly overlap: number
}

export const encode = ({ place, step, mark, edge }: PageToken): string =>
  JSON.stringify({ ...place, step, mark, ...(edge === null ? {} : { edge }) })

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
  const edge = edgeOf(member(value, "edge"))
  if (place === null || edge === undefined || typeof mark !== "string") return null
  // A counted page that does not say what it joins could pass records by.
  if (edge === null && ("page" in place || "offset" in place)) return null
  if (typeof step !== "number" || !Number.isSafeInteger(step) || step < 1) return null
  return { place, step, mark, edge }
}

/** Undefined when it is no edge. */
const edgeOf = (value: unknown): PageBoundary | null | undefined => {
  if (value === undefined) return null
  if (!isObject(value)) return undefined
  const [first, last, before] = ["first", "last", "before"].map((name) => member(value, name))
  if (typeof first !== "string" || typeof last !== "string") return undefined
  if (before !== null && !(typeof before === "string" && before.startsWith("/"))) return undefined
  const overlap = member(value, "overlap")
  if (typeof overlap !== "number" || !Number.isSafeInteger(overlap) || overlap < 0) return undefined
  return { first, last, before, overlap }
}

const isLimit = (value: unknown): value is number | null =>
  value === null || (typeof value === "number" && Number.isSafeInteger(value) && value >= 1)

const placeOf = (value: JsonObject): Place | null => {
  const cursor = member(value, "cursor")
  if (typeof cursor === "string" && cursor !== "") return { cursor }
  const url = member(value, "url")
  if (typeof url === "string" && url.startsWith("/")) return { url }
  const page = member(value, "page")
  const size = member(value, "size")
  const most = member(value, "most")
  if (typeof page === "number" && Number.isSafeInteger(page) && isLimit(size) && isLimit(most)) {
    return { page, size, most }
  }
  const offset = member(value, "offset")
  if (typeof offset === "number" && Number.isSafeInteger(offset)) return { offset }
  return null
}
