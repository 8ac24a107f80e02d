import { compare } from "../../../src/verify/Compare.ts"
import { assert, describe, layer } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { Forbidden, PageDrift, Unreachable } from "../../../src/connector/SourceError.ts"
import type { ConnectorShape, Identity, FetchedRecord } from "../../../src/connector/Connector.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { fetchRecords } from "../../../src/sync/FetchRecords.ts"
import { sync } from "../../../src/sync/Sync.ts"
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

const tables = { things: tableOf(things), plain: tableOf(plain) }

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
