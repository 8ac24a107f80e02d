/**
 * Failures of a source, classified by what to do next.
 *
 * Promise: every failure of a source is one {@link SourceError} whose reason says whether the same request may be sent
 * again (`isRetryable`), not before when (`retryAfter`), how much must stop (`stops`), and what a person can do
 * (`remedy`). No other module reads a status code.
 */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"

/** The meaning of a refused write for the engine; the code is for people. */
export type RefusalKind =
  /** The source has a record with the same external key, or another key that must be unique. */
  | "duplicate"
  /** The record is another version than the precondition names. */
  | "outdated"
  /** The source knows the idempotency key from other bytes. */
  | "keyReused"
  /** The request has too many records, or too many bytes. */
  | "tooLarge"
  /** The path does not accept such a request: no batches, for example. */
  | "unsupported"
  /** A member of the body has a name that the source does not know. */
  | "unknownField"
  | "other"

/** One problem of a refused body, as the source reports it. */
export interface Problem {
  readonly field: string
  readonly code: string
  readonly message: string
}

/** The connection failed, or ended before the answer was whole. */
export class Unreachable extends Data.TaggedClass("Unreachable")<{ readonly detail: string }> {
  readonly isRetryable = true
  readonly stops = "request"
  readonly remedy = "check that the address is right and the service is up; the next run goes on where this one stopped"
}

/** No whole answer within the time allowed. */
export class TimedOut extends Data.TaggedClass("TimedOut")<{ readonly after: Duration.Duration }> {
  readonly isRetryable = true
  readonly stops = "request"
  readonly remedy = "the service is slow or silent; the next run goes on where this one stopped"
}

/** 429: too many requests. `retryAfter` is null when the source did not say. */
export class RateLimited extends Data.TaggedClass("RateLimited")<{ readonly retryAfter: Duration.Duration | null }> {
  readonly isRetryable = true
  readonly stops = "request"
  readonly remedy = "lower budget.requests_per_minute, or find the other program that uses this token"
}

/** Not sent: an earlier answer paused the token for longer than a request waits. */
export class SourcePaused extends Data.TaggedClass("SourcePaused")<{
  readonly retryAfter: Duration.Duration
  /** The answer that caused the pause; null when it is unknown. */
  readonly detail: string | null
}> {
  readonly isRetryable = true
  readonly stops = "request"
  readonly remedy =
    "wait until then, or, when the fault is gone, run npx tributary budget release; npx tributary budget shows the answer that requested the pause"
}

/** 5xx: the source failed; a write did not complete. */
export class ServerFault extends Data.TaggedClass("ServerFault")<{
  readonly status: number
  readonly code: string | null
  readonly retryAfter: Duration.Duration | null
}> {
  readonly isRetryable = true
  readonly stops = "request"
  readonly remedy =
    "report the request id to the operator of the service; the next run continues where this one stopped"
}

/** The body is none of this API: HTML, cut JSON, another shape. */
export class Malformed extends Data.TaggedClass("Malformed")<{ readonly detail: string }> {
  readonly isRetryable = true
  readonly stops = "request"
  readonly remedy = "check that the base address ends in the API's own path and that no proxy answers in its place"
}

/** The first request with this idempotency key is in progress: the same bytes may be sent again later. */
export class InProgress extends Data.TaggedClass("InProgress")<{ readonly retryAfter: Duration.Duration | null }> {
  readonly isRetryable = true
  readonly stops = "request"
  readonly remedy = "wait: the first request with this key is still running"
}

/** 401: the token is missing, unknown, revoked or expired. */
export class Unauthorized extends Data.TaggedClass("Unauthorized")<{
  readonly kind: "revoked" | "expired" | "unknown"
  readonly code: string
}> {
  readonly isRetryable = false
  readonly stops = "company"
  get remedy(): string {
    switch (this.kind) {
      case "revoked":
        return "the token was revoked: issue a new one and put it in the configuration"
      case "expired":
        return "the token expired: issue a new one and put it in the configuration"
      default:
        return "the service does not know this token: check that it was copied whole"
    }
  }
}

/** 403: the token is valid and lacks a right. */
export class Forbidden extends Data.TaggedClass("Forbidden")<{
  /** `user`: no request of the token passes. `other`: only this one does not. */
  readonly kind: "scope" | "module" | "recordLimit" | "user" | "other"
  readonly code: string
  /** The scope that is missing, where the source names it. */
  readonly scope: string | null
  readonly detail: string
}> {
  readonly status = 403
  readonly isRetryable = false
  get stops(): "resource" | "company" {
    return this.kind === "user" ? "company" : "resource"
  }
  get remedy(): string {
    switch (this.kind) {
      case "scope":
        return this.scope === null
          ? "give the token the scope that this resource needs, or leave the resource out of the configuration"
          : `give the token the scope ${this.scope}, or leave the resource out of the configuration`
      case "module":
        return "this install has no licence for the module: leave the resource out of the configuration"
      case "recordLimit":
        return "the install is at its licensed number of records: retrying does not help"
      default:
        return "the token's user must be an active supervisor of the token's own company"
    }
  }
}

/** 404: no such record in the token's company, or no such path. */
export class NotFound extends Data.TaggedClass("NotFound")<{ readonly detail: string }> {
  readonly status = 404
  readonly code = "not_found"
  readonly isRetryable = false
  readonly stops = "resource"
  readonly remedy = "check the resource's name and the base address"
}

/** The source refused the request; the same request is refused again. */
export class Refused extends Data.TaggedClass("Refused")<{
  readonly kind: RefusalKind
  readonly status: number
  readonly code: string
  readonly field: string | null
  readonly detail: string
  readonly problems: ReadonlyArray<Problem>
  /** The current record where the source sent it, after a stale precondition. */
  readonly current: unknown
}> {
  readonly isRetryable = false
  readonly stops = "resource"
  readonly remedy = "the request does not fit what this installation offers; see the message"
}

/** A page token was refused or has expired: the scan must begin again. */
export class PageTokenRefused extends Data.TaggedClass("PageTokenRefused")<{ readonly detail: string }> {
  readonly isRetryable = false
  readonly stops = "resource"
  readonly remedy = "the scan begins again by itself"
}

/** Records moved between pages during the scan, so that it may have missed some. */
export class PageDrift extends Data.TaggedClass("PageDrift")<{ readonly detail: string }> {
  readonly isRetryable = false
  readonly stops = "resource"
  readonly remedy =
    "the scan begins again by itself; if that keeps failing, sync when fewer people work, or use larger pages"
}

/** 501: this installation does not implement the request. */
export class NotImplemented extends Data.TaggedClass("NotImplemented")<{ readonly detail: string }> {
  readonly status = 501
  readonly code = "not_implemented"
  readonly isRetryable = false
  readonly stops = "resource"
  readonly remedy = "this installation does not offer it: leave it out of the configuration"
}

/** The answer exceeded the size limit. */
export class TooLarge extends Data.TaggedClass("TooLarge")<{ readonly bytesMax: number }> {
  readonly isRetryable = false
  readonly stops = "resource"
  readonly remedy = "lower page_size, or raise the limit on the size of an answer"
}

/** The source answered with a redirect, which is never followed: the token would go along. */
export class Redirected extends Data.TaggedClass("Redirected")<{ readonly status: number; readonly to: string }> {
  readonly isRetryable = false
  readonly stops = "company"
  get remedy(): string {
    return `redirects are not followed; if ${this.to === "" ? "the new address" : this.to} is right, configure it`
  }
}

/** The pages themselves cannot be trusted: a page repeats, or a full page names no continuation. */
export class PagingBroken extends Data.TaggedClass("PagingBroken")<{ readonly detail: string }> {
  readonly isRetryable = false
  readonly stops = "resource"
  readonly remedy = "set paging.mode in the configuration to how this installation pages"
}

/** The write was cancelled before an attempt; an earlier attempt may have taken effect. */
export class SendCancelled extends Data.TaggedClass("SendCancelled")<{ readonly attempts: number }> {
  readonly isRetryable = false
  readonly stops = "request"
  readonly remedy = "its outcome is looked up"
}

/** The warehouse's rows come from another source; nothing was written. */
export class SourceChanged extends Data.TaggedClass("SourceChanged")<{ readonly detail: string }> {
  readonly isRetryable = false
  readonly stops = "company"
  readonly remedy =
    "check the address and the token of the company; use another database for another source (DATABASE_URL), or, if it replaces the earlier one, run npx tributary sync --accept-new-source"
}

export type SourceReason =
  | Unreachable
  | TimedOut
  | RateLimited
  | SourcePaused
  | ServerFault
  | Malformed
  | InProgress
  | Unauthorized
  | Forbidden
  | NotFound
  | Refused
  | PageTokenRefused
  | PageDrift
  | NotImplemented
  | TooLarge
  | Redirected
  | PagingBroken
  | SendCancelled
  | SourceChanged

/** The consequence of a failed request for later requests. */
export type SourceDisposition =
  /** The source refuses access (token, scope, licence): only a person can change that. */
  | "refused"
  /** The source does not offer it. */
  | "unsupported"
  /** The configuration is the cause: a person must act. */
  | "configuration"
  /** The source takes no requests for some time. */
  | "paused"
  /** The fault may be that of the request alone, or of the whole source. */
  | "uncertain"
  /** The request itself fails, and fails again. */
  | "request"

const dispositions: Readonly<Record<SourceReason["_tag"], SourceDisposition>> = {
  Forbidden: "refused",
  InProgress: "uncertain",
  Malformed: "uncertain",
  NotFound: "request",
  NotImplemented: "unsupported",
  PageDrift: "request",
  PageTokenRefused: "request",
  PagingBroken: "request",
  RateLimited: "paused",
  Redirected: "request",
  Refused: "request",
  SendCancelled: "request",
  ServerFault: "uncertain",
  SourceChanged: "configuration",
  SourcePaused: "paused",
  TimedOut: "uncertain",
  TooLarge: "request",
  Unauthorized: "refused",
  Unreachable: "uncertain"
}

/** The failed request; it carries no token. */
export interface RequestSummary {
  readonly method: string
  /** Path and query below the base address. */
  readonly path: string
  readonly requestId: string | null
  /** How often it was sent; absent where it was not counted. */
  readonly attempts?: number
}

const describe = (reason: SourceReason): string => {
  switch (reason._tag) {
    case "Unreachable":
      return `the connection failed (${reason.detail})`
    case "TimedOut":
      return `no whole answer within ${Duration.toMillis(reason.after)} ms`
    case "RateLimited":
      return reason.retryAfter === null
        ? "too many requests (429)"
        : `too many requests (429), the answer requests a wait of ${Math.ceil(Duration.toSeconds(reason.retryAfter))} s`
    case "SourcePaused":
      return `not sent: requests are paused for another ${Math.ceil(Duration.toSeconds(reason.retryAfter))} s${reason.detail === null ? "" : `: ${reason.detail}`}`
    case "ServerFault":
      return `the service failed (${reason.status}${reason.code === null ? "" : ` ${reason.code}`})`
    case "Malformed":
      return `the answer is none of this API (${reason.detail})`
    case "InProgress":
      return "the first request with this idempotency key is still running (409 request_in_progress)"
    case "Unauthorized":
      return `the token was not accepted (401 ${reason.code})`
    case "Forbidden":
      return `the token may not do this (403 ${reason.code}): ${reason.detail}`
    case "NotFound":
      return `not found (404): ${reason.detail}`
    case "Refused":
      return `refused (${reason.status} ${reason.code}${reason.field === null ? "" : `, field ${reason.field}`}): ${reason.detail}`
    case "PageTokenRefused":
      return `the page token was refused: ${reason.detail}`
    case "PageDrift":
      return `records moved between pages while they were read: ${reason.detail}`
    case "NotImplemented":
      return `not built (501): ${reason.detail}`
    case "TooLarge":
      return `the answer is larger than ${reason.bytesMax} bytes`
    case "Redirected":
      return `redirected (${reason.status})`
    case "PagingBroken":
      return `paging cannot be trusted: ${reason.detail}`
    case "SendCancelled":
      return `not sent any more (after ${reason.attempts} attempts)`
    case "SourceChanged":
      return `another source: ${reason.detail}; nothing was written`
  }
}

/** A failed request to a source. */
export class SourceError extends Data.TaggedError("SourceError")<{
  readonly reason: SourceReason
  readonly request: RequestSummary
}> {
  override get message(): string {
    // The request itself is right.
    if (this.reason._tag === "SourceChanged") return describe(this.reason)
    const { method, path, requestId } = this.request
    const id = requestId === null ? "" : ` [request ${requestId}]`
    return `${method} ${path}: ${describe(this.reason)}${id}`
  }
  /** Whether the same bytes may be sent again. */
  get isRetryable(): boolean {
    return this.reason.isRetryable
  }
  /** The least time to wait in milliseconds; null when the source did not say. */
  get retryAfter(): Duration.Duration | null {
    return "retryAfter" in this.reason ? this.reason.retryAfter : null
  }
  /** How much must stop: this request, the resource, or everything of the token's company. */
  get stops(): "request" | "resource" | "company" {
    return this.reason.stops
  }
  get disposition(): SourceDisposition {
    return dispositions[this.reason._tag]
  }
  /** The action that a person can take. */
  get remedy(): string {
    return this.reason.remedy
  }
}
