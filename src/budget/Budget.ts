/**
 * The one request budget of a token.
 *
 * Promise: whoever talks to the API takes a permit first; no permit is given before a Retry-After has passed, whoever
 * was told to wait, and no more than `requestsPerMinute` are given in any minute.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"

const windowMs = 60_000

export interface BudgetShape {
  /** Waits until a request may be sent. */
  readonly take: Effect.Effect<void>
  /** Nobody sends for this long: the source said so. */
  readonly hold: (durationMs: number) => Effect.Effect<void>
}

export class Budget extends Context.Service<Budget, BudgetShape>()("tributary/budget/Budget") {
  /** For sources and tests that have no limit: only Retry-After is honoured. */
  static readonly layerUnlimited = Layer.effect(
    Budget,
    Effect.suspend(() => make(null))
  )

  /** At most `requestsPerMinute` permits in any sliding minute, in this process. */
  static readonly layerMemory = (requestsPerMinute: number) => Layer.effect(Budget, make(requestsPerMinute))
}

/** A budget for this process; `null` for no limit but Retry-After. */
export const make = Effect.fnUntraced(function* (requestsPerMinute: number | null) {
  const clock = yield* Clock.Clock
  const turn = yield* Semaphore.make(1)
  /** Times at which the permits of the last minute were given, oldest first; a ring as long as the limit. */
  const given: Array<number> = []
  let heldUntil = 0

  const nowMs = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)

  const waitMs = () => {
    const now = nowMs()
    const held = heldUntil - now
    if (requestsPerMinute === null) return held
    while (given.length > 0 && given[0]! <= now - windowMs) given.shift()
    const full = given.length >= requestsPerMinute ? given[0]! + windowMs - now : 0
    return Math.max(held, full)
  }

  const take = turn.withPermits(1)(
    Effect.gen(function* () {
      for (let wait = waitMs(); wait > 0; wait = waitMs()) yield* Effect.sleep(Duration.millis(wait))
      if (requestsPerMinute !== null) given.push(nowMs())
    })
  )

  const hold = (durationMs: number) =>
    Effect.sync(() => {
      heldUntil = Math.max(heldUntil, nowMs() + durationMs)
    })

  return Budget.of({ take, hold })
})
