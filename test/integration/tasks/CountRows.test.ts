/** Row counts: their times, their companies, and the estimates that replace them when counting is slow. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import * as CountRows from "../../../src/tasks/CountRows.ts"
import { execute, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { until } from "../../support/until.ts"
import { testWith } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

/** Runs statements one after the other. */
const tell = (text: string) => Effect.forEach(text.split(";"), (statement) => execute(statement), { discard: true })

/**
 * A table with the columns that counting reads, and its checkpoints. `rows` fills it for a company; one row in ten is a
 * tombstone.
 */
const table = (name: string) =>
  `create schema if not exists erp;
   create table erp."${name}" ("_company_id" bigint not null, id bigint not null, "_deleted_at" timestamptz);
   insert into tributary.checkpoints (company_id, resource, updated_at) values (1, '${name}', now()), (2, '${name}', now())`

const rows = (name: string, company: number, from: number, to: number) =>
  `insert into erp."${name}" select ${company}, n, case when n % 10 = 0 then now() end from generate_series(${from}, ${to}) n`

const run = (name: string, company: number, inserted: number) =>
  `insert into tributary.runs (company_id, resource, kind, status, fence, started_at, finished_at, inserted)
   values (${company}, '${name}', 'full', 'done', 1, tributary.now(), tributary.now(), ${inserted})`

const rowCounts = Effect.map(CountRows.read, (counts) =>
  [...counts]
    .map(([key, { rows, deleted, isExact }]) => [key, rows, deleted, isExact] as const)
    .toSorted((one, other) => (one[0] < other[0] ? -1 : 1))
)

const countsOf = (count: number) => until("the counts", rowCounts, ({ length }) => length >= count)

describe("row counts", () => {
  const test = testWith(warehouse)

  test("cover every company at first, and are repeated only for changed resources", function* () {
    yield* tell(table("things") + ";" + rows("things", 1, 1, 100) + ";" + run("things", 1, 100))
    yield* execute(
      `insert into tributary.sql_names (scope, api_name, sql_name) values ('', 'odd/things', 'odd_things_1')`
    )
    yield* tell(
      table("odd_things_1").replace(/'odd_things_1'/g, "'odd/things'") +
        ";" +
        rows("odd_things_1", 2, 1, 30) +
        ";" +
        run("odd/things", 2, 30)
    )
    // A resource whose table does not exist yet, and a resource without rows.
    yield* tell(run("nothing", 1, 5) + ";" + table("still") + ";" + run("still", 1, 0))
    const expected = [
      ["1 odd/things", 0, 0, true],
      ["1 still", 0, 0, true],
      ["1 things", 90, 10, true],
      ["2 odd/things", 27, 3, true],
      ["2 still", 0, 0, true],
      ["2 things", 0, 0, true]
    ]
    const first = yield* Effect.raceFirst(CountRows.countRows(datasetsDefault), countsOf(6))
    assert.deepStrictEqual<unknown>(first, expected)
    const before = yield* CountRows.read

    // A process that starts later counts only changed resources.
    yield* tell(rows("things", 1, 101, 110) + ";" + run("things", 1, 10))
    const next = until("the next count", CountRows.read, (counts) => counts.get("1 things")?.rows === 99)
    const second = yield* Effect.raceFirst(CountRows.countRows(datasetsDefault), next)
    assert.strictEqual(second.get("1 things")?.deleted, 11)
    assert.deepStrictEqual(second.get("2 odd/things"), before.get("2 odd/things"), "it was not counted again")
  })

  test("are marked as estimates from Postgres when counting exceeds its time limit", function* () {
    yield* tell(
      table("many") +
        ";" +
        rows("many", 1, 1, 300_000) +
        ";" +
        rows("many", 2, 1, 100_000) +
        `; analyze erp.many;` +
        run("many", 1, 400_000)
    )
    const counts = yield* Effect.raceFirst(
      CountRows.countRows(datasetsDefault, { countTimeout: Duration.millis(1) }),
      countsOf(2)
    )
    assertEach(counts, ([key, , , isExact]) => [key, isExact], [
      ["1 many", false],
      ["2 many", false]
    ])
    for (const [index, rows] of [270_000, 90_000].entries()) {
      assert.closeTo(counts[index]![1], rows, rows / 20)
      assert.closeTo(counts[index]![2], rows / 9, rows / 90)
    }
  })
})
