/**
 * All views over several seeds of demo data and over history: today's views, the as-of views at every past moment, and the
 * sums of the views among each other.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { layerCatalogue } from "../../support/demo.ts"
import { figures } from "./figures.ts"
import { compareMoments } from "./moments.ts"
import { today } from "./operating.ts"
import { momentsOf } from "./trading.ts"
import { suite } from "../../support/suite.ts"

const days = [today, "2026-02-28", "2026-03-01", "2026-01-31", "2024-02-29", "2031-01-01"]

/** The views add up month by month and with each other. */
const addUp = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const none = (title: string, query: string) =>
    Effect.map(sql.unsafe(query), (rows) => assert.deepStrictEqual(rows.slice(0, 3), [], title))
  for (const [view, key] of [
    ["receivables_rollforward", "company_id"],
    ["customer_rollforward", "company_id, customer_id"]
  ]) {
    yield* none(
      `${view}: a month`,
      `select * from erp_models.${view} where closing <> opening + invoiced - credited - paid - written_off + adjusted`
    )
    yield* none(
      `${view}: the month before`,
      `select * from (
         select *, lag(closing, 1, 0) over (partition by ${key} order by month nulls first) as before
           from erp_models.${view}) v where opening <> before`
    )
  }
  const last = (view: string, key: string) =>
    `select distinct on (${key}) ${key}, closing from erp_models.${view} order by ${key}, month desc nulls last`
  yield* none(
    "the last closing",
    `select * from (${last("receivables_rollforward", "company_id")}) r full join (
       select company_id, sum(open_amount) as open from erp_models.receivables_open group by 1) o using (company_id)
      where closing is distinct from coalesce(open, 0)`
  )
  yield* none(
    "the last closing of a customer",
    `select * from (${last("customer_rollforward", "company_id, customer_id")}) r join (
       select company_id, customer_id, balance from erp_models.customer_balances) b using (company_id, customer_id)
      where closing <> balance`
  )
  yield* none(
    "customers and company",
    `select company_id, month from (
       select company_id, month, invoiced, credited, paid, written_off, adjusted, return_credits
         from erp_models.receivables_rollforward
       union all
       select company_id, month, -invoiced, -credited, -paid, -written_off, -adjusted, -return_credits
         from erp_models.customer_rollforward) v
      group by 1, 2
     having (sum(invoiced), sum(credited), sum(paid), sum(written_off), sum(adjusted), sum(return_credits))
            <> (0, 0, 0, 0, 0, 0)`
  )
  yield* none(
    "dso and balance",
    `select * from erp_models.dso_by_month d join erp_models.receivables_rollforward r using (company_id, month)
      where month < date_trunc('month', current_date) and (d.closing <> r.closing or d.invoiced <> r.invoiced - r.credited)`
  )
  yield* none(
    "cash and close",
    `select * from erp_models.cash_by_account c join erp_models.daily_close_check d
         on (d.company_id, coalesce(d.day, 'infinity'), coalesce(d.location_id, -1)) =
            (c.company_id, coalesce(c.day, 'infinity'), coalesce(c.location_id, -1))
        and d.currency is not distinct from c.currency
      where c.close_difference is distinct from case c.kind when 'cash' then d.cash_difference
              when 'checks and cards' then d.checks_and_cards_difference end
         or c.closes <> d.closes`
  )
  yield* none(
    "cash and payments",
    `select * from (select company_id, sum(amount) as amount from erp_models.payments_by_day
       where method is distinct from 99 group by 1) p join (
       select company_id, sum(paid) as paid from erp_models.cash_by_account group by 1) c using (company_id)
      where amount <> paid`
  )
  yield* none(
    "bills and their ages",
    `select * from (select company_id, sum(billtotal) as billed from erp_models.vendor_bills group by 1) b join (
       select company_id, sum(total + unposted) as aged from erp_models.vendor_bills_aging group by 1) a
       using (company_id) join (
       select company_id, sum(billed + unposted) as spent from erp_models.vendor_spend_by_month group by 1) s
       using (company_id)
      where b.billed <> aged or b.billed <> spent`
  )
  yield* none(
    "the backlog and the open lines",
    `select * from (select company_id, sum(qty_remaining) as qty, sum(amount_remaining) as amount
       from erp_models.backlog group by 1) b full join (
       select company_id, sum(qty_remaining) as open_qty, sum(amount_remaining) as open_amount
         from erp_models.open_order_lines group by 1) o using (company_id)
      where (qty, amount) is distinct from (open_qty, open_amount)`
  )
  yield* none(
    "the margin and the revenue",
    `select * from (select company_id, sum(amount) as amount, sum(amount_with_cost + amount_without_cost) as parts,
         sum(cost) as cost, sum(amount_with_cost - margin) as profit from erp_models.margin_by_month group by 1) m join (
       select company_id, sum(amount) as revenue from erp_models.revenue_by_month group by 1) r using (company_id)
      where amount <> revenue or parts <> revenue or cost <> profit`
  )
  yield* none(
    "the costs of a job and its totals",
    `select company_id, job_id from erp_models.job_totals t join erp_models.job_costs c using (company_id, job_id)
      group by 1, 2, t.posted_cost, t.unposted_cost, t.retainage
     having (t.posted_cost, t.unposted_cost, t.retainage)
            <> (sum(c.posted_cost), sum(c.unposted_cost), sum(c.retainage))`
  )
  yield* none(
    "the lines and the months of orders",
    `select * from (select company_id, count(*) as lines, count(*) filter (where is_shipped_in_full) as in_full
       from erp_models.order_line_fulfilment group by 1) o full join (
       select company_id, sum(lines) as of_months, sum(lines_in_full) as in_full_of_months
         from erp_models.fulfilment_by_month group by 1) f using (company_id)
      where (lines, in_full) is distinct from (of_months, in_full_of_months)`
  )
})

suite("the views", layerCatalogue, (test) => {
  for (const seed of [1, 2, 3]) {
    test(`contain the figures of seed ${seed} at every moment of its history`, function* () {
      const moments = yield* momentsOf(seed)
      const rows = yield* compareMoments(moments, days, ({ time, position }) => [time, `position ${position}`])
      for (const name of Object.keys(figures)) {
        assert.isAbove(Math.max(...rows.map((found) => found[name]!)), 0, name)
      }
      yield* addUp
    })
  }
})
