/** The events of the reference server: what fires them, when they are sent, and in which order. */
import { assert, describe, it } from "vitest"
import { eventNames } from "../../connectors/service-v2/catalogue/events.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { eventServer, logOf, subscribe, verify } from "./eventsSupport.ts"
import { beginning, codeOf, dataOf, order, postedInvoice } from "./support.ts"
import type { Json } from "./support.ts"

const beginningSeconds = Date.parse(beginning) / 1000
const salesmen = ["salesmen.created", "salesmen.updated", "salesmen.cancelled"]

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
  it("are sent for create, update and cancel in order, with the record of that time", async () => {
    const { call, cycle, sent, types } = eventServer()
    subscribe(call, salesmen)
    const made = call("POST", "/salesmen", { name: "Ann" })
    const path = `/salesmen/${String(made.body["id"])}`
    const changed = call("PATCH", path, { name: "Anna" })
    const gone = call("DELETE", path)
    const attempts = await cycle()
    assert.deepStrictEqual(types(), salesmen)
    assert.lengthOf(attempts, 3)
    for (const [index, write] of [made, changed, gone].entries()) {
      const { envelope } = sent[index]!
      assert.deepStrictEqual(Object.keys(envelope), ["id", "type", "createdate", "companyid", "data"])
      assert.match(String(envelope["id"]), /^evt_/)
      assert.match(String(envelope["createdate"]), /^2026-03-16T09:00:00\.\d{6}Z$/)
      assert.strictEqual(envelope["companyid"], 1)
      assert.deepStrictEqual(envelope["data"], write.body)
    }
    assert.strictEqual(new Set(sent.map(({ envelope }) => envelope["id"])).size, 3)
    assert.lengthOf(await cycle(), 0)
  })

  it("are not fired by unchanged records, rejected writes or the control plane", async () => {
    const { call, control, cycle } = eventServer()
    subscribe(call, [...salesmen, "users.created"])
    control("POST", "/records", { company: 1, resource: "salesmen", records: [{ id: 7, name: "Put" }] })
    control("POST", "/tokens", { company: 1, scopes: ["*"], user: "other" })
    call("PATCH", "/salesmen/7", {})
    call("PATCH", "/salesmen/7", { name: "Put" })
    assert.strictEqual(call("POST", "/salesmen", { name: "put" }).status, 409)
    control("POST", "/remove", { company: 1, resource: "salesmen", id: 7 })
    assert.lengthOf(await cycle(), 0)
  })

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

  it("report the removal of an order line as its cancellation", async () => {
    const { call, cycle, sent } = eventServer()
    const { lines } = order(call)
    subscribe(call, ["orderlines.cancelled"])
    call("DELETE", `/orderlines/${String(lines[1]!["id"])}`)
    await cycle()
    assert.strictEqual((sent[0]!.envelope["data"] as Json)["id"], lines[1]!["id"])
  })

  it("reach the company's subscriptions, and all companies' for a shared table", async () => {
    const { call, caller, token, cycle, sent } = eventServer()
    const other = caller(token({ company: 2 }))
    subscribe(call, ["salesmen.created", "invoiceterms.created"])
    subscribe(other, ["salesmen.created", "invoiceterms.created"])
    call("POST", "/salesmen", { name: "Ann" })
    call("POST", "/invoiceterms", { verbal: "Net 90" })
    await cycle()
    const typesByCompany = sent.map(({ type, envelope }) => `${type} ${String(envelope["companyid"])}`)
    assert.sameMembers(typesByCompany, ["salesmen.created 1", "invoiceterms.created 1", "invoiceterms.created 2"])
  })
})

describe("the delivery headers", () => {
  it("sign the sent bytes, and name the event and the attempt", async () => {
    const { call, cycle, sent, reply, advance } = eventServer()
    const { secret } = subscribe(call, ["salesmen.created"])
    assert.match(secret, /^whsec_[A-Za-z0-9_-]{43}$/)
    reply(({ headers }) => (headers["Svc-Delivery-Attempt"] === "1" ? 500 : 200))
    call("POST", "/salesmen", { name: "Anné \u{1f600}" })
    await cycle()
    await advance(120)
    await cycle()
    assert.lengthOf(sent, 2)
    const [first, second] = sent
    assert.strictEqual(
      verify(first!.headers["Svc-Signature"]!, first!.body, [secret], beginningSeconds).time,
      beginningSeconds
    )
    const later = verify(second!.headers["Svc-Signature"]!, second!.body, [secret], beginningSeconds + 120)
    assert.deepStrictEqual(later, { time: beginningSeconds + 120, matches: [true] })
    assert.deepStrictEqual(Buffer.from(first!.body), Buffer.from(second!.body))
    for (const [index, { headers, envelope }] of sent.entries()) {
      assert.strictEqual(headers["Svc-Event-Id"], envelope["id"])
      assert.strictEqual(headers["Svc-Event-Type"], "salesmen.created")
      assert.strictEqual(headers["Svc-Delivery-Attempt"], String(index + 1))
      assert.strictEqual(headers["Content-Type"], "application/json")
    }
  })

  it("sign with both secrets for 24 hours after a rotation, the new one first", async () => {
    const { call, cycle, sent, advance } = eventServer()
    const { id, secret } = subscribe(call, ["salesmen.created"])
    const next = "the next secret of ours"
    const response = call("PATCH", `/webhooks/${id}`, { secret: next })
    assert.strictEqual(response.status, 200)
    assert.notInclude(response.text, "secret")
    const deliver = async (name: string, seconds: number) => {
      call("POST", "/salesmen", { name })
      await cycle()
      const { headers, body } = sent.at(-1)!
      const check = (secrets: ReadonlyArray<string>) =>
        verify(headers["Svc-Signature"]!, body, secrets, beginningSeconds + seconds).matches
      return { old: check([secret]), new: check([next]) }
    }
    assert.deepStrictEqual(await deliver("A", 0), { old: [false, true], new: [true, false] })
    await advance(86_399)
    assert.deepStrictEqual(await deliver("B", 86_399), { old: [false, true], new: [true, false] })
    await advance(1)
    assert.deepStrictEqual(await deliver("C", 86_400), { old: [false], new: [true] })
  })
})

describe("a delivery cycle", () => {
  it("retries in consecutive cycles in order, and continues after the third failure", async () => {
    const { call, cycle, sent, reply } = eventServer()
    const { id } = subscribe(call, ["salesmen.created", "salesmen.updated"])
    const { body } = call("POST", "/salesmen", { name: "Ann" })
    call("PATCH", `/salesmen/${String(body["id"])}`, { name: "Anna" })
    reply(({ type }) => (type === "salesmen.created" ? 503 : 200))
    for (let attempt = 1; attempt <= 3; attempt++) {
      const attempts = await cycle()
      assert.lengthOf(attempts, 1)
      assert.deepInclude(attempts[0]!, {
        eventtype: "salesmen.created",
        attempt,
        delivered: false,
        abandoned: attempt === 3,
        responsecode: 503
      })
      assert.strictEqual(call("GET", `/webhooks/${id}`).body["failcount"], attempt)
    }
    assert.strictEqual(new Set(sent.map(({ envelope }) => envelope["id"])).size, 1)
    // The update reaches the receiver although its create never did (H-25).
    assert.deepInclude((await cycle())[0]!, { eventtype: "salesmen.updated", attempt: 1, delivered: true })
    const { failcount, lastdeliverydate } = call("GET", `/webhooks/${id}`).body
    assert.strictEqual(failcount, 0)
    assert.strictEqual(lastdeliverydate, "2026-03-16T09:00:00.000000Z")
  })

  it("continues after a successful retry within one cycle", async () => {
    const { call, cycle, types, reply } = eventServer()
    subscribe(call, ["salesmen.created"])
    for (const name of ["A", "B", "C"]) call("POST", "/salesmen", { name })
    let count = 0
    reply(() => (++count === 2 ? null : 299))
    assert.lengthOf(await cycle(), 2)
    assert.lengthOf(await cycle(), 2)
    assert.lengthOf(types(), 4)
  })

  it("delivers to each subscription independently", async () => {
    const { call, cycle, sent, reply } = eventServer()
    subscribe(call, ["salesmen.created"], { url: "https://slow.example/" })
    subscribe(call, ["salesmen.created"])
    let release: (reply: number) => void = () => {}
    reply(({ url }) => (url.includes("slow") ? new Promise((resolve) => (release = resolve)) : 200))
    for (const name of ["A", "B"]) call("POST", "/salesmen", { name })
    const running = cycle()
    for (let turns = 0; turns < 50; turns++) await Promise.resolve()
    assert.deepStrictEqual(sent.map(({ url }) => new URL(url).hostname).toSorted(), [
      "receiver.example",
      "receiver.example",
      "slow.example"
    ])
    release(500)
    assert.lengthOf(await running, 3)
  })

  it("leaves events that fire during it to the next cycle", async () => {
    const { call, cycle, types, reply } = eventServer()
    subscribe(call, ["salesmen.created"])
    let count = 0
    reply(() => {
      call("POST", "/salesmen", { name: `Echo ${++count}` })
      return 200
    })
    call("POST", "/salesmen", { name: "Ann" })
    assert.lengthOf(await cycle(), 1)
    assert.lengthOf(await cycle(), 1)
    assert.lengthOf(types(), 2)
  })

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

  it("disables a subscription after 24 failures, drops its events and never replays them", async () => {
    const { call, cycle, sent, reply, advance } = eventServer()
    const { id } = subscribe(call, ["salesmen.created"])
    reply(() => 500)
    for (let index = 0; index < 12; index++) call("POST", "/salesmen", { name: `S${index}` })
    await advance(23 * 300)
    assert.lengthOf(sent, 23)
    assert.isNull(call("GET", `/webhooks/${id}`).body["disableddate"])
    await advance(300)
    const disabled = call("GET", `/webhooks/${id}`).body
    assert.strictEqual(disabled["failcount"], 24)
    // 24 cycles of five minutes: two hours.
    assert.strictEqual(disabled["disableddate"], "2026-03-16T11:00:00.000000Z")
    call("POST", "/salesmen", { name: "Lost" })
    await advance(3600)
    assert.lengthOf(sent, 24)
    reply(() => 200)
    const enabled = call("PATCH", `/webhooks/${id}`, { enabled: true })
    assert.deepInclude(enabled.body, { disableddate: null, failcount: 0 })
    assert.notProperty(enabled.body, "enabled")
    assert.lengthOf(await cycle(), 0)
    call("POST", "/salesmen", { name: "Seen" })
    assert.lengthOf(await cycle(), 1)
  })

  it("reads threshold and attempts from the limits", async () => {
    const { call, control, cycle, reply } = eventServer()
    control("PUT", "/limits", { failureThreshold: 2, attemptsPerEvent: 1 })
    const { id } = subscribe(call, ["salesmen.created"])
    reply(() => 301)
    for (const name of ["A", "B", "C"]) call("POST", "/salesmen", { name })
    assert.deepInclude((await cycle())[0]!, { abandoned: true })
    assert.deepInclude((await cycle())[0]!, { abandoned: true })
    assert.isNotNull(call("GET", `/webhooks/${id}`).body["disableddate"])
    assert.lengthOf(await cycle(), 0)
  })

  it("disables a subscription at once after a 410 response", async () => {
    const { call, cycle, reply } = eventServer()
    const { id } = subscribe(call, ["salesmen.created"])
    reply(() => 410)
    for (const name of ["A", "B"]) call("POST", "/salesmen", { name })
    assert.deepInclude((await cycle())[0]!, { attempt: 1, delivered: false, abandoned: true, responsecode: 410 })
    assert.isNotNull(call("GET", `/webhooks/${id}`).body["disableddate"])
    call("PATCH", `/webhooks/${id}`, { enabled: true })
    assert.lengthOf(await cycle(), 0)
    assert.lengthOf(logOf(call, id, "?abandoned=true"), 1)
  })

  it("drops events that fire during a pause, and those already queued", async () => {
    const { call, cycle, types } = eventServer()
    const { id } = subscribe(call, ["salesmen.created"])
    const pause = (paused: boolean) => call("PATCH", `/webhooks/${id}`, { paused })
    call("POST", "/salesmen", { name: "A" })
    pause(true)
    call("POST", "/salesmen", { name: "B" })
    pause(false)
    assert.lengthOf(await cycle(), 1)
    call("POST", "/salesmen", { name: "C" })
    pause(true)
    assert.lengthOf(await cycle(), 0)
    pause(false)
    assert.lengthOf(await cycle(), 0)
    call("POST", "/salesmen", { name: "D" })
    assert.lengthOf(await cycle(), 1)
    assert.lengthOf(types(), 2)
  })

  it("pauses and disables a subscription independently", async () => {
    const { call, cycle, reply } = eventServer()
    const { id } = subscribe(call, ["salesmen.created"])
    call("POST", "/salesmen", { name: "A" })
    reply(() => 500)
    await cycle()
    assert.deepInclude(call("PATCH", `/webhooks/${id}`, { enabled: true }).body, { paused: false, failcount: 1 })
    assert.deepInclude(call("PATCH", `/webhooks/${id}`, { paused: true }).body, { paused: true, failcount: 1 })
    const off = call("PATCH", `/webhooks/${id}`, { enabled: false }).body
    assert.deepInclude(off, { paused: true, failcount: 1 })
    assert.isNotNull(off["disableddate"])
    assert.deepInclude(call("PATCH", `/webhooks/${id}`, { enabled: true }).body, { paused: true, failcount: 0 })
  })

  it("checks at delivery the token's scopes and whether it is active", async () => {
    const { call, caller, control, token, cycle, sent, advance } = eventServer()
    const narrow = caller(token({ scopes: ["setup:write", "customers:read"] }))
    subscribe(narrow, ["salesmen.created", "customers.created"])
    call("POST", "/salesmen", { name: "A" })
    call("POST", "/customers", { customercode: "C1" })
    await cycle()
    assert.deepStrictEqual(
      sent.map(({ type }) => type),
      ["customers.created"]
    )
    const revoked = token()
    subscribe(caller(revoked), ["salesmen.created"])
    const expiring = token({ expires: "2026-03-16T09:10:00Z" })
    subscribe(caller(expiring), ["salesmen.created"])
    call("POST", "/salesmen", { name: "B" })
    control("POST", "/tokens/revoke", { token: revoked })
    assert.lengthOf(await cycle(), 1)
    call("POST", "/salesmen", { name: "C" })
    await advance(600)
    assert.lengthOf(sent, 3)
    call("POST", "/salesmen", { name: "D" })
    assert.lengthOf(await cycle(), 0)
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

describe("the delivery log", () => {
  it("has an entry per attempt, newest first, with the documented filters", async () => {
    const { call, cycle, reply } = eventServer()
    const { id } = subscribe(call, ["salesmen.created", "customers.created"])
    call("POST", "/salesmen", { name: "A" })
    call("POST", "/customers", { customercode: "C" })
    const answers = [null, { status: 500, body: "x".repeat(400) + "é".repeat(60) }, 503, 200]
    reply(() => answers.shift()!)
    for (let index = 0; index < 4; index++) await cycle()
    const log = logOf(call, id)
    const pick = (...names: ReadonlyArray<string>) => log.map((entry) => names.map((name) => entry[name]))
    assert.deepStrictEqual(pick("eventtype", "attempts", "delivered", "abandoned", "responsecode"), [
      ["customers.created", 1, true, false, 200],
      ["salesmen.created", 3, false, true, 503],
      ["salesmen.created", 2, false, false, 500],
      ["salesmen.created", 1, false, false, null]
    ])
    assert.deepStrictEqual(Object.keys(log[0]!), [
      "eventid",
      "eventtype",
      "attempts",
      "delivered",
      "abandoned",
      "responsecode",
      "responsebody",
      "durationms",
      "entrydate"
    ])
    assert.strictEqual(log[3]!["responsebody"], "")
    assert.lengthOf(logOf(call, id, "?delivered=true"), 1)
    assert.lengthOf(logOf(call, id, "?delivered=false&eventtype=salesmen.created"), 3)
    assert.lengthOf(logOf(call, id, "?abandoned=true"), 1)
    assert.lengthOf(logOf(call, id, "?eventtype=orders.created"), 0)
    assert.strictEqual(codeOf(call("GET", `/webhooks/${id}/deliveries?delivered=maybe`)), "invalid_type")
    assert.strictEqual(codeOf(call("GET", `/webhooks/${id}/deliveries?status=1`)), "unknown_parameter")
  })

  it("is paged stably while entries are added", async () => {
    const { call, cycle } = eventServer()
    const { id } = subscribe(call, ["salesmen.created"])
    for (let index = 0; index < 7; index++) call("POST", "/salesmen", { name: `S${index}` })
    await cycle()
    const seen: Array<unknown> = []
    let next: string | null = null
    do {
      const response = call("GET", `/webhooks/${id}/deliveries?limit=3${next === null ? "" : `&cursor=${next}`}`)
      const meta = response.body["_meta"] as Json
      seen.push(...dataOf(response).map(({ eventid }) => eventid))
      assert.strictEqual(meta["has_more"], meta["next_cursor"] !== null)
      next = meta["next_cursor"] as string | null
      call("POST", "/salesmen", { name: `More ${seen.length}` })
      await cycle()
    } while (next !== null)
    assert.lengthOf(seen, 7)
    assert.strictEqual(new Set(seen).size, 7)
    assert.strictEqual(codeOf(call("GET", `/webhooks/${id}/deliveries?cursor=x`)), "invalid_request")
    assert.strictEqual(codeOf(call("GET", `/webhooks/${id}/deliveries?limit=0`)), "invalid_request")
  })

  it("drops delivered events after 7 days and abandoned events after 30", async () => {
    const { call, control, cycle, reply, advance } = eventServer()
    const { id } = subscribe(call, ["salesmen.created"])
    control("PUT", "/limits", { attemptsPerEvent: 2 })
    const answers = [500, 500, 500, 200]
    reply(() => answers.shift()!)
    for (const name of ["A", "B"]) call("POST", "/salesmen", { name })
    for (let index = 0; index < 4; index++) await cycle()
    assert.lengthOf(logOf(call, id), 4)
    await advance(7 * 86_400 - 1)
    assert.lengthOf(logOf(call, id), 4)
    await advance(1)
    assert.deepStrictEqual(
      logOf(call, id).map(({ attempts, abandoned }) => [attempts, abandoned]),
      [
        [2, true],
        [1, false]
      ]
    )
    await advance(23 * 86_400 - 1)
    assert.lengthOf(logOf(call, id), 2)
    await advance(1)
    assert.lengthOf(logOf(call, id), 0)
  })
})
