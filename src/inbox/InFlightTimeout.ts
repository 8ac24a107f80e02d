/**
 * Not waiting for a source that has a request and does not answer.
 *
 * Promise: only the time counts in which the source has the request; waiting for a permit, or for the pause that the
 * source asked for, does not.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { RequestInFlight } from "../connector/Connector.ts"

/** How long the source has had the requests of some work. */
export interface InFlightTimeout {
  readonly spentMs: () => number
  /** Whether the source has answered and the work went on: it asks once more. */
  readonly isTriedAgain: () => boolean
  /** The work, or nothing when all of it takes the source longer than this. */
  readonly within: <A, E, R>(maxMs: number, work: Effect.Effect<A, E, R>) => Effect.Effect<Option.Option<A>, E, R>
}

const looksEveryMs = 100

export const make = (clock: Clock.Clock): InFlightTimeout => {
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  let before = 0
  let sentAt: number | null = null
  let answers = 0
  const told = (isOnItsWay: boolean) => {
    if (sentAt !== null) {
      before += now() - sentAt
      answers += 1
    }
    sentAt = isOnItsWay ? now() : null
  }
  const spentMs = () => before + (sentAt === null ? 0 : now() - sentAt)
  const over = (maxMs: number) =>
    Effect.gen(function* () {
      for (let leftMs = maxMs - spentMs(); leftMs > 0; leftMs = maxMs - spentMs()) {
        yield* Effect.sleep(Math.max(looksEveryMs, leftMs))
      }
      return Option.none()
    })
  return {
    spentMs,
    isTriedAgain: () => answers > 0,
    within: (maxMs, work) =>
      Effect.raceFirst(Effect.asSome(Effect.provideService(work, RequestInFlight, told)), over(maxMs))
  }
}
