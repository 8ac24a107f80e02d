/** Plans from earlier runs, and from sources that reveal little. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { id, integer, lastchangedate, ref } from "../../../connectors/service-v2/catalogue/fields.ts"
import { exact, resource, type Resource } from "../../../connectors/service-v2/catalogue/resource.ts"
import type { ConnectorShape } from "../../../src/connector/Connector.ts"
import { Forbidden, ServerFault } from "../../../src/connector/SourceError.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { plan, type PlannedResource, type PlanOptions, totalsOf } from "../../../src/sync/Estimate.ts"
import { exponentialSearch } from "../../../src/sync/IdSearch.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { syncResource } from "../../../src/sync/SyncResource.ts"
import { layerWarehouse } from "../../support/postgres.ts"
import { failing, pages, plain, record, scripted, type ScriptedSource, things } from "../../support/tiny.ts"

/** A resource without single requests. Its list can be filtered by the order of a line. */
const lines: Resource = resource({
  path: "lines",
  area: "shop",
  purpose: "Lines of orders",
  basis: "documented",
  operations: "L",
  fields: [id(), ref("orderid", "orders"), integer("rank"), lastchangedate()],
  filters: exact("rank", "orderid"),
  modifiedSince: true
})

const kids: Resource = resource({
  path: "kids",
  area: "shop",
  purpose: "Children of things",
  basis: "documented",
  operations: "L",
  fields: [id(), ref("thingid", "things")],
  filters: exact("thingid"),
  parent: { resource: "things", field: "thingid" }
})

const warehouse = Layer.effectDiscard(TablePlan.apply([things, plain, kids].map((one) => tableOf(one)))).pipe(
  Layer.provideMerge(layerWarehouse)
)

let companies = 0n
const company = () => (companies += 1n)

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000Z`
const thing = (one: number) => record(things, { id: String(one), name: `n${one}`, lastchangedate: at(one % 60) })

const planOf = (
  source: { readonly connector: ConnectorShape },
  resources: ReadonlyArray<Resource>,
  options: Partial<PlanOptions> & { readonly companyId?: bigint; readonly named?: boolean } = {}
) =>
  Effect.map(
    plan({
      companies: [
        {
          name: "c",
          connector: source.connector,
          resources,
          companyId: options.companyId ?? null,
          named: options.named ?? false
        }
      ],
      datasets: datasetsDefault,
      full: false,
      pageSize: null,
      probe: true,
      concurrency: 2,
      ...options
    }),
    ({ companies: [one] }) => one!
  )

const first = (one: { readonly resources: ReadonlyArray<PlannedResource> }) => one.resources[0]!

const sync = (source: ScriptedSource, companyId: bigint, table = tableOf(things)) =>
  syncResource({ companyId, connector: source.connector, table }, { batchRecordsMax: 2 })

/** All rows of the control plane and of the tables, as text. */
const everything = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<{ xml: string }>(
    `select string_agg(table_to_xml(c.oid, true, false, '')::text, '' order by c.oid) as xml
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')`
  )
  return rows[0]!.xml
})

describe("an exponential search", () => {
  for (const highest of [251, 700, 20_000, 1_000_000, 40_000_000]) {
    test.effect(`finds an upper bound close to ${highest}`, () =>
      Effect.gen(function* () {
        const bound = yield* exponentialSearch((one) => Effect.succeed(one <= BigInt(highest)), {
          first: 1n,
          last: 250n,
          density: 1
        })
        assert.isTrue(bound.isBounded)
        assert.isAtMost(bound.requests, 40)
        assert.isAtLeast(Number(bound.highest), highest)
        assert.isAtMost(Number(bound.highest), Math.max(highest + 125, highest * 1.05))
      })
    )
  }

  test.effect("tolerates gaps between ids, and stops after 40 requests", () =>
    Effect.gen(function* () {
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
  )
})

describe("a plan", () => {
  layer(warehouse, { timeout: "60 seconds" })("against Postgres", (it) => {
    it.effect("requests the first page of an unread resource, and is exact when there is only one", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages({ records: [thing(1), thing(2)], syncedThrough: at(9) }))
        const one = yield* planOf(source, [things])
        assert.deepInclude(first(one), {
          kind: "full",
          records: 2,
          requests: 1,
          certainty: "exact",
          asked: 1,
          ageMs: null
        })
        assert.deepStrictEqual(totalsOf(one), { records: 2, requests: 2, certainty: "exact" })
        const blind = yield* planOf(source, [things], { probe: false, companyId })
        assert.deepInclude(first(blind), { records: null, requests: 1, certainty: "unknown", asked: 0 })
        assert.lengthOf(source.requests, 1)
      })
    )

    it.effect("estimates the further pages from the highest id, or reports a minimum", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, () => ({
          records: Array.from({ length: 100 }, (_, index) => thing(index + 1)),
          next: "p1"
        }))
        const base = { ...source.connector }
        const reading = { rejected: null, version: null, beganAt: 0, source: "GET" }
        const connector: ConnectorShape = {
          ...base,
          get: (_, one) => Effect.succeed({ ...reading, record: Number(one) <= 5_000 ? thing(Number(one)) : null })
        }
        const bound = first(yield* planOf({ connector }, [things]))
        assert.strictEqual(bound.certainty, "atMost")
        assert.isAtLeast(bound.records!, 5_000)
        assert.isAtMost(bound.records!, 5_400)
        assert.isAtMost(Math.abs(bound.requests - 50), 5)
        assert.isAtMost(bound.asked, 41)
        // The source fails requests for single records.
        const fault = failing(new ServerFault({ status: 500, code: "x", retryAfter: null }))
        const mute: ConnectorShape = { ...base, get: () => Effect.fail(fault) }
        assert.deepInclude(first(yield* planOf({ connector: mute }, [things])), { certainty: "atLeast", requests: 2 })
        // Neither single requests nor a filter.
        assert.deepInclude(first(yield* planOf(source, [plain])), { certainty: "atLeast", records: 101, requests: 2 })
      })
    )

    it.effect("searches with a filter when single records cannot be requested", () =>
      Effect.gen(function* () {
        const companyId = company()
        // Ten lines per order, 300 orders.
        const line = (one: number) =>
          record(lines, { id: String(one), orderid: String(Math.ceil(one / 10)), rank: String(((one - 1) % 10) + 1) })
        const source = scripted(companyId, ({ where }) => {
          if (where === undefined || where === null) {
            return { records: Array.from({ length: 100 }, (_, index) => line(index + 1)), next: "p1" }
          }
          assert.strictEqual(where.field, "orderid")
          const order = Number(where.value)
          return {
            records: order > 300 ? [] : Array.from({ length: 10 }, (_, index) => line((order - 1) * 10 + index + 1)),
            next: null
          }
        })
        const one = first(yield* planOf(source, [lines]))
        assert.strictEqual(one.certainty, "atMost")
        assert.isAtMost(Math.abs(one.records! - 3_000), 300)
        assert.isAtMost(Math.abs(one.requests - 30), 3)
      })
    )

    it.effect("estimates full and incremental scans from earlier runs, and changes nothing", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(
          companyId,
          pages(
            { records: [thing(1), thing(2)], syncedThrough: at(50) },
            { records: [thing(3), thing(4)] },
            { records: [thing(5)] }
          )
        )
        yield* sync(source, companyId)
        source.script = pages({
          records: [record(things, { id: "1", name: "new", lastchangedate: at(55) })],
          syncedThrough: at(59)
        })
        yield* sync(source, companyId)
        const requestCount = source.requests.length
        const before = yield* everything
        const next = first(yield* planOf(source, [things]))
        assert.deepInclude(next, { kind: "incremental", requests: 1, certainty: "about", asked: 0 })
        assert.isAtLeast(next.ageMs!, 0)
        assert.isBelow(next.ageMs!, 60_000)
        const full = first(yield* planOf(source, [things], { full: true }))
        assert.deepInclude(full, { kind: "full", records: 5, requests: 3, certainty: "about", because: null })
        const paged = first(yield* planOf(source, [things], { full: true, pageSize: 5 }))
        assert.strictEqual(paged.requests, 1)
        const backfill = first(
          yield* planOf(source, [things], { backfill: { since: null, until: null }, probe: false, companyId })
        )
        assert.deepInclude(backfill, { kind: "full", records: 5, requests: 3 })
        const range = { since: at(50), until: null }
        const ranged = first(yield* planOf(source, [things], { backfill: range, probe: false, companyId }))
        assert.deepInclude(ranged, { kind: "incremental", records: 5, certainty: "atMost" })
        assert.strictEqual(source.requests.length, requestCount)
        // The source can give a better estimate of a range.
        assert.deepInclude(first(yield* planOf(source, [things], { backfill: range })), {
          records: 1,
          certainty: "exact"
        })
        const sql = yield* SqlClient.SqlClient
        assert.strictEqual(yield* everything, before)
        yield* sql`update tributary.checkpoints set full_scan_reason = 'a person asked' where company_id = ${companyId}`
        assert.deepInclude(first(yield* planOf(source, [things])), { kind: "full", because: "a person asked" })
      })
    )

    it.effect("ignores the row count of a partial backfill", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages({ records: [thing(1)], syncedThrough: at(50) }))
        yield* syncResource(
          { companyId, connector: source.connector, table: tableOf(things) },
          { batchRecordsMax: 2, mode: { backfill: { since: at(0), until: null } } }
        )
        const blind = yield* planOf(source, [things], { probe: false, companyId })
        assert.deepInclude(first(blind), { kind: "full", records: null, certainty: "unknown" })
      })
    )

    it.effect("counts only the remaining pages of an interrupted scan", () =>
      Effect.gen(function* () {
        const companyId = company()
        const all = [1, 2, 3, 4].map((one) => ({ records: [thing(one)], syncedThrough: at(50) }))
        const source = scripted(companyId, (request) => {
          if (request.token === "p2") throw failing(new ServerFault({ status: 500, code: "x", retryAfter: null }))
          return pages(...all)(request)
        })
        yield* sync(source, companyId)
        source.script = pages(...all)
        // The rest of the scan, from its third page on, and a scan of later changes.
        const rest = first(yield* planOf(source, [things], { probe: false, companyId }))
        assert.deepInclude(rest, { kind: "full", resumesAt: 3, certainty: "unknown", requests: 2 })
        const backfillPlan = first(
          yield* planOf(source, [things], { backfill: { since: null, until: null }, probe: false, companyId })
        )
        assert.deepInclude(backfillPlan, { resumesAt: null })
        const backfill = (since: string | null) =>
          syncResource(
            { companyId, connector: source.connector, table: tableOf(things) },
            { batchRecordsMax: 2, mode: { backfill: { since, until: null } } }
          )
        source.script = (request) => {
          if (request.token === "p1") throw failing(new ServerFault({ status: 500, code: "x", retryAfter: null }))
          return pages(...all)(request)
        }
        yield* backfill(at(1))
        const laterPlan = first(
          yield* planOf(source, [things], { backfill: { since: at(2), until: null }, probe: false, companyId })
        )
        assert.strictEqual(laterPlan.because, `an interrupted scan of ${at(1)} to now is abandoned at page 2`)
      })
    )

    it.effect("counts pending refetch requests of children, and reports skipped resources", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages({ records: [record(kids, { id: "1", thingid: "1" })] }))
        yield* sync(source, companyId, tableOf(kids))
        const sql = yield* SqlClient.SqlClient
        yield* sql`insert into tributary.refetch_requests (company_id, resource, field, value, requested_at)
          select ${companyId}, 'kids', 'thingid', n::text, tributary.now() from generate_series(1, 3) n`
        const engine = { ...engineDefault, cursorlessScanInterval: Duration.hours(1) }
        assert.deepInclude(first(yield* planOf(source, [kids], { engine })), {
          kind: "children",
          requests: 3,
          certainty: "atLeast"
        })
        const identity = { companyId, user: null, features: null }
        const barred: ConnectorShape = {
          ...source.connector,
          identify: Effect.succeed({ ...identity, scopes: ["other:read"] })
        }
        const skipped = yield* planOf({ connector: barred }, [things])
        assert.strictEqual(first(skipped).skipped, "the token lacks the scope shop:read")
        assert.deepStrictEqual(totalsOf(skipped), { records: 0, requests: 1, certainty: "exact" })
        const refusing = scripted(companyId, () => {
          throw failing(
            new Forbidden({ kind: "module", code: "feature_not_licensed", detail: "not licensed", scope: null })
          )
        })
        assert.isNotNull(first(yield* planOf(refusing, [plain])).skipped)
        assert.isTrue(first(yield* planOf(refusing, [plain], { named: true })).failure?.disposition === "blocked")
      })
    )

    it.effect("fails without a probe when the company number is unknown", () =>
      Effect.gen(function* () {
        const source = scripted(company(), pages({ records: [] }))
        const one = yield* planOf(source, [things], { probe: false })
        assert.strictEqual(one.failure?.kind, "CompanyUnknown")
        assert.include(one.failure?.remedy, "company_id")
      })
    )
  })
})
