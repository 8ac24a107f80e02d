/** Exports of tables with odd values, read back by DuckDB and as text. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import * as Export from "../../../src/export/Export.ts"
import type { Format } from "../../../src/export/Manifest.ts"
import { nameOf } from "../../../src/postgres/embedded/Process.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"
import { temporaryFolder } from "../../support/servers.ts"

const createTables = Effect.gen(function* () {
  for (const statement of [
    "create schema if not exists erp",
    "create schema if not exists erp_history",
    "drop table if exists erp.things, erp.others cascade",
    `create table erp.things ("_company_id" bigint, id bigint, amount numeric(20,4), loose numeric, name text, flag boolean,
       day date, at timestamptz, lines jsonb, "select" text, primary key ("_company_id", id))`,
    `insert into erp.things values
       (1, 1, 0.1, 1.10, 'plain', true, '2026-02-28', '2026-01-02 03:04:05.678901+02', '[{"a": "b,\\"c\\""}]', 'x'),
       (1, 2, 1234567890123456.7891, 123456789012345678901234567890.5, e'tab\\tquote"comma,\\nline\\\\', false, '0001-01-01',
         '2999-12-31 23:59:59.999999+00', '{"k": "\\u00e9"}', ''),
       (2, 3, null, null, '', null, null, null, null, null),
       (2, -4, -0.0001, -0, '\\N', true, '9999-12-31', '1970-01-01', 'null', 'null')`,
    `create table erp.others ("_company_id" bigint, id bigint, name text)`,
    `create view erp_history.things as
       select "_company_id", id, 1::bigint as "_version", to_jsonb(name) as record from erp.things`
  ])
    yield* sql.unsafe(statement)
})

/** New tables, and a folder to export to. */
const tablesAndFolder = Effect.andThen(createTables, temporaryFolder)

/** Values of the rows in each format. */
const lines = '[{"a": "b,\\"c\\""}]'
const decimals = ["1234567890123456.7891", "123456789012345678901234567890.5"]
const oddText = 'tab\tquote"comma,\nline\\'
const parseJson = (text: string) => JSON.parse(text) as Record<string, unknown>

const columns = ["_company_id", "id", "amount", "loose", "name", "flag", "day", "at", "lines", "select"]
/** The values of a row, which has no other columns. */
const valuesOf = (row: Readonly<Record<string, unknown>>) => {
  assert.sameMembers(Object.keys(row), columns)
  return columns.map((column) => row[column])
}

const optionsOf = (folder: string, format: Format, more: Partial<Export.ExportOptions> = {}): Export.ExportOptions => ({
  folder,
  format,
  datasets: datasetsDefault,
  tables: ["things", "others", "unknown"],
  history: false,
  since: null,
  companyId: null,
  ...more
})

const parquetRows = async (pattern: string) => {
  const connection = await (await DuckDBInstance.create(":memory:")).connect()
  const result = await connection.runAndReadAll(
    `select columns(*)::varchar from read_parquet('${pattern.replaceAll("'", "''")}') order by id`
  )
  connection.closeSync()
  return result.getRowObjectsJson()
}

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.\w+$/.test(path))
    .sort()

suite("an export", layerWarehouse, (test) => {
  test("is closed to other users, whatever the mask of the process is", function* () {
    yield* createTables
    for (const [mask, format, file, below] of [
      [0, "parquet", "640", "750"],
      [0, "csv", "640", "750"],
      [0o077, "parquet", "600", "700"],
      [0o022, "ndjson", "640", "750"]
    ] as const) {
      const folder = join(yield* temporaryFolder, "made")
      yield* Effect.acquireUseRelease(
        Effect.sync(() => process.umask(mask)),
        () => Export.run(optionsOf(folder, format, { history: true })),
        (before) => Effect.sync(() => process.umask(before))
      )
      const modes = ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" })].map((name) => {
        const stat = statSync(join(folder, name))
        assert.strictEqual((stat.mode & 0o777).toString(8), stat.isFile() ? file : below, name)
      })
      assert.isAbove(modes.length, 6)
    }
  })

  test("keeps every digit and every character in Parquet", function* () {
    const folder = yield* tablesAndFolder
    const { tables } = yield* Export.run(optionsOf(folder, "parquet"))
    assertEach(tables, ({ table, rows }) => `${table} ${rows}`, ["erp.others 0", "erp.things 4"])
    const things = tables.find(({ table }) => table === "erp.things")!
    const rows = yield* Effect.promise(() => parquetRows(join(folder, things.files[0]!.path)))
    assert.deepStrictEqual(rows.map(valuesOf), [
      ["2", "-4", "-0.0001", "0", "\\N", "true", "9999-12-31", "1970-01-01 00:00:00+00", "null", "null"],
      ["1", "1", "0.1000", "1.10", "plain", "true", "2026-02-28", "2026-01-02 01:04:05.678901+00", lines, "x"],
      ["1", "2", ...decimals, oddText, "false", "0001-01-01", "2999-12-31 23:59:59.999999+00", '{"k": "é"}', ""],
      ["2", "3", null, null, "", null, null, null, null, null]
    ])
    const others = tables.find(({ table }) => table === "erp.others")!
    assert.deepStrictEqual(yield* Effect.promise(() => parquetRows(join(folder, others.files[0]!.path))), [])
  })

  test("writes decimals as text in NDJSON, and one line for each row", function* () {
    const folder = yield* tablesAndFolder
    const { tables } = yield* Export.run(optionsOf(folder, "ndjson", { companyId: 1n }))
    const path = tables.find(({ table }) => table === "erp.things")!.files[0]!.path
    const objects = readFileSync(join(folder, path), "utf8").trimEnd().split("\n").map(parseJson)
    assert.deepStrictEqual(objects.map(valuesOf), [
      [1, 1, "0.1000", "1.10", "plain", true, "2026-02-28", "2026-01-02T01:04:05.678901Z", parseJson(lines), "x"],
      [1, 2, ...decimals, oddText, false, "0001-01-01", "2999-12-31T23:59:59.999999Z", { k: "é" }, ""]
    ])
  })

  test("writes CSV with a header, and the history beside the current records", function* () {
    const folder = yield* tablesAndFolder
    const { tables } = yield* Export.run(optionsOf(folder, "csv", { history: true, tables: ["things"] }))
    assertEach(tables, ({ table, rows, files }) => [table, rows, files[0]!.path.replace(/\d{8}T\d+Z/, "*")], [
      ["erp.things", 4, "things/*.csv"],
      ["erp_history.things", 4, "history/things/*.csv"]
    ])
    const text = readFileSync(join(folder, tables[0]!.files[0]!.path), "utf8")
    assert.include(text, `${columns.join()}\n`)
    assert.include(text, '\n2,3,,,"",,,,,\n')
  })

  test("keeps the export before and removes older ones", function* () {
    const folder = yield* tablesAndFolder
    const pathOf = Effect.map(
      Export.run(optionsOf(folder, "csv", { tables: ["things"] })),
      ({ tables }) => tables[0]!.files[0]!.path
    )
    const [, second, third] = [yield* pathOf, yield* pathOf, yield* pathOf]
    writeFileSync(join(folder, "things", "of a person.csv"), "")
    assert.deepStrictEqual(filesBelow(folder), ["manifest.json", second, third, "things/of a person.csv"].sort())
  })

  test("has the records that changed after a position, and all of a table that began again", function* () {
    const folder = yield* tablesAndFolder
    const add = (kind: string, ids: string) =>
      sql.unsafe(
        `insert into tributary.change_batches (company_id, resource, history, kind, ids, changes, began)
           values (1, 'things', '"erp_history"."things"', '${kind}', '{${ids}}', 1, now())`
      )
    yield* add("versions", "1")
    const { position } = yield* Export.run(optionsOf(folder, "csv", { tables: ["things"] }))
    const changedSince = Effect.suspend(() =>
      Export.run(
        optionsOf(folder, "csv", { tables: ["things", "others"], history: true, since: ChangeFeed.parse(position) })
      )
    ).pipe(
      Effect.map(({ tables }) =>
        tables.map(({ table, rows, complete }) => `${table} ${rows}${complete ? " complete" : ""}`)
      )
    )
    assert.deepStrictEqual(yield* changedSince, ["erp.others 0", "erp.things 0", "erp_history.things 0"])
    yield* add("versions", "2")
    assert.deepStrictEqual((yield* changedSince).slice(1), ["erp.things 1", "erp_history.things 1"])
    yield* add("truncate", "null")
    assert.deepStrictEqual((yield* changedSince).slice(1), ["erp.things 4 complete", "erp_history.things 4 complete"])
    const other = { number: ChangeFeed.parse(position)!.number, token: "0" }
    assert.match((yield* Effect.flip(Export.run(optionsOf(folder, "csv", { since: other })))).message, /restored/)
  })

  test("leaves the export before when it fails, and no unfinished file", function* () {
    const folder = yield* tablesAndFolder
    yield* Export.run(optionsOf(folder, "csv", { tables: ["things"] }))
    const before = readFileSync(join(folder, "manifest.json"), "utf8")
    yield* sql.unsafe(
      `create or replace view erp_history.things as
           select "_company_id", id, (1 / (id - id))::bigint as "_version", to_jsonb(name) as record from erp.things`
    )
    const failed = yield* Effect.flip(Export.run(optionsOf(folder, "csv", { tables: ["things"], history: true })))
    assert.include(failed.message, "division by zero")
    assert.strictEqual(readFileSync(join(folder, "manifest.json"), "utf8"), before)
    assert.isFalse(existsSync(join(folder, ".partial")))
    yield* createTables
    yield* Export.run(optionsOf(folder, "csv", { tables: ["things"] }))
  })

  test("refuses a folder to which another export writes, and replaces the rest of one that was killed", function* () {
    const folder = yield* tablesAndFolder
    const partial = join(folder, ".partial")
    const own = (owner: string) => {
      mkdirSync(partial)
      writeFileSync(join(partial, "owner"), owner)
    }
    own(`${nameOf(process.ppid)} ${hostname()}`)
    const busy = yield* Effect.flip(Export.run(optionsOf(folder, "csv")))
    assert.include(busy.message, `process ${process.ppid} on ${hostname()} exports to this folder`)
    rmSync(partial, { recursive: true })
    // Another process has the number of the killed one.
    own(`${process.ppid}.another-start ${hostname()}`)
    yield* Export.run(optionsOf(folder, "csv"))
    own("1 another-host")
    assert.include((yield* Effect.flip(Export.run(optionsOf(folder, "csv")))).message, "on another-host exports")
    rmSync(join(partial, "owner"))
    yield* Export.run(optionsOf(folder, "csv"))
    writeFileSync(join(folder, "manifest.json"), "{}")
    const other = yield* Effect.flip(Export.run(optionsOf(folder, "csv")))
    assert.include(other.message, "is not the manifest of an export")
  })
})
