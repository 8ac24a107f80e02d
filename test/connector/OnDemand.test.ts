import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"
import type { ConnectorShape } from "../../src/connector/Connector.ts"
import * as OnDemand from "../../src/connector/OnDemand.ts"
import { test } from "../support/suite.ts"

/** A connection that notes when it is made and closed, and counts its requests. */
const noting = (notes: Array<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      notes.push("made")
      let requests = 0
      const identify = Effect.delay(
        Effect.sync(() => {
          requests += 1
          return { companyId: 7n, user: null, scopes: null, features: null }
        }),
        "1 second"
      )
      const usage = Effect.sync(() => ({ requests, retries: 0, rateLimited: 0, bytes: 0 }))
      return { connector: { keyScope: "k", identify, usage } as unknown as ConnectorShape }
    }),
    () => Effect.sync(() => notes.push("closed"))
  )

test("makes one connector for all requests, closes it when it rests, and keeps its counts", function* () {
  const notes: Array<string> = []
  const { connector } = yield* (yield* OnDemand.make).of(noting(notes))
  assert.deepStrictEqual(notes.splice(0), ["made", "closed"])
  assert.strictEqual(connector.keyScope, "k")
  assert.strictEqual((yield* connector.usage).requests, 0)
  assert.deepStrictEqual(notes, [])
  const both = yield* Effect.forkChild(Effect.all([connector.identify, connector.identify], { concurrency: 2 }))
  yield* TestClock.adjust("1 second")
  yield* Fiber.join(both)
  assert.strictEqual((yield* connector.usage).requests, 2)
  yield* TestClock.adjust("9 minutes")
  assert.deepStrictEqual(notes, ["made"])
  yield* TestClock.adjust("2 minutes")
  assert.deepStrictEqual(notes.splice(0), ["made", "closed"])
  assert.strictEqual((yield* connector.usage).requests, 2)
  const third = yield* Effect.forkChild(connector.identify)
  yield* TestClock.adjust("1 second")
  assert.strictEqual((yield* Fiber.join(third)).companyId, 7n)
  assert.strictEqual((yield* connector.usage).requests, 3)
  assert.deepStrictEqual(notes, ["made"])
})

test("closes the connector of a removed company at once, or when its last request ends", function* () {
  const notes: Array<string> = []
  const { connector, close } = yield* (yield* OnDemand.make).of(noting(notes))
  notes.splice(0)
  const running = yield* Effect.forkChild(connector.identify)
  yield* TestClock.adjust("500 millis")
  yield* close
  assert.deepStrictEqual(notes, ["made"])
  yield* TestClock.adjust("500 millis")
  yield* Fiber.join(running)
  assert.deepStrictEqual(notes, ["made", "closed"])
  assert.strictEqual((yield* connector.usage).requests, 1)
})

test("fails where no connector can be made", function* () {
  const connectors = yield* OnDemand.make
  assert.deepStrictEqual(yield* Effect.exit(connectors.of(Effect.fail("wrong token"))), Exit.fail("wrong token"))
})
