/**
 * Paging through the records of a resource.
 *
 * Promise: the records come from the bytes of the answer where possible, and from its text otherwise. Both give the
 * same records.
 */
import * as Effect from "effect/Effect"
import { isCancellable, type Resource } from "../../../src/catalogue/Resource.ts"
import type { Page, PageRequest, RawPage } from "../../../src/connector/Connector.ts"
import type * as SourceError from "../../../src/connector/SourceError.ts"
import { type Answer, answeredAt, Failed } from "./Answer.ts"
import { type ClientContext, includeParameters, sourceOf, withOrWithoutInclude } from "./ClientContext.ts"
import * as Decode from "./Decode.ts"
import { findList, member, Unreadable } from "./Envelope.ts"
import type * as Listing from "./Listing.ts"
import { once } from "./Listing.ts"
import type * as Paging from "./Paging.ts"
import { isStorable } from "./Values.ts"

/** The records of a page, decoded on use. */
interface Records extends Listing.Listed {
  readonly decoded: () => Decode.Decoded
}

/** A request for a page with the filters as the source names them. */
export interface FilteredRequest extends Pick<PageRequest, "resource" | "token"> {
  readonly filters: ReadonlyArray<Listing.Parameter>
}

/** Whether lists can be filtered by a value of the field. */
const isFilter = (resource: Resource, field: string): boolean =>
  resource.filters.some((filter) => filter.field === field) ||
  (field === "externalid" && resource.field.has("externalid"))

const filtersOf = ({ resource, since, where = [] }: PageRequest): ReadonlyArray<Listing.Parameter> => {
  const parameters: Array<Listing.Parameter> = where.map(({ field, value }) => [field, value])
  // With modifiedsince the source includes cancelled records by default.
  if (since !== null && resource.modifiedSince) parameters.push(["modifiedsince", since])
  else if (isCancellable(resource)) parameters.push(["cancel", "any"])
  return parameters
}

/** The records decoded from the bytes; null when they must be decoded from the text. */
const readBytes = ({ decoderOf, itemsKey }: ClientContext, resource: Resource, answer: Answer) => {
  const read = decoderOf(resource).bytes(answer.bytes)
  const list = read === null ? null : findList({ text: "", value: read.envelope }, itemsKey, resource.path)
  // The list that was decoded must be the one that `findList` selects.
  return read === null || list === null || list instanceof Unreadable || list.items !== read.emptyList
    ? null
    : { read, meta: list.meta }
}

/** The records of an answer, decoded from the bytes where possible. */
const readRecords =
  (context: ClientContext, resource: Resource) =>
  (answer: Answer): Records | Failed => {
    const page = readBytes(context, resource, answer)
    const whole = once(() => context.listing.texts(resource.path)(answer))
    if (page === null) {
      const listed = whole()
      if (listed instanceof Failed) return listed
      const { text, list } = listed
      return { ...listed, decoded: () => context.decoderOf(resource).list(text, list.start()) }
    }
    const plain = (): Listing.Plain => {
      const listed = whole()
      if (listed instanceof Failed) throw new Error("the bytes of an answer contain a list, but its text does not")
      return listed
    }
    const { read, meta } = page
    const facts: Paging.PageFacts = {
      meta,
      link: answer.headers["link"],
      records: read.records.length + read.rejected.length,
      identities: () => plain().facts.identities()
    }
    return { answer, texts: () => plain().texts(), facts, decoded: () => read }
  }

/** The page of a request, joined to the one before. */
const fetchPage = <L extends Listing.Listed>(
  context: ClientContext,
  request: PageRequest,
  read: (answer: Answer) => L | Failed
) =>
  Effect.suspend(() => {
    const { resource, since, where = [] } = request
    const unknown = where.find(({ field }) => !isFilter(resource, field))
    if (unknown !== undefined) return Effect.die(new Error(`${resource.path} has no filter by "${unknown.field}"`))
    // A full list is worth the trial: it has the most pages.
    const mayTrySize = since === null && where.length === 0
    return turnPage(context, { ...request, filters: filtersOf(request), mayTrySize, read })
  })

/** The page of a list with these filters. */
const turnPage = <L extends Listing.Listed>(
  context: ClientContext,
  { resource, token, filters, mayTrySize, read }: FilteredRequest & Pick<Listing.ListCall<L>, "mayTrySize" | "read">
) => {
  const call = {
    path: `/${resource.path}`,
    parameters: () => [...filters, ...includeParameters(context, resource)],
    name: resource.path,
    mayTrySize: mayTrySize === true,
    read
  }
  return withOrWithoutInclude(context, resource, context.listing.turn(call, token))
}

/** The records of a page, and what is known about it. */
const decodePage =
  (context: ClientContext, resource: Resource) =>
  (page: Listing.LinkedPage<Records>): Page => {
    const { listed } = page
    const { answer, texts, facts } = listed
    const decoder = context.decoderOf(resource)
    const { records, rejected } = listed.decoded()
    // The last records of the page before are repeated on purpose.
    const { repeated } = page
    const isRejectedAgain = (at: number) => Decode.isRejected(decoder.one(texts()[at]!, 0, texts()[at]!.length))
    const rejectedAgain = Array.from({ length: repeated }, (_, at) => at).filter(isRejectedAgain).length
    const syncedThrough = member(facts.meta, "synced_through")
    return {
      records: repeated === 0 ? records : records.slice(repeated - rejectedAgain),
      rejected: repeated === 0 ? rejected : rejected.slice(rejectedAgain),
      next: page.next,
      syncedThrough:
        typeof syncedThrough === "string" && syncedThrough !== "" && isStorable(syncedThrough) ? syncedThrough : null,
      beganAt: answer.beganAt,
      answeredAt: answeredAt(answer.headers),
      source: sourceOf("GET", page.path, answer),
      bytes: page.bytes,
      attempts: page.attempts
    }
  }

/** Reads a page and decodes its records. */
export const readPage = (context: ClientContext, request: PageRequest): Effect.Effect<Page, SourceError.SourceError> =>
  Effect.map(fetchPage(context, request, readRecords(context, request.resource)), decodePage(context, request.resource))

/** Reads a page of a list with any filters that the source offers. */
export const readFilteredPage = (
  context: ClientContext,
  request: FilteredRequest
): Effect.Effect<Page, SourceError.SourceError> =>
  Effect.suspend(() => {
    const mayTrySize = request.filters.length === 0
    const read = readRecords(context, request.resource)
    return Effect.map(turnPage(context, { ...request, mayTrySize, read }), decodePage(context, request.resource))
  })

/** Reads a page and keeps its records as text. */
export const readRawPage = (
  context: ClientContext,
  request: PageRequest
): Effect.Effect<RawPage, SourceError.SourceError> =>
  Effect.map(fetchPage(context, request, context.listing.texts(request.resource.path)), (page): RawPage => {
    const texts = page.listed.texts()
    return {
      records: page.repeated === 0 ? texts : texts.slice(page.repeated),
      next: page.next,
      attempts: page.attempts
    }
  })
