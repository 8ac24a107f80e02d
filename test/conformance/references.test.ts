/** Reference pairs: by id, by code, by both; unknown, ambiguous, conflicting, and of other companies. */
import { assert, describe, it } from "vitest"
import { fresh, idOf, keptPromises, newCompany, refused, row, succeeded, text, useServer } from "./harness.ts"
import {
  makeCarrierService,
  makeCustomer,
  makeItem,
  makeLocation,
  makeOrder,
  makeReturn,
  makeSalesman,
  makeShipment,
  makeTerm
} from "./world.ts"

useServer()

describe("a reference by a code of several records", () => {
  it("[CODE-27] is ambiguous_value with two active records, and resolves by id", async () => {
    const c = await newCompany()
    const [first, second] = await c.put("carriers", [{ name: "Twin" }, { name: "Twin" }])
    refused(await c.post("/carrierservices", { carrier: "Twin" }), "ambiguous_value", "carrier")
    for (const twin of [first, second]) {
      const record = await c.create("carrierservices", { carrierid: idOf(row(twin)) })
      assert.strictEqual(record["carrier"], "Twin")
    }
  })

  it("[CODE-27][F-08] matches active records only", async () => {
    const c = await newCompany()
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

  it("[F-08] resolves a cancelled invoice by id, not by number", async () => {
    const c = await newCompany()
    const invoicenumber = fresh("inv")
    const [invoice] = await c.put("invoices", [{ invoicenumber, cancel: true }])
    refused(await c.post("/rmareturns", { invoice: invoicenumber }), "unknown_value", "invoice")
    assert.strictEqual((await makeReturn(c, { invoiceid: idOf(row(invoice)) }))["invoice"], invoicenumber)
  })
})

describe("a reference to a shared or keyed record", () => {
  it("[F-08][F-10][RES-05] resolves a customer's salesman in any case, and a cancelled one by id only", async () => {
    const c = await newCompany()
    const salesman = await makeSalesman(c, { name: "Ann Lee" })
    const customer = await makeCustomer(c, { salesman: "ANN lee" })
    assert.strictEqual(customer["salesmanid"], idOf(salesman))
    assert.strictEqual(customer["salesman"], "Ann Lee")
    const gone = await makeSalesman(c, { name: "Bob" })
    succeeded(await c.del(`/salesmen/${idOf(gone)}`))
    refused(
      await c.post("/customers", { customercode: fresh("c"), name: "x", salesman: "Bob" }),
      "unknown_value",
      "salesman"
    )
    assert.strictEqual((await makeCustomer(c, { salesmanid: idOf(gone) }))["salesmanid"], idOf(gone))
  })

  it("[C-11][INVOICETERMS-05] resolves a customer's terms from another company", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const term = await makeTerm(a)
    const customer = await makeCustomer(b, { invoiceterm: text(term["verbal"]) })
    assert.strictEqual(customer["invoicetermid"], idOf(term))
  })

  it("[RULE-04][RES-06][F-09] rejects an order's ship-to of another customer", async () => {
    const c = await newCompany()
    const one = await makeCustomer(c)
    const two = await makeCustomer(c)
    const shipto = await c.create("shiptos", { customerid: idOf(one), name: "Dock" })
    const lines = [{ itemid: idOf(await makeItem(c)), qtyorder: "1", priceach: "1" }]
    refused(await c.post("/orders", { customerid: idOf(two), shiptoid: idOf(shipto), lines }), "shipto_mismatch")
    const order = await makeOrder(c, { customer: one["customercode"], customerid: idOf(one), shiptoid: idOf(shipto) })
    assert.strictEqual(order.order["shiptoid"], idOf(shipto))
  })
})

describe("an id without a code (FIELD-04)", () => {
  it("[FIELD-04][SHIPMENTS-04][ORDERDEPOSITS-04][RMARETURNS-04] of an order has no code half", async () => {
    const c = await newCompany()
    const order = await makeOrder(c)
    const lines = [{ orderlineid: order.lineIds[0], quantity: "1" }]
    refused(await c.post("/shipments", { orderid: order.id, order: "x", lines }), "unknown_parameter", "order")
    refused(
      await c.post("/orderdeposits", { orderid: order.id, order: "x", amount: "1" }),
      "unknown_parameter",
      "order"
    )
    refused(await c.post("/rmareturns", { rma_arorder: "x" }), "unknown_parameter", "rma_arorder")
  })

  it("[RMARETURNS-04][I-26][CODE-26] in rma_arorderid must resolve", async () => {
    const c = await newCompany()
    const other = await newCompany()
    const order = await makeOrder(c)
    assert.strictEqual((await makeReturn(c, { rma_arorderid: order.id }))["rma_arorderid"], order.id)
    refused(await c.post("/rmareturns", { rma_arorderid: 999_999_999 }), "unknown_value", "rma_arorderid")
    refused(
      await c.post("/rmareturns", { rma_arorderid: (await makeOrder(other)).id }),
      "unknown_value",
      "rma_arorderid"
    )
  })

  it("[I-29][RMARETURNS-06][RMARETURNS-07][RMARETURNS-08] of a tax is stored as given", async () => {
    const c = await newCompany()
    const record = await makeReturn(c, { taxid: 12_345_678, taxid2: 0, taxid3: -5 })
    assert.deepInclude(record, { taxid: 12_345_678, taxid2: 0, taxid3: -5 })
  })
})

describe("a reference in a write shape", () => {
  it("[I-11][SHIPMENTS-19][CARRIERSERVICES-22][X-29][WRITE-05][CODE-26] changes a shipment's carrier service by id only", async () => {
    const c = await newCompany()
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

  it("[SHIPMENTS-07][SHIPMENTS-18][X-18][I-08][F-09] has the order's location for a shipment, by id and code", async () => {
    const c = await newCompany()
    const location = await makeLocation(c)
    const order = await makeOrder(c, { inventorylocation: text(location["locationcode"]) })
    assert.strictEqual(order.order["inventorylocationid"], idOf(location))
    const shipment = await makeShipment(c, order)
    assert.strictEqual(shipment["locationid"], idOf(location))
    assert.strictEqual(shipment["location"], location["locationcode"])
  })
})

keptPromises()
