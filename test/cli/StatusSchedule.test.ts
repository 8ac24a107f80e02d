/** The schedule in `tributary status`. */
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { scheduleLines } from "../../src/cli/status/Format.ts"
import * as Schedule from "../../src/status/Schedule.ts"
import { layerWarehouse as warehouse } from "../support/postgres.ts"

describe("tributary status", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("of the schedule", (it) => {
    it.effect("prints nothing before the first serve, then the state of each company's tasks", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const nothing = yield* Schedule.read
        assert.deepStrictEqual(nothing, { processes: 0, tasks: [] })
        assert.deepStrictEqual(scheduleLines(nothing), [])

        yield* sql`
          insert into tributary.tasks
            (company, resource, kind, schedule, next_run_at, process_id, paused_at, requested_at, status, failures, error, remedy)
          select 'main', resource, kind, schedule, tributary.now() + next::interval, owner,
                 case when paused then tributary.now() end, case when asked then tributary.now() end, status, failures, error, remedy
            from (values
              ('a', 'sync', 'every 10 min', '1 s', 'one', false, false, 'done', 0, null, null),
              ('b', 'sync', 'every 10 min', '150 s', null, false, false, 'done', 0, null, null),
              ('c', 'sync', 'every 10 min', '-1 h', null, true, false, 'done', 0, null, null),
              ('d', 'sync', 'every 10 min', '630 s', 'dead', false, false, 'failed', 3, 'it broke', 'repair it'),
              ('e', 'sync', 'every 10 min', '630 s', null, false, false, 'failed', 1, 'it broke', 'repair it'),
              ('f', 'sync', null, null, null, false, true, 'skipped', 0, 'the token lacks a scope', 'give it'),
              ('g', 'backfill', null, null, 'one', false, false, null, 0, null, null)
            ) as v(resource, kind, schedule, next, owner, paused, asked, status, failures, error, remedy)`
        yield* sql`
          insert into tributary.processes (process_id, companies, heartbeat_at, stopped_at) values
            ('one', ${["main"]}, tributary.now(), null),
            ('silent', ${["main"]}, tributary.now() - interval '2 min', null),
            ('ended', ${["main"]}, tributary.now(), tributary.now())`
        const status = yield* Schedule.read
        assert.deepStrictEqual(scheduleLines(status), [
          "  processes of serve: 1 alive",
          "  schedule of main: 5 resources, next b in 2 min",
          "    running: a, backfill of g",
          "    requested: f",
          "    paused: c",
          "    skipped, since the token may not read them: f",
          "    failed: d, e: it broke; again in 10 min",
          "      what to do: repair it"
        ])
        yield* sql`insert into tributary.tasks (company, resource, kind, paused_at)
          select 'many', 'r' || n, 'sync', tributary.now() from generate_series(1, 9) n`
        assert.include(scheduleLines(yield* Schedule.read), "    paused: r1, r2, r3, r4, r5, r6, r7, r8 and 1 more")
        yield* sql`update tributary.processes set stopped_at = tributary.now()`
        assert.include(scheduleLines(yield* Schedule.read)[0]!, "none alive")
      })
    )
  })
})
