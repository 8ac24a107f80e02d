import { assert, describe, it } from "vitest"
import { format, units } from "../../connectors/service-v2/reference-server/decimal.ts"
import { codeOf, linesOf, metaOf, postedInvoice, server } from "./support.ts"
import type { Json, Server } from "./support.ts"

const stateOf = (world: Server, company: number, resource: string): ReadonlyArray<Json> =>
  linesOf(world.control("GET", `/state?company=${company}&resource=${resource}`).text)

const groupBy = (records: ReadonlyArray<Json>, field: string) => {
  const groups = new Map<unknown, Array<Json>>()
  for (const record of records) {
    const group = groups.get(record[field])
    if (group === undefined) groups.set(record[field], [record])
    else group.push(record)
  }
  return (key: unknown): ReadonlyArray<Json> => groups.get(key) ?? []
}

const sum = (records: ReadonlyArray<Json>, field: string, scale: number) => {
  let total = 0n
  for (const record of records) total += units(record[field], scale)
  return format(total, scale)
}

const isActive = ({ cancel }: Json) => cancel !== true

/** Asserts the rules that hold for all data that the server creates. */
const obeysRules = (world: Server, company: number) => {
  const state = (resource: string) => stateOf(world, company, resource)
  const linesOfInvoice = groupBy(state("invoicelines"), "invoiceid")
  const paymentsOf = groupBy(state("payments").filter(isActive), "invoiceid")
  for (const invoice of state("invoices")) {
    const lines = linesOfInvoice(invoice["id"])
    assert.strictEqual(invoice["invoicetotal"], sum(lines, "totalprice", 4), `invoice ${String(invoice["id"])}`)
    assert.strictEqual(invoice["invoicepaid"], sum(paymentsOf(invoice["id"]), "amount", 4))
    assert.isTrue(units(invoice["invoicepaid"], 4) <= units(invoice["invoicetotal"], 4))
    if (paymentsOf(invoice["id"]).length > 0) assert.isNumber(invoice["voucherid"])
    assert.deepStrictEqual(
      (invoice["lines"] as ReadonlyArray<Json>).map(({ id, totalprice }) => [id, totalprice]),
      lines.map(({ id, totalprice }) => [id, totalprice])
    )
    assert.deepStrictEqual(
      lines.map(({ linenumber }) => linenumber),
      lines.map((_, index) => index + 1)
    )
    for (const line of lines) {
      assert.strictEqual(line["invoice"], invoice["invoicenumber"])
      const total = units(line["qty"], 6) * units(line["priceach"], 6)
      assert.strictEqual(units(line["totalprice"], 4), (total + 50_000_000n) / 100_000_000n)
    }
  }
  const shippedOf = groupBy(state("shipmentlines").filter(isActive), "orderlineid")
  const linesOfOrder = groupBy(state("orderlines"), "orderid")
  const worked = state("invoicelines").filter((line) => line["arserviceorder_timeid"] !== null)
  const ofHours = new Set(worked.map((line) => line["arorderdetailid"]))
  for (const line of state("orderlines")) {
    // Hours are not shipped: the quantity worked is the quantity ordered.
    const shipped = ofHours.has(line["id"]) ? line["qtyorder"] : sum(shippedOf(line["id"]), "quantity", 6)
    assert.strictEqual(line["qtyship"], shipped)
    assert.isTrue(units(line["qtyship"], 6) <= units(line["qtyorder"], 6))
    assert.isTrue(units(line["qtybilled"], 6) <= units(line["qtyship"], 6))
  }
  const depositsOf = groupBy(state("orderdeposits").filter(isActive), "orderid")
  for (const order of state("orders")) {
    const lines = linesOfOrder(order["id"])
    assert.isTrue(units(sum(depositsOf(order["id"]), "amount", 4), 4) <= units(order["ordertotal"], 4))
    if (lines.length > 0 && lines.every((line) => line["qtybilled"] === line["qtyorder"])) {
      assert.strictEqual(order["status"], "billed")
    }
    if (order["status"] === "quote") assert.isTrue(lines.every((line) => line["qtyship"] === "0.000000"))
  }
  for (const { path, fields } of world.served.world.store.catalogue.resources.values()) {
    for (const record of state(path)) {
      for (const { name, reference } of fields) {
        if (reference?.half !== "id" || record[name] === null) continue
        const target = world.served.world.store.table(company, reference.resource).get(Number(record[name]))
        assert.isDefined(target, `${path} ${String(record["id"])} ${name}`)
        if (reference.pairedWith !== null) {
          const by = world.served.world.store.resource(path).field.get(reference.pairedWith)!.reference!.by!
          assert.strictEqual(record[reference.pairedWith], target.values[by])
        }
      }
    }
  }
}

describe("demo data", () => {
  const world = server({ data: "demo" })

  it("has the size of a small business", () => {
    const count = (resource: string) => stateOf(world, 1, resource).length
    assert.isAtLeast(count("customers"), 40)
    assert.isAtLeast(count("items"), 60)
    assert.isAtLeast(count("orders"), 150)
    assert.isAtLeast(count("invoicelines"), 300)
    for (const resource of ["shipments", "payments", "orderdeposits", "rmareturns", "salesmen", "carrierservices"]) {
      assert.isAtLeast(count(resource), 4, resource)
    }
    assert.isAtLeast(stateOf(world, 2, "orders").length, 20)
    const statuses = new Set(stateOf(world, 1, "orders").map(({ status }) => status))
    for (const status of ["quote", "open", "partial", "billed"]) assert.isTrue(statuses.has(status), status)
    const invoices = stateOf(world, 1, "invoices")
    assert.isTrue(invoices.some(({ voucherid }) => voucherid === null))
    assert.isTrue(invoices.some(({ invoicepaid, invoicetotal }) => invoicepaid !== invoicetotal))
    for (const resource of ["orders", "shipments", "customers", "items", "salesmen", "rmareturns"]) {
      assert.isTrue(
        stateOf(world, 1, resource).some(({ cancel }) => cancel === true),
        resource
      )
    }
  })

  it("obeys the rules in both companies", () => {
    obeysRules(world, 1)
    obeysRules(world, 2)
  })

  it("lies in the past, and the next write in the present", () => {
    // The last version is the user of this test's token.
    const stamps = world.served.world.store.history.map(({ at }) => at)
    assert.isTrue(stamps.slice(0, -1).every((at) => at < world.served.world.clock.now()))
    const made = world.call("POST", "/salesmen", { name: "Now" }).body
    assert.strictEqual(made["lastchangedate"], "2026-03-16T09:00:00.000000Z")
  })

  it("accepts further writes under the rules", () => {
    const invoice = postedInvoice(world.call, "10")
    assert.strictEqual(
      codeOf(world.call("POST", "/payments", { invoiceid: invoice["id"], amount: "11" })),
      "rule_violation"
    )
    assert.strictEqual(world.call("POST", "/payments", { invoiceid: invoice["id"], amount: "10" }).status, 201)
    obeysRules(world, 1)
  })
})

describe("scale data", () => {
  it("has exactly the requested rows, obeys the rules and is paged", () => {
    const world = server({ data: "scale", rows: 3001 })
    assert.strictEqual(stateOf(world, 1, "invoicelines").length, 3001)
    obeysRules(world, 1)
    const response = world.call("GET", "/invoicelines?limit=250")
    assert.strictEqual(metaOf(response)["has_more"], true)
    const lines = stateOf(world, 1, "invoices").map(({ lines }) => (lines as ReadonlyArray<unknown>).length)
    assert.isTrue(lines.every((count) => count <= 40))
    const made = postedInvoice(world.call, "10")
    assert.strictEqual(
      stateOf(world, 1, "invoices").filter((i) => i["invoicenumber"] === made["invoicenumber"]).length,
      1
    )
  })
})
