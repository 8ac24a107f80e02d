/**
 * The errors of the client.
 *
 * Promise: every rejection of the client is a {@link ServiceApiError}. Its `code` is stable: one of the API's documents, or
 * one of {@link ClientErrorCode}. No message and no property contains a token or a signing secret.
 */
import type { DocumentedErrorCode } from "./records/errorCodes.ts"

/** The codes of failures that no answer of the API states. */
export type ClientErrorCode =
  /** An option of the client is wrong. */
  | "configuration"
  /** An argument of a call is wrong; nothing was sent. */
  | "invalid_argument"
  /** The connection failed, or ended before the answer was whole. */
  | "unreachable"
  /** No whole answer within `requestTimeoutMs`. */
  | "timed_out"
  /** An earlier answer paused the token for longer than `maxRetryWaitMs`; nothing was sent. */
  | "paused"
  /** The answer is none of this API: a proxy, a wrong address, cut JSON. */
  | "unreadable_answer"
  /** The answer is larger than the client accepts. */
  | "answer_too_large"
  /** The service redirected the request; redirects are not followed. */
  | "redirected"
  /** The pages of a list cannot be trusted. */
  | "paging_broken"
  /** Records moved between pages while the list was read: read it again. */
  | "list_moved"
  /** A record does not fit the catalogue. */
  | "invalid_record"
  /** The answer does not say whether the record was written. */
  | "outcome_unknown"
  /** A part of a long batch was not sent or not answered. */
  | "incomplete_batch"
  /** The caller's signal ended the call. */
  | "aborted"
  /** A failure of the client itself. */
  | "internal"

/** Stable codes; an installation may answer further ones. */
export type ErrorCode = DocumentedErrorCode | ClientErrorCode | (string & {})

/** One problem of a refused body. */
export interface FieldProblem {
  /** Dotted and indexed path: `lines[0].quantity`. */
  readonly field: string
  readonly code: string
  readonly message: string
}

/** The facts of an error. */
export interface ErrorFacts {
  readonly code: ErrorCode
  /** The HTTP status; null when no answer of the API caused the error. */
  readonly status?: number | null
  readonly field?: string | null
  readonly errors?: ReadonlyArray<FieldProblem>
  readonly requestId?: string | null
  readonly retryAfterMs?: number | null
  readonly isRetryable?: boolean
  readonly isOutcomeUnknown?: boolean
  readonly idempotencyKey?: string | null
  readonly remedy: string
}

/** Any failure of the client. */
export class ServiceApiError extends Error {
  override readonly name: string = "ServiceApiError"
  readonly code: ErrorCode
  /** The HTTP status; null when no answer of the API caused the error. */
  readonly status: number | null
  /** The offending field or parameter; null when there is none. */
  readonly field: string | null
  /** Every problem of a body with several ones, in the order of the answer. */
  readonly errors: ReadonlyArray<FieldProblem>
  /** The id that the service gave the request; null when it gave none. */
  readonly requestId: string | null
  /** The least time to wait before another request, in milliseconds; null when the service did not say. */
  readonly retryAfterMs: number | null
  /** Whether the same call may succeed later. The client has retried it already, within its bounds. */
  readonly isRetryable: boolean
  /** Whether a failed write may have an effect. Then repeat it with the same `idempotencyKey`, or look the record up. */
  readonly isOutcomeUnknown: boolean
  /** The key of the failed write, given or made; null for reads. */
  readonly idempotencyKey: string | null
  /** What to do next. */
  readonly remedy: string

  constructor(message: string, facts: ErrorFacts, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = facts.code
    this.status = facts.status ?? null
    this.field = facts.field ?? null
    this.errors = facts.errors ?? []
    this.requestId = facts.requestId ?? null
    this.retryAfterMs = facts.retryAfterMs ?? null
    this.isRetryable = facts.isRetryable ?? false
    this.isOutcomeUnknown = facts.isOutcomeUnknown ?? false
    this.idempotencyKey = facts.idempotencyKey ?? null
    this.remedy = facts.remedy
  }
}

/** An option of {@link createClient} is wrong. Nothing was sent. */
export class ConfigurationError extends ServiceApiError {
  override readonly name = "ConfigurationError"
}

/** 401: the token is missing, unknown, revoked or expired. */
export class AuthenticationError extends ServiceApiError {
  override readonly name = "AuthenticationError"
}

/** 403: the token is valid and lacks a right: a scope, a licence, a record limit, a supervisor. */
export class PermissionError extends ServiceApiError {
  override readonly name = "PermissionError"
  /** The missing scope, where the service names it: `invoices:write`. */
  readonly scope: string | null
  constructor(message: string, facts: ErrorFacts, scope: string | null) {
    super(message, facts)
    this.scope = scope
  }
}

/** 404: no such record in the token's company. */
export class NotFoundError extends ServiceApiError {
  override readonly name = "NotFoundError"
}

/** 400, 405, 413, 415: the request is built wrongly. */
export class BadRequestError extends ServiceApiError {
  override readonly name = "BadRequestError"
}

/** 409: the request conflicts with the state of a record. */
export class ConflictError extends ServiceApiError {
  override readonly name = "ConflictError"
  /** The record as it is now, after `stale_record`, where the service sends it; as JSON. */
  readonly current: unknown
  constructor(message: string, facts: ErrorFacts, current: unknown) {
    super(message, facts)
    this.current = current
  }
}

/** 422: a business rule refused the record. A person must decide. */
export class RuleError extends ServiceApiError {
  override readonly name = "RuleError"
}

/** 429, or a pause that an earlier 429 requested. */
export class RateLimitError extends ServiceApiError {
  override readonly name = "RateLimitError"
}

/** 5xx: the service failed. */
export class ServerError extends ServiceApiError {
  override readonly name = "ServerError"
}

/** 501: this installation does not offer it. */
export class NotImplementedError extends ServiceApiError {
  override readonly name = "NotImplementedError"
}

/** No answer: the connection failed or the time was over. */
export class ConnectionError extends ServiceApiError {
  override readonly name = "ConnectionError"
}

/** An answer that is none of this API, or that cannot be used. */
export class AnswerError extends ServiceApiError {
  override readonly name = "AnswerError"
}

/** Records moved between the pages of a list, or its continuation expired. Records may be missing: read it again. */
export class ListMovedError extends ServiceApiError {
  override readonly name = "ListMovedError"
}

/** A record does not fit the catalogue, or has an integer that a JavaScript number cannot hold. */
export class InvalidRecordError extends ServiceApiError {
  override readonly name = "InvalidRecordError"
  /** The record's number where it is readable. */
  readonly id: string | null
  /** The JSON text as sent. */
  readonly json: string
  constructor(message: string, facts: ErrorFacts, id: string | null, json: string) {
    super(message, facts)
    this.id = id
    this.json = json
  }
}

/** The service answered, and the answer does not say whether the record was written. */
export class OutcomeUnknownError extends ServiceApiError {
  override readonly name = "OutcomeUnknownError"
}

/** The caller's signal ended the call. `cause` is the signal's reason. */
export class AbortedError extends ServiceApiError {
  override readonly name = "AbortedError"
}

/** A batch of more than one request ended early. `cause` is the error of the request that failed. */
export class IncompleteBatchError extends ServiceApiError {
  override readonly name = "IncompleteBatchError"
  /** A result for each record of the batch, in its order; those of later requests are `notSent`. */
  readonly results: ReadonlyArray<{ readonly index: number; readonly status: string }>
  constructor(message: string, facts: ErrorFacts, results: IncompleteBatchError["results"], cause: ServiceApiError) {
    super(message, facts, cause)
    this.results = results
  }
}

/** A delivery that must not be processed. Answer it with `status`. */
export class WebhookVerificationError extends ServiceApiError {
  override readonly name = "WebhookVerificationError"
  /** `forged` and `stale` are 401; `malformed` is 401; `no_event` is 400. */
  declare readonly code: "malformed" | "forged" | "stale" | "no_event"
  /** The status to answer the delivery with. */
  declare readonly status: 400 | 401
}
