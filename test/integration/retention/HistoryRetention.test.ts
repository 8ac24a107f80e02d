/** Retention of the history. */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as HistoryRetention from "../../../src/retention/HistoryRetention.ts"
import { things } from "../../support/tiny.ts"
import { warehouseWith } from "../sync/syncing.ts"
import { suite } from "../../support/suite.ts"
import { sql } from "../../support/postgres.ts"

const table = tableOf(things)
const warehouse = warehouseWith([table])

suite("retention of the history", warehouse, (test) => {
  test("deletes versions replaced before the limit, never the current one, and nothing without a limit", function* () {
    // 6,000 records with three earlier versions each, more than a batch. The versions were replaced 300, 200 and 10
    // days ago.
    yield* sql.unsafe(
      `insert into ${table.superseded} ("_company_id", "id", "_version", "_origin", "_observed_at", "_valid_to")
         select 1 + n % 2, n, v, 'scan', tributary.now() - interval '400 days',
                tributary.now() - make_interval(days => (array[300, 200, 10])[v])
           from generate_series(-10, 5989) n, generate_series(1, 3) v`
    )
    yield* sql.unsafe(
      `insert into ${table.current} ("_company_id", "id", "_version", "_origin", "_observed_at")
         select 1 + n % 2, n, 4, 'scan', tributary.now() - interval '399 days' from generate_series(-10, 5989) n`
    )
    const versions = Effect.map(
      sql.unsafe<{ version: string; n: number }>(
        `select "_version"::text as version, count(*)::int as n from ${table.view} group by 1 order by 1`
      ),
      (rows) => rows.map(({ n, version }) => `${version}: ${n}`)
    )
    const dataset = table.datasets.history
    assert.strictEqual(yield* HistoryRetention.remove(dataset, null), 0)
    assert.strictEqual(yield* HistoryRetention.remove(dataset, Duration.days(365)), 0)
    assert.strictEqual(yield* HistoryRetention.remove(dataset, Duration.days(30)), 12_000)
    assert.deepStrictEqual(yield* versions, ["3: 6000", "4: 6000"])
  })
})
