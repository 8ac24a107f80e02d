/** The page of the endpoints, on Postgres. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { routes } from "../../src/dashboard/pages/Endpoints.ts"
import { stopClock } from "../support/postgres.ts"
import { ask, holdsHostile, hostile, warehouse } from "./asking.ts"

layer(warehouse, { excludeTestServices: true, timeout: "30 seconds" })("the page of the endpoints", (it) => {
  it.effect("shows the state, lag, waiting changes and dead letters of each, and the delivery log", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* stopClock
      assert.include((yield* ask(routes, [], "/endpoints")).read, "There is none.")
      yield* sql`update tributary.change_feed set last_position = 120`
      yield* sql`
        insert into tributary.change_endpoints (name, url, origin, state, reason, last_position, failing_since, delivered, attempts)
        values ('app', 'https://app.example.com/', 'command', 'active', null, 120, null, 3, 2),
               ('slow', 'https://slow.example.com/', 'file', 'active', null, 100, tributary.now() - interval '5 minutes', 0, 1),
               (${hostile}, ${hostile}, 'command', 'dead', ${hostile}, 0, null, 0, 1)`
      yield* sql`
        insert into tributary.change_batches (company_id, resource, history, ids, changes, began, landed_at, last_position, token)
        values (1, 'things', 'erp_history.things', '{1,2}', 2, tributary.now(), tributary.now() - interval '10 minutes', 120, 5)`
      yield* sql`
        insert into tributary.change_retries (endpoint, "position", company_number, resource, record_id, state, next_attempt_at)
        values ('slow', 99, 1, 'things', 1, 'waiting', tributary.now()), ('slow', 98, 1, 'things', 2, 'dead', tributary.now())`
      yield* sql`
        insert into tributary.change_attempts (endpoint, slot, number, message_id, first_position, changes, result, status, error, duration_ms)
        values ('app', 1, 1, 'chg_119_5', 119, 1, 'delivered', 200, null, 12), ('slow', 1, 1, 'chg_99_5', 99, 1, 'failed', 503, 'HTTP 503', 250),
               (${hostile}, 1, 1, ${hostile}, 1, 1, 'failed', null, ${hostile}, 1)`
      yield* sql`insert into tributary.change_endpoints (name, url, origin, state, last_position)
        values ('new', 'https://new.example.com/', 'command', 'active', 120)`
      const all = yield* ask(routes, [], "/endpoints")
      assert.match(all.read, /new active, no delivery yet none/)
      assert.include(all.read, "1 without a delivery yet")
      yield* sql`update tributary.change_endpoints set state = 'active', failing_since = null, delivered = 1 where name <> 'new'`
      yield* sql`update tributary.change_retries set state = 'waiting'`
      assert.include((yield* ask(routes, [], "/endpoints")).read, "not proved yet")
      yield* sql`update tributary.change_endpoints set delivered = 1 where name = 'new'`
      assert.include((yield* ask(routes, [], "/endpoints")).read, "delivering")
      assert.match(all.read, /app active none 0 0 3 never https:\/\/app\.example\.com/)
      assert.match(all.read, /slow failing since 5 min ago 20, 10 min 1 1 To send them again/)
      assert.include(all.read, "tributary changes endpoints replay slow")
      assert.match(all.read, /chg_99_5 slow failed 503 1 250 ms 0 ms ago HTTP 503/)
      assert.isFalse(holdsHostile(all.text))
      const one = yield* ask(routes, [], "/endpoints?endpoint=app")
      assert.include(one.read, "chg_119_5")
      assert.notInclude(one.read, "chg_99_5")
      assert.deepInclude(yield* Effect.flip(ask(routes, [], "/endpoints?endpoint=other")), { status: 404 })
    })
  )
})
