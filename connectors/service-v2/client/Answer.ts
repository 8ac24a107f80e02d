/**
 * Classification of answers that are not a success.
 *
 * Promise: the reason follows from the API's own `error.code`, then from the status, never from a message. A 401, 403
 * or 404 without this API's error body comes from elsewhere (a proxy, a wrong address) and never counts as the API's
 * answer. No text made here contains the token, even when the source sent it back.
 */
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Headers from "effect/http/Headers"
import * as Result from "effect/Result"
import { type PauseOrigin, pauseMaxMs } from "../../../src/budget/PermitRule.ts"
import * as SourceError from "../../../src/connector/SourceError.ts"
import { isObject, type JsonObject, member, parse, Unreadable } from "./Envelope.ts"

/** A complete answer. */
export interface Answer {
  readonly status: number
  readonly headers: Headers.Headers
  readonly bytes: Uint8Array
  readonly requestId: string | null
  /** When this attempt was sent, in milliseconds on the program's monotonic clock. */
  readonly beganAt: number
  /** Requests so far, this one included. */
  readonly attempts: number
}

/** A failed attempt and its reason. */
export class Failed {
  readonly reason: SourceError.SourceReason
  readonly requestId: string | null
  /** Fewer attempts than usual, for failures that a retry rarely changes. */
  readonly attemptsMax: number
  /** The Retry-After as sent; the reason has it up to the accepted maximum. */
  readonly stated: Duration.Duration | null
  /** Whether the answer had this API's error body. */
  readonly origin: PauseOrigin
  constructor(
    reason: SourceError.SourceReason,
    requestId: string | null,
    attemptsMax: number = Number.POSITIVE_INFINITY,
    stated: Duration.Duration | null = null,
    origin: PauseOrigin = "source"
  ) {
    this.reason = reason
    this.requestId = requestId
    this.attemptsMax = attemptsMax
    this.stated = stated
    this.origin = origin
  }
}

/** Attempts for an answer that is complete and yet not from this API. */
export const foreignAttemptsMax = 3

/** The code of a 413 that comes without this API's error body. */
const tooLargeCode = "request_too_large"

/** Statuses of intermediaries and databases under load that request a retry. */
export const againStatuses: ReadonlySet<number> = new Set([408, 423, 425])
const detailLengthMax = 500

/** The content of an error object. */
export interface ErrorBody {
  readonly code: string
  readonly detail: string
  readonly field: string | null
  readonly problems: ReadonlyArray<SourceError.Problem>
  readonly current: unknown
}

export const textOf = (object: JsonObject, name: string): string | null => {
  const value = member(object, name)
  return typeof value === "string" ? value : null
}

/** A text of the source as it may be stored: without the token, bounded, without characters that a database rejects. */
export const describe = (text: string | null, scrub: (text: string) => string): string =>
  scrub((text ?? "").replaceAll("\0", ""))
    .slice(0, detailLengthMax)
    .toWellFormed()

/** Reads `error` of a body, or of one item of a batch; null when it is not an error object of this API. */
export const errorBodyOf = (value: unknown, scrub: (text: string) => string): ErrorBody | null => {
  const error = isObject(value) ? member(value, "error") : undefined
  if (!isObject(error)) return null
  const code = textOf(error, "code")
  if (code === null) return null
  const errors = member(error, "errors")
  const kept = (text: string | null) => describe(text, scrub)
  return {
    code: kept(code),
    detail: kept(textOf(error, "message")),
    field: kept(textOf(error, "field")) || null,
    problems: (Array.isArray(errors) ? errors : []).filter(isObject).map((problem) => ({
      field: kept(textOf(problem, "field")),
      code: kept(textOf(problem, "code")),
      message: kept(textOf(problem, "message"))
    })),
    current: ["current", "record", "data"].map((name) => member(error, name)).find(isObject) ?? null
  }
}

/** One parameter of a WWW-Authenticate header, quoted or bare; null when it is absent. */
const authenticateParameter = (header: string | undefined, name: string): string | null => {
  const match = new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]+))`, "i").exec(
    header ?? ""
  )
  return match?.[1]?.replace(/\\(.)/g, "$1") ?? match?.[2] ?? null
}

/**
 * The wait that the source requests; null when it states none. A date is compared with the answer's own Date header, so
 * that a wrong clock here does not matter.
 */
export const retryAfter = (headers: Headers.Headers, nowMs: number): Duration.Duration | null => {
  const value = headers["retry-after"]
  if (value === undefined) return null
  const parsed = Headers.parseRetryAfter(value)
  if (Result.isFailure(parsed)) return null
  const date = headers["date"] === undefined ? null : Headers.parseHttpDate(headers["date"])
  const now = date !== null && Result.isSuccess(date) ? DateTime.toEpochMillis(date.success) : nowMs
  return Headers.retryAfterDelay(parsed.success, now)
}

/** The time of the answer by the source's Date header, RFC 3339 in UTC; null when that is absent or unreadable. */
export const answeredAt = (headers: Headers.Headers): string | null => {
  const date = headers["date"] === undefined ? null : Headers.parseHttpDate(headers["date"])
  if (date === null || Result.isFailure(date)) return null
  return DateTime.formatIso(date.success).replace(/\.000Z$/, "Z")
}

/** The request id that the source assigned: the header of that name, or the first header with a name like it. */
export const requestIdOf = (headers: Headers.Headers, name: string | null): string | null => {
  if (name !== null) return headers[name.toLowerCase()] ?? null
  for (const header of Object.keys(headers)) {
    if (/request-?id/i.test(header)) return headers[header] ?? null
  }
  return null
}

/** Codes of refusals that the engine handles specially. */
const refusalKinds: ReadonlyMap<string, SourceError.RefusalKind> = new Map([
  ["duplicate", "duplicate"],
  ["stale_record", "outdated"],
  ["idempotency_replay", "keyReused"],
  ["batch_too_large", "tooLarge"],
  ["unknown_parameter", "unknownField"]
])

export const refusalKindOf = (code: string, status: number | null): SourceError.RefusalKind =>
  refusalKinds.get(code) ?? (status === 413 ? "tooLarge" : status === 405 || status === 415 ? "unsupported" : "other")

const unauthorized = (code: string) =>
  new SourceError.Unauthorized({
    kind: code === "token_revoked" ? "revoked" : code === "token_expired" ? "expired" : "unknown",
    code
  })

const forbiddenKinds: ReadonlyMap<string, SourceError.Forbidden["kind"]> = new Map([
  ["insufficient_scope", "scope"],
  ["feature_not_licensed", "module"],
  ["record_limit_reached", "recordLimit"],
  ["forbidden", "user"]
])

const forbidden = (code: string, scope: string | null, detail: string) =>
  new SourceError.Forbidden({ kind: forbiddenKinds.get(code) ?? "other", code, scope, detail })

/** The request that failed, as far as its classification needs it. */
export interface RequestContext {
  /** Parameters that name the page, when the request was for a page by its token. */
  readonly pageParameters: ReadonlyArray<string> | null
  /** Replaces the token wherever the source sent it back. */
  readonly scrub: (text: string) => string
  readonly nowMs: number
}

/** Classifies an answer whose status is not a success. */
export const failure = (answer: Answer, asking: RequestContext): Failed => {
  const { status, headers, requestId } = answer
  const stated = retryAfter(headers, asking.nowMs)
  const failed = (reason: SourceError.SourceReason, attemptsMax?: number, origin?: PauseOrigin) =>
    new Failed(reason, requestId, attemptsMax, stated, origin)
  if (status >= 300 && status < 400) {
    const to = asking.scrub(headers["location"] ?? "").slice(0, detailLengthMax)
    return failed(new SourceError.Redirected({ status, to }))
  }
  const parsed = parse(answer.bytes)
  const complaint = parsed instanceof Unreadable ? null : errorBodyOf(parsed.value, asking.scrub)
  const origin = complaint === null ? "intermediary" : "source"
  const wait = stated === null ? null : Duration.min(stated, Duration.millis(pauseMaxMs[origin]))
  if (status === 410 && asking.pageParameters !== null) {
    return failed(new SourceError.PageTokenRefused({ detail: complaint?.detail ?? "gone (410)" }))
  }
  if (complaint === null) {
    const [reason, attemptsMax] = foreign(answer, wait, parsed instanceof Unreadable ? parsed.detail : null)
    return failed(reason, attemptsMax, origin)
  }

  const { code, detail, field, problems, current } = complaint
  // The first page succeeded. So a refusal without a field, or a 404, is about the address of this page.
  const isAboutPage =
    asking.pageParameters !== null &&
    (status === 404 ||
      ((status === 400 || status === 422) && (field === null || asking.pageParameters.includes(field))))
  const refusedPage = () => failed(new SourceError.PageTokenRefused({ detail: detail === "" ? code : detail }))
  switch (code) {
    case "rate_limited":
      return failed(new SourceError.RateLimited({ retryAfter: wait }))
    case "request_in_progress":
      return failed(new SourceError.InProgress({ retryAfter: wait }))
    case "unauthorized":
    case "token_revoked":
    case "token_expired":
      return failed(unauthorized(code))
    case "insufficient_scope":
    case "forbidden":
    case "feature_not_licensed":
    case "record_limit_reached":
      return failed(forbidden(code, scopeOf(headers), detail))
    case "not_found":
      return isAboutPage ? refusedPage() : failed(new SourceError.NotFound({ detail }))
    case "not_implemented":
      return failed(new SourceError.NotImplemented({ detail }))
    case "server_error":
      return failed(new SourceError.ServerFault({ status, code, retryAfter: wait }))
    default:
  }
  if (isAboutPage) return refusedPage()
  switch (status) {
    case 401:
      return failed(unauthorized(code))
    case 403:
      return failed(forbidden(code, scopeOf(headers), detail))
    case 404:
      return failed(new SourceError.NotFound({ detail: detail === "" ? code : detail }))
    case 429:
      return failed(new SourceError.RateLimited({ retryAfter: wait }))
    case 501:
      return failed(new SourceError.NotImplemented({ detail: detail === "" ? code : detail }))
    default:
  }
  if (status >= 500 || againStatuses.has(status)) {
    return failed(new SourceError.ServerFault({ status, code, retryAfter: wait }))
  }
  const kind = refusalKindOf(code, status)
  return failed(new SourceError.Refused({ kind, status, code, field, detail, problems, current }))
}

const scopeOf = (headers: Headers.Headers): string | null => authenticateParameter(headers["www-authenticate"], "scope")

/** An answer without this API's error body, classified by its status. */
const foreign = (
  { status, headers, bytes }: Answer,
  wait: Duration.Duration | null,
  unreadable: string | null
): readonly [SourceError.SourceReason, number?] => {
  const authenticate = headers["www-authenticate"]
  const error = authenticateParameter(authenticate, "error")
  if (status === 401 && error === "invalid_token") return [unauthorized("unauthorized")]
  if (status === 403 && error === "insufficient_scope") {
    const scope = authenticateParameter(authenticate, "scope")
    return [forbidden(error, scope, "the token lacks a scope")]
  }
  if (status === 429) return [new SourceError.RateLimited({ retryAfter: wait })]
  if (status === 501) return [new SourceError.NotImplemented({ detail: "the answer has no error body" })]
  if (status >= 500 || againStatuses.has(status)) {
    return [new SourceError.ServerFault({ status, code: null, retryAfter: wait })]
  }
  // For 413 from any sender: the same bytes are too large the next time as well. A smaller request may pass.
  if (status === 413) {
    const detail = "the request is larger than the source or an intermediary accepts"
    return [
      new SourceError.Refused({
        kind: "tooLarge",
        status,
        code: tooLargeCode,
        field: null,
        detail,
        problems: [],
        current: null
      })
    ]
  }
  const body = unreadable ?? `${bytes.length} bytes of JSON`
  const detail = `status ${status} without this API's error body: ${body}`
  return [new SourceError.Malformed({ detail }), foreignAttemptsMax]
}
