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
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import { isCancellable, type Resource } from "../../../src/catalogue/Resource.ts"
import {
  Connector,
  type ConnectorShape,
  type Identity,
  type Page,
  type PageRequest,
  type RawPage,
  type Reading,
  type WriteAnswer,
  type WriteRequest
} from "../../../src/connector/Connector.ts"
import * as SourceError from "../../../src/connector/SourceError.ts"
import { type Answer, answeredAt, type Asking, failure, Failed, foreignAttemptsMax } from "./Answer.ts"
import * as BaseAddress from "./BaseAddress.ts"
import * as Decode from "./Decode.ts"
import {
  findList,
  findRecord,
  isObject,
  type JsonObject,
  type List,
  member,
  parse,
  type Parsed,
  Unreadable
} from "./Envelope.ts"
import * as Exchange from "./Exchange.ts"
import { elements } from "./JsonText.ts"
import * as Paging from "./Paging.ts"
import { isStorable } from "./Values.ts"

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
}

const retryDefaults: Exchange.RetrySettings = { attemptsMax: 8, backoffBaseMs: 250, backoffMaxMs: 30_000 }
const requestTimeoutMsDefault = 60_000
const retryAfterMaxMsDefault = 10 * 60_000
const rateLimitedWaitMaxMsDefault = 15 * 60_000
const answerBytesMaxDefault = 64 * 1024 * 1024
/** Length of the request as it is kept beside records, for people. */
const sourceLengthMax = 160

type Read<A> = (answer: Answer, asking: Asking) => A | Failed

/** Reads answers of success; the others are failures. */
const whenOk =
  <A>(read: (answer: Answer) => A | Failed): Read<A> =>
  (answer, asking) =>
    answer.status >= 200 && answer.status < 300 ? read(answer) : failure(answer, asking)

const malformed = ({ requestId }: Answer, { detail, settled }: Unreadable): Failed =>
  new Failed(new SourceError.Malformed({ detail }), requestId, settled ? foreignAttemptsMax : undefined)

const query = (parameters: ReadonlyArray<readonly [name: string, value: string]>): string =>
  parameters.length === 0
    ? ""
    : `?${parameters.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&")}`

/** What brought an answer, for people. */
const sourceOf = (method: string, path: string, { requestId }: Answer): string => {
  const asked = path.length <= sourceLengthMax ? path : `${path.slice(0, sourceLengthMax)}…`
  return requestId === null ? `${method} ${asked}` : `${method} ${asked} [request ${requestId}]`
}

const checkedToken = (token: Redacted.Redacted): BaseAddress.ClientConfigError | null =>
  /^[\x21-\x7e]+$/.test(Redacted.value(token))
    ? null
    : new BaseAddress.ClientConfigError({
        setting: "token",
        problem: "is empty or holds white space or characters that no token has",
        remedy: "copy the token again, without quotes or line ends"
      })

/** A list answer, read as far as paging needs. */
interface Listed {
  readonly answer: Answer
  readonly meta: JsonObject
  readonly decoded: () => Decode.Decoded
  /** JSON text of each record, byte for byte. */
  readonly texts: () => ReadonlyArray<string>
  readonly facts: Paging.PageFacts
}

/** A page of a scan. */
interface Turned extends Listed, Paging.Joint {
  readonly path: string
  readonly next: string | null
  /** What it took to look at the page before once more. */
  readonly extraAttempts?: number
  readonly extraBytes?: number
}

const once = <A extends object>(make: () => A): (() => A) => {
  let known: A | null = null
  return () => (known ??= make())
}

/** The records of a list as they stand in the text. */
const recordTexts = (text: string, list: List): ReadonlyArray<string> => {
  const ranges = elements(text, list.start())
  return list.items.map((_, at) => text.slice(ranges[2 * at], ranges[2 * at + 1]))
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
  const pageParameters = [paging.cursorParameter, paging.pageParameter, paging.offsetParameter]
  const ownParameters: ReadonlySet<string> = new Set([paging.limitParameter, "modifiedsince", "cancel", "include"])
  /** Parameters of a page's address by which it may be refused: the known ones, and what the source put into a link. */
  const pageParametersOf = (path: string): ReadonlyArray<string> => {
    const given = new URLSearchParams(path.includes("?") ? path.slice(path.indexOf("?") + 1) : "")
    return [...pageParameters, ...[...given.keys()].filter((name) => !ownParameters.has(name))]
  }
  const itemsKey = options.itemsKey === undefined || options.itemsKey === "auto" ? null : options.itemsKey
  const precondition = options.precondition ?? "auto"
  const includeCustomFields = options.includeCustomFields ?? false
  /** Resources that refused `include`: not asked again. */
  const withoutInclude = new Set<string>()
  const decoders = new WeakMap<Resource, Decode.Decoder>()

  const decoderOf = (resource: Resource): Decode.Decoder => {
    const known = decoders.get(resource)
    if (known !== undefined) return known
    const decoder = Decode.make(resource)
    decoders.set(resource, decoder)
    return decoder
  }

  const includes = (resource: Resource): ReadonlyArray<readonly [string, string]> =>
    includeCustomFields && !withoutInclude.has(resource.path) ? [["include", Decode.customFieldsName]] : []

  const get = <A>(path: string, isByToken: boolean, read: Read<A>) =>
    exchange.send(
      { method: "GET", path, headers: {}, body: null, pageParameters: isByToken ? pageParametersOf(path) : null },
      read
    )

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

  const pagePath = ({ resource, since, where = null }: PageRequest, token: Paging.PageToken | null): string => {
    if (token !== null && "url" in token.place) return token.place.url
    const parameters: Array<readonly [string, string]> = []
    // A numbered page means what it meant when its number was made, whatever is configured since.
    const size = token !== null && "page" in token.place ? token.place.size : pageSize
    if (size !== null) parameters.push([paging.limitParameter, String(size)])
    if (where !== null) parameters.push([where.field, where.value])
    // With modifiedsince the source shows cancelled records by itself.
    if (since !== null && resource.modifiedSince) parameters.push(["modifiedsince", since])
    else if (isCancellable(resource)) parameters.push(["cancel", "any"])
    parameters.push(...includes(resource))
    const place = token === null ? null : Paging.parameter(token.place, paging)
    if (place !== null) parameters.push(place)
    return `/${resource.path}${query(parameters)}`
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

  /** The list in an answer, and its records' texts; `isRaw` leaves the bytes to the plainest way of reading. */
  const readList =
    (resource: Resource, isRaw: boolean) =>
    (answer: Answer): Listed | Failed => {
      const swift = isRaw ? null : readBytes(resource, answer)
      const parsed = swift === null ? parse(answer.bytes) : null
      if (parsed instanceof Unreadable) return malformed(answer, parsed)
      const list = parsed === null ? null : findList(parsed, itemsKey, resource.path)
      if (list instanceof Unreadable) return malformed(answer, list)
      /** The whole text and its list, also where the bytes were enough to read the records. */
      const whole = once(() => {
        const text = parsed ?? (parse(answer.bytes) as Parsed)
        return { text: text.text, list: list ?? (findList(text, itemsKey, resource.path) as List) }
      })
      const texts = once(() => recordTexts(whole().text, whole().list))
      const facts: Paging.PageFacts = {
        meta: swift?.meta ?? whole().list.meta,
        link: answer.headers["link"],
        records: swift === null ? whole().list.items.length : swift.read.records.length + swift.read.rejected.length,
        identities: once(() => whole().list.items.map((item, at) => Paging.identity(item, () => texts()[at]!)))
      }
      const decoded = once((): Decode.Decoded => {
        if (swift !== null) return swift.read
        const { text, list: found } = whole()
        return decoderOf(resource).list(text, found.items, found.start)
      })
      return { answer, meta: facts.meta, decoded, texts, facts }
    }

  /** A page, what continues it, and whether the page before has to be looked at again. */
  const readPage =
    ({ resource }: PageRequest, token: Paging.PageToken | null, path: string, isRaw: boolean) =>
    (answer: Answer): Turned | Failed => {
      const listed = readList(resource, isRaw)(answer)
      if (listed instanceof Failed) return listed
      const joint = Paging.join(listed.facts, token)
      if (!("again" in joint)) return new Failed(joint, answer.requestId)
      const next = Paging.next(listed.facts, { token, path, pageSize }, paging, base)
      if (next instanceof SourceError.PagingBroken) return new Failed(next, answer.requestId)
      const nextText = next === null ? null : Paging.encode(next)
      if (nextText !== null && nextText.includes(Redacted.value(options.token))) {
        const detail = "the link to the next page carries the token, which belongs in no address"
        return new Failed(new SourceError.PagingBroken({ detail }), answer.requestId)
      }
      return { ...listed, ...joint, path, next: nextText }
    }

  /** Reads the page before once more: whether it still ends as it did when it was read. */
  const confirm = (resource: Resource, path: string, last: string) =>
    get(
      path,
      true,
      whenOk((answer) => {
        const listed = readList(resource, true)(answer)
        if (listed instanceof Failed) return listed
        const drift = Paging.confirm(listed.facts, last)
        return drift === null ? answer : new Failed(drift, answer.requestId)
      })
    )

  const turn = (request: PageRequest, isRaw: boolean): Effect.Effect<Turned, SourceError.SourceError> =>
    Effect.suspend(() => {
      const { resource, where = null } = request
      if (where !== null && !isExactFilter(resource, where.field)) {
        return Effect.die(new Error(`${resource.path} offers no exact filter by "${where.field}"`))
      }
      const token = request.token === null ? null : Paging.decode(request.token)
      const isOurs = (path: string) => base.below(base.at(path), "/") === path
      const isForeign =
        token === null ||
        ("url" in token.place && !isOurs(token.place.url)) ||
        (typeof token.edge?.before === "string" && !isOurs(token.edge.before))
      if (request.token !== null && isForeign) {
        const reason = new SourceError.PageTokenRefused({ detail: "it is none of this connector's" })
        const path = `/${resource.path}`
        return Effect.fail(new SourceError.SourceError({ reason, request: { method: "GET", path, requestId: null } }))
      }
      const ask = Effect.suspend(() => {
        const path = pagePath(request, token)
        return get(path, token !== null, whenOk(readPage(request, token, path, isRaw)))
      })
      return Effect.flatMap(tolerant(resource, ask), (turned) =>
        turned.again === null
          ? Effect.succeed(turned)
          : Effect.map(confirm(resource, turned.again.path, turned.again.last), ({ attempts, bytes }) => ({
              ...turned,
              extraAttempts: attempts,
              extraBytes: bytes.length
            }))
      )
    })

  const page: ConnectorShape["page"] = (request) =>
    Effect.map(turn(request, false), (turned): Page => {
      const { answer, meta, texts } = turned
      const decoder = decoderOf(request.resource)
      const { records, rejected } = turned.decoded()
      // What the page before ended with comes again on purpose.
      const { repeated } = turned
      const isRejectedAgain = (at: number) => Decode.isRejected(decoder.one(texts()[at]!, 0, texts()[at]!.length))
      const rejectedAgain = Array.from({ length: repeated }, (_, at) => at).filter(isRejectedAgain).length
      const syncedThrough = member(meta, "synced_through")
      return {
        records: repeated === 0 ? records : records.slice(repeated - rejectedAgain),
        rejected: repeated === 0 ? rejected : rejected.slice(rejectedAgain),
        next: turned.next,
        syncedThrough:
          typeof syncedThrough === "string" && syncedThrough !== "" && isStorable(syncedThrough) ? syncedThrough : null,
        beganAt: answer.beganAt,
        answeredAt: answeredAt(answer.headers),
        source: sourceOf("GET", turned.path, answer),
        bytes: answer.bytes.length + (turned.extraBytes ?? 0),
        attempts: answer.attempts + (turned.extraAttempts ?? 0)
      }
    })

  const rawPage: ConnectorShape["rawPage"] = (request) =>
    Effect.map(turn(request, true), (turned): RawPage => {
      const texts = turned.texts()
      return {
        records: turned.repeated === 0 ? texts : texts.slice(turned.repeated),
        next: turned.next,
        attempts: turned.answer.attempts + (turned.extraAttempts ?? 0)
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
      const path = `${recordPath(resource, id)}${query(includes(resource))}`
      return get(path, false, (answer, asking): Reading | Failed => {
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
        if (outcome.id !== null && /^[1-9]\d*$/.test(id) && outcome.id !== id) {
          return malformed(answer, new Unreadable(`the answer is the record ${outcome.id}`, true))
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
        { method, path, headers, body, pageParameters: null },
        whenOk((answer): WriteAnswer | Failed => {
          const source = sourceOf(method, path, answer)
          const replayed = answer.headers["idempotent-replayed"]?.toLowerCase() === "true"
          const isEmpty = (answer.status === 204 || answer.status === 205) && answer.bytes.length === 0
          if (isEmpty) return { status: answer.status, body: "", replayed, source }
          const parsed = parse(answer.bytes)
          if (parsed instanceof Unreadable) return malformed(answer, parsed)
          const found = Array.isArray(parsed.value) ? null : findRecord(parsed)
          if (found instanceof Unreadable) return malformed(answer, found)
          return { status: answer.status, body: parsed.text, replayed, source }
        })
      )
    })

  // -- who the token is -----------------------------------------------------------------------------------------------

  const configuredId = options.companyId ?? null

  const identify: ConnectorShape["identify"] = get(
    "/me",
    false,
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
        error.reason._tag === "NotBuilt" ||
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
    identify,
    page,
    rawPage,
    get: getOne,
    write,
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
