/** The events of the reference server: what fires them, when they are sent, and in which order. */
import { assert, describe, it } from "vitest"
import { eventNames } from "../../connectors/service-v2/catalogue/events.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { eventServer, subscribe } from "./eventsSupport.ts"
import { dataOf, order, postedInvoice } from "./support.ts"
import type { Json } from "./support.ts"

describe("the event catalogue", () => {
  it("has three verbs per resource, posted where it applies, and the documented names", () => {
    const names = eventNames(serviceV2)
    for (const name of ["orders.created", "orders.updated", "shipments.created", "invoices.posted", "webhooks.test"]) {
      assert.include(names, name)
    }
    for (const path of serviceV2.resources.keys()) {
      for (const verb of ["created", "updated", "cancelled"]) assert.include(names, `${path}.${verb}`)
    }
    assert.strictEqual(new Set(names).size, names.length)
    assert.notInclude(names, "orders.posted")
    assert.deepStrictEqual(
      names.filter((name) => name.endsWith(".posted")),
      [...serviceV2.resources.values()]
        .filter(({ path }) => /^(ap)?(bills|invoices)$/.test(path))
        .map(({ path }) => `${path}.posted`)
    )
  })
})

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
  it("never runs concurrently with another cycle", async () => {
    const { call, cycle, reply } = eventServer()
    subscribe(call, ["salesmen.created"])
    call("POST", "/salesmen", { name: "Ann" })
    let inside = 0
    reply(async () => {
      assert.strictEqual(++inside, 1)
      await Promise.resolve()
      inside--
      return 500
    })
    const cycles = await Promise.all([cycle(), cycle(), cycle(), cycle()])
    assert.deepStrictEqual(
      cycles.map((attempts) => attempts.map(({ attempt }) => attempt)),
      [[1], [2], [3], []]
    )
  })

  it("runs at each due time when the clock is moved", async () => {
    const { call, plane, reply, advance } = eventServer()
    subscribe(call, ["salesmen.created"])
    call("POST", "/salesmen", { name: "A" })
    reply(() => 500)
    await advance(299)
    assert.lengthOf((await plane("GET", "/deliveries")).body["deliveries"] as [], 0)
    const { body } = await advance(601)
    assert.strictEqual(body["now"], "2026-03-16T09:15:00.000000Z")
    const deliveries = (await plane("GET", "/deliveries")).body["deliveries"] as ReadonlyArray<Json>
    assert.deepStrictEqual(
      deliveries.map(({ at }) => at),
      ["2026-03-16T09:05:00.000000Z", "2026-03-16T09:10:00.000000Z", "2026-03-16T09:15:00.000000Z"]
    )
    await advance(400 * 86_400)
    assert.lengthOf((await plane("GET", "/deliveries")).body["deliveries"] as [], 3)
  })

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

  it("reports every attempt as it was sent", async () => {
    const { call, cycle, plane, sent } = eventServer()
    const { id, record } = subscribe(call, ["salesmen.created"])
    call("POST", "/salesmen", { name: "A" })
    const attempts = await cycle()
    const deliveries = (await plane("GET", "/deliveries")).body["deliveries"] as ReadonlyArray<Json>
    assert.deepStrictEqual(deliveries, attempts)
    const { headers, body } = sent[0]!
    assert.deepInclude(deliveries[0]!, { webhookid: id, url: record["url"], headers, durationms: 7, failure: null })
    assert.strictEqual(deliveries[0]!["body"], Buffer.from(body).toString("base64"))
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
