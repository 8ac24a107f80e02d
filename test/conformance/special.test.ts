/** The special endpoints of the eight resources. */
import { assert, describe, it } from "vitest"
import {
  challenge,
  fresh,
  idOf,
  isDecimal,
  keptPromises,
  newCompany,
  page,
  plusDays,
  refused,
  row,
  succeeded,
  today,
  useServer
} from "./harness.ts"
import {
  makeCustomer,
  makeDraft,
  makeItem,
  makeOrder,
  makePayment,
  makePosted,
  makeShipment,
  orderLines
} from "./world.ts"

useServer()

describe("a shipment", () => {
  it("[SPECIAL-01][J-01][SCOPE-02][SHIPMENTS-21][X-09] lists its packages, and an absent one is unknown_value", async () => {
    const c = await newCompany()
    const reader = await c.with("shipments:read")
    const id = idOf(await makeShipment(c, await makeOrder(c)))
    page(await reader.get(`/shipments/${id}/packages`))
    refused(await reader.get("/shipments/999999999/packages"), "unknown_value")
    const other = await newCompany()
    refused(await other.get(`/shipments/${id}/packages`), "unknown_value")
    refused(await (await c.with("shipments:write")).get(`/shipments/${id}/packages`), "insufficient_scope")
  })

  it("[SPECIAL-02][CODE-33][J-02][C-13] is not invoiced alone: 501, before the id and after the scope", async () => {
    const c = await newCompany()
    const id = idOf(await makeShipment(c, await makeOrder(c)))
    refused(await c.post(`/shipments/${id}/invoice`, {}), "not_implemented")
    refused(await c.post("/shipments/999999999/invoice", {}), "not_implemented")
    const shipper = await c.with("shipments:read", "shipments:write", "shipments:cancel")
    const answer = await shipper.post(`/shipments/${id}/invoice`, {})
    refused(answer, "insufficient_scope")
    assert.strictEqual(challenge(answer).params["scope"], "invoices:write")
  })

  for (const [name, fact] of [
    ["pdf", "SPECIAL-04"],
    ["boxlabels", "SPECIAL-05"]
  ] as const) {
    it(`[${fact}][J-04][GEN-01] has the PDF ${name}, and an absent one is a JSON 404`, async () => {
      const c = await newCompany()
      const reader = await c.with("shipments:read")
      const id = idOf(await makeShipment(c, await makeOrder(c)))
      const answer = await reader.get(`/shipments/${id}/${name}`)
      assert.strictEqual(answer.status, 200)
      assert.match(String(answer.headers["content-type"]), /^application\/pdf\b/)
      assert.strictEqual(answer.bytes.subarray(0, 5).toString("latin1"), "%PDF-")
      refused(await reader.get(`/shipments/999999999/${name}`), "not_found")
    })
  }
})

describe("an order", () => {
  it("[SPECIAL-03][J-03][RULE-07] is invoiced for its shipped and unbilled lines, as a draft", async () => {
    const c = await newCompany()
    const order = await makeOrder(c)
    refused(await c.post(`/orders/${order.id}/invoice`, {}), "nothing_to_invoice")
    const shipment = await makeShipment(c, order, "4")
    const invoicer = await c.with("invoices:write")
    const invoice = succeeded(await invoicer.post(`/orders/${order.id}/invoice`, {}), 201)
    assert.isNull(invoice["voucherid"])
    assert.strictEqual(invoice["orderid"], order.id)
    const lines = await c.list(`/invoicelines?invoiceid=${idOf(invoice)}`)
    assert.lengthOf(lines, 1)
    isDecimal(lines[0]?.["qty"], "4", 6)
    isDecimal(lines[0]?.["priceach"], "5", 6)
    isDecimal(invoice["invoicetotal"], "20", 4)
    assert.strictEqual((await c.read("shipments", idOf(shipment)))["invoiceid"], idOf(invoice))
    isDecimal((await orderLines(c, order.id))[0]?.["qtybilled"], "4", 6)
    refused(await c.post(`/orders/${order.id}/invoice`, {}), "nothing_to_invoice")
    refused(await c.post("/orders/999999999/invoice", {}), "not_found")
  })

  it("[J-03][RULE-03] is invoiced with a given date in an open period", async () => {
    const c = await newCompany()
    const day = await today()
    await c.settings({ closedThrough: plusDays(day, -10) })
    const order = await makeOrder(c)
    await makeShipment(c, order, "4")
    refused(await c.post(`/orders/${order.id}/invoice`, { invoicedate: plusDays(day, -10) }), "period_closed")
    assert.isEmpty(await c.list("/invoices?cancel=any"))
    const invoice = succeeded(await c.post(`/orders/${order.id}/invoice`, { invoicedate: plusDays(day, -9) }), 201)
    assert.strictEqual(invoice["invoicedate"], plusDays(day, -9))
  })

  it("[RULE-10][STATE-05][J-03] that is a quote is not invoiced", async () => {
    const c = await newCompany()
    const quote = await makeOrder(c, { status: "quote" })
    refused(await c.post(`/orders/${quote.id}/invoice`, {}), "cannot_invoice_quote")
    assert.strictEqual((await c.read("orders", quote.id))["status"], "quote")
  })

  it("[K-02][STATE-02] is billed once it is shipped and invoiced completely", async () => {
    const c = await newCompany()
    const order = await makeOrder(c)
    await makeShipment(c, order, "10")
    succeeded(await c.post(`/orders/${order.id}/invoice`, {}), 201)
    assert.strictEqual((await c.read("orders", order.id))["status"], "billed")
  })
})

it("[CODE-19][K-04] an invoiced order rejects changes of its header", async () => {
  const c = await newCompany()
  const order = await makeOrder(c)
  await makeShipment(c, order, "4")
  succeeded(await c.post(`/orders/${order.id}/invoice`, {}), 201)
  const other = idOf(await makeCustomer(c))
  refused(await c.patch(`/orders/${order.id}`, { customerid: other }), "order_already_billed")
  refused(await c.patch(`/orders/${order.id}`, { ordertype: "service" }), "order_already_billed")
  assert.strictEqual((await c.read("orders", order.id))["customerid"], order.order["customerid"])
})

it("[K-02][STATE-08] an order changes its status on request only from quote or unconfirmed to open", async () => {
  const c = await newCompany()
  const unconfirmed = await makeOrder(c, { status: "unconfirmed" })
  assert.strictEqual(unconfirmed.order["status"], "unconfirmed")
  assert.strictEqual(succeeded(await c.patch(`/orders/${unconfirmed.id}`, { status: "open" }))["status"], "open")
  for (const status of ["quote", "unconfirmed", "partial", "billed"]) {
    refused(await c.patch(`/orders/${unconfirmed.id}`, { status }), "rule_violation")
  }
  const quote = await makeOrder(c, { status: "quote" })
  refused(await c.patch(`/orders/${quote.id}`, { status: "billed" }), "rule_violation")
})

describe("invoices and payments", () => {
  it("[SPECIAL-07][J-06] include the receipt of a payment", async () => {
    const c = await newCompany()
    const invoice = await makePosted(c)
    const payment = await makePayment(c, { invoiceid: idOf(invoice), amount: "12.5", method: 2, reference: "CHK" })
    const receipt = succeeded(await (await c.with("payments:read")).get(`/payments/${idOf(payment)}/receipt`))
    assert.deepInclude(receipt, {
      paymentid: idOf(payment),
      invoiceid: idOf(invoice),
      invoice: invoice["invoicenumber"],
      paymeth: 2,
      checkid: "CHK",
      datereceived: payment["datereceived"]
    })
    isDecimal(receipt["amount"], "12.5", 4)
    refused(await c.get("/payments/999999999/receipt"), "not_found")
  })

  it("[SPECIAL-06][J-05][I-14][INVOICELINES-64][INVOICELINES-65][X-08] include the tax of a line, and answer unknown_value to an absent line", async () => {
    const c = await newCompany()
    const line = await c.create("invoicelines", {
      invoiceid: idOf(await makeDraft(c)),
      description: "x",
      quantity: "1",
      price: "1"
    })
    page(await (await c.with("invoices:read")).get(`/invoicelines/${idOf(line)}/tax`))
    refused(await c.get("/invoicelines/999999999/tax"), "unknown_value")
    refused(await (await newCompany()).get(`/invoicelines/${idOf(line)}/tax`), "unknown_value")
  })

  it("[CODE-15][J-11][SPECIAL-08] include the PDF of a posted invoice, not of a draft", async () => {
    const c = await newCompany()
    const draft = await makeDraft(c)
    refused(await c.get(`/invoices/${idOf(draft)}/pdf`), "not_posted")
    const posted = await makePosted(c)
    const answer = await c.get(`/invoices/${idOf(posted)}/pdf`)
    assert.strictEqual(answer.bytes.subarray(0, 5).toString("latin1"), "%PDF-")
  })

  it("[SPECIAL-11][SCOPE-02][J-09][J-10] are part of a customer's balance; item stock has its own read scope", async () => {
    const c = await newCompany()
    const customerid = idOf(await makeCustomer(c, { creditlimit: "500" }))
    await makePayment(c, { invoiceid: idOf(await makePosted(c, { customerid })), amount: "25" })
    const balance = succeeded(await (await c.with("customers:read")).get(`/customers/${customerid}/balance`))
    assert.strictEqual(balance["customerid"], customerid)
    isDecimal(balance["balance"], "75", 4)
    isDecimal(balance["creditlimit"], "500", 4)
    const itemid = idOf(await makeItem(c))
    const stock = succeeded(await (await c.with("items:read")).get(`/items/${itemid}/stock`))
    assert.strictEqual(stock["itemid"], itemid)
    assert.isTrue(Array.isArray(stock["locations"]))
    refused(await (await c.with("items:read")).get(`/customers/${customerid}/balance`), "insufficient_scope")
  })
})

describe("a special path", () => {
  it("[CODE-10][EP-04] answers 405 with Allow to another verb", async () => {
    const c = await newCompany()
    for (const [path, verb] of [
      ["/shipments/1/packages", "GET"],
      ["/shipments/1/pdf", "GET"],
      ["/shipments/1/boxlabels", "GET"],
      ["/shipments/1/invoice", "POST"],
      ["/orders/1/invoice", "POST"],
      ["/invoicelines/1/tax", "GET"],
      ["/payments/1/receipt", "GET"],
      ["/invoices/1/post", "POST"],
      ["/invoices/1/pdf", "GET"],
      ["/apbills/1/post", "POST"],
      ["/customers/1/balance", "GET"],
      ["/items/1/stock", "GET"]
    ] as const) {
      for (const method of ["GET", "POST", "PATCH", "DELETE", "PUT"]) {
        if (method === verb) continue
        const answer = await c.send({ method, path, ...(method === "GET" || method === "DELETE" ? {} : { body: {} }) })
        refused(answer, "method_not_allowed")
        assert.include(String(answer.headers.allow), verb, `${method} ${path}`)
      }
    }
  })

  it("[C-02][SCOPE-02][AUTH-15] checks the scope before the id", async () => {
    const c = await (await newCompany()).with("users:read")
    for (const [method, path, scope] of [
      ["GET", "/shipments/999999999/packages", "shipments:read"],
      ["GET", "/shipments/999999999/pdf", "shipments:read"],
      ["GET", "/shipments/999999999/boxlabels", "shipments:read"],
      ["POST", "/orders/999999999/invoice", "invoices:write"],
      ["GET", "/invoicelines/999999999/tax", "invoices:read"],
      ["GET", "/payments/999999999/receipt", "payments:read"],
      ["POST", "/invoices/999999999/post", "invoices:write"],
      ["GET", "/invoices/999999999/pdf", "invoices:read"],
      ["POST", "/apbills/999999999/post", "bills:write"],
      ["GET", "/customers/999999999/balance", "customers:read"],
      ["GET", "/items/999999999/stock", "items:read"]
    ] as const) {
      const answer = await c.send({ method, path, ...(method === "POST" ? { body: {} } : {}) })
      refused(answer, "insufficient_scope")
      assert.strictEqual(challenge(answer).params["scope"], scope, path)
    }
  })

  it("[GEN-06][CODE-09] hides a record of another company", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const order = await makeOrder(a)
    const shipment = idOf(await makeShipment(a, order))
    const payment = idOf(await makePayment(a))
    for (const path of [
      `/shipments/${shipment}/pdf`,
      `/shipments/${shipment}/boxlabels`,
      `/payments/${payment}/receipt`,
      `/customers/${String(order.order["customerid"])}/balance`,
      `/items/${String(order.lines[0]?.["itemid"])}/stock`
    ]) {
      refused(await b.get(path), "not_found")
    }
    refused(await b.post(`/orders/${order.id}/invoice`, {}), "not_found")
    refused(await b.post(`/invoices/${idOf(await makeDraft(a))}/post`, {}), "not_found")
  })

  it("[J-07][CODE-05] for posting accepts an empty body or {}, and no field", async () => {
    const c = await newCompany()
    const id = idOf(await makeDraft(c))
    refused(await c.post(`/invoices/${id}/post`, { bogus: 1 }), "unknown_parameter", "bogus")
    assert.isNull((await c.read("invoices", id))["voucherid"])
    assert.isNotNull(succeeded(await c.post(`/invoices/${id}/post`))["voucherid"])
  })

  it("[SPECIAL-04][J-04] for a packing slip shows no prices", async () => {
    const c = await newCompany()
    const order = await makeOrder(c, { lines: [{ description: "thing", qtyorder: "10", priceach: "1234.567891" }] })
    const answer = await c.get(`/shipments/${idOf(await makeShipment(c, order, "2"))}/pdf`)
    assert.strictEqual(answer.status, 200)
    assert.notInclude(answer.bytes.toString("latin1"), "1234.56")
  })
})

it("[RES-10][K-06] an order line is removed, not cancelled, and its siblings are renumbered", async () => {
  const c = await newCompany()
  const line = (description: string) => ({ description, qtyorder: "1", priceach: "1" })
  const order = await makeOrder(c, { lines: [line("a"), line("b"), line("c")] })
  assert.strictEqual(succeeded(await c.del(`/orderlines/${order.lineIds[1]}`))["id"], order.lineIds[1])
  refused(await c.get(`/orderlines/${order.lineIds[1]}`), "not_found")
  const left = await orderLines(c, order.id)
  assert.deepEqual(
    left.map((each) => [each["description"], each["linenumber"]]),
    [
      ["a", 1],
      ["c", 2]
    ]
  )
  assert.isString(fresh(String(row(left[0])["description"])))
})

keptPromises()
