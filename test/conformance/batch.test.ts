/** Batches: one result per item, independent of the others. */
import { assert, describe, it } from "vitest"
import {
  challenge,
  errorFault,
  fresh,
  idOf,
  ids,
  isDecimal,
  isRow,
  keptPromises,
  newCompany,
  refused,
  row,
  rows,
  succeeded,
  useServer,
  type Answer,
  type Row
} from "./harness.ts"
import { resource, RESOURCES, shownRecord } from "./resources.ts"
import { makeDraft, makeOrder, makePosted, orderLines, postInvoice } from "./world.ts"

useServer()

/** Asserts a 207 with a result per item, and returns the results in the order of their index. */
function results(answer: Answer, count: number): Row[] {
  const body = succeeded(answer, 207)
  assert.deepEqual(Object.keys(body), ["results"])
  const list = rows(body["results"], "results")
  assert.deepEqual(
    list.map((each) => each["index"]),
    Array.from({ length: count }, (_, i) => i)
  )
  for (const each of list) {
    const status = each["status"]
    assert.isTrue(Number.isInteger(status), "status is the HTTP status as an integer (G-01)")
    if ((status as number) < 300) {
      assert.strictEqual(status, 201)
      assert.isTrue(isRow(each["record"]))
      assert.notProperty(each, "error")
    } else {
      assert.notProperty(each, "record")
      assert.isUndefined(errorFault(each["error"]), JSON.stringify(each))
    }
  }
  return list
}

function outcome(result: Row): string {
  return result["status"] === 201 ? "201" : `${String(result["status"])} ${String(row(result["error"])["code"])}`
}

describe("a batch of a resource", () => {
  for (const each of RESOURCES) {
    const { path, body } = each
    it(`[EP-07][G-01][G-03][EP-11] is 207 with the records: POST /${path}/batch`, async () => {
      const c = await newCompany()
      const items = [
        { ...(await body(c)), externalid: "one" },
        { ...(await body(c)), externalid: "two" }
      ]
      const list = results(await c.post(`/${path}/batch`, items), 2)
      assert.deepEqual(list.map(outcome), ["201", "201"])
      for (const [i, result] of list.entries()) {
        const record = row(result["record"])
        assert.strictEqual(record["externalid"], items[i]?.externalid)
        const shown = await shownRecord(c, each, idOf(record))
        for (const [name, value] of Object.entries(shown)) assert.deepEqual(record[name], value, name)
      }
    })

    it(`[G-02][G-01][ERR-02] writes the other items if one is invalid: POST /${path}/batch`, async () => {
      const c = await newCompany()
      const items = [await body(c), { bogus: 1 }, { ...(await body(c)), externalid: 5 }, await body(c), null, "x", []]
      const list = results(await c.post(`/${path}/batch`, items), 7)
      assert.deepEqual(list.map(outcome), [
        "201",
        "400 unknown_parameter",
        "400 invalid_type",
        "201",
        "400 invalid_request",
        "400 invalid_request",
        "400 invalid_request"
      ])
      assert.strictEqual(row(list[1]?.["error"])["field"], "bogus")
      assert.strictEqual(row(list[2]?.["error"])["field"], "externalid")
    })

    it(`[G-04] without items is 207 without results: POST /${path}/batch`, async () => {
      const c = await newCompany()
      results(await c.post(`/${path}/batch`, []), 0)
    })

    it(`[D-07] that is no array is 400 invalid_request: POST /${path}/batch`, async () => {
      const c = await newCompany()
      for (const value of [{}, "x", 1, null, true, { results: [] }])
        refused(await c.post(`/${path}/batch`, value), "invalid_request")
    })

    it(`[LIM-01][CODE-07] of 251 is rejected as a whole: POST /${path}/batch`, async () => {
      const c = await newCompany()
      const one = await body(c)
      const before = await c.list(`/${path}?cancel=any`)
      refused(
        await c.post(
          `/${path}/batch`,
          Array.from({ length: 251 }, () => one)
        ),
        "batch_too_large"
      )
      refused(
        await c.post(
          `/${path}/batch`,
          Array.from({ length: 251 }, () => ({}))
        ),
        "batch_too_large"
      )
      if (path !== "invoiceterms") assert.deepEqual(await c.list(`/${path}?cancel=any`), before)
    })
  }
})

it("[LIM-01][EP-07] a batch of 250 items is accepted, in order", async () => {
  const c = await newCompany()
  const items = Array.from({ length: 250 }, (_, i) => ({ name: `n${i}` }))
  const list = results(await c.post("/salesmen/batch", items), 250)
  const made = list.map((result) => row(result["record"]))
  assert.deepEqual(
    made.map((record) => record["name"]),
    items.map((item) => item.name)
  )
  const sorted = [...ids(made)].sort((x, y) => x - y)
  assert.deepEqual(ids(made), sorted)
  assert.deepEqual(ids(await c.list("/salesmen?limit=250")), sorted)
})

it("[G-02] a batch with an error in every item is still 207", async () => {
  const c = await newCompany()
  const list = results(await c.post("/salesmen/batch", [{}, { name: 5 }, { name: "x".repeat(51) }]), 3)
  assert.deepEqual(list.map(outcome), ["400 invalid_request", "400 invalid_type", "400 invalid_request"])
  assert.isEmpty(await c.list("/salesmen"))
})

it("[G-06][EP-11][SALESMEN-04] a batch with the same key in two items rejects the second as 409 duplicate", async () => {
  const c = await newCompany()
  const list = results(await c.post("/salesmen/batch", [{ name: "Ann" }, { name: "ann" }, { name: "Bob" }]), 3)
  assert.deepEqual(list.map(outcome), ["201", "409 duplicate", "201"])
  assert.lengthOf(await c.list("/salesmen"), 2)
})

it("[G-02][WRITE-01][WRITE-02] a batch of shipments counts the shipments before each item", async () => {
  const c = await newCompany()
  const order = await makeOrder(c)
  const [orderlineid] = order.lineIds
  const ship = (quantity: string) => ({ orderid: order.id, lines: [{ orderlineid, quantity }] })
  const list = results(await c.post("/shipments/batch", [ship("6"), ship("6"), ship("4"), ship("0.000001")]), 4)
  assert.deepEqual(list.map(outcome), ["201", "422 shipqty_exceeds_remaining", "201", "422 shipqty_exceeds_remaining"])
  isDecimal((await orderLines(c, order.id))[0]?.["qtyship"], "10", 6)
})

it("[G-02][WRITE-10][I-16] a batch of payments counts the payments before each item", async () => {
  const c = await newCompany()
  const invoiceid = idOf(await makePosted(c))
  const pay = (amount: string) => ({ invoiceid, amount })
  const list = results(await c.post("/payments/batch", [pay("60"), pay("60"), pay("40"), pay("0.0001")]), 4)
  assert.deepEqual(list.map(outcome), ["201", "422 rule_violation", "201", "422 rule_violation"])
  isDecimal(row(list[2]?.["record"])["invoicepaid"], "100", 4)
})

it("[WRITE-15][RULE-09] a batch of deposits counts the deposits before each item", async () => {
  const c = await newCompany()
  const { id: orderid } = await makeOrder(c)
  const list = results(
    await c.post("/orderdeposits/batch", [
      { orderid, amount: "30" },
      { orderid, amount: "30" },
      { orderid, amount: "20" }
    ]),
    3
  )
  assert.deepEqual(list.map(outcome), ["201", "422 deposit_exceeds_order", "201"])
})

it("[WRITE-07][I-27][I-05] a batch of invoice lines numbers them consecutively", async () => {
  const c = await newCompany()
  const invoiceid = idOf(await makeDraft(c))
  const posted = idOf(await makeDraft(c))
  await postInvoice(c, posted)
  const line = (more: Row) => ({ invoiceid, description: "x", quantity: "1", price: "2", taxable: false, ...more })
  const list = results(
    await c.post("/invoicelines/batch", [
      line({}),
      line({ invoiceid: posted }),
      line({ itemid: 999_999_999 }),
      line({})
    ]),
    4
  )
  assert.deepEqual(list.map(outcome), ["201", "409 invoice_already_posted", "422 unknown_value", "201"])
  assert.deepEqual([row(list[0]?.["record"])["linenumber"], row(list[3]?.["record"])["linenumber"]], [2, 3])
  isDecimal(row(list[3]?.["record"])["invoicetotal"], "104", 4)
})

it("[SCOPE-24][EP-07] a batch without the scope is rejected as a whole", async () => {
  const c = await newCompany()
  const reader = await c.with("setup:read", "setup:cancel")
  const answer = await reader.post("/salesmen/batch", [{ name: "x" }])
  refused(answer, "insufficient_scope")
  assert.strictEqual(challenge(answer).params["scope"], "setup:write")
})

it("[SPECIAL-12][CODE-25][G-07][X-26] a batch at a file endpoint is 415 not_batchable", async () => {
  const c = await newCompany()
  const shipment = await resource("shipments").make(c)
  refused(await c.post(`/shipments/${idOf(shipment)}/pdf/batch`, []), "not_batchable")
  refused(await c.post(`/shipments/${idOf(shipment)}/boxlabels/batch`, []), "not_batchable")
  refused(
    await c.post("/salesmen/batch", [{ name: fresh() }, { path: `/shipments/${idOf(shipment)}/pdf` }]),
    "not_batchable"
  )
  refused(await c.post("/salesmen/batch", [{ url: `/shipments/${idOf(shipment)}/boxlabels` }]), "not_batchable")
  refused(await c.post("/salesmen/batch", [{ path: "/items/1/png" }]), "not_batchable")
  assert.isEmpty(await c.list("/salesmen"))
})

it("[RULE-05][G-01] a batch returns for an item the error of the single request", async () => {
  const c = await newCompany()
  const quote = await makeOrder(c, { status: "quote" })
  const item = { orderid: quote.id, lines: [{ orderlineid: quote.lineIds[0], quantity: "1" }] }
  const single = row(row((await c.post("/shipments", item)).json)["error"])
  const [result] = results(await c.post("/shipments/batch", [item]), 1)
  assert.deepEqual(row(result?.["error"]), single)
})

keptPromises()
