/** Sessions and the password of the dashboard in the warehouse. */
import { assert, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Sessions from "../../src/dashboard/Sessions.ts"
import { layerWarehouse } from "../support/postgres.ts"

layer(layerWarehouse, { timeout: "60 seconds" })("a session in the warehouse", (it) => {
  it.effect("is open until its end, and ends with its password", () =>
    Effect.gen(function* () {
      const context = yield* Effect.context<SqlClient.SqlClient | SecureRandom.SecureRandom>()
      const sessions = Sessions.make(Effect.provideContext(context))
      const [first, second] = yield* Effect.all([sessions.generation("one"), sessions.generation("one")], {
        concurrency: 2
      })
      assert.strictEqual(first, second, "two processes agree on one generation")
      yield* sessions.begin("a", first, Duration.minutes(1))
      yield* sessions.begin("b", first, Duration.minutes(1))
      yield* sessions.begin("past", first, Duration.millis(-1))
      const areOpen = (generation: string) =>
        Effect.forEach(["a", "b", "past", "none"], (session) => sessions.isOpen(session, generation))
      assert.deepStrictEqual(yield* areOpen(first), [true, true, false, false])
      assert.deepStrictEqual(yield* areOpen("another"), [false, false, false, false])
      yield* sessions.end("b")
      assert.deepStrictEqual(yield* areOpen(first), [true, false, false, false])
      const changed = yield* sessions.generation("two")
      assert.notStrictEqual(changed, first)
      assert.strictEqual(yield* sessions.generation("two"), changed)
      assert.deepStrictEqual(yield* areOpen(first), [false, false, false, false])
      yield* sessions.begin("a", changed, Duration.minutes(1))
      yield* sessions.endAll
      assert.deepStrictEqual(yield* areOpen(changed), [false, false, false, false])
      assert.strictEqual((yield* sessions.key).length, 32)
      assert.deepStrictEqual(yield* sessions.key, yield* sessions.key)
    }).pipe(Effect.provide(SecureRandom.layerWebCrypto))
  )
})
