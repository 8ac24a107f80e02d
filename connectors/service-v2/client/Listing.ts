/**
 * Paging through any list of the API, one request after the other.
 *
 * Promise: a page joins the one before, or the result is an error ({@link Paging}). The token of the next page is
 * opaque text that never contains the token of the company and leads only below the base address.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as SourceError from "../../../src/connector/SourceError.ts"
import { type Answer, type RequestContext, failure, Failed, foreignAttemptsMax } from "./Answer.ts"
import type { BaseAddress } from "./BaseAddress.ts"
import { findList, type List, member, parse, Unreadable } from "./Envelope.ts"
import type { Call, Exchange } from "./Exchange.ts"
import { elements } from "./JsonText.ts"
import type * as PageSize from "./PageSize.ts"
import * as PageToken from "./PageToken.ts"
import * as Paging from "./Paging.ts"

export type Read<A> = (answer: Answer, asking: RequestContext) => A | Failed

/** Reads answers with a success status; the others become failures. */
export const whenOk =
  <A>(read: (answer: Answer) => A | Failed): Read<A> =>
  (answer, asking) =>
    answer.status >= 200 && answer.status < 300 ? read(answer) : failure(answer, asking)

export const malformed = ({ requestId }: Answer, { detail, settled }: Unreadable): Failed =>
  new Failed(new SourceError.Malformed({ detail }), requestId, settled ? foreignAttemptsMax : undefined)

export type Parameter = readonly [name: string, value: string]

export const query = (parameters: ReadonlyArray<Parameter>): string =>
  parameters.length === 0
    ? ""
    : `?${parameters.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&")}`

export const once = <A extends object>(make: () => A): (() => A) => {
  let known: A | null = null
  return () => (known ??= make())
}

/** The JSON text of each record of a list. */
const recordTexts = (text: string, list: List): ReadonlyArray<string> => {
  const ranges = elements(text, list.start())
  return list.items.map((_, at) => text.slice(ranges[2 * at], ranges[2 * at + 1]))
}

/** A list answer, read as far as paging needs. */
export interface Listed {
  readonly answer: Answer
  /** JSON text of each record, byte for byte. */
  readonly texts: () => ReadonlyArray<string>
  readonly facts: Paging.PageFacts
}

/** A list that was read from its text. */
export interface Plain extends Listed {
  readonly text: string
  readonly list: List
}

/** A page of a list, and the token of the next one. */
export interface LinkedPage<L extends Listed> extends Paging.Joint {
  readonly listed: L
  readonly path: string
  readonly next: string | null
  /** Requests and bytes of this page, including those to read the page before once more. */
  readonly attempts: number
  readonly bytes: number
}

/** A list and how it is read. */
export interface ListCall<L extends Listed> {
  /** Below the base address, without a query. */
  readonly path: string
  /** Its filters, evaluated when a request is sent. */
  readonly parameters: () => ReadonlyArray<Parameter>
  /** Another possible name of the list in its answer: some installations name it after its content. */
  readonly name: string
  /** Whether a page size may be tried that the source has not accepted yet; absent where only a configured one is sent. */
  readonly mayTrySize?: boolean
  readonly read: (answer: Answer) => L | Failed
}

export interface Listing {
  /** Reads the list of an answer from its text. */
  readonly texts: (name: string) => (answer: Answer) => Plain | Failed
  /** Requests the page of a token; null is the first page. */
  readonly turn: <L extends Listed>(
    call: ListCall<L>,
    token: string | null
  ) => Effect.Effect<LinkedPage<L>, SourceError.SourceError>
}

export interface ListingOptions {
  readonly base: BaseAddress
  readonly token: Redacted.Redacted
  /** Records per page; null sends no limit. A function finds the size out. */
  readonly pageSize: number | null | PageSize.RequestSized
  readonly paging: Paging.PagingSettings
  /** The member that holds the records of a list; null detects it. */
  readonly itemsKey: string | null
}

/** Reads the list of an answer from its text. */
const readTexts =
  (itemsKey: string | null): Listing["texts"] =>
  (name) =>
  (answer) => {
    const parsed = parse(answer.bytes)
    if (parsed instanceof Unreadable) return malformed(answer, parsed)
    const list = findList(parsed, itemsKey, name)
    if (list instanceof Unreadable) return malformed(answer, list)
    const each = once(() => recordTexts(parsed.text, list))
    const facts: Paging.PageFacts = {
      meta: list.meta,
      link: answer.headers["link"],
      records: list.items.length,
      identities: once(() => list.items.map((item, at) => Paging.identity(item, () => each()[at]!)))
    }
    return { answer, text: parsed.text, list, texts: each, facts }
  }

/** The size that a token fixes; null where it fixes that none is sent, undefined where the size is free. */
const sizeOf = (place: PageToken.Place, limitParameter: string): number | null | undefined => {
  if ("page" in place) return place.size
  if (!("url" in place)) return undefined
  const limit = Number(new URLSearchParams(place.url.split("?")[1] ?? "").get(limitParameter) ?? Number.NaN)
  return Number.isSafeInteger(limit) && limit >= 1 ? limit : null
}

/** What a page shows about its size. */
const measure = ({ listed: { answer, facts }, next }: LinkedPage<Listed>): PageSize.Measured => {
  const limit = member(facts.meta, "limit")
  const isStated = typeof limit === "number" && Number.isSafeInteger(limit) && limit >= facts.records
  return {
    stated: isStated && next !== null ? limit : null,
    records: facts.records,
    beganAt: answer.beganAt
  }
}

/** The connector's own parameters that do not select a page. */
const filters = ["modifiedsince", "cancel", "include", "delivered", "abandoned", "eventtype"]

/** A page, its continuation, and whether the page before must be read once more. */
const readPage =
  <L extends Listed>(
    { base, pageSize, paging, token }: ListingOptions,
    { read }: ListCall<L>,
    mark: PageToken.PageToken | null,
    { path, size }: { readonly path: string; readonly size: number | null }
  ) =>
  (answer: Answer): LinkedPage<L> | Failed => {
    const listed = read(answer)
    if (listed instanceof Failed) return listed
    const joint = Paging.join(listed.facts, mark)
    if (!("again" in joint)) return new Failed(joint, answer.requestId)
    const isConfigured = typeof pageSize === "number"
    const next = Paging.next(listed.facts, { token: mark, path, pageSize: size, isConfigured }, paging, base)
    if (next instanceof SourceError.PagingBroken) return new Failed(next, answer.requestId)
    const nextText = next === null ? null : PageToken.encode(next)
    if (nextText !== null && nextText.includes(Redacted.value(token))) {
      const detail = "the link to the next page carries the token, which must not be part of an address"
      return new Failed(new SourceError.PagingBroken({ detail }), answer.requestId)
    }
    return { ...joint, listed, path, next: nextText, attempts: answer.attempts, bytes: answer.bytes.length }
  }

export const make = (exchange: Exchange, options: ListingOptions): Listing => {
  const { base, pageSize, paging, itemsKey } = options
  const pageParameters = [paging.cursorParameter, paging.pageParameter, paging.offsetParameter]
  const ownParameters: ReadonlySet<string> = new Set([paging.limitParameter, ...filters])
  /** Parameters that a refusal of the page may name: the known ones, and those that the source put into a link. */
  const pageParametersOf = (path: string): ReadonlyArray<string> => {
    const given = new URLSearchParams(path.includes("?") ? path.slice(path.indexOf("?") + 1) : "")
    return [...pageParameters, ...[...given.keys()].filter((name) => !ownParameters.has(name))]
  }

  const get = <A>(path: string, isByToken: boolean, read: Read<A>, attemptsMaxOf?: Call["attemptsMaxOf"]) =>
    exchange.send(
      {
        method: "GET",
        path,
        // Lists only: a proxy that compresses may change the ETag of a record, which names its version.
        headers: { "accept-encoding": "gzip" },
        body: null,
        pageParameters: isByToken ? pageParametersOf(path) : null,
        attemptsMaxOf
      },
      read
    )

  const configured = typeof pageSize === "function" ? null : pageSize

  const addressOf = (
    { path, parameters }: ListCall<Listed>,
    mark: PageToken.PageToken | null,
    requested: number | null
  ): string => {
    if (mark !== null && "url" in mark.place) return mark.place.url
    // A page number counts in the page size of its time, whatever is requested now.
    const size = mark !== null && "page" in mark.place ? mark.place.size : requested
    const place = mark === null ? null : Paging.parameter(mark.place, paging)
    const limit: ReadonlyArray<Parameter> = size === null ? [] : [[paging.limitParameter, String(size)]]
    return `${path}${query([...limit, ...parameters(), ...(place === null ? [] : [place])])}`
  }

  const texts = readTexts(itemsKey)

  /** Reads the page before once more and checks that its last record is still the same. */
  const confirm = (name: string, again: Paging.Again) =>
    get(
      again.path,
      true,
      whenOk((answer) => {
        const listed = texts(name)(answer)
        if (listed instanceof Failed) return listed
        const drift = Paging.confirm(listed.facts, again)
        return drift === null ? answer : new Failed(drift, answer.requestId)
      })
    )

  const requestPage = <L extends Listed>(call: ListCall<L>, mark: PageToken.PageToken | null) => {
    const page = (size: number | null, attemptsMaxOf?: Call["attemptsMaxOf"]) => {
      const path = addressOf(call, mark, size)
      return get(path, mark !== null, whenOk(readPage(options, call, mark, { path, size })), attemptsMaxOf)
    }
    if (typeof pageSize !== "function" || call.mayTrySize === undefined) return page(configured)
    return pageSize({
      resource: call.name,
      mayTry: call.mayTrySize && mark === null,
      isFirst: mark === null,
      fixed: mark === null ? undefined : sizeOf(mark.place, paging.limitParameter),
      page,
      measure
    })
  }

  const turn: Listing["turn"] = (call, token) =>
    Effect.suspend(() => {
      const mark = token === null ? null : PageToken.decode(token)
      const isOurs = (path: string) => base.below(base.at(path), "/") === path
      const isForeign =
        mark === null ||
        ("url" in mark.place && !isOurs(mark.place.url)) ||
        (typeof mark.edge?.before === "string" && !isOurs(mark.edge.before))
      if (token !== null && isForeign) {
        const reason = new SourceError.PageTokenRefused({ detail: "the page token was not made by this connector" })
        const request = { method: "GET", path: call.path, requestId: null }
        return Effect.fail(new SourceError.SourceError({ reason, request }))
      }
      return Effect.flatMap(requestPage(call, mark), (turned) =>
        turned.again === null
          ? Effect.succeed(turned)
          : Effect.map(confirm(call.name, turned.again), ({ attempts, bytes }) => ({
              ...turned,
              attempts: turned.attempts + attempts,
              bytes: turned.bytes + bytes.length
            }))
      )
    })

  return { texts, turn }
}
