/**
 * The connector to Service API v2, for one token and therefore one company.
 *
 * Promise: it asks only for what the documents offer, sends the token only to the configured address, and answers
 * what `src/connector` promises: exact records, no lost page, and failures that say what to do. A write carries its
 * key each time, so that sending it again has no second effect.
 */
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Budget } from "../../../src/budget/Budget.ts"
import { fingerprintOf } from "../../../src/budget/PostgresPermitStore.ts"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import { isCancellable, type Resource } from "../../../src/catalogue/Resource.ts"
import {
  Connector,
  type ConnectorShape,
  type Identity,
  type Page,
  type PageRequest,
  type RawPage,
  type FetchedRecord,
  type WriteAnswer,
  type WriteRequest
} from "../../../src/connector/Connector.ts"
import type * as SourceError from "../../../src/connector/SourceError.ts"
import { type Answer, answeredAt, failure, Failed } from "./Answer.ts"
import * as BaseAddress from "./BaseAddress.ts"
import * as Decode from "./Decode.ts"
import { findList, findRecord, isObject, type JsonObject, member, parse, type Parsed, Unreadable } from "./Envelope.ts"
import * as Exchange from "./Exchange.ts"
import * as Listing from "./Listing.ts"
import { malformed, once, whenOk } from "./Listing.ts"
import * as Paging from "./Paging.ts"
import * as Subscriptions from "./Subscriptions.ts"
import { isStorable } from "./Values.ts"
import * as Written from "./Written.ts"

/** Where the value of `If-Match` comes from. */
export type Precondition = "auto" | "etag" | "lastchangedate" | "none"

/** What `make` needs to know; everything but the first three has a default. */
export interface ServiceClientOptions {
  /** Up to the API's own path: `https://erp.example.com/!/api/v2`. */
  readonly baseUrl: string
  readonly token: Redacted.Redacted
  readonly catalogue: Catalogue
  /** The company of the token, for installations whose `/me` does not tell. */
  readonly companyId?: bigint | null | undefined
  /** Records per page; null asks for none and takes what comes. */
  readonly pageSize?: number | null | undefined
  readonly paging?: Partial<Paging.PagingSettings> | undefined
  /** The member that holds the records of a list; null or `auto` finds it. */
  readonly itemsKey?: string | null | undefined
  readonly includeCustomFields?: boolean | undefined
  /** For one attempt, its whole body included. */
  readonly requestTimeoutMs?: number | undefined
  readonly retry?: Partial<Exchange.RetrySettings> | undefined
  /** The longest Retry-After that is waited for; beyond it the request fails. */
  readonly retryAfterMaxMs?: number | undefined
  /** How long one request waits for its 429s altogether. */
  readonly rateLimitedWaitMaxMs?: number | undefined
  readonly answerBytesMax?: number | undefined
  /** Accept plain http to other machines. */
  readonly allowHttp?: boolean | undefined
  /** The header with the id of a request; null finds it. */
  readonly requestIdHeader?: string | null | undefined
  readonly precondition?: Precondition | undefined
  /** The field of a webhook subscription that takes a new secret. */
  readonly rotateField?: string | undefined
}

const retryDefaults: Exchange.RetrySettings = { attemptsMax: 8, backoffBaseMs: 250, backoffMaxMs: 30_000 }
const requestTimeoutMsDefault = 60_000
const retryAfterMaxMsDefault = 10 * 60_000
const rateLimitedWaitMaxMsDefault = 15 * 60_000
const answerBytesMaxDefault = 64 * 1024 * 1024
/** Length of the request as it is kept beside records, for people. */
const sourceLengthMax = 160

/** What brought an answer, for people. */
const sourceOf = (method: string, path: string, { requestId }: Answer): string => {
  const asked = path.length <= sourceLengthMax ? path : `${path.slice(0, sourceLengthMax)}…`
  return requestId === null ? `${method} ${asked}` : `${method} ${asked} [request ${requestId}]`
}

const named = (id: string | null): string => (id === null ? "an object without a number" : `the record ${id}`)

const checkedToken = (token: Redacted.Redacted): BaseAddress.ClientConfigError | null =>
  /^[\x21-\x7e]+$/.test(Redacted.value(token))
    ? null
    : new BaseAddress.ClientConfigError({
        setting: "token",
        problem: "is empty or holds white space or characters that no token has",
        remedy: "copy the token again, without quotes or line ends"
      })

/** A page's records, read when they are asked for. */
interface Records extends Listing.Listed {
  readonly decoded: () => Decode.Decoded
}

/** Whether lists can be asked for exactly one value of the field. */
const isExactFilter = (resource: Resource, field: string): boolean =>
  resource.filters.some((filter) => filter.field === field && filter.match === "exact") ||
  (field === "externalid" && resource.field.has("externalid"))

/** Makes the connector for one token. */
export const make = Effect.fnUntraced(function* (options: ServiceClientOptions) {
  const base = BaseAddress.parse(options.baseUrl, options.allowHttp ?? false)
  if (base instanceof BaseAddress.ClientConfigError) return yield* base
  const tokenProblem = checkedToken(options.token)
  if (tokenProblem !== null) return yield* tokenProblem
  const pageSize = options.pageSize ?? null
  if (pageSize !== null && !(Number.isSafeInteger(pageSize) && pageSize >= 1)) {
    return yield* new BaseAddress.ClientConfigError({
      setting: "pageSize",
      problem: `is ${pageSize}`,
      remedy: "give the number of records a page should hold, or leave it out"
    })
  }
  const rotateField = options.rotateField ?? Subscriptions.rotateFieldDefault
  const rotateFieldProblem = Subscriptions.rotateFieldProblem(rotateField)
  if (rotateFieldProblem !== null) return yield* rotateFieldProblem
  const client = yield* HttpClient.HttpClient
  const budget = yield* Budget
  const exchange = Exchange.make(client, budget, {
    base,
    token: options.token,
    requestTimeoutMs: options.requestTimeoutMs ?? requestTimeoutMsDefault,
    retry: { ...retryDefaults, ...options.retry },
    retryAfterMaxMs: options.retryAfterMaxMs ?? retryAfterMaxMsDefault,
    rateLimitedWaitMaxMs: options.rateLimitedWaitMaxMs ?? rateLimitedWaitMaxMsDefault,
    answerBytesMax: options.answerBytesMax ?? answerBytesMaxDefault,
    requestIdHeader: options.requestIdHeader ?? null
  })

  const paging: Paging.PagingSettings = { ...Paging.defaults, ...options.paging }
  const itemsKey = options.itemsKey === undefined || options.itemsKey === "auto" ? null : options.itemsKey
  const precondition = options.precondition ?? "auto"
  const includeCustomFields = options.includeCustomFields ?? false
  /** Resources that refused `include`: not asked again. */
  const withoutInclude = new Set<string>()
  const decoders = new WeakMap<Resource, Decode.Decoder>()
  const listing = Listing.make(exchange, { base, token: options.token, pageSize, paging, itemsKey })

  const decoderOf = (resource: Resource): Decode.Decoder => {
    const known = decoders.get(resource)
    if (known !== undefined) return known
    const decoder = Decode.make(resource)
    decoders.set(resource, decoder)
    return decoder
  }

  const includes = (resource: Resource): ReadonlyArray<readonly [string, string]> =>
    includeCustomFields && !withoutInclude.has(resource.path) ? [["include", Decode.customFieldsName]] : []

  const get = <A>(path: string, read: Listing.Read<A>) =>
    exchange.send({ method: "GET", path, headers: {}, body: null, pageParameters: null }, read)

  /** Asks with `include`, and once more without when it is that which is refused. */
  const tolerant = <A>(resource: Resource, ask: Effect.Effect<A, SourceError.SourceError>) =>
    ask.pipe(
      Effect.catch((error) => {
        const { reason } = error
        const isAboutInclude = reason._tag === "Refused" && reason.field === "include"
        if (!isAboutInclude || !includeCustomFields || withoutInclude.has(resource.path)) return Effect.fail(error)
        withoutInclude.add(resource.path)
        return Effect.andThen(
          Effect.logWarning(`${resource.path} does not offer custom fields; it is read without them`),
          ask
        )
      })
    )

  // -- pages ----------------------------------------------------------------------------------------------------------

  const filtersOf = ({ resource, since, where = null }: PageRequest): ReadonlyArray<Listing.Parameter> => {
    const parameters: Array<Listing.Parameter> = []
    if (where !== null) parameters.push([where.field, where.value])
    // With modifiedsince the source shows cancelled records by itself.
    if (since !== null && resource.modifiedSince) parameters.push(["modifiedsince", since])
    else if (isCancellable(resource)) parameters.push(["cancel", "any"])
    parameters.push(...includes(resource))
    return parameters
  }

  /** The records straight from the bytes; null when they must be read by way of the text. */
  const readBytes = (resource: Resource, answer: Answer) => {
    const read = decoderOf(resource).bytes(answer.bytes)
    const list = read === null ? null : findList({ text: "", value: read.envelope }, itemsKey, resource.path)
    // The list that was read must be the one that the answer is about.
    return read === null || list === null || list instanceof Unreadable || list.items !== read.place
      ? null
      : { read, meta: list.meta }
  }

  /** The records of an answer, by way of the bytes where that is enough. */
  const readRecords =
    (resource: Resource) =>
    (answer: Answer): Records | Failed => {
      const swift = readBytes(resource, answer)
      const whole = once(() => listing.texts(resource.path)(answer))
      if (swift === null) {
        const listed = whole()
        if (listed instanceof Failed) return listed
        const { text, list } = listed
        return { ...listed, decoded: once(() => decoderOf(resource).list(text, list.items, list.start)) }
      }
      const plain = (): Listing.Plain => {
        const listed = whole()
        if (listed instanceof Failed) throw new Error("the bytes of a list are a list, and its text is none")
        return listed
      }
      const { read, meta } = swift
      const facts: Paging.PageFacts = {
        meta,
        link: answer.headers["link"],
        records: read.records.length + read.rejected.length,
        identities: () => plain().facts.identities()
      }
      return { answer, texts: () => plain().texts(), facts, decoded: () => read }
    }

  const turn = <L extends Listing.Listed>(request: PageRequest, read: (answer: Answer) => L | Failed) =>
    Effect.suspend(() => {
      const { resource, token, where = null } = request
      if (where !== null && !isExactFilter(resource, where.field)) {
        return Effect.die(new Error(`${resource.path} offers no exact filter by "${where.field}"`))
      }
      const call = { path: `/${resource.path}`, parameters: () => filtersOf(request), name: resource.path, read }
      return tolerant(resource, listing.turn(call, token))
    })

  const page: ConnectorShape["page"] = (request) =>
    Effect.map(turn(request, readRecords(request.resource)), (turned): Page => {
      const { listed } = turned
      const { answer, texts, facts } = listed
      const decoder = decoderOf(request.resource)
      const { records, rejected } = listed.decoded()
      // What the page before ended with comes again on purpose.
      const { repeated } = turned
      const isRejectedAgain = (at: number) => Decode.isRejected(decoder.one(texts()[at]!, 0, texts()[at]!.length))
      const rejectedAgain = Array.from({ length: repeated }, (_, at) => at).filter(isRejectedAgain).length
      const syncedThrough = member(facts.meta, "synced_through")
      return {
        records: repeated === 0 ? records : records.slice(repeated - rejectedAgain),
        rejected: repeated === 0 ? rejected : rejected.slice(rejectedAgain),
        next: turned.next,
        syncedThrough:
          typeof syncedThrough === "string" && syncedThrough !== "" && isStorable(syncedThrough) ? syncedThrough : null,
        beganAt: answer.beganAt,
        answeredAt: answeredAt(answer.headers),
        source: sourceOf("GET", turned.path, answer),
        bytes: turned.bytes,
        attempts: turned.attempts
      }
    })

  const rawPage: ConnectorShape["rawPage"] = (request) =>
    Effect.map(turn(request, listing.texts(request.resource.path)), (turned): RawPage => {
      const texts = turned.listed.texts()
      return {
        records: turned.repeated === 0 ? texts : texts.slice(turned.repeated),
        next: turned.next,
        attempts: turned.attempts
      }
    })

  // -- one record -----------------------------------------------------------------------------------------------------

  const versionOf = (answer: Answer, record: JsonObject | null): string | null => {
    const etag = answer.headers["etag"]
    if (etag !== undefined && (precondition === "auto" || precondition === "etag")) return etag
    const changed = record === null ? undefined : member(record, "lastchangedate")
    const isAsked = precondition === "auto" || precondition === "lastchangedate"
    return isAsked && typeof changed === "string" && /^[\x20-\x7e]+$/.test(changed) ? changed : null
  }

  const recordPath = (resource: Resource, id: string) => `/${resource.path}/${encodeURIComponent(id)}`

  const getOne: ConnectorShape["get"] = (resource, id) => {
    const ask = Effect.suspend(() => {
      const path = `${recordPath(resource, id)}${Listing.query(includes(resource))}`
      return get(path, (answer, asking): FetchedRecord | Failed => {
        const { beganAt } = answer
        const source = sourceOf("GET", path, answer)
        if (answer.status < 200 || answer.status >= 300) {
          const failed = failure(answer, asking)
          const isAbsent = failed.reason._tag === "NotFound"
          return isAbsent ? { record: null, rejected: null, version: null, beganAt, source } : failed
        }
        const parsed = parse(answer.bytes)
        if (parsed instanceof Unreadable) return malformed(answer, parsed)
        const found = findRecord(parsed)
        if (found instanceof Unreadable) return malformed(answer, found)
        const outcome = decoderOf(resource).one(parsed.text, found.from, found.to)
        // What carries another number, or none, is not what was asked for, and says nothing of it.
        if (/^[1-9]\d*$/.test(id) && outcome.id !== id) {
          return malformed(answer, new Unreadable(`the answer is ${named(outcome.id)}, not the record ${id}`, true))
        }
        const version = versionOf(answer, found.value)
        return Decode.isRejected(outcome)
          ? { record: null, rejected: outcome, version, beganAt, source }
          : { record: outcome, rejected: null, version, beganAt, source }
      })
    })
    return tolerant(resource, ask)
  }

  // -- writes ---------------------------------------------------------------------------------------------------------

  const writeTarget = ({ resource, operation, id }: WriteRequest) => {
    if (operation === "create") return { method: "POST", path: `/${resource.path}` } as const
    if (operation === "batch") return { method: "POST", path: `/${resource.path}/batch` } as const
    if (id === null) throw new Error(`${operation} of ${resource.path} was asked for without the record's number`)
    return { method: operation === "update" ? "PATCH" : "DELETE", path: recordPath(resource, id) } as const
  }

  const write: ConnectorShape["write"] = (request) =>
    Effect.suspend(() => {
      const { method, path } = writeTarget(request)
      const headers = {
        "idempotency-key": request.idempotencyKey,
        ...(request.ifMatch === null ? {} : { "if-match": request.ifMatch })
      }
      const body = request.body === null ? null : new TextEncoder().encode(request.body)
      return exchange.send(
        {
          method,
          path,
          headers,
          body,
          pageParameters: null,
          ...(request.mayBeSent === undefined ? {} : { mayBeSent: request.mayBeSent })
        },
        (answer, asking): WriteAnswer | Failed => {
          const { status } = answer
          if (status < 200 || status >= 300) return failure(answer, asking)
          const source = sourceOf(method, path, answer)
          const replayed = answer.headers["idempotent-replayed"]?.toLowerCase() === "true"
          const isBatch = request.operation === "batch"
          if ((status === 204 || status === 205) && answer.bytes.length === 0 && !isBatch) {
            return { status, body: "", items: [Written.withoutBody(request)], replayed, source }
          }
          const parsed = parse(answer.bytes)
          if (parsed instanceof Unreadable) return malformed(answer, parsed)
          const reading = { decoder: decoderOf(request.resource), scrub: asking.scrub }
          const read = isBatch ? Written.readBatch(parsed, request, reading) : Written.readOne(parsed, request, reading)
          if (read instanceof Unreadable) return malformed(answer, read)
          return { status, body: parsed.text, items: "_tag" in read ? [read] : read, replayed, source }
        }
      )
    })

  // -- who the token is -----------------------------------------------------------------------------------------------

  const configuredId = options.companyId ?? null

  const identify: ConnectorShape["identify"] = get(
    "/me",
    whenOk((answer): Identity | Failed => {
      const parsed = parse(answer.bytes)
      if (parsed instanceof Unreadable) return malformed(answer, parsed)
      const identity = readIdentity(parsed, configuredId)
      return identity instanceof Unreadable ? malformed(answer, identity) : identity
    })
  ).pipe(
    Effect.tap(({ companyId }) =>
      configuredId === null || configuredId === companyId
        ? Effect.void
        : Effect.logWarning(`the token is of company ${companyId}, not of company ${configuredId} as configured`)
    ),
    Effect.catch((error) => {
      const isUnavailable =
        error.reason._tag === "NotFound" ||
        error.reason._tag === "NotImplemented" ||
        error.reason._tag === "Refused" ||
        error.reason._tag === "Malformed" ||
        (error.reason._tag === "Forbidden" && error.reason.code === "insufficient_scope")
      return configuredId !== null && isUnavailable
        ? Effect.succeed<Identity>({ companyId: configuredId, user: null, scopes: null, features: null })
        : Effect.fail(error)
    })
  )

  const connector: ConnectorShape = {
    catalogue: options.catalogue,
    keyScope: fingerprintOf("", options.token, "token"),
    source: {
      address: `${base.origin}${base.path}`,
      settings: { custom_fields: String(includeCustomFields), items_key: itemsKey ?? "auto" }
    },
    identify,
    page,
    rawPage,
    get: getOne,
    write,
    subscriptions: Subscriptions.make(exchange, listing, { rotateField, catalogue: options.catalogue }),
    usage: exchange.usage
  }
  return connector
})

/** The connector as a service. */
export const layer = (options: ServiceClientOptions) => Layer.effect(Connector, make(options))

const isScope = (value: unknown): boolean => typeof value === "string" && /^(?:\*|[a-z0-9_]+:[a-z*]+)$/.test(value)

const textsOf = (value: unknown): ReadonlyArray<string> | null =>
  Array.isArray(value) && value.every((item) => typeof item === "string") ? value : null

const companyOf = (value: unknown): bigint | null =>
  typeof value === "number" && Number.isSafeInteger(value)
    ? BigInt(value)
    : typeof value === "string" && /^\d{1,18}$/.test(value)
      ? BigInt(value)
      : null

/** Reads `/me`, whose fields the documents do not show: by name where they are, else by what the values look like. */
const readIdentity = ({ value }: Parsed, configuredId: bigint | null): Identity | Unreadable => {
  const inner = isObject(value) ? member(value, "data") : undefined
  const me = isObject(inner) ? inner : value
  if (!isObject(me)) return new Unreadable("/me answered no object", true)
  const token = member(me, "token")
  const company = member(me, "company")
  const places: ReadonlyArray<JsonObject> = isObject(token) ? [me, token] : [me]
  const companyId =
    places.map((place) => companyOf(member(place, "companyid"))).find((id) => id !== null) ??
    companyOf(isObject(company) ? member(company, "id") : company) ??
    configuredId
  if (companyId === null) return new Unreadable("/me names no company; configure the company's number", true)
  const named = places.map((place) => textsOf(member(place, "scopes"))).find((texts) => texts !== null)
  const alike = Object.values(me)
    .map(textsOf)
    .find((texts) => texts !== null && texts.length > 0 && texts.every(isScope))
  const user = member(me, "user")
  return {
    companyId,
    user: typeof user === "string" ? user : null,
    scopes: named ?? alike ?? null,
    features: textsOf(member(me, "features"))
  }
}
