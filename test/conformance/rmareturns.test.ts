/** Returns: written with the fields of the object, without a lastchangedate. */
import { assert, it } from "vitest"
import {
  idOf,
  ids,
  isDecimal,
  keptPromises,
  newCompany,
  refused,
  succeeded,
  TIMESTAMP,
  text,
  useServer
} from "./harness.ts"
import { makeDraft, makeOrder, makeReturn, orderLines } from "./world.ts"

useServer()

it("[EPR-06][RMARETURNS-01][EP-12][EP-14] a return is created, retrieved, updated and cancelled with the object's own fields", async () => {
  const c = await newCompany()
  const order = await makeOrder(c)
  const invoice = await makeDraft(c)
  const record = await c.create("rmareturns", {
    rma_arorderid: order.id,
    return_date: "2026-02-03",
    total_credit: "10.12345",
    restock_fee: "1",
    invoice: text(invoice["invoicenumber"]),
    externalid: "R-1"
  })
  assert.deepInclude(record, {
    rma_arorderid: order.id,
    return_date: "2026-02-03",
    invoiceid: idOf(invoice),
    cancel: false
  })
  isDecimal(record["total_credit"], "10.12345", 5)
  const after = succeeded(
    await c.patch(`/rmareturns/${idOf(record)}`, { restock_fee: "2.5", return_date: "2026-02-04" })
  )
  isDecimal(after["restock_fee"], "2.5", 5)
  isDecimal(after["total_credit"], "10.12345", 5)
  assert.strictEqual(after["return_date"], "2026-02-04")
  assert.deepEqual(await c.read("rmareturns", idOf(record)), after)
  assert.strictEqual(succeeded(await c.del(`/rmareturns/${idOf(record)}`))["cancel"], true)
})

it("[RMARETURNS-19][F-12] a return has an entrydate of now by default, as a timestamp", async () => {
  const c = await newCompany()
  assert.match(text((await makeReturn(c))["entrydate"]), TIMESTAMP)
})

it("[RMARETURNS-02] a return is found by its filter", async () => {
  const c = await newCompany()
  const invoiceid = idOf(await makeDraft(c))
  const mine = idOf(await makeReturn(c, { invoiceid }))
  await makeReturn(c)
  assert.deepEqual(ids(await c.list(`/rmareturns?invoiceid=${invoiceid}`)), [mine])
})

it("[I-26] a return moves no stock and no shipped quantity", async () => {
  const c = await newCompany()
  const order = await makeOrder(c)
  await makeReturn(c, { rma_arorderid: order.id })
  isDecimal((await orderLines(c, order.id))[0]?.["qtyship"], "0", 6)
})

it("[RMARETURNS-22][EP-03][B-01] a return supports If-Match without a lastchangedate", async () => {
  const c = await newCompany()
  const id = idOf(await makeReturn(c))
  const etag = String((await c.get(`/rmareturns/${id}`)).headers.etag)
  succeeded(await c.patch(`/rmareturns/${id}`, { restock_fee: "1" }, { "if-match": etag }))
  refused(await c.patch(`/rmareturns/${id}`, { restock_fee: "2" }, { "if-match": etag }), "stale_record")
})

it("[RMARETURNS-17][CODE-04] a return has an integer new_orderid", async () => {
  const c = await newCompany()
  const order = await makeOrder(c)
  assert.strictEqual((await makeReturn(c, { new_orderid: order.id }))["new_orderid"], order.id)
  refused(await c.post("/rmareturns", { new_orderid: String(order.id) }), "invalid_type", "new_orderid")
})

keptPromises()
