/** The figures of a table: equal for equal values, whatever the version and the settings of Postgres. */
import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type pg from "pg"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import * as Period from "../../../src/close/Period.ts"
import * as ReadFigures from "../../../src/close/ReadFigures.ts"
import * as Snapshot from "../../../src/close/Snapshot.ts"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { makeCompany } from "../../support/feeding.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { things } from "../../support/tiny.ts"
import { suite } from "../../support/suite.ts"

const dated: Resource = { ...things, businessDate: { field: "lastchangedate" } }

const read = (client: pg.Client, companyId: bigint, timeZone = "UTC", datasets = datasetsDefault) =>
  Effect.map(
    ReadFigures.ofResources({
      client,
      companyId,
      period: Period.parse("2026-01", timeZone)!,
      datasets,
      resources: [dated],
      models: [],
      catalogue: new Map([[dated.path, dated]])
    }),
    ([figures]) => figures!
  )

const sha256 = (...parts: ReadonlyArray<string | Uint8Array>): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest()

/** The digest of records as Postgres prints them, computed without it. */
const digestOf = (records: ReadonlyArray<string>): string => {
  const hashes = records.map((record) => sha256(record)).sort((one, other) => Buffer.compare(one, other))
  const groups = Array.from({ length: 256 }, (_, byte) => hashes.filter((hash) => hash[0] === byte))
  return sha256(...groups.filter((group) => group.length > 0).map((group) => sha256(...group))).toString("hex")
}

const recordOf = (id: number, name: string, price: string, second: number) =>
  `{"id": ${id}, "name": ${JSON.stringify(name)}, "price": "${price}", "custom_fields": {}, ` +
  `"lastchangedate": "${new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString().replace("Z", "000Z")}"}`

suite("the figures of a table", layerWarehouse, (test) => {
  test("have the digest that anyone can compute, exact sums, and no deleted record", function* () {
    const company = makeCompany(1n)
    company.put(1, 'één "1"', "0.1000")
    company.put(2, "two\n", "9007199254740993.0001")
    company.put(3, "three", "5.0000")
    yield* company.sync()
    company.rows.delete(3)
    yield* company.sync(true)
    const records = [...company.rows].map(([id, { name, price, second }]) => recordOf(id, name, price, second))
    const { client } = yield* Snapshot.open(1n)
    const { table, period, tombstones } = yield* read(client, 1n)
    assert.strictEqual(tombstones, 1)
    assert.deepStrictEqual(table, {
      count: 2,
      sums: { price: "9007199254740993.1001", weight: "0" },
      cancelled: { count: 0, sums: { price: "0", weight: "0" } },
      digest: digestOf(records)
    })
    assert.deepStrictEqual(period, table)
    const { table: none } = yield* read(client, 99n)
    assert.deepStrictEqual([none.count, none.digest], [0, digestOf([])])
  })

  test("have the digest of the JSON in a view of all versions, whatever the values", function* () {
    const company = makeCompany(5n)
    for (let id = 1; id <= 9; id++) company.put(id, `name ${id}`, `${id}.2500`)
    yield* company.sync()
    const set = (id: number, values: string) =>
      sql.unsafe(`update erp.things set ${values} where _company_id = 5 and id = ${id}`)
    yield* set(1, `"name" = E'quote " backslash \\\\ tab \t \u0001 \u007f ä 😀 / <', "memo" = '', "flag" = false`)
    yield* set(2, `"rank" = -9223372036854775808, "weight" = 'NaN', "flag" = true, "cancel" = true`)
    yield* set(3, `"day" = '0044-03-15 BC', "seen" = '9999-12-31 23:59:59.999999+00', "custom_fields" = null`)
    yield* set(4, `"day" = 'infinity', "seen" = '-infinity', "custom_fields" = 'null'`)
    yield* set(5, `"custom_fields" = '{"a": null, "b": [null, {"c": null}], "size": 1.10}', "_extra" = '{}'`)
    yield* set(6, `"_extra" = '{"a": 1.50, "longer name": null, "name": "replaced", "price": null}'`)
    yield* set(7, `"_extra" = '{"custom_fields": 1}', "day" = '2026-02-28'`)
    yield* set(8, `"custom_fields" = '[1, null]'`)
    const records = yield* sql.unsafe<{ record: string }>(
      "select jsonb_strip_nulls(record)::text as record from erp_history.things where _company_id = 5"
    )
    assert.lengthOf(records, 9)
    const { client } = yield* Snapshot.open(5n)
    assert.strictEqual((yield* read(client, 5n)).table.digest, digestOf(records.map(({ record }) => record)))
  })

  test("do not depend on the settings of the session", function* () {
    const company = makeCompany(2n)
    for (let id = 1; id <= 700; id++) company.put(id, `name ${id}`, `${id}.2500`)
    yield* company.sync()
    const { client } = yield* Snapshot.open(2n)
    const plain = yield* read(client, 2n)
    assert.strictEqual(
      plain.table.digest,
      digestOf([...company.rows].map(([id, { name, price, second }]) => recordOf(id, name, price, second)))
    )
    const settings = [
      "TimeZone = 'Pacific/Chatham'",
      "DateStyle = 'German, DMY'",
      "extra_float_digits = -15",
      "IntervalStyle = 'sql_standard'",
      "bytea_output = 'escape'",
      "jit = on",
      "work_mem = '64kB'",
      "enable_hashagg = off"
    ]
    for (const setting of settings) yield* query(client, "set", `set local ${setting}`)
    assert.deepStrictEqual(yield* read(client, 2n), plain)
  })

  test("are those of the views as of the position, for ever", function* () {
    const company = makeCompany(3n)
    for (let id = 1; id <= 50; id++) company.put(id, `name ${id}`, `${id}.5000`)
    yield* company.sync()
    const closed = yield* Effect.scoped(
      Effect.flatMap(Snapshot.open(3n), ({ client, position }) =>
        Effect.map(read(client, 3n), (figures) => ({ position, figures }))
      )
    )
    for (let id = 20; id <= 60; id++) company.put(id, "changed", "1.0000")
    company.rows.delete(1)
    yield* company.sync(true)
    const { client } = yield* Snapshot.open(3n)
    assert.notDeepEqual(yield* read(client, 3n), closed.figures)
    yield* query(client, "set", "select set_config('tributary.as_of', $1, true)", [
      `position ${ChangeFeed.textOf(closed.position)}`
    ])
    const asOf = yield* read(client, 3n, "UTC", { ...datasetsDefault, current: datasetsDefault.asOf })
    assert.deepStrictEqual(asOf, closed.figures)
  })

  test("take a time as a day of the period's time zone", function* () {
    const company = makeCompany(4n)
    // The change is early on 1 January in UTC: still December in New York.
    company.put(1, "one", "1.0000")
    yield* company.sync()
    const { client } = yield* Snapshot.open(4n)
    assert.strictEqual((yield* read(client, 4n)).period?.count, 1)
    const { period, untilEnd } = yield* read(client, 4n, "America/New_York")
    assert.deepStrictEqual([period?.count, untilEnd?.count], [0, 1])
  })
})
