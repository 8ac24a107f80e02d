/** Every table, view, column, function and dataset of a warehouse has a comment, and an earlier warehouse gets them. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import { modelDatasetsOf } from "../../../src/warehouse/Model.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as Views from "../../../src/warehouse/Views.ts"
import { layerWarehouse } from "../../support/postgres.ts"

const datasets = "('erp', 'erp_history', 'erp_asof', 'erp_models', 'erp_models_asof', 'tributary')"

const uncommented = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe<{ readonly object: string }>(`
    with datasets as (select oid, nspname from pg_namespace where nspname in ${datasets}),
      relations as (
        select c.oid, n.nspname || '.' || c.relname as name from pg_class c join datasets n on n.oid = c.relnamespace
         where c.relkind in ('r', 'p', 'v', 'm', 'f'))
    select 'dataset ' || nspname as object from datasets where obj_description(oid, 'pg_namespace') is null
    union all
    select 'relation ' || name from relations where coalesce(obj_description(oid, 'pg_class'), '') = ''
    union all
    select 'column ' || name || '.' || attname from relations join pg_attribute on attrelid = oid
     where attnum > 0 and not attisdropped and coalesce(col_description(oid, attnum), '') = ''
    union all
    select 'function ' || p.oid::regprocedure from pg_proc p join datasets n on n.oid = p.pronamespace
     where coalesce(obj_description(p.oid, 'pg_proc'), '') = ''
    order by 1`)
)

const tables = [...serviceV2.resources.values()].map((resource) => tableOf(resource))

layer(layerWarehouse, { excludeTestServices: true, timeout: "120 seconds" })("the comments of a warehouse", (it) => {
  it.effect("are on every table, view, column, function and dataset", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* TablePlan.apply(tables)
      for (const one of modelDatasetsOf(datasetsDefault)) yield* Views.apply(readModels(), one)
      const [counted] = yield* sql.unsafe<{ readonly columns: bigint }>(
        `select count(*) as columns from pg_attribute where attnum > 0
          and attrelid in (select oid from pg_class where relnamespace in (select oid from pg_namespace where nspname in ${datasets}))`
      )
      assert.isAbove(Number(counted!.columns), 5_000)
      assert.deepStrictEqual(yield* uncommented, [])
      assert.deepStrictEqual(yield* TablePlan.planFor(tables), [])
    })
  )

  it.effect("come back where they were removed or changed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe(`comment on column erp.orders._company_id is null`)
      yield* sql.unsafe(`comment on column erp.orders.status is 'another'`)
      yield* sql.unsafe(`comment on view erp_history.orders is null`)
      yield* sql.unsafe(`comment on view erp_asof.orders is null`)
      yield* sql.unsafe(`drop view erp_asof.countries`)
      const planned = yield* TablePlan.apply(tables)
      assert.isAbove(planned.length, 3)
      assert.deepStrictEqual(yield* uncommented, [])
      assert.deepStrictEqual(yield* TablePlan.planFor(tables), [])
    })
  )
})
