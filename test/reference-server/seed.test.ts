import { assert, describe, it } from "vitest"
import { units } from "../../connectors/service-v2/reference-server/decimal.ts"
import { broken } from "../fuzz/invariants.ts"
import { linesOf, metaOf, postedInvoice, server } from "./support.ts"
import type { Json, Server } from "./support.ts"

const stateOf = (world: Server, company: number, resource: string): ReadonlyArray<Json> =>
  linesOf(world.control("GET", `/state?company=${company}&resource=${resource}`).text)

/** Asserts the rules that hold for all data that the server creates. */
const obeysRules = (world: Server, company: number) => {
  assert.deepStrictEqual(broken(world.served.world.store), [])
  const state = (resource: string) => stateOf(world, company, resource)
  for (const { id, invoicetotal, invoicepaid, voucherid } of state("invoices")) {
    assert.isTrue(units(invoicepaid, 4) <= units(invoicetotal, 4), `invoice ${String(id)}`)
    if (units(invoicepaid, 4) > 0n) assert.isNumber(voucherid)
  }
  const statuses = new Map(state("orders").map(({ id, status }) => [id, status]))
  for (const { orderid, qtyship } of state("orderlines")) {
    if (statuses.get(orderid) === "quote") assert.strictEqual(qtyship, "0.000000")
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
})

it("scale data has exactly the requested rows, obeys the rules and is paged", () => {
  const world = server({ data: "scale", rows: 3001 })
  assert.strictEqual(stateOf(world, 1, "invoicelines").length, 3001)
  obeysRules(world, 1)
  assert.strictEqual(metaOf(world.call("GET", "/invoicelines?limit=250"))["has_more"], true)
  const lines = stateOf(world, 1, "invoices").map(({ lines }) => (lines as ReadonlyArray<unknown>).length)
  assert.isTrue(lines.every((count) => count <= 40))
  const made = postedInvoice(world.call, "10")
  assert.strictEqual(
    stateOf(world, 1, "invoices").filter((i) => i["invoicenumber"] === made["invoicenumber"]).length,
    1
  )
})
