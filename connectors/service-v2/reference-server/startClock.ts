/**
 * A clock that begins at a chosen time, and stands still while records are made.
 *
 * Promise: without a chosen time it is the machine's clock. With one, each start and each reset begins at that time.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { printInstant, readInstant } from "./time.ts"

const nanosPerMicro = 1000n
const nanosPerMilli = 1_000_000n

export interface StartClock {
  readonly clock: Clock.Clock
  /** The time at which the clock stands, or at which it began to run last. */
  readonly startTime: () => string
  /** Stops the clock at its start time. */
  readonly hold: () => void
  /** Lets it run. */
  readonly run: () => void
}

/** `now` is the start time, RFC 3339 in UTC; undefined is the present. The clock stands still until it is run. */
export const startClock = (now: string | undefined, source: Clock.Clock): StartClock => {
  const chosen = now === undefined ? undefined : readInstant(now)
  if (chosen === null) throw new RangeError(`clock.now must be a time, RFC 3339 in UTC, and not ${now}`)
  let startNanos = 0n
  let ranSince: bigint | null = null
  const hold = () => {
    startNanos = chosen === undefined ? source.currentTimeNanosUnsafe() : BigInt(chosen) * nanosPerMicro
    ranSince = null
  }
  const nanos = () => {
    if (ranSince === null) return startNanos
    return chosen === undefined
      ? source.currentTimeNanosUnsafe()
      : startNanos + source.monotonicTimeNanosUnsafe() - ranSince
  }
  hold()
  return {
    startTime: () => printInstant(Number(startNanos / nanosPerMicro)),
    hold,
    run: () => {
      ranSince = source.monotonicTimeNanosUnsafe()
    },
    clock: {
      currentTimeMillisUnsafe: () => Number(nanos() / nanosPerMilli),
      currentTimeMillis: Effect.sync(() => Number(nanos() / nanosPerMilli)),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: () => source.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: source.monotonicTimeNanos,
      sleep: (duration) => source.sleep(duration)
    }
  }
}
