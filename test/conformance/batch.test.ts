/** Batches: one result per item, independent of the others. */
import { assert, describe } from "vitest"
import {
  errorFault,
  fresh,
  idOf,
  ids,
  isRow,
  it,
  keptPromises,
  refused,
  row,
  rows,
  succeeded,
  useServer,
  valuesOf,
  type Answer,
  type Row
} from "./harness.ts"
import { resource, RESOURCES, shownRecord } from "./resources.ts"
import { makeOrder } from "./world.ts"

useServer()

/** Asserts a 207 with a result per item, and returns the results in the order of their index. */
function results(answer: Answer, count: number): Row[] {
  const body = succeeded(answer, 207)
  assert.deepEqual(Object.keys(body), ["results"])
  const list = rows(body["results"], "results")
  assert.deepEqual(
    valuesOf(list, "index"),
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
    it(`[EP-07][G-01][G-03][EP-11] is 207 with the records: POST /${path}/batch`, async (c) => {
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

    it(`[G-02][G-01][ERR-02] writes the other items if one is invalid: POST /${path}/batch`, async (c) => {
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

    it(`[G-04][D-07][LIM-01][CODE-07] has an array of at most 250 items, or none: POST /${path}/batch`, async (c) => {
      const one = await body(c)
      const before = await c.list(`/${path}?cancel=any`)
      results(await c.post(`/${path}/batch`, []), 0)
      for (const value of [{}, "x", 1, null, true, { results: [] }])
        await c.refuses(`/${path}/batch`, value, "invalid_request")
      for (const item of [one, {}]) await c.refuses(`/${path}/batch`, Array<Row>(251).fill(item), "batch_too_large")
      if (path !== "invoiceterms") assert.deepEqual(await c.list(`/${path}?cancel=any`), before)
    })
  }
})

it("[LIM-01][EP-07] a batch of 250 items is accepted, in order", async (c) => {
  const items = Array.from({ length: 250 }, (_, i) => ({ name: `n${i}` }))
  const list = results(await c.post("/salesmen/batch", items), 250)
  const made = list.map((result) => row(result["record"]))
  assert.deepEqual(
    valuesOf(made, "name"),
    items.map((item) => item.name)
  )
  const sorted = [...ids(made)].sort((x, y) => x - y)
  assert.deepEqual(ids(made), sorted)
  assert.deepEqual(ids(await c.list("/salesmen?limit=250")), sorted)
})

it("[G-06][G-02][EP-11][SALESMEN-04] a batch with the same key in two items rejects the second as 409 duplicate", async (c) => {
  const list = results(await c.post("/salesmen/batch", [{ name: "Ann" }, { name: "ann" }, { name: "Bob" }]), 3)
  assert.deepEqual(list.map(outcome), ["201", "409 duplicate", "201"])
  const again = results(await c.post("/salesmen/batch", [{}, { name: "Bob" }, { name: 5 }]), 3)
  assert.deepEqual(again.map(outcome), ["400 invalid_request", "409 duplicate", "400 invalid_type"])
  assert.lengthOf(await c.list("/salesmen"), 2)
})

it("[SPECIAL-12][CODE-25][G-07][X-26] a batch at a file endpoint is 415 not_batchable", async (c) => {
  const shipment = await resource("shipments").make(c)
  refused(await c.post(`/shipments/${idOf(shipment)}/pdf/batch`, []), "not_batchable")
  refused(await c.post(`/shipments/${idOf(shipment)}/boxlabels/batch`, []), "not_batchable")
  await c.refuses("/salesmen/batch", [{ name: fresh() }, { path: `/shipments/${idOf(shipment)}/pdf` }], "not_batchable")
  refused(await c.post("/salesmen/batch", [{ url: `/shipments/${idOf(shipment)}/boxlabels` }]), "not_batchable")
  refused(await c.post("/salesmen/batch", [{ path: "/items/1/png" }]), "not_batchable")
  assert.isEmpty(await c.list("/salesmen"))
})

it("[RULE-05][G-01] a batch returns for an item the error of the single request", async (c) => {
  const quote = await makeOrder(c, { status: "quote" })
  const item = { orderid: quote.id, lines: [{ orderlineid: quote.lineIds[0], quantity: "1" }] }
  const single = row(row((await c.post("/shipments", item)).json)["error"])
  assert.deepEqual(row(results(await c.post("/shipments/batch", [item]), 1)[0]?.["error"]), single)
})

keptPromises()
