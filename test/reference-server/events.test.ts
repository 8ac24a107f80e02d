/** The events of the reference server: what fires them, when they are sent, and in which order. */
import { assert, describe, it } from "vitest"
import { eventServer, subscribe } from "./eventsSupport.ts"
import { dataOf, order, postedInvoice } from "./support.ts"

describe("events of the reference server", () => {
  it("are fired for changed parents, and posted in addition to updated", async () => {
    const { call, cycle, types } = eventServer()
    const { id, lines } = order(call)
    subscribe(call, [
      "orders.updated",
      "shipments.created",
      "shipments.cancelled",
      "invoices.updated",
      "invoices.posted"
    ])
    const shipped = call("POST", "/shipments", {
      orderid: id,
      lines: [{ orderlineid: lines[0]!["id"], quantity: "1" }]
    })
    assert.strictEqual(shipped.status, 201, shipped.text)
    await cycle()
    assert.sameMembers(types(), ["shipments.created", "orders.updated"])
    call("DELETE", `/shipments/${String(shipped.body["id"])}`)
    await cycle()
    assert.sameMembers(types().slice(2), ["shipments.cancelled", "orders.updated"])
    const { id: invoiceid } = postedInvoice(call, "10.00")
    await cycle()
    assert.deepStrictEqual(types().slice(4), ["invoices.updated", "invoices.posted"])
    call("POST", "/payments", { invoiceid, amount: "10.00", method: 1 })
    await cycle()
    assert.deepStrictEqual(types().slice(6), ["invoices.updated"])
  })
})

describe("a delivery cycle", () => {
  it("runs periodically while the clock runs", async () => {
    const { call, served, plane, sent } = eventServer()
    subscribe(call, ["salesmen.created"])
    call("POST", "/salesmen", { name: "A" })
    await served.tick()
    assert.lengthOf(sent, 0)
    await plane("PUT", "/limits", { cycleSeconds: 1 })
    await plane("POST", "/clock", { manual: false })
    await served.tick()
    assert.lengthOf(sent, 0)
    served.world.clock.advance(1_000_000)
    await served.tick()
    assert.lengthOf(sent, 1)
  })

  it("loses its state in a reset, which aborts its open attempts", async () => {
    const aborted: Array<boolean> = []
    const { call, caller, control, token, cycle, plane } = eventServer({
      network: () => ({
        send: (_, signal) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              aborted.push(true)
              resolve({ status: null, body: new Uint8Array(), durationms: 0, failure: "given up" })
            })
          })
      })
    })
    subscribe(call, ["salesmen.created"])
    for (const name of ["A", "B"]) call("POST", "/salesmen", { name })
    const running = cycle()
    await Promise.resolve()
    control("POST", "/reset", {})
    assert.lengthOf(await running, 1)
    assert.deepStrictEqual(aborted, [true])
    assert.lengthOf((await plane("GET", "/deliveries")).body["deliveries"] as [], 0)
    assert.lengthOf(dataOf(caller(token())("GET", "/webhooks")), 0)
  })
})
