/** Plans from earlier runs, and from sources that reveal little. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { id, integer, lastchangedate, ref } from "../../../connectors/service-v2/catalogue/fields.ts"
import { exact, type Resource } from "../../../connectors/service-v2/catalogue/resource.ts"
import type { ConnectorShape } from "../../../src/connector/Connector.ts"
import { Forbidden } from "../../../src/connector/SourceError.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import { plan, type PlanCompany, type PlannedResource, type PlanOptions, totalsOf } from "../../../src/sync/Estimate.ts"
import { exponentialSearch } from "../../../src/sync/IdSearch.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { execute } from "../../support/postgres.ts"
import {
  failing,
  pages,
  plain,
  record,
  scripted,
  type ScriptedSource,
  shopResource,
  things
} from "../../support/tiny.ts"
import {
  at,
  company,
  failingAt,
  list,
  page,
  run,
  type RunOptions,
  serverFault,
  thing,
  upTo,
  warehouseWith,
  newSource
} from "./syncing.ts"
import { suite, test } from "../../support/suite.ts"

/** A resource without single requests. Its list can be filtered by the order of a line. */
const lines = shopResource("lines", "L", [id(), ref("orderid", "orders"), integer("rank"), lastchangedate()], {
  filters: exact("rank", "orderid"),
  modifiedSince: true
})

const kids = shopResource("kids", "L", [id(), ref("thingid", "things")], {
  filters: exact("thingid"),
  parent: { resource: "things", field: "thingid" }
})

const warehouse = warehouseWith([things, plain, kids].map((one) => tableOf(one)))

const numbered = (one: number) => thing(one, `n${one}`, one % 60)

type Options = Partial<PlanOptions> & Partial<Pick<PlanCompany, "companyId" | "named" | "engine" | "pageSize">>

const planOf = (source: { readonly connector: ConnectorShape }, resource: Resource, options: Options = {}) =>
  Effect.map(
    plan({
      companies: [
        {
          name: "c",
          connector: source.connector,
          resources: [resource],
          companyId: null,
          ...options
        }
      ],
      datasets: datasetsDefault,
      full: false,
      probe: true,
      concurrency: 2,
      ...options
    }),
    ({ companies: [one] }) => one!
  )

/** The plan for the resource alone. */
const resourcePlanOf = (...of: Parameters<typeof planOf>) => Effect.map(planOf(...of), ({ resources: [one] }) => one!)

/** Runs a sync, which lands each page at once. */
const sync = (source: ScriptedSource, companyId: bigint, options: RunOptions = {}) =>
  run(source, companyId, { batchRecordsMax: 2, ...options })

/** All rows of the control plane and of the tables, as text. */
const everything = execute<{ xml: string }>(
  `select string_agg(table_to_xml(c.oid, true, false, '')::text, '' order by c.oid) as xml
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')`
)

describe("an exponential search", () => {
  for (const highest of [251, 700, 20_000, 1_000_000, 40_000_000]) {
    test(`finds an upper bound close to ${highest}`, function* () {
      const isThere = (one: bigint) => Effect.succeed(one <= BigInt(highest))
      const bound = yield* exponentialSearch(isThere, { first: 1n, last: 250n, density: 1 })
      assert.isTrue(bound.isBounded)
      assert.isAtMost(bound.requests, 40)
      assert.isAtLeast(Number(bound.highest), highest)
      assert.isAtMost(Number(bound.highest), Math.max(highest + 125, highest * 1.05))
    })
  }

  test("tolerates gaps between ids, and stops after 40 requests", function* () {
    const sparse = yield* exponentialSearch((one) => Effect.succeed(one <= 9_000n && one % 3n === 0n), {
      first: 3n,
      last: 750n,
      density: 1 / 3
    })
    assert.isAtLeast(Number(sparse.highest), 9_000)
    assert.isAtMost(Number(sparse.highest), 9_500)
    const endless = yield* exponentialSearch(() => Effect.succeed(true), { first: 1n, last: 250n, density: 1 })
    assert.deepStrictEqual([endless.isBounded, endless.requests], [false, 40])
  })
})

suite("a plan", warehouse, (test) => {
  test("requests the first page of an unread resource, and is exact when there is only one", function* () {
    const { companyId, source } = newSource(list(9, numbered(1), numbered(2)))
    const one = yield* planOf(source, things)
    const expected = { kind: "full", records: 2, requests: 1, certainty: "exact", asked: 1, ageMs: null } as const
    assert.deepInclude(one.resources[0]!, expected)
    assert.deepStrictEqual(totalsOf(one), { records: 2, requests: 2, certainty: "exact" })
    const blind = yield* resourcePlanOf(source, things, { probe: false, companyId })
    assert.deepInclude(blind, { records: null, requests: 1, certainty: "unknown", asked: 0 })
    assert.lengthOf(source.requests, 1)
  })

  test("estimates the further pages from the highest id, or reports a minimum", function* () {
    const { source } = newSource(() => ({ records: upTo(100).map(numbered), next: "p1" }))
    const base = { ...source.connector }
    const reading = { rejected: null, version: null, beganAt: 0, source: "GET" }
    const connector: ConnectorShape = {
      ...base,
      get: (_, one) => Effect.succeed({ ...reading, record: Number(one) <= 5_000 ? numbered(Number(one)) : null })
    }
    const bound = yield* resourcePlanOf({ connector }, things)
    assert.strictEqual(bound.certainty, "atMost")
    assert.isAtLeast(bound.records!, 5_000)
    assert.isAtMost(bound.records!, 5_400)
    assert.isAtMost(Math.abs(bound.requests - 50), 5)
    assert.isAtMost(bound.asked, 41)
    // The source fails requests for single records.
    const mute: ConnectorShape = { ...base, get: () => Effect.fail(failing(serverFault)) }
    assert.deepInclude(yield* resourcePlanOf({ connector: mute }, things), { certainty: "atLeast", requests: 2 })
    // Neither single requests nor a filter.
    assert.deepInclude(yield* resourcePlanOf(source, plain), { certainty: "atLeast", records: 101, requests: 2 })
  })

  test("searches with a filter when single records cannot be requested", function* () {
    const companyId = company()
    // Ten lines per order, 300 orders.
    const line = (one: number) =>
      record(lines, { id: String(one), orderid: String(Math.ceil(one / 10)), rank: String(((one - 1) % 10) + 1) })
    const source = scripted(companyId, ({ where: [where] = [] }) => {
      if (where === undefined) return { records: upTo(100).map(line), next: "p1" }
      assert.strictEqual(where.field, "orderid")
      const order = Number(where.value)
      return { records: order > 300 ? [] : upTo(10).map((one) => line((order - 1) * 10 + one)), next: null }
    })
    const one = yield* resourcePlanOf(source, lines)
    assert.strictEqual(one.certainty, "atMost")
    assert.isAtMost(Math.abs(one.records! - 3_000), 300)
    assert.isAtMost(Math.abs(one.requests - 30), 3)
  })

  test("estimates full and incremental scans from earlier runs, and changes nothing", function* () {
    const { companyId, source } = newSource(
      pages(page(50, numbered(1), numbered(2)), page(null, numbered(3), numbered(4)), page(null, numbered(5)))
    )
    yield* sync(source, companyId)
    source.script = list(59, thing(1, "new", 55))
    yield* sync(source, companyId)
    const requestCount = source.requests.length
    const before = yield* everything
    const next = yield* resourcePlanOf(source, things)
    assert.deepInclude(next, { kind: "incremental", requests: 1, certainty: "about", asked: 0 })
    assert.isAtLeast(next.ageMs!, 0)
    assert.isBelow(next.ageMs!, 60_000)
    const [all, range] = [
      { since: null, until: null },
      { since: at(50), until: null }
    ]
    const cases: ReadonlyArray<readonly [Options, Partial<PlannedResource>]> = [
      [{ full: true }, { kind: "full", records: 5, requests: 3, certainty: "about", because: null }],
      [{ full: true, pageSize: 5 }, { requests: 1 }],
      [
        { backfill: all, probe: false, companyId },
        { kind: "full", records: 5, requests: 3 }
      ],
      [
        { backfill: range, probe: false, companyId },
        { kind: "incremental", records: 5, certainty: "atMost" }
      ]
    ]
    for (const [options, expected] of cases)
      assert.deepInclude(yield* resourcePlanOf(source, things, options), expected)
    assert.strictEqual(source.requests.length, requestCount)
    // The source can give a better estimate of a range.
    assert.deepInclude(yield* resourcePlanOf(source, things, { backfill: range }), { records: 1, certainty: "exact" })
    assert.deepStrictEqual(yield* everything, before)
    yield* execute("update tributary.checkpoints set full_scan_reason = 'a person asked' where company_id = $1", [
      companyId
    ])
    assert.deepInclude(yield* resourcePlanOf(source, things), { kind: "full", because: "a person asked" })
  })

  test("ignores the row count of a partial backfill", function* () {
    const { companyId, source } = newSource(list(50, numbered(1)))
    yield* sync(source, companyId, { backfill: { since: at(0), until: null } })
    const blind = yield* resourcePlanOf(source, things, { probe: false, companyId })
    assert.deepInclude(blind, { kind: "full", records: null, certainty: "unknown" })
  })

  test("counts only the remaining pages of an interrupted scan", function* () {
    const all = pages(...upTo(4).map((one) => page(50, numbered(one))))
    const { companyId, source } = newSource(failingAt("p2", all))
    yield* sync(source, companyId)
    source.script = all
    // The rest of the scan, from its third page on, and a scan of later changes.
    const rest = yield* resourcePlanOf(source, things, { probe: false, companyId })
    assert.deepInclude(rest, { kind: "full", resumesAt: 3, certainty: "unknown", requests: 2 })
    const backfillPlan = yield* resourcePlanOf(source, things, {
      backfill: { since: null, until: null },
      probe: false,
      companyId
    })
    assert.deepInclude(backfillPlan, { resumesAt: null })
    source.script = failingAt("p1", all)
    yield* sync(source, companyId, { backfill: { since: at(1), until: null } })
    const laterPlan = yield* resourcePlanOf(source, things, {
      backfill: { since: at(2), until: null },
      probe: false,
      companyId
    })
    assert.strictEqual(laterPlan.because, `an interrupted scan of ${at(1)} to now is abandoned at page 2`)
  })

  test("counts pending refetch requests of children, and reports skipped resources", function* () {
    const { companyId, source } = newSource(pages({ records: [record(kids, { id: "1", thingid: "1" })] }))
    yield* sync(source, companyId, { table: tableOf(kids) })
    yield* execute(
      `insert into tributary.refetch_requests (company_id, resource, field, value, requested_at)
           select $1, 'kids', 'thingid', n::text, tributary.now() from generate_series(1, 3) n`,
      [companyId]
    )
    const engine = { ...engineDefault, cursorlessScanInterval: Duration.hours(1) }
    assert.deepInclude(yield* resourcePlanOf(source, kids, { engine }), {
      kind: "children",
      requests: 3,
      certainty: "atLeast"
    })
    const identity = { companyId, sourceNumber: companyId, user: null, features: null }
    const barred: ConnectorShape = {
      ...source.connector,
      identify: Effect.succeed({ ...identity, scopes: ["other:read"] })
    }
    const skipped = yield* planOf({ connector: barred }, things)
    assert.strictEqual(skipped.resources[0]!.skipped, "the token lacks the scope shop:read")
    assert.deepStrictEqual(totalsOf(skipped), { records: 0, requests: 1, certainty: "exact" })
    const refusing = scripted(companyId, () => {
      throw failing(
        new Forbidden({ kind: "module", code: "feature_not_licensed", detail: "not licensed", scope: null })
      )
    })
    assert.isNotNull((yield* resourcePlanOf(refusing, plain)).skipped)
    assert.strictEqual((yield* resourcePlanOf(refusing, plain, { named: true })).failure?.disposition, "blocked")
  })

  test("fails without a probe when the company number is unknown", function* () {
    const { companyId, source } = newSource(list(1))
    for (const known of [companyId, company()]) yield* run(source, known)
    const one = yield* planOf(source, things, { probe: false })
    assert.strictEqual(one.failure?.kind, "CompanyUnknown")
    assert.include(one.failure?.remedy, "company_id")
  })
})
