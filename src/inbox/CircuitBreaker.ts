/**
 * Whether a company's source can be asked now, and what a failed read is about: the record, the resource, or the source.
 *
 * Promise: a source that is away is asked again after pauses that grow to five minutes, and told of once; a record is
 * blamed only while the source answers others.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { type Failure, failureOf } from "../sync/Outcome.ts"
import * as InFlightTimeout from "./InFlightTimeout.ts"

/**
 * `away`: nothing can be read now; `barred`: a person must act before the resource can be read; `busy`: somebody else is
 * at it; `one`: what was asked for itself fails.
 */
export type FailureScope = "away" | "barred" | "busy" | "one"

export interface CircuitBreaker {
  /** How long nothing is to be asked, in milliseconds; 0 when it may be. */
  readonly awayMs: () => number
  /** Why; null while the source answers. */
  readonly reason: () => string | null
  /** The source has answered. */
  readonly answered: Effect.Effect<void>
  /** What a failure is about that began at this time of the monotonic clock, in milliseconds. */
  readonly blame: (failure: Failure, beganAt: number, retryAfterMs?: number | null) => Effect.Effect<FailureScope>
}

const pauseMinMs = 5_000
const pauseMaxMs = 5 * 60_000
/** A source that does not even say for so long who we are is away. */
const identifyMaxMsDefault = 20_000

const barring: ReadonlySet<string> = new Set(["Forbidden", "NotImplemented"])
const passing: ReadonlySet<string> = new Set(["AlreadyRunning", "FenceLost", "TableChanged", "SourceClockRegressed"])
/** What may be the source's own trouble. */
const doubtful: ReadonlySet<string> = new Set(["Unreachable", "TimedOut", "ServerFault", "Malformed", "InProgress"])

export const make = Effect.fnUntraced(function* (
  name: string,
  connector: ConnectorShape,
  identifyMaxMs = identifyMaxMsDefault
) {
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const alone = yield* Semaphore.make(1)
  let answeredAt = Number.NEGATIVE_INFINITY
  let until = 0
  let failures = 0
  let reason: string | null = null

  const answered = Effect.suspend(() => {
    answeredAt = now()
    if (failures === 0) return Effect.void
    failures = 0
    until = 0
    reason = null
    return Effect.logInfo(`company ${name}: the source answers again; events are acted on`)
  })

  const goneAway = ({ message, remedy }: Failure, leastMs: number) =>
    Effect.suspend(() => {
      // Several reads fail at once when a source goes away; that is one failure.
      if (now() < until) return Effect.void
      failures += 1
      until = now() + Math.max(leastMs, Math.min(pauseMaxMs, pauseMinMs * 2 ** Math.min(failures - 1, 10)))
      reason = `${message}; ${remedy}`
      return failures > 1
        ? Effect.void
        : Effect.logWarning(`company ${name}: events wait until the source answers again: ${message}; ${remedy}`)
    })

  const blame: CircuitBreaker["blame"] = Effect.fnUntraced(function* (failure, beganAt, retryAfterMs = null) {
    const away = (of: Failure, leastMs = 0) => Effect.as(goneAway(of, leastMs), "away" as const)
    if (failure.stops === "company") return yield* away(failure)
    // The budget sends nothing before its time; a pause that a person ends is over here soon after.
    if (failure.kind === "SourcePaused") return yield* away(failure)
    if (failure.kind === "RateLimited") return yield* away(failure, Math.min(retryAfterMs ?? 0, pauseMaxMs))
    if (barring.has(failure.kind)) return "barred"
    if (passing.has(failure.kind)) return "busy"
    if (!doubtful.has(failure.kind)) return "one"
    return yield* alone.withPermit(
      Effect.suspend((): Effect.Effect<FailureScope> => {
        if (now() < until) return Effect.succeed("away")
        if (answeredAt > beganAt) return Effect.succeed("one")
        return InFlightTimeout.make(clock)
          .within(identifyMaxMs, connector.identify)
          .pipe(
            Effect.matchEffect({
              onSuccess: (identity) => (Option.isSome(identity) ? Effect.as(answered, "one" as const) : away(failure)),
              onFailure: (error) => away(failureOf(error))
            })
          )
      })
    )
  })

  return {
    awayMs: () => Math.max(0, until - now()),
    reason: () => reason,
    answered,
    blame
  } satisfies CircuitBreaker
})

/** {@link CircuitBreaker.blame} of a request's own error. */
export const failureScopeOf = (
  health: CircuitBreaker,
  error: SourceError,
  beganAt: number
): Effect.Effect<FailureScope> => health.blame(failureOf(error), beganAt, error.retryAfterMs)
