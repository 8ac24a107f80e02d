/** `resources.<path>.where`: which records are kept, what happens to one that no longer passes, and what verify compares. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { unreadable } from "../../../src/cli/Models.ts"
import { protect } from "../../../src/connector/ProtectedConnector.ts"
import { before } from "../../../src/connector/Instant.ts"
import { select } from "../../../src/connector/SelectedConnector.ts"
import { makeValidator } from "../../../src/outbox/Validate.ts"
import { fetchRecords } from "../../../src/sync/FetchRecords.ts"
import { syncResource, type SyncMode } from "../../../src/sync/SyncResource.ts"
import { verifyResource } from "../../../src/verify/Verify.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as WarehouseCatalogue from "../../../src/warehouse/WarehouseCatalogue.ts"
import { loadText, problemsOf } from "../../support/configuration.ts"
import { execute } from "../../support/postgres.ts"
import { layerSource, makeCompany as makeCompanyOf } from "../../support/source.ts"
import { suite } from "../../support/suite.ts"
import { flowing } from "../../support/until.ts"

const path = "shipments"
type Values = Readonly<Record<string, string>>

const configured = (where: Values, of = path, since: string | null = null) => ({
  path: of,
  area: null,
  since,
  modifiedSince: false,
  cancel: false,
  key: null,
  where
})

const tableOfWhere = (where: Values) =>
  Effect.map(
    WarehouseCatalogue.addConfigured(serviceV2, Object.keys(where).length === 0 ? [] : [configured(where)]),
    ({ resources }) => tableOf(resources.get(path)!)
  )

const makeCompany = Effect.gen(function* () {
  const { id, control, put: write, reads, company } = yield* makeCompanyOf(new Map())
  const companyId = BigInt(id)
  const connector = protect(select(company.connector))
  /** Records by number with their locations, changed now or `at`. Returns their times of change. */
  const put = (locations: Readonly<Record<number, number | string | null>>, at?: string, more: object = {}) =>
    Effect.map(
      write(
        path,
        Object.entries(locations).map(([number, locationid]) => ({
          id: Number(number),
          orderid: 1,
          locationid,
          ...more,
          ...(at === undefined ? {} : { lastchangedate: at })
        }))
      ),
      (records) => records.map((record) => String(record["lastchangedate"]))
    )
  const target = (where: Values) => Effect.map(tableOfWhere(where), (table) => ({ companyId, connector, table }))
  const sync = Effect.fnUntraced(function* (where: Values, mode: SyncMode = {}) {
    const of = yield* target(where)
    // No clock moves: a time that runs ahead of the warehouse's would put a later read before an earlier one.
    const outcome = yield* syncResource(of, { mode })
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
  const verify = (where: Values, sample: number | null = null) =>
    Effect.flatMap(tableOfWhere(where), (table) =>
      flowing(verifyResource({ companyId, connector, table, sample, seed: 1, repair: null }))
    )
  return { companyId, connector, control, put, reads, sync, live, verify, target }
})

const third = { locationid: "3" }

suite("a resource of which some records are kept", layerSource([tableOf(serviceV2.resources.get(path)!)]), (test) => {
  test("is loaded by a filter, and follows records into the filters and out of them", function* () {
    const { live, put, reads, sync } = yield* makeCompany
    yield* put({ 1: 3, 2: 4, 3: 3, 4: null })
    const first = yield* sync(third)
    assert.deepStrictEqual([yield* live, first.totals.records], [[1, 3], 2])
    assert.include((yield* reads).at(-1)!, "locationid=3")

    yield* put({ 1: 4, 2: 3, 4: 5 })
    const changes = yield* sync(third)
    assert.notInclude((yield* reads).at(-1)!, "locationid")
    assert.deepStrictEqual([changes.kind, changes.totals.deleted, yield* live], ["incremental", 1, [2, 3]])

    // Nothing but a record that leaves: also that run is no run that found nothing.
    yield* put({ 2: 4 })
    assert.deepStrictEqual([(yield* sync(third)).totals.deleted, yield* live], [1, [3]])
    yield* put({ 2: 3 })
    yield* sync(third)
    assert.deepStrictEqual(yield* live, [2, 3])
  })

  test("keeps a newer row when the source shows an older version outside of the filters", function* () {
    const { live, put, sync } = yield* makeCompany
    const [at] = yield* put({ 1: 3 })
    yield* sync(third)
    yield* put({ 1: 4 }, before(at!, 1000))
    yield* sync(third)
    assert.deepStrictEqual(yield* live, [1])
    yield* put({ 1: 4 })
    yield* sync(third)
    assert.deepStrictEqual(yield* live, [])
  })

  test("follows changed filters, whose rows the mass-delete guard does not count", function* () {
    const { live, put, sync, target } = yield* makeCompany
    const numbers = Array.from({ length: 60 }, (_, index) => index + 1)
    yield* put(Object.fromEntries(numbers.map((number) => [number, number % 10])))
    yield* sync({})
    assert.lengthOf(yield* live, 60)
    const narrowed = yield* sync(third)
    assert.deepStrictEqual([narrowed.kind, narrowed.totals.deleted, yield* live], ["full", 54, [3, 13, 23, 33, 43, 53]])
    assert.match(narrowed.notes.join(), /the filters of the records changed from none to locationid = 3/)
    yield* sync({ locationid: "4" })
    assert.deepStrictEqual(yield* live, [4, 14, 24, 34, 44, 54])
    yield* sync({})
    assert.lengthOf(yield* live, 60)

    // A source that shows none of 60 rows that pass the filters is doubted as before.
    yield* put(Object.fromEntries(numbers.map((number) => [number, 7])))
    yield* sync({ locationid: "7" })
    yield* put(Object.fromEntries(numbers.map((number) => [number, 8])), "2024-01-01T00:00:00.000000Z")
    const doubted = yield* flowing(syncResource(yield* target({ locationid: "7" }), { mode: { full: true } }))
    assert.deepStrictEqual(doubted.massDeleteBlocked, { live: 60, gone: 60 })
    assert.lengthOf(yield* live, 60)
  })

  test("keeps a newer row when its record is read in an older version outside of the filters", function* () {
    const { live, put, sync, target } = yield* makeCompany
    const [at] = yield* put({ 1: 3 })
    yield* sync(third)
    yield* put({ 1: 4 }, before(at!, 1000))
    const of = { ...(yield* target(third)), ids: ["1"] }
    yield* fetchRecords({ ...of, authority: "newer" })
    assert.deepStrictEqual(yield* live, [1])
    yield* fetchRecords({ ...of, authority: "source" })
    assert.deepStrictEqual(yield* live, [])
  })

  test("keeps a rejected record whose value may pass, in the forms in which values are read", function* () {
    const { companyId, live, put, sync, target } = yield* makeCompany
    yield* put({ 1: 3, 2: 3, 3: 3 })
    yield* sync(third)
    // Each of them is rejected: 1 and 3 for a name that a database rejects.
    yield* put({ 1: "003", 2: "main", 3: "004" }, undefined, { "odd\0": 1 })
    assert.strictEqual((yield* syncResource(yield* target(third))).status, "quarantined")
    const kept = yield* execute<{ record_id: string }>(
      "select record_id from tributary.quarantine where company_id = $1 and resolved_at is null order by record_id",
      [companyId]
    )
    assert.deepStrictEqual(
      [kept.map((one) => one.record_id), yield* live],
      [
        ["1", "2"],
        [1, 2]
      ]
    )
  })

  test("keeps rows whose records no longer carry the filtered field", function* () {
    const { companyId, connector, live, put, sync, target } = yield* makeCompany
    yield* put(Object.fromEntries(Array.from({ length: 40 }, (_, index) => [index + 1, 3])))
    yield* sync(third)
    const hidden = select({
      ...connector,
      page: (request) =>
        Effect.map(connector.page({ ...request, resource: { ...request.resource, where: [] } }), (page) => ({
          ...page,
          records: page.records.map((record) => ({
            id: record.id,
            columns: request.resource.fields.map(({ name }, at) =>
              name === "locationid" ? undefined : record.columns[at]
            ),
            customFields: record.customFields,
            extra: record.extra,
            partial: true
          }))
        }))
    })
    const of = yield* target(third)
    const outcome = yield* flowing(syncResource({ ...of, connector: hidden, companyId }, { mode: { full: true } }))
    assert.deepStrictEqual(
      [outcome.status, outcome.massDeleteBlocked, outcome.totals.deleted, (yield* live).length],
      ["done", null, 0, 40]
    )
  })

  test("leaves no row outside of the filters that changed before the first day", function* () {
    const { companyId, connector, live, put, sync } = yield* makeCompany
    yield* put({ 1: 3, 2: 4 }, "2024-01-01T00:00:00.000000Z")
    yield* sync({})
    const { resources } = yield* WarehouseCatalogue.addConfigured(serviceV2, [configured(third, path, "2025-01-01")])
    const outcome = yield* syncResource({ companyId, connector, table: tableOf(resources.get(path)!) })
    assert.deepStrictEqual([outcome.status, yield* live], ["done", [1]])
  })

  test("is verified both ways", function* () {
    const { companyId, put, sync, verify } = yield* makeCompany
    yield* put({ 1: 3, 2: 4, 3: 3, 4: 3 })
    yield* sync(third)
    for (const sample of [null, 50]) {
      const report = yield* verify(third, sample)
      assert.deepStrictEqual([report.status, report.warehouse], ["equal", 3])
    }
    yield* execute(`delete from erp.${path} where _company_id = $1 and id = 1`, [companyId])
    yield* put({ 3: 4 })
    assert.deepStrictEqual(
      (yield* verify(third)).findings.map(({ id, kind }) => `${id} ${kind}`),
      ["1 missing", "3 surplus"]
    )
    assert.deepStrictEqual(
      (yield* verify({})).findings.map(({ id, kind }) => `${id} ${kind}`),
      ["1 missing", "2 missing", "3 different"]
    )
  })

  test("reads single records under the filters", function* () {
    const { live, put, sync, target } = yield* makeCompany
    yield* put({ 1: 3, 2: 4 })
    yield* sync(third)
    yield* put({ 1: 4, 2: 3 })
    const one = yield* fetchRecords({ ...(yield* target(third)), ids: ["1", "2"], authority: "newer" })
    assert.deepStrictEqual([one.status, yield* live], ["done", [2]])
  })

  test("is configured by filters that its list offers, and is not pushed to", function* () {
    const of = Effect.fnUntraced(function* (yaml: string, resource: string) {
      const { resources } = yield* WarehouseCatalogue.addConfigured(serviceV2, (yield* loadText(yaml)).resources)
      return resources.get(resource)!
    })
    const filters = (yaml: string, resource: string) =>
      Effect.map(of(yaml, resource), ({ where }) =>
        where.map(({ field, match, value }) => `${field} ${match} ${value}`)
      )
    const both = `resources: { shipments: { where: { locationid: 3 } }, "*": { where: { locationid: 4, orderid: 5, description: red } } }`
    assert.deepStrictEqual(yield* filters(both, "shipments"), ["locationid exact 3", "orderid exact 5"])
    assert.deepStrictEqual(yield* filters(both, "stages"), ["description partial red"])
    for (const [yaml, message] of [
      ["shipments: { where: { cancel: true } }", /offers locationid, orderid, invoiceid, and no filter by cancel/],
      ["shipments: { where: { locationid: main } }", /resources\.shipments\.where\.locationid: main is no integer/],
      ["stages: { where: { description: '' } }", /the value is empty/],
      ["'*': { where: { nothing: 1 } }", /no list of these resources offers a filter by nothing/],
      ["widgets: { key: code, where: { code: 1 } }", /no filter of its list is known/],
      ["shipments: { where: { locationid: 3 }, exclude: ['location*'] }", /locationid: the field has a privacy rule/]
    ] as const) {
      const refused = yield* Effect.flip(of(`resources: { ${yaml} }\n`, "shipments"))
      assert.match(refused.message, message)
    }
    assert.match(
      (yield* problemsOf("resources: { shipments: { where: { locationid: [3] } } }\n")).join(),
      /resources\.shipments\.where\.locationid/
    )
    const { resources } = yield* WarehouseCatalogue.addConfigured(serviceV2, [configured(third)])
    assert.strictEqual(
      unreadable({ resources: ["orders", path], sql: "select 1" }, resources),
      "it reads shipments, of which only some records are kept: locationid = 3"
    )
    assert.isNull(unreadable({ resources: ["orders"], sql: "select 1" }, resources))
    const refused = makeValidator(yield* of(both, "shipments"), "update")
    assert.match("message" in refused ? refused.message : "", /resources\.shipments\.where keeps some of its records/)
  })
})
