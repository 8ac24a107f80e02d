/** A dataset that is lost alone: the next sync says so with one command, which repairs it, and the rows are equal again. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../support/world.ts"

it.live("a warehouse whose current rows were dropped is equal to the source after one repair", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
      const run = Effect.fnUntraced(function* (code: number, ...args: ReadonlyArray<string>) {
        const done = yield* world.run(args)
        assert.strictEqual(done.code, code, `${args.join(" ")}: ${done.stdout}${done.stderr}`)
        return done
      })
      yield* run(0, "sync", "salesmen", "invoices")
      yield* world.query("truncate erp.salesmen, erp.invoices")
      const { stderr } = yield* run(2, "sync", "salesmen", "invoices")
      assert.include(stderr, "tributary schema repair")
      yield* run(0, "schema", "repair")
      yield* run(0, "sync", "salesmen", "invoices")
      for (const resource of ["salesmen", "invoices"])
        assert.deepStrictEqual((yield* world.compare(resource)).differences, [], resource)
    })
  )
)
