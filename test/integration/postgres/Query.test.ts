import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Generated } from "kysely"
import { k, run } from "../../../src/postgres/Query.ts"
import { layerSql } from "../../support/postgres.ts"

interface Tables {
  readonly "tributary.checkpoints": {
    readonly id: Generated<bigint>
    readonly resource: string
    readonly amount: string | null
  }
}
const build = k<Tables>()

const table = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`create schema tributary`
  yield* sql`create table tributary.checkpoints (id bigint generated always as identity, resource text, amount numeric)`
  return sql
})

it.live("a Kysely query runs through the SqlClient with typed rows", () =>
  Effect.gen(function* () {
    yield* table
    const inserted = yield* run(
      build
        .insertInto("tributary.checkpoints")
        .values([
          { resource: "a", amount: "1.10" },
          { resource: "b", amount: null }
        ])
        .returning("id")
    )
    assert.deepStrictEqual(inserted, [{ id: 1n }, { id: 2n }])
    const rows = yield* run(
      build.selectFrom("tributary.checkpoints").select(["resource", "amount"]).where("id", "=", 1n)
    )
    const first: { resource: string; amount: string | null } | undefined = rows[0]
    assert.deepStrictEqual(first, { resource: "a", amount: "1.10" })
  }).pipe(Effect.provide(layerSql))
)

it.live("a Kysely query takes part in the transaction around it", () =>
  Effect.gen(function* () {
    const sql = yield* table
    const insert = run(build.insertInto("tributary.checkpoints").values({ resource: "a", amount: null }))
    const exit = yield* Effect.exit(sql.withTransaction(Effect.andThen(insert, Effect.fail("stop"))))
    assert.strictEqual(exit._tag, "Failure")
    assert.deepStrictEqual(yield* run(build.selectFrom("tributary.checkpoints").selectAll()), [])
  }).pipe(Effect.provide(layerSql))
)

it.live("a Kysely query fails with a typed error", () =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(run(build.selectFrom("tributary.checkpoints").selectAll()))
    assert.strictEqual(error.reason._tag, "SqlSyntaxError")
  }).pipe(Effect.provide(layerSql))
)
