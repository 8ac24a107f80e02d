/** The view `tributary.freshness`. */
import { Effect } from "effect"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

const minutes = (count: number) => `tributary.now() - interval '${count} minutes'`

const statements = [
  "insert into tributary.companies (company, company_id) values ('north', 1)",
  `insert into tributary.tasks (company, resource, kind, freshness_target_ms, status, paused_at) values
     ('north', 'fresh', 'sync', 900000, 'done', null), ('north', 'late', 'sync', 900000, 'failed', ${minutes(1)}),
     ('north', 'never', 'sync', 900000, null, null), ('north', 'blocked', 'sync', 900000, 'skipped', null),
     ('north', 'fresh', 'backfill', null, null, null), ('unknown', 'fresh', 'sync', 900000, null, null)`,
  `insert into tributary.checkpoints (company_id, resource, updated_at)
   select 1, resource, tributary.now() from unnest(array['fresh', 'late', 'command']) resource`,
  `insert into tributary.runs (company_id, resource, lane, kind, status, fence, started_at) values
     (1, 'fresh', 'live', 'full', 'done', 1, ${minutes(60)}), (1, 'fresh', 'live', 'incremental', 'done', 1, ${minutes(5)}),
     (1, 'late', 'live', 'full', 'done', 1, ${minutes(30)}), (1, 'late', 'live', 'children', 'done', 1, ${minutes(4)}),
     (1, 'late', 'live', 'incremental', 'quarantined', 1, ${minutes(3)}), (1, 'late', 'backfill', 'full', 'done', 1, ${minutes(2)}),
     (1, 'command', 'live', 'full', 'done', 1, ${minutes(60)})`
]

suite("the view tributary.freshness", layerWarehouse, (test) => {
  test("counts from the start of the last run that read and landed everything", function* () {
    yield* Effect.forEach(statements, (statement) => sql.unsafe(statement))
    const rows = yield* sql<{ company: string; resource: string; minutes: number | null; late: boolean }>`
        select company, resource, floor(extract(epoch from age) / 60)::int as minutes, is_late as late
          from tributary.freshness order by company, resource`
    assertEach(rows, (row) => Object.values(row), [
      ["north", "blocked", null, false],
      ["north", "command", 60, false],
      ["north", "fresh", 5, false],
      ["north", "late", 30, true],
      ["north", "never", null, true],
      ["unknown", "fresh", null, true]
    ])
  })
})
