import { assert, describe, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import { Clock, Effect, Fiber, Redacted, Schedule } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { Database } from "../../../src/postgres/Database.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import { makeGate } from "../../support/gate.ts"
import { layerWarehouse as warehouse } from "../../support/postgres.ts"
import { store } from "../../support/storing.ts"

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
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly count: bigint }>`
    select count(*) as count from tributary.inbox where company = ${company}`
  return Number(row!.count)
})

const until = <R>(what: string, check: Effect.Effect<boolean, unknown, R>) =>
  check.pipe(
    Effect.orDie,
    Effect.flatMap((is) => (is ? Effect.void : Effect.fail(`timed out: ${what}`))),
    Effect.retry({ schedule: Schedule.spaced("10 millis"), times: 1_000 })
  )

/** The duration of an effect, and whether it succeeded. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const began = yield* Clock.monotonicTimeNanos
    const exit = yield* Effect.result(effect)
    return { exit, ms: Number((yield* Clock.monotonicTimeNanos) - began) / 1e6 }
  })

layer(warehouse, { excludeTestServices: true, timeout: "30 seconds" })("InboxWriter", (it) => {
  describe("storing", () => {
    it.effect("stores every field of an event byte for byte", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const inbox = yield* InboxWriter.make()
        const company = newCompany()
        const body = Uint8Array.from({ length: 300 }, (_, index) => index % 256)
        const odd = `Zürich 'quoted' "twice" \\ {1,2} NULL 🚢`
        assert.strictEqual(
          yield* store(
            inbox,
            event(company, odd, { body, stamp: odd, eventType: odd, recordId: "9223372036854775807" })
          ),
          "stored"
        )
        const nothing = { resource: null, recordId: null, stamp: null, occurredAt: null, body: new Uint8Array() }
        assert.strictEqual(yield* store(inbox, event(company, "NULL", nothing)), "stored")
        const rows = yield* sql<Record<string, unknown>>`
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
    )

    it.effect("recognises a repeated event of a company across batches, writers and processes", () =>
      Effect.gen(function* () {
        const inbox = yield* InboxWriter.make()
        const other = yield* InboxWriter.make()
        const [company, second] = [newCompany(), newCompany()]
        const offered = Array.from({ length: 400 }, (_, index) => ({
          inbox: index % 3 === 0 ? other : inbox,
          event: event(index % 2 === 0 ? company : second, `evt_${index % 40}`)
        }))
        const outcomes = yield* Effect.forEach(offered, (one) => store(one.inbox, one.event), {
          concurrency: "unbounded"
        })
        assert.lengthOf(
          outcomes.filter((one) => one === "stored"),
          40
        )
        assert.strictEqual(yield* store(inbox, event(company, "evt_0")), "known")
        assert.strictEqual((yield* countOf(company)) + (yield* countOf(second)), 40)
      })
    )

    it.effect("stores all waiting events in one statement and keeps their order", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const inbox = yield* InboxWriter.make({ writers: 1 })
        const company = newCompany()
        yield* inbox.probe
        const before = inbox.stats().batches
        const ids = Array.from({ length: 900 }, (_, index) => `evt_${index}`)
        yield* Effect.forEach(ids, (id) => store(inbox, event(company, id)), { concurrency: "unbounded" })
        assert.isAtMost(inbox.stats().batches - before, 2)
        const rows = yield* sql<{ readonly event_id: string }>`
          select event_id from tributary.inbox where company = ${company} order by id`
        assert.deepStrictEqual(
          rows.map((row) => row.event_id),
          ids
        )
      })
    )

    it.effect("opens the latch for a new event and not for a known one", () =>
      Effect.gen(function* () {
        const inbox = yield* InboxWriter.make()
        const company = newCompany()
        const woken = yield* Effect.forkChild(inbox.arrived.await)
        yield* store(inbox, event(company, "evt_1"))
        yield* Fiber.join(woken)
        yield* inbox.arrived.close
        yield* store(inbox, event(company, "evt_1"))
        assert.isTrue(yield* inbox.arrived.close.pipe(Effect.map((closed) => !closed)))
      })
    )

    it.effect("rejects an event that Postgres cannot store, and stores the other events of the batch", () =>
      Effect.gen(function* () {
        const inbox = yield* InboxWriter.make({ writers: 1 })
        const company = newCompany()
        const bad = [
          event(company, "a\u0000b"),
          event(company, "not a time", { occurredAt: "yesterday-ish" }),
          event(company, Array.from({ length: 9_000 }, (_, index) => (index * 7919).toString(36)).join(""))
        ]
        const good = Array.from({ length: 60 }, (_, index) => event(company, `evt_${index}`))
        const offered = [...good.slice(0, 20), bad[0]!, ...good.slice(20, 40), bad[1]!, bad[2]!, ...good.slice(40)]
        const outcomes = yield* Effect.forEach(offered, (one) => Effect.result(store(inbox, one)), {
          concurrency: "unbounded"
        })
        for (const [index, outcome] of outcomes.entries()) {
          const isBad = bad.includes(offered[index]!)
          if (outcome._tag === "Success") assert.isFalse(isBad)
          else assert.deepStrictEqual([isBad, outcome.failure.reason], [true, "refused"])
        }
        assert.strictEqual(yield* countOf(company), 60)
        assert.strictEqual(inbox.stats().refused, 3)
      })
    )

    it.effect("commits durably when the database has synchronous_commit off", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
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
          yield* Effect.scoped(Effect.flatMap(InboxWriter.make(), (inbox) => store(inbox, event(company, value))))
          const [row] = yield* sql<{ readonly setting: string }>`select setting from public.seen`
          assert.strictEqual(row?.setting, expected)
          yield* sql`truncate public.seen`
        }
        yield* sql.unsafe(`alter database ${name} reset synchronous_commit`)
        yield* sql.unsafe(`drop function public.see cascade`)
      })
    )
  })
})

layer(warehouse, { excludeTestServices: true, timeout: "30 seconds" })("InboxWriter with a faulty warehouse", (it) => {
  /** The database behind a gate. The queries of the test itself bypass it. */
  const guarded = Effect.gen(function* () {
    const { endpoint } = yield* Database
    const { host, port, user, password, database } = endpoint
    const gate = yield* makeGate(
      Redacted.make(`postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`)
    )
    return { gate, database: Database.layerUrl(gate.url) }
  })

  it.effect("fails within 4.5 s while the warehouse is unreachable, also at start, and recovers automatically", () =>
    Effect.gen(function* () {
      const { gate, database } = yield* guarded
      yield* gate.shut
      const inbox = yield* InboxWriter.make().pipe(Effect.provide(database))
      const company = newCompany()
      const early = yield* timed(store(inbox, event(company, "early")))
      assert.strictEqual(early.exit._tag, "Failure")
      assert.isBelow(early.ms, 4_500)
      yield* gate.open
      yield* until("the first event is stored", Effect.isSuccess(store(inbox, event(company, "first"))))
      yield* until(
        "both connections are open",
        Effect.sync(() => inbox.stats().writersUp === 2)
      )

      yield* gate.shut
      const alone = yield* timed(store(inbox, event(company, "alone")))
      assert.strictEqual(alone.exit._tag, "Failure")
      assert.isBelow(alone.ms, 4_500)
      // Events are offered continuously during the outage. Each gets an outcome, none is lost, and none counts as
      // stored.
      const during = yield* Effect.forEach(
        Array.from({ length: 50 }, (_, index) => `down_${index}`),
        (id) => timed(store(inbox, event(company, id))),
        { concurrency: 5 }
      )
      for (const { exit, ms } of during) {
        assert.strictEqual(exit._tag, "Failure")
        assert.isBelow(ms, 4_500)
      }
      assert.strictEqual((yield* Effect.flip(inbox.probe)).reason, "away")
      assert.isNotNull(inbox.stats().failing)
      yield* gate.open
      yield* until("the warehouse is reachable", Effect.isSuccess(inbox.probe))
      assert.strictEqual(yield* store(inbox, event(company, "after")), "stored")
      assert.isNull(inbox.stats().failing)
      assert.strictEqual(yield* countOf(company), 2)
    })
  )

  it.effect("replaces connections that were lost while idle without failing an event", () =>
    Effect.gen(function* () {
      const { gate, database } = yield* guarded
      const inbox = yield* InboxWriter.make().pipe(Effect.provide(database))
      const company = newCompany()
      const bothConnected = until(
        "both connections are open",
        Effect.sync(() => inbox.stats().writersUp === 2)
      )
      yield* store(inbox, event(company, "evt_0"))
      yield* bothConnected
      yield* gate.shut
      yield* gate.open
      assert.strictEqual(yield* store(inbox, event(company, "alone")), "stored")
      // A connection that is still being opened would not be idle.
      yield* bothConnected
      yield* gate.shut
      yield* gate.open
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => `evt_${index}`),
        (id) => store(inbox, event(company, id)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        outcomes.slice(1),
        Array.from({ length: 19 }, () => "stored")
      )
      assert.strictEqual(yield* countOf(company), 21)
    })
  )

  it.effect("abandons a statement that hangs, fails all waiting events and opens another connection", () =>
    Effect.gen(function* () {
      const { gate, database } = yield* guarded
      const inbox = yield* InboxWriter.make({ answerTimeout: Duration.millis(300) }).pipe(Effect.provide(database))
      const company = newCompany()
      yield* store(inbox, event(company, "evt_0"))
      yield* gate.hang
      const hung = yield* Effect.forEach(
        Array.from({ length: 30 }, (_, index) => `hung_${index}`),
        (id) => timed(store(inbox, event(company, id))),
        { concurrency: "unbounded" }
      )
      for (const { exit, ms } of hung) {
        assert.strictEqual(exit._tag, "Failure")
        assert.isBelow(ms, 5_000)
      }
      yield* gate.open
      yield* until("the warehouse is reachable", Effect.isSuccess(store(inbox, event(company, "after"))))
      assert.isAtLeast(yield* countOf(company), 2)
    })
  )

  it.effect("fails waiting and new events quickly when reconnecting to a hanging warehouse fails", () =>
    Effect.gen(function* () {
      const { gate, database } = yield* guarded
      const inbox = yield* InboxWriter.make({
        connectTimeout: Duration.millis(600),
        answerTimeout: Duration.millis(300)
      }).pipe(Effect.provide(database))
      const company = newCompany()
      yield* store(inbox, event(company, "evt_0"))
      yield* until(
        "both connections are open",
        Effect.sync(() => inbox.stats().writersUp === 2)
      )
      yield* gate.hang
      // The writers are not synchronised: one of them begins later.
      const waitTimes: Array<number> = []
      const events = 64
      for (let number = 0; number < events; number++) {
        yield* Effect.forkChild(
          Effect.map(timed(store(inbox, event(company, `hung_${number}`))), ({ exit, ms }) => {
            assert.strictEqual(exit._tag, "Failure")
            waitTimes.push(ms)
          })
        )
        yield* Effect.sleep(25)
      }
      yield* until(
        "every event has its outcome",
        Effect.sync(() => waitTimes.length === events)
      )
      // One response and one connection take 0.9 s, another connection 1.5 s.
      for (const ms of waitTimes) assert.isBelow(ms, 1_400)
      // By then the connection is known to have failed, so no event waits for it.
      for (const ms of waitTimes.slice(-10)) assert.isBelow(ms, 100)
      yield* gate.open
      yield* until("the warehouse is reachable", Effect.isSuccess(store(inbox, event(company, "after"))))
    })
  )

  it.effect("starts no insert or retry for an event that has waited longer than waitMax", () =>
    Effect.gen(function* () {
      const { gate, database } = yield* guarded
      const inbox = yield* InboxWriter.make({ writers: 1, waitMax: Duration.millis(750) }).pipe(
        Effect.provide(database)
      )
      const company = newCompany()
      yield* store(inbox, event(company, "evt_0"))
      const outcomes: Record<string, string> = {}
      const offer = (id: string) =>
        inbox.put(event(company, id), (outcome) => {
          outcomes[id] = typeof outcome === "string" ? outcome : outcome.reason
        })
      const untilEmpty = until(
        "the writer takes the event",
        Effect.sync(() => inbox.stats().waiting === 0)
      )
      yield* gate.hang
      offer("in flight")
      yield* untilEmpty
      offer("waits for long")
      yield* Effect.sleep(900)
      offer("waits a little")
      assert.deepStrictEqual(outcomes, {})
      yield* gate.open
      yield* until(
        "the events have their outcomes",
        Effect.sync(() => Object.keys(outcomes).length === 3)
      )
      assert.deepStrictEqual(outcomes, { "in flight": "stored", "waits for long": "away", "waits a little": "stored" })

      yield* gate.hang
      offer("lost late")
      yield* untilEmpty
      yield* Effect.sleep(900)
      yield* gate.shut
      yield* gate.open
      yield* until(
        "the event has its outcome",
        Effect.sync(() => outcomes["lost late"] !== undefined)
      )
      assert.strictEqual(outcomes["lost late"], "away")
      assert.strictEqual(inbox.stats().waitingBytes, 0)
    })
  )

  it.effect("answers concurrent probes with one statement", () =>
    Effect.gen(function* () {
      const { gate, database } = yield* guarded
      yield* gate.hang
      const inbox = yield* InboxWriter.make({ waitingMax: 2 }).pipe(Effect.provide(database))
      const probes = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 50 }, () => inbox.probe),
          { concurrency: "unbounded" }
        )
      )
      const isProbeWaiting = Effect.sync(() => inbox.stats().waiting > 0)
      yield* until("the probes are waiting", isProbeWaiting)
      assert.strictEqual(inbox.stats().waiting, 1)
      const beside = yield* Effect.forkChild(store(inbox, event(newCompany(), "beside")))
      yield* gate.open
      yield* Fiber.join(probes)
      assert.strictEqual(yield* Fiber.join(beside), "stored")
      assert.isAtMost(inbox.stats().batches, 2)
    })
  )

  it.effect("waits for a table lock until answerTimeout, and stores a retried event once", () =>
    Effect.gen(function* () {
      const { database } = yield* guarded
      const inbox = yield* InboxWriter.make({ answerTimeout: Duration.millis(400) }).pipe(Effect.provide(database))
      const company = newCompany()
      yield* store(inbox, event(company, "evt_0"))
      const sql = yield* SqlClient.SqlClient
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`lock table tributary.inbox in access exclusive mode`
          const { exit, ms } = yield* timed(store(inbox, event(company, "evt_1")))
          assert.strictEqual(exit._tag, "Failure")
          assert.isBelow(ms, 5_000)
        })
      )
      yield* until("the table is unlocked", Effect.isSuccess(store(inbox, event(company, "evt_1"))))
      assert.strictEqual(yield* countOf(company), 2)
    })
  )

  it.effect("limits the number and bytes of waiting events, and rejects further ones immediately", () =>
    Effect.gen(function* () {
      const { gate, database } = yield* guarded
      const inbox = yield* InboxWriter.make({ writers: 1, waitingMax: 10, waitingBytesMax: 1_000_000 }).pipe(
        Effect.provide(database)
      )
      const company = newCompany()
      yield* store(inbox, event(company, "evt_0"))
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
      yield* until(
        "the writer takes the event",
        Effect.sync(() => inbox.stats().waiting === 0)
      )
      for (let number = 0; number < 15; number++) offer(`many_${number}`)
      assert.deepStrictEqual(full, ["full", "full", "full", "full", "full"])
      yield* gate.open
      yield* until(
        "the waiting events are stored",
        Effect.sync(() => stored.length === 11)
      )
      yield* gate.hang
      offer("w2")
      yield* until(
        "the writer takes the event",
        Effect.sync(() => inbox.stats().waiting === 0)
      )
      for (let number = 0; number < 3; number++) offer(`large_${number}`, { body: new Uint8Array(600_000) })
      assert.lengthOf(full, 7)
      yield* gate.open
      yield* until(
        "the waiting events are stored",
        Effect.sync(() => stored.length === 13)
      )
      assert.strictEqual(yield* countOf(company), 14)
    })
  )

  it.effect("fails waiting and later events when it is closed", () =>
    Effect.gen(function* () {
      const { gate, database } = yield* guarded
      const reasons: Array<string> = []
      const note = (outcome: InboxWriter.Outcome) =>
        reasons.push(typeof outcome === "string" ? outcome : outcome.reason)
      const inbox = yield* Effect.scoped(
        Effect.gen(function* () {
          const one = yield* InboxWriter.make().pipe(Effect.provide(database))
          yield* one.probe
          yield* gate.hang
          for (let number = 0; number < 5; number++) one.put(event("x", `evt_${number}`), note)
          yield* until(
            "a writer takes the event",
            Effect.sync(() => one.stats().waiting === 0)
          )
          one.put(event("x", "evt_6"), note)
          yield* gate.shut
          return one
        })
      )
      inbox.put(event("x", "evt_7"), note)
      assert.lengthOf(reasons, 7)
      assert.isTrue(reasons.every((reason) => reason === "ended" || reason === "away"))
    })
  )
})
