/** `tributary query`: the message of a statement that fails, and the formats of its rows. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { failedStatement, read, readTables } from "../../src/cli/query.ts"
import { csvRow } from "../../src/export/Csv.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import { layerWarehouse as warehouse, sql } from "../support/postgres.ts"
import { suite } from "../support/suite.ts"

suite("tributary query", warehouse, (test) => {
  test("names the place of a mistake, and what to do", function* () {
    const tables = "  hint: tributary query --tables lists the tables and views"
    for (const [statement, lines] of [
      [
        "select * from nothing",
        [
          'relation "nothing" does not exist (42P01)',
          "  LINE 1: select * from nothing",
          "                        ^",
          tables
        ]
      ],
      [
        "\n  select 'ä€😀',\n\tnothing\n  from tributary.runs ;",
        ['column "nothing" does not exist (42703)', "  LINE 2:  nothing", "           ^"]
      ],
      [
        "explain select 1 +",
        [
          "query runs one read-only statement (select, values, table, with, explain or show): syntax error at end of input (42601)",
          "  LINE 1: explain select 1 +",
          "                            ^"
        ]
      ],
      ["select 1 / 0", ["division by zero (22012)"]],
      [
        "select run_idd from tributary.quarantine",
        [
          'column "run_idd" does not exist (42703)',
          "  LINE 1: select run_idd from tributary.quarantine",
          "                 ^",
          '  hint: Perhaps you meant to reference the column "quarantine.run_id".'
        ]
      ]
    ] as const) {
      const error = yield* Effect.flip(read(statement))
      assert.deepStrictEqual(failedStatement(statement, error as never).message.split("\n"), [...lines])
    }
  })

  test("lists tables with their comments, as Postgres' own CSV", function* () {
    const { rows } = yield* readTables(datasetsDefault)
    const [{ meaning } = { meaning: "" }] = yield* sql<{ meaning: string }>`
      select obj_description('tributary.runs'::regclass) as meaning`
    assert.include(
      rows.map(([name, kind, , comment]) => [name, kind, comment].join("|")),
      `tributary.runs|control|${meaning}`
    )
    const cells = ["plain", null, "", 'a "b"', "c,d", " e", "two\nlines"]
    assert.strictEqual(csvRow(cells), 'plain,,"","a ""b""","c,d"," e","two\nlines"')
  })
})
