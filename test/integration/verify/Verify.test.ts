/**
 * Verify against a real Postgres: it reports every altered value, reports only equal rows as equal, and tolerates a
 * source that changes meanwhile.
 */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { exact } from "../../../connectors/service-v2/catalogue/resource.ts"
import type { ConnectorShape } from "../../../src/connector/Connector.ts"
import { Forbidden, PageDrift, PageTokenRefused, ServerFault } from "../../../src/connector/SourceError.ts"
import { externalid, id, ref, string } from "../../../connectors/service-v2/catalogue/fields.ts"
import { withInferred } from "../../../src/warehouse/WarehouseCatalogue.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { compare } from "../../../src/verify/Compare.ts"
import { canonical, parse } from "../../../src/json/Json.ts"
import { chanceOfFinding } from "../../../src/verify/Sample.ts"
import type { ResourceReport } from "../../../src/verify/Report.ts"
import { verifyResource, type VerifyOptions } from "../../../src/verify/Verify.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { differingIds, load, memorySource, type MemorySource } from "./support.ts"
import { suite } from "../../support/suite.ts"
import { gauges, shopOf, shopResource } from "../../support/tiny.ts"

/** A resource with a list and one filter, without timestamps. */
const labels = shopResource("labels", "L", [id(), ref("gaugeid", "gauges"), string("name", 50), externalid()], {
  filters: [exact("gaugeid")]
})
const shop = shopOf(gauges, labels)
const inferredGauges = withInferred(gauges, [
  { name: "colour code", type: "text", column: "colour_code_1" },
  { name: "ratio", type: "number", column: "ratio" },
  { name: "tags", type: "json", column: "tags" }
])
const tables = { gauges: tableOf(gauges), labels: tableOf(labels) }

const warehouse = Layer.effectDiscard(TablePlan.apply([tables.gauges, tables.labels])).pipe(
  Layer.provideMerge(layerWarehouse)
)

let companies = 0n

const gauge = (number: number, more = "") =>
  `{"id":${number},"name":"gauge ${number}","price":"${number}.5000","weight":"0.000001","rank":7,"flag":true,` +
  `"day":"2026-02-28","seen":"2026-03-01T10:00:00.123456Z","memo":null,"parts":[{"no":1}],` +
  `"lastchangedate":"2026-01-01T00:00:00.000000Z"${more}}`
const label = (number: number, gaugeid: number) =>
  `{"id":${number},"gaugeid":${gaugeid},"name":"label","externalid":null}`

/** A source and an equal warehouse of a new company. */
const equalPair = Effect.fnUntraced(function* (texts: ReadonlyArray<string>, table = tables.gauges, pageSize = 4) {
  const companyId = (companies += 1n)
  const source = memorySource(shop, companyId, pageSize)
  for (const one of texts) source.records.set(String((JSON.parse(one) as { id: number }).id), one)
  yield* load(table, companyId, texts)
  return { companyId, source, table }
})
type Pair = Effect.Success<ReturnType<typeof equalPair>>

/** Changes rows of the pair in the warehouse. */
const alter = ({ table, companyId }: Pair, set: string, where = "true") =>
  execute(`update ${table.current} set ${set} where _company_id = $1 and ${where}`, [companyId])
const remove = ({ table, companyId }: Pair, where = "true") =>
  execute(`delete from ${table.current} where _company_id = $1 and ${where}`, [companyId])
const softDeleted = `"_deleted_at" = tributary.now()`

const verify = (pair: Pair, more: Partial<VerifyOptions<SqlClient.SqlClient>> = {}) =>
  verifyResource<SqlClient.SqlClient>({
    companyId: pair.companyId,
    connector: pair.source.connector,
    table: pair.table,
    sample: null,
    seed: 1,
    repair: null,
    ...more
  })

/** `17 different price seen`, one line per finding. */
const briefly = (report: ResourceReport): ReadonlyArray<string> =>
  report.findings.map(({ id: number, kind, isDeleted, notYetSynced, fields }) =>
    [
      number,
      kind,
      ...(isDeleted ? ["deleted"] : []),
      ...(notYetSynced ? ["waiting"] : []),
      ...fields.map(({ field }) => field)
    ].join(" ")
  )

const listed = (text: string) => text.trim().split(/\s+\|\s+/)
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at + 1)
const gaugesUpTo = (count: number) => numbers(count).map((number) => gauge(number))

/** Changes the source once, while a page is read. */
const once = (source: MemorySource, when: string, change: () => void) => {
  source.before = (request) => {
    if (!request.startsWith(when)) return null
    source.before = () => null
    change()
    return null
  }
}

suite("verify", warehouse, (test) => {
  test("reports equal records as equal in every form of the wire format", function* () {
    const pair = yield* equalPair([
      ...gaugesUpTo(9),
      gauge(10, `,"custom_fields":{"colour":"red","size":1.10},"unknown":1.50,"nested":{"a":[1e2,-0.0,"\\u00e4"]}`),
      `{"id":11,"name":"","price":"0.1000","weight":"-1.000000","rank":0,"flag":false,"day":null,"seen":null,"memo":"a\\nb\\\\","parts":[],"lastchangedate":null}`
    ])
    const report = yield* verify(pair)
    assert.deepStrictEqual(briefly(report), [])
    assert.deepInclude(report, { status: "equal", source: 11, warehouse: 11, requests: 3, moved: 0, repeated: 0 })
    assert.deepStrictEqual(yield* differingIds(pair.table, pair.companyId, pair.source.records.values()), [])
    // The same values in another notation.
    pair.source.records.set(
      "1",
      `{ "lastchangedate":"2026-01-01T01:00:00+01:00", "parts" : [ {"no":1} ], "memo":null,"seen":"2026-03-01T10:00:00.123456000Z","day":"2026-02-28T00:00:00Z","flag":1,"rank":"7","weight":0.000001,"price":"01.5","name":"gauge 1","id":"1"}`
    )
    assert.deepStrictEqual(briefly(yield* verify(pair)), [])
  })

  test("compares JSON values exactly like jsonb", function* () {
    const sql = yield* SqlClient.SqlClient
    const texts = listed(String.raw`
      0 | -0 | -0.0 | 0.00 | 1.10 | 1.1 | 1e2 | 100 | 1.5e3 | 1.50e1 | 15 | 15.0 | 12e-1 | 1.2 | -1.20E+0 |
      0.001 | 1e-3 | 10e-4 | 12345678901234567890.10 | 1e30 | -7 | [] | {} | null | true | "true" | "" |
      "\u00e4" | "ä" | "\/" | "/" | [1,[]] | [1, [ ]] | {"a":1,"b":2} | {"b":2,"a":1} | {"a":2,"a":1,"b":2} |
      {"a":1.0,"b":2} | {"\\":0} | {"\"":0}`)
    const [row] = yield* sql.unsafe<{ kept: ReadonlyArray<string> }>(
      "select to_jsonb(array_agg(one::jsonb::text order by place)) as kept from jsonb_array_elements_text($1::jsonb) with ordinality as sent(one, place)",
      [JSON.stringify(texts)]
    )
    const storedTexts = row!.kept
    for (const [at, text] of texts.entries()) {
      for (const [other, second] of texts.entries()) {
        const same = canonical(parse(text)) === canonical(parse(second))
        assert.strictEqual(same, storedTexts[at] === storedTexts[other], `${text} and ${second}`)
      }
    }
  })

  test("reports the field of every altered value", function* () {
    const tamper: ReadonlyArray<readonly [set: string, finding: string]> = [
      [`"price" = 1.5001`, "different price"],
      [`"name" = null`, "different name"],
      [`"memo" = ''`, "different memo"],
      [`"name" = ''`, "different name"],
      [`"weight" = 0.000002`, "different weight"],
      [`"flag" = false`, "different flag"],
      [`"rank" = 8`, "different rank"],
      [`"day" = 'infinity'`, "different day"],
      [`"day" = '2026-03-01'`, "different day"],
      [`"seen" = "seen" + interval '1 microsecond'`, "different seen"],
      [`"seen" = 'infinity'`, "different seen"],
      [`"parts" = '[{"no":2}]'`, "different parts"],
      [`"parts" = '[{"no":1.0}]'`, "different parts"],
      [`"lastchangedate" = null`, "different lastchangedate"],
      [`"custom_fields" = '{"colour":"blue","size":1.10}'`, "different custom_fields"],
      [`"custom_fields" = '{"colour":"red","size":1.1}'`, "different custom_fields"],
      [`"custom_fields" = null`, "different custom_fields"],
      [`"_extra" = '{"unknown":1.5,"fine":"2026-01-01T00:00:00.1234567Z"}'`, "different unknown"],
      [`"_extra" = null`, "different unknown fine"],
      [`"_extra" = "_extra" || '{"more":null}'`, "different more"],
      [`"_extra" = '[]'`, "different _extra unknown fine"],
      [`"_deleted_at" = tributary.now()`, "missing deleted"]
    ]
    const pair = yield* equalPair(
      tamper.map((_, at) =>
        gauge(
          at + 1,
          `,"custom_fields":{"colour":"red","size":1.10},"unknown":1.50,"fine":"2026-01-01T00:00:00.1234567Z"`
        )
      )
    )
    for (const [at, [set]] of tamper.entries()) {
      yield* alter(pair, set, `id = ${at + 1}`)
    }
    const report = yield* verify(pair)
    assert.deepStrictEqual(
      briefly(report),
      tamper.map(([, finding], at) => `${at + 1} ${finding}`)
    )
    assert.deepInclude(report, { status: "unequal", missing: 1, surplus: 0, different: tamper.length - 1 })
    assert.deepStrictEqual(report.findings[0]!.fields, [{ field: "price", source: '"1.5000"', warehouse: '"1.5001"' }])
    assert.deepStrictEqual(report.findings[2]!.fields, [{ field: "memo", source: "null", warehouse: '""' }])
    // Plain SQL gives the same result, as far as it compares scale.
    const bySql = yield* differingIds(pair.table, pair.companyId, pair.source.records.values())
    assert.deepStrictEqual(
      bySql.map(Number),
      report.findings.map(({ id: number }) => Number(number))
    )
  })

  test("reports lost digits in a column although _extra still contains them", function* () {
    const fine = gauge(1).replace("10:00:00.123456Z", "10:00:00.123456789Z")
    const pair = yield* equalPair([fine])
    yield* alter(pair, `"_extra" = '{"seen":"2026-03-01T10:00:00.123456789Z"}', "seen" = '2026-03-01T10:00:00.123456Z'`)
    assert.deepStrictEqual(briefly(yield* verify(pair)), [])
    yield* alter(pair, `"seen" = '2026-03-01T10:00:00.123457Z'`)
    assert.deepStrictEqual(briefly(yield* verify(pair)), ["1 different seen"])
    yield* alter(pair, `"seen" = '2026-03-01T10:00:00.123456Z', "_extra" = null`)
    assert.deepStrictEqual(briefly(yield* verify(pair)), ["1 different seen"])
  })

  test("reports rows that are missing, invented or moved to another company", function* () {
    const pair = yield* equalPair(gaugesUpTo(10))
    const other = yield* equalPair([])
    yield* remove(pair, "id = 3")
    yield* load(pair.table, pair.companyId, [gauge(99)])
    yield* alter(pair, `_company_id = ${other.companyId}`, "id = 5")
    const report = yield* verify(pair)
    assert.deepStrictEqual(briefly(report), ["3 missing", "5 missing", "99 surplus"])
    assert.deepInclude(report, {
      status: "unequal",
      source: 10,
      warehouse: 9,
      missing: 2,
      surplus: 1,
      different: 0
    })
    assert.deepStrictEqual(briefly(yield* verify(other)), ["5 surplus"])
    // The simple comparison of the test support gives the same result.
    const small = yield* compare(pair.table, pair.companyId, pair.source.records.values())
    assert.deepStrictEqual(small, {
      source: 10,
      warehouse: 9,
      differences: [
        { id: "3", kind: "missing", fields: [] },
        { id: "5", kind: "missing", fields: [] },
        { id: "99", kind: "surplus", fields: [] }
      ]
    })
  })

  test("compares every copy of a repeated record, and reports records without a number", function* () {
    const pair = yield* equalPair(gaugesUpTo(6))
    pair.source.records.set("again", gauge(2))
    assert.deepInclude(yield* verify(pair), { status: "equal", source: 6, repeated: 1 })
    pair.source.records.set("again", gauge(2).replace("gauge 2", "another"))
    assert.deepStrictEqual(briefly(yield* verify(pair)), ["2 different name"])
    const small = yield* compare(pair.table, pair.companyId, pair.source.records.values())
    assert.deepStrictEqual(small.differences, [{ id: "2", kind: "different", fields: ["name"] }])
    for (const odd of [`{"id":null}`, `{"name":"x"}`, `{"id":9223372036854775808}`, `[]`, `{"id":1.5}`]) {
      pair.source.records.set("again", odd)
      assert.deepInclude(yield* verify(pair), { status: "unequal", unreadable: 1, source: 7 }, odd)
    }
  })

  test("reports values that do not fit their column as different, and counts quarantined records", function* () {
    const pair = yield* equalPair(gaugesUpTo(5))
    const send = (number: number, from: string, to: string) =>
      pair.source.records.set(String(number), gauge(number).replace(from, to))
    send(1, `"rank":7`, `"rank":"seven"`)
    send(2, `"day":"2026-02-28"`, `"day":"2026-02-30"`)
    send(3, `"flag":true`, `"flag":"yes"`)
    send(4, `"price":"4.5000"`, `"price":"4.50000001"`)
    send(5, `"name":"gauge 5"`, `"name":{"is":"gauge 5"}`)
    // A text that looks like the stored list.
    yield* load(pair.table, pair.companyId, [gauge(6).replace(`[{"no":1}]`, "[]")])
    send(6, `"parts":[{"no":1}]`, `"parts":"[]"`)
    yield* execute(
      `insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
           values ($1, 'gauges', '1', 'rank', 'is no integer', '{}', 1, 'GET', tributary.now(), tributary.now())`,
      [pair.companyId]
    )
    const report = yield* verify(pair)
    assert.deepStrictEqual(briefly(report), [
      "1 different rank",
      "2 different day",
      "3 different flag",
      "4 different price",
      "5 different name",
      "6 different parts"
    ])
    assert.strictEqual(report.quarantined, 1)
    assert.strictEqual(report.findings[0]!.quarantined, "rank is no integer")
  })

  test("treats an omitted field as equal only to an empty column", function* () {
    const pair = yield* equalPair(gaugesUpTo(2))
    pair.source.records.set("1", gauge(1).replace(`"memo":null,`, ""))
    pair.source.records.set("2", gauge(2).replace(`"rank":7,`, ""))
    const report = yield* verify(pair)
    assert.deepStrictEqual(briefly(report), ["2 different rank"])
    assert.deepStrictEqual(report.findings[0]!.fields, [{ field: "rank", source: null, warehouse: "7" }])
  })

  test("compares inferred columns, and values that did not fit them", function* () {
    yield* TablePlan.apply([tableOf(inferredGauges)])
    const more = `,"colour code":"red","ratio":1.50,"tags":["a",1]`
    const pair = yield* equalPair([gauge(1), gauge(2), gauge(3), gauge(4), gauge(5)])
    for (const number of numbers(5)) pair.source.records.set(String(number), gauge(number, more))
    const inferred = { ...pair, table: tableOf(inferredGauges) }
    const right = `"colour_code_1" = 'red', "ratio" = 1.50, "tags" = '["a",1]'`
    yield* alter(pair, right, "id <= 4")
    yield* alter(pair, `"_extra" = '{"colour code":"red","ratio":1.50,"tags":["a",1]}'`, "id = 5")
    assert.deepStrictEqual(briefly(yield* verify(inferred)), [])
    yield* alter(pair, `"ratio" = 1.5`, "id = 2")
    yield* alter(pair, `"colour_code_1" = 'blue'`, "id = 3")
    yield* alter(pair, `"_extra" = '{"tags":["a",2]}'`, "id = 4")
    yield* alter(pair, `"_extra" = '{"colour code":"red","ratio":1.5,"tags":["a",1]}'`, "id = 5")
    assert.deepStrictEqual(briefly(yield* verify(inferred)), [
      "2 different ratio",
      "3 different colour code",
      "4 different tags",
      "5 different ratio"
    ])
    // A number where text was inferred: readable in the column, exact in _extra.
    pair.source.records.set("1", gauge(1, `,"colour code":5,"ratio":"1.50","tags":["a",1]`))
    yield* alter(pair, `"colour_code_1" = '5', "ratio" = null`, "id = 1")
    assert.include(briefly(yield* verify(inferred)), "1 different colour code ratio")
    yield* alter(pair, `"_extra" = '{"colour code":5,"ratio":"1.50"}'`, "id = 1")
    assert.notInclude(briefly(yield* verify(inferred)).join(), "1 different")
  })

  test("ends when the source repeats a page under new page tokens", function* () {
    const pair = yield* equalPair(gaugesUpTo(12))
    const { rawPage } = pair.source.connector
    let requestCount = 0
    const connector: ConnectorShape = {
      ...pair.source.connector,
      rawPage: (request) =>
        (requestCount += 1) > 1_000
          ? Effect.die("too many requests")
          : Effect.map(rawPage({ ...request, token: null }), (page) => ({ ...page, next: `fresh-${requestCount}` }))
    }
    const report = yield* verify(pair, { connector })
    const text = JSON.stringify(report, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value))
    assert.match(text, /200 pages in a row had no new record/)
  })

  test("reports a difference only after a second comparison", function* () {
    const pair = yield* equalPair(gaugesUpTo(12))
    const { source, companyId } = pair
    // Meanwhile record 2 changes and is landed, record 13 appears and is landed, and record 4 is deleted and
    // soft-deleted.
    source.records.set("2", gauge(2).replace("gauge 2", "new"))
    source.records.delete("4")
    source.records.set("13", gauge(13))
    const land = Effect.gen(function* () {
      yield* alter(pair, `"name" = 'new'`, "id = 2")
      yield* alter(pair, softDeleted, "id = 4")
      yield* load(pair.table, companyId, [gauge(13)])
    })
    const sql = yield* SqlClient.SqlClient
    const connector: ConnectorShape = {
      ...source.connector,
      rawPage: (request) =>
        Effect.tap(source.connector.rawPage(request), () =>
          // Landed with the last page. The first page, which contains record 2, has been compared by then.
          source.requests.length === 3
            ? land.pipe(Effect.provideService(SqlClient.SqlClient, sql), Effect.orDie)
            : Effect.void
        )
    }
    assert.deepInclude(yield* verify(pair, { connector }), { status: "equal", moved: 1, requests: 4 })

    // A record that moves to another page between the two comparisons is searched for on all pages.
    yield* alter(pair, `"rank" = 1`, "id in (1, 3)")
    source.requests.length = 0
    source.before = (request) => {
      if (request.endsWith("from=0") && source.requests.length > 3) {
        const text = source.records.get("1")!
        source.records.delete("1")
        source.records.set("1", text)
        source.before = () => null
      }
      return null
    }
    assert.deepStrictEqual(briefly(yield* verify(pair)), ["1 different rank", "3 different rank"])

    // The reverse: equal in the first comparison, changed before the second.
    source.before = () => null
    yield* alter(pair, `"rank" = 7`)
    once(source, "gauges?from=8", () => source.records.set("3", gauge(3).replace(`"rank":7`, `"rank":9`)))
    assert.strictEqual((yield* verify(pair)).status, "equal")
    assert.deepStrictEqual(briefly(yield* verify(pair)), ["3 different rank"])
  })

  test("reports changes as not yet synced only by timestamp or open refetch request", function* () {
    const pair = yield* equalPair(gaugesUpTo(6))
    const change = (number: number, at: string) =>
      pair.source.records.set(
        String(number),
        gauge(number).replace(`"rank":7`, `"rank":8`).replace("2026-01-01T00:00:00.000000Z", at)
      )
    change(1, "2026-01-02T00:00:00.000000Z")
    change(2, "2026-01-02T00:00:00.000001Z")
    change(3, "2026-01-02T00:00:00.000001Z")
    change(4, "2025-12-31T00:00:00.000000Z")
    yield* remove(pair, "id = 3")
    yield* execute(
      `insert into tributary.checkpoints (company_id, resource, cursor, updated_at) values ($1, 'gauges', '2026-01-02T00:00:00Z', tributary.now())`,
      [pair.companyId]
    )
    const report = yield* verify(pair)
    const fields = "rank lastchangedate"
    assert.deepStrictEqual(briefly(report), [
      `1 different ${fields}`,
      `2 different waiting ${fields}`,
      "3 missing waiting",
      `4 different ${fields}`
    ])
    assert.deepInclude(report, { status: "unequal", notYetSynced: 2 })
    yield* execute(
      `insert into tributary.refetch_requests (company_id, resource, field, value, requested_at) values
             ($1, 'gauges', 'id', '1', tributary.now()), ($1, 'gauges', 'rank', '8', tributary.now())`,
      [pair.companyId]
    )
    assert.deepInclude(yield* verify(pair), { status: "waiting", notYetSynced: 4 })
  })

  test("continues after rejected page tokens and page drift, and reports other failures", function* () {
    const pair = yield* equalPair(gaugesUpTo(10))
    const { source } = pair
    yield* alter(pair, `"rank" = 1`, "id in (2, 9)")
    let left = 1
    source.before = (request) => (request.endsWith("from=8") && left-- > 0 ? new PageDrift({ detail: "moved" }) : null)
    assert.deepStrictEqual(briefly(yield* verify(pair)), ["2 different rank", "9 different rank"])
    source.requests.length = 0
    source.before = (request) =>
      request.endsWith("from=8") && source.requests.length === 5 ? new PageTokenRefused({ detail: "expired" }) : null
    assert.deepStrictEqual(briefly(yield* verify(pair)), ["2 different rank", "9 different rank"])
    source.before = () => new ServerFault({ status: 500, code: null, retryAfter: null })
    const failed = yield* verify(pair)
    assert.strictEqual(failed.status, "failed")
    assert.include(failed.failure!.message, "500")
    assert.strictEqual(failed.failure!.disposition, "uncertain")
    // A resource that the source refuses is skipped only if the warehouse has no rows of it.
    const forbidden = new Forbidden({
      kind: "module",
      code: "feature_not_licensed",
      scope: null,
      detail: "no licence"
    })
    source.before = () => forbidden
    assert.deepInclude(yield* verify(pair), { status: "failed" })
    const empty = yield* equalPair([])
    empty.source.before = () => forbidden
    const skipped = yield* verify(empty)
    assert.strictEqual(skipped.status, "skipped")
    assert.include(skipped.remarks[0], "no licence")
  })

  test("leaves out a resource that was never synced, unless it is named or has rows", function* () {
    const pair = yield* equalPair(gaugesUpTo(3))
    const left = (more: object) => Effect.map(verify(pair, { skipsUnsynced: true, ...more }), ({ status }) => status)
    yield* remove(pair, "id > 1")
    assert.strictEqual(yield* left({}), "unequal", "a first load that was interrupted is compared")
    yield* remove(pair)
    assert.strictEqual(yield* left({}), "skipped")
    assert.strictEqual(yield* left({ named: true }), "unequal")
    assert.strictEqual(yield* left({ skipsUnsynced: false }), "unequal")
    yield* execute(
      `insert into tributary.checkpoints (company_id, resource, full_scan_at, updated_at) values ($1, 'gauges', now(), now())
             on conflict (company_id, resource, lane) do update set full_scan_at = now()`,
      [pair.companyId]
    )
    assert.strictEqual(yield* left({}), "unequal", "a load was completed, so the rows were lost")
  })

  test("keeps a limited number of differences and counts the others", function* () {
    const pair = yield* equalPair(gaugesUpTo(30))
    yield* alter(pair, `"rank" = 1`)
    const report = yield* verify(pair, { findingsMax: 10 })
    assert.strictEqual(report.findings.length, 10)
    assert.deepInclude(report, { status: "unequal", different: 30, more: 20 })
  })

  test("reports every record as missing when the table does not exist", function* () {
    const pair = yield* equalPair(gaugesUpTo(3))
    const table = tableOf(gauges, { ...datasetsDefault, current: "nowhere", history: "nowhere_history" })
    assert.deepInclude(yield* verify({ ...pair, table }), { status: "unequal", missing: 3, warehouse: 0, source: 3 })
  })
})

suite("verify --repair", warehouse, (test) => {
  test("reads exactly the different records again and compares them once more", function* () {
    const pair = yield* equalPair(gaugesUpTo(12))
    yield* alter(pair, `"rank" = 1`, "id in (2, 9)")
    yield* load(pair.table, pair.companyId, [gauge(40)])
    const repairedIds: Array<ReadonlyArray<string>> = []
    const report = yield* verify(pair, {
      repair: (ids) =>
        Effect.gen(function* () {
          repairedIds.push(ids)
          yield* alter(pair, `"rank" = 7, "_version" = 2`, "id = 2")
          yield* alter(pair, softDeleted, "id = 40")
          return "9 could not be read"
        }).pipe(Effect.orDie)
    })
    assert.deepStrictEqual(repairedIds, [["2", "9", "40"]])
    assert.deepStrictEqual(report.repair, { asked: 3, mended: 2, left: 1, failure: "9 could not be read" })
    assert.deepStrictEqual(briefly(report), ["9 different rank"])
    assert.strictEqual(report.status, "unequal")
  })
})

suite("verify --sample", warehouse, (test) => {
  test("draws the same rows for the same seed, uniformly, with the stated detection chance", function* () {
    const rows = 200
    const wrong = 10
    const size = 30
    const pair = yield* equalPair(gaugesUpTo(rows))
    yield* alter(pair, `"rank" = 1`, "id % 20 = 0")
    const first = yield* verify(pair, { sample: size, seed: 5 })
    assert.deepStrictEqual(yield* verify(pair, { sample: size, seed: 5 }), first)
    assert.deepInclude(first.sample!, { seed: 5, rows: size })
    assert.closeTo(first.sample!.chance, chanceOfFinding(size, rows, 2), 1e-12)
    assert.isBelow(first.requests, 60)
    const tries = 60
    let unequalCount = 0
    let findings = 0
    for (let seed = 1; seed <= tries; seed++) {
      const report = yield* verify(pair, { sample: size, seed })
      if (report.status === "unequal") unequalCount += 1
      findings += report.findings.length
    }
    // 81 % of the samples have a finding, with 1.5 findings on average, within statistical limits.
    const chance = chanceOfFinding(size, rows, wrong)
    assert.closeTo(chance, 0.81, 0.01)
    assert.closeTo(unequalCount / tries, chance, 4 * Math.sqrt((chance * (1 - chance)) / tries))
    assert.closeTo(findings / tries, (size * wrong) / rows, 0.65)
    // A sample may contain all rows.
    assert.strictEqual((yield* verify(pair, { sample: rows, seed: 1 })).different, wrong)
  })

  test("reports rows that are missing, wrongly deleted or gone at the source", function* () {
    const pair = yield* equalPair(gaugesUpTo(20))
    yield* remove(pair, "id = 4")
    yield* alter(pair, softDeleted, "id = 6")
    pair.source.records.delete("8")
    pair.source.records.delete("9")
    yield* alter(pair, softDeleted, "id = 9")
    const seen = new Set<string>()
    for (let seed = 1; seed <= 20; seed++) {
      for (const one of briefly(yield* verify(pair, { sample: 20, seed }))) seen.add(one)
    }
    assert.deepStrictEqual([...seen].sort(), ["4 missing", "6 missing deleted", "8 surplus"])
  })

  test("samples a resource without single requests by its filter, including neighbours", function* () {
    const texts = numbers(60).map((number) => label(number, Math.ceil(number / 3)))
    const pair = yield* equalPair(texts, tables.labels, 10)
    const equal = yield* verify(pair, { sample: 5, seed: 3 })
    assert.strictEqual(equal.status, "equal")
    assert.isAtMost(equal.requests, 5)
    assert.isTrue(pair.source.requests.every((request) => request.startsWith("labels?gaugeid=")))
    // A sibling that was never landed is found with its neighbours, and so is one that is gone at the source.
    yield* remove(pair, "id % 3 = 0")
    const missing = yield* verify(pair, { sample: 5, seed: 3 })
    assert.isAbove(missing.missing, 0)
    assert.strictEqual(missing.missing, missing.findings.length)
    // A row with a wrong filter value is in no group at the source. Only the full list shows its place.
    yield* alter(pair, "gaugeid = 77", "id = 1")
    assert.include(briefly(yield* verify(pair, { sample: 60, seed: 3 })), "1 different gaugeid")
  })

  test("compares all rows when no sample can be drawn", function* () {
    const pair = yield* equalPair([], tables.labels)
    pair.source.records.set("1", label(1, 1))
    assert.deepInclude(yield* verify(pair, { sample: 5 }), { status: "unequal", missing: 1, sample: null })
    const unfiltered = yield* equalPair([`{"id":1,"gaugeid":null,"name":"x","externalid":null}`], tables.labels)
    const whole = yield* verify(unfiltered, { sample: 5 })
    assert.deepInclude(whole, { status: "equal", sample: null })
    assert.include(whole.remarks[0], "cannot be sampled")
  })
})
