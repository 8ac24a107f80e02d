import { assert, describe } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Redacted } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { Database } from "../../../src/postgres/Database.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import { makeGate } from "../../support/gate.ts"
import { layerWarehouse as warehouse, sql } from "../../support/postgres.ts"
import { store } from "../../support/storing.ts"
import { flowing, settled, turn, until } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"
import { assertCount } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

let companies = 0
/** A new company for each test, so that tests share a database and no row. */
const newCompany = () => `company_${(companies += 1)}`

const event = (company: string, eventId: string, more: Partial<InboxWriter.NewEvent> = {}): InboxWriter.NewEvent => ({
  company,
  eventId,
  eventType: "orders.updated",
  resource: "orders",
  recordId: "17",
  stamp: "2026-01-02T03:04:05.123Z",
  occurredAt: "2026-01-02T03:04:05Z",
  sentAt: 1_800_000_000,
  body: new TextEncoder().encode(`{"id":"${eventId}"}`),
  ...more
})

const countOf = Effect.fnUntraced(function* (company: string) {
  const [row] = yield* sql<{ readonly count: bigint }>`
    select count(*) as count from tributary.inbox where company = ${company}`
  return Number(row!.count)
})

/** Waits until this holds, while the test clock moves. */
/** Connections have a time limit: the test clock is never faster than that of the machine. */
const becomes = <E, R>(what: string, question: Effect.Effect<boolean, E, R>) =>
  until(what, question, (holds) => holds, undefined, 1)
const shows = (what: string, check: () => boolean) => becomes(what, Effect.sync(check))
const untilTaken = (inbox: InboxWriter.InboxWriter) =>
  shows("a writer takes the event", () => inbox.stats().waiting === 0)
const untilConnected = (inbox: InboxWriter.InboxWriter) =>
  shows("both connections are open", () => inbox.stats().writersUp === 2)

/** Asserts that the event is not stored, and answers how long that took by the test clock. */
const failed = <A, E, R>(storing: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    assert.strictEqual((yield* Effect.result(storing))._tag, "Failure")
    return (yield* Clock.currentTimeMillis) - began
  })

/** Offers an event while the clock moves: a statement waits for more events. */
const put = (inbox: Pick<InboxWriter.InboxWriter, "put">, one: InboxWriter.NewEvent) => flowing(store(inbox, one))

suite("InboxWriter", warehouse, (test) => {
  describe("storing", () => {
    test("stores every field of an event byte for byte", function* () {
      const inbox = yield* InboxWriter.make()
      const company = newCompany()
      const body = Uint8Array.from({ length: 300 }, (_, index) => index % 256)
      const odd = `Zürich 'quoted' "twice" \\ {1,2} NULL 🚢`
      assert.strictEqual(
        yield* put(inbox, event(company, odd, { body, stamp: odd, eventType: odd, recordId: "9223372036854775807" })),
        "stored"
      )
      const nothing = { resource: null, recordId: null, stamp: null, occurredAt: null, body: new Uint8Array() }
      assert.strictEqual(yield* put(inbox, event(company, "NULL", nothing)), "stored")
      const rows = yield* sql`
          select event_id, event_type, resource, record_id, record_modified_at as stamp, occurred_at::text, sent_at::text, body, state, attempts,
                 next_attempt_at <= tributary.now() as is_due
            from tributary.inbox where company = ${company} order by id`
      const common = { state: "pending", attempts: 0, is_due: true, sent_at: "2027-01-15 08:00:00+00" }
      assert.deepStrictEqual(
        rows.map((row): Record<string, unknown> => ({ ...row, body: [...(row["body"] as Uint8Array)] })),
        [
          {
            ...common,
            event_id: odd,
            event_type: odd,
            resource: "orders",
            record_id: "9223372036854775807",
            stamp: odd,
            occurred_at: "2026-01-02 03:04:05+00",
            body: [...body]
          },
          {
            ...common,
            event_id: "NULL",
            event_type: "orders.updated",
            resource: null,
            record_id: null,
            stamp: null,
            occurred_at: null,
            body: []
          }
        ]
      )
    })

    test("recognises a repeated event of a company across batches, writers and processes", function* () {
      const inbox = yield* InboxWriter.make()
      const other = yield* InboxWriter.make()
      const [company, second] = [newCompany(), newCompany()]
      const offered = Array.from({ length: 400 }, (_, index) => ({
        inbox: index % 3 === 0 ? other : inbox,
        event: event(index % 2 === 0 ? company : second, `evt_${index % 40}`)
      }))
      const outcomes = yield* flowing(
        Effect.forEach(offered, (one) => store(one.inbox, one.event), { concurrency: "unbounded" })
      )
      assertCount(outcomes, (one) => one === "stored", 40)
      assert.strictEqual(yield* put(inbox, event(company, "evt_0")), "known")
      assert.strictEqual((yield* countOf(company)) + (yield* countOf(second)), 40)
    })

    test("stores all waiting events in one statement and keeps their order", function* () {
      const inbox = yield* InboxWriter.make({ writers: 1 })
      const company = newCompany()
      yield* flowing(inbox.probe)
      const before = inbox.stats().batches
      const ids = Array.from({ length: 900 }, (_, index) => `evt_${index}`)
      yield* flowing(Effect.forEach(ids, (id) => store(inbox, event(company, id)), { concurrency: "unbounded" }))
      assert.isAtMost(inbox.stats().batches - before, 2)
      const rows = yield* sql<{ readonly event_id: string }>`
          select event_id from tributary.inbox where company = ${company} order by id`
      assert.deepStrictEqual(valuesOf(rows, "event_id"), ids)
    })

    test("tells the companies of new events, and not those of known ones", function* () {
      const told: Array<string> = []
      const inbox = yield* InboxWriter.make({ onStored: (companies) => told.push(...companies) })
      const company = newCompany()
      for (let times = 0; times < 2; times += 1) yield* put(inbox, event(company, "evt_1"))
      assert.deepStrictEqual(told, [company])
    })

    test("rejects an event that Postgres cannot store, and stores the other events of the batch", function* () {
      const inbox = yield* InboxWriter.make({ writers: 1 })
      const company = newCompany()
      const bad = [
        event(company, "a\u0000b"),
        event(company, "not a time", { occurredAt: "yesterday-ish" }),
        event(company, Array.from({ length: 9_000 }, (_, index) => (index * 7919).toString(36)).join(""))
      ]
      const good = Array.from({ length: 60 }, (_, index) => event(company, `evt_${index}`))
      const offered = [...good.slice(0, 20), bad[0]!, ...good.slice(20, 40), bad[1]!, bad[2]!, ...good.slice(40)]
      const outcomes = yield* flowing(
        Effect.forEach(offered, (one) => Effect.result(store(inbox, one)), { concurrency: "unbounded" })
      )
      for (const [index, outcome] of outcomes.entries()) {
        const isBad = bad.includes(offered[index]!)
        if (outcome._tag === "Success") assert.isFalse(isBad)
        else assert.deepStrictEqual([isBad, outcome.failure.reason], [true, "refused"])
      }
      assert.strictEqual(yield* countOf(company), 60)
      assert.strictEqual(inbox.stats().refused, 3)
    })

    test("commits durably when the database has synchronous_commit off", function* () {
      const [{ name } = { name: "" }] = yield* sql<{ readonly name: string }>`select current_database() as name`
      const company = newCompany()
      yield* sql.unsafe(`create table public.seen (setting text)`)
      yield* sql.unsafe(`create function public.see() returns trigger language plpgsql as $$
          begin insert into public.seen values (current_setting('synchronous_commit')); return new; end $$`)
      yield* sql.unsafe(`create trigger see before insert on tributary.inbox
          for each row when (new.company = '${company}') execute function public.see()`)
      for (const [value, expected] of [
        ["off", "on"],
        ["remote_apply", "remote_apply"]
      ] as const) {
        yield* sql.unsafe(`alter database ${name} set synchronous_commit = ${value}`)
        yield* Effect.scoped(Effect.flatMap(InboxWriter.make(), (inbox) => put(inbox, event(company, value))))
        const [row] = yield* sql<{ readonly setting: string }>`select setting from public.seen`
        assert.strictEqual(row?.setting, expected)
        yield* sql`truncate public.seen`
      }
      yield* sql.unsafe(`alter database ${name} reset synchronous_commit`)
      yield* sql.unsafe(`drop function public.see cascade`)
    })
  })
})

suite("InboxWriter with a faulty warehouse", warehouse, (test) => {
  /** The database behind a gate. The queries of the test itself bypass it. */
  const guarded = Effect.gen(function* () {
    const { endpoint } = yield* Database
    const { host, port, user, password, database } = endpoint
    const gate = yield* makeGate(
      Redacted.make(`postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`)
    )
    return { gate, database: Database.layerUrl(gate.url) }
  })

  /** A writer behind a gate that has stored an event, and what is done with further events of its company. */
  const connected = Effect.fnUntraced(function* (options: InboxWriter.InboxOptions = {}) {
    const { gate, database } = yield* guarded
    const inbox = yield* InboxWriter.make(options).pipe(Effect.provide(database))
    const company = newCompany()
    const put = (id: string) => store(inbox, event(company, id))
    yield* flowing(put("evt_0"))
    const recovered = becomes("the warehouse is reachable", Effect.isSuccess(flowing(put("after"))))
    return { gate, inbox, company, put, recovered }
  })

  test("fails within 4.5 s while the warehouse is unreachable, also at start, and recovers automatically", function* () {
    const { gate, database } = yield* guarded
    yield* gate.shut
    const inbox = yield* InboxWriter.make().pipe(Effect.provide(database))
    const company = newCompany()
    const put = (id: string) => store(inbox, event(company, id))
    assert.isBelow(yield* flowing(failed(put("early"))), 4_500)
    yield* gate.open
    yield* becomes("the first event is stored", Effect.isSuccess(flowing(put("first"))))
    yield* untilConnected(inbox)

    yield* gate.shut
    assert.isBelow(yield* flowing(failed(put("alone"))), 4_500)
    // Events are offered continuously during the outage. Each gets an outcome, none is lost, and none counts as
    // stored.
    const during = yield* flowing(
      Effect.forEach(
        Array.from({ length: 50 }, (_, index) => `down_${index}`),
        (id) => failed(put(id)),
        { concurrency: 5 }
      )
    )
    assert.isBelow(Math.max(...during), 4_500)
    assert.strictEqual((yield* flowing(Effect.flip(inbox.probe))).reason, "away")
    assert.isNotNull(inbox.stats().failing)
    yield* gate.open
    yield* becomes("the warehouse is reachable", Effect.isSuccess(flowing(inbox.probe)))
    assert.strictEqual(yield* flowing(put("after")), "stored")
    assert.isNull(inbox.stats().failing)
    assert.strictEqual(yield* countOf(company), 2)
  })

  test("replaces connections that were lost while idle without failing an event", function* () {
    const { gate, inbox, company, put } = yield* connected()
    yield* untilConnected(inbox)
    yield* gate.shut
    yield* gate.open
    assert.strictEqual(yield* flowing(put("alone")), "stored")
    // A connection that is still being opened would not be idle.
    yield* untilConnected(inbox)
    yield* gate.shut
    yield* gate.open
    const ids = Array.from({ length: 19 }, (_, index) => `evt_${index + 1}`)
    const outcomes = yield* flowing(Effect.forEach(ids, put, { concurrency: "unbounded" }))
    assert.deepStrictEqual(new Set(outcomes), new Set(["stored"]))
    assert.strictEqual(yield* countOf(company), 21)
  })

  test("abandons a statement that hangs, fails waiting and new events quickly, and opens another connection", function* () {
    const { gate, inbox, company, put, recovered } = yield* connected({
      connectTimeout: Duration.millis(600),
      answerTimeout: Duration.millis(300)
    })
    yield* untilConnected(inbox)
    yield* gate.hang
    // The writers are not synchronised: one of them begins later.
    const waitTimes: Array<number> = []
    const events = 64
    for (let number = 0; number < events; number++) {
      yield* Effect.forkChild(Effect.map(failed(put(`hung_${number}`)), (ms) => waitTimes.push(ms)))
      yield* TestClock.adjust(25)
      yield* turn
    }
    yield* shows("every event has its outcome", () => waitTimes.length === events)
    // One response and one connection take 0.9 s, another connection 1.5 s.
    assert.isBelow(Math.max(...waitTimes), 1_400)
    // By then the connection is known to have failed, so no event waits for it.
    assert.isBelow(Math.max(...waitTimes.slice(-10)), 100)
    yield* gate.open
    yield* recovered
    assert.isAtLeast(yield* countOf(company), 2)
  })

  test("starts no insert or retry for an event that has waited longer than waitMax", function* () {
    const { gate, inbox, company } = yield* connected({ writers: 1, waitMax: Duration.millis(750) })
    const outcomes: Record<string, string> = {}
    const offer = (id: string) =>
      inbox.put(event(company, id), (outcome) => {
        outcomes[id] = typeof outcome === "string" ? outcome : outcome.reason
      })
    yield* gate.hang
    offer("in flight")
    yield* untilTaken(inbox)
    offer("waits for long")
    yield* TestClock.adjust(900)
    offer("waits a little")
    assert.deepStrictEqual(outcomes, {})
    yield* gate.open
    yield* settled(
      "the events have their outcomes",
      Effect.andThen(
        TestClock.adjust(1),
        Effect.sync(() => Object.keys(outcomes).length)
      ),
      (count) => count === 3
    )
    assert.deepStrictEqual(outcomes, { "in flight": "stored", "waits for long": "away", "waits a little": "stored" })

    yield* gate.hang
    offer("lost late")
    yield* untilTaken(inbox)
    yield* TestClock.adjust(900)
    yield* gate.shut
    yield* gate.open
    yield* shows("the event has its outcome", () => outcomes["lost late"] !== undefined)
    assert.strictEqual(outcomes["lost late"], "away")
    assert.strictEqual(inbox.stats().waitingBytes, 0)
  })

  test("answers concurrent probes with one statement", function* () {
    const { gate, database } = yield* guarded
    yield* gate.hang
    const inbox = yield* InboxWriter.make({ waitingMax: 2 }).pipe(Effect.provide(database))
    const probes = yield* Effect.forkChild(
      Effect.all(
        Array.from({ length: 50 }, () => inbox.probe),
        { concurrency: "unbounded" }
      )
    )
    yield* settled(
      "the probes are waiting",
      () => inbox.stats().waiting,
      (waiting) => waiting > 0
    )
    assert.strictEqual(inbox.stats().waiting, 1)
    const beside = yield* Effect.forkChild(store(inbox, event(newCompany(), "beside")))
    yield* gate.open
    yield* flowing(Fiber.join(probes))
    assert.strictEqual(yield* flowing(Fiber.join(beside)), "stored")
    assert.isAtMost(inbox.stats().batches, 2)
  })

  test("waits for a table lock until answerTimeout, and stores a retried event once", function* () {
    const { company, put, recovered } = yield* connected({ answerTimeout: Duration.millis(400) })
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`lock table tributary.inbox in access exclusive mode`
        assert.isBelow(yield* flowing(failed(put("after"))), 5_000)
      })
    )
    yield* recovered
    assert.strictEqual(yield* countOf(company), 2)
  })

  test("limits the number and bytes of waiting events, and rejects further ones immediately", function* () {
    const { gate, inbox, company } = yield* connected({ writers: 1, waitingMax: 10, waitingBytesMax: 1_000_000 })
    yield* gate.hang
    const full: Array<string> = []
    const stored: Array<string> = []
    const offer = (id: string, more: Partial<InboxWriter.NewEvent> = {}) =>
      inbox.put(event(company, id, more), (outcome) => {
        if (typeof outcome === "string") stored.push(id)
        else full.push(outcome.reason)
      })
    // The writer takes one event and waits for the response.
    offer("w1")
    yield* untilTaken(inbox)
    for (let number = 0; number < 15; number++) offer(`many_${number}`)
    assert.deepStrictEqual(full, ["full", "full", "full", "full", "full"])
    yield* gate.open
    yield* shows("the waiting events are stored", () => stored.length === 11)
    yield* gate.hang
    offer("w2")
    yield* untilTaken(inbox)
    for (let number = 0; number < 3; number++) offer(`large_${number}`, { body: new Uint8Array(600_000) })
    assert.lengthOf(full, 7)
    yield* gate.open
    yield* shows("the waiting events are stored", () => stored.length === 13)
    assert.strictEqual(yield* countOf(company), 14)
  })

  test("fails waiting and later events when it is closed", function* () {
    const { gate, database } = yield* guarded
    const reasons: Array<string> = []
    const note = (outcome: InboxWriter.Outcome) => reasons.push(typeof outcome === "string" ? outcome : outcome.reason)
    const inbox = yield* Effect.scoped(
      Effect.gen(function* () {
        const one = yield* InboxWriter.make().pipe(Effect.provide(database))
        yield* flowing(one.probe)
        yield* gate.hang
        for (let number = 0; number < 5; number++) one.put(event("x", `evt_${number}`), note)
        yield* untilTaken(one)
        one.put(event("x", "evt_6"), note)
        yield* gate.shut
        return one
      })
    )
    inbox.put(event("x", "evt_7"), note)
    assert.lengthOf(reasons, 7)
    assert.isTrue(reasons.every((reason) => reason === "ended" || reason === "away"))
  })
})
