/** The permits of a process without a warehouse, under a test clock. */
import { assert, describe } from "@effect/vitest"
import { Clock, Duration, Effect } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as Budget from "../../src/budget/Budget.ts"
import * as ProcessPermitStore from "../../src/budget/ProcessPermitStore.ts"
import * as MonotonicClock from "../../src/time/MonotonicClock.ts"
import { most } from "./Servers.ts"
import { test } from "../support/suite.ts"

/** Uses permits as fast as possible for some minutes; returns the time of each. */
const useAll = (perMinute: number, minutes: number, latencyMs: number) =>
  Effect.gen(function* () {
    const now = yield* MonotonicClock.make
    const budget = yield* Budget.fromPermitStore(ProcessPermitStore.make(now, perMinute))
    const times: Array<number> = []
    const one = Effect.gen(function* () {
      yield* budget.takePermit
      times.push(yield* Clock.currentTimeMillis)
    }).pipe(Effect.delay(latencyMs))
    for (let worker = 0; worker < 4; worker++) yield* Effect.forkScoped(Effect.forever(one))
    yield* TestClock.adjust(minutes * 60_000)
    return times
  })

describe("the permits of a process", () => {
  test("never exceed the limit in any minute, and are nearly all used", function* () {
    for (const perMinute of [1, 7, 100]) {
      const times = yield* Effect.scoped(useAll(perMinute, 5, 20))
      assert.isAtMost(most(times, 60_000), perMinute)
      assert.isAtLeast(times.length, 4 * perMinute)
    }
  })

  test("count until their lease and a minute are over, when no use of them is reported", function* () {
    const store = ProcessPermitStore.make(yield* MonotonicClock.make, 5)
    const request = { wanted: { urgent: 0, live: 4, backfill: 0 }, validMs: 2_000, settled: null }
    const granted = Effect.map(store.lease(request), (grant) => grant.granted.live)
    assert.strictEqual(yield* granted, 4)
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* granted, 1)
    yield* TestClock.adjust("60 seconds")
    assert.strictEqual(yield* granted, 0)
    yield* TestClock.adjust("2 seconds")
    assert.strictEqual(yield* granted, 4)
  })

  test("wait for the end of a pause, and leave the limit as it was", function* () {
    const now = yield* MonotonicClock.make
    const budget = yield* Budget.fromPermitStore(ProcessPermitStore.make(now, 600))
    yield* budget.pause(Duration.seconds(30), "limit")
    let at = -1
    yield* Effect.forkScoped(
      Effect.andThen(
        budget.takePermit,
        Effect.map(Clock.currentTimeMillis, (time) => (at = time))
      )
    )
    yield* TestClock.adjust("29 seconds")
    assert.strictEqual(at, -1)
    yield* TestClock.adjust("2 seconds")
    assert.isAtLeast(at, 30_000)
  })
})
