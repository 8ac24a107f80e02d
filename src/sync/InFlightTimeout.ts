/**
 * A timeout that counts time in flight only: the wait for a permit, or for a pause that the source requested, is free.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { RequestInFlight } from "../connector/Connector.ts"

export interface InFlightTimeout {
  /** Time for which the requests were in flight. */
  readonly spentMs: () => number
  /** Whether the source has answered a request, and the work sends another one. */
  readonly isRetried: () => boolean
  /** Runs the work. The answer is none where its requests are in flight for longer than `timeout`. */
  readonly within: <A, E, R>(
    timeout: Duration.Duration,
    work: Effect.Effect<A, E, R>
  ) => Effect.Effect<Option.Option<A>, E, R>
}

const checkEveryMs = 100

/** A timeout by a monotonic clock in milliseconds. */
export const make = (now: () => number): InFlightTimeout => {
  let completedMs = 0
  let sentAt: number | null = null
  let answers = 0
  const onRequest = (isInFlight: boolean) => {
    if (sentAt !== null) {
      completedMs += now() - sentAt
      answers += 1
    }
    sentAt = isInFlight ? now() : null
  }
  const spentMs = () => completedMs + (sentAt === null ? 0 : now() - sentAt)
  const expire = (maxMs: number) =>
    Effect.gen(function* () {
      for (let leftMs = maxMs - spentMs(); leftMs > 0; leftMs = maxMs - spentMs()) {
        yield* Effect.sleep(Math.max(checkEveryMs, leftMs))
      }
      return Option.none()
    })
  return {
    spentMs,
    isRetried: () => answers > 0,
    within: (timeout, work) =>
      Effect.raceFirst(
        Effect.asSome(Effect.provideService(work, RequestInFlight, onRequest)),
        expire(Duration.toMillis(timeout))
      )
  }
}
