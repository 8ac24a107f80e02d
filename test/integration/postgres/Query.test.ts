import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Generated } from "kysely"
import { k, run } from "../../../src/postgres/Query.ts"
import { layerSql, sql } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

interface Tables {
  readonly "tributary.checkpoints": {
    readonly id: Generated<bigint>
    readonly resource: string
    readonly amount: string | null
  }
}
const build = k<Tables>()

testWith(layerSql)("a Kysely query runs with typed rows and errors, in the transaction around it", function* () {
  const all = run(build.selectFrom("tributary.checkpoints").selectAll())
  assert.strictEqual((yield* Effect.flip(all)).operation, "select tributary.checkpoints")
  yield* sql`create schema tributary`
  yield* sql`create table tributary.checkpoints (id bigint generated always as identity, resource text, amount numeric)`
  const insert = run(
    build
      .insertInto("tributary.checkpoints")
      .values([
        { resource: "a", amount: "1.10" },
        { resource: "b", amount: null }
      ])
      .returning("id")
  )
  assert.deepStrictEqual(yield* insert, [{ id: 1n }, { id: 2n }])
  yield* Effect.flip(sql.withTransaction(Effect.andThen(insert, Effect.fail("stop"))))
  const rows: ReadonlyArray<{ resource: string; amount: string | null }> = yield* run(
    build.selectFrom("tributary.checkpoints").select(["resource", "amount"]).where("id", "=", 1n)
  )
  assert.deepStrictEqual(rows, [{ resource: "a", amount: "1.10" }])
  assert.lengthOf(yield* all, 2)
})
