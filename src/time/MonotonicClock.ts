/** The monotonic clock in milliseconds. A change of the wall clock does not move it. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Milliseconds since an arbitrary instant, with a fraction. */
export const nowMs = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Reads {@link nowMs} of the current clock. */
export const make: Effect.Effect<() => number> = Clock.clockWith((clock) => Effect.succeed(() => nowMs(clock)))
