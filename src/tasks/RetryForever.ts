/** Statements that wait for a warehouse that is not available. */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"

export const retryEveryMs = 1_000

/** Repeats until it succeeds; logs the first failure. */
export const retryForever = Effect.fnUntraced(function* <A, R>(
  problem: string,
  effect: Effect.Effect<A, DatabaseError, R>
): Effect.fn.Return<A, never, R> {
  for (let failures = 0; ; failures += 1) {
    const result = yield* Effect.result(effect)
    if (result._tag === "Success") return result.success
    if (failures === 0) {
      yield* Effect.logWarning(`${problem}: ${result.failure.message}`)
    }
    yield* Effect.sleep(retryEveryMs)
  }
})
