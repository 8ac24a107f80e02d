/** Rare delivery gaps: reconcile detects dropped and lost events and reads their resources again. */
import { readInstant } from "../../../src/postgres/Now.ts"
import { assert } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import * as DeliveryGaps from "../../../src/reconcile/DeliveryGaps.ts"
import * as Reconcile from "../../../src/reconcile/Reconcile.ts"
import * as SigningSecrets from "../../../src/subscriptions/SigningSecrets.ts"
import * as SubscriptionStore from "../../../src/subscriptions/SubscriptionStore.ts"
import * as Subscribe from "../../../src/subscriptions/Subscriptions.ts"
import { receiver, subscribe } from "../../reference-server/eventsSupport.ts"
import { causes, customers, events, gapOf, lastingCauses, settled, warehouse, withSubscriptions } from "./healing.ts"
import * as TestClock from "effect/testing/TestClock"
import { makeWorker, off } from "../tasks/working.ts"
import { suite } from "../../support/suite.ts"
import { untilTrue } from "../../support/until.ts"

suite("reconcile in rare cases", warehouse, (test) => {
  test("detects a pause between two checks made by a command", function* () {
    const { check, customer, equal, company, detail, id } = yield* settled()
    const desired = { url: receiver, events }
    const secrets = SigningSecrets.layer([])
    yield* Effect.provide(Subscribe.pause(company, desired, id), secrets)
    customer("BETWEEN")
    yield* Effect.provide(Subscribe.resume(company, desired, id), secrets)
    assert.deepStrictEqual(causes((yield* check).closed), [
      "customers subscription_inactive",
      "items subscription_inactive"
    ])
    assert.match(yield* detail, /was paused for a while/)
    assert.isTrue(yield* equal("customers"))
    assert.strictEqual((yield* check).opened, 0)
  })

  test("keeps the gap of a cancelled subscription open until there is a new one", function* () {
    const { check, customer, equal, gaps, detail, call, id } = yield* settled()
    assert.strictEqual(call("DELETE", `/webhooks/${id}`).status, 200)
    customer("UNHEARD")
    assert.match((yield* check).notes.join(), /tributary webhooks ensure/)
    assert.deepStrictEqual(lastingCauses(yield* gaps), [
      "customers subscription_inactive",
      "items subscription_inactive"
    ])
    assert.include(yield* detail, "no subscription delivers its events")
    subscribe(call, events)
    const again = yield* check
    assert.deepStrictEqual([again.closed.length, again.open], [2, 0])
    assert.isTrue(yield* equal("customers"))
  })

  test("opens a gap only for the resource whose events were removed from the subscription", function* () {
    const { check, item, equal, gaps, call, id, requestsOf, sql, name } = yield* settled()
    call("PATCH", `/webhooks/${id}`, { events: customers })
    item("UNHEARD")
    yield* check
    assert.deepStrictEqual(yield* gaps, [
      { resource: "items", cause: "subscription_inactive", lasts: true, reason: null }
    ])
    call("PATCH", `/webhooks/${id}`, { events })
    const { result, requests } = yield* requestsOf(check)
    assert.deepStrictEqual(causes(result.closed), ["items subscription_inactive"])
    assert.isEmpty(requests.filter((request) => request.startsWith("GET /customers")))
    assert.isTrue(yield* equal("items"))
    assert.strictEqual((yield* check).opened, 0)
    const [row] =
      yield* sql`select unhealthy_reason as "unhealthyReason" from tributary.subscriptions where company = ${name}`
    assert.deepStrictEqual(row, { unhealthyReason: null })
  })

  test("reads every possibly missed resource when another program saved a snapshot in between", function* () {
    const { check, item, customer, equal, call, connector, id, name } = yield* settled()
    call("PATCH", `/webhooks/${id}`, { events: customers })
    yield* check
    call("PATCH", `/webhooks/${id}`, { events: ["shipments.created"] })
    customer("UNHEARD")
    item("UNHEARD")
    yield* SubscriptionStore.saveSnapshot(
      name,
      yield* connector.subscriptions!.list,
      receiver,
      events,
      yield* readInstant
    )
    call("PATCH", `/webhooks/${id}`, { events })
    assert.lengthOf((yield* check).closed, 2)
    assert.isTrue((yield* equal("customers")) && (yield* equal("items")))
    assert.strictEqual((yield* check).opened, 0)
  })

  test("ignores subscriptions of other receivers when public_url is not set", function* () {
    const { company, customer, cycles, call, gaps, name } = yield* settled()
    const check = Reconcile.reconcile(company, { url: null })
    customer("FOR ANOTHER")
    yield* cycles(1)
    const none = yield* check
    assert.isTrue(none._tag === "Checked" && none.subscriptions === 0 && none.opened === 0)
    assert.isTrue(none._tag === "Checked" && none.notes.length === 0)
    subscribe(call, events, { url: `https://receiver.example/hooks/${name}` })
    const one = yield* check
    assert.isTrue(one._tag === "Checked" && one.subscriptions === 1 && one.closed.length === 2)
    assert.deepStrictEqual(yield* gaps, [])
  })

  test("closes a gap only with a complete live run that began after the gap", function* () {
    const { gaps, sql, name, companyId, sync } = yield* settled()
    const { runId } = yield* sync("customers")
    yield* DeliveryGaps.open(name, [gapOf("customers")])
    assert.deepStrictEqual(yield* DeliveryGaps.closeCovered(name, companyId, 0), [])
    const claims = (columns: string) =>
      sql.unsafe(`update tributary.runs set started_at = tributary.now(), ${columns} where id = $1`, [runId])
    for (const columns of [
      "resumed = true",
      "resumed = false, stale_records = 1",
      "stale_records = 0, status = 'failed'"
    ]) {
      yield* claims(columns)
      assert.deepStrictEqual(yield* DeliveryGaps.closeCovered(name, companyId, 0), [], columns)
    }
    yield* claims("status = 'done', lane = 'backfill'")
    assert.deepStrictEqual(yield* DeliveryGaps.closeCovered(name, companyId, 0), [])
    yield* claims("lane = 'live'")
    assert.lengthOf(yield* DeliveryGaps.closeCovered(name, companyId, 0), 1)
    assert.deepStrictEqual(yield* gaps, [])
  })

  test("leaves a first load to the sync, and closes gaps of resources no longer synced", function* () {
    const { check, gaps, sql, name, companyId, requests, company, sync } = yield* settled()
    yield* sql`update tributary.checkpoints set cursor_read_at = null, full_scan_at = null
          where company_id = ${companyId} and resource = 'items'`
    yield* DeliveryGaps.open(name, [gapOf("items"), gapOf("elsewhere")])
    const before = requests.length
    yield* check
    assert.isEmpty(requests.slice(before).filter((request) => request.startsWith("GET /items")))
    const [left, ...others] = yield* gaps
    assert.lengthOf(others, 0)
    assert.match(left!.reason!, /first sync closes the gap/)
    yield* sync("items")
    yield* Reconcile.reconcile(company, { url: receiver })
    assert.deepStrictEqual(yield* gaps, [])
  })

  test("continues after any failure until it is interrupted", function* () {
    const { company } = yield* settled()
    let listCalls = 0
    const failing = withSubscriptions(company, (inner) => ({
      list: Effect.suspend(() => {
        listCalls += 1
        return listCalls === 1 ? Effect.die("a defect") : inner.list
      })
    }))
    const worker = yield* makeWorker(() => off, { checks: { interval: Duration.millis(5), urlOf: () => receiver } })
    yield* worker.own(failing)
    const fiber = yield* Effect.forkChild(worker.run)
    yield* untilTrue("three checks", () => listCalls >= 3)
    yield* Fiber.interrupt(fiber)
    const after = listCalls
    yield* TestClock.adjust(60_000)
    assert.strictEqual(listCalls, after)
  })
})
