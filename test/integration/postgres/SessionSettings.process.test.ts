/** Commands of roles with every odd setting at once: the owner syncs, and the reader reads what the plain role reads. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeHostileWorld } from "./hostileWorld.ts"

it.live("hostile roles sync and read the values of a plain role, and their reader reads no sealed token", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const { world, hostile, succeeds, grant } = yield* makeHostileWorld
      yield* succeeds(["sync", "customers", "invoices"], hostile)
      yield* succeeds(["verify", "customers", "invoices"], hostile)
      yield* grant
      for (const table of ["customers", "invoices"]) {
        const args = ["query", "--json", `select * from erp.${table} order by id`]
        const plain = yield* succeeds(args)
        assert.isAbove(plain.length, 1_000)
        assert.strictEqual(yield* succeeds(args, hostile), plain, table)
      }
      const sealed = yield* world.run(["query", "select sealed_token from tributary.company_settings"], hostile)
      assert.strictEqual(sealed.code, 1, sealed.stdout)
      assert.include(sealed.stderr, "permission denied")
    })
  )
)
