/** Shipments: their limits, their effect on the order, their changes and their cancellation. */
import { assert, describe } from "vitest"
import {
  idOf,
  ids,
  isDecimal,
  it,
  keptPromises,
  plusDays,
  refused,
  refusedEntries,
  row,
  succeeded,
  today,
  useServer,
  valuesOf,
  type Company
} from "./harness.ts"
import {
  makeCarrierService,
  makeCustomer,
  makeItem,
  makeLocation,
  makeOrder,
  makeShipment,
  orderLines,
  type Order
} from "./world.ts"

useServer()

const ship = (c: Company, order: Order, quantity: string, line = 0) =>
  c.post("/shipments", { orderid: order.id, lines: [{ orderlineid: order.lineIds[line], quantity }] })

async function shipped(c: Company, order: Order, line = 0): Promise<unknown> {
  return (await orderLines(c, order.id))[line]?.["qtyship"]
}

async function twoLines(c: Company): Promise<Order> {
  const itemid = idOf(await makeItem(c))
  return makeOrder(c, {
    lines: [
      { itemid, qtyorder: "10", priceach: "5" },
      { itemid, qtyorder: "4", priceach: "2.5" }
    ]
  })
}

describe("creating a shipment", () => {
  it("[WRITE-01][WRITE-04][SHIPMENTS-04][SHIPMENTS-06][I-08][RES-11] sets orderid, today's date and the order's location", async (c) => {
    const location = await makeLocation(c)
    const customerid = idOf(await makeCustomer(c))
    const shiptoid = idOf(await c.create("shiptos", { customerid, name: "Dock" }))
    const order = await makeOrder(c, { customerid, shiptoid, inventorylocationid: idOf(location) })
    const before = await today()
    const shipment = succeeded(await ship(c, order, "3"), 201)
    const after = await today()
    assert.deepInclude(shipment, {
      orderid: order.id,
      locationid: idOf(location),
      location: location["locationcode"],
      shiptoid,
      carrierserviceid: null,
      carrierservice: null,
      invoiceid: null,
      invoice: null,
      cancel: false,
      externalid: null
    })
    assert.include([before, after], shipment["shipdate"])
    isDecimal(await shipped(c, order), "3", 6)
  })

  it("[SHIPMENTS-15][RES-12][WRITE-01] creates the shipped lines as records of their own", async (c) => {
    const order = await twoLines(c)
    const shipment = await c.create("shipments", {
      orderid: order.id,
      lines: [
        { orderlineid: order.lineIds[0], quantity: "2.5" },
        { orderlineid: order.lineIds[1], quantity: "4" }
      ]
    })
    const lines = await c.list(`/shipmentlines?shipmentid=${idOf(shipment)}`)
    assert.deepEqual(valuesOf(lines, "orderlineid"), order.lineIds)
    isDecimal(lines[0]?.["quantity"], "2.5", 6)
    isDecimal(lines[1]?.["quantity"], "4", 6)
    assert.deepEqual(ids(await c.list(`/shipmentlines?orderlineid=${order.lineIds[1]}`)), [idOf(row(lines[1]))])
    isDecimal(await shipped(c, order, 0), "2.5", 6)
    isDecimal(await shipped(c, order, 1), "4", 6)
  })

  it("[WRITE-02][RULE-06][WRITE-03] is limited to the remaining quantity, which the message states", async (c) => {
    const order = await makeOrder(c)
    succeeded(await ship(c, order, "2.75"), 201)
    for (const quantity of ["7.250001", "8", "1000000000000"]) {
      const error = refused(await ship(c, order, quantity), "shipqty_exceeds_remaining")
      assert.match(String(error["message"]), /\b7\.25(0*)\b/)
    }
    isDecimal(await shipped(c, order), "2.75", 6)
  })

  it("[I-09][RULE-06] sums repeated lines", async (c) => {
    const order = await makeOrder(c)
    const post = (...quantities: string[]) => {
      const lines = quantities.map((quantity) => ({ orderlineid: order.lineIds[0], quantity }))
      return c.post("/shipments", { orderid: order.id, lines })
    }
    refused(await post("6", "4.000001"), "shipqty_exceeds_remaining")
    isDecimal(await shipped(c, order), "0", 6)
    succeeded(await post("6", "4"), 201)
    isDecimal(await shipped(c, order), "10", 6)
  })

  it("[WRITE-02][GEN-03] ships nothing of any line if it is rejected", async (c) => {
    const order = await twoLines(c)
    const lines = [
      { orderlineid: order.lineIds[0], quantity: "1" },
      { orderlineid: order.lineIds[1], quantity: "5" }
    ]
    refused(await c.post("/shipments", { orderid: order.id, lines }), "shipqty_exceeds_remaining")
    isDecimal(await shipped(c, order, 0), "0", 6)
    assert.isEmpty(await c.list("/shipments?cancel=any"))
    assert.isEmpty(await c.list("/shipmentlines"))
    assert.strictEqual((await c.read("orders", order.id))["status"], "open")
  })

  it("[RULE-05][RULE-10][STATE-02][STATE-03][STATE-04][STATE-05][WRITE-03][K-02][J-03] is rejected for a quote, like its invoice, until it is set to open", async (c) => {
    for (const ordertype of ["fulfillment", "service"]) {
      const quote = await makeOrder(c, { status: "quote", ordertype })
      refused(await ship(c, quote, "1"), "cannot_ship_quote")
      await c.refuses(`/orders/${quote.id}/invoice`, {}, "cannot_invoice_quote")
      assert.strictEqual((await c.read("orders", quote.id))["status"], "quote")
      isDecimal(await shipped(c, quote), "0", 6)
      assert.strictEqual(succeeded(await c.patch(`/orders/${quote.id}`, { status: "open" }))["status"], "open")
      succeeded(await ship(c, quote, "1"), 201)
    }
  })

  it("[I-10][I-19][CODE-30][WRITE-03] is rejected for a cancelled order, like a deposit", async (c) => {
    const order = await makeOrder(c)
    succeeded(await c.del(`/orders/${order.id}`))
    refused(await ship(c, order, "1"), "rule_violation")
    await c.refuses("/orderdeposits", { orderid: order.id, amount: "1" }, "rule_violation")
  })

  it("[I-09][CODE-26] rejects a line of another order as unknown_value, with its position", async (c) => {
    const order = await makeOrder(c)
    const other = await makeOrder(c)
    const good = { orderlineid: order.lineIds[0], quantity: "1" }
    for (const orderlineid of [999_999_999, other.lineIds[0]]) {
      const lines = [good, { orderlineid, quantity: "1" }]
      refused(await c.post("/shipments", { orderid: order.id, lines }), "unknown_value", "lines[1].orderlineid")
    }
    isDecimal(await shipped(c, order), "0", 6)
  })

  it("[WRITE-01][WRITE-03][EP-12][CODE-03][CODE-04][CODE-05][I-09] requires at least one line, each of its own shape", async (c) => {
    const order = await makeOrder(c)
    const [orderlineid] = order.lineIds
    const post = (...lines: object[]) => c.post("/shipments", { orderid: order.id, lines })
    refused(await post(), "invalid_request")
    refusedEntries(await post({ orderlineid }), "lines[0].quantity:required")
    refusedEntries(await post({ quantity: "1" }), "lines[0].orderlineid:required")
    refused(await post({ orderlineid: "1", quantity: "1" }), "invalid_type", "lines[0].orderlineid")
    refused(await post({ orderlineid, quantity: "1", qty: "1" }), "unknown_parameter", "lines[0].qty")
  })
})

describe("updating a shipment", () => {
  it("[WRITE-05][SHIPMENTS-06][F-01] changes shipdate, in both forms", async (c) => {
    const id = idOf(await makeShipment(c, await makeOrder(c)))
    const day = await today()
    assert.strictEqual(succeeded(await c.patch(`/shipments/${id}`, { shipdate: day }))["shipdate"], day)
    const other = plusDays(day, -1)
    const later = succeeded(await c.patch(`/shipments/${id}`, { shipdate: `${other}T22:00:00Z` }))
    assert.strictEqual(later["shipdate"], other)
    assert.strictEqual((await c.patch(`/shipments/${id}`, { shipdate: "soon" })).status, 400)
    assert.strictEqual((await c.read("shipments", id))["shipdate"], other)
  })

  it("[I-12][WRITE-05][CODE-30] rejects a shipdate in a closed period", async (c) => {
    const id = idOf(await makeShipment(c, await makeOrder(c)))
    const day = await today()
    await c.settings({ closedThrough: plusDays(day, -30) })
    const change = (days: number) => c.patch(`/shipments/${id}`, { shipdate: plusDays(day, days) })
    for (const days of [-30, -300]) refused(await change(days), "rule_violation")
    assert.strictEqual(succeeded(await change(-29))["shipdate"], plusDays(day, -29))
  })
})

describe("cancelling a shipment", () => {
  it("[I-13][WRITE-06][K-02][STATE-02][STATE-08][GEN-09] restores the shipped quantity and opens the order again, which was partial", async (c) => {
    const order = await makeOrder(c)
    assert.strictEqual(order.order["status"], "open")
    const first = succeeded(await ship(c, order, "4"), 201)
    assert.strictEqual((await c.read("orders", order.id))["status"], "partial")
    const second = succeeded(await ship(c, order, "6"), 201)
    assert.strictEqual(succeeded(await c.del(`/shipments/${idOf(first)}`))["cancel"], true)
    isDecimal(await shipped(c, order), "6", 6)
    assert.strictEqual((await c.read("orders", order.id))["status"], "partial")
    succeeded(await c.del(`/shipments/${idOf(second)}`))
    isDecimal(await shipped(c, order), "0", 6)
    assert.strictEqual((await c.read("orders", order.id))["status"], "open")
    succeeded(await ship(c, order, "10"), 201)
  })

  it("[D-13][I-13] restores the quantity once, also with concurrent cancellations", async (c) => {
    const order = await makeOrder(c)
    const first = succeeded(await ship(c, order, "4"), 201)
    succeeded(await ship(c, order, "5"), 201)
    const answers = await Promise.all(Array.from({ length: 5 }, () => c.del(`/shipments/${idOf(first)}`)))
    for (const answer of answers) succeeded(answer)
    succeeded(await c.del(`/shipments/${idOf(first)}`))
    isDecimal(await shipped(c, order), "5", 6)
  })

  it("[STATE-13][CODE-21][WRITE-06][SPECIAL-03][I-12][I-13][J-03] is rejected for an invoiced shipment, and so is a change", async (c) => {
    const order = await makeOrder(c)
    const id = idOf(await makeShipment(c, order, "2"))
    const service = idOf(await makeCarrierService(c))
    const invoice = succeeded(await c.post(`/orders/${order.id}/invoice`, {}), 201)
    const before = await c.read("shipments", id)
    assert.strictEqual(before["invoiceid"], invoice["id"])
    refused(await c.del(`/shipments/${id}`), "shipment_already_invoiced")
    for (const change of [{ carrierserviceid: service }, { shipdate: await today() }, { externalid: "x" }])
      refused(await c.patch(`/shipments/${id}`, change), "rule_violation")
    assert.deepEqual(await c.read("shipments", id), before)
    assert.deepEqual(ids(await c.list(`/shipments?invoiceid=${String(invoice["id"])}`)), [id])
    isDecimal(await shipped(c, order), "2", 6)
  })

  it("[I-13][CODE-16][WRITE-06] is rejected in a closed period", async (c) => {
    const order = await makeOrder(c)
    const id = idOf(await makeShipment(c, order, "2"))
    await c.settings({ closedThrough: await today() })
    refused(await c.del(`/shipments/${id}`), "cannot_cancel")
    assert.strictEqual((await c.read("shipments", id))["cancel"], false)
    isDecimal(await shipped(c, order), "2", 6)
  })
})

it("an order with shipments [RES-09][RES-16] includes its lines, numbered from 1, with ordered and shipped quantities", async (c) => {
  const order = await twoLines(c)
  assert.deepEqual(valuesOf(order.lines, "linenumber"), [1, 2])
  for (const line of order.lines) {
    isDecimal(line["qtyship"], "0", 6)
    assert.strictEqual((await c.read("orderlines", idOf(line)))["orderid"], order.id)
  }
  isDecimal(order.order["ordertotal"], "60", 4)
})

keptPromises()
