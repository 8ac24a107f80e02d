/** The inbox worker over several seconds: fair shares between resources, and work that is not repeated. */
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as InboxStore from "../../../src/inbox/InboxStore.ts"
import * as ProcessInbox from "../../../src/inbox/ProcessInbox.ts"
import { makeStand, one, placed, stand, until } from "./working.ts"

const numbersOf = (length: number, from = 1) => Array.from({ length }, (_, at) => at + from)

describe("the inbox worker over several seconds", () => {
  layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("against the source", (it) => {
    it.effect("processes every resource in a fair share, and reads children in between", () =>
      Effect.gen(function* () {
        const fed = ["vendors", "salesmen", "customers", "items"]
        const others = ["carriers", "taxclasses"]
        const { put, sync, accept, rows, sql, name, options } = yield* makeStand([
          ...fed,
          ...others,
          "vendororderfroms"
        ])
        yield* sync("vendors")
        yield* sync("vendororderfroms")
        yield* put("vendororderfroms", [{ ...placed(1, "a"), vendorid: 1 }])
        for (const path of [...fed, ...others]) yield* put(path, [one(1, "a")])
        const feeding = yield* Effect.forkChild(
          Effect.forever(
            Effect.delay(
              Effect.forEach(fed, (path) => accept(`${path}.updated`, one(1, "x"))),
              50
            )
          )
        )
        const worker = yield* Effect.forkChild(ProcessInbox.run(options))
        const doneOf = (resources: ReadonlyArray<string>) =>
          sql<{ resource: string }>`
            select distinct resource from tributary.inbox
             where company = ${name} and state = 'done' and resource = any(${[...resources]}::text[])`
        yield* until(doneOf(fed), (done) => done.length === fed.length)
        for (const path of others) yield* accept(`${path}.updated`, one(1, "x"))
        yield* until(doneOf(others), (done) => done.length === others.length)
        yield* until(rows("vendororderfroms"), (stored) => stored.length === 1)
        yield* Fiber.interrupt(feeding)
        yield* Fiber.interrupt(worker)
      })
    )

    it.effect("reads children for refetch requests from another run", () =>
      Effect.gen(function* () {
        const { put, sync, rows, options, requests } = yield* makeStand(["vendors", "vendororderfroms"])
        yield* put("vendors", [one(1, "v1"), one(2, "v2")])
        yield* sync("vendors")
        yield* sync("vendororderfroms")
        yield* put("vendororderfroms", [{ ...placed(1, "a"), vendorid: 2 }])
        const worker = yield* Effect.forkChild(ProcessInbox.run(options))
        yield* until(options.company.connector.usage, ({ requests: made }) => made > 2)
        yield* put("vendors", [one(2, "changed")])
        yield* sync("vendors")
        yield* requests
        yield* until(rows("vendororderfroms"), (stored) => stored.length === 1)
        yield* Fiber.interrupt(worker)
        const paths = yield* requests
        assert.lengthOf(paths, 1)
        assert.match(paths[0]!, /^\/vendororderfroms\?.*vendorid=2/)
      })
    )

    it.effect("reads a child resource in full at most once a minute when many parents are named", () =>
      Effect.gen(function* () {
        const { id, put, sync, accept, inbox, sql, options } = yield* makeStand(["vendors", "vendororderfroms"])
        const children = numbersOf(120).map((number) => ({ ...placed(number, "a"), vendorid: number }))
        yield* put(
          "vendors",
          numbersOf(120).map((number) => one(number, "v"))
        )
        yield* put("vendororderfroms", children)
        yield* sync("vendororderfroms")
        // The last full scan is made old enough for another one.
        yield* sql`update tributary.checkpoints set full_scan_at = full_scan_at - interval '1 hour' where company_id = ${id}`
        const ask = Effect.forEach(children.slice(0, 60), (child) => accept("vendororderfroms.updated", child))
        // All events are stored before the worker starts. A few at a time would be read by their parents.
        yield* ask
        const worker = yield* Effect.forkChild(ProcessInbox.run(options))
        yield* until(inbox, (events) => events.every(({ state }) => state === "done"))
        yield* ask
        // Each of these becomes a dead letter when the worker claims events, so the worker has considered the others
        // too.
        for (const more of [1, 2]) {
          yield* accept("vendororderfroms.updated", children[100]!, { companyId: 7 })
          yield* until(inbox, (events) => events.filter(({ state }) => state === "dead_letter").length === more)
        }
        const full = yield* sql`
          select 1 from tributary.runs where company_id = ${id} and resource = 'vendororderfroms' and kind = 'full'`
        assert.lengthOf(full, 2, "the first load, and one for the events")
        // The scan of another run resolves the pending events.
        yield* sync("vendororderfroms")
        yield* until(inbox, (events) => events.every(({ state }) => state !== "pending"))
        yield* Fiber.interrupt(worker)
      })
    )

    it.effect("scans at most once for events that the scan does not resolve", () =>
      Effect.gen(function* () {
        const { id, put, sync, accept, drain, requests, sql, name } = yield* makeStand(["salesmen"])
        const numbers = numbersOf(700)
        // The change is old, so that no scan from the cursor returns the records.
        yield* put(
          "salesmen",
          numbers.map((number) => ({ ...one(number, "a"), lastchangedate: "2020-01-01T00:00:00Z" }))
        )
        yield* sync("salesmen")
        for (const number of numbers) yield* accept("salesmen.updated", one(number, "x"))
        yield* sql`update tributary.inbox set state = 'done', resolved_at = tributary.now() where company = ${name}`
        assert.strictEqual(yield* InboxStore.replay(name, { state: "done" }), 700)
        yield* requests
        assert.strictEqual((yield* drain).done, 700)
        const paths = yield* requests
        assert.isAtMost(paths.filter((path) => path.startsWith("/salesmen?")).length, 1)
        const scans = yield* sql`
          select 1 from tributary.runs where company_id = ${id} and kind = 'incremental'`
        assert.isAtMost(scans.length, 1)
      })
    )

    it.effect("processes events of records while an event without a record number waits", () =>
      Effect.gen(function* () {
        const { id, put, sync, accept, inbox, sql, options } = yield* makeStand(["salesmen"])
        yield* put(
          "salesmen",
          numbersOf(20).map((number) => one(number, "a"))
        )
        yield* sync("salesmen")
        // The scan is one request. Scans may use a third of the 20 requests per minute, so the next one starts after
        // nine seconds.
        const company = { ...options.company, requestsPerMinute: 20 }
        const worker = yield* Effect.forkChild(ProcessInbox.run({ ...options, company }))
        yield* accept("salesmen.merged", { something: 1 })
        yield* until(inbox, ([first]) => first!.state === "done")
        yield* accept("salesmen.merged", { something: 2 })
        // So few records at a time that the worker reads them one by one.
        for (const number of [...numbersOf(20), ...numbersOf(20)]) {
          yield* Effect.delay(accept("salesmen.updated", one(number, "x")), 50)
        }
        yield* until(inbox, (events) => events.slice(2).every(({ state }) => state === "done"))
        assert.strictEqual((yield* inbox)[1]!.state, "pending")
        yield* Fiber.interrupt(worker)
        const runs = yield* sql`select 1 from tributary.runs where company_id = ${id} and kind = 'fetch'`
        assert.isAtMost(runs.length, 3)
      })
    )

    it.effect("logs once that the events of a resource fail", () =>
      Effect.gen(function* () {
        const { put, accept, inbox, options } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "a")])
        // A resource without a table in the warehouse.
        const own = new Map([
          ...(yield* options.company.tables),
          ["jobs", tableOf(serviceV2.resources.get("jobs")!)] as const
        ])
        let looks = 0
        const reader = {
          ...deliveryReader,
          read: (body: Uint8Array) => {
            looks += 1
            return deliveryReader.read(body)
          }
        }
        const lines: Array<string> = []
        const logged = Logger.layer([
          Logger.make(({ message }) => {
            lines.push(String(message))
          })
        ])
        yield* accept("jobs.updated", { id: 1 })
        const company = { ...options.company, tables: Effect.succeed(own) }
        const worker = yield* Effect.forkChild(
          Effect.provide(ProcessInbox.run({ ...options, company, reader }), logged)
        )
        yield* until(
          Effect.sync(() => looks),
          (seen) => seen >= 2
        )
        yield* accept("salesmen.updated", one(1, "x"))
        yield* until(inbox, (events) => events[1]!.state === "done")
        yield* Fiber.interrupt(worker)
        assert.lengthOf(lines, 1)
        assert.include(lines[0]!, "events of jobs: waiting for the warehouse")
      })
    )
  })
})
