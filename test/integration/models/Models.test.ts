/**
 * The model views, compared with figures that are computed without SQL from the records of the server: for both demo
 * companies, after changes through the API, with unusual records, and on the days around every boundary.
 */
import { readFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as Views from "../../../src/warehouse/Views.ts"
import { layerWarehouse } from "../../support/postgres.ts"
import { check, land, resourcesOf } from "./compare.ts"
import { exact, figures, type Json } from "./figures.ts"
import { openOf } from "./figures/records.ts"
import { makeDemo } from "./moments.ts"
import { copyToCompany2, irregularities, today, vanish as vanishOfOperations } from "./operating.ts"
import { odd, trade, vanish } from "./trading.ts"

const datasets = { ...datasetsDefault, models: "erp_models" }
const models = readModels()
const resources = resourcesOf(models)

/** Views of irregularities and of records that the demo data does not have. */
const emptyInDemo: ReadonlySet<string> = new Set([
  "bank_deposit_check",
  "bill_coding_incomplete",
  "invoice_payment_check",
  "job_costs",
  "product_taxes_by_month",
  "return_taxes_by_month"
])

const demo = makeDemo(1, 0)
const { books, call, put, one, remove } = demo

/** The landed records, by company and resource. */
const landed = new Map<string, string>()

/** Lands the server's state and compares every view that reads a changed resource, on these days. */
const compared = Effect.fnUntraced(function* (title: string, days: ReadonlyArray<string> = [today]) {
  const companies = books()
  const touched = new Set<string>()
  for (const { company, lines } of companies) {
    const changed = [...lines].filter(([resource, texts]) => {
      const before = landed.get(`${company} ${resource}`)
      const whole = texts.join("\n")
      landed.set(`${company} ${resource}`, whole)
      if (before !== whole) touched.add(resource)
      return before !== whole
    })
    yield* land(datasets, company, new Map(changed))
  }
  assert.isAbove(touched.size, 0, `${title}: nothing changed`)
  const reading = models.filter(({ resources: read }) => read.some((resource) => touched.has(resource)))
  let rows: Readonly<Record<string, number>> = {}
  for (const day of days) {
    const checked = yield* check(reading, datasets.models, companies, day)
    assert.deepStrictEqual(checked.wrong.slice(0, 5), [], `${title}, ${day}: ${checked.wrong.length} rows`)
    rows = checked.rows
  }
  return rows
})

layer(layerWarehouse, { excludeTestServices: true, timeout: "120 seconds" })("the models", (it) => {
  it.effect("contain the same figures as the records of the server", () =>
    Effect.gen(function* () {
      yield* TablePlan.apply(resources.map((resource) => tableOf(serviceV2.resources.get(resource)!, datasets)))
      const report = yield* Views.apply(models, datasets)
      assert.deepStrictEqual(report.refused, [])
      assert.deepStrictEqual(report.skipped, [])
      assert.deepStrictEqual(
        Object.keys(figures).sort(),
        models.map(({ name }) => name)
      )
      const rows = yield* compared("demo")
      for (const { name } of models) {
        if (!emptyInDemo.has(name)) assert.isAbove(rows[name]!, 0, name)
      }
    })
  )

  it.effect("document every column with its Postgres type", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const columns = yield* sql<{ view: string; name: string; type: string; comment: string | null }>`
        select c.relname as view, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
               col_description(c.oid, a.attnum) as comment
          from pg_class c join pg_attribute a on a.attrelid = c.oid
         where c.relnamespace = 'erp_models'::regnamespace and c.relkind = 'v' and a.attnum > 0
         order by c.relname, a.attnum`
      assert.deepStrictEqual(
        columns,
        models.flatMap((model) => model.columns.map((column) => ({ view: model.name, ...column })))
      )
      const views = yield* sql<{ name: string; comment: string }>`
        select relname as name, obj_description(oid, 'pg_class') as comment from pg_class
         where relnamespace = 'erp_models'::regnamespace and relkind = 'v' order by 1`
      for (const [index, { name, comment }] of views.entries()) {
        assert.strictEqual(name, models[index]!.name)
        for (const part of [models[index]!.question, "Counts: ", "Leaves out: ", "Facts: "]) {
          assert.include(comment, part, name)
        }
      }
    })
  )

  it.effect("name only existing facts and fields, and index only reference fields", () =>
    Effect.sync(() => {
      const file = new URL("../../conformance/facts.json", import.meta.url)
      const ledger = new Set(Object.keys(JSON.parse(readFileSync(file, "utf8")) as object))
      for (const { name, comment, indexes, resources: read } of models) {
        const facts = [...comment.matchAll(/\b[A-Z]+-\d{2}\b/g)].map(([id]) => id)
        assert.isAbove(facts.length, 3, name)
        assert.deepStrictEqual(
          facts.filter((id) => !ledger.has(id)),
          [],
          name
        )
        for (const resource of read) assert.isTrue(serviceV2.resources.has(resource), `${name}: ${resource}`)
        for (const { resource, fields } of indexes) {
          for (const field of fields) {
            const reference = serviceV2.resources.get(resource)?.field.get(field)?.reference
            assert.strictEqual(reference?.half, "id", `${name}: ${resource}.${field}`)
          }
        }
      }
    })
  )

  it.effect("agree with the customer balance that the service computes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ customer_id: bigint; balance: string; open_invoices: bigint }>`
        select customer_id, balance, open_invoices from erp_models.customer_balances where company_id = 1`
      assert.isAbove(rows.length, 30)
      for (const { customer_id, balance, open_invoices } of rows) {
        const response = call("GET", `/customers/${customer_id}/balance`)
        assert.strictEqual(exact(balance), exact(response["balance"]), `customer ${customer_id}`)
        assert.strictEqual(Number(open_invoices), response["openinvoices"], `customer ${customer_id}`)
      }
    })
  )

  it.effect("follow payments, cancellations, shipments, deposits and removed lines", () =>
    Effect.gen(function* () {
      const unpaid = (least: bigint) => (invoice: Json) =>
        (invoice["voucherid"] ?? null) !== null && openOf(invoice) > least * 10n ** 12n
      const invoice = one("invoices", unpaid(20n))
      const part = call("POST", "/payments", { invoiceid: invoice["id"], amount: "10.01", method: 1 })
      yield* compared("a part is paid")
      call("POST", "/payments", { invoiceid: invoice["id"], amount: "0.0001", method: 5, date: today })
      call("DELETE", `/payments/${String(part["id"])}`)
      yield* compared("and its payment cancelled")

      const order = one("orders", (record) => record["status"] === "open" && record["ordertype"] === "fulfillment")
      const lines = books()[0]!
        .of("orderlines")
        .filter((line) => line["orderid"] === order["id"])
      const shipment = call("POST", "/shipments", {
        orderid: order["id"],
        lines: [{ orderlineid: lines[0]!["id"], quantity: "0.333333" }]
      })
      call("POST", "/orderdeposits", { orderid: order["id"], amount: "1.5", method: 2, reference: "D1" })
      yield* compared("a third ships, with a deposit")
      call("DELETE", `/shipments/${String(shipment["id"])}`)
      yield* compared("the shipment is cancelled")
      call("POST", "/shipments", {
        orderid: order["id"],
        lines: lines.map((line) => ({ orderlineid: line["id"], quantity: String(line["qtyorder"]) }))
      })
      const draft = call("POST", `/orders/${String(order["id"])}/invoice`)
      call("POST", "/invoicelines", { invoiceid: draft["id"], description: "Freight", quantity: "1", price: "0.005" })
      yield* compared("all ships, a draft")
      call("POST", `/invoices/${String(draft["id"])}/post`)
      const total = one("invoices", (record) => record["id"] === draft["id"])["invoicetotal"]
      yield* compared("posted")
      call("POST", "/payments", { invoiceid: draft["id"], amount: total, method: 4 })
      yield* compared("paid in full")

      const second = one(
        "invoices",
        (record) =>
          unpaid(0n)(record) && exact(record["invoicepaid"]) === 0n && String(record["invoicedate"]) > "2026-02-20"
      )
      call("DELETE", `/invoices/${String(second["id"])}`)
      yield* compared("an invoice is cancelled")

      const fresh = call("POST", "/orders", {
        customerid: order["customerid"],
        lines: [
          { item: String(lines[0]!["item"]), qtyorder: "3" },
          { item: String(lines[0]!["item"]), qtyorder: "0.5", priceach: "0.0001" }
        ]
      })
      const [first] = fresh["lines"] as ReadonlyArray<Json>
      yield* compared("a new order")
      call("DELETE", `/orderlines/${String(first!["id"])}`)
      yield* compared("one of its lines is removed")
      call("DELETE", `/orders/${String(fresh["id"])}`)
      yield* compared("it is cancelled")

      const bill = call("POST", "/apbills", { vendorid: one("apbills", () => true)["vendorid"], billtotal: "100" })
      yield* compared("a bill without lines")
      call("POST", "/apbilllines", { apbillid: bill["id"], glaccount: "Bank fees", amount: "99.9999" })
      yield* compared("a bill coded but for a ten-thousandth")
      call("POST", "/apbilllines", { apbillid: bill["id"], glaccount: "Bank fees", amount: "0.0001" })
      yield* compared("a bill coded in full")

      const day = books()[0]!
        .of("payments")
        .filter((record) => record["datereceived"] === today)
      const sum = (...which: ReadonlyArray<number>) =>
        day
          .filter((record) => record["cancel"] !== true && which.includes(Number(record["paymeth"])))
          .reduce((units, record) => units + exact(record["amount"]), 0n)
      const close = (cash: bigint) => ({
        inventorylocationid: 1,
        closedate: today,
        sys_cash: `${cash / 10n ** 12n}.${String((cash % 10n ** 12n) / 10n ** 8n).padStart(4, "0")}`,
        sys_cc: String(Number(sum(2, 3, 5) / 10n ** 8n) / 10_000),
        currency: "USD"
      })
      call("POST", "/ardailycloses", close(sum(1)))
      yield* compared("the day is closed")
      const sql = yield* SqlClient.SqlClient
      const agreed = yield* sql<{ status: string }>`
        select status from erp_models.daily_close_check where company_id = 1 and day = ${today} and currency = 'USD'`
      assert.deepStrictEqual(agreed, [{ status: "agrees" }])
      call("POST", "/ardailycloses", close(1n * 10n ** 12n))
      yield* compared("a second close of the same day")
    })
  )

  it.effect("are correct for odd, huge and missing values, and for records that disappear", () =>
    Effect.gen(function* () {
      const traded = trade(demo)
      const made = odd(demo)
      irregularities(demo)
      yield* compared("odd records")
      copyToCompany2(demo, resources)
      yield* compared("the same numbers in another company")
      vanish(demo, made, traded.order)
      vanishOfOperations(demo)
      remove("salesmen", one("customers", (record) => (record["salesmanid"] ?? null) !== null)["salesmanid"])
      remove("customers", one("customers", (record) => (record["invoicetermid"] ?? null) !== null)["id"])
      yield* compared("gone")
      remove("invoiceterms", 1)
      yield* compared("gone terms")
      const terms = one("invoiceterms")
      put("invoiceterms", [{ id: terms["id"], netduedays: 9_007_199_254_740_991 }])
      yield* compared("terms of no calendar")
      put("invoiceterms", [{ id: terms["id"], netduedays: -3 }])
      yield* compared("terms that are due before")
    })
  )

  it.effect("move an invoice to the next ageing bucket exactly on its day", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const customer = one("customers", (record) => (record["invoicetermid"] ?? null) !== null)
      const terms = put("invoiceterms", [{ verbal: "Net 7", netduedays: 7 }])[0]!
      put("customers", [{ id: customer["id"], invoicetermid: terms["id"], invoiceterm: "Net 7" }])
      put("invoices", [
        {
          invoicenumber: "AGED",
          customerid: customer["id"],
          voucherid: 1,
          invoicedate: "2024-02-22",
          invoicetotal: "1.0000"
        }
      ])
      const days: ReadonlyArray<readonly [day: string, bucket: string]> = [
        ["2024-02-22", "not due"],
        ["2024-02-29", "not due"],
        ["2024-03-01", "1-30"],
        ["2024-03-30", "1-30"],
        ["2024-03-31", "31-60"],
        ["2024-04-29", "31-60"],
        ["2024-04-30", "61-90"],
        ["2024-05-29", "61-90"],
        ["2024-05-30", "over 90"]
      ]
      yield* compared(
        "aging",
        days.map(([day]) => day)
      )
      for (const [day, bucket] of days) {
        const rows = yield* sql.withTransaction(
          Effect.andThen(
            sql`select set_config('tributary.as_of', ${day}, true)`,
            sql<{ bucket: string }>`select bucket from erp_models.receivables_open where invoicenumber = 'AGED'`
          )
        )
        assert.deepStrictEqual(rows, [{ bucket }], day)
      }
      const unset = yield* sql<{ same: boolean }>`select erp_models.as_of() = current_date as same`
      assert.deepStrictEqual(unset, [{ same: true }])
    })
  )

  it.effect("return results for every query of their README page", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const page = readFileSync(new URL("../../../connectors/service-v2/models/README.md", import.meta.url), "utf8")
      const queries = [...page.matchAll(/```sql\n([\s\S]*?)```/g)].map((match) => match[1]!)
      for (const { name, question, columns } of models) {
        assert.include(page, `### ${name}\n`, name)
        assert.include(page, question, name)
        for (const column of columns) assert.include(page, `\`${column.name}\``, `${name}.${column.name}`)
        assert.isTrue(
          queries.some((query) => query.includes(`erp_models.${name}`)),
          name
        )
      }
      for (const query of queries) {
        // Rolled back, so that a setting of the session is reset too.
        const rolledBack = yield* sql
          .withTransaction(
            Effect.andThen(
              Effect.forEach(
                query.split(/;\n/).filter((part) => part.trim() !== ""),
                (part) => sql.unsafe(part)
              ),
              Effect.fail("answered")
            )
          )
          .pipe(Effect.flip)
        assert.strictEqual(rolledBack, "answered", query)
      }
    })
  )
})
