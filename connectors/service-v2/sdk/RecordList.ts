/**
 * Lists of records, requested page by page while the program iterates.
 *
 * Promise: a list that ends without an error had every record that matched and did not change meanwhile. A list that
 * cannot promise this ends with an error (`client/Paging.ts`). No page is requested before the program needs it.
 */
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { isAfter } from "../../../src/connector/Instant.ts"
import { readFilteredPage } from "../client/Pages.ts"
import type { InvalidRecord, ListOptions, Page, RecordList } from "./Api.ts"
import { InvalidRecordError } from "./Errors.ts"
import { valueOf } from "./RecordDecoder.ts"
import type { Session } from "./Session.ts"

type Record = object

const parametersOf = (filters: object): ReadonlyArray<readonly [name: string, value: string]> =>
  Object.entries(filters)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => [name, String(value)])

/** A record that does not fit the catalogue, as an error. */
export const invalidRecord = (path: string, { id, field, reason, json }: InvalidRecord): InvalidRecordError => {
  const remedy = "report the record to the maintainers of this client; lists skip such records with `onInvalid`"
  const what = field === null ? "the record" : field
  return new InvalidRecordError(
    `${path} ${id ?? "without a number"}: ${what} ${reason}: ${remedy}`,
    { code: "invalid_record", field, remedy },
    id,
    json
  )
}

const earlier = (first: string | null, second: string | null): string | null =>
  first === null || second === null ? null : isAfter(first, second) === true ? second : first

class Records implements RecordList<Record> {
  syncedThrough: string | null = null
  private readonly session: Session
  private readonly resource: Resource
  private readonly filters: object
  private readonly options: ListOptions

  constructor(session: Session, resource: Resource, filters: object, options: ListOptions) {
    this.session = session
    this.resource = resource
    this.filters = filters
    this.options = options
  }

  readonly pages = (): AsyncIterable<Page<Record>> => this.eachPage()

  private async *eachPage(): AsyncGenerator<Page<Record>, void, undefined> {
    const filters = parametersOf(this.filters)
    const { resource } = this
    let token = this.options.from ?? null
    let position: string | null | undefined
    do {
      const request = { resource, filters, token }
      const page = await this.session.run((context) => readFilteredPage(context, request), this.options)
      position = position === undefined ? page.syncedThrough : earlier(position, page.syncedThrough)
      yield {
        records: page.records.map(valueOf),
        invalid: page.rejected.map(({ bytes, ...rejected }) => ({ ...rejected, json: bytes })),
        syncedThrough: page.syncedThrough,
        next: page.next
      }
      token = page.next
    } while (token !== null)
    this.syncedThrough = position
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Record, void, undefined> {
    for await (const { records, invalid } of this.eachPage()) {
      for (const one of invalid) {
        if (this.options.onInvalid === undefined) throw invalidRecord(this.resource.path, one)
        this.options.onInvalid(one)
      }
      yield* records
    }
  }

  readonly toArray = async (): Promise<ReadonlyArray<Record>> => {
    const records: Array<Record> = []
    for await (const record of this) records.push(record)
    return records
  }
}

export const make = (
  session: Session,
  resource: Resource,
  filters: object = {},
  options: ListOptions = {}
): RecordList<Record> => new Records(session, resource, filters, options)
