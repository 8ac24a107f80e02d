/**
 * Failures of the connector as errors of the client.
 *
 * Promise: the class and the code follow from the reason that `client/Answer.ts` decided, never from a message. Each error
 * says what to do next.
 */
import * as Duration from "effect/Duration"
import type { SourceError, SourceReason } from "../../../src/connector/SourceError.ts"
import type { WriteRejected } from "../../../src/connector/WriteResult.ts"
import { serviceV2 } from "../catalogue/index.ts"
import * as Errors from "./Errors.ts"

/** The call that failed. */
export interface FailedCall {
  /** The key of a write; null for a read. */
  readonly idempotencyKey: string | null
  readonly isWrite: boolean
}

const conditions = new Map(serviceV2.errorCodes.map(({ code, condition }) => [code, condition]))

/** Remedies of codes that need another one than that of their status. */
const remedies: Readonly<Record<string, string>> = {
  duplicate: "find the existing record by its key and compare it; do not create it again",
  idempotency_replay: "give each new body a new idempotency key",
  request_in_progress: "wait, and repeat the same call under the same key: it gets the first answer",
  stale_record: "read the record again, merge your changes, and update it with its new version",
  token_revoked: "issue a new token",
  token_expired: "issue a new token",
  unauthorized: "check that the token was copied whole and belongs to this address",
  forbidden: "the token's user must be an active supervisor of the token's own company",
  feature_not_licensed: "the installation has no licence for this module: leave it out",
  record_limit_reached: "the installation is at its licensed number of records; retrying does not help",
  batch_too_large: "send fewer records at once",
  invalid_precision: "send no more decimals than the field holds; nothing is rounded",
  invalid_type: "send decimals as text, and the type that the field states",
  unknown_value: "correct the reference that `field` names",
  ambiguous_value: "send the id instead of the code"
}

/** What to do after a refusal. */
const refusalRemedy = (status: number | null, code: string): string => {
  const known = remedies[code]
  if (known !== undefined) return known
  const condition = conditions.get(code)
  const because = condition === undefined ? "" : ` (${condition})`
  switch (status) {
    case 409:
      return `change the state that blocks the request first${because}`
    case 422:
      return `a business rule refused it, so a person must decide${because}`
    default:
      return `correct the request${because}; the same one is refused again`
  }
}

const wait = "wait for `retryAfterMs` and repeat the call; lower `requestsPerMinute` where other programs use the token"
const repeat = "repeat the call later; a write under the same idempotency key"

/** The code of a failure, its status and its remedy. */
const factsOf = (reason: SourceReason): Pick<Errors.ErrorFacts, "code" | "status" | "field" | "errors" | "remedy"> => {
  switch (reason._tag) {
    case "Unreachable":
      return { code: "unreachable", remedy: `check the address and the network; ${repeat}` }
    case "TimedOut":
      return { code: "timed_out", remedy: `${repeat}; raise \`requestTimeoutMs\` where the service is slow` }
    case "RateLimited":
      return { code: "rate_limited", status: 429, remedy: wait }
    case "SourcePaused":
      return { code: "paused", remedy: wait }
    case "ServerFault":
      return {
        code: reason.code ?? "server_error",
        status: reason.status,
        remedy: `${repeat}; report the request id when it lasts`
      }
    case "Malformed":
      return {
        code: "unreadable_answer",
        remedy: "check that `baseUrl` ends in the API's own path and that no proxy answers in its place"
      }
    case "InProgress":
      return { code: "request_in_progress", status: 409, remedy: remedies["request_in_progress"]! }
    case "Unauthorized":
      return { code: reason.code, status: 401, remedy: refusalRemedy(401, reason.code) }
    case "Forbidden":
      return {
        code: reason.code,
        status: 403,
        remedy:
          reason.kind === "scope"
            ? `give the token the scope ${reason.scope ?? "that the resource needs"}`
            : (remedies[reason.code] ?? "ask the administrator of the installation for the right")
      }
    case "NotFound":
      return {
        code: "not_found",
        status: 404,
        remedy: "check the id; a record of another company answers as if it did not exist"
      }
    case "Refused": {
      const { code, status, field, problems: errors } = reason
      return { code, status, field, errors, remedy: refusalRemedy(status, code) }
    }
    case "PageTokenRefused":
    case "PageDrift":
      return { code: "list_moved", remedy: "read the list again from its beginning" }
    case "NotImplemented":
      return { code: "not_implemented", status: 501, remedy: "this installation does not offer it" }
    case "TooLarge":
      return { code: "answer_too_large", remedy: "set a smaller `pageSize`, or raise `maxAnswerBytes`" }
    case "Redirected":
      return {
        code: "redirected",
        status: reason.status,
        remedy: "redirects are not followed; set `baseUrl` to the new address if it is right"
      }
    case "PagingBroken":
      return { code: "paging_broken", remedy: "set `paging.mode` to how this installation pages" }
    case "SendCancelled":
    case "SourceChanged":
      return { code: "internal", remedy: "report it to the maintainers of this client" }
  }
}

/** Whether a write that failed after this many attempts may have an effect. */
const isOutcomeUnknown = (reason: SourceReason, attempts: number): boolean => {
  if (attempts === 0) return false
  switch (reason._tag) {
    // Under the same key a refusal is the answer to the first attempt as well.
    case "Refused":
      return false
    case "RateLimited":
    case "SourcePaused":
    case "Unauthorized":
    case "Forbidden":
    case "NotFound":
    case "NotImplemented":
    case "Redirected":
      return attempts > 1
    default:
      return true
  }
}

const byStatus = (message: string, facts: Errors.ErrorFacts, current: unknown): Errors.ServiceApiError => {
  switch (facts.status) {
    case 401:
      return new Errors.AuthenticationError(message, facts)
    case 403:
      return new Errors.PermissionError(message, facts, null)
    case 404:
      return new Errors.NotFoundError(message, facts)
    case 409:
      return new Errors.ConflictError(message, facts, current)
    case 422:
      return new Errors.RuleError(message, facts)
    case 429:
      return new Errors.RateLimitError(message, facts)
    case 501:
      return new Errors.NotImplementedError(message, facts)
    default:
      return (facts.status ?? 0) >= 500
        ? new Errors.ServerError(message, facts)
        : new Errors.BadRequestError(message, facts)
  }
}

/** A failed request as an error. */
export const errorOf = (error: SourceError, call: FailedCall): Errors.ServiceApiError => {
  const { reason, request, retryAfter } = error
  const facts: Errors.ErrorFacts = {
    ...factsOf(reason),
    requestId: request.requestId,
    retryAfterMs: retryAfter === null ? null : Math.ceil(Duration.toMillis(retryAfter)),
    isRetryable: error.isRetryable || reason._tag === "PageDrift" || reason._tag === "PageTokenRefused",
    isOutcomeUnknown: call.isWrite && isOutcomeUnknown(reason, request.attempts ?? 1),
    idempotencyKey: call.idempotencyKey
  }
  const message = `${error.message}: ${facts.remedy}`
  switch (reason._tag) {
    case "Unreachable":
    case "TimedOut":
      return new Errors.ConnectionError(message, facts)
    case "SourcePaused":
      return new Errors.RateLimitError(message, facts)
    case "Malformed":
    case "TooLarge":
    case "Redirected":
    case "PagingBroken":
      return new Errors.AnswerError(message, facts)
    case "PageDrift":
    case "PageTokenRefused":
      return new Errors.ListMovedError(message, facts)
    case "ServerFault":
      return new Errors.ServerError(message, facts)
    case "Forbidden":
      return new Errors.PermissionError(message, facts, reason.scope)
    case "SendCancelled":
    case "SourceChanged":
      return new Errors.ServiceApiError(message, facts)
    default:
      return byStatus(message, facts, reason._tag === "Refused" ? reason.current : null)
  }
}

/** A refused record of a batch as an error. */
export const errorOfItem = (path: string, item: WriteRejected, idempotencyKey: string): Errors.ServiceApiError => {
  const { index, status, code, field, detail, problems: errors, isRetryable } = item
  const remedy = isRetryable ? "send this record again under a new idempotency key" : refusalRemedy(status, code)
  const facts = { code, status, field, errors, isRetryable, idempotencyKey, remedy }
  const where = field === null ? "" : `, field ${field}`
  const message = `POST /${path}/batch, record ${index}: refused (${status ?? "no status"} ${code}${where}): ${detail}: ${remedy}`
  return byStatus(message, facts, null)
}
