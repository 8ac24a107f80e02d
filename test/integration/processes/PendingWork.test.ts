/** The watch that wakes the workers of companies with due events or refetch requests. */
import { assert } from "@effect/vitest"
import { Effect, Latch } from "effect"
import * as PendingWork from "../../../src/processes/PendingWork.ts"
import * as Statement from "../../../src/postgres/Statement.ts"
import { flowing, until } from "../../support/until.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

const found = Effect.map(Statement.run(PendingWork.pendingWorkStatement), (rows) =>
  rows.map(({ company }) => company).toSorted()
)

suite("the watch for pending work", layerWarehouse, (test) => {
  test("finds due events and refetch requests, and nothing else", function* () {
    const event = (company: string, resource: string | null, state: string, dueIn: string) =>
      sql`insert into tributary.inbox (company, event_id, event_type, resource, sent_at, next_attempt_at, resolved_at, body, state)
            values (${company}, gen_random_uuid()::text, 'x', ${resource}, tributary.now(), tributary.now() + ${dueIn}::interval,
                    case when ${state} <> 'pending' then tributary.now() end, '', ${state})`
    assert.deepStrictEqual(yield* found, [])
    yield* event("done", "orders", "done", "-1 hour")
    yield* event("later", "orders", "pending", "1 hour")
    yield* event("later", "areas", "pending", "1 hour")
    assert.deepStrictEqual(yield* found, [])

    for (const company of ["east", "north"]) {
      yield* event(company, "orders", "pending", "1 hour")
      yield* event(company, "zones", "pending", "-1 second")
      yield* event(company, "zones", "pending", "-1 second")
    }
    yield* event("nameless", null, "pending", "-1 hour")
    yield* sql`insert into tributary.companies (company, company_id) values ('west', 7), ('none', 8)`
    yield* sql`insert into tributary.refetch_requests (company_id, resource, field, value, requested_at)
                 select 7, 'orderlines', 'orderid', v::text, tributary.now() from generate_series(1, 3) v`
    assert.deepStrictEqual(yield* found, ["east", "nameless", "north", "west"])
  })

  test("wakes the workers of these companies again and again while there is work", function* () {
    const [busy, idle] = [Latch.makeUnsafe(false), Latch.makeUnsafe(false)]
    yield* Effect.forkScoped(
      PendingWork.watch(
        new Map([
          ["a", busy],
          ["b", idle]
        ])
      )
    )
    yield* sql`insert into tributary.inbox (company, event_id, event_type, resource, sent_at, body)
                 values ('a', '1', 'x', 'areas', tributary.now(), '')`
    for (let times = 0; times < 2; times += 1) {
      yield* busy.close
      yield* flowing(busy.await)
    }
    assert.isFalse(idle.isOpen())
    yield* sql`delete from tributary.inbox where company = 'a'`
    const wasOpen = Effect.tap(
      Effect.sync(() => busy.isOpen()),
      () => busy.close
    )
    yield* until("the work is done", wasOpen, (isOpen) => !isOpen)
  })
})
