import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import { sql } from "../../support/postgres.ts"
import { temporaryFolder } from "../../support/servers.ts"

it.live(
  "a server with max_locks_per_transaction = 10 accepts the tables of every resource",
  () =>
    Effect.gen(function* () {
      const path = yield* temporaryFolder
      const server = sqlLayer.pipe(
        Layer.provideMerge(Database.layerEmbedded({ root: join(path, "pg"), port: 0, durable: false }))
      )
      const within = <A, E>(work: Effect.Effect<A, E, Database | SqlClient.SqlClient>) =>
        Effect.scoped(Effect.provide(work, Layer.fresh(server)))
      yield* within(sql.unsafe("alter system set max_locks_per_transaction = 10"))
      yield* within(
        Effect.gen(function* () {
          const [setting] = yield* sql<{
            locks: string
          }>`select current_setting('max_locks_per_transaction') as locks`
          assert.strictEqual(setting?.locks, "10", "the server was restarted")
          yield* Migrations.migrate()
          const tables = [...serviceV2.resources.values()].map((resource) => tableOf(resource))
          yield* TablePlan.apply(tables)
          const [made] = yield* sql<{ tables: number }>`
              select count(*)::int as tables from pg_class where relkind = 'r' and relnamespace = 'erp'::regnamespace`
          assert.strictEqual(made?.tables, tables.length)
        })
      )
    }).pipe(Effect.scoped),
  120_000
)
