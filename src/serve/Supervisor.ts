/**
 * Keeping the parts of a service going.
 *
 * Promise: what fails, dies or ends is begun again by itself, after a pause that grows from one second to one minute and
 * is short again once the part has gone well for a minute. The first failure of a row is told, and then at most one line
 * a minute. Nothing but the end of the service ends a part.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import { DatabaseError } from "../postgres/DatabaseError.ts"

const pauseMinMs = 1_000
const pauseMaxMs = 60_000
const tellEveryMs = 60_000

/** What a cause means to a person; a fault of the program is told in full, since only its trace helps. */
const sentence = (cause: Cause.Cause<unknown>): string => {
  if (Cause.hasDies(cause)) return Cause.pretty(cause)
  const squashed = Cause.squash(cause)
  const error = isSqlError(squashed) ? DatabaseError.from("ask")(squashed) : squashed
  return error instanceof Error && error.message !== "" ? error.message : String(error)
}

/** Runs the part for ever. `what` begins the line that tells of a failure. */
export const runForever = Effect.fnUntraced(function* <E, R>(
  what: string,
  part: Effect.Effect<unknown, E, R>
): Effect.fn.Return<never, never, R> {
  const clock = yield* Clock.Clock
  const nowMs = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  let failures = 0
  let toldAt = Number.NEGATIVE_INFINITY
  for (;;) {
    const beganAt = nowMs()
    const exit = yield* Effect.exit(part)
    if (nowMs() - beganAt >= pauseMaxMs) failures = 0
    const pauseMs = Math.min(pauseMaxMs, pauseMinMs * 2 ** Math.min(failures, 10))
    failures += 1
    if (exit._tag === "Failure" && (failures === 1 || nowMs() - toldAt >= tellEveryMs)) {
      toldAt = nowMs()
      const more = failures === 1 ? "" : `, ${failures} times in a row`
      yield* Effect.logWarning(`${what}: ${sentence(exit.cause)}${more}; again in ${Math.round(pauseMs / 1000)} s`)
    }
    yield* Effect.sleep(pauseMs)
  }
})
