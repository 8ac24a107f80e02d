/**
 * Pages of entries that are not records of the store: subscriptions and delivery attempts.
 *
 * Promise: parameters, envelope and paging styles are those of every other list (A-01..A-03). A page continues after
 * the last entry of the page before, so that new entries do not move it.
 */
import { ApiError } from "../ApiError.ts"
import type { Dialect } from "../http/dialect.ts"
import { readInteger } from "../http/parameters.ts"
import { hash } from "../random.ts"

/** One entry, with the number that determines its position. */
export interface Entry {
  readonly place: number
  readonly text: string
}

export interface Paged {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

const parameterOf = ({ paging }: Dialect): "cursor" | "page" | "offset" => (paging === "link" ? "cursor" : paging)

/** The parameters of a list beside its filters. */
export const pageParameters = (dialect: Dialect): ReadonlyArray<string> => ["limit", parameterOf(dialect)]

const readCount = (parameters: ReadonlyMap<string, string>, name: string, least: number, most: number) => {
  const text = parameters.get(name)
  if (text === undefined) return null
  const count = readInteger(name, text)
  if (count >= least && count <= most) return count
  throw new ApiError("invalid_request", `${name} must be from ${least} to ${most}`, { field: name })
}

const printCursor = (place: number, filters: ReadonlyMap<string, string>): string =>
  Buffer.from(JSON.stringify([2, place, Object.fromEntries(filters)])).toString("base64url")

/** The parameters with those of the cursor, which may be sent alone; and the position after which it continues. */
export const readCursor = (
  parameters: ReadonlyMap<string, string>
): { readonly after: number | null; readonly all: ReadonlyMap<string, string> } => {
  const text = parameters.get("cursor")
  if (text === undefined) return { after: null, all: parameters }
  try {
    const [version, after, query] = JSON.parse(Buffer.from(text, "base64url").toString()) as Array<unknown>
    const isOurs = version === 2 && Number.isSafeInteger(after) && typeof query === "object" && query !== null
    if (isOurs && Object.values(query).every((value) => typeof value === "string")) {
      return {
        after: after as number,
        all: new Map([...Object.entries(query as Record<string, string>), ...parameters])
      }
    }
  } catch {
    // Refused below, like any text that this server did not issue.
  }
  throw new ApiError("invalid_request", "cursor is none that this list gave", { field: "cursor" })
}

const metaOf = (dialect: Dialect, limit: number, skip: number, total: number, next: string | null): string => {
  const { paging } = dialect
  return JSON.stringify({
    limit,
    ...(paging === "page" ? { page: skip / limit + 1 } : {}),
    ...(paging === "offset" ? { offset: skip } : {}),
    ...(paging === "page" || paging === "offset" ? { total } : {}),
    ...(paging === "link" ? {} : { has_more: next !== null }),
    ...(paging === "cursor" ? { next_cursor: next } : {})
  })
}

/**
 * `entries` are all matching ones, by ascending or descending position. `key` is the list's name under the dialect
 * `resource`. `address` is its absolute address, for Link headers.
 */
export const page = (
  entries: ReadonlyArray<Entry>,
  order: "ascending" | "descending",
  parameters: ReadonlyMap<string, string>,
  after: number | null,
  dialect: Dialect,
  key: string,
  address: string
): Paged => {
  const { pageMax, pageDefault, pageSizes, itemsKey, paging } = dialect
  const style = parameterOf(dialect)
  const limit = readCount(parameters, "limit", 1, pageMax) ?? Math.min(pageDefault, pageMax)
  const counted = style === "cursor" ? null : readCount(parameters, style, style === "page" ? 1 : 0, 1_000_000_000)
  const isAfter = ({ place }: Entry) => after === null || (order === "descending" ? place < after : place > after)
  const rest = style === "cursor" ? entries.filter(isAfter) : entries
  const skip = counted === null ? 0 : style === "page" ? (counted - 1) * limit : counted
  const size = pageSizes === null || style === "page" ? limit : 1 + (hash(pageSizes, after ?? skip) % limit)
  const shown = rest.slice(skip, skip + size)
  const last = shown.at(-1)
  const repeated = new Map([...parameters].filter(([name]) => name !== style))
  const hasMore = last !== undefined && skip + shown.length < rest.length
  const next = !hasMore
    ? null
    : style === "page"
      ? String(skip / limit + 2)
      : style === "offset"
        ? String(skip + shown.length)
        : printCursor(last.place, repeated)
  const headers: Record<string, string> = {}
  if (next !== null && (paging === "link" || itemsKey === "bare")) {
    headers["Link"] = `<${address}?${new URLSearchParams([...repeated, [style, next]]).toString()}>; rel="next"`
  }
  const items = `[${shown.map(({ text }) => text).join(",")}]`
  if (itemsKey === "bare") return { body: items, headers }
  const meta = metaOf(dialect, limit, skip, entries.length, next)
  return { body: `{"${itemsKey === "resource" ? key : itemsKey}":${items},"_meta":${meta}}`, headers }
}
