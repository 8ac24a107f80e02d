/**
 * A service of a company that runs only while there is work.
 *
 * Promise: the service runs from the time it is woken until nothing has woken it for some minutes. Until then it costs one
 * object and one fiber. What wakes it repeats that while there is work: no work is lost when the service ends.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import type { Wakeable } from "../processes/PendingWork.ts"

const idleMs = 10 * 60_000

/** Wakes the service of one company. A class, so that thousands of companies share its functions. */
class Sleeper implements Wakeable {
  readonly latch = Latch.makeUnsafe(false)
  wakes = 0

  openUnsafe(): void {
    this.wakes += 1
    this.latch.openUnsafe()
  }
}

/** What wakes a service, by company. */
export type Sleepers = Map<string, Wakeable>

/** Ends when nothing has woken the service for a while. */
const idle = Effect.fnUntraced(function* (sleeper: Sleeper) {
  for (let seen = -1; seen !== sleeper.wakes;) {
    seen = sleeper.wakes
    yield* Effect.sleep(idleMs)
  }
})

/** In the map until the end of the scope. */
const sleeperIn = (sleepers: Sleepers, company: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const sleeper = new Sleeper()
      sleepers.set(company, sleeper)
      return sleeper
    }),
    (sleeper) =>
      Effect.sync(() => {
        // Work that ends slowly may end after the next one has begun.
        if (sleepers.get(company) === sleeper) sleepers.delete(company)
      })
  )

/** Runs the service of a company while it is woken, for ever. The latch that it gets opens when there may be work. */
export const run = Effect.fnUntraced(function* <R>(
  company: string,
  sleepers: Sleepers,
  service: (latch: Latch.Latch) => Effect.Effect<unknown, never, R>,
  scope: Scope.Scope
): Effect.fn.Return<never, never, R> {
  const sleeper = yield* Scope.provide(sleeperIn(sleepers, company), scope)
  return yield* Effect.forever(
    Effect.andThen(sleeper.latch.await, Effect.raceFirst(service(sleeper.latch), idle(sleeper)))
  )
})
