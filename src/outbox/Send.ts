/**
 * Sending a call until something is known.
 *
 * Promise: the key's age is looked at before every send; retries with the same key end at an answer, at a key that the
 * source may have forgotten, or after {@link failuresMax} rounds in which the source itself failed. Whoever cannot be
 * reached, or does not let us, stops the turn, and the call stays open as it is.
 */
import * as Effect from "effect/Effect"
import type { WriteAnswer } from "../connector/Connector.ts"
import type { Problem, SourceReason } from "../connector/SourceError.ts"
import * as RequestStore from "./RequestStore.ts"
import type { PushSession, PushSessionError } from "./PushSession.ts"

/** What is known after sending. */
export type SendResult =
  | { readonly _tag: "Answered"; readonly answer: WriteAnswer }
  /** The source may have forgotten the key. */
  | { readonly _tag: "Expired"; readonly detail: string }
  /** The answers do not say what became of it. */
  | { readonly _tag: "GivenUp"; readonly code: string; readonly detail: string }
  | {
      readonly _tag: "Refused"
      readonly status: number | null
      readonly code: string
      readonly field: string | null
      readonly detail: string
      readonly problems: ReadonlyArray<Problem>
    }
  /** It stays open. */
  | { readonly _tag: "Stopped" }

/** So often the source may fail at a call, each time after all retries, before its key is given up. */
const failuresMax = 3
/** So many calls in a row may be given up before the turn stops. */
const inVainMax = 3
const pauseMs = 250
/** A source that asks to wait longer than this is not there. */
const patienceMs = 60_000

/** What a failure of the whole call says. */
const meaningOf = (call: RequestStore.PushRequest, reason: SourceReason): SendResult | "again" | "late" | "stop" => {
  const isBatch = call.operation === "batch"
  const refused = (status: number | null, code: string, detail: string): SendResult => ({
    _tag: "Refused",
    status,
    code,
    field: null,
    detail,
    problems: []
  })
  switch (reason._tag) {
    case "Refused": {
      const { status, code, field, detail, problems } = reason
      // The key is known for other bytes: what became of these is not known.
      return code === "idempotency_replay"
        ? { _tag: "GivenUp", code: "unclear", detail }
        : { _tag: "Refused", status, code, field, detail, problems }
    }
    case "NotFound":
      return refused(404, "not_found", reason.detail)
    case "NotImplemented":
      return isBatch ? refused(501, "not_implemented", reason.detail) : "stop"
    case "Forbidden":
      return reason.code === "record_limit_reached" && call.rows.length === 1
        ? refused(403, reason.code, reason.detail)
        : "stop"
    case "SendCancelled":
      return "late"
    case "TooLarge":
      // The work may be done: only its answer was too long.
      return { _tag: "GivenUp", code: "unclear", detail: `the answer is larger than ${reason.bytesMax} bytes` }
    case "ServerFault":
      return reason.retryAfterMs !== null && reason.retryAfterMs > patienceMs ? "stop" : "again"
    case "Malformed":
      return "again"
    default:
      return "stop"
  }
}

/** One send, unless there is a reason not to. The key's age is looked at before each attempt of it. */
const attempt = Effect.fn("push.call")(function* (lane: PushSession, call: RequestStore.PushRequest) {
  const { company, table, pushing } = lane
  if (lane.isStopped()) return "stopped"
  const result = yield* Effect.result(
    company.connector.write({
      resource: table.resource,
      operation: call.operation,
      id: call.recordId,
      body: call.body,
      idempotencyKey: call.key,
      ifMatch: call.ifMatch,
      mayBeSent: lane.mayBeSent(call)
    })
  )
  yield* Effect.annotateCurrentSpan({
    "tributary.company": company.name,
    "tributary.resource": table.resource.path,
    "tributary.operation": call.operation,
    "tributary.call_id": call.id,
    "tributary.records": call.rows.length,
    ...(result._tag === "Success" ? {} : { "error.type": result.failure.reason._tag })
  })
  const isSent = result._tag === "Success" || result.failure.reason._tag !== "SendCancelled"
  if (isSent) pushing.sent += 1
  if (isSent && call.operation === "batch") pushing.batches += 1
  return result
})

/** Sends the call, again with the same key where its outcome is not known. */
export const send = Effect.fnUntraced(function* (
  lane: PushSession,
  given: RequestStore.PushRequest
): Effect.fn.Return<SendResult, PushSessionError> {
  let call = given
  const strangeMs = lane.strangeMs(call)
  if (strangeMs > 0) {
    // Sent again it would be news to the source, and looked up it may not be there yet.
    const minutes = Math.ceil(strangeMs / 60_000)
    lane.stop({
      kind: "AnotherToken",
      message: "a request that was sent with another token may still be on its way",
      remedy: `run again in ${minutes} min, or now with that token`,
      stops: "resource",
      refused: false
    })
    return { _tag: "Stopped" }
  }
  for (;;) {
    if (call.failures >= failuresMax) {
      return { _tag: "GivenUp", code: "server_error", detail: "the source failed at it again and again" }
    }
    const result = yield* lane.flight.withPermits(1)(attempt(lane, call))
    if (result === "stopped") return { _tag: "Stopped" }
    if (result._tag === "Success") return { _tag: "Answered", answer: result.success }
    const error = result.failure
    const meaning = meaningOf(call, error.reason)
    if (meaning === "late") {
      if (!(yield* lane.isRemembered(call)))
        return { _tag: "Expired", detail: "the source may not know its key any more" }
      // Somebody has taken over, or the warehouse is away: this says which.
      yield* lane.transaction(() => Effect.void)
      continue
    }
    if (meaning === "stop") {
      lane.stopFor(error)
      return { _tag: "Stopped" }
    }
    if (meaning !== "again") return meaning
    call = yield* lane.transaction((run) => RequestStore.failed(run, call, error.message))
    if (call.failures >= failuresMax) return { _tag: "GivenUp", code: "server_error", detail: error.message }
    yield* Effect.sleep(pauseMs * 2 ** (call.failures - 1))
  }
})

/** Counts a call that the source failed at; too many of them in a row stop the turn. */
export const countFailure = (lane: PushSession, detail: string): void => {
  lane.inVain += 1
  if (lane.inVain < inVainMax) return
  lane.stop({
    kind: "FailsEveryWrite",
    message: `the source failed at ${lane.inVain} writes in a row: ${detail}`,
    remedy: "report it to whoever runs the service; the next run goes on where this one stopped",
    stops: "resource",
    refused: false
  })
}
