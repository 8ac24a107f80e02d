/** Work of a process beside its companies' work, which takes at most a share of the time. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/**
 * Repeats work for ever. The pause after it is `times` as long as the work took, at least `leastMs` and at most `mostMs`;
 * both may depend on what the work found.
 */
export const repeatResting = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  rest: (found: A) => { readonly times: number; readonly leastMs: number; readonly mostMs?: number }
): Effect.Effect<never, E, R> =>
  Effect.forever(
    Effect.flatMap(Effect.timed(work), ([took, found]) => {
      const { leastMs, mostMs = Number.POSITIVE_INFINITY, times } = rest(found)
      return Effect.sleep(Math.min(Math.max(leastMs, Duration.toMillis(took) * times), mostMs))
    })
  )
