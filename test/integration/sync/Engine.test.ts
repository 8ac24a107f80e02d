import { traits } from "../../../connectors/service-v2/catalogue/traits.ts"
import { compare } from "../../../src/verify/Compare.ts"
import { assert, describe, layer } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { catalogue } from "../../../src/catalogue/Catalogue.ts"
import { id, integer, lastchangedate, ref, string } from "../../../connectors/service-v2/catalogue/fields.ts"
import { exact, resource } from "../../../connectors/service-v2/catalogue/resource.ts"
import { Forbidden, PageDrift, ServerFault, type SourceError, Unreachable } from "../../../src/connector/SourceError.ts"
import type { ConnectorShape, Identity, Page, PageRequest, FetchedRecord } from "../../../src/connector/Connector.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { fetchRecords } from "../../../src/sync/FetchRecords.ts"
import { sync, type SyncOptions } from "../../../src/sync/Sync.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { type SyncMode, syncResource } from "../../../src/sync/SyncResource.ts"
import { query } from "../../../src/postgres/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { layerWarehouse } from "../../support/postgres.ts"
import {
  failing,
  pages,
  plain,
  record,
  scripted,
  type ScriptedPage,
  type ScriptedSource,
  things
} from "../../support/tiny.ts"
import { settled } from "../../support/until.ts"

const bills = resource({
  path: "bills",
  area: "shop",
  purpose: "Parents",
  basis: "documented",
  operations: "L R",
  fields: [id(), string("name", 50), lastchangedate()],
  modifiedSince: true
})
const parts = resource({
  path: "parts",
  area: "shop",
  purpose: "Children of bills",
  basis: "documented",
  operations: "L",
  fields: [id(), ref("billid", "bills"), integer("rank")],
  filters: exact("billid"),
  parent: { resource: "bills", field: "billid" }
})
// `catalogue` checks the requirements of a parent.
catalogue({
  name: "family",
  version: "1",
  areas: [{ name: "shop", covers: "everything" }],
  traits,
  features: [],
  errorCodes: [],
  resources: [bills, parts]
})

const tables = { things: tableOf(things), plain: tableOf(plain), bills: tableOf(bills), parts: tableOf(parts) }

const warehouse = Layer.effectDiscard(TablePlan.apply(Object.values(tables))).pipe(Layer.provideMerge(layerWarehouse))

let companies = 100n
const company = () => (companies += 1n)

interface Options extends SyncMode {
  readonly table?: Table
  readonly batchRecordsMax?: number
}
const run = (
  source: ScriptedSource,
  companyId: bigint,
  { table = tables.things, batchRecordsMax = 5_000, ...mode }: Options = {}
) => syncResource({ companyId, connector: source.connector, table }, { batchRecordsMax, mode })

const names = (companyId: bigint, table = "things", column = "name") =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<{ value: string }>(
      `select ${column}::text as value from erp.${table} where _company_id = $1 and _deleted_at is null order by id`,
      [companyId]
    )
  ).pipe(Effect.map((rows) => rows.map(({ value }) => value)))

const checkpoint = (companyId: bigint, path = "things", lane = "live") =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql<{ cursor: string | null; learned_overlap_ms: bigint; full_scan_reason: string | null }>`
      select cursor, learned_overlap_ms, full_scan_reason from tributary.checkpoints
       where company_id = ${companyId} and resource = ${path} and lane = ${lane}`
  ).pipe(Effect.map((rows) => rows[0]!))

const at = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, "0")}:00.000000Z`
const thing = (number: number, name: string, minute: number | null) =>
  record(things, { id: String(number), name, lastchangedate: minute === null ? null : at(minute) })
const page = (syncedThrough: string | null, ...records: ReadonlyArray<ReturnType<typeof thing>>): ScriptedPage => ({
  records,
  syncedThrough
})

/** The source with another first page. */
const withFirstPage = (
  source: ScriptedSource,
  first: (pageRead: Effect.Effect<Page, SourceError>) => typeof pageRead
) => ({
  ...source,
  connector: {
    ...source.connector,
    page: (request: PageRequest) => {
      const pageRead = source.connector.page(request)
      return request.token === null ? first(pageRead) : pageRead
    }
  }
})

/** The source whose first page is read, which `read` says, and answered when `until` has ended. */
const withHeldPage = (source: ScriptedSource, read: Deferred.Deferred<void>, until: Effect.Effect<unknown>) =>
  withFirstPage(source, (pageRead) =>
    pageRead.pipe(
      Effect.tap(() => Deferred.succeed(read, undefined)),
      Effect.tap(() => until)
    )
  )

describe("the sync engine", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("against Postgres", (it) => {
    it.effect("detects rows that become visible late, and increases the overlap", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(page(at(20), thing(1, "a", 1))))
        yield* run(source, companyId)
        source.script = pages(page(at(21), thing(2, "four minutes late", 16)))
        const outcome = yield* run(source, companyId)
        assert.strictEqual(source.requests.at(-1)!.since, at(15))
        assert.deepStrictEqual([outcome.totals.late, outcome.totals.lateMs], [1, 4 * 60_000])
        assert.match(outcome.notes.join(), /1 rows became visible up to 240 s/)
        assert.strictEqual((yield* checkpoint(companyId)).learned_overlap_ms, BigInt(8 * 60_000))
        yield* run(source, companyId)
        assert.strictEqual(source.requests.at(-1)!.since, at(13))
        assert.deepStrictEqual(yield* names(companyId), ["a", "four minutes late"])
      })
    )

    it.effect("halves the learned overlap each week, and resets it on request", () =>
      Effect.gen(function* () {
        const companyId = company()
        const sql = yield* SqlClient.SqlClient
        const source = scripted(companyId, pages(page("2026-01-02T00:00:00.000000Z", thing(1, "a", 1))))
        yield* run(source, companyId)
        source.script = pages(page("2026-01-02T00:00:00.000000Z", thing(2, "hours late", 0)))
        yield* run(source, companyId)
        const begins = () => source.requests.at(-1)!.since
        const aged = (days: number) =>
          sql`update tributary.checkpoints set overlap_learned_at = tributary.now() - make_interval(days => ${days}) where company_id = ${companyId}`
        yield* run(source, companyId)
        assert.strictEqual(begins(), "2026-01-01T00:00:00.000000Z", "a day at most")
        yield* aged(14)
        yield* run(source, companyId)
        assert.strictEqual(begins(), "2026-01-01T18:00:00.000000Z", "six hours after two weeks")
        // A slightly late row neither renews the learned overlap nor raises the rest of it.
        source.script = pages(
          page(
            "2026-01-02T00:00:00.000000Z",
            record(things, { id: "3", name: "x", lastchangedate: "2026-01-01T23:59:00.000000Z" })
          )
        )
        yield* run(source, companyId)
        yield* run(source, companyId)
        assert.strictEqual(begins(), "2026-01-01T18:00:00.000000Z")
        // A row that is later than the rest of the overlap renews it.
        source.script = pages(
          page(
            "2026-01-02T00:00:00.000000Z",
            record(things, { id: "4", name: "x", lastchangedate: "2026-01-01T14:00:00.000000Z" })
          )
        )
        yield* run(source, companyId)
        yield* run(source, companyId)
        assert.strictEqual(begins(), "2026-01-01T04:00:00.000000Z")
        yield* run(source, companyId, { resetOverlap: true })
        assert.strictEqual(begins(), "2026-01-01T23:55:00.000000Z", "as configured")
        assert.strictEqual((yield* checkpoint(companyId)).learned_overlap_ms, 0n)
      })
    )

    for (const { what, records } of [
      { what: "are empty", records: [] },
      { what: "repeat two pages", records: [thing(1, "a", 1), thing(2, "b", 1)] }
    ]) {
      it.effect(`ends a scan whose pages ${what} and always have a next page`, () =>
        Effect.gen(function* () {
          const companyId = company()
          let requestCount = 0
          const source = scripted(companyId, () => {
            // An endless scan fails here, so that the test ends.
            if ((requestCount += 1) > 1_000) throw failing(new Unreachable({ detail: "too many requests" }))
            return { ...page(null, ...records.slice(requestCount % 2)), next: `cursor-${requestCount}` }
          })
          const outcome = yield* run(source, companyId)
          assert.strictEqual(outcome.status, "failed")
          assert.match(outcome.failure!.message, /200 pages in a row had no new record/)
          assert.isAtMost(requestCount, 406, "the scan restarts once")
          source.script = pages(page(at(20), thing(1, "a", 1)))
          const next = yield* run(source, companyId, { acceptDeletions: true })
          assert.deepStrictEqual([next.status, next.kind, next.resumed], ["done", "full", false])
        })
      )
    }

    it.effect("reports once a field that is missing from every record, and keeps its values", () =>
      Effect.gen(function* () {
        const companyId = company()
        const sql = yield* SqlClient.SqlClient
        const all = Array.from({ length: 25 }, (_, index) => thing(index + 1, `name ${index}`, 1))
        const without = all.map((one) => ({
          ...one,
          partial: true,
          columns: one.columns.map((value, index) => (things.fields[index]!.name === "name" ? undefined : value))
        }))
        const source = scripted(companyId, pages(page(at(20), ...all)))
        yield* run(source, companyId)
        source.script = pages(page(at(21), ...without))
        const findings = sql<{ field: string; kind: string; rows: bigint; runs: number }>`
          select field, kind, rows, runs from tributary.field_findings where company_id = ${companyId}`
        const outcome = yield* run(source, companyId, { full: true })
        assert.match(outcome.notes.join(), /things\.name: no record of the last full scan carried it, and 25 rows keep/)
        assert.deepStrictEqual(yield* findings, [{ field: "name", kind: "absent", rows: 25n, runs: 1 }])
        assert.notMatch((yield* run(source, companyId, { full: true })).notes.join(), /things\.name/)
        assert.strictEqual((yield* findings)[0]!.runs, 2)
        assert.strictEqual((yield* names(companyId))[0], "name 0")
        // A field that only some records of a response omit is not reported.
        source.script = pages(page(at(22), all[0]!, ...without.slice(1)))
        yield* run(source, companyId, { full: true })
        assert.deepStrictEqual(yield* findings, [])
      })
    )

    it.effect("reports a field that changes with every read, and makes no versions once it is ignored", () =>
      Effect.gen(function* () {
        const companyId = company()
        const sql = yield* SqlClient.SqlClient
        let read = 0
        const source = scripted(companyId, () => {
          read += 1
          const all = Array.from({ length: 30 }, (_, index) => ({
            ...record(plain, { id: String(index + 1), name: index === 3 && read === 7 ? "changed" : `name ${index}` }),
            extra: `{"age_days":${read},"fixed":1}`
          }))
          return { ...page(null, ...all), next: null }
        })
        const once = (table = tables.plain) => run(source, companyId, { table })
        const versions = Effect.map(
          sql<{ n: number }>`select count(*)::int as n from erp_history.plains where _company_id = ${companyId}`,
          ([row]) => row!.n
        )
        const notesOfRuns: Array<string> = []
        for (let at = 0; at < 5; at += 1) notesOfRuns.push((yield* once()).notes.join())
        assert.deepStrictEqual(
          notesOfRuns.map((notes) =>
            /plains\.age_days: changed in 30 records .* 3 times in a row.*resources\.plains\.ignore_fields: \[age_days\]/.test(
              notes
            )
          ),
          [false, false, false, true, false]
        )
        const findings = sql<{ field: string; runs: number }>`
          select field, runs from tributary.field_findings where company_id = ${companyId} and kind = 'volatile'`
        assert.deepStrictEqual(yield* findings, [{ field: "age_days", runs: 4 }])
        assert.strictEqual(yield* versions, 150)

        const ignoring = tableOf({ ...plain, ignoredFields: ["age_days"] })
        yield* once(ignoring)
        assert.strictEqual(yield* versions, 150, "no version for the ignored field alone")
        assert.deepStrictEqual(yield* findings, [])
        yield* once(ignoring)
        assert.strictEqual(yield* versions, 151, "one version for the record with another change")
        assert.deepStrictEqual(
          yield* sql`select id, _extra->>'age_days' as age from erp.plains where _company_id = ${companyId} and id in (4, 5) order by id`,
          [
            { id: 4n, age: "7" },
            { id: 5n, age: "5" }
          ]
        )
        const sentTexts = Array.from({ length: 30 }, (_, index) =>
          JSON.stringify({ id: index + 1, name: index === 3 ? "changed" : `name ${index}`, age_days: 99, fixed: 1 })
        )
        assert.deepStrictEqual((yield* compare(ignoring, companyId, sentTexts)).differences, [])
        assert.strictEqual((yield* compare(tables.plain, companyId, sentTexts)).differences.length, 30)
      })
    )

    it.effect("finds rows beyond the overlap with a full scan, and reports them as late", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(page(at(30), thing(1, "a", 1))))
        yield* run(source, companyId)
        source.script = pages(page(at(31), thing(1, "a", 1), thing(2, "in time", 30), thing(3, "too late", 10)))
        const outcome = yield* run(source, companyId, { full: true })
        assert.deepStrictEqual([outcome.totals.inserted, outcome.totals.late], [2, 1])
        assert.strictEqual((yield* checkpoint(companyId)).learned_overlap_ms, BigInt(40 * 60_000))
      })
    )

    it.effect("counts no row as late that was here with its stamp", () =>
      Effect.gen(function* () {
        const companyId = company()
        const sql = yield* SqlClient.SqlClient
        const [one, two] = [thing(1, "a", 1), thing(2, "b", 2)]
        const bad = { id: "4", field: "price", reason: "is no number", bytes: `{"id":4,"price":"x"}` }
        const source = scripted(companyId, pages({ ...page(at(30), one, two, thing(3, "c", 3)), rejected: [bad] }))
        yield* run(source, companyId)
        // Version 2 of row 2, so that its history has a version.
        source.script = pages({ ...page(at(32), thing(2, "b", 31)), rejected: [bad] })
        yield* run(source, companyId)
        yield* sql`delete from erp.things where _company_id = ${companyId} and id in (2, 3)`
        // Row 1 with another value and the same stamp; 2 and 3 again; 4, which was in quarantine.
        const rows = [thing(1, "A", 1), thing(2, "b", 31), thing(3, "c", 3), thing(4, "repaired", 4)]
        source.script = pages(page(at(50), ...rows))
        const outcome = yield* run(source, companyId, { full: true })
        assert.deepStrictEqual([outcome.totals.inserted, outcome.totals.updated, outcome.totals.late], [3, 1, 0])
        assert.strictEqual((yield* checkpoint(companyId)).learned_overlap_ms, 0n)
        // Among rows that were here, one that is late counts with its own stamp.
        source.script = pages(
          page(at(51), thing(1, "AA", 1), ...rows.slice(1), thing(5, "too late", 10), thing(6, "later", 12))
        )
        const late = yield* run(source, companyId, { full: true })
        assert.deepStrictEqual([late.totals.late, late.totals.lateMs], [2, 40 * 60_000])
      })
    )

    it.effect("reads every record when synced_through of the source goes back", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(page(at(40), thing(1, "a", 1))))
        yield* run(source, companyId)
        source.script = (request) => ({
          ...page(at(20), ...(request.since === null ? [thing(1, "a", 1), thing(2, "stamped before", 15)] : [])),
          next: null
        })
        const outcome = yield* run(source, companyId)
        assert.deepStrictEqual([outcome.status, outcome.kind], ["done", "full"])
        assert.match(outcome.notes.join(), /read in full: the source reports synced_through/)
        assert.deepStrictEqual(yield* names(companyId), ["a", "stamped before"])
        const { cursor, full_scan_reason } = yield* checkpoint(companyId)
        assert.deepStrictEqual([cursor, full_scan_reason], [at(20), null])
        assert.strictEqual((yield* run(source, companyId)).kind, "incremental")
      })
    )

    it.effect("keeps newer versions after a restore of the source until a person accepts the restore", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(page(at(30), thing(1, "new", 25), thing(2, "b", 1))))
        yield* run(source, companyId)
        source.script = pages(page(at(31), thing(1, "restored", 5), thing(2, "b", 1)))
        const outcome = yield* run(source, companyId, { full: true })
        assert.deepStrictEqual([outcome.status, outcome.totals.staleVersions], ["quarantined", 1])
        assert.deepStrictEqual(yield* names(companyId), ["new", "b"])
        assert.strictEqual((yield* run(source, companyId)).status, "quarantined")
        const accepted = yield* run(source, companyId, { acceptRestored: true })
        assert.deepStrictEqual([accepted.status, accepted.totals.updated], ["done", 1])
        assert.deepStrictEqual(yield* names(companyId), ["restored", "b"])
        assert.deepStrictEqual((yield* run(source, companyId)).kind, "incremental")
      })
    )

    it.effect("reports an older version also for a row with a future read time", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(page(at(30), thing(1, "new", 25))))
        yield* run(source, companyId)
        const sql = yield* SqlClient.SqlClient
        yield* sql`update erp.things set _observed_at = tributary.now() + interval '1 hour' where _company_id = ${companyId}`
        source.script = pages(page(at(31), thing(1, "restored", 5)))
        const outcome = yield* run(source, companyId, { full: true })
        assert.deepStrictEqual([outcome.status, outcome.totals.staleVersions], ["quarantined", 1])
      })
    )

    for (const [syncedThrough, title] of [
      [null, "is missing"],
      ["2031-01-01T00:00:00Z", "lies in the future of its answer"]
    ] as const)
      it.effect(`uses the time of the response less the overlap when synced_through ${title}`, () =>
        Effect.gen(function* () {
          const companyId = company()
          const source = scripted(companyId, pages(page(syncedThrough, thing(1, "a", 1))))
          const { page: readPage } = source.connector
          const connector: ConnectorShape = {
            ...source.connector,
            page: (request) => Effect.map(readPage(request), (one) => ({ ...one, answeredAt: "2026-01-01T00:50:00Z" }))
          }
          const dated = { ...source, connector }
          yield* run(dated, companyId)
          assert.strictEqual((yield* checkpoint(companyId)).cursor, "2026-01-01T00:45:00Z")
          assert.strictEqual((yield* run(dated, companyId)).kind, "incremental")
          assert.strictEqual(source.requests.at(-1)!.since, "2026-01-01T00:40:00Z")
        })
      )

    it.effect("repeats full scans while records have no time of change", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(page(at(10), thing(1, "a", 1), thing(2, "unstamped", null))))
        yield* run(source, companyId)
        source.script = pages(page(at(11), thing(1, "a", 1), thing(2, "changed without a stamp", null)))
        const outcome = yield* run(source, companyId)
        assert.deepStrictEqual([outcome.kind, outcome.totals.updated], ["full", 1])
        source.script = pages(page(at(12), thing(1, "a", 1), thing(2, "stamped", 12)))
        yield* run(source, companyId)
        assert.strictEqual((yield* run(source, companyId)).kind, "incremental")
      })
    )

    it.effect("keeps a row newer than the position of a full scan, and scans in full again", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(page(at(10), thing(1, "one", 1), thing(4, "four", 1))))
        yield* run(source, companyId)
        source.script = pages(page(at(20), thing(2, "two", 15), thing(3, "visible late", 8)))
        yield* run(source, companyId)
        // A replica that lags behind responds, with an earlier synced_through. It lacks the row of minute 15, and one that
        // became visible within the overlap of 5 minutes after its stamp. The missing row of minute 1 is deleted.
        source.script = pages(page(at(10), thing(1, "one", 1)))
        const behind = yield* run(source, companyId, { full: true })
        assert.deepStrictEqual([behind.totals.deleted, yield* names(companyId)], [1, ["one", "two", "visible late"]])
        assert.match((yield* checkpoint(companyId)).full_scan_reason ?? "", /2 rows are newer than the last full scan/)
        // A replica that is up to date confirms the deletion.
        source.script = pages(page(at(21), thing(1, "one", 1)))
        const settled = yield* run(source, companyId)
        assert.deepStrictEqual([settled.kind, settled.totals.deleted], ["full", 2])
        assert.deepStrictEqual(yield* names(companyId), ["one"])
        assert.strictEqual((yield* checkpoint(companyId)).full_scan_reason, null)
      })
    )

    it.effect("keeps rows of another lane that an interrupted full scan has not seen", () =>
      Effect.gen(function* () {
        const companyId = company()
        const all = [page(at(10), thing(1, "a", 1)), page(at(10), thing(2, "b", 1)), page(at(10), thing(3, "c", 1))]
        const read = yield* Deferred.make<void>()
        const opened = yield* Deferred.make<void>()
        // The backfill reads its first page before the live run begins, and lands it after the live run was opened.
        const slow = withHeldPage(scripted(companyId, pages(...all)), read, Deferred.await(opened))
        const backfill = yield* Effect.forkChild(run(slow, companyId, { backfill: { since: null, until: null } }))
        yield* Deferred.await(read)
        const source = scripted(companyId, (request) => {
          if (request.token === "p2") throw failing(new ServerFault({ status: 500, code: null, retryAfter: null }))
          return pages(...all)(request)
        })
        const lateSource = withFirstPage(source, (pageRead) =>
          Deferred.succeed(opened, undefined).pipe(Effect.andThen(Fiber.await(backfill)), Effect.andThen(pageRead))
        )
        assert.strictEqual((yield* run(lateSource, companyId)).status, "failed")
        source.script = (request) => (request.since === null ? pages(...all)(request) : { ...page(at(20)), next: null })
        const outcome = yield* run(source, companyId)
        assert.deepStrictEqual([outcome.resumed, outcome.totals.deleted], [true, 0])
        assert.deepStrictEqual(yield* names(companyId), ["a", "b", "c"])
      })
    )

    for (const [name, table] of [
      ["with a stamp after its position", tables.things],
      ["without a stamp", tables.plain]
    ] as const)
      it.effect(`keeps a row ${name} that another full scan landed meanwhile`, () =>
        Effect.gen(function* () {
          const companyId = company()
          const isStamped = table === tables.things
          const scanned = (minute: number, ...ids: ReadonlyArray<number>) =>
            pages({
              records: ids.map((id) =>
                isStamped ? thing(id, `n${id}`, id === 4 ? 21 : 1) : record(plain, { id: String(id), name: `n${id}` })
              ),
              syncedThrough: isStamped ? at(minute) : null
            })
          const source = scripted(companyId, scanned(10, 1, 2, 3))
          yield* run(source, companyId, { table })
          const asked = yield* Deferred.make<void>()
          const answered = yield* Deferred.make<void>()
          // The backfill begins first. Its last request is answered last, after record 4 was created.
          const slow = withHeldPage(scripted(companyId, scanned(18, 1, 2, 4)), asked, Deferred.await(answered))
          const backfill = yield* Effect.forkChild(
            run(slow, companyId, { table, backfill: { since: null, until: null } })
          )
          yield* Deferred.await(asked)
          const live = withHeldPage(scripted(companyId, scanned(20, 1, 2)), answered, Fiber.await(backfill))
          assert.strictEqual((yield* run(live, companyId, { table, full: true })).status, "done")
          assert.deepStrictEqual(yield* names(companyId, table.resource.path), ["n1", "n2", "n4"])
          source.script = scanned(30, 1, 2)
          const settled = yield* run(source, companyId, { table })
          assert.deepStrictEqual([settled.kind, settled.totals.deleted], ["full", 1])
        })
      )

    it.effect("continues live from a full backfill, with a full scan if records have no timestamp", () =>
      Effect.gen(function* () {
        const backfill = { since: null, until: null }
        const stamped = company()
        const source = scripted(stamped, pages(page(at(10), thing(1, "a", 1))))
        yield* run(source, stamped, { backfill })
        assert.strictEqual((yield* run(source, stamped)).kind, "incremental")
        const unstamped = company()
        const odd = scripted(unstamped, pages(page(at(10), thing(1, "a", null))))
        yield* run(odd, unstamped, { backfill })
        assert.strictEqual((yield* run(odd, unstamped)).kind, "full")
      })
    )

    it.effect("restarts when pages drift, and starts from the first page after it failed", () =>
      Effect.gen(function* () {
        const companyId = company()
        let drifts = 1
        const source = scripted(companyId, (request) => {
          if (request.token === null) return { ...page(at(1), thing(1, "a", 1)), next: "p1" }
          if (drifts-- > 0) throw failing(new PageDrift({ detail: "moved" }))
          return { ...page(at(1), thing(2, "b", 1)), next: null }
        })
        assert.strictEqual((yield* run(source, companyId)).status, "done")
        assert.deepStrictEqual(
          source.requests.map(({ token }) => token),
          [null, "p1", null, "p1"]
        )
        drifts = Infinity
        const outcome = yield* run(source, companyId, { full: true })
        assert.strictEqual(outcome.failure?.kind, "PageDrift")
        drifts = 0
        source.requests.length = 0
        yield* run(source, companyId)
        assert.isNull(source.requests[0]!.token)
      })
    )

    it.effect("reads the children of parents that changed between two full scans", () =>
      Effect.gen(function* () {
        const companyId = company()
        const bill = (number: number, name: string, minute: number) =>
          record(bills, { id: String(number), name, lastchangedate: at(minute) })
        const part = (number: number, billid: number, rank: number) =>
          record(parts, { id: String(number), billid: String(billid), rank: String(rank) })
        let all = [part(1, 1, 1), part(2, 2, 1), part(3, 2, 1)]
        let changed = [bill(1, "a", 1), bill(2, "b", 1)]
        let isEmptyOnce = false
        const partsOf = (billId: string | undefined) => {
          const shown = isEmptyOnce ? [] : all.filter(({ columns }) => columns[1] === (billId ?? columns[1]))
          isEmptyOnce = false
          return page(null, ...shown)
        }
        const source = scripted(companyId, ({ resource: { path }, where }) => ({
          next: null,
          ...(path === "bills" ? page(at(9), ...changed) : partsOf(where?.value))
        }))
        const options: SyncOptions = {
          companies: [{ name: "one", connector: source.connector, resources: [parts, bills] }],
          datasets: datasetsDefault,
          concurrency: 2,
          batchRecordsMax: 100,
          engine: { ...engineDefault, cursorlessScanInterval: Duration.hours(1) }
        }
        const kinds = Effect.map(sync(options), ({ companies: [one] }) =>
          one!.outcomes.map(({ kind, totals }) => [kind, totals.requests, totals.updated + totals.inserted])
        )
        // The children were never read, so they are read in full, after their parents.
        assert.deepStrictEqual(yield* kinds, [
          ["full", 1, 3],
          ["full", 1, 2]
        ])
        all = [part(1, 1, 7), part(2, 2, 8), part(3, 2, 1), part(4, 2, 1)]
        changed = [bill(2, "changed", 8)]
        assert.deepStrictEqual(yield* kinds, [
          ["children", 1, 2],
          ["incremental", 1, 1]
        ])
        assert.deepStrictEqual(source.requests.at(-1), { resource: "parts", since: null, token: null })
        assert.deepStrictEqual(yield* names(companyId, "parts", "rank"), ["1", "8", "1", "1"])
        assert.deepStrictEqual(yield* kinds, [
          ["children", 0, 0],
          ["incremental", 1, 0]
        ])
        // The first child of a parent. At first the source returns no child.
        all = [...all, part(5, 3, 5)]
        changed = [bill(3, "c", 8)]
        isEmptyOnce = true
        assert.deepStrictEqual(yield* kinds, [
          ["children", 2, 1],
          ["incremental", 1, 1]
        ])
        // A full scan finds a changed child whose parent did not change.
        yield* sync({ ...options, mode: { full: true } })
        assert.deepStrictEqual(yield* names(companyId, "parts", "rank"), ["7", "8", "1", "1", "5"])
      })
    )

    it.effect("fetches single records, soft-deletes missing ones, and accepts older versions for a repair", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(
          companyId,
          pages(page(at(9), thing(1, "a", 5), thing(2, "b", 5), thing(3, "c", 5), thing(4, "d", 5)))
        )
        yield* run(source, companyId)
        const now: Record<string, ReturnType<typeof thing> | null> = {
          "1": thing(1, "older at the source", 4),
          "2": null,
          "3": thing(3, "newer", 8)
        }
        const connector: ConnectorShape = {
          ...source.connector,
          get: (_resource, number) =>
            Effect.map(Clock.monotonicTimeNanos, (nanos): FetchedRecord => ({
              record: now[number]!,
              rejected: null,
              version: null,
              beganAt: Number(nanos) / 1e6,
              source: `GET /things/${number}`
            }))
        }
        const read = (authority: "newer" | "source") =>
          fetchRecords({ companyId, connector, table: tables.things, ids: ["1", "2", "3"], authority })
        const careful = yield* read("newer")
        assert.deepStrictEqual(
          [careful.kind, careful.lane, careful.totals.deleted, careful.totals.updated, careful.totals.staleVersions],
          ["fetch", "records", 1, 1, 1]
        )
        assert.deepStrictEqual(yield* names(companyId), ["a", "newer", "d"])
        assert.strictEqual((yield* read("source")).totals.updated, 1)
        assert.deepStrictEqual(yield* names(companyId), ["older at the source", "newer", "d"])
        // A deleted record that is found again exists.
        now["2"] = thing(2, "back", 1)
        yield* read("newer")
        assert.deepStrictEqual(yield* names(companyId), ["older at the source", "back", "newer", "d"])
      })
    )

    it.effect("locks a resource only while fetched records land, and waits for the lock then", () =>
      Effect.gen(function* () {
        const companyId = company()
        const requestLatch = yield* Latch.make()
        const mayAnswer = yield* Latch.make()
        const connector: ConnectorShape = {
          ...scripted(companyId, pages(page(at(1)))).connector,
          get: (_resource, number) =>
            Effect.gen(function* () {
              if (number === "150") {
                yield* requestLatch.open
                yield* mayAnswer.await
              }
              const beganAt = Number(yield* Clock.monotonicTimeNanos) / 1e6
              const one = thing(Number(number), `n${number}`, 1)
              return { record: one, rejected: null, version: null, beganAt, source: `GET /things/${number}` }
            })
        }
        const ids = Array.from({ length: 250 }, (_, index) => String(index + 1))
        const reading = yield* Effect.forkChild(
          fetchRecords({ companyId, connector, table: tables.things, ids, authority: "source" })
        )
        yield* requestLatch.await
        // The lock is free while a read is in flight; another session acquires it meanwhile.
        const other = yield* (yield* Database).connect
        const lock = [`tributary:${companyId}:things:records`]
        const [lockRow] = yield* query<{ locked: boolean; pid: number }>(
          other,
          "lock",
          "select pg_try_advisory_lock(hashtextextended($1, 0)) as locked, pg_backend_pid() as pid",
          lock
        )
        assert.isTrue(lockRow!.locked)
        yield* mayAnswer.open
        const sql = yield* SqlClient.SqlClient
        const others = sql`select 1 from pg_stat_activity
          where datname = current_database() and query like '%pg_try_advisory_lock%' and pid not in (${lockRow!.pid}, pg_backend_pid())`
        yield* settled("the other session", others, ({ length }) => length > 0)
        yield* query(other, "unlock", "select pg_advisory_unlock(hashtextextended($1, 0))", lock)
        const outcome = yield* Fiber.join(reading)
        assert.deepStrictEqual([outcome.status, outcome.totals.records, outcome.totals.inserted], ["done", 250, 250])
        assert.lengthOf(yield* names(companyId), 250)
        const runs = yield* sql<{ status: string; records: bigint }>`
          select status, records from tributary.runs where company_id = ${companyId} order by id`
        assert.deepStrictEqual(
          runs.map(({ status, records }) => `${status} ${records}`),
          ["done 100", "done 100", "done 50"]
        )
      }).pipe(Effect.scoped)
    )

    it.effect("skips resources that the token may not read, unless the command names them", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, () => {
          throw failing(new Forbidden({ kind: "scope", code: "insufficient_scope", scope: "shop:read", detail: "no" }))
        })
        const identify = (identity: Partial<Identity>) =>
          Effect.succeed({ companyId, user: null, scopes: null, features: null, ...identity })
        const outcomes = (identity: Partial<Identity>, named: boolean) =>
          sync({
            companies: [
              {
                name: "one",
                connector: { ...source.connector, identify: identify(identity) },
                resources: [things],
                named
              }
            ],
            datasets: datasetsDefault,
            concurrency: 1,
            batchRecordsMax: 100
          }).pipe(
            Effect.map(({ companies: [one] }) => one!.outcomes.map(({ status, failure }) => [status, failure?.kind]))
          )
        assert.deepStrictEqual(yield* outcomes({ scopes: ["other:read"] }, false), [["skipped", "NotInScope"]])
        assert.lengthOf(source.requests, 0)
        assert.deepStrictEqual(yield* outcomes({}, false), [["skipped", "Forbidden"]])
        assert.deepStrictEqual(yield* outcomes({ scopes: ["other:read"] }, true), [["failed", "Forbidden"]])
      })
    )
  })
})
