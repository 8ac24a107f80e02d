import { assert, describe, it } from "vitest"
import { codeOf, dataOf, errorOf, order, postedInvoice, server } from "./support.ts"
import type { Json } from "./support.ts"

describe("orders of the reference server", () => {
  it("have a total and numbered lines", () => {
    const { call } = server()
    const { record, lines } = order(call)
    assert.strictEqual(record["ordertotal"], "65.0000")
    assert.strictEqual(record["status"], "open")
    assert.deepStrictEqual(
      lines.map(({ linenumber, description, qtyorder }) => [linenumber, description, qtyorder]),
      [
        [1, "Bolt", "10.000000"],
        [2, "Panel", "4.000000"]
      ]
    )
  })

  it("change from quote to open by PATCH, and to no other status", () => {
    const { call } = server()
    const { id } = order(call, { status: "quote" })
    assert.strictEqual(codeOf(call("PATCH", `/orders/${id}`, { status: "billed" })), "rule_violation")
    assert.strictEqual(call("PATCH", `/orders/${id}`, { status: "open" }).body["status"], "open")
    assert.strictEqual(codeOf(call("PATCH", `/orders/${id}`, { status: "quote" })), "rule_violation")
    assert.strictEqual(codeOf(call("POST", "/orders", { customer: "CUST1", status: "billed" })), "rule_violation")
  })

  it("reject a ship-to of another customer", () => {
    const { call } = server()
    const { shipto } = order(call)
    const other = call("POST", "/customers", { customercode: "OTHER" }).body
    const response = call("POST", "/orders", { customerid: other["id"], shiptoid: shipto["id"] })
    assert.strictEqual(codeOf(response), "shipto_mismatch")
  })

  it("renumber the remaining lines after one is removed", () => {
    const { call, control } = server()
    const { id, lines } = order(call)
    control("POST", "/clock", { advanceSeconds: 1 })
    const removed = call("DELETE", `/orderlines/${String(lines[0]!["id"])}`)
    assert.strictEqual(removed.status, 200)
    assert.strictEqual(removed.body["id"], lines[0]!["id"])
    assert.strictEqual(call("GET", `/orderlines/${String(lines[0]!["id"])}`).status, 404)
    const after = call("GET", `/orders/${id}`).body
    assert.strictEqual(after["ordertotal"], "40.0000")
    assert.deepStrictEqual(
      (after["lines"] as ReadonlyArray<Json>).map(({ linenumber }) => linenumber),
      [1]
    )
  })

  it("keep lines that have shipped", () => {
    const { call } = server()
    const { id, lines } = order(call)
    const first = String(lines[0]!["id"])
    call("POST", "/shipments", { orderid: id, lines: [{ orderlineid: lines[0]!["id"], quantity: "4" }] })
    assert.strictEqual(codeOf(call("DELETE", `/orderlines/${first}`)), "line_has_shipped")
    assert.strictEqual(codeOf(call("PATCH", `/orderlines/${first}`, { qtyorder: "3.9" })), "line_has_shipped")
    assert.strictEqual(codeOf(call("POST", "/orderlines", { orderid: id, qtyorder: "1" })), "line_has_shipped")
    assert.strictEqual(call("PATCH", `/orderlines/${first}`, { qtyorder: "4" }).status, 200)
    assert.strictEqual(codeOf(call("DELETE", `/orders/${id}`)), "cannot_cancel")
  })
})

describe("shipments of the reference server", () => {
  it("never exceed the open quantity, with repeated lines summed, and are undone by cancel", () => {
    const { call } = server()
    const { id, lines } = order(call)
    const orderlineid = lines[0]!["id"]
    const ship = (...quantities: ReadonlyArray<string>) =>
      call("POST", "/shipments", { orderid: id, lines: quantities.map((quantity) => ({ orderlineid, quantity })) })
    const twice = ship("6", "5")
    assert.strictEqual(codeOf(twice), "shipqty_exceeds_remaining")
    assert.match(String(errorOf(twice)["message"]), /4\.000000/)
    assert.strictEqual(dataOf(call("GET", `/orderlines?orderid=${id}`))[0]!["qtyship"], "0.000000")
    const shipment = ship("6", "4")
    assert.strictEqual(shipment.status, 201)
    assert.strictEqual(shipment.body["shipdate"], "2026-03-16")
    assert.strictEqual(shipment.body["location"], "MAIN")
    assert.strictEqual(call("GET", `/orders/${id}`).body["status"], "partial")
    assert.strictEqual(codeOf(ship("0.000001")), "shipqty_exceeds_remaining")
    const cancelled = call("DELETE", `/shipments/${String(shipment.body["id"])}`)
    assert.strictEqual(cancelled.body["cancel"], true)
    assert.strictEqual(call("GET", `/orders/${id}`).body["status"], "open")
    assert.strictEqual(dataOf(call("GET", `/shipmentlines?shipmentid=${String(shipment.body["id"])}`)).length, 0)
  })

  it("are rejected for quotes, cancelled orders, foreign lines and non-positive quantities", () => {
    const { call } = server()
    const quote = order(call, { status: "quote" })
    const open = order(call)
    const ship = (orderid: unknown, orderlineid: unknown, quantity = "1") =>
      call("POST", "/shipments", { orderid, lines: [{ orderlineid, quantity }] })
    assert.strictEqual(codeOf(ship(quote.id, quote.lines[0]!["id"])), "cannot_ship_quote")
    const foreign = ship(open.id, quote.lines[0]!["id"])
    assert.deepStrictEqual([codeOf(foreign), errorOf(foreign)["field"]], ["unknown_value", "lines[0].orderlineid"])
    assert.strictEqual(codeOf(ship(open.id, open.lines[0]!["id"], "0")), "rule_violation")
    assert.strictEqual(codeOf(ship(999, open.lines[0]!["id"])), "unknown_value")
    call("DELETE", `/orders/${open.id}`)
    assert.strictEqual(codeOf(ship(open.id, open.lines[0]!["id"])), "rule_violation")
  })

  it("accept only the changes that their write shape allows", () => {
    const { call, control } = server()
    const { id, lines } = order(call)
    const shipment = call("POST", "/shipments", {
      orderid: id,
      lines: [{ orderlineid: lines[0]!["id"], quantity: "1" }]
    })
    const path = `/shipments/${String(shipment.body["id"])}`
    assert.strictEqual(codeOf(call("PATCH", path, { carrierservice: "GND" })), "unknown_parameter")
    const service = call("POST", "/carrierservices", { carrier: "UPS", code: "GND" }).body["id"]
    assert.strictEqual(call("PATCH", path, { carrierserviceid: service }).body["carrierservice"], "GND")
    control("PUT", "/companies/1", { closedThrough: "2026-02-28" })
    assert.strictEqual(codeOf(call("PATCH", path, { shipdate: "2026-02-28" })), "rule_violation")
    assert.strictEqual(call("PATCH", path, { shipdate: "2026-03-01T10:00:00Z" }).body["shipdate"], "2026-03-01")
    control("PUT", "/companies/1", { closedThrough: "2026-03-01" })
    assert.strictEqual(codeOf(call("DELETE", path)), "cannot_cancel")
  })
})

describe("invoices of the reference server", () => {
  it("bill an order once, and release it when they are cancelled", () => {
    const { call } = server()
    const { id, lines } = order(call)
    const invoice = () => call("POST", `/orders/${id}/invoice`)
    assert.strictEqual(codeOf(invoice()), "nothing_to_invoice")
    const shipped = lines.map((line) => ({ orderlineid: line["id"], quantity: String(line["qtyorder"]) }))
    const shipment = call("POST", "/shipments", { orderid: id, lines: shipped }).body
    const made = invoice()
    assert.strictEqual(made.status, 201)
    assert.strictEqual(made.body["invoicetotal"], "65.0000")
    assert.isNull(made.body["voucherid"])
    assert.lengthOf(made.body["lines"] as ReadonlyArray<unknown>, 2)
    assert.strictEqual(call("GET", `/orders/${id}`).body["status"], "billed")
    const path = `/shipments/${String(shipment["id"])}`
    assert.strictEqual(call("GET", path).body["invoiceid"], made.body["id"])
    assert.strictEqual(codeOf(call("DELETE", path)), "shipment_already_invoiced")
    assert.strictEqual(codeOf(call("PATCH", path, { shipdate: "2026-03-15" })), "rule_violation")
    assert.strictEqual(codeOf(call("PATCH", `/orders/${id}`, { ordertype: "rental" })), "order_already_billed")
    assert.strictEqual(codeOf(invoice()), "nothing_to_invoice")
    assert.strictEqual(call("DELETE", `/invoices/${String(made.body["id"])}`).status, 200)
    assert.strictEqual(call("GET", `/orders/${id}`).body["status"], "partial")
    assert.isNull(call("GET", path).body["invoiceid"])
    assert.strictEqual(invoice().status, 201)
  })

  it("bill a deposit alone, once", () => {
    const { call } = server()
    const { id } = order(call)
    call("POST", "/orderdeposits", { orderid: id, amount: "20" })
    const made = call("POST", `/orders/${id}/invoice`, { invoicedate: "2026-03-10" }).body
    assert.strictEqual(made["invoicetotal"], "20.0000")
    assert.strictEqual(made["invoicedate"], "2026-03-10")
    assert.strictEqual((made["lines"] as ReadonlyArray<Json>)[0]!["description"], "Deposit")
    assert.strictEqual(codeOf(call("POST", `/orders/${id}/invoice`)), "nothing_to_invoice")
  })

  it("are rejected for quotes, closed periods and unknown fields", () => {
    const { call, control } = server()
    const quote = order(call, { status: "quote" })
    assert.strictEqual(codeOf(call("POST", `/orders/${quote.id}/invoice`)), "cannot_invoice_quote")
    assert.strictEqual(codeOf(call("POST", `/orders/999/invoice`)), "not_found")
    assert.strictEqual(codeOf(call("POST", `/orders/${quote.id}/invoice`, { date: "x" })), "unknown_parameter")
    const { id } = order(call)
    call("POST", "/orderdeposits", { orderid: id, amount: "20" })
    control("PUT", "/companies/1", { closedThrough: "2026-03-16" })
    assert.strictEqual(codeOf(call("POST", `/orders/${id}/invoice`)), "period_closed")
  })

  it("accept lines until they are posted", () => {
    const { call } = server()
    const { customer, bolts } = order(call)
    const invoice = call("POST", "/invoices", {
      customerid: customer["id"],
      lines: [{ itemid: bolts["id"], quantity: "3", price: "2.123456", taxable: true }]
    }).body
    assert.strictEqual(invoice["invoicetotal"], "6.3704")
    const line = call("POST", "/invoicelines", {
      invoiceid: invoice["id"],
      description: "Freight",
      quantity: "1",
      price: "5"
    })
    assert.deepInclude(line.body, {
      invoiceid: invoice["id"],
      invoice: invoice["invoicenumber"],
      linenumber: 2,
      qty: "1.000000",
      priceach: "5.000000",
      totalprice: "5.0000",
      invoicetotal: "11.3704"
    })
    assert.strictEqual(
      codeOf(call("POST", "/invoicelines", { invoiceid: invoice["id"], quantity: "1", price: "5" })),
      "invalid_request"
    )
    assert.strictEqual(
      codeOf(call("POST", "/invoicelines", { invoiceid: invoice["id"], description: "x", quantity: "0", price: "5" })),
      "rule_violation"
    )
    const posted = call("POST", `/invoices/${String(invoice["id"])}/post`, {})
    assert.match(String(posted.body["voucher"]), /^AR-/)
    assert.strictEqual(codeOf(call("POST", `/invoices/${String(invoice["id"])}/post`)), "invoice_already_posted")
    assert.strictEqual(
      codeOf(call("POST", "/invoicelines", { invoiceid: invoice["id"], description: "x", quantity: "1", price: "5" })),
      "invoice_already_posted"
    )
    assert.strictEqual(call("GET", `/invoicelines/${String(line.body["id"])}`).status, 405)
    assert.strictEqual(dataOf(call("GET", `/invoicelines?invoiceid=${String(invoice["id"])}`)).length, 2)
  })

  it("are not posted into a closed period or with a used number", () => {
    const { call, control } = server()
    const { customer } = order(call)
    const made = call("POST", "/invoices", {
      customerid: customer["id"],
      invoicenumber: "A-1",
      invoicedate: "2026-01-05"
    })
    control("PUT", "/companies/1", { closedThrough: "2026-01-31" })
    assert.strictEqual(codeOf(call("POST", `/invoices/${String(made.body["id"])}/post`)), "period_closed")
    assert.strictEqual(
      codeOf(call("POST", "/invoices", { customerid: customer["id"], invoicenumber: "A-1" })),
      "duplicate"
    )
  })
})

describe("payments of the reference server", () => {
  it("pay posted invoices up to their balance", () => {
    const { call } = server()
    const invoice = postedInvoice(call, "100")
    const pay = (amount: string, more: Json = {}) =>
      call("POST", "/payments", { invoiceid: invoice["id"], amount, ...more })
    assert.strictEqual(codeOf(pay("100.0001")), "rule_violation")
    assert.strictEqual(codeOf(pay("0")), "rule_violation")
    assert.strictEqual(codeOf(pay("-1")), "rule_violation")
    assert.strictEqual(codeOf(pay("1", { method: 7 })), "invalid_enum")
    assert.strictEqual(codeOf(pay("1", { paymeth: 1 })), "unknown_parameter")
    const part = pay("40", { method: 2, reference: "CHK1", date: "2026-03-01" })
    assert.deepInclude(part.body, {
      amount: "40.0000",
      invoicepaid: "40.0000",
      paymeth: 2,
      checkid: "CHK1",
      datereceived: "2026-03-01",
      invoice: invoice["invoicenumber"],
      customerid: invoice["customerid"],
      currency: "USD"
    })
    assert.isNumber(part.body["voucherid"])
    assert.strictEqual(pay("60").body["invoicepaid"], "100.0000")
    assert.strictEqual(codeOf(pay("0.0001")), "rule_violation")
    assert.strictEqual(codeOf(call("DELETE", `/invoices/${String(invoice["id"])}`)), "cannot_cancel")
    const draft = call("POST", "/invoices", { customerid: invoice["customerid"] }).body
    const response = call("POST", "/payments", { invoiceid: draft["id"], amount: "1" })
    assert.deepStrictEqual(
      [response.status, codeOf(response), errorOf(response)["field"]],
      [422, "rule_violation", "invoiceid"]
    )
  })

  it("are reversed in an open period, and name the user who reversed them", () => {
    const { call, control } = server()
    const invoice = postedInvoice(call, "100")
    const { id } = call("POST", "/payments", { invoiceid: invoice["id"], amount: "100" }).body
    const path = `/payments/${String(id)}`
    control("PUT", "/companies/1", { closedThrough: "2026-03-16" })
    assert.strictEqual(codeOf(call("DELETE", path)), "period_closed")
    assert.strictEqual(codeOf(call("POST", "/payments", { invoiceid: invoice["id"], amount: "1" })), "period_closed")
    control("PUT", "/companies/1", { closedThrough: null })
    control("POST", "/records", { company: 1, resource: "payments", records: [{ id, bankdepositid: 5 }] })
    assert.strictEqual(codeOf(call("DELETE", path)), "cannot_cancel")
    control("POST", "/records", { company: 1, resource: "payments", records: [{ id, bankdepositid: null }] })
    const reversed = call("DELETE", path)
    assert.strictEqual(reversed.status, 200)
    assert.deepInclude(reversed.body, { cancel: true, cancel_user: "api" })
    assert.strictEqual(call("GET", `/invoices/${String(invoice["id"])}`).body["invoicepaid"], "0.0000")
    assert.strictEqual(codeOf(call("PATCH", path, { reference: "x" })), "rule_violation")
    assert.strictEqual(call("DELETE", path).text, reversed.text)
  })
})

describe("deposits of the reference server", () => {
  it("never exceed the remaining total of the order", () => {
    const { call, control } = server()
    const { id } = order(call)
    const put = (amount: string, more: Json = {}) => call("POST", "/orderdeposits", { orderid: id, amount, ...more })
    assert.strictEqual(codeOf(put("65.0001")), "deposit_exceeds_order")
    const made = put("60", { method: 3, reference: "R" })
    assert.deepInclude(made.body, { amount: "60.0000", payment_method: 3, checkid: "R", cancel: false })
    assert.isNumber(made.body["voucherid"])
    assert.strictEqual(codeOf(put("5.0001")), "deposit_exceeds_order")
    assert.strictEqual(put("5").status, 201)
    assert.strictEqual(codeOf(put("1", { orderid: 999 })), "unknown_value")
    control("PUT", "/companies/1", { closedThrough: "2026-03-01" })
    assert.strictEqual(codeOf(put("1", { date: "2026-03-01" })), "period_closed")
    assert.strictEqual(codeOf(call("DELETE", `/orders/${id}`)), "cannot_cancel")
  })
})
