/**
 * Processing of one request.
 *
 * Promise: every input gets a documented status and, when refused, the one envelope (ERR-01). Checks run in the order
 * of C-02: token, user, path, method, licence, scope, rate, body and parameters, record. Nothing is written before all
 * of them passed. A defect of the server answers 500 server_error, and its write is undone.
 */
import { gzipSync } from "node:zlib"
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { limits } from "../../catalogue/limits.ts"
import { ApiError, printEnvelope, printError } from "../ApiError.ts"
import { isTestCall, webhookOperations, webhooks } from "../events/webhooks.ts"
import { isObject, parseExactly } from "../json.ts"
import { openApi } from "../openapi/document.ts"
import type { Context, Shown, Written } from "../rules/Rules.ts"
import { cancel, create, special, update } from "../rules/operations.ts"
import type { Version } from "../store/Table.ts"
import { microsPerSecond, printHttpDate, printInstant } from "../time.ts"
import type { World } from "../World.ts"
import { fingerprint, isKept, keyOf } from "./idempotency.ts"
import type { Notes } from "./journal.ts"
import { noteItem, notes, refusalOf } from "./journal.ts"
import { envelope, list } from "./list.ts"
import type { Answer, Request, Result } from "./Message.ts"
import { json } from "./Message.ts"
import { readInclude, readParameters } from "./parameters.ts"
import type { Action } from "./Route.ts"
import { operationsOf, route } from "./router.ts"
import type { Token } from "./tokens.ts"
import { authenticate } from "./tokens.ts"

export const basePath = "/!/api/v2"

/** The longest body that is read. */
export const bodyBytesMax = 8 * 1024 * 1024

/** Path and query below the base address; the path is null outside of it. */
export const below = (url: string): { readonly path: string | null; readonly query: string } => {
  const question = url.indexOf("?")
  const path = (question < 0 ? url : url.slice(0, question)).replace(/^\/%21\//i, "/!/")
  const query = question < 0 ? "" : url.slice(question + 1)
  const isInside = path === basePath || path.startsWith(`${basePath}/`)
  return { path: isInside ? path.slice(basePath.length) : null, query }
}

export interface Served {
  readonly answer: Answer
  readonly token: Token | null
  readonly noted: Notes
}

/** `base` is the absolute base address as callers use it. */
export const serve = (world: World, request: Request, requestId: string, base: string): Served => {
  let token: Token | null = null
  let result: Result
  const noted = notes()
  try {
    if (below(request.url).path === "/openapi.json") {
      result = document(world, request, base)
    } else {
      const now = world.clock.now()
      token = authenticate(world.tokens, request.headers["authorization"], now, request.address ?? null)
      result = admit(world, request, token, base, noted)
    }
  } catch (error) {
    result = refusal(world, error, noted)
  }
  return { answer: compressed(world, request, finish(world, result, requestId, noted)), token, noted }
}

/** The description of the implemented API, which needs no token. */
const document = ({ store }: World, { method }: Request, base: string): Result => {
  if (method === "GET") return { status: 200, body: openApi(store.catalogue, base) }
  throw new ApiError("method_not_allowed", `${method} is not offered here`, { headers: { Allow: "GET" } })
}

/** The one renderer of all failures. */
const refusal = (world: World, error: unknown, noted: Notes): Result => {
  if (!(error instanceof ApiError)) {
    world.onDefect(error)
    return refusal(world, new ApiError("server_error", "the request did not complete"), noted)
  }
  noted.refusal = refusalOf(error)
  const { status, options } = error
  return { status, body: printEnvelope(error), headers: options.headers ?? {} }
}

/** A result that was awaited; a defect is answered as in any other. */
const settled = (world: World, pending: Promise<Result>, noted: Notes): Promise<Result> =>
  pending.catch((error: unknown) => refusal(world, error, noted))

/** Shorter bodies are not worth it. */
const compressedLengthMin = 1_000

/** An answer as a proxy in front of the service sends it, where the request accepts gzip. */
const compressed = (world: World, request: Request, answer: Answer): Answer =>
  world.dialect.compression &&
  answer.body.length >= compressedLengthMin &&
  /\bgzip\b/.test(request.headers["accept-encoding"] ?? "")
    ? {
        ...answer,
        headers: { ...answer.headers, "Content-Encoding": "gzip", Vary: "Accept-Encoding" },
        body: "",
        bytes: gzipSync(answer.body)
      }
    : answer

/** The headers of every answer. */
export const finish = (
  world: World,
  { status, body, headers, bytes, pending }: Result,
  requestId: string,
  noted: Notes
): Answer => ({
  ...(bytes === undefined ? {} : { bytes }),
  ...(pending === undefined
    ? {}
    : { pending: settled(world, pending, noted).then((late) => finish(world, late, requestId, noted)) }),
  status,
  headers: {
    "Content-Type": json,
    Date: printHttpDate(world.clock.now()),
    ...headers,
    ...requestIdHeaders(world, requestId)
  },
  body,
  wire: null
})

export const requestIdHeaders = ({ dialect }: World, requestId: string): Readonly<Record<string, string>> =>
  dialect.requestIdHeader === null
    ? { "Svc-Request-Id": requestId, "X-Request-Id": requestId }
    : { [dialect.requestIdHeader]: requestId }

const retryAfter = (world: World, seconds: number): string =>
  world.dialect.retryAfter === "seconds"
    ? String(seconds)
    : printHttpDate(world.clock.now() + (seconds + 1) * microsPerSecond)

const rateKey = ({ limits: { rateScope } }: World, token: Token): string =>
  rateScope === "token"
    ? `token ${token.id}`
    : rateScope === "user"
      ? `user ${token.company} ${token.userId}`
      : "install"

/** Counts a request in its counter: each token has a separate one for test calls (LOG-03, E-05). */
const countIn = (world: World, token: Token, isTest: boolean): number | null => {
  const { requestsPerMinute, testCallsPerMinute } = world.limits
  const now = world.clock.now()
  return isTest
    ? world.rate.enter(`tests ${token.id}`, testCallsPerMinute, now)
    : world.rate.enter(rateKey(world, token), requestsPerMinute, now)
}

/** The checks between the token and the body. */
const admit = (world: World, request: Request, token: Token, base: string, noted: Notes): Result => {
  const { path, query } = below(request.url)
  const wait = countIn(world, token, isTestCall(request.method, path))
  const match = path === null ? null : route(world.store.catalogue, path, world.dialect.allOperations)
  if (match === null) throw new ApiError("not_found", "there is nothing at this path")
  const handled = match.methods.get(request.method)
  if (handled === undefined) {
    throw new ApiError("method_not_allowed", `${request.method} is not offered here`, {
      headers: { Allow: [...match.methods.keys()].join(", ") }
    })
  }
  const settings = world.settingsOf(token.company)
  if (match.feature !== null && settings.unlicensed.has(match.feature)) {
    throw new ApiError("feature_not_licensed", `this install is not licensed for the module ${match.feature}`)
  }
  const { scope, action } = handled
  if (scope !== null && !token.scopes.has(scope)) {
    throw new ApiError("insufficient_scope", `the token lacks the scope ${scope}`, {
      headers: { "WWW-Authenticate": `Bearer realm="api", error="insufficient_scope", scope="${scope}"` }
    })
  }
  if (wait !== null) {
    throw new ApiError("rate_limited", `too many requests: wait ${wait} s`, {
      headers: { "Retry-After": retryAfter(world, wait) }
    })
  }
  if (request.body !== null && request.body.length > bodyBytesMax) {
    throw new ApiError("invalid_request", `the body is longer than ${bodyBytesMax} bytes`)
  }
  const work = () => perform(world, request, token, action, query, `${base}${path ?? ""}`, noted)
  return request.method === "GET" ? work() : once(world, request, token, work, noted)
}

/** Runs a write once per Idempotency-Key. */
const once = (world: World, request: Request, token: Token, work: () => Result, noted: Notes): Result => {
  const key = keyOf(token.id, request)
  if (key === null) return work()
  const print = fingerprint(request)
  const now = world.clock.now()
  const { idempotency } = world
  const first = idempotency.recall(key, print, now)
  if (first !== null) {
    noted.isReplay = true
    return { ...first, headers: { ...first.headers, "Idempotent-Replayed": "true" } }
  }
  let result: Result
  let code: string | null = null
  try {
    result = work()
  } catch (error) {
    result = refusal(world, error, noted)
    code = error instanceof ApiError ? error.code : null
  }
  const keep = ({ status, body, headers = {} }: Result) => {
    if (isKept(status, code)) idempotency.keep(key, print, { status, body, headers, wire: null }, now)
  }
  const { pending } = result
  if (pending === undefined) {
    keep(result)
    return result
  }
  idempotency.claim(key, print, now)
  const done = settled(world, pending, noted).then((late) => {
    idempotency.release(key)
    keep(late)
    return late
  })
  return { ...result, pending: done }
}

const perform = (
  world: World,
  request: Request,
  token: Token,
  action: Action,
  query: string,
  address: string,
  noted: Notes
): Result => {
  const context = world.context(token.company, token.userId, token.scopes)
  switch (action.kind) {
    case "me":
      readParameters(query, [])
      return { status: 200, body: me(world, token) }
    case "webhooks": {
      const isEmpty = request.body === null || request.body.length === 0
      const body = () => (action.call === "test" && isEmpty ? undefined : readJson(request))
      const { call, id } = action
      return webhooks(world, { token, call, id, query, body, ifMatch: request.headers["if-match"], address })
    }
    case "list": {
      const table = world.store.table(token.company, action.resource.path)
      return { status: 200, ...list(table, world.renderer, world.dialect, query, world.clock.now(), address) }
    }
    case "retrieve": {
      const isIncluding = readInclude(readParameters(query, ["include"]))
      const version = find(context, action.resource, action.id)
      const more = isIncluding ? ([["custom_fields", world.renderer.customFields(version)]] as const) : []
      return shown(world, 200, { version, more })
    }
    case "create":
      readParameters(query, [])
      return shown(world, 201, create(context, action.resource, readJson(request)))
    case "batch":
      readParameters(query, [])
      return { status: 207, body: batch(world, context, action.resource, readJson(request), noted) }
    case "update": {
      readParameters(query, [])
      const body = readJson(request)
      const precondition = (version: Version) => refuseStale(world, request.headers["if-match"], version)
      const findRecord = () => find(context, action.resource, action.id)
      return shown(world, 200, update(context, action.resource, body, findRecord, precondition))
    }
    case "cancel":
      readParameters(query, [])
      return shown(world, 200, cancel(context, find(context, action.resource, action.id, unknownOnDelete(world))))
    case "special": {
      readParameters(query, [])
      const { resource, id, rule } = action
      rule.refuse?.(context)
      const body = request.body === null || request.body.length === 0 ? undefined : readJson(request)
      const outcome = special(context, find(context, resource, id, rule.unknownId), rule, body)
      return "kind" in outcome ? specialResult(world, outcome) : shown(world, outcome.status ?? 200, outcome)
    }
  }
}

const unknownOnDelete = ({ dialect }: World): string => (dialect.deleteUnknown === 422 ? "unknown_value" : "not_found")

/** The answer of an operation below a record, if it is not a record. */
const specialResult = (world: World, outcome: Shown): Result => {
  switch (outcome.kind) {
    case "object":
      return { status: 200, body: outcome.text }
    case "entries":
      return { status: 200, ...envelope(world.dialect, outcome.entries) }
    case "file": {
      const headers = { "Content-Type": "application/pdf", "Content-Disposition": `inline; filename="${outcome.name}"` }
      return {
        status: 200,
        body: "",
        pending: outcome.bytes.then((bytes) => ({ status: 200, body: "", bytes, headers }))
      }
    }
  }
}

/** Finds a record of the token's company. */
const find = ({ store, company }: Context, resource: Resource, id: number | null, code = "not_found"): Version => {
  const version = id === null ? undefined : store.table(company, resource.path).get(id)
  if (version === undefined) throw new ApiError(code, `there is no such record of ${resource.path}`)
  return version
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

const readJson = ({ body }: Request): unknown => {
  try {
    return parseExactly(utf8.decode(body ?? new Uint8Array()))
  } catch {
    throw new ApiError("invalid_json", "the body is not valid JSON")
  }
}

export const etagOf = ({ seq }: Version): string => `"v${seq.toString(36)}"`

/** A record as the answer to a read or a write, with its ETag (B-01). */
const shown = (world: World, status: number, { version, more }: Written): Result => ({
  status,
  body: more === undefined ? world.renderer.render(version) : world.renderer.renderWith(version, more),
  headers: world.dialect.etag ? { ETag: etagOf(version) } : {}
})

/** If-Match accepts the ETag, `*`, or lastchangedate quoted or bare (B-01); a refusal has the current record (B-03). */
const refuseStale = (world: World, header: string | undefined, version: Version) => {
  if (header === undefined) return
  const etag = etagOf(version)
  const changed = version.values["lastchangedate"]
  const isPresent = header
    .split(",")
    .map((tag) => tag.trim())
    .some(
      (tag) => tag === "*" || tag === etag || (typeof changed === "string" && tag.replace(/^"(.*)"$/, "$1") === changed)
    )
  if (isPresent) return
  throw new ApiError("stale_record", "the record has changed since: merge and send again", {
    current: world.renderer.render(version),
    ...(world.dialect.etag ? { headers: { ETag: etag } } : {})
  })
}

/** A path to a file inside a batch item (G-07). */
const isFilePath = (value: unknown) => typeof value === "string" && /\/(pdf|boxlabels|png)\/?$/i.test(value)

/** Each item is its own write, in order (G-01, G-02). */
const batch = (world: World, context: Context, resource: Resource, body: unknown, noted: Notes): string => {
  if (!Array.isArray(body)) throw new ApiError("invalid_request", "the body must be a JSON array of records")
  const items: ReadonlyArray<unknown> = body
  if (items.length > limits.batchRecordsMax) {
    throw new ApiError("batch_too_large", `at most ${limits.batchRecordsMax} records in one call, not ${items.length}`)
  }
  if (items.some((item) => isObject(item) && (isFilePath(item["path"]) || isFilePath(item["url"])))) {
    throw new ApiError("not_batchable", "a file cannot be asked for inside a batch")
  }
  const statusText = (status: number) =>
    world.dialect.batchStatus === "integer" ? String(status) : status < 300 ? '"created"' : '"error"'
  const results = items.map((item, index) => {
    try {
      const { version, more } = create(context, resource, item)
      const record = world.renderer.renderWith(version, more ?? [])
      return `{"index":${index},"status":${statusText(201)},"record":${record}}`
    } catch (error) {
      const apiError = error instanceof ApiError ? error : new ApiError("server_error", "this record was not written")
      if (apiError !== error) world.onDefect(error)
      noteItem(noted, index, apiError)
      return `{"index":${index},"status":${statusText(apiError.status)},"error":${printError(apiError)}}`
    }
  })
  return `{"results":[${results.join(",")}]}`
}

/** The identity and the rights of the token (C-05). */
const me = (world: World, token: Token): string => {
  const { catalogue } = world.store
  const { unlicensed } = world.settingsOf(token.company)
  return JSON.stringify({
    tokenid: token.id,
    userid: token.userId,
    user: token.login,
    companyid: token.company,
    scopes: [...token.scopes],
    expires: token.expires === null ? null : printInstant(token.expires),
    features: catalogue.features.filter((feature) => !unlicensed.has(feature)),
    resources: {
      ...Object.fromEntries(
        [...catalogue.resources.values()].map((resource) => [
          resource.path,
          operationsOf(resource, world.dialect.allOperations)
        ])
      ),
      webhooks: webhookOperations
    }
  })
}
