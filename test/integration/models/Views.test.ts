import { assert, describe, it as test } from "@effect/vitest"
import { Effect, Tracer } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import { missingModel, read } from "../../../src/cli/query.ts"
import { indexesOf } from "../../../src/warehouse/Indexes.ts"
import { modelOf } from "../../../src/warehouse/Model.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as Views from "../../../src/warehouse/Views.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { resourcesOf } from "./compare.ts"
import { suite } from "../../support/suite.ts"
import { valuesOf } from "../../support/rows.ts"

/** A view over `shelves` with these columns. */
const model = (columns: ReadonlyArray<readonly [name: string, type: string, sql: string]>, name = "stock") =>
  modelOf(
    name,
    `-- What is on which shelf?
--
-- Counts: everything.
--
-- Indexes: shelves (bookid)
-- Columns:
${columns.map(([column, type]) => `--   ${column} ${type}: the ${column}`).join("\n")}
select ${columns.map(([column, , sql]) => `${sql} as ${column}`).join(", ")} from {{shelves}} s
`
  )

const company = ["company_id", "bigint", "s._company_id"] as const
const book = ["book_id", "bigint", "s.bookid"] as const
const price = ["price", "numeric", "s.price"] as const
const named = ["named", "text", "'it''s ' || {{as_of}}"] as const

let count = 0
/** New datasets with a table of shelves. */
const library = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  count += 1
  const datasets = { current: `library_${count}`, models: `library_models_${count}` }
  yield* sql.unsafe(`create schema ${datasets.current}`)
  yield* sql.unsafe(
    `create table ${datasets.current}.shelves (_company_id bigint, id bigint, bookid bigint, price numeric(20,4), primary key (_company_id, id))`
  )
  return { sql, datasets, view: `${datasets.models}.stock` }
})

const columnsOf = (view: string) =>
  sql.unsafe<{ name: string; comment: string | null }>(
    `select attname as name, col_description(attrelid, attnum) as comment from pg_attribute
        where attrelid = '${view}'::regclass and attnum > 0 order by attnum`
  )

suite("the model views", layerWarehouse, (test) => {
  test("are created in the configured datasets, and cost one query when they are current", function* () {
    const models = readModels()
    const datasets = { current: "mill", history: "mill_history", asOf: "mill_asof", models: "mill_views" }
    const resources = resourcesOf(models)
    yield* TablePlan.apply(resources.map((path) => tableOf(serviceV2.resources.get(path)!, datasets)))
    const first = yield* Views.apply(models, datasets)
    assert.deepStrictEqual([first.refused, first.skipped], [[], []])
    assert.isAbove(first.done.length, 200)

    let statements = 0
    const tracer = Tracer.make({
      span: (options) => {
        if (options.kind === "client") statements += 1
        return new Tracer.NativeSpan(options)
      }
    })
    const second = yield* Views.apply(models, datasets).pipe(Effect.withTracer(tracer))
    assert.deepStrictEqual(second, { done: [], skipped: [], refused: [] })
    assert.strictEqual(statements, 1)
    assert.deepStrictEqual((yield* Views.planFor(models, datasets)).steps, [])
    const sql = yield* SqlClient.SqlClient
    for (const { name } of models) yield* sql.unsafe(`select * from mill_views.${name} limit 0`)
    assert.strictEqual((yield* sql`select from pg_namespace where nspname in ('erp', 'erp_models')`).length, 0)
  })

  test("that do not exist name the resources that they need to the query that reads them", function* () {
    const models = readModels()
    const { resources } = models.find(({ name }) => name === "receivables_aging")!
    const datasets = { current: "thin", history: "thin_history", asOf: "thin_asof" }
    yield* TablePlan.apply([tableOf(serviceV2.resources.get("invoices")!, datasets)])
    const missing = resources.filter((path) => path !== "invoices")
    assert.isNotEmpty(missing)
    const inOctober = { moment: "2026-10-31", mode: "warehouse" } as const
    for (const [name, at] of [
      ["receivables_aging", undefined],
      ["erp_models.receivables_aging", undefined],
      ["receivables_aging", inOctober]
    ] as const) {
      const error = yield* Effect.flip(read(`select * from ${name}`, at))
      assert.strictEqual(error._tag, "DatabaseError")
      const said = yield* missingModel(error, models, datasets)
      assert.include(said, `the model receivables_aging does not exist yet: it needs ${missing.join(", ")}, which`)
      assert.include(said, `tributary sync ${missing.join(" ")}`)
    }
    const other = yield* Effect.flip(read("select * from no_such_table"))
    assert.isNull(yield* missingModel(other, models, datasets))
  })

  test("are skipped while a table that they read is missing", function* () {
    const { sql, datasets, view } = yield* library
    const other = modelOf(
      "lent",
      "-- What is lent?\n--\n-- Columns:\n--   id bigint: number\nselect l.id from {{loans}} l join {{shelves}} s using (id)\n"
    )
    const none = yield* Views.apply([other], datasets)
    assert.deepStrictEqual(none, { done: [], skipped: [{ name: "lent", missing: ["loans"] }], refused: [] })
    const some = yield* Views.apply([other, model([company])], datasets)
    assert.deepStrictEqual(some.skipped, [{ name: "lent", missing: ["loans"] }])
    yield* sql.unsafe(`select * from ${view}`)
    yield* sql.unsafe(`create table ${datasets.current}.loans (id bigint)`)
    const all = yield* Views.apply([other, model([company])], datasets)
    assert.deepStrictEqual(all.skipped, [])
    assert.isTrue(all.done.every((statement) => statement.includes("lent")))
    assert.deepStrictEqual((yield* Views.apply([], datasets)).done, [])
  })

  test("read the tables of the dataset that has its name after the first one was renamed", function* () {
    const { sql, datasets, view } = yield* library
    const { current } = datasets
    yield* Views.apply([model([company, book])], datasets)
    yield* sql.unsafe(`alter schema ${current} rename to ${current}_old`)
    yield* sql.unsafe(`create schema ${current}`)
    yield* sql.unsafe(`create table ${current}.shelves (like ${current}_old.shelves including all)`)
    yield* sql.unsafe(`insert into ${current}.shelves values (1, 1, 9, 2.5)`)
    assert.deepStrictEqual(yield* sql.unsafe(`select book_id from ${view}`), [])
    yield* Views.apply([model([company, book])], datasets)
    assert.deepStrictEqual(yield* sql.unsafe(`select book_id from ${view}`), [{ book_id: 9n }])
    assert.deepStrictEqual((yield* Views.planFor([model([company, book])], datasets)).steps, [])
  })

  test("get new columns in place when other views depend on them", function* () {
    const { sql, datasets, view } = yield* library
    yield* Views.apply([model([company])], datasets)
    yield* sql.unsafe(`create view ${datasets.current}.mine as select * from ${view}`)
    const grown = model([company, named])
    assert.match((yield* Views.planFor([grown], datasets)).steps[0]!.statements[0]!, /^create or replace view/)
    assert.deepStrictEqual((yield* Views.apply([grown], datasets)).refused, [])
    assert.deepStrictEqual(yield* columnsOf(view), [
      { name: "company_id", comment: "the company_id" },
      { name: "named", comment: "the named" }
    ])
    yield* sql.unsafe(`insert into ${datasets.current}.shelves values (1, 1, 7, 2.5)`)
    const rows = yield* sql.unsafe<{ named: string }>(`select named from ${view}`)
    assert.match(rows[0]!.named, /^it's \d{4}-\d\d-\d\d$/)
  })

  test("are never dropped with their dependants, and keep their grants when they are recreated", function* () {
    const { sql, datasets, view } = yield* library
    yield* Views.apply([model([company, book]), model([company], "calm")], datasets)
    yield* sql.unsafe(`grant select on ${view} to pg_monitor, public`)
    yield* sql.unsafe(`create view ${datasets.current}.mine as select book_id from ${view}`)
    const changed = [model([company, price]), model([company, price], "calm")]
    const refused = yield* Views.apply(changed, datasets)
    assert.strictEqual(refused.refused.length, 1)
    assert.include(refused.refused[0]!.reason, `${datasets.current}.mine depends on it`)
    assert.include(refused.refused[0]!.remedy, "tributary schema apply")
    assert.deepStrictEqual(valuesOf(yield* columnsOf(view), "name"), ["company_id", "book_id"])
    assert.strictEqual((yield* columnsOf(`${datasets.models}.calm`)).length, 2)
    yield* sql.unsafe(`drop view ${datasets.current}.mine`)
    const done = yield* Views.apply(changed, datasets)
    assert.deepStrictEqual(done.refused, [])
    assert.isFalse(done.done.some((statement) => /cascade/i.test(statement)))
    assert.deepStrictEqual(valuesOf(yield* columnsOf(view), "name"), ["company_id", "price"])
    const granted = yield* sql.unsafe<{ grantee: string }>(
      `select g.grantee::regrole::text as grantee from pg_class c, aclexplode(c.relacl) g
          where c.oid = '${view}'::regclass and g.privilege_type = 'SELECT' and g.grantee <> c.relowner order by 1`
    )
    assert.deepStrictEqual(granted, [{ grantee: "-" }, { grantee: "pg_monitor" }])
  })

  test("never replace objects of other owners, and a failing view does not stop the others", function* () {
    const { sql, datasets, view } = yield* library
    yield* sql.unsafe(`create schema ${datasets.models}`)
    yield* sql.unsafe(`create view ${view} as select 1 as mine`)
    yield* sql.unsafe(`create table ${datasets.models}.shop (id bigint)`)
    const broken = model([company, ["gone", "text", "s.nosuchcolumn"]], "broken")
    const report = yield* Views.apply(
      [broken, model([company]), model([company], "shop"), model([company], "good")],
      datasets
    )
    assert.deepStrictEqual(report.refused.map(({ name }) => name).sort(), ["broken", "shop", "stock"])
    const reason = (name: string) => report.refused.find((one) => one.name === name)!.reason
    assert.include(reason("broken"), "nosuchcolumn")
    assert.include(reason("stock"), "not one of Tributary's views")
    assert.deepStrictEqual(valuesOf(yield* columnsOf(view), "name"), ["mine"])
    yield* sql.unsafe(`select company_id from ${datasets.models}.good`)
  })

  test("wait briefly for locks of readers, and are created once by concurrent programs", function* () {
    const { sql, datasets, view } = yield* library
    const reports = yield* Effect.all(
      [Views.apply([model([company])], datasets), Views.apply([model([company])], datasets)],
      { concurrency: 2 }
    )
    assert.deepStrictEqual(valuesOf(reports, "refused"), [[], []])
    assert.strictEqual(reports.filter(({ done }) => done.length > 0).length, 1)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const reader = yield* (yield* Database).connect
        yield* Effect.promise(() => reader.query(`begin; select * from ${view}`))
        const report = yield* Views.apply([model([company, book]), model([company], "other")], datasets)
        assert.deepStrictEqual(valuesOf(report.refused, "name"), ["stock", "other"])
        assert.include(report.refused[0]!.remedy, "the next run tries again")
      })
    )
    assert.deepStrictEqual((yield* Views.apply([model([company, book])], datasets)).refused, [])
    assert.deepStrictEqual(yield* sql.unsafe(`select book_id from ${view}`), [])
  })

  test("create an index once the table is known to be large", function* () {
    const { sql, datasets } = yield* library
    const shelves = `${datasets.current}.shelves`
    const models = [model([company])]
    const indexes = () =>
      sql.unsafe<{ name: string }>(
        `select indexrelid::regclass::text as name from pg_index where indrelid = '${shelves}'::regclass and not indisprimary`
      )
    yield* Views.apply(models, datasets)
    yield* sql.unsafe(`insert into ${shelves} select 1, i, i % 100, 1 from generate_series(1, 9999) i`)
    yield* sql.unsafe(`analyze ${shelves}`)
    yield* Views.apply(models, datasets)
    assert.deepStrictEqual(yield* indexes(), [])
    yield* sql.unsafe(`insert into ${shelves} select 2, i, i % 100, 1 from generate_series(1, 10) i`)
    // The size of the table is not known yet.
    yield* Views.apply(models, datasets)
    assert.deepStrictEqual(yield* indexes(), [])
    yield* sql.unsafe(`analyze ${shelves}`)
    const { done } = yield* Views.apply(models, datasets)
    assert.match(done[0]!, /^create index if not exists "shelves__by_bookid" on .* \("_company_id", "bookid"\)$/)
    assert.deepStrictEqual(yield* indexes(), [{ name: `${datasets.current}.shelves__by_bookid` }])
    assert.deepStrictEqual((yield* Views.apply(models, datasets)).done, [])
    const plan = yield* sql.unsafe<{ "QUERY PLAN": string }>(
      `explain select * from ${shelves} where _company_id = 1 and bookid = 3`
    )
    assert.include(plan.map((line) => line["QUERY PLAN"]).join("\n"), "shelves__by_bookid")
  })
})

describe("a model file", () => {
  test("is rejected when its question, columns or indexes are missing or malformed", () => {
    const file = (text: string) => () => modelOf("bad", text)
    const columns = "-- Columns:\n--   id bigint: number\n"
    assert.throws(file("select 1 as id"), /which columns/)
    assert.throws(file("-- A view.\n--\n-- Columns:\n--   id bigint: number\nselect 1 as id"), /a question/)
    assert.throws(file(`-- What?\n${columns}select 1 as id`), /a question/)
    assert.throws(file("-- What?\n--\n-- Columns:\n--   id\nselect 1 as id"), /is no column/)
    assert.throws(file("-- What?\n--\n-- Columns:\n--   id money: number\nselect 1 as id"), /is no column/)
    assert.throws(file("-- What?\n--\n-- Columns:\nselect 1 as id"), /no columns/)
    assert.throws(file(`-- What?\n--\n-- Indexes: shelves bookid\n${columns}select 1 as id`), /is no index/)
  })

  test("requests few indexes, each once", () => {
    const names = indexesOf(readModels()).map(({ name }) => name)
    assert.deepStrictEqual(names, [...new Set(names)])
    assert.isAtMost(names.length, 12)
    assert.isTrue(names.every((name) => !name.includes("lastchangedate") && name.length <= 63))
  })
})
