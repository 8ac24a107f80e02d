import { assert, describe, it } from "vitest"
import { codeOf, dataOf, errorOf, order, server } from "./support.ts"
import type { Json, Server } from "./support.ts"

const vendor = (call: Server["call"]) => {
  if (dataOf(call("GET", "/vendors")).length === 0) call("POST", "/vendors", { vendorcode: "V1", name: "Vendor" })
  return { vendor: "V1" }
}

/** A purchase order of two lines: 10 at 2.50 and 4 at 10. */
const purchase = (call: Server["call"]) => {
  const response = call("POST", "/purchaseorders", {
    ...vendor(call),
    lines: [
      { description: "Bolt", qtyorder: "10", priceach: "2.5" },
      { description: "Panel", qtyorder: "4", priceach: "10" }
    ]
  })
  assert.strictEqual(response.status, 201, response.text)
  const lines = response.body["lines"] as ReadonlyArray<Json>
  return { id: response.body["id"] as number, record: response.body, lines: lines.map(({ id }) => id as number) }
}

const receive = (call: Server["call"], id: number, line: number, quantity: string) =>
  call("POST", "/purchaseorderreceipts", { purchaseorderid: id, lines: [{ purchaseorderlineid: line, quantity }] })

describe("purchase orders of the reference server", () => {
  it("total their lines, also after a line changes or is cancelled", () => {
    const { call } = server()
    const { id, record, lines } = purchase(call)
    assert.strictEqual(record["ordertotal"], "65.0000")
    call("PATCH", `/purchaseorderlines/${lines[0]}`, { qtyorder: "20" })
    assert.strictEqual(call("GET", `/purchaseorders/${id}`).body["ordertotal"], "90.0000")
    assert.strictEqual(call("DELETE", `/purchaseorderlines/${lines[1]}`).body["cancel"], true)
    const after = call("GET", `/purchaseorders/${id}`).body
    assert.strictEqual(after["ordertotal"], "50.0000")
    assert.strictEqual((after["lines"] as ReadonlyArray<Json>).length, 1)
  })

  it("reject changes while complete, until complete is false again (X-20)", () => {
    const { call } = server()
    const { id, lines } = purchase(call)
    assert.strictEqual(call("PATCH", `/purchaseorders/${id}`, { complete: true }).status, 200)
    const refused = [
      call("PATCH", `/purchaseorders/${id}`, { externalid: "x" }),
      call("PATCH", `/purchaseorders/${id}`, { complete: false, externalid: "x" }),
      call("POST", "/purchaseorderlines", { purchaseorderid: id, qtyorder: "1" }),
      call("PATCH", `/purchaseorderlines/${lines[0]}`, { qtyorder: "11" })
    ]
    for (const response of refused) assert.strictEqual(codeOf(response), "po_complete")
    assert.strictEqual(call("PATCH", `/purchaseorders/${id}`, { complete: false }).status, 200)
    assert.strictEqual(call("PATCH", `/purchaseorders/${id}`, { externalid: "x" }).status, 200)
  })

  it("keep lines that were received", () => {
    const { call } = server()
    const { id, lines } = purchase(call)
    assert.strictEqual(receive(call, id, lines[0]!, "4").status, 201)
    assert.strictEqual(codeOf(receive(call, id, lines[0]!, "6.000001")), "rule_violation")
    assert.strictEqual(call("GET", `/purchaseorderlines/${lines[0]}`).body["qtyreceived"], "4.000000")
    const refused = [
      call("DELETE", `/purchaseorderlines/${lines[0]}`),
      call("PATCH", `/purchaseorderlines/${lines[0]}`, { qtyorder: "3" }),
      call("POST", "/purchaseorderlines", { purchaseorderid: id, qtyorder: "1" })
    ]
    for (const response of refused) assert.strictEqual(codeOf(response), "line_has_receipts")
    assert.strictEqual(codeOf(call("DELETE", `/purchaseorders/${id}`)), "cannot_cancel")
    const other = purchase(call)
    const strange = receive(call, id, other.lines[0]!, "1")
    assert.strictEqual(errorOf(strange)["field"], "lines[0].purchaseorderlineid")
    assert.strictEqual(codeOf(strange), "unknown_value")
  })
})

describe("vendor bills of the reference server", () => {
  const bill = (call: Server["call"], billtotal: string) => {
    const response = call("POST", "/apbills", { ...vendor(call), billtotal })
    assert.strictEqual(response.status, 201, response.text)
    return response.body
  }
  const code = (call: Server["call"], apbillid: unknown, amount: string) =>
    call("POST", "/apbilllines", { apbillid, glaccount: "Sales", amount })

  it("are distributed up to their total", () => {
    const { call } = server()
    const { id, undistributed } = bill(call, "100")
    assert.strictEqual(undistributed, "100.0000")
    const { billtotal, distributed, undistributed: left } = code(call, id, "60").body
    assert.deepStrictEqual([billtotal, distributed, left], ["100.0000", "60.0000", "40.0000"])
    assert.strictEqual(codeOf(code(call, id, "40.0001")), "distribution_exceeds_total")
    assert.strictEqual(code(call, id, "-10").status, 201)
    assert.strictEqual(codeOf(code(call, id, "0")), "rule_violation")
    assert.strictEqual(call("GET", `/apbills/${String(id)}`).body["distributed"], "50.0000")
  })

  it("that are credits are distributed with the opposite sign", () => {
    const { call } = server()
    const { id } = bill(call, "-100")
    assert.strictEqual(code(call, id, "-100").status, 201)
    assert.strictEqual(codeOf(code(call, id, "-0.0001")), "distribution_exceeds_total")
  })

  it("are posted once, into an open period, and accept no lines afterwards", () => {
    const { call, control } = server()
    const { id } = bill(call, "10")
    control("PUT", "/companies/1", { closedThrough: "2026-12-31" })
    assert.strictEqual(codeOf(call("POST", `/apbills/${String(id)}/post`)), "period_closed")
    control("PUT", "/companies/1", { closedThrough: null })
    assert.strictEqual(codeOf(call("POST", `/apbills/${String(id)}/post`, { x: 1 })), "unknown_parameter")
    assert.isNumber(call("POST", `/apbills/${String(id)}/post`, {}).body["voucherid"])
    assert.strictEqual(codeOf(call("POST", `/apbills/${String(id)}/post`)), "apbill_already_posted")
    assert.strictEqual(codeOf(code(call, id, "1")), "apbill_already_posted")
  })
})

describe("journals of the reference server", () => {
  const set = (call: Server["call"], ...amounts: ReadonlyArray<string>) =>
    call("POST", "/gltransactions", { lines: amounts.map((amount) => ({ glaccount: "Cash", amount })) })

  it("require balance, two lines and an open period", () => {
    const { call, control } = server()
    assert.strictEqual(codeOf(set(call, "1")), "gl_set_too_short")
    assert.strictEqual(codeOf(set(call, "1", "-0.9999")), "gl_set_unbalanced")
    const { body, status } = set(call, "1.5", "-1", "-0.5")
    assert.strictEqual(status, 201)
    assert.isNumber(body["voucherid"])
    const [first] = body["lines"] as ReadonlyArray<Json>
    assert.isNumber(first!["glaccountid"])
    assert.deepInclude(first, { glaccount: "Cash", amount: "1.5000", description: null })
    control("PUT", "/companies/1", { closedThrough: "2026-12-31" })
    assert.strictEqual(codeOf(set(call, "1", "-1")), "period_closed")
  })
})

describe("stock of the reference server", () => {
  const stock = (call: Server["call"], item: unknown) => {
    const { locations } = call("GET", `/items/${String(item)}/stock`).body
    const [{ onhand, committed, available }] = locations as readonly [Json]
    return [onhand, committed, available].map((text) => String(text).replace(/\.000000$/, ""))
  }

  it("follows receipts, shipments, orders, counts and transfers", () => {
    const { call, caller, token, control } = server()
    const { id, lines, bolts, panel } = order(call)
    assert.deepStrictEqual(stock(call, bolts["id"]), ["0", "10", "-10"])
    const { body } = call("POST", "/purchaseorders", {
      ...vendor(call),
      lines: [{ itemid: bolts["id"], qtyorder: "30" }]
    })
    receive(call, body["id"] as number, (body["lines"] as readonly [Json])[0]["id"] as number, "30")
    call("POST", "/shipments", { orderid: id, lines: [{ orderlineid: lines[0]!["id"], quantity: "4" }] })
    assert.deepStrictEqual(stock(call, bolts["id"]), ["26", "6", "20"])
    call("POST", "/inventorycounts", {
      inventorylocation: "MAIN",
      lines: [{ itemid: bolts["id"], counted: "25" }]
    })
    assert.deepStrictEqual(stock(call, bolts["id"]), ["25", "6", "19"])
    const second = caller(token({ company: 2 }))
    const moved = { gencompanyidfrom: 1, gencompanyidto: 2, itemid: bolts["id"], qty: "5" }
    const transfer = call("POST", "/inventorytransfers", moved)
    assert.strictEqual(transfer.status, 201, transfer.text)
    assert.deepStrictEqual(stock(call, bolts["id"]), ["20", "6", "14"])
    assert.deepStrictEqual(stock(call, panel["id"]), ["0", "4", "-4"])
    // Both companies see the same record.
    const path = `/inventorytransfers/${String(transfer.body["id"])}`
    assert.deepStrictEqual(second("GET", path).body, transfer.body)
    control("POST", "/clock", { advanceSeconds: 1 })
    call("PATCH", `/items/${String(bolts["id"])}`, { sku: "BOLT-NEW" })
    assert.strictEqual(call("GET", path).body["item"], "BOLT-NEW")
    assert.deepStrictEqual(second("GET", path).body, call("GET", path).body)
    caller(token({ company: 3 }))
    const strangers = [
      { gencompanyidfrom: 2, gencompanyidto: 3 },
      { gencompanyidfrom: 1, gencompanyidto: 99 }
    ]
    const codes = strangers.map((ends) => codeOf(call("POST", "/inventorytransfers", { ...moved, ...ends })))
    assert.deepStrictEqual(codes, ["rule_violation", "unknown_value"])
  })
})
