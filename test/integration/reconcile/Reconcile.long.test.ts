/** Rare delivery gaps: reconcile detects dropped and lost events and reads their resources again. */
import { assert, describe, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Subscriptions } from "../../../src/connector/Subscriptions.ts"
import * as DeliveryGaps from "../../../src/reconcile/DeliveryGaps.ts"
import * as Reconcile from "../../../src/reconcile/Reconcile.ts"
import * as SigningSecrets from "../../../src/subscriptions/SigningSecrets.ts"
import * as SubscriptionStore from "../../../src/subscriptions/SubscriptionStore.ts"
import * as Subscribe from "../../../src/subscriptions/Subscriptions.ts"
import { receiver, subscribe } from "../../reference-server/eventsSupport.ts"
import { customers, endlessLog, events, settled, warehouse, withSubscriptions, world } from "./healing.ts"

describe("reconcile in rare cases", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("against Postgres", (it) => {
    it.effect("reads every resource once for events from before the first subscription", () =>
      Effect.gen(function* () {
        const { check, customer, call, equal, gaps, sql, name } = yield* world()
        const [fresh] = yield* sql<{
          count: number
        }>`select count(*)::int from tributary.delivery_gaps where company = ${name}`
        assert.strictEqual(fresh!.count, 0)
        assert.strictEqual(call("GET", "/webhooks").status, 200)
        customer("BEFORE")
        const checked = yield* check
        assert.deepStrictEqual(
          checked.closed.map(({ resource, cause }) => [resource, cause]),
          [
            ["customers", "missing"],
            ["items", "missing"]
          ]
        )
        assert.deepStrictEqual(yield* gaps, [])
        assert.isTrue(yield* equal("customers"))
        assert.strictEqual((yield* check).opened, 0)
      })
    )

    it.effect("detects a subscription that a 410 disabled, and reads the dropped events", () =>
      Effect.gen(function* () {
        const { check, customer, item, cycles, server, equal, receives } = yield* settled()
        server.reply(() => 410)
        customer("GONE")
        item("BEHIND")
        yield* cycles(1)
        receives()
        const checked = yield* check
        assert.lengthOf(checked.reenabled, 1)
        assert.strictEqual(checked.open, 0)
        assert.isTrue((yield* equal("customers")) && (yield* equal("items")))
      })
    )

    it.effect("detects a pause between two checks made by a command", () =>
      Effect.gen(function* () {
        const { check, customer, equal, company, id } = yield* settled()
        const desired = { url: receiver, events }
        const secrets = SigningSecrets.layer([])
        yield* Effect.provide(Subscribe.pause(company, desired, id), secrets)
        customer("BETWEEN")
        yield* Effect.provide(Subscribe.resume(company, desired, id), secrets)
        const checked = yield* check
        assert.deepStrictEqual(
          checked.closed.map(({ resource, cause }) => [resource, cause]),
          [
            ["customers", "paused"],
            ["items", "paused"]
          ]
        )
        assert.isTrue(yield* equal("customers"))
        assert.strictEqual((yield* check).opened, 0)
      })
    )

    it.effect("keeps the gap of a cancelled subscription open until there is a new one", () =>
      Effect.gen(function* () {
        const { check, customer, equal, gaps, call, id } = yield* settled()
        assert.strictEqual(call("DELETE", `/webhooks/${id}`).status, 200)
        customer("UNHEARD")
        const checked = yield* check
        assert.match(checked.notes.join(), /tributary webhooks ensure/)
        assert.deepStrictEqual(
          (yield* gaps).map(({ resource, cause, lasts }) => [resource, cause, lasts]),
          [
            ["customers", "missing", true],
            ["items", "missing", true]
          ]
        )
        subscribe(call, events)
        const again = yield* check
        assert.deepStrictEqual([again.closed.length, again.open], [2, 0])
        assert.isTrue(yield* equal("customers"))
      })
    )

    it.effect("opens a gap only for the resource whose events were removed from the subscription", () =>
      Effect.gen(function* () {
        const { check, item, equal, gaps, call, id, requestsOf, sql, name } = yield* settled()
        call("PATCH", `/webhooks/${id}`, { events: customers })
        item("UNHEARD")
        yield* check
        assert.deepStrictEqual(yield* gaps, [{ resource: "items", cause: "missing", lasts: true, reason: null }])
        call("PATCH", `/webhooks/${id}`, { events })
        const { result, requests } = yield* requestsOf(check)
        assert.deepStrictEqual(
          result.closed.map(({ resource, cause }) => [resource, cause]),
          [["items", "missing"]]
        )
        assert.isEmpty(requests.filter((request) => request.startsWith("GET /customers")))
        assert.isTrue(yield* equal("items"))
        assert.strictEqual((yield* check).opened, 0)
        const [row] =
          yield* sql`select unhealthy_reason as "unhealthyReason" from tributary.subscriptions where company = ${name}`
        assert.deepStrictEqual(row, { unhealthyReason: null })
      })
    )

    it.effect("opens a gap for a resource of which one event type is not delivered", () =>
      Effect.gen(function* () {
        const { check, gaps } = yield* world({ events: ["customers.created", "items.created", "items.updated"] })
        const checked = yield* check
        assert.deepStrictEqual(
          checked.closed.map(({ resource, cause }) => [resource, cause]),
          [["items", "missing"]]
        )
        assert.deepStrictEqual(yield* gaps, [{ resource: "customers", cause: "missing", lasts: true, reason: null }])
      })
    )

    it.effect("re-enables no subscription that a person has paused", () =>
      Effect.gen(function* () {
        const { check, call, id, requests, gaps } = yield* settled()
        call("PATCH", `/webhooks/${id}`, { paused: true, enabled: false })
        assert.deepStrictEqual((yield* check).reenabled, [])
        assert.isEmpty(requests.filter((request) => request.endsWith("/test")))
        assert.isTrue((yield* gaps).every(({ cause, lasts }) => cause === "disabled" && lasts))
        call("PATCH", `/webhooks/${id}`, { paused: false })
        const checked = yield* check
        assert.deepStrictEqual([checked.reenabled, checked.open], [[id], 0])
      })
    )

    it.effect("opens no gap for a second subscription beside a complete one", () =>
      Effect.gen(function* () {
        const { check, call } = yield* settled()
        subscribe(call, customers)
        const checked = yield* check
        assert.deepStrictEqual([checked.subscriptions, checked.opened], [2, 0])
      })
    )

    it.effect("closes the gap of a pause once when the subscription returns with fewer events", () =>
      Effect.gen(function* () {
        const { check, gaps, call, id } = yield* settled()
        call("PATCH", `/webhooks/${id}`, { paused: true })
        yield* check
        call("PATCH", `/webhooks/${id}`, { paused: false, events: customers })
        assert.lengthOf((yield* check).closed, 2)
        const again = yield* check
        assert.deepStrictEqual([again.opened, again.closed], [0, []])
        assert.deepStrictEqual(
          (yield* gaps).map(({ resource, cause, lasts }) => [resource, cause, lasts]),
          [["items", "missing", true]]
        )
      })
    )

    it.effect("detects a pause between two checks of a subscription that delivers only some events", () =>
      Effect.gen(function* () {
        const { check, customer, equal, call, connector, id, name } = yield* world({ events: customers })
        subscribe(call, ["items.created", "items.updated"])
        yield* check
        call("PATCH", `/webhooks/${id}`, { paused: true })
        customer("BETWEEN")
        call("PATCH", `/webhooks/${id}`, { paused: false })
        yield* SubscriptionStore.saveSnapshot(
          name,
          yield* connector.subscriptions!.list,
          receiver,
          events,
          yield* SubscriptionStore.now
        )
        yield* check
        assert.isTrue(yield* equal("customers"))
        assert.strictEqual((yield* check).opened, 0)
      })
    )

    it.effect("reads every possibly missed resource when another program saved a snapshot in between", () =>
      Effect.gen(function* () {
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
          yield* SubscriptionStore.now
        )
        call("PATCH", `/webhooks/${id}`, { events })
        assert.lengthOf((yield* check).closed, 2)
        assert.isTrue((yield* equal("customers")) && (yield* equal("items")))
        assert.strictEqual((yield* check).opened, 0)
      })
    )

    it.effect("ignores subscriptions of other receivers when public_url is not set", () =>
      Effect.gen(function* () {
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
    )

    it.effect("reads every resource after no check for longer than the delivery log keeps", () =>
      Effect.gen(function* () {
        const { check, customer, cycles, server, equal, advance, sql, name, receives } = yield* settled()
        customer("LOST LONG AGO")
        yield* cycles(1)
        yield* sql`delete from tributary.inbox where company = ${name}`
        server.reply(() => null)
        yield* advance(8 * 86_400)
        receives()
        const checked = yield* check
        assert.deepStrictEqual(
          checked.closed.map(({ resource, cause }) => [resource, cause]),
          [
            ["customers", "unobserved"],
            ["items", "unobserved"]
          ]
        )
        assert.isTrue(yield* equal("customers"))
        assert.strictEqual((yield* check).opened, 0)
      })
    )

    it.effect("reads every resource when the delivery log exceeds the page limit", () =>
      Effect.gen(function* () {
        const { check, company } = yield* settled()
        const { endless, pages } = endlessLog(company)
        const result = yield* Reconcile.reconcile(endless, { url: receiver })
        assert.strictEqual(pages(), 200)
        assert.isTrue(result._tag === "Checked" && result.closed.length === 2)
        assert.strictEqual((yield* check).open, 0)
      })
    )

    it.effect("closes a gap only with a complete live run that began after the gap", () =>
      Effect.gen(function* () {
        const { gaps, sql, name, companyId, sync } = yield* settled()
        const { runId } = yield* sync("customers")
        yield* DeliveryGaps.open(name, [
          {
            subscriptionId: null,
            resource: "customers",
            cause: "acknowledged_not_stored" as const,
            detail: "made up",
            beganAt: null,
            lasts: false,
            events: []
          }
        ])
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
    )

    it.effect("is completed by the next check after a kill at any step", () =>
      Effect.gen(function* () {
        const { company, customer, cycles, server, receives, equal, gaps, check, sql, name, call, id } =
          yield* settled()
        server.reply(() => 410)
        customer("KILLED")
        yield* cycles(1)
        receives()
        const kill = (change: (inner: Subscriptions) => Partial<Subscriptions>) =>
          Effect.exit(Reconcile.reconcile(withSubscriptions(company, change), { url: receiver }))
        // Killed while the log is read, after the test delivery, and after the subscription was enabled but before that
        // was stored.
        yield* kill(() => ({ deliveries: () => Effect.interrupt }))
        assert.isTrue((yield* gaps).every(({ cause, lasts }) => cause === "disabled" && lasts))
        yield* kill(() => ({ update: () => Effect.interrupt }))
        assert.isTrue((yield* gaps).some(({ cause }) => cause === "abandoned"))
        assert.isString(call("GET", `/webhooks/${id}`).body["disableddate"])
        yield* kill((inner) => ({
          update: (one, change) => Effect.andThen(inner.update(one, change), Effect.interrupt)
        }))
        assert.isNull(call("GET", `/webhooks/${id}`).body["disableddate"])
        // Killed while the resource is read.
        yield* Effect.exit(
          Reconcile.reconcile(
            { ...company, connector: { ...company.connector, page: () => Effect.interrupt } },
            { url: receiver }
          )
        )
        const [open] = yield* sql<{ open: number }>`
          select count(*)::int as open from tributary.delivery_gaps where company = ${name} and closed_at is null and ended_at is not null`
        assert.isAbove(open!.open, 0)
        yield* check
        assert.deepStrictEqual(yield* gaps, [])
        assert.isTrue(yield* equal("customers"))
      })
    )

    it.effect("leaves a first load to the sync, and closes gaps of resources no longer synced", () =>
      Effect.gen(function* () {
        const { check, gaps, sql, name, companyId, requests, company, sync } = yield* settled()
        const one = {
          subscriptionId: null,
          cause: "acknowledged_not_stored" as const,
          detail: "made up",
          beganAt: null,
          lasts: false
        }
        yield* sql`update tributary.checkpoints set cursor_read_at = null, full_scan_at = null
          where company_id = ${companyId} and resource = 'items'`
        yield* DeliveryGaps.open(name, [
          { ...one, resource: "items", events: [] },
          { ...one, resource: "elsewhere", events: [] }
        ])
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
    )

    it.effect("continues after any failure until it is interrupted", () =>
      Effect.gen(function* () {
        const { company } = yield* settled()
        let listCalls = 0
        const failing = withSubscriptions(company, (inner) => ({
          list: Effect.suspend(() => {
            listCalls += 1
            return listCalls === 1 ? Effect.die("a defect") : inner.list
          })
        }))
        const fiber = yield* Effect.forkChild(
          Reconcile.run(failing, { url: receiver, checkInterval: Duration.millis(5) })
        )
        yield* Effect.repeat(Effect.sleep(5), { until: () => listCalls >= 3, times: 2_000 })
        yield* Fiber.interrupt(fiber)
        assert.isAtLeast(listCalls, 3)
        const after = listCalls
        yield* Effect.sleep(30)
        assert.strictEqual(listCalls, after)
      })
    )
  })
})
