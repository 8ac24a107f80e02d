/**
 * The views about operations on the days around every boundary, and their sums among each other, with unusual records.
 * Moments.long.test.ts compares all their figures with the records of the server, now and as of past moments.
 */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { layerWarehouse } from "../../support/postgres.ts"
import { exact, figures, plain } from "./figures.ts"
import { compareMoments, makeDemo, type Moment } from "./moments.ts"
import { irregularities, isOfOperations, today, work } from "./operating.ts"

/** Compares the views of the current records on these days. */
const compared = (moment: Moment, days: ReadonlyArray<string>) =>
  compareMoments([moment], days, isOfOperations, () => [])

layer(layerWarehouse, { excludeTestServices: true, timeout: "120 seconds" })("the models of operations", (it) => {
  it.effect("move a row to the next bucket, month and age exactly on its day", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const demo = makeDemo(4)
      const order = demo.one("orders", ({ status }) => status === "open")
      const [shipment] = demo.put("shipments", [{ orderid: order["id"], shipdate: "2024-02-22", externalid: "AGED" }])
      demo.put("orderlines", [{ orderid: order["id"], qtyorder: "1.000000", priceach: "1.000000" }])
      demo.put("orders", [{ id: order["id"], orderdate: "2024-02-29" }])
      demo.put("serviceordertimes", [
        { orderid: order["id"], hours: "1.000000", date: "2024-02-29" },
        { orderid: order["id"], hours: "1.000000", date: "2024-03-01" }
      ])
      const days: ReadonlyArray<readonly [day: string, bucket: string | null]> = [
        ["2024-02-21", null],
        ["2024-02-22", "0-7"],
        ["2024-02-29", "0-7"],
        ["2024-03-01", "8-30"],
        ["2024-03-23", "8-30"],
        ["2024-03-24", "31-60"],
        ["2024-04-22", "31-60"],
        ["2024-04-23", "61-90"],
        ["2024-05-22", "61-90"],
        ["2024-05-23", "over 90"]
      ]
      const moment = yield* demo.synced("buckets")
      yield* compared(
        moment,
        days.map(([day]) => day)
      )
      const { company } = moment.companies[0]!
      for (const [day, bucket] of days) {
        const found = yield* sql.withTransaction(
          Effect.andThen(
            sql`select set_config('tributary.as_of', ${day}, true)`,
            sql`select s.age_bucket
                  from erp_models.shipments_not_invoiced s
                 where s.company_id = ${company} and s.shipment_id = ${shipment!["id"]}`
          )
        )
        assert.deepStrictEqual(found, bucket === null ? [] : [{ age_bucket: bucket }], day)
      }
      const months = yield* sql<{ month: string }>`
        select month::text as month from erp_models.hours_by_month where company_id = ${company} and month < '2025-01-01'
         order by 1`
      assert.deepStrictEqual(
        months.map(({ month }) => month),
        ["2024-02-01", "2024-03-01"]
      )
    })
  )

  it.effect(
    "agree with each other: the backlog with open lines, the margin with revenue, job costs with job totals",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const demo = makeDemo(5)
        work(demo, 1)
        irregularities(demo)
        const moment = yield* demo.synced("sums")
        const books = moment.companies[0]!
        const { company } = books
        yield* compared(moment, [today])
        const [backlog] = yield* sql<{ qty: string; amount: string }>`
        select sum(qty_remaining)::text as qty, sum(amount_remaining)::text as amount
          from erp_models.backlog where company_id = ${company}`
        const open = figures["open_order_lines"]!(books, today)
        const total = (rows: typeof open, name: string) => rows.reduce((sum, row) => sum + exact(row[name]), 0n)
        assert.strictEqual(exact(plain(backlog!.qty)), total(open, "qty_remaining"))
        assert.strictEqual(exact(plain(backlog!.amount)), total(open, "amount_remaining"))
        assert.isTrue(total(open, "qty_remaining") > 0n)

        const [margin] = yield* sql<{ amount: string; parts: string; cost: string; profit: string }>`
        select sum(amount)::text as amount, sum(amount_with_cost + amount_without_cost)::text as parts,
               sum(cost)::text as cost, sum(amount_with_cost - margin)::text as profit
          from erp_models.margin_by_month where company_id = ${company}`
        const revenue = total(figures["revenue_by_month"]!(books, today), "amount")
        assert.strictEqual(exact(plain(margin!.amount)), revenue)
        assert.strictEqual(exact(plain(margin!.parts)), revenue)
        assert.strictEqual(margin!.cost, margin!.profit)
        assert.notStrictEqual(exact(plain(margin!.cost)), 0n)

        const costs = yield* sql<{ job_id: bigint; same: boolean }>`
        select t.job_id, t.posted_cost = sum(c.posted_cost) and t.unposted_cost = sum(c.unposted_cost)
                         and t.retainage = sum(c.retainage) as same
          from erp_models.job_totals t join erp_models.job_costs c using (company_id, job_id)
         where company_id = ${company} group by t.job_id, t.posted_cost, t.unposted_cost, t.retainage`
        assert.isAbove(costs.length, 1)
        assert.isTrue(costs.every(({ same: isSame }) => isSame))

        const lines = yield* sql<{ lines: bigint; full: bigint }>`
        select count(*) as lines, count(*) filter (where is_shipped_in_full) as full
          from erp_models.order_line_fulfilment where company_id = ${company}`
        const months = yield* sql<{ lines: bigint; full: bigint }>`
        select sum(lines)::bigint as lines, sum(lines_in_full)::bigint as full
          from erp_models.fulfilment_by_month where company_id = ${company}`
        assert.deepStrictEqual(lines, months)
      })
  )
})
