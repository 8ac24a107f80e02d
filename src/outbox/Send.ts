/**
 * Sending of a request until its outcome is known.
 *
 * Promise: the key is validated before every send. Retries with the same key end at an answer, at a key that the source
 * may have forgotten, or after {@link failuresMax} rounds in which the source itself failed. When the source cannot be
 * reached, or rejects our token, the session stops and the request stays open.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { WriteAnswer } from "../connector/Connector.ts"
import type { RefusalKind, SourceReason } from "../connector/SourceError.ts"
import { foreignKeyWaitMs, isKeyValid, mayBeSent } from "./KeyValidity.ts"
import { isStopped, type PushSession, type PushSessionError, stop, stopForSource, transaction } from "./PushSession.ts"
import * as RequestStore from "./RequestStore.ts"
import type { Rejection } from "./RowResolution.ts"
import * as Backoff from "../time/Backoff.ts"

export interface Answered {
  readonly _tag: "Answered"
  readonly answer: WriteAnswer
}

/** The source may or may not have written the records, and the key is not sent again. */
export interface Uncertain {
  readonly _tag: "Uncertain"
  readonly code: string
  readonly detail: string
  /** Whether the source failed; false when it may have forgotten the key. */
  readonly isFault: boolean
}

/** The source rejected the request as a whole. */
export interface Rejected extends Rejection {
  readonly _tag: "Rejected"
  readonly status: number | null
}

/** The session has stopped, and the request stays open. */
export interface Stopped {
  readonly _tag: "Stopped"
}

export type SendResult = Answered | Uncertain | Rejected
const stopped: Stopped = { _tag: "Stopped" }

/** Rounds in which the source failed, each after all retries of the client, before the outcome is uncertain. */
const failuresMax = 3
const pauseMs = 250
/** A source that requests a longer pause is not available. */
const retryAfterMax = Duration.minutes(1)

const uncertain = (code: string, detail: string, isFault = true): Uncertain => ({
  _tag: "Uncertain",
  code,
  detail,
  isFault
})

/** The result that an error of the whole request stands for. */
const resultOf = (
  request: RequestStore.PushRequest,
  reason: SourceReason
): Uncertain | Rejected | "retry" | "cancelled" | "stop" => {
  const rejected = (
    kind: RefusalKind,
    { status, code, detail }: { readonly status: number; readonly code: string; readonly detail: string }
  ): Rejected => ({ _tag: "Rejected", kind, status, code, field: null, detail, problems: [] })
  switch (reason._tag) {
    case "Refused": {
      const { kind, status, code, field, detail, problems } = reason
      // The source knows the key for other bytes: the outcome of these bytes is not known.
      return kind === "keyReused"
        ? uncertain("unclear", detail)
        : { _tag: "Rejected", kind, status, code, field, detail, problems }
    }
    case "NotFound":
      return rejected("unsupported", reason)
    case "NotImplemented":
      return request.operation === "batch" ? rejected("unsupported", reason) : "stop"
    case "Forbidden":
      return reason.kind === "recordLimit" && request.rows.length === 1 ? rejected("other", reason) : "stop"
    case "SendCancelled":
      return "cancelled"
    case "TooLarge":
      // The source may have written the records: only its answer was too long.
      return uncertain("unclear", `the answer is larger than ${reason.bytesMax} bytes`)
    case "ServerFault":
      return reason.retryAfter !== null && Duration.isGreaterThan(reason.retryAfter, retryAfterMax) ? "stop" : "retry"
    case "Malformed":
      return "retry"
    default:
      return "stop"
  }
}

/** One send by the client, with its retries. The key is validated before each of them. */
const attempt = Effect.fn("push.call")(function* (session: PushSession, request: RequestStore.PushRequest) {
  const { company, table, progress } = session
  if (isStopped(session)) return stopped
  const result = yield* Effect.result(
    company.connector.write({
      resource: table.resource,
      operation: request.operation,
      id: request.recordId,
      body: request.body,
      idempotencyKey: request.key,
      ifMatch: request.ifMatch,
      mayBeSent: mayBeSent(session, request)
    })
  )
  yield* Effect.annotateCurrentSpan({
    "tributary.company": company.name,
    "tributary.resource": table.resource.path,
    "tributary.operation": request.operation,
    "tributary.request_id": request.id,
    "tributary.records": request.rows.length,
    ...(result._tag === "Success" ? {} : { "error.type": result.failure.reason._tag })
  })
  const isSent = result._tag === "Success" || result.failure.reason._tag !== "SendCancelled"
  if (isSent) progress.requests += 1
  if (isSent && request.operation === "batch") progress.batches += 1
  return result
})

/** Stops the session while a request of another token may be in flight. */
const stopForForeignKey = (session: PushSession, waitMs: number): Stopped => {
  // With our token the source would not know its key, and a lookup may come too early.
  const minutes = Math.ceil(waitMs / 60_000)
  stop(session, {
    kind: "AnotherToken",
    message: "a request that was sent with another token may still be in flight",
    remedy: `run again in ${minutes} min, or now with that token`,
    disposition: "uncertain",
    stops: "resource"
  })
  return stopped
}

/** Sends the request, again with the same key while its outcome is not known. */
export const send = Effect.fnUntraced(function* (
  session: PushSession,
  stored: RequestStore.PushRequest
): Effect.fn.Return<SendResult | Stopped, PushSessionError> {
  let request = stored
  const waitMs = foreignKeyWaitMs(session, request)
  if (waitMs > 0) return stopForForeignKey(session, waitMs)
  for (;;) {
    if (request.failedAttempts >= failuresMax) {
      return uncertain("server_error", "the source failed at this request several times")
    }
    const attempted = yield* session.sendPermits.withPermits(1)(attempt(session, request))
    if (attempted._tag === "Stopped") return attempted
    if (attempted._tag === "Success") return { _tag: "Answered", answer: attempted.success }
    const error = attempted.failure
    const result = resultOf(request, error.reason)
    switch (result) {
      case "cancelled":
        if (!isKeyValid(session, request)) {
          return uncertain("unclear", "the source may not know its key any more", false)
        }
        // Another process has the fence, or the warehouse cannot be reached: this fails with the reason.
        yield* transaction(session, () => Effect.void)
        continue
      case "stop":
        stopForSource(session, error)
        return stopped
      case "retry":
        request = yield* transaction(session, (run) => RequestStore.addFailedAttempt(run, request, error.message))
        if (request.failedAttempts >= failuresMax) return uncertain("server_error", error.message)
        yield* Effect.sleep(Backoff.delayMs(request.failedAttempts, pauseMs, Number.POSITIVE_INFINITY))
        continue
      default:
        return result
    }
  }
})
