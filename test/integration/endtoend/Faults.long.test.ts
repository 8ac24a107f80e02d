/** Syncs from a source that refuses: the resources of a missing scope stop with the remedy, and no output has the token. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../../support/world.ts"
import { liveTest } from "../../support/live.ts"

liveTest(
  "a sync from a faulty source ends with code 3 for a refused token or scope and reports the remedy",
  function* () {
    const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
    const narrow = yield* Effect.promise(() => world.reference.token(1, ["setup:read"]))
    const refused = Effect.fnUntraced(function* (token: string, resources: ReadonlyArray<string>, remedy: string) {
      const { code, stderr, stdout } = yield* world.run(["sync", ...resources], { SERVICE_API_TOKEN: token })
      assert.strictEqual(code, 3)
      assert.include(stderr, remedy)
      assert.notInclude(stderr + stdout, token)
    })
    yield* refused(narrow, ["salesmen", "payments", "invoiceterms"], "give the token the scope payments:read")
    for (const resource of ["salesmen", "invoiceterms"])
      assert.deepStrictEqual((yield* world.compare(resource)).differences, [], resource)
    yield* world.control("POST", "/tokens/revoke", { token: narrow })
    yield* refused(narrow, ["salesmen"], "the token was revoked: issue a new one")
    yield* refused("no-such-token", ["salesmen"], "does not know this token")
  }
)
