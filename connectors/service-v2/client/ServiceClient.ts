/**
 * The connector to Service API v2, for one token and therefore one company.
 *
 * Promise: it requests only what the documents offer, sends the token only to the configured address, and keeps the
 * promises of `src/connector`: exact records, no lost page, and failures that say what to do. All attempts of a write
 * carry its key, so that a repetition has no second effect.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Redacted from "effect/Redacted"
import { Budget } from "../../../src/budget/Budget.ts"
import { fingerprintOf } from "../../../src/budget/TokenFingerprint.ts"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { ConnectorShape } from "../../../src/connector/Connector.ts"
import * as FailureScope from "../../../src/connector/FailureScope.ts"
import { PageSizes } from "../../../src/connector/PageSizes.ts"
import * as BaseAddress from "./BaseAddress.ts"
import { type ClientContext, decoders, type Precondition } from "./ClientContext.ts"
import * as Exchange from "./Exchange.ts"
import { identify } from "./Identity.ts"
import * as Listing from "./Listing.ts"
import { readPage, readRawPage } from "./Pages.ts"
import * as PageSize from "./PageSize.ts"
import * as Paging from "./Paging.ts"
import { getRecord } from "./Records.ts"
import * as Subscriptions from "./Subscriptions.ts"
import { write } from "./Writes.ts"

/** Options of `make`; all but the first three have a default. */
export interface ServiceClientOptions {
  /** Up to the API's own path: `https://erp.example.com/!/api/v2`. */
  readonly baseUrl: string
  readonly token: Redacted.Redacted
  readonly catalogue: Catalogue
  /** The company of the token, for installations whose `/me` does not name it. */
  readonly companyId?: bigint | null | undefined
  /** Records per page; null sends no limit and accepts any length; `discover` requests as many as the source accepts. */
  readonly pageSize?: number | null | "discover" | undefined
  readonly paging?: Partial<Paging.PagingSettings> | undefined
  /** The member that holds the records of a list; null or `auto` detects it. */
  readonly itemsKey?: string | null | undefined
  readonly includeCustomFields?: boolean | undefined
  /** For one attempt, its whole body included. */
  readonly requestTimeout?: Duration.Duration | undefined
  readonly retry?: Partial<Exchange.RetrySettings> | undefined
  /** The longest Retry-After that a request waits for; beyond it the request fails. */
  readonly retryAfterMax?: Duration.Duration | undefined
  /** Total wait of one request for its 429s. */
  readonly rateLimitedWaitMax?: Duration.Duration | undefined
  readonly answerBytesMax?: number | undefined
  /** Accepts plain http to other machines. */
  readonly allowHttp?: boolean | undefined
  /** The header with the id of a request; null detects it. */
  readonly requestIdHeader?: string | null | undefined
  readonly precondition?: Precondition | undefined
  /** The field of a webhook subscription that takes a new secret. */
  readonly rotateField?: string | undefined
}

const retryDefaults: Exchange.RetrySettings = {
  attemptsMax: 8,
  backoffBase: Duration.millis(250),
  backoffMax: Duration.seconds(30)
}
const requestTimeoutDefault = Duration.minutes(1)
/** A page that takes more than this share of the timeout is too large. */
const slowShare = 1 / 3
const retryAfterMaxDefault = Duration.minutes(10)
const rateLimitedWaitMaxDefault = Duration.minutes(15)
const answerBytesMaxDefault = 64 * 1024 * 1024
const checkedToken = (token: Redacted.Redacted): BaseAddress.ClientConfigError | null =>
  /^[\x21-\x7e]+$/.test(Redacted.value(token))
    ? null
    : new BaseAddress.ClientConfigError({
        setting: "token",
        problem: "is empty, or contains white space or characters that tokens do not have",
        remedy: "copy the token again, without quotes or line ends"
      })

/** The checked base address; the first problem of the options where there is one. */
export const checkOptions = (
  options: ServiceClientOptions
): BaseAddress.BaseAddress | BaseAddress.ClientConfigError => {
  const base = BaseAddress.parse(options.baseUrl, options.allowHttp ?? false)
  if (base instanceof BaseAddress.ClientConfigError) return base
  const tokenProblem = checkedToken(options.token)
  if (tokenProblem !== null) return tokenProblem
  const pageSize = options.pageSize ?? null
  if (typeof pageSize === "number" && !(Number.isSafeInteger(pageSize) && pageSize >= 1)) {
    return new BaseAddress.ClientConfigError({
      setting: "pageSize",
      problem: `is ${pageSize}`,
      remedy: "give the number of records per page, or remove the setting"
    })
  }
  return Subscriptions.rotateFieldProblem(options.rotateField ?? Subscriptions.rotateFieldDefault) ?? base
}

/**
 * The state that all operations of one token share. `decoderOf` makes the records of its answers; default: the text that
 * the warehouse stores.
 */
export const makeContext = Effect.fnUntraced(function* (options: ServiceClientOptions, decoderOf = decoders()) {
  const base = checkOptions(options)
  if (base instanceof BaseAddress.ClientConfigError) return yield* base
  const pageSize = options.pageSize ?? null
  const client = yield* HttpClient.HttpClient
  const budget = yield* Budget
  const exchange = Exchange.make(client, budget, {
    base,
    token: options.token,
    requestTimeout: options.requestTimeout ?? requestTimeoutDefault,
    retry: { ...retryDefaults, ...options.retry },
    retryAfterMax: options.retryAfterMax ?? retryAfterMaxDefault,
    rateLimitedWaitMax: options.rateLimitedWaitMax ?? rateLimitedWaitMaxDefault,
    answerBytesMax: options.answerBytesMax ?? answerBytesMaxDefault,
    requestIdHeader: options.requestIdHeader ?? null
  })

  const paging: Paging.PagingSettings = { ...Paging.defaults, ...options.paging }
  const itemsKey = options.itemsKey === undefined || options.itemsKey === "auto" ? null : options.itemsKey
  const includeCustomFields = options.includeCustomFields ?? false
  const requestTimeout = options.requestTimeout ?? requestTimeoutDefault
  const sized = PageSize.make({
    stored: (yield* PageSizes).of(base.at("")),
    parameter: paging.limitParameter,
    slowAfter: Duration.times(requestTimeout, slowShare)
  })
  const listing = Listing.make(exchange, {
    base,
    token: options.token,
    pageSize: pageSize !== "discover" ? pageSize : paging.mode === "none" ? null : sized,
    paging,
    itemsKey
  })

  const context: ClientContext = {
    address: base.at(""),
    exchange,
    listing,
    itemsKey,
    precondition: options.precondition ?? "auto",
    includeCustomFields,
    withoutInclude: new Set(),
    decoderOf
  }
  return context
})

/** Makes the connector for one token. */
export const make = Effect.fnUntraced(function* (options: ServiceClientOptions) {
  const context = yield* makeContext(options)
  const { exchange, listing, itemsKey, includeCustomFields } = context
  const rotateField = options.rotateField ?? Subscriptions.rotateFieldDefault
  const connector: ConnectorShape = {
    catalogue: options.catalogue,
    keyScope: fingerprintOf("", options.token, "token"),
    source: {
      address: context.address,
      settings: { custom_fields: String(includeCustomFields), items_key: itemsKey ?? "auto" }
    },
    identify: identify(exchange, options.companyId ?? null),
    page: (request) => readPage(context, request),
    rawPage: (request) => readRawPage(context, request),
    get: (resource, id) => getRecord(context, resource, id),
    write: (request) => write(context, request),
    subscriptions: Subscriptions.make(exchange, listing, { rotateField, catalogue: options.catalogue }),
    usage: exchange.usage
  }
  return yield* FailureScope.make(connector)
})
