/**
 * Lists: filters, order, pages (A-01..A-18).
 *
 * Promise: without modifiedsince records are ordered by id, with it by (lastchangedate, id). A page continues after the
 * last record of the page before, so that a record that does not change meanwhile is returned exactly once.
 * synced_through is fixed by the first page and stored in the cursor: every later commit has a stamp at or after it.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { isCancellable } from "../../../../src/catalogue/Resource.ts"
import { ApiError } from "../ApiError.ts"
import { hash } from "../random.ts"
import type { Renderer } from "../store/render.ts"
import { foldCase, isBefore, place } from "../store/Table.ts"
import type { Table, Version } from "../store/Table.ts"
import { printInstant, readInstant } from "../time.ts"
import type { Dialect } from "./dialect.ts"
import { readBoolean, readInclude, readInteger, readParameters } from "./parameters.ts"

type Test = (version: Version) => boolean

interface Query {
  readonly include: boolean
  readonly limit: number
  readonly tests: ReadonlyArray<Test>
  /** Records that can match, by id; null when every record can. */
  readonly candidates: ReadonlyArray<Version> | null
  /** The minimum stamp of listed records; null without modifiedsince. */
  readonly since: number | null
  readonly after: Position | null
  /** Number of records to skip, in the styles that count. */
  readonly skip: number
  readonly syncedThrough: string | null
  /** Parameters that a continuation must repeat. */
  readonly repeated: ReadonlyMap<string, string>
}

/** The last record of a page. */
interface Position {
  readonly stamp: number | null
  readonly id: number
}

/** The content of a cursor; opaque to callers. */
interface Cursor {
  readonly after: Position
  readonly synced: string | null
  readonly query: ReadonlyMap<string, string>
}

const printCursor = ({ after, synced, query }: Cursor): string =>
  Buffer.from(JSON.stringify([1, after.stamp, after.id, synced, Object.fromEntries(query)])).toString("base64url")

const isStamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$/

const readCursor = (text: string): Cursor => {
  try {
    const [version, stamp, id, synced, query] = JSON.parse(Buffer.from(text, "base64url").toString()) as Array<unknown>
    const isWhole =
      version === 1 &&
      (stamp === null || Number.isInteger(stamp)) &&
      Number.isSafeInteger(id) &&
      (synced === null || (typeof synced === "string" && isStamp.test(synced))) &&
      typeof query === "object" &&
      query !== null &&
      Object.values(query).every((value) => typeof value === "string")
    if (isWhole) {
      const after = { stamp: stamp as number | null, id: id as number }
      return { after, synced, query: new Map(Object.entries(query as Record<string, string>)) }
    }
  } catch {
    // Refused below, like any text that this server did not issue.
  }
  throw new ApiError("invalid_request", "cursor is none that this list gave", { field: "cursor" })
}

const pagingParameter = { cursor: "cursor", link: "cursor", page: "page", offset: "offset" } as const

/** Whether a list offers modifiedsince; a switch adds the four that have only lastchangedate (I-03). */
const hasModifiedSince = (resource: Resource, dialect: Dialect): boolean =>
  resource.modifiedSince || (dialect.modifiedSinceOnFour && resource.field.has("lastchangedate"))

/** All parameters of a list. */
export const listParameters = (resource: Resource, dialect: Dialect): ReadonlyArray<string> => [
  ...resource.filters.map(({ field }) => field),
  "cancel",
  ...(resource.field.has("externalid") ? ["externalid"] : []),
  ...(hasModifiedSince(resource, dialect) ? ["modifiedsince"] : []),
  "include",
  ...(dialect.limit === "unknown" ? [] : ["limit"]),
  pagingParameter[dialect.paging]
]

const readLimit = (parameters: ReadonlyMap<string, string>, dialect: Dialect): number => {
  const { pageDefault, pageMax } = dialect
  const text = dialect.limit === "ignored" ? undefined : parameters.get("limit")
  if (text === undefined) return Math.min(pageDefault, pageMax)
  const limit = readInteger("limit", text)
  if (limit > pageMax && dialect.limit === "clamped") return pageMax
  if (limit < 1 || limit > pageMax) {
    throw new ApiError("invalid_request", `limit must be from 1 to ${pageMax}`, { field: "limit" })
  }
  return limit
}

const readSince = (parameters: ReadonlyMap<string, string>, dialect: Dialect): number | null => {
  const text = parameters.get("modifiedsince")
  if (text === undefined) return null
  const since = readInstant(text)
  if (since === null) {
    throw new ApiError("invalid_type", "modifiedsince must be a time, RFC 3339 in UTC", { field: "modifiedsince" })
  }
  return dialect.modifiedSince === "exclusive" ? since + 1 : since
}

/** Whether cancelled records are included, hidden or the only ones. */
const readCancel = (resource: Resource, parameters: ReadonlyMap<string, string>, dialect: Dialect): Test | null => {
  const text = parameters.get("cancel") ?? (parameters.has("modifiedsince") ? "any" : "false")
  if (text !== "true" && text !== "false" && text !== "any") {
    throw new ApiError("invalid_enum", "cancel takes true, false or any", { field: "cancel" })
  }
  if (!isCancellable(resource) || text === "any") return null
  if (text === "false") return ({ cancelled }) => !cancelled
  const meaning = dialect.cancelTrue === "catalogue" ? resource.cancelFilter : dialect.cancelTrue
  return meaning === "only" ? ({ cancelled }) => cancelled : null
}

/** One filter: a test, and the value to look up in an index. */
const readFilter = (
  resource: Resource,
  name: string,
  match: "exact" | "partial",
  text: string
): { readonly test: Test; readonly value: string | number | boolean | null } => {
  const { type } = resource.field.get(name)!
  if (match === "partial") {
    // Every text contains an empty part, so an empty filter selects the empty texts.
    if (text === "") return { test: ({ values }) => values[name] === "", value: null }
    const part = foldCase(text)
    const contains: Test = ({ values }) => {
      const value = values[name]
      return typeof value === "string" && foldCase(value).includes(part)
    }
    return { test: contains, value: null }
  }
  const value =
    type._tag === "integer" ? readInteger(name, text) : type._tag === "boolean" ? readBoolean(name, text) : text
  return { test: ({ values }) => values[name] === value, value }
}

const readQuery = (table: Table, dialect: Dialect, query: string, now: number): Query => {
  const { resource } = table
  const input = readParameters(query, listParameters(resource, dialect))
  const style = pagingParameter[dialect.paging]
  const cursorText = style === "cursor" ? input.get("cursor") : undefined
  const cursor = cursorText === undefined ? null : readCursor(cursorText)
  // A cursor contains the query that it continues, so that it may be sent alone.
  const parameters = new Map([...(cursor?.query ?? []), ...input])
  const tests: Array<Test> = []
  let candidates: ReadonlyArray<Version> | null = null
  const filters = [...resource.filters, { field: "externalid", match: "exact" as const }]
  for (const { field, match } of filters) {
    const text = parameters.get(field)
    if (text === undefined) continue
    const { test, value } = readFilter(resource, field, match, text)
    if (value === null || candidates !== null) tests.push(test)
    else {
      candidates = table.where(field, value)
      // The index of a key ignores case where the key does; the filter does not.
      if (resource.key?.field === field && !resource.key.caseSensitive) tests.push(test)
    }
  }
  const cancel = readCancel(resource, parameters, dialect)
  if (cancel !== null) tests.push(cancel)
  const since = readSince(parameters, dialect)
  if (cursor !== null && (cursor.after.stamp === null) !== (since === null)) {
    throw new ApiError("invalid_request", "cursor belongs to a list of another order", { field: "cursor" })
  }
  const limit = readLimit(parameters, dialect)
  const synced = printInstant(dialect.modifiedSince === "exclusive" ? now - 1 : now)
  return {
    include: readInclude(parameters),
    limit,
    tests,
    candidates,
    since,
    after: cursor?.after ?? null,
    skip: readSkip(parameters, style, limit),
    syncedThrough: hasModifiedSince(resource, dialect) ? (cursor?.synced ?? synced) : null,
    repeated: new Map([...parameters].filter(([name]) => name !== style))
  }
}

const readSkip = (parameters: ReadonlyMap<string, string>, style: string, limit: number): number => {
  const text = style === "cursor" ? undefined : parameters.get(style)
  if (text === undefined) return 0
  const value = readInteger(style, text)
  const least = style === "page" ? 1 : 0
  if (value < least || value > 1_000_000_000) {
    throw new ApiError("invalid_request", `${style} must be from ${least}`, { field: style })
  }
  return style === "page" ? (value - 1) * limit : value
}

/**
 * Changed records in the order of their stamps, and within one stamp in an order drawn by `seed`. This is also a total
 * order, so that a position keeps its meaning during changes.
 */
function* shuffledTies(
  changed: ReadonlyArray<Version>,
  since: number,
  after: Position | null,
  seed: number
): Generator<Version> {
  const comesFirst = (a: number, b: number) => hash(seed, a) - hash(seed, b) || a - b
  const from = after?.stamp ?? since
  let index = place(changed, ({ stamp }) => stamp! < from)
  while (index < changed.length) {
    const { stamp } = changed[index]!
    const tied: Array<Version> = []
    while (index < changed.length && changed[index]!.stamp === stamp) tied.push(changed[index++]!)
    yield* tied
      .filter(({ id }) => after === null || stamp !== after.stamp || comesFirst(after.id, id) < 0)
      .toSorted((a, b) => comesFirst(a.id, b.id))
  }
}

/** The records of a query from its position on, in its order. */
function* recordsOf(table: Table, query: Query, tieOrder: number | null): Generator<Version> {
  const { since, after, candidates, tests } = query
  const passes = (version: Version) => tests.every((test) => test(version))
  if (since !== null) {
    const changed =
      candidates === null
        ? table.changes
        : candidates
            .filter((version) => version.stamp !== null)
            .toSorted((a, b) => (isBefore(a.stamp!, a.id, b.stamp!, b.id) ? -1 : 1))
    if (tieOrder !== null) {
      for (const version of shuffledTies(changed, since, after, tieOrder)) {
        if (table.isCurrent(version) && passes(version)) yield version
      }
      return
    }
    const start = place(changed, ({ stamp, id }) =>
      after === null ? stamp! < since : !isBefore(after.stamp!, after.id, stamp!, id)
    )
    for (let index = start; index < changed.length; index++) {
      const version = changed[index]!
      if (table.isCurrent(version) && passes(version)) yield version
    }
    return
  }
  const last = after?.id ?? -1
  if (candidates !== null) {
    for (const version of candidates) if ((after === null || version.id > last) && passes(version)) yield version
    return
  }
  const start = after === null ? 0 : place(table.order, (id) => id <= last)
  for (let index = start; index < table.order.length; index++) {
    const version = table.get(table.order[index]!)!
    if (passes(version)) yield version
  }
}

interface Page {
  readonly versions: ReadonlyArray<Version>
  readonly hasMore: boolean
  /** Number of matching records, in the styles that count. */
  readonly total: number | null
}

const takePage = (table: Table, query: Query, dialect: Dialect): Page => {
  const isCounting = dialect.paging === "page" || dialect.paging === "offset"
  const size = pageSize(query, dialect)
  const versions: Array<Version> = []
  let seen = 0
  for (const version of recordsOf(table, query, dialect.tieOrder)) {
    seen++
    if (seen <= query.skip) continue
    if (versions.length < size) versions.push(version)
    else if (!isCounting) return { versions, hasMore: true, total: null }
  }
  return { versions, hasMore: seen > query.skip + versions.length, total: isCounting ? seen : null }
}

/** The size of a page; a switch makes it vary, where a position determines the start of the next page. */
const pageSize = ({ limit, after, skip }: Query, { pageSizes, paging }: Dialect): number => {
  if (pageSizes === null || paging === "page") return limit
  return 1 + (hash(pageSizes, after?.id ?? skip, after?.stamp ?? 0) % limit)
}

export interface Listed {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** `base` is the absolute address of the list, for Link headers. */
export const list = (
  table: Table,
  renderer: Renderer,
  dialect: Dialect,
  query: string,
  now: number,
  base: string
): Listed => {
  const read = readQuery(table, dialect, query, now)
  const { versions, hasMore, total } = takePage(table, read, dialect)
  const next = hasMore ? nextOf(read, versions, dialect) : null
  const isBare = dialect.itemsKey === "bare"
  const headers: Record<string, string> = {}
  if (next !== null && (dialect.paging === "link" || isBare)) {
    const parameters = new URLSearchParams([...read.repeated, [pagingParameter[dialect.paging], next]])
    headers["Link"] = `<${base}?${parameters.toString()}>; rel="next"`
  }
  const key = dialect.itemsKey === "resource" ? table.resource.path : dialect.itemsKey
  // Joined once, because a page is long: adding text step by step would copy it each time.
  const parts = [isBare ? "[" : `{"${key}":[`]
  for (const [index, version] of versions.entries()) {
    if (index > 0) parts.push(",")
    parts.push(
      read.include
        ? renderer.renderWith(version, [["custom_fields", renderer.customFields(version)]])
        : renderer.render(version)
    )
  }
  parts.push(isBare ? "]" : `],"_meta":${metaOf(read, dialect, next, hasMore, total)}}`)
  return { body: parts.join(""), headers }
}

/** Entries below a record, all in one list envelope (J-01, J-05). */
export const envelope = (dialect: Dialect, entries: ReadonlyArray<string>): Listed => {
  const data = `[${entries.join(",")}]`
  if (dialect.itemsKey === "bare") return { body: data, headers: {} }
  const key = dialect.itemsKey === "resource" ? "data" : dialect.itemsKey
  const meta: Record<string, unknown> = { limit: dialect.pageMax }
  if (dialect.paging !== "link") meta["has_more"] = false
  if (dialect.paging === "cursor") meta["next_cursor"] = null
  return { body: `{"${key}":${data},"_meta":${JSON.stringify(meta)}}`, headers: {} }
}

/** The paging parameter's value for the next page. */
const nextOf = (query: Query, versions: ReadonlyArray<Version>, dialect: Dialect): string | null => {
  if (dialect.paging === "page") return String(query.skip / query.limit + 2)
  if (dialect.paging === "offset") return String(query.skip + versions.length)
  const last = versions.at(-1)
  if (last === undefined) return null
  const after = { stamp: query.since === null ? null : last.stamp, id: last.id }
  return printCursor({ after, synced: query.syncedThrough, query: query.repeated })
}

const metaOf = (
  query: Query,
  dialect: Dialect,
  next: string | null,
  hasMore: boolean,
  total: number | null
): string => {
  const meta: Record<string, unknown> = { limit: query.limit }
  if (dialect.paging === "page") meta["page"] = query.skip / query.limit + 1
  if (dialect.paging === "offset") meta["offset"] = query.skip
  if (total !== null) meta["total"] = total
  if (dialect.paging !== "link") meta["has_more"] = hasMore
  if (dialect.paging === "cursor") meta["next_cursor"] = next
  if (query.syncedThrough !== null && dialect.syncedThrough) meta["synced_through"] = query.syncedThrough
  return JSON.stringify(meta)
}
