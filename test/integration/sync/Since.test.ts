/** `resources.<path>.since`: scans that begin at a day, what they delete, and what verify compares. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { plan } from "../../../src/sync/Estimate.ts"
import { syncResource, type SyncMode } from "../../../src/sync/SyncResource.ts"
import { verifyResource } from "../../../src/verify/Verify.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as WarehouseCatalogue from "../../../src/warehouse/WarehouseCatalogue.ts"
import { loadText, problemsOf } from "../../support/configuration.ts"
import { execute } from "../../support/postgres.ts"
import { layerSource, makeCompany as makeCompanyOf } from "../../support/source.ts"
import { suite } from "../../support/suite.ts"
import { flowing } from "../../support/until.ts"

const path = "customers"
const configured = (since: string | null, of = path) => ({
  path: of,
  area: null,
  modifiedSince: false,
  cancel: false,
  key: null,
  since
})
const tableSince = (since: string | null) =>
  Effect.map(WarehouseCatalogue.addConfigured(serviceV2, since === null ? [] : [configured(since)]), ({ resources }) =>
    tableOf(resources.get(path)!)
  )

/** The days on which the records change: the second one at the instant at which the year begins. */
const days = { 1: "2024-06-01", 2: "2025-01-01", 3: "2025-03-01", 4: "2025-04-01" }

const makeCompany = Effect.gen(function* () {
  const { id, control, put, reads, company } = yield* makeCompanyOf(new Map())
  const companyId = BigInt(id)
  const { connector } = company
  yield* put(
    path,
    Object.entries(days).map(([number, day]) => ({
      id: Number(number),
      name: `customer ${number}`,
      lastchangedate: `${day}T00:00:00.000000Z`
    }))
  )
  const sync = Effect.fnUntraced(function* (since: string | null, mode: SyncMode = {}) {
    const outcome = yield* flowing(syncResource({ companyId, connector, table: yield* tableSince(since) }, { mode }))
    assert.strictEqual(outcome.status, "done", JSON.stringify(outcome.failure))
    return outcome
  })
  const live = Effect.map(
    execute<{ id: number }>(
      `select id::int from erp.${path} where _company_id = $1 and _deleted_at is null order by id`,
      [companyId]
    ),
    (rows) => rows.map((row) => row.id)
  )
  const verify = (since: string | null, sample: number | null = null) =>
    Effect.flatMap(tableSince(since), (table) =>
      flowing(verifyResource({ companyId, connector, table, sample, seed: 1, repair: null }))
    )
  const remove = (record: number) => control("POST", "/remove", { company: id, resource: path, id: record })
  const alter = (assignment: string, record: number) =>
    execute(`update erp.${path} set ${assignment} where _company_id = $1 and id = $2`, [companyId, record])
  return { id, companyId, connector, control, put, reads, sync, live, verify, remove, alter }
})

const findingsOf = ({ findings }: Effect.Success<ReturnType<typeof verifyResource>>) =>
  findings.map(({ id, kind }) => `${id} ${kind}`)

suite("a resource that is read since a day", layerSource([tableOf(serviceV2.resources.get(path)!)]), (test) => {
  test("is loaded from that day, and an earlier day loads the older records", function* () {
    const { live, reads, sync } = yield* makeCompany
    yield* sync("2025-01-01")
    assert.deepStrictEqual(yield* live, [2, 3, 4])
    assert.include((yield* reads).at(-1)!, `modifiedsince=${encodeURIComponent("2024-12-31T23:59:59.999Z")}`)
    assert.strictEqual((yield* sync("2025-01-01")).kind, "incremental")

    const older = yield* sync("2024-01-01")
    assert.strictEqual(older.kind, "full")
    assert.match(older.notes.join(), /since which records are read changed from 2025-01-01 to 2024-01-01/)
    assert.deepStrictEqual(yield* live, [1, 2, 3, 4])
    assert.strictEqual((yield* sync("2024-01-01")).kind, "incremental")
    assert.strictEqual((yield* sync(null)).kind, "full")
  })

  test("keeps earlier rows that a full scan does not return, and deletes the missing ones since the day", function* () {
    const { control, live, put, remove, sync } = yield* makeCompany
    yield* sync(null)
    yield* remove(1)
    yield* remove(4)
    // A source that leaves out the instant itself.
    yield* control("PUT", "/dialect", { modifiedSince: "exclusive" })
    const scan = yield* sync("2025-01-01")
    yield* control("PUT", "/dialect", { modifiedSince: "inclusive" })
    assert.deepStrictEqual([scan.kind, scan.totals.deleted, yield* live], ["full", 1, [1, 2, 3]])

    // Without the records since the day, the list is empty: earlier rows are no reason to doubt it.
    yield* put(path, [{ id: 5, name: "old", lastchangedate: "2024-07-01T00:00:00.000000Z" }])
    yield* sync("2025-06-01")
    assert.deepStrictEqual(yield* live, [1, 2, 3])
  })

  test("is verified both ways since the day, and not before it", function* () {
    const { alter, companyId, put, remove, sync, verify } = yield* makeCompany
    yield* put(path, [{ id: 5, name: "never loaded", lastchangedate: "2024-07-01T00:00:00.000000Z" }])
    yield* sync(null)
    yield* execute(`delete from erp.${path} where _company_id = $1 and id = 5`, [companyId])
    yield* alter("name = 'altered'", 1)
    yield* sync("2025-01-01")
    for (const sample of [null, 50]) {
      const report = yield* verify("2025-01-01", sample)
      assert.deepStrictEqual([report.status, report.warehouse, findingsOf(report)], ["equal", 3, []])
    }
    assert.deepStrictEqual(findingsOf(yield* verify(null)), ["1 different", "5 missing"])

    yield* execute(`delete from erp.${path} where _company_id = $1 and id = 2`, [companyId])
    yield* alter("name = 'altered'", 3)
    yield* remove(4)
    // A row that missed the change of its record.
    yield* put(path, [{ id: 1, name: "changed", lastchangedate: "2025-05-01T00:00:00.000000Z" }])
    const expected = ["1 different", "2 missing", "3 different", "4 surplus"]
    assert.deepStrictEqual(findingsOf(yield* verify("2025-01-01")), expected)
    assert.includeMembers(expected.slice(1), findingsOf(yield* verify("2025-01-01", 50)))
    assert.lengthOf(findingsOf(yield* verify("2025-01-01", 50)), 3)
  })

  test("is planned as it is read", function* () {
    const { connector, companyId } = yield* makeCompany
    const { resource } = yield* tableSince("2025-01-01")
    const of = (backfill?: { since: string | null; until: null }) =>
      Effect.map(
        flowing(
          plan({
            companies: [{ name: "a", connector, resources: [resource], companyId }],
            datasets: datasetsDefault,
            full: false,
            probe: true,
            concurrency: 1,
            ...(backfill === undefined ? {} : { backfill })
          })
        ),
        ({ companies: [one] }) => {
          const { because, kind, records } = one!.resources[0]!
          return [kind, records, because]
        }
      )
    const full = ["full", 3, "changed since 2025-01-01"]
    assert.deepStrictEqual(yield* of(), full)
    assert.deepStrictEqual(yield* of({ since: null, until: null }), full)
    // The earlier begin of a range does not go behind the day.
    assert.deepStrictEqual(yield* of({ since: "2020-01-01T00:00:00Z", until: null }), ["incremental", 3, null])
    assert.deepStrictEqual(yield* of({ since: "2025-03-15T00:00:00Z", until: null }), ["incremental", 1, null])
  })

  test("is configured by a day, for lists that offer modifiedsince", function* () {
    const since = Effect.fnUntraced(function* (yaml: string, of: string) {
      const { resources } = yield* WarehouseCatalogue.addConfigured(serviceV2, (yield* loadText(yaml)).resources)
      return resources.get(of)!.since?.slice(0, 10) ?? null
    })
    const both = 'resources:\n  customers: { since: 2024-01-01 }\n  "*": { since: 2025-01-01 }\n'
    assert.deepStrictEqual(
      [yield* since(both, "customers"), yield* since(both, "orders"), yield* since(both, "areas")],
      ["2024-01-01", "2025-01-01", null]
    )
    const refused = yield* Effect.flip(since("resources: { areas: { since: 2025-01-01 } }\n", "areas"))
    assert.match(refused.message, /resources\.areas\.since: its list does not offer modifiedsince/)
    assert.match((yield* problemsOf("resources: { orders: { since: 2025-02-30 } }\n")).join(), /Expected a day/i)
  })
})
