/** Statements that wait for a warehouse that is not available. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { DatabaseError } from "../postgres/DatabaseError.ts"

export const retryEveryMs = 1_000

/** Repeats until it succeeds; logs the first failure. */
export const retryForever = <A, R>(
  problem: string,
  effect: Effect.Effect<A, DatabaseError, R>
): Effect.Effect<A, never, R> =>
  Effect.suspend(() => {
    let failures = 0
    return effect.pipe(
      Effect.tapError(({ message }) => {
        failures += 1
        return failures === 1 ? Effect.logWarning(`${problem}: ${message}`) : Effect.void
      }),
      Effect.retry(Schedule.spaced(retryEveryMs)),
      Effect.orDie
    )
  })
