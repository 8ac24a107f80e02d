/**
 * The circuit breaker of a company's source, which all work of a process for the company shares, and the scope of a failure:
 * the record, the resource, or the source.
 *
 * Promise: nothing is read before the source has identified the company. After a failure of the source, or of the token,
 * nothing is read until the source identifies the company again. It is asked after a pause, which grows to five minutes.
 * The log shows each reason once. A failure counts against a record or a resource only while the source answers.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import { Priority } from "../budget/Budget.ts"
import type { Identity } from "../connector/Connector.ts"
import { type SourceError, TimedOut } from "../connector/SourceError.ts"
import { sourceErrorOf } from "../land/CheckpointIdentity.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Backoff from "../time/Backoff.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import type { Company } from "./Company.ts"
import * as InFlightTimeout from "./InFlightTimeout.ts"
import { type Disposition, type Failure, failureOf } from "./Outcome.ts"
import * as SourceGuard from "./SourceGuard.ts"

/**
 * `company`: nothing can be read now. `blocked`: a person must act before the resource can be read. `contended`: another
 * run has the resource. `record`: the request itself fails.
 */
export type FailureScope = "company" | "blocked" | "contended" | "record"

/** The source is not asked now, since it failed a short time ago. */
export class SourceUnavailable extends Data.TaggedError("SourceUnavailable")<
  Readonly<{ message: string; remedy: string }>
> {}

export type Unidentified = SourceError | DatabaseError | SourceUnavailable

export interface CircuitBreaker {
  /** The company, as the source identified it; null before that, and while the source is unavailable. */
  readonly identity: () => Identity | null
  /** Whether the source has failed and has not identified the company since then. */
  readonly isOpen: () => boolean
  /** Failures of the source in a row. */
  readonly failures: () => number
  /** Whether the identity is not known, and the pause after a failure is over. */
  readonly mayIdentify: () => boolean
  /** Asks for the identity, also during a pause. A failure that may pass proves nothing against a known identity. */
  readonly identify: Effect.Effect<Identity, Unidentified>
  /** The identity, which is asked for where it is older than this or unknown; fails during a pause. */
  readonly identifiedWithin: (maxMs: number) => Effect.Effect<Identity, Unidentified>
  /** Notes that the source has answered. */
  readonly noteAnswer: Effect.Effect<void>
  /** The scope of a failure of a request that began at this time of the monotonic clock, in milliseconds; default now. */
  readonly classify: (
    failure: Failure,
    beganAt?: number,
    retryAfter?: Duration.Duration | null
  ) => Effect.Effect<FailureScope>
}

const pauseMinMs = 5_000
const pauseMaxMs = 5 * 60_000
/** The timeout of the request for the identity: a source that exceeds it is unavailable. */
const identifyTimeoutDefault = Duration.seconds(20)

/** The scopes of failures that leave the source available; a request for the identity decides `uncertain`. */
const scopes: Readonly<Record<Exclude<Disposition, "paused">, FailureScope | "uncertain">> = {
  blocked: "blocked",
  refused: "record",
  unsupported: "blocked",
  contended: "contended",
  regressed: "contended",
  uncertain: "uncertain",
  configuration: "record",
  warehouse: "record",
  request: "record",
  defect: "record"
}

export interface CircuitBreakerOptions {
  /** Called after each failure of the source. */
  readonly onOpen?: (failure: Failure) => Effect.Effect<void, never, SqlClient.SqlClient>
  readonly identifyTimeout?: Duration.Duration
}

export const make = Effect.fnUntraced(function* (
  company: Pick<Company, "name" | "connector">,
  { identifyTimeout = identifyTimeoutDefault, onOpen = () => Effect.void }: CircuitBreakerOptions = {}
) {
  const clock = yield* Clock.Clock
  const now = () => MonotonicClock.nowMs(clock)
  const warehouse = yield* Effect.context<SqlClient.SqlClient>()
  const oneQuestion = yield* Semaphore.make(1)
  let identity: Identity | null = null
  let identifiedAt = Number.NEGATIVE_INFINITY
  let answeredAt = Number.NEGATIVE_INFINITY
  let openUntil = 0
  let failures = 0
  let reason: Pick<Failure, "message" | "remedy"> | null = null

  const open = Effect.fnUntraced(function* (failure: Failure, pauseLeastMs = 0) {
    const { message, remedy } = failure
    failures += 1
    identity = null
    const pauseMs = Math.max(pauseLeastMs, Backoff.delayMs(failures, pauseMinMs, pauseMaxMs))
    openUntil = now() + pauseMs
    if (reason?.message !== message) {
      yield* Effect.logWarning(
        `company ${company.name}: nothing is synced: ${message}; ${remedy}; next attempt in ${Math.round(pauseMs / 1000)} s, then less often`
      )
    }
    reason = { message, remedy }
    yield* onOpen(failure)
  }, Effect.provideContext(warehouse))

  const question = SourceGuard.identify(company).pipe(
    // All work of the company waits for it.
    Effect.provideService(Priority, { class: "urgent", dueAt: 0 }),
    Effect.provideContext(warehouse)
  )
  /** A failure of the answer makes the source unavailable, or only where it may not pass. */
  const ask = Effect.fnUntraced(function* (isSuspected: boolean): Effect.fn.Return<Identity, Unidentified> {
    const answer = yield* Effect.result(InFlightTimeout.make(now).within(identifyTimeout, question))
    if (answer._tag === "Success" && Option.isSome(answer.success)) {
      if (failures > 0) yield* Effect.logInfo(`company ${company.name}: the source answers again`)
      identity = answer.success.value
      identifiedAt = now()
      answeredAt = identifiedAt
      failures = 0
      reason = null
      return identity
    }
    const error = answer._tag === "Failure" ? answer.failure : sourceErrorOf(new TimedOut({ after: identifyTimeout }))
    if (isSuspected || identity === null || !error.isRetryable) yield* open(failureOf(error))
    return yield* error
  })
  const identify = Effect.suspend(() => {
    const askedAt = now()
    const isAnswered = () => identity !== null && identifiedAt >= askedAt
    return oneQuestion.withPermit(Effect.suspend(() => (isAnswered() ? Effect.succeed(identity!) : ask(false))))
  })
  const mayIdentify = () => identity === null && now() >= openUntil

  const classify: CircuitBreaker["classify"] = (failure, beganAt = now(), retryAfter = null) => {
    const unavailable = (pauseLeastMs = 0) =>
      // Several concurrent reads fail in one outage. They count as one failure.
      Effect.as(now() < openUntil ? Effect.void : open(failure, pauseLeastMs), "company" as const)
    if (failure.stops === "company") return unavailable()
    // The budget gives no permits during a pause. When a person ends it, the source is asked soon after.
    if (failure.disposition === "paused") {
      const requestedMs = failure.kind === "RateLimited" ? Duration.toMillis(retryAfter ?? Duration.zero) : 0
      return unavailable(Math.min(requestedMs, pauseMaxMs))
    }
    const scope = scopes[failure.disposition]
    if (scope !== "uncertain") return Effect.succeed(scope)
    return oneQuestion.withPermit(
      Effect.suspend((): Effect.Effect<FailureScope> => {
        if (now() < openUntil) return Effect.succeed("company")
        if (answeredAt > beganAt) return Effect.succeed("record")
        return Effect.match(ask(true), { onSuccess: () => "record", onFailure: () => "company" })
      })
    )
  }

  const breaker: CircuitBreaker = {
    identity: () => identity,
    isOpen: () => failures > 0,
    failures: () => failures,
    mayIdentify,
    identify,
    identifiedWithin: (maxMs) =>
      Effect.suspend(() => {
        if (identity !== null && now() - identifiedAt <= maxMs) return Effect.succeed(identity)
        return reason !== null && now() < openUntil ? Effect.fail(new SourceUnavailable(reason)) : identify
      }),
    noteAnswer: Effect.sync(() => {
      answeredAt = now()
    }),
    classify
  }
  return breaker
})

/** {@link CircuitBreaker.classify} for the error of a request. */
export const failureScopeOf = (
  breaker: CircuitBreaker,
  error: SourceError,
  beganAt: number
): Effect.Effect<FailureScope> => breaker.classify(failureOf(error), beganAt, error.retryAfter)
