/**
 * A circuit breaker for a company's source, and the scope of a failed read: the record, the resource, or the source.
 *
 * Promise: after a failure of the source, requests pause for a time that grows to five minutes. The log shows each outage
 * once. A failure counts against a record only while the source answers other requests.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { type Disposition, type Failure, failureOf } from "../sync/Outcome.ts"
import * as InFlightTimeout from "./InFlightTimeout.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Backoff from "../time/Backoff.ts"

/**
 * `company`: nothing can be read now. `blocked`: a person must act before the resource can be read. `contended`: another
 * run has the resource. `record`: the request itself fails.
 */
export type FailureScope = "company" | "blocked" | "contended" | "record"

export interface CircuitBreaker {
  /** Milliseconds until the next request; 0 while the source is available. */
  readonly retryAfterMs: () => number
  /** Why the source is unavailable; null while it is available. */
  readonly reason: () => string | null
  /** Notes that the source has answered. */
  readonly succeed: Effect.Effect<void>
  /** The scope of a failure. The request began at this time of the monotonic clock, in milliseconds. */
  readonly classify: (
    failure: Failure,
    beganAt: number,
    retryAfter?: Duration.Duration | null
  ) => Effect.Effect<FailureScope>
}

const pauseMinMs = 5_000
const pauseMaxMs = 5 * 60_000
/** The timeout of the identification request: a source that exceeds it is unavailable. */
const identifyTimeoutDefault = Duration.seconds(20)

/** The scopes of failures that leave the source available; a request decides `uncertain`. */
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

export const make = Effect.fnUntraced(function* (
  name: string,
  connector: ConnectorShape,
  identifyTimeout = identifyTimeoutDefault
) {
  const now = yield* MonotonicClock.make
  const probeLock = yield* Semaphore.make(1)
  let answeredAt = Number.NEGATIVE_INFINITY
  let openUntil = 0
  let failures = 0
  let reason: string | null = null

  const succeed = Effect.suspend(() => {
    answeredAt = now()
    if (failures === 0) return Effect.void
    failures = 0
    openUntil = 0
    reason = null
    return Effect.logInfo(`company ${name}: the source answers again; events are processed`)
  })

  const open = ({ message, remedy }: Failure, pauseLeastMs: number) =>
    Effect.suspend(() => {
      // Several concurrent reads fail in one outage. They count as one failure.
      if (now() < openUntil) return Effect.void
      failures += 1
      openUntil = now() + Math.max(pauseLeastMs, Backoff.delayMs(failures, pauseMinMs, pauseMaxMs))
      reason = `${message}; ${remedy}`
      return failures > 1
        ? Effect.void
        : Effect.logWarning(`company ${name}: events wait until the source answers again: ${message}; ${remedy}`)
    })

  const classify: CircuitBreaker["classify"] = Effect.fnUntraced(function* (failure, beganAt, retryAfter = null) {
    const unavailable = (cause: Failure, pauseLeastMs = 0) => Effect.as(open(cause, pauseLeastMs), "company" as const)
    if (failure.stops === "company") return yield* unavailable(failure)
    // The budget gives no permits during a pause. When a person ends it, this breaker closes soon after.
    if (failure.disposition === "paused") {
      const pauseLeastMs =
        failure.kind === "RateLimited" ? Math.min(Duration.toMillis(retryAfter ?? Duration.zero), pauseMaxMs) : 0
      return yield* unavailable(failure, pauseLeastMs)
    }
    const scope = scopes[failure.disposition]
    if (scope !== "uncertain") return scope
    return yield* probeLock.withPermit(
      Effect.suspend((): Effect.Effect<FailureScope> => {
        if (now() < openUntil) return Effect.succeed("company")
        if (answeredAt > beganAt) return Effect.succeed("record")
        return InFlightTimeout.make(now)
          .within(identifyTimeout, connector.identify)
          .pipe(
            Effect.matchEffect({
              onSuccess: (identity) =>
                Option.isSome(identity) ? Effect.as(succeed, "record" as const) : unavailable(failure),
              onFailure: (error) => unavailable(failureOf(error))
            })
          )
      })
    )
  })

  return {
    retryAfterMs: () => Math.max(0, openUntil - now()),
    reason: () => reason,
    succeed,
    classify
  } satisfies CircuitBreaker
})

/** {@link CircuitBreaker.classify} for the error of a request. */
export const failureScopeOf = (
  breaker: CircuitBreaker,
  error: SourceError,
  beganAt: number
): Effect.Effect<FailureScope> => breaker.classify(failureOf(error), beganAt, error.retryAfter)
