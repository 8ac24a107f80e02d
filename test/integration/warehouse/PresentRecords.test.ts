/** A query as of a moment answers as of the moment, or is refused: it never reads the present records. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { read } from "../../../src/cli/query.ts"
import { applyViews } from "../../../src/sync/Sync.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { makeCompany } from "../../support/feeding.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { companyReader, namesModel } from "./readers.ts"
import { suite } from "../../support/suite.ts"

const longAgo = { moment: "2020-01-01 00:00:00+00", mode: "warehouse" } as const

/** Statements that would count the present records. */
const present: ReadonlyArray<readonly [statement: string, problem: RegExp]> = [
  ["select count(*) from erp.things", /erp\.things contains the present records.*\(things\), or erp_asof\.things/],
  ["select count(*) from erp.things where $$;$$ <> '' -- end;", /erp\.things/],
  [`select count(*) from "erp"."things"`, /erp\.things/],
  [`select count(*) from U&"\\0065rp".THINGS;`, /erp\.things/],
  ["select (select count(*) from ERP . things)", /erp\.things/],
  ["select 1 where exists (select from erp.things)", /erp\.things/],
  ["with t as (select * from erp.things) select count(*) from t", /erp\.things/],
  ["select count(*) from things union all select count(*) from erp.things", /erp\.things/],
  ["select count(*) from things t left join lateral (select from erp.things o where o.id = t.id) o on true", /erp\.th/],
  ["table erp.things", /erp\.things/],
  ["explain (analyze, costs off) select count(*) from erp.things", /erp\.things/],
  ["select count(*) from erp_models.names", /erp_models\.names contains.*erp_models_asof\.names/],
  ["select count(*) from mine", /mine reads erp\.things, which contains the present records/],
  ["select count(*) from public.copied", /copied reads erp\.things/],
  ["select count(*) from erp_7.things", /erp_7\.things reads erp\.things/],
  ["select counted()", /erp\.things contains/],
  ["select query_to_xml('select count(*) from erp.things', true, true, '')", /erp\.things contains/],
  ["select query_to_xml('select * from erp_models.names', true, true, ''), count(*) from things", /erp_models\.names/]
]

/** Statements as of the moment, and of what has no moment. */
const allowed: ReadonlyArray<readonly [statement: string, value: string]> = [
  ["select count(*) from things", "0"],
  ["select count(*) from erp_asof.things t join things using (id)", "0"],
  ["select count(*) from names", "0"],
  ["select count(*) from erp_models_asof.names", "0"],
  ["select count(*) from erp_asof_7.things", "0"],
  ["select count(*) from of_the_moment", "0"],
  ["select count(*) from erp_history.things", "2"],
  ["select count(*) from tributary.checkpoints where false", "0"],
  ["select count(*) from calendar", "1"],
  ["select count(*) from pg_class where oid = 'erp.things'::regclass", "1"],
  ["select 'from erp.things'", "from erp.things"],
  ["select erp_models.as_of()", "2020-01-01"]
]

suite("a query as of a moment", layerWarehouse, (test) => {
  test("is refused where it would read present records, however they are named", function* () {
    const company = makeCompany(7n)
    company.put(1, "one")
    company.put(2, "two")
    yield* company.sync()
    yield* applyViews({ models: [namesModel], datasets: datasetsDefault })
    yield* companyReader(7n, `present_reader_${process.pid}`)
    for (const statement of [
      "create view public.mine as select t.* from (select * from erp.things) t",
      "create materialized view public.copied as select * from erp.things",
      "create view public.of_the_moment as select name from erp_models_asof.names",
      "create table public.calendar as select date '2020-01-01' as day",
      "create function public.counted() returns bigint language sql stable security definer as 'select count(*) from erp.things'",
      "grant usage on schema public to public",
      "grant select on all tables in schema public to public",
      "grant usage on schema erp_7, erp_asof_7 to public",
      "grant select on all tables in schema erp_7, erp_asof_7 to public"
    ])
      yield* sql.unsafe(statement)
    const together = { concurrency: 4 }
    yield* Effect.forEach(
      present,
      Effect.fnUntraced(function* ([statement, problem]) {
        const error = yield* Effect.flip(read(statement, longAgo))
        assert.match(error.message, problem, statement)
        assert.strictEqual(error.operation, "query", statement)
        assert.strictEqual(error._tag === "DatabaseError" ? error.code : "", "TB010", statement)
      }),
      together
    )
    yield* Effect.forEach(
      allowed,
      ([statement, value]) =>
        Effect.map(read(statement, longAgo), ({ rows }) => assert.strictEqual(rows[0]?.[0], value, statement)),
      together
    )
    assert.strictEqual((yield* read("select count(*) from erp.things")).rows[0]?.[0], "2")
  })
})
