/** Due events and refetch requests: which are found, and by which worker. */
import { assert } from "@effect/vitest"
import { Clock, Effect } from "effect"
import * as InboxStore from "../../../src/inbox/InboxStore.ts"
import * as TaskWorker from "../../../src/tasks/TaskWorker.ts"
import { makeStand, many, one, stand, states } from "../inbox/working.ts"
import { until } from "../../support/until.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { eventsOnly } from "./working.ts"

suite("due events", layerWarehouse, (test) => {
  test("are found with refetch requests, the longest due first, and nothing else", function* () {
    const event = (company: string, resource: string | null, state: string, dueIn: string) =>
      sql`insert into tributary.inbox (company, event_id, event_type, resource, sent_at, next_attempt_at, resolved_at, body, state)
            values (${company}, gen_random_uuid()::text, 'x', ${resource}, tributary.now(), tributary.now() + ${dueIn}::interval,
                    case when ${state} <> 'pending' then tributary.now() end, '', ${state})`
    const found = Effect.map(InboxStore.dueWork, (rows) =>
      rows.map(({ company, kind, resource }) => [company, resource, kind].join(" "))
    )
    assert.deepStrictEqual(yield* found, [])
    yield* event("done", "orders", "done", "-1 hour")
    yield* event("later", "orders", "pending", "1 hour")
    yield* event("later", "areas", "pending", "1 hour")
    assert.deepStrictEqual(yield* found, [])

    yield* event("north", "orders", "pending", "1 hour")
    yield* event("north", "zones", "pending", "-1 second")
    yield* event("north", "areas", "pending", "-40 seconds")
    yield* event("north", "areas", "pending", "-1 second")
    yield* event("east", "zones", "pending", "-30 seconds")
    yield* event("nameless", null, "pending", "-1 hour")
    yield* sql`insert into tributary.companies (company, company_id) values ('west', 7), ('none', 8)`
    yield* sql`insert into tributary.refetch_requests (company_id, resource, field, value, requested_at)
                 select 7, 'orderlines', 'orderid', v::text, tributary.now() from generate_series(1, 3) v`
    assert.deepStrictEqual(yield* found, [
      "north areas events",
      "east zones events",
      "north zones events",
      "nameless  events",
      "west orderlines children"
    ])
  })
})

suite("the worker of a process", stand, (test) => {
  test("processes the events of companies that it owns, of more resources than there are places", function* () {
    const { accept, company, inbox, put } = yield* makeStand(["salesmen", "vendors", "customers", "items", "carriers"])
    const paths = ["salesmen", "vendors", "customers", "items", "carriers"]
    for (const path of paths) yield* put(path, many(1, 3))
    const worker = yield* TaskWorker.make(eventsOnly)
    yield* worker.own(company)
    yield* Effect.forkScoped(worker.run)
    // The worker of another process would store them so: nothing wakes this one.
    for (const path of paths) for (const record of many(1, 3)) yield* accept(`${path}.updated`, record)
    yield* until("the inbox", inbox, (events) => events.every(({ state }) => state === "done"))
  })

  test("begins at once with events that its process has stored", function* () {
    const { accept, company, inbox, name, put } = yield* makeStand(["salesmen"])
    yield* put("salesmen", [one(1, "a")])
    const worker = yield* TaskWorker.make({ ...eventsOnly, lookEveryMs: 3_600_000 })
    yield* worker.own(company)
    yield* Effect.forkScoped(worker.run)
    // An event without a record is skipped by a look, and begins no work. The next look is in an hour.
    yield* accept("webhooks.test", { webhookid: 1 })
    worker.noteEvents([name])
    yield* until("a look", inbox, ([first]) => first!.state === "skipped")
    yield* accept("salesmen.updated", one(1, "x"))
    const acceptedMs = yield* Clock.currentTimeMillis
    worker.noteEvents([name])
    yield* until("the inbox", inbox, (events) => states(events)[1] === "done")
    assert.isBelow((yield* Clock.currentTimeMillis) - acceptedMs, 600_000)
  })
})
