/**
 * Work of several callers in one call of the server.
 *
 * Promise: callers that come while a call runs are served together by the next one, in their order. Each gets its own
 * result, and the failure of a call is the failure of all its callers. A caller that is interrupted before its call begins
 * takes no part in it. A call that has begun runs to its end, also when its callers were interrupted.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

interface Caller<A, B, E> {
  readonly item: A
  readonly result: Deferred.Deferred<B, E>
}

/** `run` answers one result for each item, in their order. */
export const make = <A, B, E>(
  run: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, E>
): ((item: A) => Effect.Effect<B, E>) => {
  const waiting = new Set<Caller<A, B, E>>()
  let isRunning = false
  const serve = Effect.gen(function* () {
    while (waiting.size > 0) {
      const callers = [...waiting]
      waiting.clear()
      const exit = yield* Effect.exit(Effect.suspend(() => run(callers.map(({ item }) => item))))
      for (const [at, { result }] of callers.entries())
        Deferred.doneUnsafe(
          result,
          Exit.map(exit, (results) => results[at]!)
        )
    }
    isRunning = false
  })
  return (item) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const caller: Caller<A, B, E> = { item, result: yield* Deferred.make<B, E>() }
        waiting.add(caller)
        if (!isRunning) {
          isRunning = true
          yield* Effect.forkDetach(Effect.interruptible(serve))
        }
        return yield* Effect.onInterrupt(restore(Deferred.await(caller.result)), () =>
          Effect.sync(() => waiting.delete(caller))
        )
      })
    )
}
