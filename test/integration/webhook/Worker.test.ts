/**
 * The worker against the reference server and Postgres: what is asked of the source for which events, and what becomes
 * of the events, whatever fails meanwhile.
 */
import { assert, describe, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { ServiceClient, Transport } from "../../../connectors/service-v2/client/index.ts"
import { Budget } from "../../../src/budget/Budget.ts"
import { isEvent } from "../../../src/connector/Delivery.ts"
import { type Table, tableOf } from "../../../src/model/Table.ts"
import * as TablePlan from "../../../src/model/TablePlan.ts"
import { engineDefault, syncResource } from "../../../src/pipeline/SyncResource.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import { childrenOf, type Company } from "../../../src/webhook/Company.ts"
import * as Queue from "../../../src/webhook/Queue.ts"
import * as Worker from "../../../src/webhook/Worker.ts"
import { layerSql } from "../../support/postgres.ts"
import { type ReferenceProcess, startReference } from "../../support/reference.ts"

class Source extends Context.Service<Source, ReferenceProcess>()("test/webhook/Source") {}

const paths = ["salesmen", "orderdeposits", "assetcategories", "vendors", "vendororderfroms"]
const tables = new Map<string, Table>(paths.map((path) => [path, tableOf(serviceV2.resources.get(path)!)]))

const stand = Layer.effect(
  Source,
  Effect.acquireRelease(
    Effect.promise(() => startReference()),
    (server) => Effect.promise(() => server.stop())
  ).pipe(
    Effect.tap((server) => Effect.promise(() => server.control("PUT", "/limits", { requestsPerMinute: 1_000_000 })))
  )
).pipe(
  Layer.merge(Layer.effectDiscard(Effect.andThen(Migrations.migrate(), TablePlan.apply([...tables.values()])))),
  Layer.provideMerge(layerSql),
  Layer.merge(Layer.merge(Transport.layerUndici(), Budget.layerUnlimited))
)

interface EventRow {
  readonly event_id: string
  readonly state: string
  readonly attempts: number
  readonly reason: string | null
  readonly run_id: bigint | null
  readonly wait_ms: number
}

let companies = 100

/** A company of its own with what a test needs of it. */
const makeStand = Effect.fnUntraced(function* (synced: ReadonlyArray<string>) {
  const source = yield* Source
  const sql = yield* SqlClient.SqlClient
  const id = (companies += 1)
  const name = `company ${id}`
  const { token, tokenid } = (yield* Effect.promise(() =>
    source.control("POST", "/tokens", { company: id, scopes: ["*"] })
  )) as { readonly token: string; readonly tokenid: number }
  const connector = yield* ServiceClient.make({
    baseUrl: source.baseUrl,
    token: Redacted.make(token),
    catalogue: serviceV2,
    pageSize: 100,
    requestTimeoutMs: 5_000,
    retry: { attemptsMax: 2, backoffBaseMs: 5, backoffMaxMs: 10 }
  })
  const own = new Map([...tables].filter(([path]) => synced.includes(path)))
  const company: Company = {
    name,
    connector,
    tables: Effect.succeed(own),
    engine: engineDefault,
    batchRecordsMax: 2_500,
    events: []
  }
  const control = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => source.control(method, path, body))
  /** Puts records into the source; answers them as stored. */
  const put = (resource: string, records: ReadonlyArray<object>) =>
    Effect.map(
      control("POST", "/records", { company: id, resource, records }),
      (answer) => (answer as { records: ReadonlyArray<Record<string, unknown>> }).records
    )
  const sync = (path: string) =>
    syncResource({
      companyId: BigInt(id),
      connector,
      table: tables.get(path)!,
      full: false,
      acceptDeletions: false,
      batchRecordsMax: 2_500,
      children: childrenOf(own, path)
    })
  let events = 0
  /** Puts an event into the inbox as the receiver would. */
  const accept = Effect.fnUntraced(function* (
    type: string,
    data: object,
    more: { readonly companyId?: number; readonly ageSeconds?: number } = {}
  ) {
    const eventId = `evt_${id}_${(events += 1)}`
    const body = new TextEncoder().encode(
      JSON.stringify({
        id: eventId,
        type,
        createdate: "2026-01-01T00:00:00Z",
        companyid: more.companyId ?? id,
        data
      })
    )
    const event = deliveryReader.read(body)
    if (!isEvent(event)) return yield* Effect.die(new Error(event.detail))
    const ageSeconds = more.ageSeconds ?? 0
    yield* sql`
      insert into tributary.inbox (company, event_id, event_type, resource, record_id, stamp, sent_at, received_at, due_at, body)
      values (${name}, ${eventId}, ${type}, ${event.resource}, ${event.recordId}, ${event.stamp}, tributary.now(),
              tributary.now() - ${ageSeconds}::int * interval '1 second',
              tributary.now() - ${ageSeconds}::int * interval '1 second', ${body})`
    return eventId
  })
  const inbox = sql<EventRow>`
    select event_id, state, attempts, reason, run_id, (extract(epoch from due_at - tributary.now()) * 1000)::float8 as wait_ms
      from tributary.inbox where company = ${name} order by id`
  /** Requests of this company about a resource since the last look, `/me` left out. */
  let seen = 0
  const requests = Effect.gen(function* () {
    const { requests: all } = (yield* control("GET", "/requests")) as {
      requests: ReadonlyArray<{ path: string; tokenid: number | null }>
    }
    const fresh = all.slice(seen)
    seen = all.length
    return fresh.filter((one) => one.path !== "/me" && one.tokenid === tokenid).map(({ path }) => path)
  })
  const rows = (path: string) =>
    sql.unsafe<{ id: bigint; name: string; origin: string; deleted: boolean }>(
      `select id, ${path === "orderdeposits" ? "checkid" : path === "vendororderfroms" ? "city" : "name"} as name, _origin as origin, _deleted_at is not null as deleted
         from erp.${path} where _company_id = $1 order by id`,
      [BigInt(id)]
    )
  const options = { company, reader: deliveryReader }
  const drain = Worker.drain(options)
  const makeDue = sql`update tributary.inbox set due_at = tributary.now() where company = ${name} and state = 'waiting'`
  return { id, name, sql, company, options, control, put, sync, accept, inbox, requests, rows, drain, makeDue }
})

const states = (events: ReadonlyArray<EventRow>) => events.map(({ state }) => state)
const one = (number: number, text: string) => ({ id: number, name: text })
const placed = (number: number, text: string) => ({ id: number, city: text })

/** Waits for a condition for some seconds. */
const until = <A, E, R>(look: Effect.Effect<A, E, R>, holds: (value: A) => boolean) =>
  look.pipe(
    Effect.repeat({ until: holds, schedule: Schedule.spaced("20 millis"), times: 500 }),
    Effect.tap((value) =>
      Effect.sync(() =>
        assert.isTrue(
          holds(value),
          JSON.stringify(value, (_, v: unknown) => (typeof v === "bigint" ? String(v) : v))
        )
      )
    )
  )

describe("the worker", () => {
  layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("against the source", (it) => {
    it.effect("answers all events of a record by one read, and loads nothing of their bodies", () =>
      Effect.gen(function* () {
        const { put, accept, drain, inbox, requests, rows, sql, company } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "as the source has it"), one(2, "other")])
        yield* requests
        for (let at = 0; at < 5; at += 1) yield* accept("salesmen.updated", one(1, "forged"))
        yield* accept("salesmen.created", one(2, "forged"))
        const worked = yield* drain
        assert.deepStrictEqual(worked, { done: 6, dead: 0, ignored: 0, putOff: 0, stopped: null })
        assert.deepStrictEqual((yield* requests).sort(), ["/salesmen/1", "/salesmen/2"])
        const found = yield* rows("salesmen")
        assert.deepStrictEqual(
          found.map(({ name, origin }) => [name, origin]),
          [
            ["as the source has it", "webhook"],
            ["other", "webhook"]
          ]
        )
        const events = yield* inbox
        const [run] = yield* sql<{ id: bigint; status: string; lane: string; records: bigint }>`
          select id, status, lane, records from tributary.runs where id = ${events[0]!.run_id}`
        assert.deepStrictEqual([run!.status, run!.lane, run!.records], ["done", "records", 2n])
        assert.isTrue(events.every(({ run_id }) => run_id === run!.id))
        assert.lengthOf(yield* sql`select 1 from tributary.inbox_claims where company = ${company.name}`, 0)
      })
    )

    it.effect("asks nothing for what the warehouse holds in a newer version, and reads what is as new", () =>
      Effect.gen(function* () {
        const { put, sync, accept, drain, inbox, requests } = yield* makeStand(["salesmen"])
        const [stored] = yield* put("salesmen", [one(1, "a")])
        yield* sync("salesmen")
        yield* requests
        yield* accept("salesmen.updated", { ...one(1, "x"), lastchangedate: "2020-01-01T00:00:00Z" })
        yield* drain
        assert.deepStrictEqual(yield* requests, [])
        assert.strictEqual((yield* inbox)[0]!.reason, "the warehouse holds a newer version")
        yield* accept("salesmen.updated", { ...one(1, "x"), lastchangedate: stored!["lastchangedate"] })
        yield* drain
        assert.deepStrictEqual(yield* requests, ["/salesmen/1"])
        // What is no instant asks for a read.
        yield* accept("salesmen.updated", { ...one(1, "x"), lastchangedate: "2020-02-30T00:00:00Z" })
        yield* drain
        assert.deepStrictEqual(yield* requests, ["/salesmen/1"])
        assert.deepStrictEqual(states(yield* inbox), ["done", "done", "done"])
      })
    )

    it.effect("reads again what is replayed", () =>
      Effect.gen(function* () {
        const { put, sync, accept, drain, requests, name, inbox } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a")])
        yield* sync("salesmen")
        const old = { ...one(1, "x"), lastchangedate: "2020-01-01T00:00:00Z" }
        const event = yield* accept("salesmen.updated", old)
        yield* accept("salesmen.updated", old)
        yield* drain
        yield* requests
        assert.strictEqual(yield* Queue.replay(name, { state: "dead" }), 0)
        assert.strictEqual(yield* Queue.replay(name, { state: "done", resource: "vendors" }), 0)
        assert.strictEqual(yield* Queue.replay(name, { state: "done", since: "2999-01-01T00:00:00Z" }), 0)
        assert.strictEqual(yield* Queue.replay(name, { state: "done", eventIds: [event, "evt_none"] }), 1)
        assert.deepStrictEqual(states(yield* inbox), ["waiting", "done"])
        yield* drain
        assert.deepStrictEqual(yield* requests, ["/salesmen/1"])
        assert.deepStrictEqual(states(yield* inbox), ["done", "done"])
      })
    )

    it.effect("answers many by one scan", () =>
      Effect.gen(function* () {
        const { put, sync, accept, drain, requests, inbox, rows } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a")])
        yield* sync("salesmen")
        const numbers = Array.from({ length: 80 }, (_, at) => at + 10)
        const stored = yield* put(
          "salesmen",
          numbers.map((number) => one(number, `n${number}`))
        )
        for (const record of stored) yield* accept("salesmen.created", record)
        yield* requests
        const worked = yield* drain
        assert.strictEqual(worked.done, 80)
        const asked = yield* requests
        assert.lengthOf(asked, 1)
        assert.match(asked[0]!, /^\/salesmen\?.*modifiedsince=/)
        assert.lengthOf(yield* rows("salesmen"), 81)
        assert.isTrue((yield* inbox).every(({ state, reason }) => state === "done" && reason !== null))
      })
    )

    it.effect("scans where records cannot be asked for by number", () =>
      Effect.gen(function* () {
        const { put, sync, accept, drain, requests, inbox, rows } = yield* makeStand(["orderdeposits"])
        yield* put("orderdeposits", [{ id: 1, checkid: "a" }])
        yield* sync("orderdeposits")
        const stored = yield* put(
          "orderdeposits",
          [2, 3].map((id) => ({ id, checkid: `n${id}` }))
        )
        yield* requests
        for (const record of stored) yield* accept("orderdeposits.created", record)
        const worked = yield* drain
        assert.deepStrictEqual([worked.done, worked.putOff], [2, 0])
        assert.lengthOf(yield* requests, 1)
        assert.deepStrictEqual(
          (yield* rows("orderdeposits")).map(({ name }) => name),
          ["a", "n2", "n3"]
        )
        // One that the source does not show yet waits.
        yield* accept("orderdeposits.created", { id: 4 })
        assert.deepStrictEqual(
          [(yield* drain).putOff, (yield* inbox)[2]!.reason],
          [1, "the source does not show it yet"]
        )
      })
    )

    it.effect("scans again at once for what came meanwhile, within a third of the request budget", () =>
      Effect.gen(function* () {
        const { id, put, sync, accept, control, options, sql, name } = yield* makeStand(["orderdeposits"])
        yield* put("orderdeposits", [{ id: 1, checkid: "a" }])
        yield* sync("orderdeposits")
        /** How long after an event one that comes while the scan for it is under way is settled, in milliseconds. */
        const apart = Effect.fnUntraced(function* (requestsPerMinute: number | null, first: number) {
          const company = { ...options.company, requestsPerMinute }
          const worker = yield* Effect.forkChild(Worker.run({ ...options, company }))
          const delay = { path: "/orderdeposits", kind: "delay", ms: 200, times: 1 }
          yield* control("POST", "/faults", { rules: [delay] })
          yield* accept("orderdeposits.created", (yield* put("orderdeposits", [{ id: first, checkid: "b" }]))[0]!)
          yield* until(
            sql<{ runs: bigint }>`
              select count(*) as runs from tributary.runs where company_id = ${id} and status = 'running'`,
            ([row]) => row!.runs === 1n
          )
          yield* accept("orderdeposits.created", (yield* put("orderdeposits", [{ id: first + 1, checkid: "c" }]))[0]!)
          const settled = yield* until(
            sql<{ state: string; ms: number }>`
              select state, (extract(epoch from settled_at) * 1000)::float8 as ms from tributary.inbox
               where company = ${name} order by id desc limit 2`,
            (events) => events.length === 2 && events.every(({ state }) => state === "done")
          )
          yield* Fiber.interrupt(worker)
          return settled[0]!.ms - settled[1]!.ms
        })
        assert.isBelow(yield* apart(null, 2), 1_900)
        // One request, of which 60 in a minute may be made, a third of them for this.
        assert.isAbove(yield* apart(60, 4), 2_200)
      })
    )

    it.effect("reads every record where there is neither number nor cursor, but only once a minute", () =>
      Effect.gen(function* () {
        const { put, sync, accept, requests, inbox, rows, options, drain } = yield* makeStand(["assetcategories"])
        yield* put("assetcategories", [one(1, "a")])
        yield* sync("assetcategories")
        yield* put("assetcategories", [one(2, "b")])
        yield* requests
        yield* accept("assetcategories.created", one(2, "x"))
        const worker = yield* Effect.forkChild(Worker.run(options))
        // It lets the event wait, and what somebody else reads meanwhile answers it.
        yield* sync("assetcategories")
        yield* until(inbox, ([first]) => first!.state === "done")
        yield* Fiber.interrupt(worker)
        assert.lengthOf(yield* requests, 1)
        // A person who drains does not wait.
        yield* Queue.replay(options.company.name, { state: "done" })
        yield* accept("assetcategories.updated", one(1, "x"))
        yield* drain
        assert.lengthOf(yield* requests, 1)
        assert.strictEqual((yield* rows("assetcategories")).length, 2)
      })
    )

    it.effect("reads only the records of the parent that the event names", () =>
      Effect.gen(function* () {
        const { put, sync, accept, drain, requests, inbox, rows } = yield* makeStand(["vendors", "vendororderfroms"])
        yield* put("vendors", [one(1, "v1"), one(2, "v2")])
        yield* put("vendororderfroms", [
          { ...placed(1, "a"), vendorid: 1 },
          { ...placed(2, "b"), vendorid: 2 }
        ])
        yield* sync("vendors")
        yield* sync("vendororderfroms")
        yield* put("vendororderfroms", [{ ...placed(3, "new"), vendorid: 2 }])
        yield* requests
        yield* accept("vendororderfroms.created", { ...placed(3, "forged"), vendorid: 2 })
        const worked = yield* drain
        const asked = yield* requests
        assert.lengthOf(asked, 1)
        assert.match(asked[0]!, /^\/vendororderfroms\?.*vendorid=2/)
        assert.deepStrictEqual([worked.done, states(yield* inbox)], [1, ["done"]])
        assert.strictEqual((yield* rows("vendororderfroms"))[2]!.name, "new")
      })
    )

    it.effect("reads the children of parents that changed", () =>
      Effect.gen(function* () {
        const { put, sync, accept, drain, requests, rows } = yield* makeStand(["vendors", "vendororderfroms"])
        yield* put("vendors", [one(1, "v1"), one(2, "v2")])
        yield* put("vendororderfroms", [{ ...placed(1, "a"), vendorid: 1 }])
        yield* sync("vendors")
        yield* sync("vendororderfroms")
        yield* put("vendororderfroms", [{ ...placed(2, "late"), vendorid: 1 }])
        yield* put("vendors", [one(1, "v1 changed")])
        yield* requests
        yield* accept("vendors.updated", one(1, "x"))
        yield* drain
        const asked = yield* requests
        assert.strictEqual(asked[0], "/vendors/1")
        assert.match(asked[1]!, /^\/vendororderfroms\?.*vendorid=1/)
        assert.lengthOf(asked, 2)
        assert.lengthOf(yield* rows("vendororderfroms"), 2)
      })
    )

    it.effect("reads the resource for an event without a number, and ignores what is not synced", () =>
      Effect.gen(function* () {
        const { put, sync, accept, drain, requests, inbox, rows } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a")])
        yield* sync("salesmen")
        yield* put("salesmen", [one(2, "b")])
        yield* requests
        yield* accept("salesmen.merged", { something: 2 })
        yield* accept("salesmen.merged", { something: 3 })
        yield* accept("webhooks.test", { webhookid: 1, message: "test" })
        yield* accept("spaceships.created", { id: 1 })
        yield* accept("vendors.created", { id: 1 })
        const worked = yield* drain
        assert.deepStrictEqual([worked.done, worked.ignored], [2, 3])
        assert.lengthOf(yield* requests, 1)
        assert.lengthOf(yield* rows("salesmen"), 2)
        const events = yield* inbox
        assert.deepStrictEqual(states(events), ["done", "done", "ignored", "ignored", "ignored"])
        assert.strictEqual(events[2]!.reason, "it asks for no record")
        assert.strictEqual(events[4]!.reason, "the resource is not synced for this company")
      })
    )

    it.effect("waits for a record that cannot be seen yet, and buries one that is gone", () =>
      Effect.gen(function* () {
        const { put, sync, accept, drain, inbox, rows, makeDue, control, id, sql } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a"), one(2, "b")])
        yield* sync("salesmen")
        yield* accept("salesmen.created", one(7, "x"))
        assert.strictEqual((yield* drain).putOff, 1)
        const [early] = yield* inbox
        assert.deepStrictEqual([early!.state, early!.attempts], ["waiting", 0])
        assert.isTrue(early!.wait_ms > 3_000 && early!.wait_ms <= 5_000)
        yield* put("salesmen", [one(7, "visible")])
        yield* makeDue
        yield* drain
        assert.strictEqual((yield* rows("salesmen"))[2]!.name, "visible")

        // A row that was there just now may be missing on a copy that lags behind; one that stood for long is gone.
        yield* control("POST", "/remove", { company: id, resource: "salesmen", id: 1 })
        yield* control("POST", "/remove", { company: id, resource: "salesmen", id: 2 })
        yield* sql`update erp.salesmen set _observed_at = _observed_at - interval '1 hour' where _company_id = ${BigInt(id)} and id = 2`
        yield* accept("salesmen.updated", one(1, "x"))
        yield* accept("salesmen.updated", one(2, "x"))
        yield* accept("salesmen.created", one(9, "x"), { ageSeconds: 400 })
        yield* drain
        const events = (yield* inbox).slice(1)
        assert.deepStrictEqual(
          events.map(({ state, reason }) => [state, reason]),
          [
            ["waiting", "the source does not show it yet"],
            ["done", "the source does not have it"],
            ["done", "the source does not have it"]
          ]
        )
        assert.deepStrictEqual(
          (yield* rows("salesmen")).map(({ deleted }) => deleted),
          [false, true, false]
        )
        yield* sql`update tributary.inbox set received_at = received_at - interval '400 seconds', due_at = tributary.now() where state = 'waiting'`
        yield* drain
        assert.isTrue((yield* rows("salesmen"))[0]!.deleted)
      })
    )

    it.effect("lets nothing wait for a record that is slow, and leaves what it had in hand when it ends", () =>
      Effect.gen(function* () {
        const { put, accept, inbox, control, options, sql, name } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a"), one(2, "b"), one(3, "c")])
        yield* control("POST", "/faults", { rules: [{ path: "/salesmen/1", kind: "delay", ms: 4_000 }] })
        yield* accept("salesmen.updated", one(1, "x"))
        yield* accept("salesmen.updated", one(2, "x"))
        const worker = yield* Effect.forkChild(Worker.run(options))
        yield* until(inbox, (events) => events[1]!.state === "done")
        yield* accept("salesmen.updated", one(3, "x"))
        yield* until(inbox, (events) => events[2]!.state === "done")
        yield* Fiber.interrupt(worker)
        yield* control("DELETE", "/faults")
        assert.deepStrictEqual(
          (yield* inbox).map(({ state, attempts }) => [state, attempts]),
          [
            ["waiting", 0],
            ["done", 0],
            ["done", 0]
          ]
        )
        assert.lengthOf(yield* sql`select 1 from tributary.inbox_claims where company = ${name}`, 0)
      })
    )

    it.effect("gives up a record that always fails, and goes on with the others", () =>
      Effect.gen(function* () {
        const { put, accept, drain, inbox, rows, makeDue, control, name } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a"), one(2, "b"), one(3, "c")])
        yield* control("POST", "/faults", { rules: [{ path: "/salesmen/2", kind: "status", status: 500 }] })
        for (const number of [1, 2, 3]) yield* accept("salesmen.updated", one(number, "x"))
        const pauses: Array<number> = []
        for (let at = 0; at < 6; at += 1) {
          yield* drain
          const poison = (yield* inbox)[1]!
          if (poison.state === "waiting") pauses.push(Math.round(poison.wait_ms / 1000))
          yield* makeDue
        }
        yield* control("DELETE", "/faults")
        const events = yield* inbox
        assert.deepStrictEqual(states(events), ["done", "dead", "done"])
        assert.strictEqual(events[1]!.attempts, 6)
        assert.include(events[1]!.reason!, "the service failed (500")
        assert.deepStrictEqual(pauses, [10, 60, 300, 1800, 7200])
        assert.lengthOf(yield* rows("salesmen"), 2)
        assert.strictEqual(yield* Queue.replay(name, { state: "dead" }), 1)
        yield* drain
        assert.lengthOf(yield* rows("salesmen"), 3)
      })
    )

    it.effect("waits for a source that is away without counting attempts, and goes on when it is back", () =>
      Effect.gen(function* () {
        const { put, accept, drain, inbox, rows, control, makeDue } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a"), one(2, "b")])
        yield* control("POST", "/faults", { rules: [{ kind: "status", status: 503 }] })
        yield* accept("salesmen.updated", one(1, "x"))
        yield* accept("salesmen.updated", one(2, "x"))
        const away = yield* drain
        yield* control("DELETE", "/faults")
        assert.include(away.stopped!, "503")
        assert.deepStrictEqual(
          (yield* inbox).map(({ state, attempts }) => [state, attempts]),
          [
            ["waiting", 0],
            ["waiting", 0]
          ]
        )
        yield* makeDue
        assert.strictEqual((yield* drain).done, 2)
        assert.lengthOf(yield* rows("salesmen"), 2)
      })
    )

    it.effect("waits for the version that the event shows", () =>
      Effect.gen(function* () {
        const { put, accept, drain, inbox, rows, makeDue } = yield* makeStand(["salesmen"])
        const [stored] = yield* put("salesmen", [one(1, "old")])
        const later = new Date(Date.parse(String(stored!["lastchangedate"])) + 2_000).toISOString()
        yield* accept("salesmen.updated", { ...one(1, "x"), lastchangedate: later })
        yield* accept("salesmen.updated", { ...one(1, "x"), lastchangedate: stored!["lastchangedate"] })
        assert.deepStrictEqual([(yield* drain).putOff, (yield* rows("salesmen"))[0]!.name], [1, "old"])
        const [early, met] = yield* inbox
        assert.deepStrictEqual([early!.state, early!.reason], ["waiting", "the source still shows an older version"])
        assert.strictEqual(met!.state, "done")
        yield* put("salesmen", [{ ...one(1, "new"), lastchangedate: later }])
        yield* makeDue
        yield* drain
        assert.deepStrictEqual([states(yield* inbox), (yield* rows("salesmen"))[0]!.name], [["done", "done"], "new"])
      })
    )

    it.effect("gives up with a remedy what the token may not read, so that it can be replayed", () =>
      Effect.gen(function* () {
        const { put, accept, drain, inbox, control, name, requests } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a")])
        const body = JSON.stringify({
          error: { code: "insufficient_scope", message: "This token is missing the required scope: setup:read" }
        })
        yield* control("POST", "/faults", {
          rules: [
            { path: "/salesmen", kind: "status", status: 403, body, headers: { "Content-Type": "application/json" } }
          ]
        })
        yield* requests
        for (let number = 1; number <= 25; number += 1) yield* accept("salesmen.updated", one(number, "x"))
        yield* drain
        yield* control("DELETE", "/faults")
        const events = yield* inbox
        assert.isTrue(events.every(({ state, attempts }) => state === "dead" && attempts === 0))
        assert.include(events[0]!.reason!, "give the token the scope")
        assert.isAtMost((yield* requests).length, 16, "nothing more is asked once it is known")
        assert.strictEqual(yield* Queue.replay(name, { state: "dead", eventIds: [events[0]!.event_id] }), 1)
        assert.strictEqual((yield* drain).done, 1)
      })
    )

    it.effect("gives up what belongs to another company", () =>
      Effect.gen(function* () {
        const { put, accept, drain, inbox, requests } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a")])
        yield* requests
        yield* accept("salesmen.updated", one(1, "x"), { companyId: 7 })
        assert.strictEqual((yield* drain).dead, 1)
        assert.include((yield* inbox)[0]!.reason!, "the event is of company 7")
        assert.deepStrictEqual(yield* requests, [])
      })
    )

    it.effect("sets a record aside that does not fit, and is done with its event", () =>
      Effect.gen(function* () {
        const { put, accept, drain, inbox, control, sql, id } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a")])
        yield* control("POST", "/faults", {
          rules: [
            {
              path: "/salesmen/1",
              kind: "status",
              status: 200,
              body: '{"data":{"id":1,"name":"a","commissionrate":"none"}}',
              headers: { "Content-Type": "application/json" }
            }
          ]
        })
        yield* accept("salesmen.updated", one(1, "x"))
        yield* drain
        yield* control("DELETE", "/faults")
        const [event] = yield* inbox
        assert.deepStrictEqual([event!.state, event!.reason], ["done", "the record is in quarantine"])
        const quarantined = yield* sql<{ field: string; run_id: bigint }>`
          select field, run_id from tributary.quarantine where company_id = ${BigInt(id)} and resolved_at is null`
        assert.deepStrictEqual([quarantined.length, quarantined[0]!.run_id], [1, event!.run_id])
      })
    )

    it.effect("settles with the landing or not at all", () =>
      Effect.gen(function* () {
        const { put, accept, drain, inbox, rows, sql, name } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a")])
        yield* accept("salesmen.updated", one(1, "x"))
        // The landing's own session ends itself when the events are settled: the rows went in just before.
        yield* sql.unsafe(`create function public.cut() returns trigger language plpgsql as $$
          begin
            if new.company = '${name}' and new.state = 'done' and nextval('public.cuts') <= 2 then
              perform pg_terminate_backend(pg_backend_pid());
            end if;
            return new;
          end $$`)
        yield* sql`create sequence public.cuts`
        yield* sql`create trigger cut after update on tributary.inbox for each row execute function public.cut()`
        const worked = yield* Effect.ensuring(drain, Effect.orDie(sql`drop trigger cut on tributary.inbox`))
        assert.strictEqual(worked.done, 1)
        const [tries] = yield* sql<{ last_value: bigint }>`select last_value from public.cuts`
        assert.strictEqual(tries!.last_value, 3n)
        assert.deepStrictEqual([(yield* rows("salesmen")).length, states(yield* inbox)], [1, ["done"]])
        const runs = yield* sql<{ status: string; inserted: bigint }>`
          select status, inserted from tributary.runs where company_id = (select max(company_id) from tributary.runs) order by id`
        assert.deepStrictEqual(
          runs.map(({ status, inserted }) => `${status} ${inserted}`),
          ["abandoned 0", "abandoned 0", "done 1"]
        )
      })
    )

    it.effect("shares an inbox between processes, and takes over from one that is gone", () =>
      Effect.gen(function* () {
        const { put, accept, inbox, requests, rows, sql, name, options } = yield* makeStand(["salesmen", "vendors"])
        const numbers = Array.from({ length: 20 }, (_, at) => at + 1)
        yield* put(
          "salesmen",
          numbers.map((number) => one(number, `s${number}`))
        )
        yield* put(
          "vendors",
          numbers.map((number) => one(number, `v${number}`))
        )
        yield* requests
        // The claim of a process that was killed a moment before its lease ends.
        yield* sql`insert into tributary.inbox_claims values (${name}, 'vendors', 'gone', tributary.now() + interval '700 milliseconds')`
        const arrived = Latch.makeUnsafe(false)
        const workers = yield* Effect.forEach([1, 2], () =>
          Effect.forkChild(Worker.run({ ...options, inbox: { arrived } }))
        )
        for (const number of numbers) {
          yield* accept("salesmen.updated", one(number, "x"))
          yield* accept("vendors.updated", one(number, "x"))
          arrived.openUnsafe()
        }
        yield* until(inbox, (events) => events.every(({ state }) => state === "done"))
        yield* Effect.forEach(workers, Fiber.interrupt)
        assert.lengthOf(yield* requests, 40)
        assert.deepStrictEqual([(yield* rows("salesmen")).length, (yield* rows("vendors")).length], [20, 20])
        const failed = yield* sql`select 1 from tributary.runs where status = 'failed'`
        assert.lengthOf(failed, 0)
        assert.lengthOf(yield* sql`select 1 from tributary.inbox_claims where company = ${name}`, 0)
      })
    )
  })
})
