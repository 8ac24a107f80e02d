/** The search of records, and the links between them, on Postgres with tables of the catalogue. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { address } from "../../src/web/Escape.ts"
import { routes } from "../../src/dashboard/pages/Records.ts"
import { referencesTo } from "../../src/status/RecordRelations.ts"
import { saveCompany } from "../support/companies.ts"
import { searchIndexesOf } from "../../src/warehouse/Indexes.ts"
import { modelDatasetsOf } from "../../src/warehouse/Model.ts"
import { datasetsDefault, tableOf } from "../../src/warehouse/Table.ts"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import * as Views from "../../src/warehouse/Views.ts"
import { ask, holdsHostile, hostile, unconnected, warehouse } from "./asking.ts"
import { suite } from "../support/suite.ts"
import { sql } from "../support/postgres.ts"

const tables = [...serviceV2.resources.values()].map((resource) => tableOf(resource))

/** Inserts a row as a landing does. */
const insert = (resource: string, company: number, values: Readonly<Record<string, unknown>>, deleted = false) => {
  const names = Object.keys(values)
  return sql.unsafe(
    `insert into erp.${resource} (_company_id, ${names.join(", ")}, _origin, _observed_at, _deleted_at, _op)
       values ($1, ${names.map((_, index) => `$${index + 2}`).join(", ")}, 'scan', tributary.now(), ${deleted ? "tributary.now()" : "null"}, '${deleted ? "delete" : "insert"}')`,
    [company, ...Object.values(values)]
  )
}

/** Three companies: two of the dashboard, and one that it does not show. */
const rows = Effect.gen(function* () {
  yield* TablePlan.apply(tables)
  for (const [index, name] of ["north", "south", "secret"].entries()) {
    yield* saveCompany(name, BigInt(index + 1))
  }
  yield* insert("customers", 1, { id: 10, customercode: "Acme", name: "Acme Ltd.", externalid: "crm-1" })
  yield* insert("customers", 1, { id: 11, customercode: "acme-2", name: hostile, externalid: hostile })
  yield* insert("customers", 1, { id: 12, customercode: "50%_x", name: "Percent", cancel: true })
  yield* insert("customers", 1, { id: 13, customercode: "50AAx", name: "Not that one" }, true)
  yield* insert("customers", 2, { id: 20, customercode: "SOUTH1", name: "South", externalid: "crm-2" })
  yield* insert("customers", 3, { id: 30, customercode: "Acme-3", name: "Not shown", externalid: "crm-3" })
  yield* insert("orders", 1, {
    id: 100,
    customerid: 10,
    customer: "Acme",
    ordertotal: "12345678901234.50",
    orderdate: "2026-01-05"
  })
  yield* insert("orders", 3, { id: 100, customerid: 10 })
  for (let line = 1; line <= 7; line += 1) yield* insert("orderlines", 1, { id: 1000 + line, orderid: 100 })
  yield* insert("orderlines", 2, { id: 1001, orderid: 100 })
  yield* insert("orderlines", 3, { id: 1008, orderid: 100 })
  yield* insert("shipments", 1, { id: 300, orderid: 100 })
  yield* insert("invoices", 1, {
    id: 400,
    invoicenumber: "INV-7",
    orderid: 100,
    customerid: 10,
    customer: "Acme",
    voucherid: 900
  })
  yield* insert("payments", 1, { id: 500, invoiceid: 400, invoice: "INV-7", customerid: 10 }, true)
})

const stand = Layer.effectDiscard(rows).pipe(Layer.provideMerge(warehouse))
const companies = [unconnected("north"), unconnected("south")]
const show = (query: Record<string, string>) => ask(routes, companies, address("/records", query))
const found = (query: Record<string, string>) =>
  Effect.map(show(query), ({ text }) =>
    [
      ...text.matchAll(/<th scope="row"[^>]*>\s*<a href="\/records\?company=(\w+)&amp;resource=(\w+)&amp;id=(-?\d+)"/g)
    ].map(([, company, resource, id]) => `${company} ${resource} ${id}`)
  )
const goes = (query: Record<string, string>) => Effect.map(show(query), ({ to }) => to)
const to = (company: string, resource: string, id: number) => address("/records", { company, resource, id: String(id) })

suite("the search for records", stand, (test) => {
  test("goes to the only record with a number, a code or an external id", function* () {
    assert.strictEqual(yield* goes({ q: "300" }), to("north", "shipments", 300))
    assert.strictEqual(yield* goes({ q: " acME " }), to("north", "customers", 10))
    assert.strictEqual(yield* goes({ q: "CRM-2" }), to("south", "customers", 20))
    assert.strictEqual(yield* goes({ q: "inv-7" }), to("north", "invoices", 400))
    assert.strictEqual(yield* goes({ q: hostile }), to("north", "customers", 11))
    // A prefix, where no record has the whole text. Signs of patterns are letters.
    assert.strictEqual(yield* goes({ q: "South" }), to("south", "customers", 20))
    assert.strictEqual(yield* goes({ q: "50%_" }), to("north", "customers", 12))
    assert.deepStrictEqual(yield* found({ q: "50" }), ["north customers 12", "north customers 13"])
    assert.deepStrictEqual(yield* found({ q: "%" }), [])
  })

  test("lists several records by resource, with key and state", function* () {
    assert.deepStrictEqual(yield* found({ q: "1001" }), ["north orderlines 1001", "south orderlines 1001"])
    assert.strictEqual(yield* goes({ q: "1001", company: "south" }), to("south", "orderlines", 1001))
    assert.strictEqual(yield* goes({ q: "orders 100" }), to("north", "orders", 100))
    assert.strictEqual(yield* goes({ q: "Orders #100" }), to("north", "orders", 100))
    // The name of a resource that is only the beginning of a code.
    assert.deepStrictEqual(yield* found({ q: "orders acme" }), [])
    const beginning = yield* show({ q: "acme", match: "beginning" })
    assert.deepStrictEqual(yield* found({ q: "acme", match: "beginning" }), [
      "north customers 10",
      "north customers 11"
    ])
    assert.isFalse(holdsHostile(beginning.text.replaceAll(/value="[^"]*"/g, "")))
    const states = yield* show({ q: "50" })
    assert.match(states.read, /customers 12 50%_x north cancelled beginning customers 13 50AAx north deleted/)
  })

  test("shows no record of a company that the dashboard does not show", function* () {
    for (const q of ["30", "crm-3", "Acme-3", "customers 30"]) {
      const { text, to: target } = yield* show({ q })
      assert.isNull(target, q)
      assert.notInclude(text, "secret")
      assert.notInclude(text, "id=30")
    }
    for (const company of ["secret", "3"]) {
      const { text } = yield* show({ company, resource: "customers", id: "30" })
      assert.match(text, /No company “(secret|3)” is known/)
      assert.notInclude(text, "Not shown")
    }
    assert.include((yield* show({ resource: "customers", id: "30" })).text, "The warehouse has nothing about")
    assert.strictEqual(yield* goes({ resource: "orders", id: "100" }), to("north", "orders", 100))
    assert.notInclude((yield* show({ company: "north", resource: "orders", id: "100" })).text, "id=1008")
  })

  test("covers a bounded number of companies", function* () {
    const many = Array.from({ length: 60 }, (_, index) => `many-${index}`)
    for (const [index, name] of many.entries()) yield* saveCompany(name, BigInt(1_000 + index))
    yield* insert("customers", 1_059, { id: 4242, customercode: "LAST" })
    const ofMany = (query: Record<string, string>) =>
      ask(
        routes,
        many.map((name) => unconnected(name)),
        address("/records", query)
      )
    assert.include((yield* ofMany({ q: "LAST" })).read, "at most 50 companies, and there are 60: choose one")
    assert.strictEqual((yield* ofMany({ q: "last", company: "many-59" })).to, to("many-59", "customers", 4242))
  })

  test("finds a record that never landed in the quarantine", function* () {
    const add = (company: number, id: string) => sql`
        insert into tributary.quarantine (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at)
        values (${company}, 'customers', ${id}, 'holds the character NUL', '{}', 1, 'GET /customers', tributary.now(), tributary.now())`
    yield* add(1, "7777")
    yield* add(3, "7778")
    assert.strictEqual(yield* goes({ q: "7777" }), to("north", "customers", 7777))
    assert.isNull(yield* goes({ q: "7778" }))
    const { read } = yield* show({ company: "north", resource: "customers", id: "7777" })
    assert.match(read, /never landed .* In quarantine .* open/)
  })

  test("links records in both directions, as SQL finds them", function* () {
    const linksOf = (text: string) =>
      [...text.matchAll(/href="\/records\?company=(\w+)&amp;resource=(\w+)&amp;id=(\d+)"/g)].map(
        ([, company, resource, id]) => `${company} ${resource} ${id}`
      )
    for (const [resource, id] of [
      ["orders", 100],
      ["invoices", 400],
      ["customers", 10],
      ["payments", 500]
    ] as const) {
      const { text } = yield* show({ company: "north", resource, id: String(id) })
      const expected: Array<string> = []
      for (const table of tables) {
        for (const field of referencesTo(table, resource)) {
          const referring = yield* sql.unsafe<{ id: string }>(
            `select id::text as id from erp.${table.name} where _company_id = 1 and "${field}" = ${id} order by erp.${table.name}.id desc limit 5`
          )
          expected.push(...referring.map((one) => `north ${table.name} ${one.id}`))
        }
      }
      const own = serviceV2.resources.get(resource)!
      for (const { name, reference } of own.fields) {
        if (reference?.half !== "id") continue
        const [row] = yield* sql.unsafe<{ id: string | null }>(
          `select "${name}"::text as id from erp.${resource} where _company_id = 1 and id = ${id}`
        )
        const named = row?.id ?? null
        // A record that is not in the warehouse has no page.
        const table = tables.find((one) => one.resource.path === reference.resource)
        const found =
          named === null || table === undefined
            ? []
            : yield* sql.unsafe(`select from erp.${table.name} where _company_id = 1 and id = ${named}`)
        if (found.length > 0) expected.push(`north ${reference.resource} ${named}`)
      }
      // The documents behind the documents: the payments of the invoices of an order.
      if (resource === "orders") expected.push("north payments 500")
      assert.isAbove(expected.length, 0)
      assert.sameMembers(linksOf(text), expected, resource)
    }
    const order = yield* show({ company: "north", resource: "orders", id: "100" })
    assert.match(order.read, /orderlines by orderid 7 /)
    assert.match(order.read, /All 7 orderlines/)
    assert.match(order.read, /ordertotal [^.]*12,345,678,901,234\.50/)
    const invoice = yield* show({ company: "north", resource: "invoices", id: "400" })
    assert.match(invoice.read, /INV-7 invoices 400 in company north/)
    assert.match(invoice.read, /vouchers 900 not synced/)
    assert.match(invoice.read, /payments 500 deleted/)
  })
})

suite("large tables", stand, (test) => {
  test("are searched by an index, and named while they have none", function* () {
    yield* sql`
        insert into erp.invoices (_company_id, id, invoicenumber, customerid, _origin, _observed_at)
        select 1, n, 'F' || n, n, 'scan', tributary.now() from generate_series(100000, 160000) n`
    yield* sql`analyze erp.invoices`
    // A page is one transaction, in which reads of whole tables are counted.
    const rowsRead = sql<{ whole: number; byIndex: number }>`
        select seq_tup_read::int as whole, idx_tup_fetch::int as "byIndex"
          from pg_stat_xact_user_tables where relid = 'erp.invoices'::regclass`
    const byIndexOnly = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const [before] = yield* rowsRead
          const answer = yield* effect
          const [after] = yield* rowsRead
          assert.strictEqual(after!.whole, before!.whole)
          assert.isBelow(after!.byIndex - before!.byIndex, 100)
          return answer
        })
      )
    const customer = byIndexOnly(show({ company: "north", resource: "customers", id: "10" }))
    const before = yield* byIndexOnly(show({ q: "F123456" }))
    assert.isNull(before.to)
    assert.match(before.read, /Only numbers were searched in these large resources.*: invoices\./)
    assert.strictEqual(yield* byIndexOnly(goes({ q: "123456" })), to("north", "invoices", 123456))
    assert.match((yield* customer).read, /1 reference not looked up .* invoices\.customerid/)

    const [datasets] = modelDatasetsOf(datasetsDefault)
    const { done } = yield* Views.apply([], datasets!, searchIndexesOf(tables))
    assert.strictEqual(done.filter((statement) => statement.startsWith("create index")).length, 2)
    assert.deepStrictEqual((yield* Views.apply([], datasets!, searchIndexesOf(tables))).done, [])
    assert.strictEqual(yield* byIndexOnly(goes({ q: "f123456" })), to("north", "invoices", 123456))
    assert.strictEqual((yield* byIndexOnly(found({ q: "f12345" }))).length, 10)
    assert.include((yield* byIndexOnly(show({ q: "f1" }))).read, "the first 20 records")
    assert.include((yield* byIndexOnly(show({ q: "f1234567" }))).read, "No record has the number")
    yield* sql`create index on erp.invoices (_company_id, customerid)`
    assert.match((yield* customer).read, /invoices by customerid 1 /)
  })
})
