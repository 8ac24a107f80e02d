/**
 * Delivery gaps that the state of a subscription does not show: changes between two checks, gaps beyond a cursor, and
 * checks that fail or overflow.
 */
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber } from "effect"
import { NotImplemented, SourceError } from "../../../src/connector/SourceError.ts"
import * as DeliveryGaps from "../../../src/reconcile/DeliveryGaps.ts"
import * as Reconcile from "../../../src/reconcile/Reconcile.ts"
import * as Webhooks from "../../../src/status/Webhooks.ts"
import { receiver, subscribe } from "../../reference-server/eventsSupport.ts"
import { order } from "../../reference-server/support.ts"
import {
  causes,
  customers,
  endlessLog,
  events,
  gapOf,
  lastingCauses,
  settled,
  warehouse,
  withSubscriptions,
  world
} from "./healing.ts"
import { makeWorker, off } from "../tasks/working.ts"
import { suite } from "../../support/suite.ts"
import { flowing, until, untilTrue } from "../../support/until.ts"

const reads = (requests: ReadonlyArray<string>, resource: string) =>
  requests.filter((request) => request.startsWith(`GET /${resource}`))

/** A source without a delivery log. */
const noLog = new SourceError({
  reason: new NotImplemented({ detail: "no such log" }),
  request: { method: "GET", path: "/webhooks/1/deliveries", requestId: null }
})

suite("reconcile of unobserved delivery gaps", warehouse, (test) => {
  test("reports a delivery log that is too long to be read, and reads for it at most once an hour", function* () {
    const { company, gaps, detail, advance, requests, check } = yield* settled()
    const { endless, pages } = endlessLog(company)
    const overflowing = Reconcile.reconcile(endless, { url: receiver })
    const first = yield* overflowing
    assert.strictEqual(pages(), 200)
    assert.deepStrictEqual(causes((first as Reconcile.ReconcileReport).closed), [
      "customers unobserved",
      "items unobserved"
    ])
    assert.match(yield* detail, /more was delivered since the last check than a check reads/)
    const before = requests.length
    for (let looks = 0; looks < 2; looks += 1) {
      yield* advance(900)
      yield* overflowing
    }
    assert.isEmpty(reads(requests.slice(before), "customers"))
    assert.deepStrictEqual(causes(yield* gaps), ["customers unobserved", "items unobserved"])
    yield* advance(1_900)
    assert.lengthOf((yield* check).closed, 2)
  })

  test("closes the gap of a dropped cancellation only after a full scan", function* () {
    const names = ["orderlines.created", "orderlines.updated", "orderlines.cancelled"]
    const { call, advance, cycles, server, receives, check, sync, equal, gaps, requestsOf, company, companyId, sql } =
      yield* settled({ resources: ["orderlines"], events: names })
    const { lines } = order(call)
    yield* sync("orderlines")
    yield* cycles(1)
    yield* check
    yield* advance(60)
    server.reply(() => 503)
    assert.strictEqual(call("DELETE", `/orderlines/${String(lines[1]!["id"])}`).status, 200)
    yield* cycles(3)
    receives()
    assert.isFalse(yield* equal("orderlines"))
    // Another run reads only changes, and the reads of reconcile fail.
    const blind = { ...company, connector: { ...company.connector, page: () => Effect.fail(noLog) } }
    yield* Reconcile.reconcile(blind, { url: receiver })
    yield* sync("orderlines")
    assert.deepStrictEqual(yield* DeliveryGaps.closeCovered(company.name, companyId, 0), [])
    assert.lengthOf(yield* gaps, 1)
    yield* advance(120)
    const { result, requests } = yield* requestsOf(check)
    assert.deepStrictEqual(causes(result.closed), ["orderlines event_lost"])
    assert.isTrue(reads(requests, "orderlines").every((request) => !request.includes("modifiedsince")))
    assert.isTrue(yield* equal("orderlines"))
    // A period in which a cancellation may have fired needs a full scan too; an incremental run does not close it.
    call(
      "PATCH",
      `/webhooks/${
        (yield* sql<{ id: string }>`
          select subscription_id as id from tributary.subscriptions where company = ${company.name}`)[0]!.id
      }`,
      {
        paused: true
      }
    )
    yield* check
    const [window] = yield* sql<{ full: boolean }>`
          select requires_full_scan as full from tributary.delivery_gaps where company = ${company.name} and closed_at is null`
    assert.isTrue(window!.full)
  })

  test("opens a gap when the failure count was reset without a delivery", function* () {
    const { check, customer, item, cycles, server, advance, call, id, receives, equal, detail } = yield* settled()
    server.reply(() => 503)
    customer("FAILS")
    yield* cycles(1)
    yield* advance(60)
    assert.strictEqual((yield* check).opened, 0)
    call("PATCH", `/webhooks/${id}`, { enabled: false })
    item("UNHEARD")
    receives()
    call("PATCH", `/webhooks/${id}`, { enabled: true })
    yield* advance(60)
    assert.deepStrictEqual(causes((yield* check).closed), [
      "customers subscription_inactive",
      "items subscription_inactive"
    ])
    assert.match(yield* detail, /was disabled for a while/)
    assert.isTrue((yield* equal("customers")) && (yield* equal("items")))
    assert.strictEqual((yield* check).opened, 0)
  })

  test("opens a gap for a dropped event after a later event or after the last retry", function* () {
    for (const isFollowed of [true, false]) {
      const { check, customer, item, cycles, server, advance, call, id, receives, equal, detail } = yield* settled()
      yield* advance(60)
      server.reply(() => 503)
      customer("TRIED ONCE")
      item("BEHIND")
      yield* cycles(1)
      receives()
      // Between two checks.
      call("PATCH", `/webhooks/${id}`, { paused: true })
      yield* advance(60)
      yield* cycles(1)
      call("PATCH", `/webhooks/${id}`, { paused: false })
      assert.strictEqual((yield* check).opened, 0)
      assert.isFalse(yield* equal("items"))
      if (isFollowed) {
        customer("LATER")
        yield* cycles(1)
      } else {
        yield* advance(3_700)
      }
      assert.deepStrictEqual(causes((yield* check).closed), ["customers event_lost", "items event_lost"])
      assert.match(yield* detail, /the source dropped 1 event before the attempts were used up, and the events behind/)
      assert.isTrue((yield* equal("items")) && (yield* equal("customers")))
      yield* advance(3_700)
      assert.strictEqual((yield* check).opened, 0)
    }
  })

  test("reports a period without readable subscriptions, and reads what may have been dropped", function* () {
    const { checkOften, company, customer, server, advance, gaps, equal, receives, call, id, name } = yield* settled()
    const subscription = Effect.map(Webhooks.read, (all) => all.find((one) => one.company === name)!.subscriptions[0]!)
    server.control("POST", "/faults", { rules: [{ path: "/webhooks", kind: "status", status: 401 }] })
    yield* advance(300)
    assert.strictEqual((yield* Effect.exit(checkOften))._tag, "Failure")
    assert.deepStrictEqual(yield* gaps, [])
    assert.isNotNull((yield* subscription).problem)
    assert.isNotNull((yield* subscription).remedy)
    yield* advance(3 * 3600)
    for (let looks = 0; looks < 2; looks += 1) assert.strictEqual((yield* Effect.exit(checkOften))._tag, "Failure")
    assert.deepStrictEqual(lastingCauses(yield* gaps), ["customers unobserved", "items unobserved"])
    server.control("POST", "/faults", { rules: [] })
    // The source has dropped an event without an entry in its log.
    call("PATCH", `/webhooks/${id}`, { paused: true })
    customer("DROPPED")
    call("PATCH", `/webhooks/${id}`, { paused: false })
    receives()
    assert.lengthOf((yield* checkOften).closed, 2)
    assert.isTrue(yield* equal("customers"))
    assert.isNull((yield* subscription).problem)

    // The list of subscriptions is readable, and the log is not.
    const blind = withSubscriptions(company, () => ({ deliveries: () => Effect.fail(noLog) }))
    const often = Reconcile.reconcile(blind, { url: receiver, checkInterval: Duration.minutes(5) })
    yield* advance(1_200)
    for (let looks = 0; looks < 2; looks += 1) {
      const result = yield* often
      assert.isTrue(result._tag === "Checked" && /cannot be read.*leave it out/.test(result.notes.join()))
      assert.isTrue((yield* gaps).every(({ cause, lasts }) => cause === "unobserved" && lasts))
      assert.lengthOf(yield* gaps, 2)
    }
    assert.match((yield* subscription).problem!, /no such log/)
    assert.lengthOf((yield* checkOften).closed, 2)
    assert.isNull((yield* subscription).problem)
  })

  test("reports a missing scope until the token has it again", function* () {
    const { company, gaps, check } = yield* settled()
    const scopes = ["setup:read", "setup:write", "customers:read"]
    const identify = Effect.map(company.connector.identify, (identity) => ({ ...identity, scopes }))
    const less = { ...company, connector: { ...company.connector, identify } }
    for (let looks = 0; looks < 2; looks += 1) {
      const result = yield* Reconcile.reconcile(less, { url: receiver })
      assert.isTrue(result._tag === "Checked" && /lacks the scope \w+:read/.test(result.notes.join()))
      assert.deepStrictEqual(lastingCauses(yield* gaps), ["items subscription_inactive"])
    }
    assert.deepStrictEqual(causes((yield* check).closed), ["items subscription_inactive"])
  })

  test("reads at once after a pause, and closes the gap after a second read past the overlap", function* () {
    const { check, customer, equal, gaps, call, id, advance, requestsOf, sync } = yield* world({
      overlap: Duration.seconds(300)
    })
    yield* check
    yield* advance(301)
    assert.strictEqual((yield* check).open, 0)
    call("PATCH", `/webhooks/${id}`, { paused: true })
    yield* check
    customer("WHILE PAUSED")
    call("PATCH", `/webhooks/${id}`, { paused: false })
    const resumed = yield* check
    assert.deepStrictEqual([resumed.closed, resumed.open, resumed.repaired.length], [[], 2, 2])
    assert.isTrue(yield* equal("customers"))
    assert.match((yield* gaps)[0]!.reason!, /one more scan closes it/)
    yield* advance(200)
    assert.isEmpty(reads((yield* requestsOf(check)).requests, "customers"))
    yield* advance(101)
    // Another run reads the resource after the overlap.
    yield* sync("customers")
    const late = yield* requestsOf(check)
    assert.deepStrictEqual([late.result.closed.length, late.result.open], [2, 0])
    assert.isEmpty(reads(late.requests, "customers"))
    assert.isAbove(reads(late.requests, "items").length, 0)
  })

  test("continues checks and other reads while the read of one resource hangs", function* () {
    const { company, name, sql } = yield* settled()
    yield* DeliveryGaps.open(name, [gapOf("customers"), gapOf("items", { requiresFullScan: true })])
    const reading = yield* Deferred.make<void>()
    let looks = 0
    const slow = withSubscriptions(company, (inner) => ({
      list: Effect.andThen(
        Effect.sync(() => (looks += 1)),
        inner.list
      )
    }))
    const { connector } = slow
    const page: typeof connector.page = (request) =>
      request.resource.path === "items"
        ? connector.page(request)
        : Effect.andThen(Deferred.succeed(reading, undefined), Effect.never)
    const hanging = { ...slow, connector: { ...connector, page } }
    const checks = { interval: Duration.millis(20), urlOf: () => receiver }
    const worker = yield* makeWorker(() => off, { checks })
    yield* worker.own(hanging)
    const fiber = yield* Effect.forkChild(worker.run)
    yield* flowing(Deferred.await(reading))
    const before = looks
    yield* untilTrue("further checks", () => looks >= before + 3)
    // Another process does not read the resource as well.
    const other = yield* flowing(Reconcile.reconcile(company, { url: receiver }))
    assert.isTrue(other._tag === "Checked" && other.repaired.every(({ resource }) => resource === "items"))
    // Gaps that need a full scan are read while the other read hangs.
    const open = sql<{ resource: string }>`
          select resource from tributary.delivery_gaps where company = ${name} and cause = 'event_lost' and closed_at is null order by 1`
    yield* until("the read of the other gap", open, (rows) => rows.length === 1)
    yield* Fiber.interrupt(fiber)
    assert.deepStrictEqual(yield* open, [{ resource: "customers" }])
  })

  test("keeps the backoff of a growing gap, and limits the share of full scans", function* () {
    const { name, companyId, sql, sync } = yield* settled()
    const gap = gapOf("items", { subscriptionId: "1", cause: "event_lost" })
    yield* DeliveryGaps.open(name, [{ ...gap, events: ["a"] }])
    for (let tries = 0; tries < 3; tries += 1) {
      yield* sql`update tributary.delivery_gaps set next_attempt_at = tributary.now() where company = ${name}`
      yield* DeliveryGaps.recordReadFailure(name, "items", "the source is away")
    }
    yield* DeliveryGaps.open(name, [{ ...gap, events: ["b"] }])
    const [grown] = yield* sql<{ attempts: number; due: boolean; events: ReadonlyArray<string> }>`
          select attempts, next_attempt_at <= tributary.now() as due, events from tributary.delivery_gaps where company = ${name} and cause = 'event_lost'`
    assert.deepStrictEqual(grown, { attempts: 3, due: false, events: ["a", "b"] })
    // The lasting gap ends: the read is due at once.
    yield* DeliveryGaps.open(name, [{ ...gap, resource: "customers", cause: "unobserved", lasts: true, events: [] }])
    yield* DeliveryGaps.open(name, [{ ...gap, resource: "customers", cause: "unobserved", events: [] }])
    assert.deepStrictEqual(yield* DeliveryGaps.dueResources(name), ["customers"])

    const { runId } = yield* sync("items")
    yield* sql`update tributary.runs set kind = 'full', started_at = tributary.now() - interval '2 min',
          finished_at = tributary.now() - interval '1 min' where id = ${runId}`
    const waitMs = yield* DeliveryGaps.fullScanDelay(companyId, "items", 1 / 3, null)
    assert.isTrue(waitMs > 55_000 && waitMs <= 60_000, String(waitMs))
    yield* sql`update tributary.runs set requests = 60 where id = ${runId}`
    assert.isAbove(yield* DeliveryGaps.fullScanDelay(companyId, "items", 1 / 3, 10), 15 * 60_000)
    // A run was active when the machine stopped for a week.
    yield* sql`insert into tributary.runs (company_id, resource, lane, kind, status, fence, started_at, finished_at)
          values (${companyId}, 'items', 'live', 'full', 'abandoned', 99, tributary.now() - interval '7 days', tributary.now())`
    assert.isAtMost(yield* DeliveryGaps.fullScanDelay(companyId, "items", 1 / 3, null), 60_000)
  })

  test("re-enables a subscription whose test event reached the inbox, and waits after a failure", function* () {
    const { check, company, call, id, requests, gaps } = yield* world({ events: customers })
    subscribe(call, events)
    yield* check
    call("PATCH", `/webhooks/${id}`, { enabled: false })
    // The event is in the inbox, whatever the response reports (H-14).
    const unread = withSubscriptions(company, (inner) => ({
      test: (one) => Effect.map(inner.test(one), (result) => ({ ...result, delivered: false, responseCode: null }))
    }))
    const result = yield* flowing(Reconcile.reconcile(unread, { url: receiver }))
    assert.isTrue(result._tag === "Checked" && result.reenabled.join() === id)
    assert.deepStrictEqual(yield* gaps, [])
    // After a failure it is not tested again for a while.
    call("PATCH", `/webhooks/${id}`, { enabled: false })
    const failing = withSubscriptions(company, () => ({ update: () => Effect.fail(noLog) }))
    const tests = () => requests.filter((request) => request.endsWith("/test")).length
    const before = tests()
    for (let looks = 0; looks < 3; looks += 1) yield* flowing(Reconcile.reconcile(failing, { url: receiver }))
    assert.strictEqual(tests(), before + 1)
  })
})
