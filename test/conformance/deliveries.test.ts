/** Deliveries: their content, order, retries and end. */
import { afterAll, afterEach, assert, beforeAll, describe, test, vi } from "vitest"
import {
  advance,
  companyOf,
  control,
  freeze,
  fresh,
  idOf,
  integer,
  isRow,
  it as own,
  keptPromises,
  micros,
  mint,
  newCompany,
  refused,
  row,
  send,
  serverNow,
  succeeded,
  text,
  thaw,
  TIMESTAMP,
  useServer,
  valuesOf,
  type Company,
  type Row
} from "./harness.ts"
import {
  attempts,
  cycle,
  envelope,
  signatureOf,
  startReceiver,
  subscribe,
  trust,
  types,
  verifies,
  type Hook,
  type Received,
  type Receiver
} from "./receiver.ts"
import { makeDraft, makeOrder, makeSalesman, makeShipment, postInvoice } from "./world.ts"
import { assertEach } from "../support/assertions.ts"

useServer()

let receiver: Receiver
const open: Hook[] = []

beforeAll(async () => {
  receiver = await startReceiver()
  await trust(receiver)
})
afterAll(async () => {
  await receiver.close()
})
afterEach(async () => {
  // So that events left in a queue by one test are not sent in the next.
  for (const hook of open.splice(0)) {
    hook.box.answer = () => ({ status: 204 })
    await send({ method: "DELETE", path: hook.url, token: hook.c.token })
  }
  await control("PUT", "/limits", { failureThreshold: 24, attemptsPerEvent: 3, requestsPerMinute: 600 })
  await thaw()
})

/** A subscription in a company of its own. The clock is stopped, so that cycles run only on request. */
async function hook(events: readonly string[], over: Row = {}, c?: Company): Promise<Hook> {
  await freeze()
  const made = await subscribe(c ?? (await newCompany()), receiver, events, over)
  open.push(made)
  return made
}

/** A test with a subscription to new salesmen. */
function it(title: string, check: (h: Hook) => Promise<void>): void {
  own(title, async (c) => check(await hook(["salesmen.created"], {}, c)))
}

const fails = (h: Hook, status = 500) => {
  h.box.answer = () => ({ status })
}
const works = (h: Hook) => {
  h.box.answer = () => ({ status: 204 })
}
const at = (h: Hook, i: number): Received => {
  assert.isAbove(h.box.received.length, i, `only ${h.box.received.length} received`)
  return h.box.received[i] as Received
}
const nameOf = (received: Received) => row(envelope(received)["data"])["name"]
const names = (h: Hook) => h.box.received.map(nameOf)
/** The data of the first event of this type. */
const dataOf = (h: Hook, type: string) => h.box.received.map(envelope).find((each) => each["type"] === type)?.["data"]

/** Lets the server do what it can before the receiver answers. */
async function eventLoopTurns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) {
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  }
}

describe("an event delivery", () => {
  it("[EVT-07][EVT-08][EVT-09][EVT-10][EVT-11] has an envelope of id, type, createdate, companyid and the record as it was in data", async (h) => {
    const now = await serverNow()
    const record = await makeSalesman(h.c, { email1: "a@b.example" })
    succeeded(await h.c.patch(`/salesmen/${idOf(record)}`, { email1: "later" }))
    await advance(5)
    await cycle()
    assert.lengthOf(h.box.received, 1)
    const sent = envelope(at(h, 0))
    assert.sameMembers(Object.keys(sent), ["id", "type", "createdate", "companyid", "data"])
    assert.match(text(sent["id"]), /^evt_.+/)
    assert.strictEqual(sent["type"], "salesmen.created")
    assert.match(text(sent["createdate"]), TIMESTAMP)
    assert.isTrue(micros(sent["createdate"]) - now < 1_000_000n, "createdate is when it fired")
    assert.strictEqual(sent["companyid"], h.c.id)
    assert.deepEqual(sent["data"], record)
  })

  it("[SIG-01][SIG-02][SIG-03][SIG-04][SIG-05][SIG-11][GEN-10] is a POST of JSON with headers for signature, id, type and attempt, where v1 is the HMAC-SHA256 of t, a dot and the raw body", async (h) => {
    await makeSalesman(h.c, { name: `Zoë ${fresh("ü")} \u{1F600}` })
    await cycle()
    const received = at(h, 0)
    assert.strictEqual(received.method, "POST")
    assert.match(String(received.headers["content-type"]), /^application\/json\b/)
    assert.deepInclude(received.headers, {
      "svc-event-id": text(envelope(received)["id"]),
      "svc-event-type": "salesmen.created",
      "svc-delivery-attempt": "1"
    })
    assert.isUndefined(received.headers["authorization"])
    assert.notInclude(JSON.stringify(received.headers), h.c.token)
    const { t, v1 } = signatureOf(received)
    assert.lengthOf(v1, 1)
    assert.isAtMost(Math.abs(t - Number((await serverNow()) / 1_000_000n)), 2)
    assert.isTrue(verifies(received, h.secret))
    assert.isFalse(verifies(received, `${h.secret}x`))
    assert.isFalse(verifies({ ...received, body: Buffer.concat([received.body, Buffer.from(" ")]) }, h.secret))
  })

  test("[EVT-06][SHIPMENTS-17][EVT-08][EVT-11] exists for orders, shipments, posted invoices and payments, with the data that a GET shows", async () => {
    const h = await hook([
      "orders.created",
      "orders.updated",
      "shipments.created",
      "invoices.posted",
      "payments.created"
    ])
    const order = await makeOrder(h.c)
    const ordered = await h.c.read("orders", order.id)
    await cycle()
    assert.deepEqual(types(h.box), ["orders.created"])
    assert.deepEqual(dataOf(h, "orders.created"), ordered)
    succeeded(await h.c.patch(`/orders/${order.id}`, { externalid: "x" }))
    await cycle()
    assert.deepEqual(types(h.box).slice(1), ["orders.updated"])
    const shipment = await makeShipment(h.c, order)
    await cycle()
    assert.includeMembers(types(h.box).slice(2), ["shipments.created"])
    assert.deepEqual(dataOf(h, "shipments.created"), await h.c.read("shipments", idOf(shipment)))
    const count = h.box.received.length
    const ofLines = await hook(["invoicelines.created"], {}, h.c)
    const invoice = idOf(await makeDraft(h.c))
    await cycle()
    assert.lengthOf(h.box.received, count, "a draft is not posted")
    await postInvoice(h.c, invoice)
    const posted = await h.c.read("invoices", invoice)
    const paid = idOf(await h.c.create("payments", { invoiceid: invoice, amount: "1" }))
    await cycle()
    assert.deepEqual(types(h.box).slice(count), ["invoices.posted", "payments.created"])
    assert.deepEqual(dataOf(h, "invoices.posted"), posted)
    assert.deepEqual(dataOf(h, "payments.created"), await h.c.read("payments", paid))
    const [line] = await h.c.list(`/invoicelines?invoiceid=${invoice}`)
    assert.deepEqual(dataOf(ofLines, "invoicelines.created") ?? line, line)
  })

  test("[EVT-03][EVT-06][EVT-07][H-01] is sent for created, updated and cancelled, to their subscribers only, once if they name it twice", async () => {
    const h = await hook(["salesmen.created", "salesmen.updated", "salesmen.cancelled"])
    const narrow = await hook(["salesmen.cancelled", "salesmen.cancelled"], {}, h.c)
    const id = idOf(await makeSalesman(h.c))
    succeeded(await h.c.patch(`/salesmen/${id}`, { email1: "x" }))
    succeeded(await h.c.del(`/salesmen/${id}`))
    await cycle(2)
    assert.deepEqual(types(h.box), ["salesmen.created", "salesmen.updated", "salesmen.cancelled"])
    assert.deepEqual(types(narrow.box), ["salesmen.cancelled"])
    assert.strictEqual(row(envelope(at(narrow, 0))["data"])["cancel"], true)
  })

  test("[H-23][EP-02][EVT-07] is not sent for a write that is rejected, replayed or without changes", async () => {
    const h = await hook(["salesmen.created", "salesmen.updated", "salesmen.cancelled"])
    const key = { "idempotency-key": fresh("evt") }
    const body = { name: fresh("s"), email1: "same" }
    const url = `/salesmen/${idOf(succeeded(await h.c.post("/salesmen", body, key), 201))}`
    await cycle()
    succeeded(await h.c.post("/salesmen", body, key), 201)
    succeeded(await h.c.patch(url, {}))
    succeeded(await h.c.patch(url, { email1: "same" }))
    refused(await h.c.patch(url, { email1: 1 }), "invalid_type")
    refused(await h.c.post("/salesmen", body), "duplicate")
    await cycle(2)
    assert.lengthOf(h.box.received, 1)
  })

  it("[EVT-07][DLV-04] is sent for each record of a batch, and for none of the control plane", async (h) => {
    succeeded(await h.c.post("/salesmen/batch", [{ name: "a" }, { name: "b" }, { bogus: 1 }, { name: "c" }]), 207)
    await h.c.put("salesmen", [{ name: "quiet" }])
    await cycle()
    assert.deepEqual(names(h), ["a", "b", "c"])
    assert.strictEqual(new Set(h.box.received.map((each) => envelope(each)["id"])).size, 3)
  })

  test("[EVT-02][EVT-10][GEN-06][H-03] goes to subscriptions of its company, whose token may read the record", async () => {
    const c = await newCompany()
    const events = ["orders.created", "salesmen.created"]
    const narrow = await hook(events, {}, await c.with("setup:read", "setup:write", "setup:cancel"))
    const full = await hook(events, {}, c)
    const stranger = await hook(events)
    await makeOrder(c)
    await makeSalesman(c)
    await cycle(2)
    assert.deepEqual(types(full.box), events)
    assert.deepEqual(types(narrow.box), ["salesmen.created"])
    assert.isEmpty(stranger.box.received)
  })

  test("[H-05][AUTH-04] is not sent once the owning token is revoked or expired", async () => {
    const c = await newCompany()
    const mine = companyOf(c.id, (await mint({ company: c.id })).token)
    const h = await hook(["salesmen.created"], {}, mine)
    await makeSalesman(c)
    await control("POST", "/tokens/revoke", { token: mine.token })
    await makeSalesman(c)
    await cycle(2)
    assert.isEmpty(h.box.received)
    open.splice(open.indexOf(h), 1)
  })
})

describe("the order of deliveries", () => {
  it("[DLV-04][DLV-08][H-24] follows cycles of five minutes, and so do three attempts", async (h) => {
    fails(h)
    await advance(300)
    await makeSalesman(h.c)
    assert.isEmpty(h.box.received, "not with the write")
    for (const [seconds, attempts] of [
      [300, 1],
      [300, 2],
      [300, 3],
      [1200, 3]
    ] as const) {
      await advance(seconds)
      assert.lengthOf(h.box.received, attempts)
    }
    const stamps = h.box.received.map((each) => signatureOf(each).t)
    for (const [i, t] of stamps.entries()) if (i > 0) assert.approximately(t - (stamps[i - 1] ?? 0), 300, 60)
  })

  test("[DLV-05] is the order of the writes, with no update before its create", async () => {
    const h = await hook(["salesmen.created", "salesmen.updated"])
    const expected: string[] = []
    const made: number[] = []
    for (let i = 0; i < 12; i += 1) {
      made.push(idOf(await makeSalesman(h.c, { email1: `${i}` })))
      expected.push(`salesmen.created ${made[i] ?? 0} ${i}`)
      const target = made[(i * 5) % made.length] ?? 0
      succeeded(await h.c.patch(`/salesmen/${target}`, { email1: `u${i}` }))
      expected.push(`salesmen.updated ${target} u${i}`)
    }
    await cycle(2)
    const seen = h.box.received.map((each) => {
      const sent = envelope(each)
      const data = row(sent["data"])
      return `${String(sent["type"])} ${String(data["id"])} ${String(data["email1"])}`
    })
    assert.deepEqual(seen, expected)
  })

  it("[DLV-05][EVT-07] is sequential, also with concurrent cycles: no event is sent before the last is answered, or twice", async (h) => {
    let busy = 0
    let most = 0
    h.box.answer = () => {
      busy += 1
      most = Math.max(most, busy)
      const answered = async () => {
        await eventLoopTurns()
        busy -= 1
      }
      return { status: 204, after: answered() }
    }
    const expected = ["a", "b", "c", "d", "e", "f"]
    for (const name of expected) await makeSalesman(h.c, { name })
    await Promise.all([cycle(), cycle(), cycle()])
    await cycle()
    assert.deepEqual(names(h), expected)
    assert.strictEqual(most, 1)
  })

  it("[DLV-05][DLV-04] puts writes during a cycle after those before it", async (h) => {
    h.box.answer = () => ({ status: 204, after: eventLoopTurns() })
    for (const name of ["a", "b", "c"]) await makeSalesman(h.c, { name })
    const running = cycle()
    for (const name of ["d", "e"]) await makeSalesman(h.c, { name })
    await running
    await cycle(2)
    assert.deepEqual(names(h), ["a", "b", "c", "d", "e"])
  })

  it("[DLV-09][LOG-04][EVT-02] of a waiting subscription delays no other subscription, which has its own log", async (h) => {
    const other = await hook(["salesmen.created"], {}, h.c)
    fails(h)
    for (const name of ["a", "b"]) await makeSalesman(h.c, { name })
    await cycle()
    assert.deepEqual(names(h), ["a"])
    assert.deepEqual(names(other), ["a", "b"])
    const logged = async ({ log }: Hook) => (await log()).map((entry) => entry["delivered"])
    assert.deepEqual([await logged(h), await logged(other)], [[false], [true, true]])
  })

  it("[DLV-01] advances with any 2xx response", async (h) => {
    for (const status of [200, 201, 202, 204, 206, 299]) {
      h.box.answer = () => ({ status })
      await makeSalesman(h.c, { name: `${status}` })
      await cycle()
      await cycle()
    }
    assert.deepEqual(names(h), ["200", "201", "202", "204", "206", "299"])
    assert.strictEqual((await h.show())["failcount"], 0)
  })

  test("[DLV-01][H-20] treats any other status as a failure, also a redirect", async () => {
    for (const status of [301, 304, 307, 400, 401, 404, 409, 429, 500, 503]) {
      const h = await hook(["salesmen.created"])
      const elsewhere = receiver.mailbox()
      h.box.answer = () => ({ status, headers: { location: elsewhere.url } })
      await makeSalesman(h.c)
      await cycle()
      assert.strictEqual((await h.show())["failcount"], 1, `${status}`)
      assert.isEmpty(elsewhere.received)
    }
  })
})

describe("a subscription with deliveries", () => {
  it("[DLV-08][DLV-07][DLV-09][LIM-05][EVT-07][EVT-11][SIG-04][H-10][H-25][X-23] gets three attempts in three cycles, freshly signed, then the next event", async (h) => {
    h.box.answer = (received) => ({ status: nameOf(received) === "bad" ? 500 : 204 })
    await makeSalesman(h.c, { name: "bad" })
    await makeSalesman(h.c, { name: "next" })
    for (let i = 0; i < 3; i += 1) {
      await cycle()
      await advance(299)
    }
    await cycle(2)
    assert.deepEqual(names(h), ["bad", "bad", "bad", "next"])
    const bad = h.box.received.slice(0, 3)
    assert.strictEqual(new Set(bad.map((each) => envelope(each)["id"])).size, 1)
    assert.strictEqual(new Set(bad.map((each) => each.body.toString())).size, 1)
    assertEach(bad, (each) => each.headers["svc-delivery-attempt"], ["1", "2", "3"])
    const stamps = bad.map((each) => signatureOf(each).t)
    assert.strictEqual(new Set(stamps).size, 3, "t is fresh")
    for (const each of bad) assert.isTrue(verifies(each, h.secret))
    const log = await h.log("?abandoned=true")
    assert.lengthOf(log, 1)
    assert.deepInclude(row(log[0]), { attempts: 3, abandoned: true, delivered: false })
  })

  it("[DLV-06] gets an event again, with the same id, if its acknowledgement is lost", async (h) => {
    h.box.answer = (_, count) => (count === 1 ? { instead: "reset" } : { status: 204 })
    await makeSalesman(h.c)
    await cycle(3)
    assert.lengthOf(h.box.received, 2)
    assert.strictEqual(envelope(at(h, 0))["id"], envelope(at(h, 1))["id"])
  })

  it("[DLV-12][WEBHOOK-06][WEBHOOK-07][LIM-06] counts failed attempts in failcount, which a 2xx response resets and dates", async (h) => {
    fails(h)
    await makeSalesman(h.c)
    for (const expected of [1, 2]) {
      await cycle()
      assert.deepInclude(await h.show(), { failcount: expected, lastdeliverydate: null, disableddate: null })
    }
    works(h)
    await advance(10)
    await cycle()
    const after = await h.show()
    assert.strictEqual(after["failcount"], 0)
    const last = micros(after["lastdeliverydate"])
    const now = await serverNow()
    assert.isTrue(last <= now && now - last < 10_000_000n)
  })

  it("[DLV-10][LIM-06][WEBHOOK-08][X-01][H-06][STATE-18][DLV-11] is disabled by 24 failed attempts in a row, not 23, and drops waiting events", async (h) => {
    fails(h)
    for (let i = 0; i < 10; i += 1) await makeSalesman(h.c)
    await cycle(23)
    assert.lengthOf(h.box.received, 23)
    assert.deepInclude(await h.show(), { failcount: 23, disableddate: null })
    await advance(1)
    const now = await serverNow()
    await cycle()
    const disabled = await h.show()
    assert.strictEqual(disabled["failcount"], 24)
    assert.isTrue(micros(disabled["disableddate"]) >= now)
    await makeSalesman(h.c)
    works(h)
    await cycle(5)
    assert.lengthOf(h.box.received, 24)
    succeeded(await h.c.patch(h.url, { enabled: true }))
    await cycle(5)
    assert.lengthOf(h.box.received, 24, "nothing is replayed")
  })

  test("[LIM-05] gets the configured number of attempts", async () => {
    await control("PUT", "/limits", { attemptsPerEvent: 1 })
    const h = await hook(["salesmen.created"])
    h.box.answer = (received) => ({ status: nameOf(received) === "bad" ? 500 : 204 })
    await makeSalesman(h.c, { name: "bad" })
    await makeSalesman(h.c, { name: "good" })
    await cycle(3)
    assert.deepEqual(names(h), ["bad", "good"])
  })

  test("[DLV-10][DLV-13][WEBHOOK-10][STATE-18][DLV-11][H-06] has disableddate and failcount cleared by enabled true, and gets new events", async () => {
    await control("PUT", "/limits", { failureThreshold: 2 })
    const h = await hook(["salesmen.created"])
    fails(h)
    await makeSalesman(h.c, { name: "first" })
    await cycle()
    assert.isNull((await h.show())["disableddate"])
    await cycle()
    assert.isNotNull((await h.show())["disableddate"])
    await makeSalesman(h.c, { name: "while disabled" })
    works(h)
    assert.deepInclude(succeeded(await h.c.patch(h.url, { enabled: true })), { disableddate: null, failcount: 0 })
    await makeSalesman(h.c, { name: "after" })
    await cycle(3)
    assert.deepEqual(names(h), ["first", "first", "after"])
  })

  it("[DLV-03][H-21][STATE-18][WEBHOOK-08] is disabled by 410 at once, without a retry", async (h) => {
    fails(h, 410)
    await makeSalesman(h.c, { name: "gone" })
    await makeSalesman(h.c, { name: "behind" })
    await cycle()
    assert.match(text((await h.show())["disableddate"]), TIMESTAMP)
    works(h)
    await cycle(4)
    assert.deepEqual(names(h), ["gone"])
    assert.deepInclude(row((await h.log())[0]), { responsecode: 410, attempts: 1, abandoned: true, delivered: false })
    succeeded(await h.c.patch(h.url, { enabled: true }))
    await cycle(2)
    assert.deepEqual(names(h), ["gone"])
  })

  it("[DLV-11][DLV-14][WEBHOOK-05][STATE-18][H-19] gets no event of a pause, nor one that waits when a cycle meets it, and later events again", async (h) => {
    const pause = async (paused: boolean) => succeeded(await h.c.patch(h.url, { paused }))
    await makeSalesman(h.c, { name: "queued" })
    await pause(true)
    await makeSalesman(h.c, { name: "while paused" })
    await cycle()
    await pause(false)
    await cycle()
    await pause(true)
    await makeSalesman(h.c, { name: "without a cycle" })
    await pause(false)
    await makeSalesman(h.c, { name: "after" })
    await cycle(2)
    assert.deepEqual(names(h), ["after"])
  })

  it("[DLV-14] is paused independently of enabled, and keeps failcount and disableddate", async (h) => {
    fails(h)
    await makeSalesman(h.c)
    await cycle(2)
    succeeded(await h.c.patch(h.url, { paused: true }))
    succeeded(await h.c.patch(h.url, { paused: false }))
    assert.strictEqual((await h.show())["failcount"], 2)
    const disabled = succeeded(await h.c.patch(h.url, { enabled: false }))
    const paused = succeeded(await h.c.patch(h.url, { paused: true }))
    assert.strictEqual(paused["disableddate"], disabled["disableddate"])
    assert.strictEqual(succeeded(await h.c.patch(h.url, { enabled: true }))["paused"], true)
  })

  it("[DLV-02][LIM-04] has 15 seconds for a response", async (h) => {
    const arrived = Promise.withResolvers<void>()
    h.box.answer = () => {
      arrived.resolve()
      return { instead: "hang" }
    }
    await makeSalesman(h.c)
    // The server's timer, if it runs in this process; another server takes its 15 seconds.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      const running = cycle()
      await arrived.promise
      await vi.advanceTimersByTimeAsync(14_999)
      assert.strictEqual((await h.show())["failcount"], 0)
      await vi.advanceTimersByTimeAsync(1)
      await running
    } finally {
      vi.useRealTimers()
    }
    assert.strictEqual((await h.show())["failcount"], 1)
    assert.isNull((await h.log())[0]?.["responsecode"])
    works(h)
  })

  it("[H-13][WEBHOOK-09] gets nothing after it is cancelled", async (h) => {
    await makeSalesman(h.c)
    succeeded(await h.c.del(h.url))
    await makeSalesman(h.c)
    await cycle(2)
    assert.isEmpty(h.box.received)
  })

  it("[EVT-03][WEBHOOK-16] uses changed events and a changed url from then on", async (h) => {
    const elsewhere = receiver.mailbox()
    succeeded(await h.c.patch(h.url, { events: ["salesmen.updated"], url: elsewhere.url }))
    const id = idOf(await makeSalesman(h.c))
    succeeded(await h.c.patch(`/salesmen/${id}`, { email1: "x" }))
    await cycle()
    assert.isEmpty(h.box.received)
    assert.deepEqual(types(elsewhere), ["salesmen.updated"])
  })
})

describe("a rotated secret", () => {
  it("[SIG-12][SIG-01][SIG-04][LOG-01][H-07][H-08][WEBHOOK-16] signs events and test calls together with the former one for a day, then alone", async (h) => {
    const secret = "a-new-secret-of-mine"
    succeeded(await h.c.patch(h.url, { secret }))
    await makeSalesman(h.c)
    await cycle()
    const during = at(h, 0)
    const both = signatureOf(during)
    assert.lengthOf(both.v1, 2)
    assert.isTrue(verifies(during, secret))
    assert.isTrue(verifies(during, h.secret))
    const first = { ...during, headers: { ...during.headers, "svc-signature": `t=${both.t},v1=${both.v1[0] ?? ""}` } }
    assert.isTrue(verifies(first, secret), "the new one comes first")
    await h.test()
    const { headers } = at(h, 1)
    assert.deepInclude(headers, { "svc-delivery-attempt": "1", "svc-event-type": "webhooks.test" })
    assert.match(String(headers["svc-event-id"]), /^evt_/)
    assert.isTrue(verifies(at(h, 1), h.secret) && verifies(at(h, 1), secret))
    await advance(23 * 3600)
    await makeSalesman(h.c)
    await cycle()
    assert.lengthOf(signatureOf(h.box.received.at(-1) as Received).v1, 2)
    await advance(2 * 3600)
    await makeSalesman(h.c)
    await cycle()
    const after = h.box.received.at(-1) as Received
    assert.lengthOf(signatureOf(after).v1, 1)
    assert.isTrue(verifies(after, secret))
    assert.isFalse(verifies(after, h.secret))
  })

  it("[SIG-01][SIG-05][SIG-12][H-08][H-09] is the newest of two after a second rotation within the day, used as it was given", async (h) => {
    const third = "ключ with spaces & ümlauts"
    succeeded(await h.c.patch(h.url, { secret: "the-second-of-three" }))
    await advance(3600)
    succeeded(await h.c.patch(h.url, { secret: third }))
    await makeSalesman(h.c)
    await cycle()
    const received = at(h, 0)
    assert.lengthOf(signatureOf(received).v1, 2)
    assert.isTrue(verifies(received, third))
    assert.isTrue(verifies(received, "the-second-of-three"))
  })
})

describe("the delivery log", () => {
  const FIELDS = "eventid eventtype attempts delivered abandoned responsecode responsebody durationms entrydate".split(
    " "
  )

  it("[LOG-04][LOG-05][WEBHOOK-18][H-17][X-21][LIM-07] has one entry per attempt, newest first, with the documented fields", async (h) => {
    h.box.answer = (_, count) =>
      count < 3 ? { status: 500, body: `no ${count} ${"x".repeat(600)}` } : { status: 200, body: "yes" }
    await makeSalesman(h.c)
    for (let i = 0; i < 3; i += 1) {
      await cycle()
      await advance(60)
    }
    const id = envelope(at(h, 0))["id"]
    const log = await h.log()
    assert.lengthOf(log, 3)
    for (const entry of log) {
      assert.sameMembers(
        Object.keys(entry).filter((key) => key !== "id"),
        FIELDS
      )
      assert.strictEqual(entry["eventid"], id)
      assert.strictEqual(entry["eventtype"], "salesmen.created")
      assert.isAtLeast(integer(entry["durationms"]), 0)
      assert.match(text(entry["entrydate"]), TIMESTAMP)
    }
    assertEach(log, (entry) => [entry["attempts"], entry["delivered"], entry["abandoned"], entry["responsecode"]], [
      [3, true, false, 200],
      [2, false, false, 500],
      [1, false, false, 500]
    ])
    assert.strictEqual(log[0]?.["responsebody"], "yes")
    assert.strictEqual(text(log[2]?.["responsebody"]).length, 500)
    assert.isTrue(micros(log[0]?.["entrydate"]) > micros(log[1]?.["entrydate"]))
  })

  test("[LOG-06][LOG-07][WEBHOOK-18][DLV-15][LIM-08][H-26] has the filters delivered, abandoned and eventtype, and drops a delivered event after 7 days, an abandoned one after 30", async () => {
    const h = await hook(["salesmen.created", "salesmen.updated"])
    h.box.answer = (received) => ({ status: envelope(received)["type"] === "salesmen.created" ? 500 : 204 })
    const id = idOf(await makeSalesman(h.c))
    succeeded(await h.c.patch(`/salesmen/${id}`, { email1: "x" }))
    await cycle(4)
    const brief = async (query: string) =>
      (await h.log(query)).map((entry) => `${String(entry["eventtype"])} ${String(entry["attempts"])}`)
    assert.deepEqual(await brief("?delivered=true"), ["salesmen.updated 1"])
    assert.deepEqual(await brief("?abandoned=true"), ["salesmen.created 3"])
    assert.deepEqual(await brief("?eventtype=salesmen.updated"), ["salesmen.updated 1"])
    assert.lengthOf(await brief("?eventtype=salesmen.created"), 3)
    assert.lengthOf(await brief("?delivered=false"), 3)
    assert.lengthOf(await brief("?abandoned=false"), 3)
    assert.isEmpty(await brief("?delivered=true&abandoned=true"))
    assert.isEmpty(await brief("?eventtype=orders.created"))
    refused(await h.c.get(`${h.url}/deliveries?bogus=1`), "unknown_parameter", "bogus")
    refused(await h.c.get(`${h.url}/deliveries?delivered=maybe`), "invalid_type", "delivered")
    await advance(7 * 86_400 - 60)
    assert.lengthOf(await h.log(), 4)
    await advance(120)
    assert.deepEqual(valuesOf(await h.log(), "eventtype"), Array<string>(3).fill("salesmen.created"))
    await advance(23 * 86_400 - 240)
    assert.lengthOf(await h.log(), 3)
    await advance(300)
    assert.isEmpty(await h.log())
  })

  it("[LOG-04][SIG-01] of the control plane shows each attempt's headers and bytes, without secrets", async (h) => {
    await makeSalesman(h.c)
    await cycle()
    const payload = at(h, 0).body.toString("base64")
    const list = await attempts()
    const mine = list.find((each) => JSON.stringify(each).includes(payload))
    assert.isTrue(isRow(mine), "the attempt is listed")
    assert.match(JSON.stringify(mine), /svc-signature/i)
    assert.notInclude(JSON.stringify(list), h.secret)
  })
})

keptPromises()
