/** Delivery gaps: reconcile detects dropped and lost events, and reads their resources again and no others. */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import * as Processes from "../../../src/processes/Processes.ts"
import * as Reconcile from "../../../src/reconcile/Reconcile.ts"
import { receiver, subscribe } from "../../reference-server/eventsSupport.ts"
import { causes, customers, settled, warehouse, withSubscriptions, world } from "./healing.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

suite("reconcile", warehouse, (test) => {
  test("makes three requests and no change when no event is missing", function* () {
    const { check, customer, cycles, requestsOf, id, advance } = yield* settled()
    customer("TWO")
    yield* cycles(1)
    yield* advance(60)
    const { result, requests } = yield* requestsOf(check)
    assertEach(requests, (request) => request.split("?")[0], [
      "GET /me",
      "GET /webhooks",
      `GET /webhooks/${id}/deliveries`
    ])
    assert.deepStrictEqual(result, {
      _tag: "Checked",
      subscriptions: 1,
      opened: 0,
      closed: [],
      open: 0,
      reenabled: [],
      repaired: [],
      notes: [],
      needsEarlyCheck: false
    })
  })

  test("detects an abandoned event, reads its resource once and closes the gap", function* () {
    const { check, customer, cycles, requestsOf, server, equal, gaps, detail, advance, receives, sql, name } =
      yield* settled()
    yield* advance(600)
    server.reply(() => 503)
    customer("ABANDONED")
    yield* cycles(2)
    const early = yield* check
    assert.deepStrictEqual([early.opened, early.needsEarlyCheck], [0, true])
    yield* cycles(1)
    receives()
    assert.isFalse(yield* equal("customers"))
    const { result, requests } = yield* requestsOf(check)
    assert.deepStrictEqual([result.opened, result.open], [1, 0])
    assert.deepStrictEqual(result.closed, [
      { resource: "customers", cause: "event_lost", closedBy: `run ${result.repaired[0]!.runId}` }
    ])
    assert.include(yield* detail, "the source abandoned 1 event")
    const reads = requests.filter((request) => /^GET \/(customers|items)/.test(request))
    assert.lengthOf(reads, 1)
    assert.match(reads[0]!, /^GET \/customers\?.*modifiedsince=/)
    assert.isTrue(yield* equal("customers"))
    // The entry stays in the log, but is not new.
    assert.strictEqual((yield* check).opened, 0)
    assert.deepStrictEqual(yield* gaps, [])
    // A log whose clock was set back is read to its end. New entries are found, and known ones are skipped.
    customer("LATER")
    yield* cycles(1)
    yield* sql`delete from tributary.inbox where company = ${name}`
    yield* sql`update tributary.subscriptions set log_cursor_at = '2999-01-01T00:00:00Z' where company = ${name}`
    assert.deepStrictEqual(valuesOf((yield* check).closed, "cause"), ["event_lost"])
    assert.match(yield* detail, /delivered and acknowledged, but not in the inbox/)
    assert.strictEqual((yield* check).opened, 0)
  })

  test("opens no gap for an abandoned event that is in the inbox", function* () {
    const { check, customer, cycles, server, store, sql, name } = yield* settled()
    // The event is stored and its response lost, three times.
    server.reply(async ({ body }) => {
      await store(body)
      return null
    })
    customer("STORED")
    yield* cycles(3)
    const log = yield* sql<{ count: number }>`select count(*)::int from tributary.inbox where company = ${name}`
    assert.strictEqual(log[0]!.count, 1)
    const checked = yield* check
    assert.deepStrictEqual([checked.opened, checked.repaired.length], [0, 0])
  })

  test("re-enables a disabled subscription after a successful test delivery, and reads dropped events", function* () {
    const { check, customer, cycles, server, equal, gaps, detail, advance, receives, call, id, sql, name, requests } =
      yield* settled()
    server.reply(() => ({ status: 502, body: "no such tunnel" }))
    for (let n = 0; n < 9; n += 1) customer(`MANY${n}`)
    yield* cycles(24)
    assert.isString(call("GET", `/webhooks/${id}`).body["disableddate"])
    customer("DROPPED")

    assert.deepStrictEqual((yield* check).reenabled, [])
    const [first] = (yield* gaps).filter(({ cause }) => cause === "subscription_inactive")
    assert.deepStrictEqual(
      [first!.resource, first!.lasts, first!.reason],
      ["customers", true, "a test delivery was answered 502: no such tunnel"]
    )
    // The gap of the abandoned events is closed meanwhile.
    assert.deepStrictEqual(causes(yield* gaps), ["customers subscription_inactive", "items subscription_inactive"])
    assert.match(yield* detail, /disabled by the source since/)
    // The subscription is not tested again immediately.
    const tests = () => requests.filter((request) => request.endsWith("/test")).length
    assert.strictEqual(tests(), 1)
    yield* check
    assert.strictEqual(tests(), 1)

    // A different server responds at the address.
    server.reply(() => 200)
    yield* advance(3600)
    assert.deepStrictEqual((yield* check).reenabled, [])
    assert.match((yield* gaps)[0]!.reason!, /did not arrive here/)
    assert.isString(call("GET", `/webhooks/${id}`).body["disableddate"])

    receives()
    customer("DROPPED TOO")
    yield* check
    assert.strictEqual(tests(), 2)
    // A receiver that has just started causes a test before the pause is over.
    yield* Processes.heartbeat(`receiver of ${name}`, [name])
    const back = yield* check
    assert.strictEqual(tests(), 3)
    assert.deepStrictEqual([back.reenabled, back.open], [[id], 0])
    assert.deepStrictEqual(causes(back.closed), ["customers subscription_inactive", "items subscription_inactive"])
    assert.isNull(call("GET", `/webhooks/${id}`).body["disableddate"])
    assert.isTrue(yield* equal("customers"))
    const after = yield* check
    assert.deepStrictEqual([after.opened, after.needsEarlyCheck], [0, false])
    const [row] = yield* sql<{ unhealthyReason: string | null; sound: boolean }>`
          select unhealthy_reason as "unhealthyReason", healthy_at = checked_at as sound from tributary.subscriptions where company = ${name}`
    assert.deepStrictEqual(row, { unhealthyReason: null, sound: true })
  })

  test("leaves a paused subscription paused, and closes the gap after it was resumed", function* () {
    const { check, customer, equal, gaps, detail, call, id } = yield* settled()
    assert.strictEqual(call("PATCH", `/webhooks/${id}`, { paused: true }).status, 200)
    customer("WHILE PAUSED")
    for (let n = 0; n < 2; n += 1) {
      const paused = yield* check
      assert.deepStrictEqual([paused.closed, paused.reenabled, paused.open], [[], [], 2])
      assert.match(paused.notes.join(), /is paused/)
    }
    assert.isTrue((yield* gaps).every(({ cause, lasts }) => cause === "subscription_inactive" && lasts))
    assert.match(yield* detail, /paused, so that the source drops its events/)
    assert.strictEqual(call("GET", `/webhooks/${id}`).body["paused"], true)
    call("PATCH", `/webhooks/${id}`, { paused: false })
    const resumed = yield* check
    assert.deepStrictEqual([resumed.closed.length, resumed.open], [2, 0])
    assert.isTrue(yield* equal("customers"))
    assert.strictEqual((yield* check).opened, 0)
  })

  test("accepts two subscriptions that together deliver all events", function* () {
    const { check, call, gaps, id } = yield* world({ events: customers })
    yield* check
    subscribe(call, ["items.created", "items.updated"])
    yield* check
    assert.deepStrictEqual(yield* gaps, [])
    const checked = yield* check
    assert.deepStrictEqual([checked.subscriptions, checked.opened, checked.needsEarlyCheck], [2, 0, false])
    call("PATCH", `/webhooks/${id}`, { paused: true })
    yield* check
    assert.deepStrictEqual(causes(yield* gaps), ["customers subscription_inactive"])
    call("PATCH", `/webhooks/${id}`, { paused: false })
    assert.lengthOf((yield* check).closed, 1)
    assert.strictEqual((yield* check).opened, 0)
  })

  test("makes no request when a scheduled run has already covered the gap", function* () {
    const { check, customer, cycles, server, requestsOf, gaps, company, receives, sync, requests } = yield* settled()
    server.reply(() => 500)
    customer("READ BY A SYNC")
    yield* cycles(3)
    receives()
    // The gap is found and the read fails: the gap stays open with the reason.
    server.control("POST", "/faults", { rules: [{ path: "/customers", kind: "status", status: 500, times: 1 }] })
    const failed = yield* check
    assert.deepStrictEqual([failed.opened, failed.open, failed.needsEarlyCheck], [1, 1, true])
    assert.match((yield* gaps)[0]!.reason!, /the service failed \(500/)
    // The read is not retried before its time.
    const before = requests.length
    yield* check
    assert.isEmpty(requests.slice(before).filter((request) => request.startsWith("GET /customers")))
    const { runId } = yield* sync("customers")
    const { result, requests: made } = yield* requestsOf(Reconcile.reconcile(company, { url: receiver }))
    assert.isTrue(result._tag === "Checked")
    assert.deepStrictEqual((result as Reconcile.ReconcileReport).closed, [
      { resource: "customers", cause: "event_lost", closedBy: `run ${runId}` }
    ])
    assert.isEmpty(made.filter((request) => /^GET \/(customers|items)/.test(request)))
  })

  test("repairs in each of two concurrent checks, and changes nothing in the second", function* () {
    const { company, customer, cycles, server, receives, equal } = yield* settled()
    server.reply(() => 500)
    customer("ONCE")
    yield* cycles(3)
    receives()
    const listing = yield* Latch.make()
    const goOn = yield* Latch.make()
    const waiting = withSubscriptions(company, ({ list }) => ({
      list: Effect.andThen(Effect.andThen(listing.open, goOn.await), list)
    }))
    const first = yield* Effect.forkChild(Reconcile.reconcile(waiting, { url: receiver }))
    yield* listing.await
    const second = yield* Reconcile.reconcile(company, { url: receiver })
    assert.isTrue(yield* equal("customers"))
    yield* goOn.open
    const late = yield* Fiber.join(first)
    assert.deepStrictEqual([second._tag, late._tag], ["Checked", "Checked"])
    assert.isTrue(late._tag === "Checked" && late.opened === 0 && late.open === 0)
    assert.isTrue(yield* equal("customers"))
  })
})
