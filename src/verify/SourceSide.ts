/**
 * The source's side of a comparison: pages as bytes, records by number, and a count of the requests.
 *
 * A list that leads back to a page already read, or that continues without new records, fails instead of running
 * forever.
 */
import * as Effect from "effect/Effect"
import type { ConnectorShape, RawPage, Where } from "../connector/Connector.ts"
import { cursorFrom, isAfter } from "../connector/Instant.ts"
import { emptyPagesMax, makeNews } from "../connector/Repeats.ts"
import { PagingBroken, SourceError } from "../connector/SourceError.ts"
import type { Table } from "../warehouse/Table.ts"
import { type TextReader, textReader } from "./Compare.ts"
import * as Expected from "./Expected.ts"

export interface SourceSide extends TextReader {
  readonly connector: ConnectorShape
  readonly resource: Table["resource"]
  /** Requests so far, also those of a comparison that fails. */
  requests: number
}

/** A scan whose pages moved or whose token expired begins again this often. */
const restartsMax = 2

export const make = (connector: ConnectorShape, table: Table): SourceSide => ({
  connector,
  resource: table.resource,
  ...textReader(table),
  requests: 0
})

/**
 * Whether absence by number means deleted. Of a resource that only the configuration names it may mean that the source
 * does not answer by number.
 */
export const canRetrieve = ({ resource }: SourceSide): boolean =>
  resource.operations.includes("R") && resource.basis !== "configured"

/** A page, and of its records those that are kept. */
export interface ReadPage extends RawPage {
  readonly sent: RawPage["records"]
}

/** Reads a page of the records with a value; null: of all records. */
export const readPage = (
  source: SourceSide,
  token: string | null,
  where: Where | null
): Effect.Effect<ReadPage, SourceError> => {
  const { resource } = source
  const since = cursorFrom(resource.since)
  const filters = where !== null ? [where] : since === null ? resource.where : []
  return Effect.map(source.connector.rawPage({ resource, since, token, where: filters }), (page) => {
    source.requests += page.attempts
    const { records: sent } = page
    return { ...page, sent, records: sent.filter((text) => Expected.passes(resource, text)) }
  })
}

/** Whether scans read a record: it changed at the resource's `since` or later. */
export const isScanned = ({ resource: { since } }: SourceSide, { changedAt }: Expected.ExpectedRow): boolean =>
  since === null || (changedAt !== null && isAfter(since, changedAt) !== true)

const pagingBroken = ({ resource: { path } }: SourceSide, detail: string) =>
  new SourceError({
    reason: new PagingBroken({ detail }),
    request: { method: "GET", path: `/${path}`, requestId: null }
  })

/** Visits every page of a list in order. The next page is requested while one is visited. */
export const eachPage = Effect.fnUntraced(function* <E>(
  source: SourceSide,
  where: Where | null,
  visit: (page: RawPage, token: string | null) => Effect.Effect<unknown, E>
): Effect.fn.Return<void, SourceError | E> {
  const tokens = new Set<string>()
  const isNews = makeNews()
  let token: string | null = null
  let pagesWithoutNews = 0
  let page = yield* readPage(source, null, where)
  for (;;) {
    const next: string | null = page.next
    if (next === null) {
      yield* visit(page, token)
      return
    }
    pagesWithoutNews = isNews(page.sent.map((text) => source.matcher.idOf(text) ?? text)) ? 0 : pagesWithoutNews + 1
    if (pagesWithoutNews >= emptyPagesMax) {
      return yield* pagingBroken(source, `${pagesWithoutNews} pages in a row had no new record and named a next page`)
    }
    if (tokens.has(next)) return yield* pagingBroken(source, "a page leads back to one already read")
    tokens.add(next)
    const [, following] = yield* Effect.all([visit(page, token), readPage(source, next, where)], { concurrency: 2 })
    token = next
    page = following
  }
})

/** Whether a scan may succeed when it begins again at the first page. */
export const isRestartable = (error: unknown): boolean =>
  error instanceof SourceError && (error.reason._tag === "PageDrift" || error.reason._tag === "PageTokenRefused")

/** Begins a scan again, from its first page, while that may help. */
export const withRestarts = <A, E, R>(scan: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(scan, { times: restartsMax, while: isRestartable })

/** A record that was requested by its number. */
export interface RetrievedRecord {
  readonly id: string
  /** Null when the source has none. */
  readonly found: Expected.ExpectedRow | null
}

/** Records that are requested at the same time. */
const concurrency = 4

const retrieve = (source: SourceSide, id: string): Effect.Effect<RetrievedRecord, SourceError> =>
  Effect.map(source.connector.get(source.resource, id), ({ record, rejected }) => {
    source.requests += 1
    if (rejected !== null) return { id, found: source.reader.raw(rejected.bytes) }
    return { id, found: record === null ? null : source.reader.record(record) }
  })

export const retrieveAll = (
  source: SourceSide,
  ids: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<RetrievedRecord>, SourceError> =>
  Effect.forEach(ids, (id) => retrieve(source, id), { concurrency })

/** The records that the source has. */
export const presentRecords = (records: ReadonlyArray<RetrievedRecord>): ReadonlyArray<Expected.ExpectedRow> =>
  records.flatMap(({ found }) => (found === null ? [] : [found]))

/** The numbers of records that the source does not have. */
export const absentIds = (records: ReadonlyArray<RetrievedRecord>): ReadonlyArray<string> =>
  records.filter(({ found }) => found === null).map(({ id }) => id)
