/**
 * The inbox worker against the reference server and Postgres: its requests for each kind of event, and the outcome of
 * the events under faults.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Priority } from "../../../src/budget/Budget.ts"
import { execute } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import * as InboxStore from "../../../src/inbox/InboxStore.ts"
import { until } from "../../support/until.ts"
import { processDue, processEvents } from "../tasks/working.ts"
import { makeStand, many, one, placed, stand, states } from "./working.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

suite("the inbox worker", stand, (test) => {
  test("resolves all events of a record with one read, and loads no value from their bodies", function* () {
    const { put, accept, inbox, requests, rows, sql, handle } = yield* makeStand(["salesmen"])
    yield* put("salesmen", [one(1, "as the source has it"), one(2, "other")])
    yield* requests
    for (let at = 0; at < 5; at += 1) yield* accept("salesmen.updated", one(1, "forged"))
    const worked = yield* handle("salesmen.created", one(2, "forged"))
    assert.deepStrictEqual(worked, { done: 6, dead: 0, ignored: 0, postponed: 0 })
    assert.deepStrictEqual((yield* requests).sort(), ["/salesmen/1", "/salesmen/2"])
    const stored = yield* rows("salesmen")
    assertEach(stored, ({ name, origin }) => `${name} ${origin}`, ["as the source has it webhook", "other webhook"])
    const events = yield* inbox
    const [run] = yield* sql<{ id: bigint; status: string; lane: string; records: bigint }>`
          select id, status, lane, records from tributary.runs where id = ${events[0]!.run_id}`
    assert.deepStrictEqual([run!.status, run!.lane, run!.records], ["done", "records", 2n])
    assert.isTrue(events.every(({ run_id }) => run_id === run!.id))
  })

  test("makes no request when the row is newer than the event, and reads when equally new", function* () {
    const { inbox, requests, putSynced, handle } = yield* makeStand(["salesmen"])
    const [stored] = yield* putSynced("salesmen", [one(1, "a")])
    yield* requests
    yield* handle("salesmen.updated", { ...one(1, "x"), lastchangedate: "2020-01-01T00:00:00Z" })
    assert.deepStrictEqual(yield* requests, [])
    assert.strictEqual((yield* inbox)[0]!.reason, "the warehouse holds a newer version")
    yield* handle("salesmen.updated", { ...one(1, "x"), lastchangedate: stored!["lastchangedate"] })
    assert.deepStrictEqual(yield* requests, ["/salesmen/1"])
    // An invalid timestamp leads to a read.
    yield* handle("salesmen.updated", { ...one(1, "x"), lastchangedate: "2020-02-30T00:00:00Z" })
    assert.deepStrictEqual(yield* requests, ["/salesmen/1"])
    assert.deepStrictEqual(states(yield* inbox), ["done", "done", "done"])
  })

  test("reads the record of a replayed event again", function* () {
    const { accept, drain, requests, name, inbox, putSynced, handle } = yield* makeStand(["salesmen"])
    yield* putSynced("salesmen", [one(1, "a")])
    const old = { ...one(1, "x"), lastchangedate: "2020-01-01T00:00:00Z" }
    const event = yield* accept("salesmen.updated", old)
    yield* handle("salesmen.updated", old)
    yield* requests
    assert.strictEqual(yield* InboxStore.replay(name, { state: "dead_letter" }), 0)
    assert.strictEqual(yield* InboxStore.replay(name, { state: "done", resource: "vendors" }), 0)
    assert.strictEqual(yield* InboxStore.replay(name, { state: "done", since: "2999-01-01T00:00:00Z" }), 0)
    assert.strictEqual(yield* InboxStore.replay(name, { state: "done", eventIds: [event, "evt_none"] }), 1)
    assert.deepStrictEqual(states(yield* inbox), ["pending", "done"])
    yield* drain
    assert.deepStrictEqual(yield* requests, ["/salesmen/1"])
    assert.deepStrictEqual(states(yield* inbox), ["done", "done"])
  })

  test("resolves many events with one scan", function* () {
    const { put, accept, drain, requests, inbox, rows, putSynced } = yield* makeStand(["salesmen"])
    yield* putSynced("salesmen", [one(1, "a")])
    const stored = yield* put("salesmen", many(10, 89))
    for (const record of stored) yield* accept("salesmen.created", record)
    yield* requests
    assert.strictEqual((yield* drain).done, 80)
    const paths = yield* requests
    assert.lengthOf(paths, 1)
    assert.match(paths[0]!, /^\/salesmen\?.*modifiedsince=/)
    assert.lengthOf(yield* rows("salesmen"), 81)
    assert.isTrue((yield* inbox).every(({ state, reason }) => state === "done" && reason !== null))
  })

  test("estimates the length of its next scan from scans of other runs", function* () {
    const { accept, drain, requests, putSynced } = yield* makeStand(["salesmen"])
    yield* putSynced("salesmen", [one(1, "a")])
    yield* putSynced("salesmen", many(10, 309))
    for (const record of many(10, 39)) yield* accept("salesmen.updated", record)
    yield* requests
    assert.strictEqual((yield* drain).done, 30)
    const paths = yield* requests
    assert.lengthOf(paths, 30, "three pages would have been listed for thirty records")
    assert.isTrue(paths.every((path) => /^\/salesmen\/\d+$/.test(path)))
  })

  test("reads records one by one while a full scan is unfinished", function* () {
    const { put, sync, accept, drain, requests, faults, noFaults, sql, id, putSynced } = yield* makeStand(["salesmen"])
    yield* putSynced("salesmen", [one(1, "a")])
    yield* put("salesmen", many(1, 150))
    // A full scan is requested, and it fails after its first page.
    yield* sql`update tributary.checkpoints set full_scan_reason = 'a test' where company_id = ${id}`
    yield* faults({ path: "/salesmen", kind: "status", status: 500, after: 1 })
    const broken = yield* sync("salesmen")
    yield* noFaults
    assert.deepStrictEqual([broken.status, broken.kind, broken.totals.pages], ["failed", "full", 1])
    yield* sql`update tributary.checkpoints set full_scan_reason = null where company_id = ${id}`
    for (const record of many(1, 80)) yield* accept("salesmen.updated", record)
    yield* requests
    assert.strictEqual((yield* drain).done, 80)
    assert.isTrue((yield* requests).every((path) => /^\/salesmen\/\d+$/.test(path)))
  })

  test("reads changes with urgent priority and full scans with live priority", function* () {
    const { put, accept, company, inbox } = yield* makeStand(["orderdeposits"])
    const calls: Array<string> = []
    const noting = (what: string) =>
      Effect.map(Priority, (priority) => {
        calls.push(`${what} ${priority.class}`)
      })
    const { connector } = company
    const drain = processDue({
      ...company,
      connector: {
        ...connector,
        identify: Effect.andThen(noting("identify"), connector.identify),
        page: (request) => Effect.andThen(noting(request.since === null ? "all" : "changes"), connector.page(request))
      }
    })
    yield* put("orderdeposits", [{ id: 1, checkid: "a" }])
    yield* accept("orderdeposits.created", { id: 1 })
    yield* drain
    yield* accept("orderdeposits.updated", { id: 1 })
    yield* drain
    assert.deepStrictEqual(states(yield* inbox), ["done", "done"])
    assert.deepStrictEqual(calls, ["identify urgent", "all live", "identify urgent", "changes urgent"])
  })

  test("processes events while another run has the resource lock", function* () {
    const { id, put, accept, drain, rows, putSynced } = yield* makeStand(["salesmen"])
    yield* putSynced("salesmen", [one(1, "a")])
    const stored = yield* put("salesmen", many(1, 30))
    for (const record of stored) yield* accept("salesmen.updated", record)
    const other = yield* (yield* Database).connect
    yield* execute(other, "hold", "select pg_advisory_lock(hashtextextended($1, 0))", [`tributary:${id}:salesmen`])
    assert.strictEqual((yield* drain).done, 30)
    assert.lengthOf(yield* rows("salesmen"), 30)
  })

  test("scans a resource whose records cannot be read by number", function* () {
    const { put, accept, drain, requests, inbox, rows, putSynced } = yield* makeStand(["orderdeposits"])
    yield* putSynced("orderdeposits", [{ id: 1, checkid: "a" }])
    const stored = yield* put(
      "orderdeposits",
      [2, 3].map((id) => ({ id, checkid: `n${id}` }))
    )
    yield* requests
    for (const record of stored) yield* accept("orderdeposits.created", record)
    const worked = yield* drain
    assert.deepStrictEqual([worked.done, worked.postponed], [2, 0])
    assert.lengthOf(yield* requests, 1)
    assert.deepStrictEqual(valuesOf(yield* rows("orderdeposits"), "name"), ["a", "n2", "n3"])
    // An event of a record that the source does not show yet waits.
    yield* accept("orderdeposits.created", { id: 4 })
    assert.deepStrictEqual(
      [(yield* drain).postponed, (yield* inbox)[2]!.reason],
      [1, "the source does not show the record yet"]
    )
  })

  test("scans a resource without number and cursor in full at most once a minute", function* () {
    const { put, sync, accept, requests, inbox, rows, company, id, name, sql, putSynced, handle } = yield* makeStand([
      "assetcategories"
    ])
    yield* putSynced("assetcategories", [one(1, "a")])
    yield* put("assetcategories", [one(2, "b")])
    yield* requests
    yield* accept("assetcategories.created", one(2, "x"))
    const worker = yield* Effect.forkChild(processEvents(company))
    // The event waits, and a read of another run resolves it in the meantime.
    yield* sync("assetcategories")
    yield* until("the inbox", inbox, ([first]) => first!.state === "done")
    yield* Fiber.interrupt(worker)
    assert.lengthOf(yield* requests, 1)
    // An event that comes later than that is answered at once.
    yield* sql`update tributary.checkpoints set full_scan_at = full_scan_at - interval '1 minute' where company_id = ${id}`
    yield* InboxStore.replay(name, { state: "done" })
    yield* handle("assetcategories.updated", one(1, "x"))
    assert.lengthOf(yield* requests, 1)
    assert.strictEqual((yield* rows("assetcategories")).length, 2)
  })

  test("reads only the children of the parent that the event names", function* () {
    const { put, sync, requests, inbox, rows, handle } = yield* makeStand(["vendors", "vendororderfroms"])
    yield* put("vendors", [one(1, "v1"), one(2, "v2")])
    yield* put("vendororderfroms", [
      { ...placed(1, "a"), vendorid: 1 },
      { ...placed(2, "b"), vendorid: 2 }
    ])
    yield* sync("vendors")
    yield* sync("vendororderfroms")
    yield* put("vendororderfroms", [{ ...placed(3, "new"), vendorid: 2 }])
    yield* requests
    const worked = yield* handle("vendororderfroms.created", { ...placed(3, "forged"), vendorid: 2 })
    const paths = yield* requests
    assert.lengthOf(paths, 1)
    assert.match(paths[0]!, /^\/vendororderfroms\?.*vendorid=2/)
    assert.deepStrictEqual([worked.done, states(yield* inbox)], [1, ["done"]])
    assert.strictEqual((yield* rows("vendororderfroms"))[2]!.name, "new")
  })

  test("loads a child resource in full once when it was never synced", function* () {
    const { put, requests, inbox, rows, handle } = yield* makeStand(["vendors", "vendororderfroms"])
    yield* put("vendors", [one(1, "v1")])
    yield* put("vendororderfroms", [{ ...placed(1, "a"), vendorid: 1 }])
    yield* requests
    yield* handle("vendororderfroms.created", { ...placed(1, "x"), vendorid: 1 })
    assert.lengthOf(yield* requests, 1)
    assert.deepStrictEqual([(yield* rows("vendororderfroms")).length, states(yield* inbox)], [1, ["done"]])
  })

  test("reads the children of changed parents", function* () {
    const { put, sync, requests, rows, handle } = yield* makeStand(["vendors", "vendororderfroms"])
    yield* put("vendors", [one(1, "v1"), one(2, "v2")])
    yield* put("vendororderfroms", [{ ...placed(1, "a"), vendorid: 1 }])
    yield* sync("vendors")
    yield* sync("vendororderfroms")
    yield* put("vendororderfroms", [{ ...placed(2, "late"), vendorid: 1 }])
    yield* put("vendors", [one(1, "v1 changed")])
    yield* requests
    yield* handle("vendors.updated", one(1, "x"))
    const paths = yield* requests
    assert.strictEqual(paths[0], "/vendors/1")
    assert.match(paths[1]!, /^\/vendororderfroms\?.*vendorid=1/)
    assert.lengthOf(paths, 2)
    assert.lengthOf(yield* rows("vendororderfroms"), 2)
  })

  test("scans the resource for an event without a number, and skips events of unsynced resources", function* () {
    const { put, accept, requests, inbox, rows, putSynced, handle } = yield* makeStand(["salesmen"])
    yield* putSynced("salesmen", [one(1, "a")])
    yield* put("salesmen", [one(2, "b")])
    yield* requests
    yield* accept("salesmen.merged", { something: 2 })
    yield* accept("salesmen.merged", { something: 3 })
    yield* accept("webhooks.test", { webhookid: 1, message: "test" })
    yield* accept("spaceships.created", { id: 1 })
    const worked = yield* handle("vendors.created", { id: 1 })
    assert.deepStrictEqual([worked.done, worked.ignored], [2, 3])
    assert.lengthOf(yield* requests, 1)
    assert.lengthOf(yield* rows("salesmen"), 2)
    const events = yield* inbox
    assert.deepStrictEqual(states(events), ["done", "done", "skipped", "skipped", "skipped"])
    assert.strictEqual(events[2]!.reason, "it names no record")
    assert.strictEqual(events[4]!.reason, "the resource is not synced for this company")
  })

  test("postpones an event of a record that is not visible yet, and soft-deletes a missing record", function* () {
    const { put, accept, drain, inbox, rows, makeDue, control, id, sql, putSynced, handle } = yield* makeStand([
      "salesmen"
    ])
    yield* putSynced("salesmen", [one(1, "a"), one(2, "b")])
    assert.strictEqual((yield* handle("salesmen.created", one(7, "x"))).postponed, 1)
    const [early] = yield* inbox
    assert.deepStrictEqual([early!.state, early!.attempts], ["pending", 0])
    assert.isTrue(early!.wait_ms > 3_000 && early!.wait_ms <= 5_000)
    yield* put("salesmen", [one(7, "visible")])
    yield* makeDue
    yield* drain
    assert.strictEqual((yield* rows("salesmen"))[2]!.name, "visible")

    // A row that was observed recently may be missing from a replica that lags behind. A row that was observed long
    // ago is deleted.
    yield* control("POST", "/remove", { company: id, resource: "salesmen", id: 1 })
    yield* control("POST", "/remove", { company: id, resource: "salesmen", id: 2 })
    yield* sql`update erp.salesmen set _observed_at = _observed_at - interval '1 hour' where _company_id = ${BigInt(id)} and id = 2`
    yield* accept("salesmen.updated", one(1, "x"))
    yield* accept("salesmen.updated", one(2, "x"))
    yield* handle("salesmen.created", one(9, "x"), { ageSeconds: 400 })
    const events = (yield* inbox).slice(1)
    assertEach(events, ({ state, reason }) => [state, reason], [
      ["pending", "the source does not show the record yet"],
      ["done", "the source does not have the record"],
      ["done", "the source does not have the record"]
    ])
    assert.deepStrictEqual(valuesOf(yield* rows("salesmen"), "deleted"), [false, true, false])
    yield* sql`update tributary.inbox set received_at = received_at - interval '400 seconds', next_attempt_at = tributary.now() where state = 'pending'`
    yield* drain
    assert.isTrue((yield* rows("salesmen"))[0]!.deleted)
  })

  test("processes other records while one read is slow, and releases events in flight at shutdown", function* () {
    const { put, accept, inbox, faults, noFaults, company } = yield* makeStand(["salesmen"])
    yield* put("salesmen", [one(1, "a"), one(2, "b"), one(3, "c")])
    yield* faults({ path: "/salesmen/1", kind: "delay", ms: 4_000 })
    yield* accept("salesmen.updated", one(1, "x"))
    yield* accept("salesmen.updated", one(2, "x"))
    const worker = yield* Effect.forkChild(processEvents(company))
    yield* until("the inbox", inbox, (events) => events[1]!.state === "done")
    yield* accept("salesmen.updated", one(3, "x"))
    yield* until("the inbox", inbox, (events) => events[2]!.state === "done")
    yield* Fiber.interrupt(worker)
    yield* noFaults
    assertEach(yield* inbox, ({ state, attempts }) => `${state} ${attempts}`, ["pending 0", "done 0", "done 0"])
  })

  test("makes a dead letter of an event that always fails, and processes the others", function* () {
    const { put, accept, drain, inbox, rows, makeDue, faults, noFaults, name, sql } = yield* makeStand(["salesmen"])
    yield* put("salesmen", [one(1, "a"), one(2, "b"), one(3, "c")])
    yield* faults({ path: "/salesmen/2", kind: "status", status: 500 })
    for (const number of [1, 2, 3]) yield* accept("salesmen.updated", one(number, "x"))
    for (const seconds of [10, 60, 300, 1800, 7200, null]) {
      yield* drain
      const poison = (yield* inbox)[1]!
      assert.strictEqual(poison.state, seconds === null ? "dead_letter" : "pending")
      // The attempt was made within its run.
      const [pause] = yield* sql<{ least: number; most: number }>`
          select extract(epoch from next_attempt_at - finished_at)::float8 as least,
                 extract(epoch from next_attempt_at - started_at)::float8 as most
            from tributary.inbox i join tributary.runs r on r.id = i.run_id where event_id = ${poison.event_id}`
      if (seconds !== null) assert.isTrue(pause!.least <= seconds && seconds <= pause!.most, JSON.stringify(pause))
      yield* makeDue
    }
    yield* noFaults
    const events = yield* inbox
    assert.deepStrictEqual(states(events), ["done", "dead_letter", "done"])
    assert.strictEqual(events[1]!.attempts, 6)
    // The run that failed to read its record ended well: only the event says which one that was.
    const [failed] = yield* sql<{ kind: string; status: string; records: bigint }>`
          select kind, status, records from tributary.runs where id = ${events[1]!.run_id}`
    assert.deepStrictEqual([failed!.kind, failed!.status, Number(failed!.records)], ["fetch", "done", 0])
    assert.notStrictEqual(events[0]!.run_id, events[1]!.run_id)
    assert.include(events[1]!.reason!, "the service failed (500")
    assert.lengthOf(yield* rows("salesmen"), 2)
    assert.strictEqual(yield* InboxStore.replay(name, { state: "dead_letter" }), 1)
    yield* drain
    assert.lengthOf(yield* rows("salesmen"), 3)
  })

  test("counts no attempt while the source is unreachable, and resumes afterwards", function* () {
    const { put, accept, company, inbox, rows, faults, noFaults } = yield* makeStand(["salesmen"])
    let failures = 0
    const noting = <A, E, R>(call: Effect.Effect<A, E, R>) =>
      Effect.tapError(call, () =>
        Effect.sync(() => {
          failures += 1
        })
      )
    const { connector } = company
    const get: typeof connector.get = (...parameters) => noting(connector.get(...parameters))
    yield* put("salesmen", [one(1, "a"), one(2, "b")])
    const worker = yield* Effect.forkChild(
      processEvents({ ...company, connector: { ...connector, get, identify: noting(connector.identify) } })
    )
    // The first event finds the source away before it has identified the company, the second one after that.
    for (const number of [1, 2]) {
      failures = 0
      yield* faults({ kind: "status", status: 503 })
      yield* accept("salesmen.updated", one(number, "x"))
      yield* until(
        "failures",
        () => failures,
        (count) => count > 1
      )
      const event = (yield* inbox)[number - 1]!
      assert.deepStrictEqual([event.state, event.attempts], ["pending", 0])
      yield* noFaults
      yield* until("the inbox", inbox, (events) => events.every(({ state }) => state === "done"))
    }
    yield* Fiber.interrupt(worker)
    assert.isTrue((yield* inbox).every(({ attempts }) => attempts === 0))
    assert.lengthOf(yield* rows("salesmen"), 2)
  })

  test("postpones an event until the source returns the version of the event", function* () {
    const { put, accept, drain, inbox, rows, makeDue } = yield* makeStand(["salesmen"])
    const [stored] = yield* put("salesmen", [one(1, "old")])
    const later = new Date(Date.parse(String(stored!["lastchangedate"])) + 2_000).toISOString()
    yield* accept("salesmen.updated", { ...one(1, "x"), lastchangedate: later })
    yield* accept("salesmen.updated", { ...one(1, "x"), lastchangedate: stored!["lastchangedate"] })
    assert.deepStrictEqual([(yield* drain).postponed, (yield* rows("salesmen"))[0]!.name], [1, "old"])
    const [early, resolved] = yield* inbox
    assert.deepStrictEqual([early!.state, early!.reason], ["pending", "the source still shows an older version"])
    assert.strictEqual(resolved!.state, "done")
    yield* put("salesmen", [{ ...one(1, "new"), lastchangedate: later }])
    yield* makeDue
    yield* drain
    assert.deepStrictEqual([states(yield* inbox), (yield* rows("salesmen"))[0]!.name], [["done", "done"], "new"])
  })

  test("makes dead letters with a remedy of events that the token may not read", function* () {
    const { put, accept, drain, inbox, faults, noFaults, name, requests } = yield* makeStand(["salesmen"])
    yield* put("salesmen", [one(1, "a")])
    const body = JSON.stringify({
      error: { code: "insufficient_scope", message: "This token is missing the required scope: setup:read" }
    })
    yield* faults({
      path: "/salesmen",
      kind: "status",
      status: 403,
      body,
      headers: { "Content-Type": "application/json" }
    })
    yield* requests
    for (const record of many(1, 25)) yield* accept("salesmen.updated", record)
    yield* drain
    yield* noFaults
    const events = yield* inbox
    assert.isTrue(events.every(({ state, attempts }) => state === "dead_letter" && attempts === 0))
    assert.include(events[0]!.reason!, "give the token the scope")
    assert.isTrue(events.every(({ run_id }) => run_id !== null))
    assert.isAtMost((yield* requests).length, 16, "no further request once the missing scope is known")
    assert.strictEqual(yield* InboxStore.replay(name, { state: "dead_letter", eventIds: [events[0]!.event_id] }), 1)
    assert.strictEqual((yield* drain).done, 1)
  })

  test("makes a dead letter of an event of another company", function* () {
    const { put, inbox, requests, handle } = yield* makeStand(["salesmen"])
    yield* put("salesmen", [one(1, "a")])
    yield* requests
    assert.strictEqual((yield* handle("salesmen.updated", one(1, "x"), { companyId: 7 })).dead, 1)
    assert.include((yield* inbox)[0]!.reason!, "the event is of company 7")
    assert.deepStrictEqual(yield* requests, [])
  })

  test("quarantines a record that does not fit, and marks its event done", function* () {
    const { put, inbox, faults, noFaults, sql, id, handle } = yield* makeStand(["salesmen"])
    yield* put("salesmen", [one(1, "a")])
    yield* faults({
      path: "/salesmen/1",
      kind: "status",
      status: 200,
      body: '{"data":{"id":1,"name":"a","commissionrate":"none"}}',
      headers: { "Content-Type": "application/json" }
    })
    yield* handle("salesmen.updated", one(1, "x"))
    yield* noFaults
    const [event] = yield* inbox
    assert.deepStrictEqual([event!.state, event!.reason], ["done", "the record is in quarantine"])
    const quarantined = yield* sql<{ field: string; run_id: bigint }>`
          select field, run_id from tributary.quarantine where company_id = ${BigInt(id)} and resolved_at is null`
    assert.deepStrictEqual([quarantined.length, quarantined[0]!.run_id], [1, event!.run_id])
  })

  test("processes an inbox while two processes work on it, also when one of them stops", function* () {
    const { id, put, accept, inbox, requests, rows, sql, company } = yield* makeStand(["salesmen", "vendors"])
    const records = many(1, 20)
    yield* put("salesmen", records)
    yield* put("vendors", records)
    yield* requests
    /** A worker as in its own process, and the records that it has read. */
    const makeWorker = () => {
      const { connector } = company
      const readPaths: Array<string> = []
      const get: typeof connector.get = (...parameters) => {
        readPaths.push(parameters[0].path)
        return connector.get(...parameters)
      }
      return { readPaths, run: processEvents({ ...company, connector: { ...connector, get } }) }
    }
    const [first, second] = [makeWorker(), makeWorker()]
    const acceptAll = Effect.fnUntraced(function* (some: typeof records) {
      for (const record of some) {
        yield* accept("salesmen.updated", record)
        yield* accept("vendors.updated", record)
      }
    })
    const allDone = until("the inbox", inbox, (events) => events.every(({ state }) => state === "done"))

    const firstFiber = yield* Effect.forkChild(first.run)
    const secondFiber = yield* Effect.forkChild(second.run)
    yield* acceptAll(records.slice(0, 10))
    yield* allDone
    // The worker with the resource stops, and the other one acquires the resource.
    const isFirst = first.readPaths.includes("salesmen")
    yield* Fiber.interrupt(isFirst ? firstFiber : secondFiber)
    yield* acceptAll(records.slice(10))
    yield* allDone
    yield* Effect.forEach([firstFiber, secondFiber], Fiber.interrupt)

    const [ended, stayed] = isFirst ? [first, second] : [second, first]
    const salesmenOf = ({ readPaths }: typeof first) => readPaths.filter((path) => path === "salesmen").length
    assert.isAtLeast(salesmenOf(ended), 1)
    assert.isAtLeast(salesmenOf(stayed), 10)
    // A record may be read twice where both find its event due at the same time.
    const reads = (yield* requests).length
    assert.isTrue(reads >= 40 && reads < 60, `${reads} reads`)
    assert.deepStrictEqual([(yield* rows("salesmen")).length, (yield* rows("vendors")).length], [20, 20])
    assert.lengthOf(yield* sql`select 1 from tributary.runs where company_id = ${id} and status = 'failed'`, 0)
  })
})
