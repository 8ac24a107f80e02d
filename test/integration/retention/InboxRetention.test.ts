/** Retention of the inbox. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as InboxRetention from "../../../src/retention/InboxRetention.ts"
import { layerWarehouse as warehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

suite("retention of the inbox", warehouse, (test) => {
  test("deletes old processed events and excess dead letters, and no pending event", function* () {
    const company = "main"
    yield* sql`insert into tributary.inbox (company, event_id, event_type, sent_at, body, state, resolved_at, received_at)
        select ${company}, state || days || '-' || n, 'x', tributary.now(), '', state,
               case when state <> 'pending' then tributary.now() - days * interval '1 day' end,
               tributary.now() - days * interval '1 day'
          from unnest(array['pending', 'dead_letter', 'done', 'skipped']) state, unnest(array[1, 80, 100]) days,
               generate_series(1, 3000) n`
    yield* sql`insert into tributary.delivery_gaps (company, resource, cause, detail, closed_at)
        values (${company}, 'a', 'event_lost', '', null),
               (${company}, 'b', 'event_lost', '', tributary.now() - interval '100 days'),
               (${company}, 'c', 'event_lost', '', tributary.now() - interval '1 day')`
    yield* sql`insert into tributary.processes (process_id, companies, started_at, heartbeat_at, stopped_at)
        select process_id, array['x'], tributary.now() - began * interval '1 day', tributary.now() - alive * interval '1 day',
               tributary.now() - ended * interval '1 day'
          from (values ('ended', 120, 101, 100), ('killed', 119, 99, null), ('last', 98, 97, 97)) as r (process_id, began, alive, ended)`
    const retention = Duration.days(30)
    const first = yield* InboxRetention.remove({ retention })
    assert.deepStrictEqual(first, { events: 12_000, dead: 3_000, gaps: 1, processes: 2 })
    assert.deepStrictEqual(yield* InboxRetention.remove({ retention }), { events: 0, dead: 0, gaps: 0, processes: 0 })
    assert.deepInclude(yield* InboxRetention.remove({ retention, resolvedMax: 100 }), { events: 5_900, dead: 0 })
    // The oldest dead letters are deleted first.
    assert.deepInclude(yield* InboxRetention.remove({ retention, deadMax: 2_500 }), { events: 0, dead: 3_500 })
    const [oldest] = yield* sql<{ readonly days: number }>`
        select extract(day from tributary.now() - min(resolved_at))::int as days from tributary.inbox where state = 'dead_letter'`
    assert.strictEqual(oldest!.days, 1)
    const rows = yield* sql<{ readonly state: string; readonly count: bigint }>`
        select state, count(*) as count from tributary.inbox group by 1 order by 1`
    const counted = new Map(rows.map(({ state, count }) => [state, Number(count)]))
    assert.deepStrictEqual([counted.get("dead_letter"), counted.get("pending")], [2_500, 9_000])
    assert.strictEqual((counted.get("done") ?? 0) + (counted.get("skipped") ?? 0), 100)
  })
})
