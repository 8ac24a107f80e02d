/** Deposits: up to the remaining total of the order, in open periods. */
import { assert, it } from "vitest"
import {
  idOf,
  isDecimal,
  keptPromises,
  newCompany,
  plusDays,
  refused,
  row,
  succeeded,
  today,
  useServer,
  type Company
} from "./harness.ts"
import { makeDeposit, makeOrder } from "./world.ts"

useServer()

const deposit = (c: Company, orderid: number, amount: unknown, more: Record<string, unknown> = {}) =>
  c.post("/orderdeposits", { orderid, amount, ...more })

it("[WRITE-15][ORDERDEPOSITS-29][I-06][I-20][ORDERDEPOSITS-10] a deposit stores the write names in its fields, and posts at once", async () => {
  const c = await newCompany()
  const { id: orderid } = await makeOrder(c)
  const record = await c.create("orderdeposits", {
    orderid,
    amount: "12.5",
    date: await today(),
    method: 3,
    reference: "R-1",
    externalid: "D-1"
  })
  assert.deepInclude(record, { orderid, payment_method: 3, checkid: "R-1", externalid: "D-1", cancel: false })
  isDecimal(record["amount"], "12.5", 4)
  assert.isTrue(Number.isInteger(record["voucherid"]))
})

it("[ORDERDEPOSITS-32][I-06] a deposit has no field for the posting date", async () => {
  const c = await newCompany()
  const record = await makeDeposit(c, { date: await today() })
  for (const name of ["date", "datereceived", "depositdate"]) assert.notProperty(record, name)
})

it("[RULE-09][I-19][ORDERDEPOSITS-33][X-15][WRITE-16] a deposit never exceeds the remaining total of the order", async () => {
  const c = await newCompany()
  const { id: orderid } = await makeOrder(c)
  refused(await deposit(c, orderid, "50.0001"), "deposit_exceeds_order")
  succeeded(await deposit(c, orderid, "30"), 201)
  refused(await deposit(c, orderid, "20.0001"), "deposit_exceeds_order")
  succeeded(await deposit(c, orderid, "20"), 201)
  refused(await deposit(c, orderid, "0.0001"), "deposit_exceeds_order")
})

it("[I-19] a deposit can use the amount of a cancelled one", async () => {
  const c = await newCompany()
  const { id: orderid } = await makeOrder(c)
  const record = succeeded(await deposit(c, orderid, "50"), 201)
  const [shown] = await c.list("/orderdeposits")
  await c.put("orderdeposits", [{ ...row(shown), cancel: true }])
  assert.strictEqual(row(shown)["id"], record["id"])
  succeeded(await deposit(c, orderid, "50"), 201)
})

it("[I-19][GEN-03] a deposit succeeds as often as the order allows among twenty concurrent requests", async () => {
  const c = await newCompany()
  const { id: orderid } = await makeOrder(c)
  const answers = await Promise.all(Array.from({ length: 20 }, () => deposit(c, orderid, "5")))
  assert.strictEqual(answers.filter((answer) => answer.status === 201).length, 10)
  for (const answer of answers) if (answer.status !== 201) refused(answer, "deposit_exceeds_order")
})

it("[D-05][CODE-30] a deposit requires an amount above zero", async () => {
  const c = await newCompany()
  const { id } = await makeOrder(c)
  for (const amount of ["0", "-1", "-0.0001"]) refused(await deposit(c, id, amount), "rule_violation")
})

it("[I-19][CODE-30] a deposit is rejected on a cancelled order", async () => {
  const c = await newCompany()
  const { id } = await makeOrder(c)
  succeeded(await c.del(`/orders/${id}`))
  refused(await deposit(c, id, "1"), "rule_violation")
})

it("[RULE-03][WRITE-16] a deposit requires a date in an open period", async () => {
  const c = await newCompany()
  const { id } = await makeOrder(c)
  const day = await today()
  await c.settings({ closedThrough: plusDays(day, -10) })
  refused(await deposit(c, id, "1", { date: plusDays(day, -10) }), "period_closed")
  succeeded(await deposit(c, id, "1", { date: plusDays(day, -9) }), 201)
  await c.settings({ closedThrough: day })
  refused(await deposit(c, id, "1"), "period_closed")
})

it("[STATE-06][ORDERDEPOSITS-30][SPECIAL-03][J-03][RULE-07] a deposit alone makes an order invoiceable", async () => {
  const c = await newCompany()
  const bare = await makeOrder(c)
  refused(await c.post(`/orders/${bare.id}/invoice`, {}), "nothing_to_invoice")
  await makeDeposit(c, { orderid: bare.id })
  const invoice = succeeded(await c.post(`/orders/${bare.id}/invoice`, {}), 201)
  assert.isNull(invoice["voucherid"])
  const lines = await c.list(`/invoicelines?invoiceid=${idOf(invoice)}`)
  assert.lengthOf(lines, 1)
  assert.deepInclude(lines[0], { description: "Deposit", itemid: null })
})

keptPromises()
