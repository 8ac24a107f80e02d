/**
 * Failures of a source, classified by what to do next.
 *
 * Promise: every failure of a source is one {@link SourceError}. Its reason says how it is handled ({@link Handling}), and
 * not before when the request may be sent again (`retryAfter`). No other module reads a status code.
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

/** The consequence of a failed request for later requests. */
export type SourceDisposition =
  /** The token lacks the scope, or the installation the licence: only a person can change that. */
  | "blocked"
  /** The source refuses the token, or this request of it. */
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

/** The handling of a failure: what happens next, and what people read. */
export interface Handling {
  /** Whether the same bytes may be sent again. */
  readonly isRetryable: boolean
  /** How much must stop: this request, the resource, or everything of the token's company. */
  readonly stops: "request" | "resource" | "company"
  /** Whether the token or the address may be the cause: then `FailureScope.ts` requests the identity. */
  readonly isSuspicion: boolean
  readonly disposition: SourceDisposition
  /** What happened. */
  readonly description: string
  /** The action that a person can take. */
  readonly remedy: string
}

const retryable = (description: string, remedy: string, disposition: SourceDisposition = "uncertain"): Handling => ({
  isRetryable: true,
  stops: "request",
  isSuspicion: false,
  disposition,
  description,
  remedy
})

const final = (
  stops: Handling["stops"],
  description: string,
  remedy: string,
  disposition: SourceDisposition = "request"
): Handling => ({ isRetryable: false, stops, isSuspicion: false, disposition, description, remedy })

/** A failure of one request whose cause may be the token or the address. */
const suspicion = (description: string, remedy: string, disposition: SourceDisposition): Handling => ({
  ...final("resource", description, remedy, disposition),
  isSuspicion: true
})

const secondsOf = (duration: Duration.Duration): number => Math.ceil(Duration.toSeconds(duration))

const tokenRemedies: Readonly<Record<Unauthorized["kind"], string>> = {
  revoked: "the token was revoked: issue a new one and put it in the configuration",
  expired: "the token expired: issue a new one and put it in the configuration",
  unknown: "the service does not know this token: check that it was copied whole"
}

const rightRemedies: Readonly<Record<Forbidden["kind"], (scope: string | null) => string>> = {
  scope: (scope) =>
    `give the token the scope ${scope ?? "that this resource needs"}, or leave the resource out of the configuration`,
  module: () => "this install has no licence for the module: leave the resource out of the configuration",
  recordLimit: () => "the install is at its licensed number of records: retrying does not help",
  user: () => "the token's user must be an active supervisor of the token's own company",
  other: () => "see the message of the service; the token may lack a right that the documents do not name"
}

/** The connection failed, or ended before the answer was whole. It has a remedy where the cause is not the service. */
export class Unreachable extends Data.TaggedClass("Unreachable")<Readonly<{ detail: string; remedy?: string }>> {
  readonly handling = retryable(
    `the connection failed (${this.detail})`,
    `${this.remedy ?? "check that the address is right and the service is up"}; the next run goes on where this one stopped`
  )
}

/** No whole answer within the time allowed. */
export class TimedOut extends Data.TaggedClass("TimedOut")<{ readonly after: Duration.Duration }> {
  readonly handling = retryable(
    `no whole answer within ${Duration.toMillis(this.after)} ms`,
    "the service is slow or silent; the next run goes on where this one stopped"
  )
}

/** 429: too many requests. `retryAfter` is null when the source did not say. */
export class RateLimited extends Data.TaggedClass("RateLimited")<{ readonly retryAfter: Duration.Duration | null }> {
  readonly handling = retryable(
    `too many requests (429)${this.retryAfter === null ? "" : `, the answer requests a wait of ${secondsOf(this.retryAfter)} s`}`,
    "lower budget.requests_per_minute, or find the other program that uses this token",
    "paused"
  )
}

/** Not sent: an earlier answer paused the token for longer than a request waits. */
export class SourcePaused extends Data.TaggedClass("SourcePaused")<{
  readonly retryAfter: Duration.Duration
  /** The answer that caused the pause; null when it is unknown. */
  readonly detail: string | null
}> {
  readonly handling = retryable(
    `not sent: requests are paused for another ${secondsOf(this.retryAfter)} s${this.detail === null ? "" : `: ${this.detail}`}`,
    "wait until then, or, when the fault is gone, run tributary budget release; tributary budget shows the answer that requested the pause",
    "paused"
  )
}

/** 5xx: the source failed; a write did not complete. */
export class ServerFault extends Data.TaggedClass("ServerFault")<{
  readonly status: number
  readonly code: string | null
  readonly retryAfter: Duration.Duration | null
}> {
  readonly handling = retryable(
    `the service failed (${this.status}${this.code === null ? "" : ` ${this.code}`})`,
    "report the request id to the operator of the service; the next run continues where this one stopped"
  )
}

/** The body is none of this API: HTML, cut JSON, another shape. */
export class Malformed extends Data.TaggedClass("Malformed")<{ readonly detail: string }> {
  readonly handling = retryable(
    `the answer is none of this API (${this.detail})`,
    "check that the base address ends in the API's own path and that no proxy answers in its place"
  )
}

/** The first request with this idempotency key is in progress: the same bytes may be sent again later. */
export class InProgress extends Data.TaggedClass("InProgress")<{ readonly retryAfter: Duration.Duration | null }> {
  readonly handling = retryable(
    "the first request with this idempotency key is still running (409 request_in_progress)",
    "wait: the first request with this key is still running"
  )
}

/** 401: the token is missing, unknown, revoked or expired. */
export class Unauthorized extends Data.TaggedClass("Unauthorized")<{
  readonly kind: "revoked" | "expired" | "unknown"
  readonly code: string
}> {
  readonly handling = suspicion(`the token was not accepted (401 ${this.code})`, tokenRemedies[this.kind], "refused")
}

/** 403: the token is valid and lacks a right. */
export class Forbidden extends Data.TaggedClass("Forbidden")<{
  /** `user`: by the documents no request of the token passes. `other`: an unknown code. */
  readonly kind: "scope" | "module" | "recordLimit" | "user" | "other"
  readonly code: string
  /** The scope that is missing, where the source names it. */
  readonly scope: string | null
  readonly detail: string
}> {
  readonly status = 403
  readonly handling: Handling = {
    ...suspicion(
      `the token may not do this (403 ${this.code}): ${this.detail}`,
      rightRemedies[this.kind](this.scope),
      this.kind === "user" || this.kind === "other" ? "refused" : "blocked"
    ),
    isSuspicion: this.kind === "user" || this.kind === "other"
  }
}

/** 404: no such record in the token's company, or no such path. */
export class NotFound extends Data.TaggedClass("NotFound")<{ readonly detail: string }> {
  readonly status = 404
  readonly code = "not_found"
  readonly handling = final(
    "resource",
    `not found (404): ${this.detail}`,
    "check the resource's name and the base address"
  )
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
  readonly handling = final(
    "resource",
    `refused (${this.status} ${this.code}${this.field === null ? "" : `, field ${this.field}`}): ${this.detail}`,
    "the request does not fit what this installation offers; see the message"
  )
}

/** A page token was refused or has expired: the scan must begin again. */
export class PageTokenRefused extends Data.TaggedClass("PageTokenRefused")<{ readonly detail: string }> {
  readonly handling = final("resource", `the page token was refused: ${this.detail}`, "the scan begins again by itself")
}

/** Records moved between pages during the scan, so that it may have missed some. */
export class PageDrift extends Data.TaggedClass("PageDrift")<{ readonly detail: string }> {
  readonly handling = final(
    "resource",
    `records moved between pages while they were read: ${this.detail}`,
    "the scan begins again by itself; if that keeps failing, sync when fewer people work, or use larger pages"
  )
}

/** 501: this installation does not implement the request. */
export class NotImplemented extends Data.TaggedClass("NotImplemented")<{ readonly detail: string }> {
  readonly status = 501
  readonly code = "not_implemented"
  readonly handling = final(
    "resource",
    `not built (501): ${this.detail}`,
    "this installation does not offer it: leave it out of the configuration",
    "unsupported"
  )
}

/** The answer exceeded the size limit. */
export class TooLarge extends Data.TaggedClass("TooLarge")<{ readonly bytesMax: number }> {
  readonly handling = final(
    "resource",
    `the answer is larger than ${this.bytesMax} bytes`,
    "lower page_size, or raise the limit on the size of an answer"
  )
}

/** The source answered with a redirect, which is never followed: the token would go along. */
export class Redirected extends Data.TaggedClass("Redirected")<{ readonly status: number; readonly to: string }> {
  readonly handling = suspicion(
    `redirected (${this.status})`,
    `redirects are not followed; if ${this.to === "" ? "the new address" : this.to} is right, configure it`,
    "request"
  )
}

/** The pages themselves cannot be trusted: a page repeats, or a full page names no continuation. */
export class PagingBroken extends Data.TaggedClass("PagingBroken")<{ readonly detail: string }> {
  readonly handling = final(
    "resource",
    `paging cannot be trusted: ${this.detail}`,
    "set paging.mode in the configuration to how this installation pages"
  )
}

/** The write was cancelled before an attempt; an earlier attempt may have taken effect. */
export class SendCancelled extends Data.TaggedClass("SendCancelled")<{ readonly attempts: number }> {
  readonly handling = final(
    "request",
    `not sent any more (after ${this.attempts} attempts)`,
    "its outcome is looked up"
  )
}

/** The warehouse's rows are of another source, or the number is of another company; nothing was written. */
export class SourceChanged extends Data.TaggedClass("SourceChanged")<{ readonly detail: string; remedy?: string }> {
  readonly handling = final(
    "company",
    `another source: ${this.detail}; nothing was written`,
    this.remedy ??
      "check the address and the token of the company; give another source another name, or, if it replaces the earlier one, run tributary sync --accept-new-source",
    "configuration"
  )
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

/** The failed request; it carries no token. */
export interface RequestSummary {
  readonly method: string
  /** Path and query below the base address. */
  readonly path: string
  readonly requestId: string | null
  /** How often it was sent; absent where it was not counted. */
  readonly attempts?: number
}

/** The remedy where the cause is neither the token nor the address. */
const aloneRemedy =
  "the source accepts the token elsewhere, so only this path is concerned: report the request to the operator of the service, or leave the resource out of the configuration"

/** A failed request to a source. */
export class SourceError extends Data.TaggedError("SourceError")<{
  readonly reason: SourceReason
  readonly request: RequestSummary
  /** `company`: the source refuses the identity, too. `resource`: it answers that. Absent: neither is known. */
  readonly scope?: "company" | "resource"
}> {
  override get message(): string {
    const { description } = this.reason.handling
    // The request itself is right.
    if (this.reason._tag === "SourceChanged") return description
    const { method, path, requestId } = this.request
    const id = requestId === null ? "" : ` [request ${requestId}]`
    return `${method} ${path}: ${description}${id}`
  }
  get isRetryable(): boolean {
    return this.reason.handling.isRetryable
  }
  /** The least time to wait; null when the source did not say. */
  get retryAfter(): Duration.Duration | null {
    return "retryAfter" in this.reason ? this.reason.retryAfter : null
  }
  get stops(): Handling["stops"] {
    return this.scope ?? this.reason.handling.stops
  }
  get disposition(): SourceDisposition {
    return this.reason.handling.disposition
  }
  get remedy(): string {
    return this.scope === "resource" ? aloneRemedy : this.reason.handling.remedy
  }
}

/** In the place of a message of the source that may quote a value with a privacy rule. */
export const textLeftOut = "the message of the service is left out, since it may quote values"

export const withoutText = (problem: Problem): Problem => ({ ...problem, message: textLeftOut })

const reasonWithoutTexts = (reason: SourceReason): SourceReason => {
  switch (reason._tag) {
    case "Forbidden":
      return new Forbidden({ kind: reason.kind, code: reason.code, scope: reason.scope, detail: textLeftOut })
    case "NotFound":
      return new NotFound({ detail: textLeftOut })
    case "NotImplemented":
      return new NotImplemented({ detail: textLeftOut })
    case "PageTokenRefused":
      return new PageTokenRefused({ detail: textLeftOut })
    case "Refused": {
      const { code, field, kind, problems, status } = reason
      const texts = { detail: textLeftOut, problems: problems.map(withoutText), current: null }
      return new Refused({ kind, status, code, field, ...texts })
    }
    default:
      return reason
  }
}

/** The failure without the texts and the record that the source sent: its codes and the names of fields stay. */
export const withoutTexts = (error: SourceError): SourceError => {
  const { request, scope } = error
  const reason = reasonWithoutTexts(error.reason)
  return new SourceError({ reason, request, ...(scope === undefined ? {} : { scope }) })
}
