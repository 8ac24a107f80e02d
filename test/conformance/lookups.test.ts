/** Lookup tables and references to them: keys, shared tables, codes, and cancelling while in use. */
import { assert, describe } from "vitest"
import {
  fresh,
  idOf,
  ids,
  it,
  keptPromises,
  newCompany,
  page,
  query,
  refused,
  refusedEntries,
  row,
  succeeded,
  text,
  useServer
} from "./harness.ts"
import {
  makeCarrierService,
  makeCustomer,
  makeItem,
  makeLocation,
  makeOrder,
  makeReturn,
  makeSalesman,
  makeShipment,
  makeTerm,
  putOne
} from "./world.ts"
import { assertEach } from "../support/assertions.ts"

useServer()

const KEYED = [
  { path: "salesmen", key: "name", fact: "SALESMEN-04", prefix: "Ann" },
  { path: "invoiceterms", key: "verbal", fact: "INVOICETERMS-04", prefix: "Net" },
  { path: "emailtemplates", key: "action", fact: "EMAILTEMPLATES-04", prefix: "Act" },
  { path: "taskstatuses", key: "name", fact: "TASKSTATUSES-05", prefix: "Sta" },
  { path: "areas", key: "name", fact: "AREAS-04", prefix: "Are" }
] as const

for (const { path, key, fact, prefix } of KEYED) {
  describe(`the key ${key} of ${path}`, () => {
    it(`[${fact}][EP-06][CODE-11][F-05][F-06][F-07] rejects a used value as 409 duplicate, in any case, also of a cancelled row`, async (c) => {
      const [value, dead, mine] = [fresh(prefix), fresh(prefix), fresh(prefix)]
      const record = await c.create(path, { [key]: value })
      for (const again of [value, value.toUpperCase(), value.toLowerCase()])
        await c.refuses(`/${path}`, { [key]: again }, "duplicate", key)
      assert.deepEqual(ids(await c.list(`/${path}${query({ [key]: value })}`)), [idOf(record)])
      const stored = await putOne(c, path, { [key]: dead, cancel: true })
      const error = await c.refuses(`/${path}`, { [key]: dead }, "duplicate", key)
      assert.include(String(error["message"]), String(stored))
      const id = idOf(await c.create(path, { [key]: mine }))
      refused(await c.patch(`/${path}/${id}`, { [key]: value.toUpperCase(), externalid: "x" }), "duplicate", key)
      assert.deepInclude(await c.read(path, id), { [key]: mine, externalid: null })
    })

    it(`[${fact}][D-11][F-13] may be renamed, also to another case of its own value, not to null, and leaves its value free`, async (c) => {
      const value = fresh(prefix)
      const id = idOf(await c.create(path, { [key]: value }))
      for (const name of [value.toUpperCase(), value.toUpperCase(), fresh(prefix)])
        assert.strictEqual(succeeded(await c.patch(`/${path}/${id}`, { [key]: name }))[key], name)
      refusedEntries(await c.patch(`/${path}/${id}`, { [key]: null }), `${key}:required`)
      await c.create(path, { [key]: value })
    })

    it(`[${fact}][CODE-11] is created once by ten concurrent requests`, async (c) => {
      const value = fresh(prefix)
      const answers = await Promise.all(Array.from({ length: 10 }, () => c.post(`/${path}`, { [key]: value })))
      const statuses = answers.map((answer) => answer.status).sort((x, y) => x - y)
      assert.deepEqual(statuses, [201, ...Array.from({ length: 9 }, () => 409)])
    })
  })
}

describe("invoiceterms, shared by all companies", () => {
  it("[INVOICETERMS-05][INVOICETERMS-15][C-11][X-24] are read, listed, changed and cancelled from another company", async (a) => {
    const b = await newCompany()
    const verbal = fresh("shared")
    const term = await a.create("invoiceterms", { verbal, netduedays: 30 })
    assert.deepEqual(await b.read("invoiceterms", idOf(term)), term)
    assert.deepEqual(await b.list(`/invoiceterms?verbal=${verbal}`), [term])
    const after = succeeded(await b.patch(`/invoiceterms/${idOf(term)}`, { netduedays: 45 }))
    assert.deepEqual(await a.read("invoiceterms", idOf(term)), after)
    assert.strictEqual(after["netduedays"], 45)
    succeeded(await b.del(`/invoiceterms/${idOf(term)}`))
    assert.isEmpty(await a.list(`/invoiceterms?verbal=${verbal}`))
  })

  it("[INVOICETERMS-05][C-11] have a key that is unique in the whole install", async (a, b) => {
    const verbal = fresh("Shared")
    await makeTerm(a, { verbal })
    refused(await b.post("/invoiceterms", { verbal: verbal.toLowerCase() }), "duplicate", "verbal")
  })

  it("[INVOICETERMS-03][C-11][EP-16] report a change from one company to the polls of another", async (a) => {
    const b = await newCompany()
    const through = text(page(await b.get("/invoiceterms?limit=1")).syncedThrough)
    const term = await makeTerm(a)
    assert.include(ids(await b.list(`/invoiceterms${query({ modifiedsince: through })}`)), idOf(term))
  })

  it("[C-11] exist in a new install, and a new company sees them", async (a, b) => {
    await makeTerm(a)
    const ofA = await a.list("/invoiceterms?limit=250")
    const ofB = await b.list("/invoiceterms?limit=250")
    assert.isNotEmpty(ofA)
    assert.deepEqual(ids(ofB).slice(0, ofA.length), ids(ofA))
  })
})

describe("cancelling a record in use", () => {
  it("[I-25][CODE-16][STATE-12] is rejected for terms of a customer", async (c) => {
    const term = idOf(await makeTerm(c))
    const customer = idOf(await makeCustomer(c, { invoicetermid: term }))
    refused(await c.del(`/invoiceterms/${term}`), "cannot_cancel")
    refused(await c.patch(`/invoiceterms/${term}`, { cancel: true }), "cannot_cancel")
    assert.strictEqual((await c.read("invoiceterms", term))["cancel"], false)
    succeeded(await c.del(`/customers/${customer}`))
    assert.strictEqual(succeeded(await c.del(`/invoiceterms/${term}`))["cancel"], true)
  })

  it("[I-25][CODE-16][C-11] is rejected for terms of another company's customer", async (a, b) => {
    const term = idOf(await makeTerm(a))
    await makeCustomer(b, { invoicetermid: term })
    refused(await a.del(`/invoiceterms/${term}`), "cannot_cancel")
  })

  it("[I-25][CODE-16] is rejected for a salesman of a customer", async (c) => {
    const salesman = idOf(await makeSalesman(c))
    const customer = idOf(await makeCustomer(c, { salesmanid: salesman }))
    refused(await c.del(`/salesmen/${salesman}`), "cannot_cancel")
    assert.strictEqual((await c.read("salesmen", salesman))["cancel"], false)
    succeeded(await c.patch(`/customers/${customer}`, { salesmanid: null }))
    succeeded(await c.del(`/salesmen/${salesman}`))
  })
})

describe("the other lookups", () => {
  it("[SALESMEN-14][SALESMEN-06][SALESMEN-07] include salespeople and service reps in one table", async (c) => {
    await makeSalesman(c, { salesman: true, servicerep: false })
    await makeSalesman(c, { salesman: false, servicerep: true })
    assertEach(await c.list("/salesmen"), (record) => [record["salesman"], record["servicerep"]], [
      [true, false],
      [false, true]
    ])
  })

  it("[CODE-11][RES-05][RES-13][LIM-11] have a code or number that is unique in its company", async (c) => {
    const customerid = idOf(await makeCustomer(c))
    const lines = [{ description: "x", quantity: "1", price: "1" }]
    for (const [path, body] of [
      ["customers", { customercode: "ACME", name: "x" }],
      ["vendors", { vendorcode: "ACME", name: "x" }],
      ["invoices", { invoicenumber: "INV-1", customerid, lines }]
    ] as const) {
      await c.create(path, body)
      await c.refuses(`/${path}`, body, "duplicate")
    }
  })

  it("[CODE-01][LIM-11] reject only the next customer, item or vendor above the licensed limit", async (c) => {
    await c.settings({ recordLimits: { customers: 1, items: 1, vendors: 1 } })
    for (const [path, body] of [
      ["customers", () => ({ customercode: fresh("c"), name: "x" })],
      ["items", () => ({ sku: fresh("s"), description: "x" })],
      ["vendors", () => ({ vendorcode: fresh("v"), name: "x" })]
    ] as const) {
      await c.create(path, body())
      const answer = await c.post(`/${path}`, body())
      refused(answer, "record_limit_reached")
      assert.isUndefined(answer.headers["www-authenticate"])
    }
    await makeSalesman(c)
    await c.settings({ recordLimits: { customers: 2 } })
    await makeCustomer(c)
    assert.lengthOf(await c.list("/customers"), 2)
  })
})

describe("a reference by a code of several records", () => {
  it("[CODE-27][F-08] matches active records only", async (c) => {
    const [dead, live] = await c.put("carriers", [
      { name: "Twin", cancel: true },
      { name: "Twin", cancel: false },
      { name: "Gone", cancel: true }
    ])
    assert.strictEqual((await c.create("carrierservices", { carrier: "Twin" }))["carrierid"], idOf(row(live)))
    refused(await c.post("/carrierservices", { carrier: "Gone" }), "unknown_value", "carrier")
    assert.strictEqual(
      (await c.create("carrierservices", { carrierid: idOf(row(dead)) }))["carrierid"],
      idOf(row(dead))
    )
  })

  it("[F-08] resolves a cancelled invoice by id, not by number", async (c) => {
    const invoicenumber = fresh("inv")
    const [invoice] = await c.put("invoices", [{ invoicenumber, cancel: true }])
    refused(await c.post("/rmareturns", { invoice: invoicenumber }), "unknown_value", "invoice")
    assert.strictEqual((await makeReturn(c, { invoiceid: idOf(row(invoice)) }))["invoice"], invoicenumber)
  })
})

describe("a reference to a shared or keyed record", () => {
  it("[F-08][F-10][RES-05] resolves a customer's salesman in any case, and a cancelled one by id only", async (c) => {
    const salesman = await makeSalesman(c, { name: "Ann Lee" })
    const customer = await makeCustomer(c, { salesman: "ANN lee" })
    assert.strictEqual(customer["salesmanid"], idOf(salesman))
    assert.strictEqual(customer["salesman"], "Ann Lee")
    const gone = await makeSalesman(c, { name: "Bob" })
    succeeded(await c.del(`/salesmen/${idOf(gone)}`))
    await c.refuses("/customers", { customercode: fresh("c"), name: "x", salesman: "Bob" }, "unknown_value", "salesman")
    assert.strictEqual((await makeCustomer(c, { salesmanid: idOf(gone) }))["salesmanid"], idOf(gone))
  })

  it("[C-11][INVOICETERMS-05] resolves a customer's terms from another company", async (a, b) => {
    const term = await makeTerm(a)
    assert.strictEqual((await makeCustomer(b, { invoiceterm: text(term["verbal"]) }))["invoicetermid"], idOf(term))
  })

  it("[RULE-04][RES-06][F-09] rejects an order's ship-to of another customer", async (c) => {
    const one = await makeCustomer(c)
    const two = await makeCustomer(c)
    const shipto = await c.create("shiptos", { customerid: idOf(one), name: "Dock" })
    const lines = [{ itemid: idOf(await makeItem(c)), qtyorder: "1", priceach: "1" }]
    refused(await c.post("/orders", { customerid: idOf(two), shiptoid: idOf(shipto), lines }), "shipto_mismatch")
    const order = await makeOrder(c, { customer: one["customercode"], customerid: idOf(one), shiptoid: idOf(shipto) })
    assert.strictEqual(order.order["shiptoid"], idOf(shipto))
  })
})

it("an id without a code (FIELD-04) [FIELD-04][SHIPMENTS-04][ORDERDEPOSITS-04][RMARETURNS-04] of an order has no code half", async (c) => {
  const order = await makeOrder(c)
  const lines = [{ orderlineid: order.lineIds[0], quantity: "1" }]
  refused(await c.post("/shipments", { orderid: order.id, order: "x", lines }), "unknown_parameter", "order")
  await c.refuses("/orderdeposits", { orderid: order.id, order: "x", amount: "1" }, "unknown_parameter", "order")
  refused(await c.post("/rmareturns", { rma_arorder: "x" }), "unknown_parameter", "rma_arorder")
})

describe("a reference in a write shape", () => {
  it("[I-11][SHIPMENTS-19][CARRIERSERVICES-22][X-29][WRITE-05][CODE-26] changes a shipment's carrier service by id only", async (c) => {
    const other = await newCompany()
    const service = await makeCarrierService(c, { code: "GND" })
    const shipment = await makeShipment(c, await makeOrder(c))
    const path = `/shipments/${idOf(shipment)}`
    const after = succeeded(await c.patch(path, { carrierserviceid: idOf(service) }))
    assert.strictEqual(after["carrierserviceid"], idOf(service))
    assert.strictEqual(after["carrierservice"], "GND")
    refused(await c.patch(path, { carrierservice: "GND" }), "unknown_parameter", "carrierservice")
    refused(await c.patch(path, { carrierserviceid: 999_999_999 }), "unknown_value", "carrierserviceid")
    refused(
      await c.patch(path, { carrierserviceid: idOf(await makeCarrierService(other)) }),
      "unknown_value",
      "carrierserviceid"
    )
    refused(await c.patch(path, { carrierserviceid: "1" }), "invalid_type", "carrierserviceid")
    assert.isNull(succeeded(await c.patch(path, { carrierserviceid: null }))["carrierservice"])
  })

  it("[SHIPMENTS-07][SHIPMENTS-18][X-18][I-08][F-09] has the order's location for a shipment, by id and code", async (c) => {
    const location = await makeLocation(c)
    const order = await makeOrder(c, { inventorylocation: text(location["locationcode"]) })
    assert.strictEqual(order.order["inventorylocationid"], idOf(location))
    const shipment = await makeShipment(c, order)
    assert.strictEqual(shipment["locationid"], idOf(location))
    assert.strictEqual(shipment["location"], location["locationcode"])
  })
})

keptPromises()
