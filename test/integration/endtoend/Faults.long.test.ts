/** Syncs from a source that refuses: the resources of a missing scope stop with the remedy, and no output has the token. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld, type World } from "../../support/world.ts"

const equal = (world: World, resources: ReadonlyArray<string>) =>
  Effect.forEach(resources, (resource) =>
    Effect.map(world.compare(resource), (comparison) => {
      assert.deepStrictEqual(comparison.differences.slice(0, 5), [], resource)
      return comparison.source
    })
  )

describe("a sync from a faulty source", () => {
  it.live(
    "ends with code 3 for a refused token or scope and reports the remedy",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const narrow = yield* Effect.promise(() => world.reference.token(1, ["setup:read"]))
          const some = yield* world.run(["sync", "salesmen", "payments", "invoiceterms", "--json"], {
            SERVICE_API_TOKEN: narrow
          })
          assert.strictEqual(some.code, 3)
          assert.include(some.stderr, "insufficient_scope")
          assert.include(some.stderr, "give the token the scope payments:read")
          yield* equal(world, ["salesmen", "invoiceterms"])

          yield* world.control("POST", "/tokens/revoke", { token: narrow })
          const none = yield* world.run(["sync", "salesmen"], { SERVICE_API_TOKEN: narrow })
          assert.strictEqual(none.code, 3)
          assert.include(none.stderr, "the token was revoked: issue a new one")
          const unknown = yield* world.run(["sync", "salesmen"], { SERVICE_API_TOKEN: "no-such-token" })
          assert.strictEqual(unknown.code, 3)
          assert.include(unknown.stderr, "does not know this token")
          assert.notInclude(unknown.stderr + unknown.stdout, "no-such-token")
        })
      ),
    { timeout: 60_000 }
  )
})
