/**
 * One request to the API, until there is an answer or no hope of one.
 *
 * Promise: every attempt takes a permit of the budget first. What may be sent again is sent again, the identical bytes
 * with growing pauses, within bounds; nothing is sent before the time the source asked to wait for, as far as the budget
 * believes it, and whoever shares the token waits too. An answer counts when its last byte is there: a connection that dies in the body is an attempt
 * that failed.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Headers from "effect/http/Headers"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { BudgetShape } from "../../../src/budget/Budget.ts"
import type { BudgetError } from "../../../src/budget/BudgetError.ts"
import { describePause } from "../../../src/budget/Pause.ts"
import { type ConnectorUsage, RequestInFlight } from "../../../src/connector/Connector.ts"
import * as SourceError from "../../../src/connector/SourceError.ts"
import { type Answer, type RequestContext, Failed, foreignAttemptsMax, requestIdOf } from "./Answer.ts"
import type { BaseAddress } from "./BaseAddress.ts"

/** When to try again, and when to give up. */
export interface RetrySettings {
  /** Attempts of one request, the first included; a 429 is none. */
  readonly attemptsMax: number
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
}

export interface ExchangeOptions {
  readonly base: BaseAddress
  readonly token: Redacted.Redacted
  /** For the whole answer of one attempt, its body included. */
  readonly requestTimeoutMs: number
  readonly retry: RetrySettings
  /** The longest Retry-After that is waited for. */
  readonly retryAfterMaxMs: number
  /** How long one request waits for its 429s altogether. */
  readonly rateLimitedWaitMaxMs: number
  readonly answerBytesMax: number
  readonly requestIdHeader: string | null
}

/** What is asked. */
export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  /** Path and query below the base address. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
  /** Parameters that name the page, when the call is for a page by its token. */
  readonly pageParameters: ReadonlyArray<string> | null
  /** The source counts such calls by themselves: a 429 is about them alone, and nobody else waits for it. */
  readonly isCountedApart?: boolean
  /** Asked before each attempt, when there is nothing more to wait for. */
  readonly mayBeSent?: Effect.Effect<boolean>
}

export interface Exchange {
  /** Sends the call; `read` makes of an answer what the caller wants, or tells how it failed. */
  readonly send: <A>(
    call: Call,
    read: (answer: Answer, asking: RequestContext) => A | Failed
  ) => Effect.Effect<A, SourceError.SourceError>
  readonly usage: Effect.Effect<ConnectorUsage>
}

/** The first pause after an answer that asks to wait and does not say how long. */
const unstatedWaitMs = 1000
const detailLengthMax = 200
const secretLengthMin = 6

/** The body was larger than allowed. */
class Overflow {
  readonly _tag = "Overflow"
}

/** What went wrong on the network, by its code and its words; never the request, which holds the token. */
const networkDetail = (error: HttpClientError): { readonly code: string | null; readonly text: string } => {
  let code: string | null = null
  let text = error.reason._tag
  let cause: unknown = "cause" in error.reason ? error.reason.cause : undefined
  for (let depth = 0; depth < 4 && cause instanceof Error; depth++) {
    if (cause.message !== "") text = cause.message as typeof text
    if ("code" in cause && typeof cause.code === "string") {
      code = cause.code
      break
    }
    cause = cause instanceof AggregateError ? cause.errors[0] : cause.cause
  }
  return { code, text: code === null || text.includes(code) ? text : `${code}: ${text}` }
}

/** Why there is no permit, as the failure of a request that was not sent. */
const withoutPermit = (error: BudgetError): SourceError.SourceReason =>
  error._tag === "BudgetPaused"
    ? new SourceError.SourcePaused({
        retryAfterMs: Math.ceil(error.retryAfterMs),
        detail: error.by === null ? null : describePause(error.by)
      })
    : new SourceError.Unreachable({ detail: error.message })

/** Method and path of a request, without ids and without its query. */
const nameOf = ({ method, path }: Pick<Call, "method" | "path">): string =>
  `${method} ${path.split("?", 1)[0]!.replace(/\/-?\d+(?=\/|$)/g, "/{id}")}`

/** Whether an answer of this API came, whatever it said. */
const isAnswer = (reason: SourceError.SourceReason): boolean => {
  switch (reason._tag) {
    case "Unreachable":
    case "TimedOut":
    case "Malformed":
      return false
    case "ServerFault":
      return reason.code !== null
    default:
      return true
  }
}

export const make = (client: HttpClient.HttpClient, budget: BudgetShape, options: ExchangeOptions): Exchange => {
  const secret = Redacted.value(options.token)
  const { answerBytesMax, requestTimeoutMs, retry } = options
  const usage = { requests: 0, retries: 0, rateLimited: 0, bytes: 0 }
  const authorized = { authorization: `Bearer ${secret}`, accept: "application/json", "accept-encoding": "identity" }

  // A token shorter than any real one would stand in half of all words.
  const scrub = (text: string) => (secret.length < secretLengthMin ? text : text.replaceAll(secret, "[token]"))
  const elapsedMs = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

  const readBody = (response: HttpClientResponse): Effect.Effect<Uint8Array, HttpClientError | Overflow> => {
    const declared = Number(response.headers["content-length"] ?? "0")
    const chunks: Array<Uint8Array> = []
    let size = 0
    return Stream.runForEachArray(response.stream, (part) => {
      for (const chunk of part) {
        size += chunk.length
        usage.bytes += chunk.length
        chunks.push(chunk)
      }
      return size > answerBytesMax || declared > answerBytesMax ? Effect.fail(new Overflow()) : Effect.void
    }).pipe(
      Effect.catchIf(
        (error) => error._tag === "HttpClientError" && error.reason._tag === "EmptyBodyError",
        () => Effect.void
      ),
      Effect.map(() => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    )
  }

  /** An answer over the limit: a read can ask for less; what a write did is unknown, as with any unreadable answer. */
  const tooLarge = (isRead: boolean, requestId: string | null): Failed => {
    if (isRead) return new Failed(new SourceError.TooLarge({ bytesMax: answerBytesMax }), requestId)
    const detail = `it is larger than ${answerBytesMax} bytes`
    return new Failed(new SourceError.Malformed({ detail }), requestId, foreignAttemptsMax)
  }

  const fromNetwork = (error: HttpClientError | Overflow, isRead: boolean, requestId: string | null): Failed => {
    if (error._tag === "Overflow") return tooLarge(isRead, requestId)
    const { code, text } = networkDetail(error)
    if (code === "UND_ERR_RES_EXCEEDED_MAX_SIZE") return tooLarge(isRead, requestId)
    const detail = scrub(text).slice(0, detailLengthMax)
    return new Failed(new SourceError.Unreachable({ detail }), requestId)
  }

  /** What is wrong with how the body came, whatever it says. */
  const incomplete = (status: number, headers: Headers.Headers, bytes: Uint8Array): SourceError.SourceReason | null => {
    const encoding = headers["content-encoding"] ?? ""
    if (encoding !== "" && encoding.toLowerCase() !== "identity") {
      // A failure is told by its status, whatever its body is.
      if (status >= 300) return null
      return new SourceError.Malformed({ detail: `the body is encoded as ${scrub(encoding)}, which was not asked for` })
    }
    const declared = headers["content-length"]
    if (declared !== undefined && /^\d+$/.test(declared) && Number(declared) !== bytes.length) {
      return new SourceError.Unreachable({ detail: `the body ended after ${bytes.length} of ${declared} bytes` })
    }
    return null
  }

  const attempt = (
    request: HttpClientRequest.HttpClientRequest,
    beganAt: number,
    attempts: number
  ): Effect.Effect<Answer | Failed> => {
    let requestId: string | null = null
    return client.execute(request).pipe(
      Effect.flatMap((response) => {
        const { status, headers } = response
        requestId = requestIdOf(headers, options.requestIdHeader)
        return Effect.map(readBody(response), (bytes): Answer | Failed => {
          const problem = incomplete(status, headers, bytes)
          if (problem !== null) return new Failed(problem, requestId)
          return { status, headers, bytes, requestId, beganAt, attempts }
        })
      }),
      Effect.timeoutOrElse({
        duration: Duration.millis(requestTimeoutMs),
        orElse: () => Effect.succeed(new Failed(new SourceError.TimedOut({ afterMs: requestTimeoutMs }), requestId))
      }),
      Effect.catch((error) => Effect.succeed(fromNetwork(error, request.method === "GET", requestId))),
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true)
    )
  }

  /** A pause that doubles with each failure, half of it drawn, so that many do not come back at once. */
  const backoffMs = (baseMs: number, failures: number) =>
    Effect.map(Random.next, (drawn) => {
      const ceiling = Math.min(baseMs * 2 ** Math.min(failures - 1, 30), retry.backoffMaxMs)
      return Math.ceil(ceiling / 2 + (drawn * ceiling) / 2)
    })

  /** The attempt as a span, for whoever exports them: where it went and how it ended; nothing that a query may carry. */
  const traced =
    ({ method, path }: Call, attempts: number) =>
    (one: Effect.Effect<Answer | Failed>) => {
      const plain = path.split("?", 1)[0]!
      return one.pipe(
        Effect.tap((answer) =>
          Effect.annotateCurrentSpan(
            answer instanceof Failed
              ? { "error.type": answer.reason._tag }
              : {
                  "http.response.status_code": answer.status,
                  "http.response.body.size": answer.bytes.length,
                  ...(answer.requestId === null ? {} : { "http.request.id": scrub(answer.requestId) })
                }
          )
        ),
        Effect.withSpan(
          nameOf({ method, path }),
          {
            kind: "client",
            attributes: { "http.request.method": method, "url.path": plain, "http.request.resend_count": attempts - 1 }
          },
          { captureStackTrace: false }
        )
      )
    }

  const send: Exchange["send"] = Effect.fnUntraced(function* <A>(
    call: Call,
    read: (answer: Answer, asking: RequestContext) => A | Failed
  ) {
    const clock = yield* Clock.Clock
    const onItsWay = yield* RequestInFlight
    const request = HttpClientRequest.make(call.method)(options.base.at(call.path), {
      headers: { ...authorized, ...call.headers },
      ...(call.body === null ? {} : { body: HttpBody.uint8Array(call.body, "application/json") })
    })
    const name = nameOf(call)
    const fail = (reason: SourceError.SourceReason, requestId: string | null) =>
      new SourceError.SourceError({
        reason,
        request: { method: call.method, path: call.path, requestId, attempts: sent }
      })
    let sent = 0
    let failures = 0
    let limited = 0
    let limitedWaitMs = 0
    for (;;) {
      yield* Effect.mapError(budget.takePermit, (error) => fail(withoutPermit(error), null))
      if (call.mayBeSent !== undefined) {
        if (!(yield* call.mayBeSent)) return yield* fail(new SourceError.SendCancelled({ attempts: sent }), null)
        // A pause may have begun meanwhile.
        if (yield* budget.isPaused) continue
      }
      usage.requests++
      sent++
      onItsWay(true)
      const sentAt = elapsedMs(clock)
      const answer = yield* traced(call, sent)(attempt(request, sentAt, sent))
      onItsWay(false)
      const nowMs = clock.currentTimeMillisUnsafe()
      const asking: RequestContext = { pageParameters: call.pageParameters, scrub, nowMs }
      const outcome = answer instanceof Failed ? answer : read(answer, asking)
      if (!(outcome instanceof Failed)) {
        yield* budget.reportAttempt(name, sentAt, true)
        return outcome
      }

      const { origin, reason, requestId } = outcome
      const statedMs = "retryAfterMs" in reason ? reason.retryAfterMs : null
      // Retry-After is for everybody on the token, except where it is about one idempotency key or calls of one kind.
      const isLimit = reason._tag === "RateLimited" && call.isCountedApart !== true
      const isForAll = isLimit || (reason._tag === "ServerFault" && statedMs !== null && statedMs > 0)
      const hold = (ms: number) =>
        budget.pause(ms, isLimit ? "limit" : "fault", {
          origin,
          status: reason._tag === "ServerFault" ? reason.status : 429,
          request: name
        })
      if (!isForAll) yield* budget.reportAttempt(name, sentAt, isAnswer(reason))
      if (!reason.isRetryable) return yield* fail(reason, requestId)
      if (reason._tag === "RateLimited") usage.rateLimited++
      if (statedMs !== null && statedMs > options.retryAfterMaxMs) {
        if (isForAll) yield* hold(outcome.statedMs ?? statedMs)
        return yield* fail(reason, requestId)
      }
      let waitMs: number
      if (reason._tag === "RateLimited") {
        limited++
        // An answer that names no time, or none at all, must not make a loop without a pause.
        waitMs = statedMs === null || statedMs === 0 ? yield* backoffMs(unstatedWaitMs, limited) : statedMs
        limitedWaitMs += waitMs
        if (isForAll) yield* hold(Math.max(waitMs, outcome.statedMs ?? 0))
        if (limitedWaitMs > options.rateLimitedWaitMaxMs) return yield* fail(reason, requestId)
      } else {
        failures++
        if (isForAll) yield* hold(outcome.statedMs ?? 0)
        if (failures >= Math.min(retry.attemptsMax, outcome.attemptsMax)) return yield* fail(reason, requestId)
        const baseMs = reason._tag === "InProgress" ? unstatedWaitMs : retry.backoffBaseMs
        waitMs = Math.max(statedMs ?? 0, yield* backoffMs(baseMs, failures))
      }
      usage.retries++
      yield* Effect.sleep(Duration.millis(waitMs))
    }
  })

  return { send, usage: Effect.sync(() => ({ ...usage })) }
}
