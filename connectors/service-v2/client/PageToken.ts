/**
 * The token of a page: the position of the page for any process, and enough of the path to it to detect a cycle.
 */
import { isObject, type JsonObject, member } from "./Envelope.ts"

/** The position of a page. */
export type Place =
  | { readonly cursor: string }
  /**
   * `size` is the page size that the number counts in; null when no limit is sent. `most` is the largest limit that may
   * be requested to make pages overlap; null when the source does not cut pages at the limit.
   */
  | { readonly page: number; readonly size: number | null; readonly most: number | null }
  | { readonly offset: number }
  /** Path and query below the base address. */
  | { readonly url: string }

/** The content of a page token. */
export interface PageToken {
  readonly place: Place
  /** Number of pages before this one. */
  readonly step: number
  /**
   * The position of the last page whose step was a power of two, to detect a cycle of any length (Brent); empty for
   * counted pages.
   */
  readonly mark: string
  /** How the page joins the one before; null where the source's own token ensures it. */
  readonly edge: PageBoundary | null
}

/** The end of the pages read so far. */
export interface PageBoundary {
  /** Identity of the first record of the page before, to detect a repeated page. */
  readonly first: string
  /** Identity of the last record that was read. */
  readonly last: string
  /** Path of the page before, which must still end with `last`; null when the requested page must contain `last`. */
  readonly before: string | null
  /** Number of records of the requested page that were read already if nothing moved; `last` is the last of them. */
  readonly overlap: number
}

export const encode = ({ place, step, mark, edge }: PageToken): string =>
  JSON.stringify({ ...place, step, mark, ...(edge === null ? {} : { edge }) })

/** Reads a page token; null when it was not made by this connector. */
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
  // A counted page without the record that it joins could skip records.
  if (edge === null && ("page" in place || "offset" in place)) return null
  if (typeof step !== "number" || !Number.isSafeInteger(step) || step < 1) return null
  return { place, step, mark, edge }
}

/** Undefined when the value is not a boundary. */
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
