import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { money, string } from "../../../connectors/service-v2/catalogue/fields.ts"
import { resource, type Resource } from "../../../connectors/service-v2/catalogue/resource.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as Database from "../../../src/postgres/Database.ts"
import { layerCatalogue } from "../../support/demo.ts"
import { layerWarehouse as warehouse, sql } from "../../support/postgres.ts"
import { things } from "../../support/tiny.ts"
import { flowing } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"
import { assertCount, assertEach } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

const grown = (base: Resource, fields: Resource["fields"]): Resource =>
  resource({
    path: base.path,
    area: base.area,
    purpose: base.purpose,
    basis: base.basis,
    operations: base.operations.join(" "),
    fields,
    modifiedSince: base.modifiedSince
  })

suite("the table plan", warehouse, (test) => {
  test("adds a column, keeps existing rows and includes the column in the history", function* () {
    yield* TablePlan.apply([tableOf(things)])
    yield* sql`insert into erp.things (_company_id, id, name, _origin, _observed_at) values (1, 1, 'old', 'scan', now())`
    const more = tableOf(grown(things, [...things.fields, money("cost"), string("label", 10, { note: "it's \\ odd" })]))
    const statements = yield* TablePlan.apply([more])
    assert.strictEqual(statements.filter((statement) => statement.includes("add column")).length, 4)
    const [row] = yield* sql<{ record: Record<string, unknown> }>`select record from erp_history.things where id = 1`
    assert.deepStrictEqual([row!.record["name"], row!.record["cost"]], ["old", null])
    const [comment] = yield* sql<{ comment: string }>`
        select col_description('erp.things'::regclass, attnum) as comment from pg_attribute
         where attrelid = 'erp.things'::regclass and attname = 'label'`
    assert.include(comment!.comment, "it's \\ odd")
    assert.deepStrictEqual(yield* TablePlan.planFor([more]), [])
  })

  test("binds the history to the table that has the name after the first one was renamed", function* () {
    const table = tableOf(things)
    yield* TablePlan.apply([table])
    yield* sql`alter table erp.things rename to things_old`
    yield* sql`create table erp.things (like erp.things_old including all)`
    const statements = yield* TablePlan.apply([table])
    assert.strictEqual(statements.filter((statement) => statement.startsWith("create or replace view")).length, 2)
    yield* sql`insert into erp.things (_company_id, id, name, _origin, _observed_at) values (1, 77, 'new', 'scan', now())`
    const rows = yield* sql<{ record: Record<string, unknown> }>`select record from erp_history.things where id = 77`
    assertEach(rows, ({ record }) => record["name"], ["new"])
    assert.deepStrictEqual(yield* TablePlan.planFor([table]), [])
    yield* sql`drop table erp.things_old`
  })

  test("recreates a dropped column and requests a full scan", function* () {
    const table = tableOf({ ...things, path: "dropped" })
    yield* TablePlan.apply([table])
    yield* sql`insert into tributary.checkpoints (company_id, resource, cursor, updated_at)
                 values (1, 'dropped', 'c', now()), (2, 'dropped', null, now())`
    yield* sql`alter table erp.dropped drop column price cascade`
    const statements = yield* TablePlan.apply([table])
    assert.include(statements.join("\n"), 'alter table "erp"."dropped" add column "price" numeric(20,4)')
    assert.include(statements.join("\n"), "create or replace view")
    const checkpoints = yield* sql<{ full_scan_reason: string | null }>`
        select full_scan_reason from tributary.checkpoints where resource = 'dropped' order by company_id`
    // The second company has read nothing yet. Its first run is a full scan anyway.
    assert.deepStrictEqual(valuesOf(checkpoints, "full_scan_reason"), ["new in the table: price", null])
    assert.deepStrictEqual(yield* TablePlan.planFor([table]), [])
  })

  test("adds a column to a table on which other views depend", function* () {
    const base = { ...things, path: "rested" }
    yield* TablePlan.apply([tableOf(base)])
    yield* sql`create view erp.mine as select * from erp.rested`
    yield* sql`create view erp_history.mine as select * from erp_history.rested`
    yield* TablePlan.apply([tableOf(grown(base, [...base.fields, money("cost")]))])
    yield* sql`select cost from erp.rested`
    yield* sql`select * from erp.mine`
    yield* sql`select record from erp_history.mine`
  })

  test("rolls back and reports the reason when Postgres rejects a statement", function* () {
    const base = { ...things, path: "refused" }
    yield* TablePlan.apply([tableOf(base)])
    yield* sql`create function public.no_ddl() returns event_trigger language plpgsql as
                 $$ begin raise exception 'ask the owner first'; end $$`
    yield* sql`create event trigger no_ddl on ddl_command_end when tag in ('COMMENT') execute function public.no_ddl()`
    const conflict = yield* Effect.flip(TablePlan.apply([tableOf(grown(base, [...base.fields, money("cost")]))])).pipe(
      Effect.ensuring(Effect.orDie(sql`drop event trigger no_ddl`))
    )
    assert.strictEqual(conflict._tag, "TableConflict")
    assert.include(conflict.message, "ask the owner first (P0001)")
    const columns = yield* sql`select 1 from pg_attribute where attrelid = 'erp.refused'::regclass and attname = 'cost'`
    assert.lengthOf(columns, 0)
  })

  test("does not block readers while it waits for a lock on the table", function* () {
    const base = { ...things, path: "locked" }
    yield* TablePlan.apply([tableOf(base)])
    const holder = yield* (yield* Database.Database).connect
    yield* Effect.promise(() => holder.query("begin; lock table erp.locked in access share mode"))
    const applyFiber = yield* Effect.forkChild(
      Effect.result(TablePlan.apply([tableOf(grown(base, [...base.fields, money("cost")]))]))
    )
    // A query waits for at most one lock attempt of the change, however long the other session keeps its lock.
    yield* sql`select count(*) from pg_stat_activity where wait_event_type = 'Lock'`.pipe(
      Effect.repeat({ until: (rows) => Number((rows[0] as { count: bigint }).count) > 0 })
    )
    yield* sql`select set_config('statement_timeout', '10s', false)`
    yield* sql`select count(*) from erp.locked`
    yield* Effect.promise(() => holder.query("commit"))
    assert.strictEqual((yield* flowing(Fiber.join(applyFiber)))._tag, "Success")
  })

  test("runs once when programs start concurrently", function* () {
    const table = tableOf({ ...things, path: "together" })
    const results = yield* Effect.forEach([1, 2, 3, 4], () => TablePlan.apply([table]), { concurrency: "unbounded" })
    assertCount(results, (done) => done.length > 0, 1)
  })
})

const datasets = "('erp', 'erp_history', 'erp_asof', 'erp_models', 'erp_models_asof', 'tributary')"

/** What has no comment. */
const uncommented = sql.unsafe<{ readonly object: string }>(`
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

const tables = [...serviceV2.resources.values()].map((one) => tableOf(one))

suite("the tables and views of the whole catalogue", layerCatalogue, (test) => {
  test("have their types, can be read, and have a comment on every object; nothing is planned for them", function* () {
    assert.deepStrictEqual(yield* TablePlan.planFor(tables), [])
    const columns = yield* sql<{ name: string; type: string; comment: string }>`
        select a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
               col_description(a.attrelid, a.attnum) as comment
          from pg_attribute a where a.attrelid = 'erp.payments'::regclass and a.attnum > 0 order by a.attnum`
    const types = Object.fromEntries(columns.map(({ name, type }) => [name, type]))
    assert.deepInclude(types, {
      id: "bigint",
      amount: "numeric(20,4)",
      datereceived: "date",
      jointcheck: "boolean",
      _extra: "jsonb",
      _observed_at: "timestamp with time zone"
    })
    assert.include(columns.find(({ name }) => name === "paymeth")!.comment, "99 write-off")
    for (const table of tables) yield* sql.unsafe(`select * from ${table.view}`)
    const [counted] = yield* sql.unsafe<{ readonly columns: bigint }>(
      `select count(*) as columns from pg_attribute where attnum > 0
          and attrelid in (select oid from pg_class where relnamespace in (select oid from pg_namespace where nspname in ${datasets}))`
    )
    assert.isAbove(Number(counted!.columns), 5_000)
    assert.deepStrictEqual(yield* uncommented, [])
  })

  test("get their comments again where these were removed or changed", function* () {
    yield* sql.unsafe(`comment on column erp.orders._company_id is null`)
    yield* sql.unsafe(`comment on column erp.orders.status is 'another'`)
    yield* sql.unsafe(`comment on view erp_history.orders is null`)
    yield* sql.unsafe(`comment on view erp_asof.orders is null`)
    yield* sql.unsafe(`drop view erp_asof.countries`)
    assert.isAbove((yield* TablePlan.apply(tables)).length, 3)
    assert.deepStrictEqual(yield* uncommented, [])
    assert.deepStrictEqual(yield* TablePlan.planFor(tables), [])
  })
})
