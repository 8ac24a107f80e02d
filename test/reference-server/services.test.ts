import { assert, describe, it } from "vitest"
import { codeOf, dataOf, errorOf, order, postedInvoice, server } from "./support.ts"
import type { Json, Server } from "./support.ts"

const hours = (call: Server["call"], orderid: number, more: Json = {}) =>
  call("POST", "/serviceordertimes", { orderid, hours: "2.5", ...more })

describe("hours of the reference server", () => {
  it("are accepted for service orders that are not billed", () => {
    const { call } = server()
    assert.strictEqual(codeOf(hours(call, order(call).id)), "hours_require_service_order")
    const quote = order(call, { ordertype: "service", status: "quote" })
    assert.strictEqual(codeOf(hours(call, quote.id)), "hours_require_service_order")
    const { id } = order(call, { ordertype: "service" })
    assert.strictEqual(codeOf(hours(call, id, { hours: "0" })), "rule_violation")
    const response = hours(call, id, { note: "On site" })
    assert.deepInclude(response.body, { status: 0, hours: "2.500000", date: "2026-03-16" })
    assert.strictEqual(call("POST", `/orders/${id}/invoice`).status, 201)
    assert.strictEqual(codeOf(hours(call, id)), "order_already_billed")
  })

  it("become a line of the billed order, and do not change afterwards", () => {
    const { call } = server()
    const { id } = order(call, { ordertype: "service" })
    call("POST", "/items", { sku: "Repair", description: "Repair work", price: "80" })
    const repair = dataOf(call("GET", "/worktypes?name=Repair"))[0]!["id"]
    const time = hours(call, id, { worktypeid: repair, note: "Pump" }).body
    const { body } = call("POST", `/orders/${id}/invoice`)
    assert.strictEqual(body["invoicetotal"], "200.0000")
    const [line] = dataOf(call("GET", `/invoicelines?invoiceid=${String(body["id"])}`))
    assert.deepInclude(line, { description: "Pump", arserviceorder_timeid: time["id"], worktype: "Repair" })
    const path = `/serviceordertimes/${String(time["id"])}`
    assert.strictEqual(call("GET", path).body["status"], 2)
    assert.strictEqual(codeOf(call("PATCH", path, { note: "x" })), "hours_already_billed")
    assert.strictEqual(codeOf(call("DELETE", path)), "hours_already_billed")
    assert.strictEqual(call("GET", `/orders/${id}`).body["status"], "billed")
  })

  it("are billed again after the invoice is cancelled", () => {
    const { call } = server()
    const { id } = order(call, { ordertype: "service" })
    const time = hours(call, id).body
    const { body } = call("POST", `/orders/${id}/invoice`)
    assert.strictEqual(call("DELETE", `/invoices/${String(body["id"])}`).status, 200)
    const again = call("POST", `/orders/${id}/invoice`)
    assert.strictEqual(again.status, 201, again.text)
    const [line] = dataOf(call("GET", `/invoicelines?invoiceid=${String(again.body["id"])}`))
    assert.strictEqual(line!["arserviceorder_timeid"], time["id"])
  })
})

describe("orders with nested records", () => {
  it("are created with shipments and hours, whole or not at all (RES-16, C-12)", () => {
    const { call, caller, token } = server()
    const lines = [{ description: "Bolt", qtyorder: "10", priceach: "1" }]
    const body = {
      customer: "CUST1",
      lines,
      shipments: [{ externalid: "box", lines: [{ linenumber: 1, quantity: "4" }] }]
    }
    order(call)
    const response = call("POST", "/orders", body)
    assert.strictEqual(response.status, 201, response.text)
    assert.strictEqual(response.body["status"], "partial")
    assert.deepInclude(dataOf(call("GET", "/shipments?externalid=box"))[0], { orderid: response.body["id"] })
    const count = dataOf(call("GET", "/orders")).length
    const tooMuch = { ...body, shipments: [{ lines: [{ linenumber: 1, quantity: "11" }] }] }
    const refused = call("POST", "/orders", tooMuch)
    assert.strictEqual(codeOf(refused), "shipqty_exceeds_remaining")
    assert.strictEqual(errorOf(refused)["field"], "shipments[0].lines[0].quantity")
    const absent = { ...body, shipments: [{ lines: [{ linenumber: 2, quantity: "1" }] }] }
    assert.strictEqual(codeOf(call("POST", "/orders", absent)), "unknown_value")
    assert.strictEqual(
      codeOf(call("POST", "/orders", { ...body, hours: [{ hours: "1" }] })),
      "hours_require_service_order"
    )
    assert.strictEqual(dataOf(call("GET", "/orders")).length, count)
    const orders = caller(token({ scopes: ["orders:write"] }))
    assert.strictEqual(codeOf(orders("POST", "/orders", body)), "insufficient_scope")
    assert.strictEqual(orders("POST", "/orders", { customer: "CUST1", lines }).status, 201)
    const service = { customer: "CUST1", ordertype: "service", hours: [{ hours: "1" }] }
    assert.strictEqual(orders("POST", "/orders", service).status, 201)
    assert.strictEqual(dataOf(call("GET", "/serviceordertimes")).length, 1)
  })
})

describe("lists below a record", () => {
  it("return a balance, a receipt, a tax breakdown and packages", () => {
    const { call } = server()
    const invoice = postedInvoice(call, "100")
    const payment = call("POST", "/payments", {
      invoiceid: invoice["id"],
      amount: "40",
      method: 2,
      reference: "C1"
    }).body
    const balance = call("GET", `/customers/${String(invoice["customerid"])}/balance`).body
    assert.deepStrictEqual(balance, {
      customerid: invoice["customerid"],
      balance: "60.0000",
      openinvoices: 1,
      creditlimit: null
    })
    assert.deepStrictEqual(call("GET", `/payments/${String(payment["id"])}/receipt`).body, {
      paymentid: payment["id"],
      invoiceid: invoice["id"],
      invoice: invoice["invoicenumber"],
      customerid: invoice["customerid"],
      amount: "40.0000",
      datereceived: "2026-03-16",
      paymeth: 2,
      checkid: "C1",
      voucher: payment["voucher"]
    })
    const draft = call("POST", "/invoices", {
      customer: "CUST1",
      lines: [
        { description: "Taxed", quantity: "1", price: "100", taxable: true },
        { description: "Free", quantity: "1", price: "100" }
      ]
    }).body
    const [taxed, free] = draft["lines"] as readonly [Json, Json]
    const taxes = dataOf(call("GET", `/invoicelines/${String(taxed["id"])}/tax`))
    assert.deepInclude(taxes[0], { authority: "State", rate: "6.500000", exemptamount: "0.0000", taxamount: "6.5000" })
    assert.deepStrictEqual(dataOf(call("GET", `/invoicelines/${String(free["id"])}/tax`)), [])
    assert.strictEqual(codeOf(call("GET", "/invoicelines/9999/tax")), "unknown_value")
    assert.strictEqual(codeOf(call("GET", "/shipments/9999/packages")), "unknown_value")
  })

  it("return the packages of a shipment, at the charges of its carrier service", () => {
    const { call, control } = server()
    control("POST", "/records", {
      company: 1,
      resource: "carrierservices",
      records: [{ code: "G", box1_charge: "8.5", box_addl: "4.25" }]
    })
    const { id, lines } = order(call)
    call("PATCH", `/orderlines/${String(lines[0]!["id"])}`, { qtyorder: "100" })
    const shipment = call("POST", "/shipments", {
      orderid: id,
      lines: [{ orderlineid: lines[0]!["id"], quantity: "90" }]
    }).body
    const service = dataOf(call("GET", "/carrierservices?code=G"))[0]!["id"]
    call("PATCH", `/shipments/${String(shipment["id"])}`, { carrierserviceid: service })
    const packages = dataOf(call("GET", `/shipments/${String(shipment["id"])}/packages`))
    assert.deepStrictEqual(
      packages.map(({ weight, carriercharge }) => [weight, carriercharge]),
      [
        ["40.000000", "8.5000"],
        ["40.000000", "4.2500"],
        ["10.000000", "4.2500"]
      ]
    )
  })
})

describe("a further dialect of the reference server", () => {
  it("invoices one shipment (J-02)", () => {
    const { call, control } = server()
    assert.strictEqual(codeOf(call("POST", "/shipments/99/invoice")), "not_implemented")
    control("PUT", "/dialect", { enableShipmentInvoice: true })
    assert.strictEqual(codeOf(call("POST", "/shipments/99/invoice")), "not_found")
    const { id, lines } = order(call)
    const ship = (line: number, quantity: string) =>
      call("POST", "/shipments", { orderid: id, lines: [{ orderlineid: lines[line]!["id"], quantity }] }).body["id"]
    const [first, second] = [ship(0, "4"), ship(1, "1")]
    const response = call("POST", `/shipments/${String(first)}/invoice`, { invoicedate: "2026-03-15" })
    assert.strictEqual(response.status, 201, response.text)
    assert.deepInclude(response.body, { invoicetotal: "10.0000", orderid: id, invoicedate: "2026-03-15" })
    assert.strictEqual(codeOf(call("POST", `/shipments/${String(first)}/invoice`)), "shipment_already_invoiced")
    call("DELETE", `/shipments/${String(second)}`)
    assert.strictEqual(codeOf(call("POST", `/shipments/${String(second)}/invoice`)), "shipment_already_invoiced")
  })

  it("opens every operation, also modifiedsince on the four resources", () => {
    const { call, control } = server()
    assert.strictEqual(codeOf(call("GET", "/vendororderfroms?modifiedsince=1970-01-01T00:00:00Z")), "unknown_parameter")
    assert.strictEqual(codeOf(call("POST", "/employees", { name: "x" })), "method_not_allowed")
    control("PUT", "/dialect", { allOperations: true, modifiedSinceOnFour: true })
    control("PUT", "/companies/1", { recordLimits: { employees: 1 } })
    assert.strictEqual(call("POST", "/employees", { name: "x" }).status, 201)
    assert.strictEqual(codeOf(call("POST", "/employees", { name: "y" })), "record_limit_reached")
    call("POST", "/vendororderfroms", { companyname: "x" })
    const listed = call("GET", "/vendororderfroms?modifiedsince=1970-01-01T00:00:00Z")
    assert.strictEqual(dataOf(listed).length, 1)
    const draft = call("POST", "/invoices", {
      customerid: order(call).customer["id"],
      lines: [{ description: "x", quantity: "2", price: "5" }]
    }).body
    const [line] = draft["lines"] as readonly [Json]
    call("PATCH", `/invoicelines/${String(line["id"])}`, { qty: "3" })
    assert.strictEqual(call("GET", `/invoices/${String(draft["id"])}`).body["invoicetotal"], "15.0000")
  })

  it("has text batch statuses, unique external ids and 422 for absent records", () => {
    const { call, control } = server()
    assert.strictEqual(call("POST", "/salesmen/batch", [{ name: "a", externalid: "e" }]).status, 207)
    assert.strictEqual(call("DELETE", "/salesmen/99").status, 404)
    control("PUT", "/dialect", { batchStatus: "text", uniqueExternalid: true, deleteUnknown: 422 })
    const { results } = call("POST", "/salesmen/batch", [{ name: "b" }, { name: "c", externalid: "e" }]).body
    const [made, refused] = results as readonly [Json, Json]
    assert.strictEqual(made["status"], "created")
    assert.strictEqual(refused["status"], "error")
    assert.deepInclude(refused["error"], { code: "duplicate", field: "externalid" })
    const response = call("DELETE", "/salesmen/99")
    assert.deepStrictEqual([response.status, codeOf(response)], [422, "unknown_value"])
    assert.strictEqual(control("PUT", "/dialect", { deleteUnknown: 410 }).status, 400)
  })
})

describe("projects of the reference server", () => {
  it("check ranges of days, nest items, and require their module", () => {
    const { call, control } = server()
    for (const body of [{ dayofweek: 7 }, { dayofmonth: 0 }, { dayofmonth: 32 }]) {
      assert.strictEqual(codeOf(call("POST", "/teamprojectrecurringtasks", body)), "invalid_enum")
    }
    const { id } = call("POST", "/teamprojectrecurringtasks", { dayofweek: 0, frequency: 3 }).body
    assert.strictEqual(
      codeOf(call("PATCH", `/teamprojectrecurringtasks/${String(id)}`, { dayofweek: -1 })),
      "invalid_enum"
    )
    const above = call("POST", "/teamprojecttemplateitems", { title: "above" }).body["id"]
    const below = call("POST", "/teamprojecttemplateitems", { title: "below", parentitem: "above" }).body["id"]
    assert.strictEqual(codeOf(call("DELETE", `/teamprojecttemplateitems/${String(above)}`)), "cannot_cancel")
    call("DELETE", `/teamprojecttemplateitems/${String(below)}`)
    assert.strictEqual(call("DELETE", `/teamprojecttemplateitems/${String(above)}`).status, 200)
    const reminder = call("POST", "/teamprojectreminders", { note: "x" }).body
    assert.strictEqual(reminder["status"], false)
    const done = call("PATCH", `/teamprojectreminders/${String(reminder["id"])}`, { status: true }).body
    assert.strictEqual(done["status"], true)
    control("PUT", "/companies/1", { features: { projects: false } })
    assert.strictEqual(codeOf(call("GET", "/teamprojects")), "feature_not_licensed")
    assert.strictEqual(call("GET", "/orders").status, 200)
  })
})

describe("the reference server", () => {
  it("rejects an empty text as a wrong type for numbers, as missing for texts", () => {
    const { call } = server()
    const { customer } = order(call)
    const createInvoice = (line: Json) => call("POST", "/invoices", { customerid: customer["id"], lines: [line] })
    const line = { description: "x", quantity: "1", price: "1" }
    assert.strictEqual(codeOf(createInvoice({ ...line, quantity: "" })), "invalid_type")
    assert.strictEqual(codeOf(createInvoice({ ...line, quantity: null })), "invalid_request")
    assert.strictEqual(codeOf(call("POST", "/payments", { invoiceid: "", amount: "1" })), "invalid_type")
    assert.strictEqual(codeOf(call("POST", "/customers", { customercode: "" })), "invalid_request")
  })

  it("matches only empty texts with an empty partial filter (A-16)", () => {
    const { call } = server()
    call("POST", "/salesmen/batch", [{ name: "a" }, { name: "b" }])
    call("POST", "/taxgroups", { name: "" })
    assert.strictEqual(dataOf(call("GET", "/salesmen?name=")).length, 0)
    assert.strictEqual(dataOf(call("GET", "/taxgroups?name=")).length, 1)
  })

  it("rejects every change of an invoiced or cancelled shipment (I-12)", () => {
    const { call } = server()
    const { id, lines } = order(call)
    const ship = () =>
      call("POST", "/shipments", { orderid: id, lines: [{ orderlineid: lines[0]!["id"], quantity: "1" }] }).body["id"]
    const cancelled = ship()
    call("DELETE", `/shipments/${String(cancelled)}`)
    const invoiced = ship()
    call("POST", `/orders/${id}/invoice`)
    for (const shipment of [cancelled, invoiced]) {
      assert.strictEqual(codeOf(call("PATCH", `/shipments/${String(shipment)}`, { externalid: "x" })), "rule_violation")
    }
  })
})
