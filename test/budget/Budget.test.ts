import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Budget from "../../src/budget/Budget.ts"

describe("a budget", () => {
  it.effect("gives its permits at once and the next ones a minute later", () =>
    Effect.gen(function* () {
      const budget = yield* Budget.make(3)
      let taken = 0
      const fiber = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3, 4, 5], () =>
          Effect.andThen(
            budget.take,
            Effect.sync(() => (taken += 1))
          )
        )
      )
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(taken, 3)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(taken, 5)
      yield* Fiber.join(fiber)
    })
  )

  it.effect("gives nobody a permit before Retry-After has passed, and not all at once after", () =>
    Effect.gen(function* () {
      const budget = yield* Budget.make(null)
      let taken = 0
      yield* budget.hold(10_000)
      yield* budget.hold(5_000)
      const fibers = yield* Effect.forEach([1, 2], () =>
        Effect.forkChild(
          Effect.andThen(
            budget.take,
            Effect.sync(() => (taken += 1))
          )
        )
      )
      yield* TestClock.adjust("9999 millis")
      assert.strictEqual(taken, 0)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(taken, 2)
      yield* Effect.forEach(fibers, Fiber.join)
    })
  )

  it.effect("lengthens a wait that has begun", () =>
    Effect.gen(function* () {
      const budget = yield* Budget.make(1)
      yield* budget.take
      let taken = false
      const fiber = yield* Effect.forkChild(
        Effect.andThen(
          budget.take,
          Effect.sync(() => (taken = true))
        )
      )
      yield* TestClock.adjust("30 seconds")
      yield* budget.hold(60_000)
      yield* TestClock.adjust("31 seconds")
      assert.isFalse(taken)
      yield* TestClock.adjust("30 seconds")
      assert.isTrue(taken)
      yield* Fiber.join(fiber)
    })
  )
})
