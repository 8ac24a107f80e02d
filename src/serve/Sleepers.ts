/**
 * Services of companies that run only while there is work.
 *
 * Promise: a service runs from the time it is woken until nothing has woken it for some minutes. Until then it costs one
 * object and no fiber. What wakes it repeats that while there is work: no work is lost when a service ends.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import type { Wakeable } from "../processes/PendingWork.ts"

const idleMs = 10 * 60_000

/** Wakes the service of one company. A class, so that thousands of companies share its functions. */
class Sleeper implements Wakeable {
  /** Null while the service does not run. */
  latch: Latch.Latch | null = null
  wakes = 0
  isRunning = false
  readonly #someWoken: Latch.Latch

  constructor(someWoken: Latch.Latch) {
    this.#someWoken = someWoken
  }

  openUnsafe(): void {
    this.wakes += 1
    if (this.latch === null) {
      this.latch = Latch.makeUnsafe(true)
      this.#someWoken.openUnsafe()
    } else this.latch.openUnsafe()
  }

  /** The service has ended. */
  rest(): void {
    this.isRunning = false
    // It may have been woken while it ended.
    if (this.latch?.isOpen() === true) this.#someWoken.openUnsafe()
    else this.latch = null
  }
}

/** What wakes a service, by company. */
export type Sleepers = Map<string, Wakeable>

export interface WokenService<R> {
  readonly sleepers: Sleepers
  /** Works until it is interrupted; the latch opens when there may be work. */
  readonly run: (latch: Latch.Latch) => Effect.Effect<unknown, never, R>
}

/** Ends when nothing has woken the service for a while. */
const idle = Effect.fnUntraced(function* (sleeper: Sleeper) {
  for (let seen = -1; seen !== sleeper.wakes;) {
    seen = sleeper.wakes
    yield* Effect.sleep(idleMs)
  }
})

/** In the map until the end of the scope. */
const sleeperIn = (sleepers: Sleepers, company: string, someWoken: Latch.Latch) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const sleeper = new Sleeper(someWoken)
      sleepers.set(company, sleeper)
      return sleeper
    }),
    (sleeper) =>
      Effect.sync(() => {
        // Work that ends slowly may end after the next one has begun.
        if (sleepers.get(company) === sleeper) sleepers.delete(company)
      })
  )

/** Runs the services of a company in the scope while they are woken, for ever. */
export const run = Effect.fnUntraced(function* <R>(
  company: string,
  services: ReadonlyArray<WokenService<R>>,
  scope: Scope.Scope
): Effect.fn.Return<never, never, R> {
  const someWoken = Latch.makeUnsafe(false)
  const all = yield* Effect.forEach(services, (service) =>
    Effect.map(sleeperIn(service.sleepers, company, someWoken), (sleeper) => ({ sleeper, service }))
  ).pipe(Scope.provide(scope))
  for (;;) {
    yield* Effect.andThen(someWoken.await, someWoken.close)
    for (const { sleeper, service } of all) {
      const { latch } = sleeper
      if (latch === null || sleeper.isRunning) continue
      sleeper.isRunning = true
      yield* Effect.raceFirst(service.run(latch), idle(sleeper)).pipe(
        Effect.ensuring(Effect.sync(() => sleeper.rest())),
        Effect.forkIn(scope)
      )
    }
  }
})
