/**
 * The model views, compared with figures that are computed without SQL from the records of the server: for both demo
 * companies, after changes through the API, with unusual records, and on the days around every boundary.
 */
import { readFileSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import * as Views from "../../../src/warehouse/Views.ts"
import { land, layerDemo } from "../../support/demo.ts"
import { check, resourcesOf } from "./compare.ts"
import { exact, figures, type Json } from "./figures.ts"
import { openOf } from "./figures/records.ts"
import { makeDemo } from "./moments.ts"
import { copyToCompany2, irregularities, today, vanish as vanishOfOperations } from "./operating.ts"
import { odd, trade, vanish } from "./trading.ts"
import { suite, testWith } from "../../support/suite.ts"
import { assertNone } from "../../support/assertions.ts"
import { sql } from "../../support/postgres.ts"

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

/** A server whose records a test changes. The warehouse begins with the same records. */
const makeChanging = () => {
  const demo = makeDemo(1, 0)
  const states = () =>
    demo
      .books()
      .flatMap((own) => [...own.lines].map(([resource, texts]) => ({ own, resource, texts, whole: texts.join("\n") })))
  const keyOf = ({ own, resource }: ReturnType<typeof states>[number]) => `${own.company} ${resource}`
  /** The landed records, by company and resource. */
  const landed = new Map(states().map((state) => [keyOf(state), state.whole]))

  /** Lands what changed at the server, and compares every view that reads it, for the companies that changed. */
  const compared = Effect.fnUntraced(function* (title: string, days: ReadonlyArray<string> = [today]) {
    const changed = states().filter((state) => landed.get(keyOf(state)) !== state.whole)
    for (const state of changed) {
      landed.set(keyOf(state), state.whole)
      yield* land(state.own.company, new Map([[state.resource, state.texts]]))
    }
    assert.isNotEmpty(changed, `${title}: nothing changed`)
    const touched = new Set(changed.map(({ resource }) => resource))
    const reading = models.filter(({ resources: read }) => read.some((resource) => touched.has(resource)))
    for (const day of days) {
      const { wrong } = yield* check(reading, "erp_models", [...new Set(changed.map(({ own }) => own))], day)
      assert.deepStrictEqual(wrong.slice(0, 5), [], `${title}, ${day}: ${wrong.length} rows`)
    }
  })
  return { ...demo, compared }
}

suite("the models", layerDemo, (test, it) => {
  const { books } = makeDemo(1, 0)

  test("contain the same figures as the records of the server", function* () {
    assert.deepStrictEqual((yield* Views.planFor(models, { current: "erp", models: "erp_models" })).steps, [])
    assert.deepStrictEqual(
      Object.keys(figures).sort(),
      models.map(({ name }) => name)
    )
    const { rows, wrong } = yield* check(models, "erp_models", books(), today)
    assert.deepStrictEqual(wrong, [])
    for (const { name } of models) {
      if (!emptyInDemo.has(name)) assert.isAbove(rows[name]!, 0, name)
    }
  })

  test("document every column with its Postgres type", function* () {
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

  it.effect("name only existing facts and fields, and index only reference fields", () =>
    Effect.sync(() => {
      const file = new URL("../../conformance/facts.json", import.meta.url)
      const ledger = new Set(Object.keys(JSON.parse(readFileSync(file, "utf8")) as object))
      for (const { name, comment, indexes, resources: read } of models) {
        const facts = [...comment.matchAll(/\b[A-Z]+-\d{2}\b/g)].map(([id]) => id)
        assert.isAbove(facts.length, 3, name)
        assertNone(facts, (id) => !ledger.has(id), name)
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

  test("return results for every query of their README page", function* () {
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
})

describe("the models after changes", () => {
  const test = testWith(layerDemo)

  test("follow payments, cancellations, shipments, deposits and removed lines", function* () {
    const demo = makeChanging()
    const { call, one } = demo
    const unpaid = (least: bigint) => (invoice: Json) =>
      (invoice["voucherid"] ?? null) !== null && openOf(invoice) > least * 10n ** 12n
    const [partly, reversed] = demo.all("invoices").filter((one) => one["cancel"] !== true && unpaid(20n)(one))
    call("POST", "/payments", { invoiceid: partly!["id"], amount: "10.01", method: 1 })
    const part = call("POST", "/payments", { invoiceid: reversed!["id"], amount: "10.01", method: 1 })
    call("POST", "/payments", { invoiceid: reversed!["id"], amount: "0.0001", method: 5, date: today })
    call("DELETE", `/payments/${String(part["id"])}`)
    const gone = one(
      "invoices",
      (record) =>
        unpaid(0n)(record) && exact(record["invoicepaid"]) === 0n && String(record["invoicedate"]) > "2026-02-20"
    )
    call("DELETE", `/invoices/${String(gone["id"])}`)

    const order = one("orders", (record) => record["status"] === "open" && record["ordertype"] === "fulfillment")
    const lines = demo.all("orderlines").filter((line) => line["orderid"] === order["id"])
    const shipment = call("POST", "/shipments", {
      orderid: order["id"],
      lines: [{ orderlineid: lines[0]!["id"], quantity: "0.333333" }]
    })
    call("POST", "/orderdeposits", { orderid: order["id"], amount: "1.5", method: 2, reference: "D1" })
    const ordered = (quantity: string) =>
      call("POST", "/orders", {
        customerid: order["customerid"],
        lines: [
          { item: String(lines[0]!["item"]), qtyorder: quantity },
          { item: String(lines[0]!["item"]), qtyorder: "0.5", priceach: "0.0001" }
        ]
      })
    const [first] = ordered("3")["lines"] as ReadonlyArray<Json>
    call("DELETE", `/orderlines/${String(first!["id"])}`)
    call("DELETE", `/orders/${String(ordered("4")["id"])}`)

    const vendorid = one("apbills", () => true)["vendorid"]
    for (const amounts of [[], ["99.9999"], ["99.9999", "0.0001"]]) {
      const bill = call("POST", "/apbills", { vendorid, billtotal: "100" })
      for (const amount of amounts) {
        call("POST", "/apbilllines", { apbillid: bill["id"], glaccount: "Bank fees", amount })
      }
    }

    const sum = (...which: ReadonlyArray<number>) =>
      demo
        .all("payments")
        .filter((one) => one["datereceived"] === today && one["cancel"] !== true)
        .filter((one) => which.includes(Number(one["paymeth"])))
        .reduce((units, record) => units + exact(record["amount"]), 0n)
    const close = (cash: bigint) => ({
      inventorylocationid: 1,
      closedate: today,
      sys_cash: `${cash / 10n ** 12n}.${String((cash % 10n ** 12n) / 10n ** 8n).padStart(4, "0")}`,
      sys_cc: String(Number(sum(2, 3, 5) / 10n ** 8n) / 10_000),
      currency: "USD"
    })
    call("POST", "/ardailycloses", close(sum(1)))
    yield* demo.compared("a third ships, with a deposit; the day is closed")
    const agreed = yield* sql<{ status: string }>`
        select status from erp_models.daily_close_check where company_id = 1 and day = ${today} and currency = 'USD'`
    assert.deepStrictEqual(agreed, [{ status: "agrees" }])

    call("DELETE", `/shipments/${String(shipment["id"])}`)
    call("POST", "/shipments", {
      orderid: order["id"],
      lines: lines.map((line) => ({ orderlineid: line["id"], quantity: String(line["qtyorder"]) }))
    })
    const draft = call("POST", `/orders/${String(order["id"])}/invoice`)
    call("POST", "/invoicelines", { invoiceid: draft["id"], description: "Freight", quantity: "1", price: "0.005" })
    yield* demo.compared("the shipment is cancelled, then all ships; a draft")
    call("POST", `/invoices/${String(draft["id"])}/post`)
    const total = one("invoices", (record) => record["id"] === draft["id"])["invoicetotal"]
    call("POST", "/payments", { invoiceid: draft["id"], amount: total, method: 4 })
    call("POST", "/ardailycloses", close(1n * 10n ** 12n))
    yield* demo.compared("posted and paid in full; a second close of the same day")
  })

  test("are correct for odd, huge and missing values, and for records that disappear", function* () {
    const demo = makeChanging()
    const { one, put, remove } = demo
    const traded = trade(demo)
    const made = odd(demo)
    irregularities(demo)
    yield* demo.compared("odd records")
    copyToCompany2(demo, resources)
    yield* demo.compared("the same numbers in another company")
    vanish(demo, made, traded.order)
    vanishOfOperations(demo)
    const withTerms = (record: Json) => (record["invoicetermid"] ?? null) !== null
    remove("salesmen", one("customers", (record) => (record["salesmanid"] ?? null) !== null)["salesmanid"])
    remove("customers", one("customers", withTerms)["id"])
    remove("invoiceterms", 1)
    const endless = put("invoiceterms", [{ netduedays: 9_007_199_254_740_991 }, { netduedays: -3 }])
    const customers = demo.all("customers").filter(withTerms)
    put(
      "customers",
      endless.map(({ id }, at) => ({ id: customers[at]!["id"], invoicetermid: id }))
    )
    yield* demo.compared("gone records and terms, terms of no calendar, and terms that are due before")
  })

  test("move an invoice, a shipment and a bill to the next bucket exactly on its day", function* () {
    const { books, compared, one, put } = makeChanging()
    const customer = one("customers", (record) => (record["invoicetermid"] ?? null) !== null)
    const terms = put("invoiceterms", [{ verbal: "Net 7", netduedays: 7 }])[0]!
    put("customers", [{ id: customer["id"], invoicetermid: terms["id"], invoiceterm: "Net 7" }])
    const posted = { customerid: customer["id"], voucherid: 1, invoicetotal: "1.0000" }
    put("invoices", [{ ...posted, invoicedate: "2024-02-22" }])
    put("shipments", [{ orderid: one("orders")["id"], shipdate: "2024-02-22" }])
    put("apbills", [{ vendorid: 1, voucherid: 1, billdate: "2024-01-30", billtotal: "1.0000" }])
    const hours = { orderid: one("orders")["id"], hours: "1.000000" }
    put("serviceordertimes", [
      { ...hours, date: "2024-02-29" },
      { ...hours, date: "2024-03-01" }
    ])
    yield* compared("aging", ["2024-02-29", "2024-03-01"])
    const aging = models.filter(
      ({ name }) => name.endsWith("_aging") || /^(receivables_open|shipments_not_invoiced|vendor_bills)$/.test(name)
    )
    const [own] = books()
    const boundaries = [
      ["2024-01-29", "2024-02-21", "2024-02-22", "2024-02-29", "2024-03-01", "2024-03-23", "2024-03-24", "2024-03-30"],
      ["2024-03-31", "2024-04-22", "2024-04-23", "2024-04-29", "2024-04-30", "2024-05-22", "2024-05-23", "2024-05-29"],
      ["2024-05-30"]
    ]
    for (const day of boundaries.flat()) {
      assert.deepStrictEqual((yield* check(aging, "erp_models", [own!], day)).wrong, [], day)
    }
    const unset = yield* sql<{ same: boolean }>`select erp_models.as_of() = current_date as same`
    assert.deepStrictEqual(unset, [{ same: true }])
  })
})
