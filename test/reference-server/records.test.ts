/** Records of the reference server, where no fact of the documents states the detail. */
import { assert, describe, it } from "vitest"
import { codeOf, dataOf, order, server, ship } from "./support.ts"
import type { Json, Server } from "./support.ts"
import { assertEach } from "../support/assertions.ts"

it("references follow a changed code in every record that shows it", () => {
  const { call } = server()
  const { id, bolts } = order(call)
  call("PATCH", `/items/${String(bolts["id"])}`, { sku: "NUT" })
  const { body } = call("GET", `/orders/${id}`)
  assert.strictEqual((body["lines"] as ReadonlyArray<Json>)[0]!["item"], "NUT")
  assert.strictEqual(dataOf(call("GET", `/orderlines?orderid=${id}`))[0]!["item"], "NUT")
})

it("a record of the reference server accepts the accepted values of a custom field only", () => {
  const { call, control } = server()
  const records = [{ name: "region", resource: "customers", acceptedvalues: "North,South" }]
  control("POST", "/records", { company: 1, resource: "customfields", records })
  const make = (custom_fields: Json) => call("POST", "/customers", { customercode: "C", custom_fields })
  assert.strictEqual(codeOf(make({ region: { file: "x" } })), "unsupported_value")
  assert.strictEqual(codeOf(make({ region: "West" })), "unsupported_value")
  assert.strictEqual(make({ region: "North" }).status, 201)
})

it("lists below a record return the packages of a shipment, at the charges of its carrier service", () => {
  const { call, control } = server()
  control("POST", "/records", {
    company: 1,
    resource: "carrierservices",
    records: [{ code: "G", box1_charge: "8.5", box_addl: "4.25" }]
  })
  const made = order(call)
  call("PATCH", `/orderlines/${String(made.lines[0]!["id"])}`, { qtyorder: "100" })
  const shipment = ship(call, made, "90").body
  const service = dataOf(call("GET", "/carrierservices?code=G"))[0]!["id"]
  call("PATCH", `/shipments/${String(shipment["id"])}`, { carrierserviceid: service })
  const packages = dataOf(call("GET", `/shipments/${String(shipment["id"])}/packages`))
  assertEach(packages, ({ weight, carriercharge }) => [weight, carriercharge], [
    ["40.000000", "8.5000"],
    ["40.000000", "4.2500"],
    ["10.000000", "4.2500"]
  ])
})

describe("stock of the reference server", () => {
  const stock = (call: Server["call"], item: unknown) => {
    const { locations } = call("GET", `/items/${String(item)}/stock`).body
    const [{ onhand, committed, available }] = locations as readonly [Json]
    return [onhand, committed, available].map((text) => String(text).replace(/\.000000$/, ""))
  }

  it("follows receipts, shipments, orders, counts and transfers", () => {
    const { call, caller, token, control } = server()
    const made = order(call)
    const { bolts, panel } = made
    assert.deepStrictEqual(stock(call, bolts["id"]), ["0", "10", "-10"])
    call("POST", "/vendors", { vendorcode: "V1", name: "Vendor" })
    const { body } = call("POST", "/purchaseorders", {
      vendor: "V1",
      lines: [{ itemid: bolts["id"], qtyorder: "30" }]
    })
    call("POST", "/purchaseorderreceipts", {
      purchaseorderid: body["id"],
      lines: [{ purchaseorderlineid: (body["lines"] as readonly [Json])[0]["id"], quantity: "30" }]
    })
    ship(call, made, "4")
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
