import { assert } from "@effect/vitest"
import { Effect, type Latch, Scope } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as Sleepers from "../../src/serve/Sleepers.ts"
import { test } from "../support/suite.ts"

/** A service that notes its starts, looks and ends. */
const noting = Effect.gen(function* () {
  const sleepers: Sleepers.Sleepers = new Map()
  const notes: Array<string> = []
  const work = (latch: Latch.Latch) =>
    Effect.gen(function* () {
      notes.push("begins")
      for (;;) {
        yield* Effect.andThen(latch.await, latch.close)
        notes.push("looks")
      }
    }).pipe(Effect.onInterrupt(() => Effect.sync(() => notes.push("ends"))))
  const scope = yield* Effect.scope
  yield* Effect.forkIn(Sleepers.run("acme", sleepers, work, scope), scope)
  yield* TestClock.adjust("1 second")
  return { notes, wake: () => sleepers.get("acme")?.openUnsafe(), sleepers }
})

test("runs a service from the first wake until nothing has woken it for minutes, and again", function* () {
  const { notes, wake } = yield* noting
  yield* TestClock.adjust("1 hour")
  assert.deepStrictEqual(notes, [])
  wake()
  yield* TestClock.adjust("9 minutes")
  wake()
  yield* TestClock.adjust("10 minutes")
  assert.deepStrictEqual(notes, ["begins", "looks", "looks"])
  yield* TestClock.adjust("2 minutes")
  assert.deepStrictEqual(notes.splice(0), ["begins", "looks", "looks", "ends"])
  wake()
  yield* TestClock.adjust("1 second")
  assert.deepStrictEqual(notes, ["begins", "looks"])
})

test("ends the service with its scope, and forgets what wakes it", function* () {
  const scope = yield* Scope.make()
  const { notes, wake, sleepers } = yield* Scope.provide(noting, scope)
  wake()
  yield* TestClock.adjust("1 second")
  yield* Scope.close(scope, yield* Effect.exit(Effect.void))
  assert.deepStrictEqual(notes, ["begins", "looks", "ends"])
  assert.strictEqual(sleepers.size, 0)
})
