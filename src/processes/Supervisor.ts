/**
 * A supervisor for the background services of a process.
 *
 * Promise: a service that fails, dies or ends starts again, after a pause that grows from one second to one minute. After
 * a minute without failure the pause is short again. The log shows the first failure in a row, and then at most one line
 * a minute. Only the end of the scope ends a service.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Backoff from "../time/Backoff.ts"

const pauseMinMs = 1_000
const pauseMaxMs = 60_000
const logEveryMs = 60_000

/** The message of a cause. A defect of the program is shown with its trace. */
const describe = (cause: Cause.Cause<unknown>): string => {
  if (Cause.hasDies(cause)) return Cause.pretty(cause)
  const error = Cause.squash(cause)
  return error instanceof Error && error.message !== "" ? error.message : String(error)
}

/** Runs a service for ever. `name` begins the log line of a failure. */
export const runForever = Effect.fnUntraced(function* <E, R>(
  name: string,
  service: Effect.Effect<unknown, E, R>
): Effect.fn.Return<never, never, R> {
  const nowMs = yield* MonotonicClock.make
  let failures = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  for (;;) {
    const startedAt = nowMs()
    const exit = yield* Effect.exit(service)
    if (nowMs() - startedAt >= pauseMaxMs) failures = 0
    failures += 1
    const pauseMs = Backoff.delayMs(failures, pauseMinMs, pauseMaxMs)
    if (exit._tag === "Failure" && (failures === 1 || nowMs() - loggedAt >= logEveryMs)) {
      loggedAt = nowMs()
      const more = failures === 1 ? "" : `, ${failures} times in a row`
      yield* Effect.logWarning(`${name}: ${describe(exit.cause)}${more}; next start in ${Math.round(pauseMs / 1000)} s`)
    }
    yield* Effect.sleep(pauseMs)
  }
})
