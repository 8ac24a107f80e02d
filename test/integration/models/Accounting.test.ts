/** The accounting views over small ledgers worked out by hand. Moments.long.test.ts has a history of changes. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import * as Period from "../../../src/close/Period.ts"
import * as ReadFigures from "../../../src/close/ReadFigures.ts"
import * as Snapshot from "../../../src/close/Snapshot.ts"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { booksOf, land, layerCatalogue } from "../../support/demo.ts"
import { check, resourcesOf } from "./compare.ts"
import { type Json, plain } from "./figures.ts"
import { today } from "./operating.ts"
import { suite } from "../../support/suite.ts"
import { sql } from "../../support/postgres.ts"

const models = readModels()
const resources = resourcesOf(models)

const small = 901
const lines = (records: ReadonlyArray<Json>) => records.map((record, index) => ({ id: index + 1, ...record }))

/** A company with a few records in the warehouse; resources that are not given are empty. */
const ledger = Effect.fnUntraced(function* (given: Readonly<Record<string, ReadonlyArray<Json>>>) {
  const books = booksOf(small, resources, (_company, resource) =>
    lines(given[resource] ?? []).map((record) => JSON.stringify(record))
  )
  yield* land(small, books.lines)
  return books
})

/** These expressions of the rows of a view of the small company on a day, as texts. */
const rowsOf = Effect.fnUntraced(function* (day: string, expressions: ReadonlyArray<string>, rest: string) {
  const texts = expressions.map((one) => `(${one})::text`).join(", ")
  const rows = yield* sql.withTransaction(
    Effect.andThen(
      sql`select set_config('tributary.as_of', ${day}, true)`,
      sql.unsafe<{ row: string }>(`select array_to_string(array[${texts}], ' ', '-') as row from erp_models.${rest}`)
    )
  )
  return rows.map(({ row }) => row)
})

const trimmed = (...columns: ReadonlyArray<string>) => columns.map((column) => `trim_scale(${column})`)

suite("a small ledger", layerCatalogue, (test) => {
  test("rolls forward, with credits, write-offs, missing payments and undated records", function* () {
    const invoice = { customerid: 5, customer: "FIVE", voucherid: 1, cancel: false }
    const books = yield* ledger({
      invoices: [
        { ...invoice, invoicedate: "2026-01-31", invoicetotal: "1000.0000", invoicepaid: "450.0000" },
        { ...invoice, invoicedate: "2026-02-01", invoicetotal: "500.0000", invoicepaid: "120.0000" },
        { ...invoice, invoicedate: "2026-02-20", invoicetotal: "-100.0000", invoicepaid: "0.0000", customerid: 6 },
        { ...invoice, invoicedate: null, invoicetotal: "7.0000", invoicepaid: "0.0000" },
        { ...invoice, invoicedate: "2026-02-20", invoicetotal: "9.0000", voucherid: null }
      ],
      payments: [
        { invoiceid: 1, datereceived: "2026-02-15", amount: "400.0000", paymeth: 2 },
        { invoiceid: 1, datereceived: "2026-04-01", amount: "50.0000", paymeth: 99 },
        { invoiceid: 2, datereceived: "2026-02-28", amount: "100.0000", paymeth: 1 },
        { invoiceid: 2, datereceived: "2026-02-28", amount: "60.0000", paymeth: 1, cancel: true },
        { invoiceid: 5, datereceived: "2026-02-28", amount: "9.0000", paymeth: 1 }
      ],
      rmareturns: [{ invoiceid: 1, return_date: "2026-03-02", total_credit: "30.00000" }]
    })
    for (const day of ["2026-01-30", "2026-02-20", "2026-04-30", today]) {
      assert.deepStrictEqual((yield* check(models, "erp_models", [books], day)).wrong, [], day)
    }
  })

  test("states the balances of a past day without later invoices and payments, as a close does", function* () {
    const invoice = { customerid: 5, customer: "FIVE", voucherid: 1, cancel: false }
    const payment = { paymeth: 2, customerid: 5 }
    const books = yield* ledger({
      customers: [{ id: 5, customercode: "FIVE", creditlimit: "900.0000" }],
      invoices: [
        { ...invoice, invoicedate: "2026-01-31", invoicetotal: "1000.0000", invoicepaid: "450.0000" },
        { ...invoice, invoicedate: "2026-02-01", invoicetotal: "500.0000", invoicepaid: "100.0000" },
        { ...invoice, invoicedate: "2026-02-20", invoicetotal: "-100.0000", invoicepaid: "0.0000" },
        { ...invoice, invoicedate: null, invoicetotal: "7.0000", invoicepaid: "0.0000" },
        { ...invoice, invoicedate: "2026-03-05", invoicetotal: "300.0000", invoicepaid: "120.0000" }
      ],
      payments: [
        { ...payment, invoiceid: 1, datereceived: "2026-02-15", amount: "400.0000" },
        { ...payment, invoiceid: 1, datereceived: "2026-04-01", amount: "50.0000" },
        { ...payment, invoiceid: 2, datereceived: "2026-02-28", amount: "100.0000" },
        // In advance of its invoice: a credit until then.
        { ...payment, invoiceid: 5, datereceived: "2026-02-25", amount: "120.0000" }
      ],
      apbills: [
        { vendorid: 1, vendor: "V1", voucherid: 1, billdate: "2026-02-28", billtotal: "10.0000" },
        { vendorid: 1, vendor: "V1", voucherid: 1, billdate: "2026-03-01", billtotal: "5.0000" }
      ],
      shipments: [
        { invoiceid: 1, shipdate: "2026-01-15" },
        { invoiceid: null, shipdate: "2026-03-01" }
      ]
    })
    const balances: ReadonlyArray<readonly [day: string, balance: string, bills: string, waiting: string]> = [
      ["2026-01-30", "7", "0", "1"],
      ["2026-01-31", "1007", "0", "0"],
      ["2026-02-15", "1107", "0", "0"],
      ["2026-02-25", "887", "0", "0"],
      ["2026-02-28", "787", "10", "0"],
      ["2026-03-05", "1087", "15", "1"],
      ["2026-04-01", "1037", "15", "1"],
      // Without a day every record counts.
      ["", "1037", "15", "1"]
    ]
    const sum = (day: string, column: string, view: string) =>
      rowsOf(day, trimmed(`coalesce(sum(${column}), 0)`), `${view} where company_id = ${small}`)
    for (const [day, balance, bills, waiting] of balances) {
      for (const [column, view] of [
        ["open_amount", "receivables_open"],
        ["total", "receivables_aging"],
        ["balance", "customer_balances"],
        ["invoiced - credited - paid - written_off + adjusted", "receivables_rollforward"],
        ["invoiced - credited - paid - written_off + adjusted", "customer_rollforward"]
      ] as const) {
        assert.deepStrictEqual(yield* sum(day, column, view), [balance], `${view} on ${day}`)
      }
      assert.deepStrictEqual(yield* sum(day, "total", "vendor_bills_aging"), [bills], day)
      assert.deepStrictEqual(yield* sum(day, "billtotal", "vendor_bills"), [bills], day)
      assert.deepStrictEqual(yield* sum(day, "1", "shipments_not_invoiced"), [waiting], day)
      if (day === "2026-02-25" || day === "2026-03-05") {
        assert.deepStrictEqual((yield* check(models, "erp_models", [books], day)).wrong, [], day)
      }
    }

    const period = Period.parse("2026-02", "UTC")!
    const closed = yield* Effect.scoped(
      Effect.flatMap(Snapshot.open(BigInt(small)), ({ client }) =>
        ReadFigures.ofModels({
          client,
          companyId: BigInt(small),
          period,
          datasets: datasetsDefault,
          resources: [],
          models,
          catalogue: serviceV2.resources
        })
      )
    )
    const figuresOf = (name: string) => closed.find(({ model }) => model === name)
    assert.strictEqual(plain(figuresOf("receivables_open")!.sums["open_amount"]!), "787")
    assert.strictEqual(plain(figuresOf("customer_balances")!.sums["balance"]!), "787")
    assert.strictEqual(plain(figuresOf("vendor_bills")!.sums["billtotal"]!), "10")
    // What has no day is refused on a past one, and is in no close.
    for (const { name } of models.filter(({ hasDay }) => !hasDay)) {
      const refused = yield* Effect.flip(rowsOf("2026-02-28", ["1"], name))
      assert.match(DatabaseError.from("read")(refused).message, new RegExp(`erp_models.${name} has no day`))
      assert.isUndefined(figuresOf(name))
    }
  })
})
