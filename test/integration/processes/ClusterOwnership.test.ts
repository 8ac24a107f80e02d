import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import * as SqlClient from "effect/sql/SqlClient"
import * as ClusterOwnership from "../../../src/processes/ClusterOwnership.ts"
import { bucketCount } from "../../../src/processes/Ownership.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { ownershipContract } from "../../processes/ownershipContract.ts"
import { until } from "../../support/until.ts"
import { layerWarehouse, otherProcess } from "../../support/postgres.ts"

layer(layerWarehouse, { excludeTestServices: true, timeout: "60 seconds" })("ownership by the engine", (it) => {
  ownershipContract((title, effect) => it.effect(title, effect), {
    make: () => Effect.map(otherProcess, ClusterOwnership.make),
    takesOver: true,
    isExclusive: true
  })

  it.effect("gives each process an identity of its own, and a process that starts again its former one", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const areRegistered = (...expected: ReadonlyArray<string>) =>
        until(
          `${expected.join(" and ")} are registered`,
          Effect.map(
            Effect.orDie(sql<{ address: string }>`select address from tributary.cluster_runners order by address`),
            (rows) => rows.map(({ address }) => address)
          ),
          (addresses) => addresses.join() === expected.join()
        )
      const join = Effect.flatMap(otherProcess, (database) =>
        Layer.build(Layer.fresh(ClusterOwnership.make(database).layer(() => Effect.never)))
      )
      yield* join
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* join
          yield* areRegistered("process-0:0", "process-1:0")
        })
      )
      yield* areRegistered("process-0:0")
      yield* join
      yield* areRegistered("process-0:0", "process-1:0")
    })
  )

  it.effect("has the tables that the engine would create", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* Layer.build(SqlRunnerStorage.layerMigrations({ prefix: "public.engine" }))
      const columnsOf = (schema: string, prefix: string) => sql`
        select replace(table_name, ${prefix}, '') as "table", column_name, data_type, character_maximum_length, is_nullable,
               split_part(column_default, '(', 1) as "default"
          from information_schema.columns where table_schema = ${schema} and table_name in (${`${prefix}_runners`}, ${`${prefix}_locks`})
         order by table_name, ordinal_position`
      const keysOf = (schema: string, prefix: string) => sql`
        select pg_get_constraintdef(c.oid) as definition from pg_constraint c join pg_class t on t.oid = c.conrelid
         where t.relnamespace = ${schema}::regnamespace and t.relname in (${`${prefix}_runners`}, ${`${prefix}_locks`})
           and c.contype in ('p', 'u') order by 1`
      const [columns, keys] = [yield* columnsOf("tributary", "cluster"), yield* keysOf("tributary", "cluster")]
      assert.deepStrictEqual([columns.length, keys.length], [8, 3])
      assert.deepStrictEqual(columns, yield* columnsOf("public", "engine"))
      assert.deepStrictEqual(keys, yield* keysOf("public", "engine"))
    })
  )

  it.effect("is not shared with processes on another warehouse", () =>
    Effect.gen(function* () {
      const other = yield* Layer.build(Layer.fresh(layerWarehouse))
      const owned = { here: 0, there: 0 }
      const join = (name: keyof typeof owned) =>
        Effect.flatMap(Database, (database) =>
          Layer.build(
            Layer.fresh(
              ClusterOwnership.make(database).layer(() =>
                Effect.andThen(
                  Effect.sync(() => {
                    owned[name] += 1
                  }),
                  Effect.never
                )
              )
            )
          )
        )
      yield* join("here")
      yield* Effect.provideContext(join("there"), other)
      yield* until(
        "both own every bucket",
        Effect.sync(() => [owned.here, owned.there]),
        (counts) => counts.every((count) => count === bucketCount)
      )
      assert.deepStrictEqual(owned, { here: bucketCount, there: bucketCount })
    })
  )
})
