/**
 * One request to the API, with its retries.
 *
 * Promise: every attempt takes a permit of the rate budget first. A request that may be repeated is sent again, with
 * identical bytes, growing pauses and a bound on attempts. No request is sent before the Retry-After of the source, up
 * to the maximum that the budget accepts; the other processes of the token wait too.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpBody from "effect/http/HttpBody"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import type { BudgetShape } from "../../../src/budget/Budget.ts"
import type { BudgetError } from "../../../src/budget/BudgetError.ts"
import { describePause } from "../../../src/budget/Pause.ts"
import { type ConnectorUsage, RequestInFlight, RequestTimes } from "../../../src/connector/Connector.ts"
import * as SourceError from "../../../src/connector/SourceError.ts"
import { type Answer, type RequestContext, Failed } from "./Answer.ts"
import { type AttemptContext, type AttemptOptions, attempt, requestName } from "./Attempt.ts"
import type { BaseAddress } from "./BaseAddress.ts"
import * as MonotonicClock from "../../../src/time/MonotonicClock.ts"
import * as Backoff from "../../../src/time/Backoff.ts"

/** Bounds of the retries. */
export interface RetrySettings {
  /** Attempts of one request, the first included; a 429 does not count. */
  readonly attemptsMax: number
  readonly backoffBase: Duration.Duration
  readonly backoffMax: Duration.Duration
}

export interface ExchangeOptions extends AttemptOptions {
  readonly base: BaseAddress
  readonly token: Redacted.Redacted
  readonly retry: RetrySettings
  /** The longest Retry-After that a request waits for. */
  readonly retryAfterMax: Duration.Duration
  /** Total wait of one request for its 429s. */
  readonly rateLimitedWaitMax: Duration.Duration
}

/** A request without its token. */
export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  /** Path and query below the base address. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
  /** Parameters that name the page, when the call is for a page by its token. */
  readonly pageParameters: ReadonlyArray<string> | null
  /** The source limits such calls separately: a 429 concerns only them, and no other request waits for it. */
  readonly isCountedApart?: boolean
  /** A bound on the attempts after such a failure, besides those of the settings; absent for none. */
  readonly attemptsMaxOf?: ((reason: SourceError.SourceReason) => number) | undefined
  /** Evaluated before each attempt, after all waits; false cancels the request. */
  readonly mayBeSent?: Effect.Effect<boolean>
}

export interface Exchange {
  /** Sends the call; `read` converts an answer to the result or to a failure. */
  readonly send: <A>(
    call: Call,
    read: (answer: Answer, asking: RequestContext) => A | Failed
  ) => Effect.Effect<A, SourceError.SourceError>
  readonly usage: Effect.Effect<ConnectorUsage>
}

/** The first pause after an answer that requests a wait without a time. */
const unstatedWait = Duration.seconds(1)
const secretLengthMin = 6

/** The reason of a request that was not sent because it got no permit. */
const withoutPermit = (error: BudgetError): SourceError.SourceReason =>
  error._tag === "BudgetPaused"
    ? new SourceError.SourcePaused({
        retryAfter: Duration.millis(Math.ceil(Duration.toMillis(error.retryAfter))),
        detail: error.by === null ? null : describePause(error.by)
      })
    : new SourceError.Unreachable({ detail: error.message })

/** Whether the failure is an answer of this API. */
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

/** The kind of a failure, with its status where the kind has several. */
const kindOf = (reason: SourceError.SourceReason): string =>
  "status" in reason && reason.status !== null ? `${reason._tag} ${reason.status}` : reason._tag

/** State that all requests of a token share. */
interface ExchangeContext {
  readonly attempts: AttemptContext
  readonly budget: BudgetShape
  readonly options: ExchangeOptions
  readonly headers: Readonly<Record<string, string>>
  readonly usage: { requests: number; retries: number; rateLimited: number; bytes: number }
}

/** Progress of the attempts of one request. */
interface RetryState {
  sent: number
  /** Failures other than a 429. */
  failures: number
  /** Answers 429, and the time spent waiting for them. */
  limited: number
  limitedWait: Duration.Duration
}

/** A pause that doubles with each failure; half of it is random, so that clients do not retry together. */
const backoff = (base: Duration.Duration, failures: number, max: Duration.Duration) =>
  Effect.map(Random.next, (drawn) => {
    const ceiling = Backoff.delayMs(failures, Duration.toMillis(base), Duration.toMillis(max))
    return Duration.millis(Math.ceil(ceiling / 2 + (drawn * ceiling) / 2))
  })

/** Reports a failed attempt to the budget; returns the pause before the next attempt, null when there is none. */
const retryDelay = Effect.fnUntraced(function* (
  { budget, options, usage }: ExchangeContext,
  call: Call,
  sentAt: number,
  failed: Failed,
  state: RetryState
) {
  const { origin, reason } = failed
  const { attemptsMax, backoffBase, backoffMax } = options.retry
  const name = requestName(call)
  const stated = "retryAfter" in reason ? reason.retryAfter : null
  // Retry-After concerns the whole token, except where it is about one idempotency key or calls of one kind.
  const isLimit = reason._tag === "RateLimited" && call.isCountedApart !== true
  const isForAll = isLimit || (reason._tag === "ServerFault" && stated !== null && Duration.isPositive(stated))
  const hold = (pause: Duration.Duration) =>
    budget.pause(pause, isLimit ? "limit" : "fault", {
      origin,
      status: reason._tag === "ServerFault" ? reason.status : 429,
      request: name
    })
  if (!isForAll) yield* budget.reportAttempt(name, sentAt, isAnswer(reason))
  if (!reason.handling.isRetryable) return null
  if (reason._tag === "RateLimited") usage.rateLimited++
  if (stated !== null && Duration.isGreaterThan(stated, options.retryAfterMax)) {
    if (isForAll) yield* hold(failed.stated ?? stated)
    return null
  }
  if (reason._tag === "RateLimited") {
    state.limited++
    // An answer without a time, or with zero, must not cause a loop without a pause.
    const isStated = stated !== null && !Duration.isZero(stated)
    const wait = isStated ? stated : yield* backoff(unstatedWait, state.limited, backoffMax)
    state.limitedWait = Duration.sum(state.limitedWait, wait)
    if (isForAll) yield* hold(Duration.max(wait, failed.stated ?? Duration.zero))
    return Duration.isGreaterThan(state.limitedWait, options.rateLimitedWaitMax) ? null : wait
  }
  state.failures++
  if (isForAll) yield* hold(failed.stated ?? Duration.zero)
  const ownMax = call.attemptsMaxOf?.(reason) ?? Number.POSITIVE_INFINITY
  if (state.failures >= Math.min(attemptsMax, failed.attemptsMax, ownMax)) return null
  const base = reason._tag === "InProgress" ? unstatedWait : backoffBase
  return Duration.max(stated ?? Duration.zero, yield* backoff(base, state.failures, backoffMax))
})

const send = Effect.fnUntraced(function* <A>(
  context: ExchangeContext,
  call: Call,
  read: (answer: Answer, asking: RequestContext) => A | Failed
) {
  const { attempts, budget, options, usage } = context
  const clock = yield* Clock.Clock
  const setInFlight = yield* RequestInFlight
  const observe = yield* RequestTimes
  const request = HttpClientRequest.make(call.method)(options.base.at(call.path), {
    headers: { ...context.headers, ...call.headers },
    ...(call.body === null ? {} : { body: HttpBody.uint8Array(call.body, "application/json") })
  })
  const state: RetryState = { sent: 0, failures: 0, limited: 0, limitedWait: Duration.zero }
  const fail = (reason: SourceError.SourceReason, requestId: string | null) =>
    new SourceError.SourceError({
      reason,
      request: { method: call.method, path: call.path, requestId, attempts: state.sent }
    })
  for (;;) {
    const waitsFrom = MonotonicClock.nowMs(clock)
    yield* Effect.mapError(budget.takePermit, (error) => fail(withoutPermit(error), null))
    observe("budget", waitsFrom, MonotonicClock.nowMs(clock), null)
    if (call.mayBeSent !== undefined) {
      if (!(yield* call.mayBeSent)) return yield* fail(new SourceError.SendCancelled({ attempts: state.sent }), null)
      // A pause may have begun meanwhile.
      if (yield* budget.isPaused) continue
    }
    usage.requests++
    state.sent++
    setInFlight(true)
    const sentAt = MonotonicClock.nowMs(clock)
    const answer = yield* attempt(attempts, call, request, sentAt, state.sent)
    setInFlight(false)
    const nowMs = clock.currentTimeMillisUnsafe()
    const { scrub } = attempts
    const outcome =
      answer instanceof Failed ? answer : read(answer, { pageParameters: call.pageParameters, scrub, nowMs })
    const answeredAt = MonotonicClock.nowMs(clock)
    const kind =
      outcome instanceof Failed ? kindOf(outcome.reason) : answer instanceof Failed ? "" : String(answer.status)
    observe("request", sentAt, answeredAt, kind)
    if (!(outcome instanceof Failed)) {
      yield* budget.reportAttempt(requestName(call), sentAt, true)
      return outcome
    }
    const wait = yield* retryDelay(context, call, sentAt, outcome, state)
    if (wait === null) return yield* fail(outcome.reason, outcome.requestId)
    usage.retries++
    yield* Effect.sleep(wait)
    observe("retry", answeredAt, MonotonicClock.nowMs(clock), kind)
  }
})

export const make = (client: HttpClient.HttpClient, budget: BudgetShape, options: ExchangeOptions): Exchange => {
  const secret = Redacted.value(options.token)
  const usage = { requests: 0, retries: 0, rateLimited: 0, bytes: 0 }
  // A token shorter than any real one would match inside ordinary words.
  const scrub = (text: string) => (secret.length < secretLengthMin ? text : text.replaceAll(secret, "[token]"))
  const headers = { authorization: `Bearer ${secret}`, accept: "application/json", "accept-encoding": "identity" }
  const context: ExchangeContext = { attempts: { client, options, scrub, usage }, budget, options, headers, usage }
  return { send: (call, read) => send(context, call, read), usage: Effect.sync(() => ({ ...usage })) }
}
