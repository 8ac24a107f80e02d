import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { NotFound, PageTokenRefused, ServerFault } from "../../../src/connector/SourceError.ts"
import * as ResourceLock from "../../../src/land/ResourceLock.ts"
import * as WriteSession from "../../../src/land/WriteSession.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { syncResource } from "../../../src/sync/SyncResource.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { layerWarehouse } from "../../support/postgres.ts"
import { failing, pages, plain, record, scripted, type ScriptedSource, things, tiny } from "../../support/tiny.ts"

const tables = { things: tableOf(things), plain: tableOf(plain) }

const warehouse = Layer.effectDiscard(TablePlan.apply([tables.things, tables.plain])).pipe(
  Layer.provideMerge(layerWarehouse)
)

let companies = 0n
/** A new company for each test, so that tests share a database and no row. */
const company = () => (companies += 1n)

const run = (
  source: ScriptedSource,
  companyId: bigint,
  options: { table?: typeof tables.things; full?: boolean; acceptDeletions?: boolean } = {}
) =>
  syncResource(
    { companyId, connector: source.connector, table: options.table ?? tables.things },
    { batchRecordsMax: 5_000, mode: { full: options.full ?? false, acceptDeletions: options.acceptDeletions ?? false } }
  )

const live = (companyId: bigint, table = "things") =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<Record<string, unknown>>(
      `select * from erp.${table} where _company_id = $1 and _deleted_at is null order by id`,
      [companyId]
    )
  )

const history = (companyId: bigint, table = "things") =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<{ id: bigint; _version: bigint; _op: string; name: string | null; open: boolean }>(
      `select id, _version, _op, record ->> 'name' as name, _valid_to is null as open
         from erp_history.${table} where _company_id = $1 order by id, _version`,
      [companyId]
    )
  )

const checkpointOf = (companyId: bigint, name = "things") =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql<{ cursor: string | null; scan_token: string | null; fence: bigint }>`
      select cursor, scan_token, fence from tributary.checkpoints where company_id = ${companyId} and resource = ${name}`.pipe(
      Effect.map((rows) => rows[0]!)
    )
  )

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000Z`
const thing = (id: number, name: string, second: number) =>
  record(things, { id: String(id), name, lastchangedate: at(second) })

describe("a run", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("against Postgres", (it) => {
    it.effect("lands a first full scan and stores the first page's cursor byte for byte", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(
          companyId,
          pages(
            { records: [thing(1, "one", 1), thing(2, "two", 2)], syncedThrough: "2026-01-01T00:00:10.000000000Z" },
            { records: [thing(3, "three", 3)], syncedThrough: "2026-01-01T00:00:11Z" }
          )
        )
        const outcome = yield* run(source, companyId)
        assert.deepStrictEqual([outcome.status, outcome.kind, outcome.totals.inserted], ["done", "full", 3])
        assert.deepStrictEqual(
          (yield* live(companyId)).map((row) => row["name"]),
          ["one", "two", "three"]
        )
        assert.strictEqual((yield* checkpointOf(companyId)).cursor, "2026-01-01T00:00:10.000000000Z")
        assert.deepStrictEqual(
          (yield* history(companyId)).map((row) => [row._version, row._op, row.open]),
          [
            [1n, "insert", true],
            [1n, "insert", true],
            [1n, "insert", true]
          ]
        )
      })
    )

    it.effect("stores the earliest synced_through when pages differ", () =>
      Effect.gen(function* () {
        const companyId = company()
        yield* run(
          scripted(
            companyId,
            pages(
              { records: [thing(1, "one", 1)], syncedThrough: at(20) },
              { records: [thing(2, "two", 2)], syncedThrough: at(15) },
              { records: [thing(3, "three", 3)], syncedThrough: at(30) }
            )
          ),
          companyId
        )
        assert.strictEqual((yield* checkpointOf(companyId)).cursor, at(15))
      })
    )

    it.effect("reads from its cursor next time, updates changed rows and leaves others untouched", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(
          companyId,
          pages({ records: [thing(1, "one", 1), thing(2, "two", 2)], syncedThrough: at(10) })
        )
        yield* run(source, companyId)
        const before = (yield* live(companyId))[1]!
        source.script = pages({ records: [thing(2, "two", 2), thing(1, "ONE", 12)], syncedThrough: at(20) })
        const outcome = yield* run(source, companyId)
        // The stored cursor less the overlap, in the cursor's own format.
        assert.strictEqual(source.requests.at(-1)!.since, "2025-12-31T23:55:10.000000Z")
        assert.deepStrictEqual([outcome.totals.inserted, outcome.totals.updated, outcome.totals.unchanged], [0, 1, 1])
        const rows = yield* live(companyId)
        assert.deepStrictEqual(
          rows.map((row) => [row["name"], row["_version"], row["_op"]]),
          [
            ["ONE", 2n, "update"],
            ["two", 1n, "insert"]
          ]
        )
        assert.deepStrictEqual(rows[1], before)
        assert.deepStrictEqual(
          (yield* history(companyId)).map((row) => [row.id, row._version, row.name, row.open]),
          [
            [1n, 1n, "one", false],
            [1n, 2n, "ONE", true],
            [2n, 1n, "two", true]
          ]
        )
      })
    )

    it.effect("never replaces a row with an older version", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages({ records: [thing(1, "new", 9)], syncedThrough: at(10) }))
        yield* run(source, companyId)
        source.script = pages({ records: [thing(1, "old", 5)], syncedThrough: at(11) })
        const outcome = yield* run(source, companyId)
        assert.strictEqual(outcome.totals.unchanged, 1)
        assert.strictEqual((yield* live(companyId))[0]!["name"], "new")
        // The timestamp is the same: the later read wins.
        source.script = pages({ records: [thing(1, "same stamp", 9)], syncedThrough: at(12) })
        yield* run(source, companyId)
        assert.strictEqual((yield* live(companyId))[0]!["name"], "same stamp")
      })
    )

    it.effect("lands both versions of a record that moved between pages", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(
          companyId,
          pages(
            { records: [thing(1, "one", 1), thing(2, "two", 2)], syncedThrough: at(10) },
            { records: [thing(1, "one again", 11)] }
          )
        )
        const outcome = yield* run(source, companyId)
        assert.strictEqual(outcome.status, "done")
        assert.strictEqual((yield* live(companyId))[0]!["name"], "one again")
        assert.deepStrictEqual(
          (yield* history(companyId)).filter((row) => row.id === 1n).map((row) => row.name),
          ["one", "one again"]
        )
      })
    )

    it.effect("stores unusual values exactly", () =>
      Effect.gen(function* () {
        const companyId = company()
        const odd = [
          record(
            things,
            {
              id: "1",
              name: "tab\there \\ back\nline\r 'quote' \"double\" 🧾 \\N",
              price: "0.1000",
              weight: "-12345678901234.567890",
              rank: "9223372036854775807",
              flag: "true",
              day: "2024-02-29",
              seen: "2026-01-01T00:00:00.123456Z",
              memo: ""
            },
            { extra: '{"later":1.10,"deep":{"n":12345678901234567890.10}}', customFields: '{"colour":"red","n":2.50}' }
          ),
          record(things, {
            id: "2",
            name: "é".repeat(255),
            price: "9999999999999999.9999",
            rank: "-9223372036854775808"
          })
        ]
        yield* run(scripted(companyId, pages({ records: odd, syncedThrough: at(1) })), companyId)
        const sql = yield* SqlClient.SqlClient
        const rows = yield* sql.unsafe<Record<string, string | boolean>>(
          `select name, price::text, weight::text, rank::text, flag, day::text, memo,
                  to_char(seen at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as seen, _extra::text, custom_fields::text
             from erp.things where _company_id = $1 order by id`,
          [companyId]
        )
        assert.deepStrictEqual(rows[0], {
          name: "tab\there \\ back\nline\r 'quote' \"double\" 🧾 \\N",
          price: "0.1000",
          weight: "-12345678901234.567890",
          rank: "9223372036854775807",
          flag: true,
          day: "2024-02-29",
          memo: "",
          seen: "2026-01-01T00:00:00.123456",
          _extra: '{"deep": {"n": 12345678901234567890.10}, "later": 1.10}',
          custom_fields: '{"n": 2.50, "colour": "red"}'
        })
        assert.strictEqual(rows[1]!["name"], "é".repeat(255))
        assert.strictEqual(rows[1]!["price"], "9999999999999999.9999")
        const [version] = yield* sql.unsafe<{ record: string }>(
          `select record::text from erp_history.things where _company_id = $1 and id = 1`,
          [companyId]
        )
        assert.include(version!.record, '"price": "0.1000"')
        assert.include(version!.record, '"later": 1.10')
        // 1.10 and 1.1 are different texts, so this is a change.
        const next = scripted(
          companyId,
          pages({
            records: [{ ...odd[0]!, extra: '{"later":1.1,"deep":{"n":12345678901234567890.10}}' }],
            syncedThrough: at(2)
          })
        )
        next.now += 1_000_000
        assert.strictEqual((yield* run(next, companyId)).totals.updated, 1)
      })
    )

    it.effect("keeps the value of a field that a record omits", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(
          companyId,
          pages({
            records: [record(things, { id: "1", name: "one", price: "5.0000", lastchangedate: at(1) })],
            syncedThrough: at(2)
          })
        )
        yield* run(source, companyId)
        source.script = pages({
          records: [
            record(things, { id: "1", name: "two", price: undefined, lastchangedate: at(3) }),
            record(things, { id: "2", name: undefined, price: "1.0000", lastchangedate: at(3) })
          ],
          syncedThrough: at(4)
        })
        yield* run(source, companyId)
        const rows = yield* live(companyId)
        assert.deepStrictEqual(
          rows.map((row) => [row["name"], row["price"]]),
          [
            ["two", "5.0000"],
            [null, "1.0000"]
          ]
        )
      })
    )

    it.effect("quarantines a record that does not fit once, and resolves it when it fits", () =>
      Effect.gen(function* () {
        const companyId = company()
        const bad = { id: "7", field: "name", reason: "holds a NUL character", bytes: '{"id":7,"name":"\\u0000"}' }
        const source = scripted(
          companyId,
          pages({ records: [thing(1, "one", 1)], rejected: [bad], syncedThrough: at(10) })
        )
        const outcome = yield* run(source, companyId)
        assert.deepStrictEqual([outcome.status, outcome.totals.quarantined], ["quarantined", 1])
        yield* run(source, companyId)
        const sql = yield* SqlClient.SqlClient
        const open = sql<{ bytes: string; reason: string; times: bigint }>`
          select bytes, reason, times from tributary.quarantine where company_id = ${companyId} and resolved_at is null`
        assert.deepStrictEqual(yield* open, [{ bytes: bad.bytes, reason: bad.reason, times: 2n }])
        source.script = pages({ records: [thing(7, "repaired", 20)], syncedThrough: at(30) })
        assert.strictEqual((yield* run(source, companyId)).status, "done")
        assert.deepStrictEqual(yield* open, [])
      })
    )

    it.effect("quarantines the one row that Postgres rejects and lands the others", () =>
      Effect.gen(function* () {
        const companyId = company()
        const records = Array.from({ length: 100 }, (_, index) =>
          record(things, { id: String(index + 1), name: "x", price: index === 57 ? "not a number" : "1.5000" })
        )
        const outcome = yield* run(scripted(companyId, pages({ records, syncedThrough: at(1) })), companyId)
        assert.deepStrictEqual(
          [outcome.status, outcome.totals.inserted, outcome.totals.quarantined],
          ["quarantined", 99, 1]
        )
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ record_id: string; reason: string; bytes: string }>`
          select record_id, reason, bytes from tributary.quarantine where company_id = ${companyId}`
        assert.strictEqual(row!.record_id, "58")
        assert.include(row!.reason, "22P02")
        assert.include(row!.bytes, "not a number")
      })
    )

    it.effect("fails without quarantine when every row is rejected, or not for a value", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const set = (companyId: bigint, code: string, id: string) =>
          sql.unsafe(
            `create or replace function refuse() returns trigger language plpgsql as $$ begin
               if new."_company_id" = ${companyId} and (${id}) then raise exception 'refused' using errcode = '${code}'; end if;
               return new; end $$`
          )
        const first = company()
        yield* set(first, "22001", "true")
        yield* run(scripted(first, pages({ records: [], syncedThrough: at(1) })), first)
        yield* sql.unsafe(
          `create trigger refuse before insert or update on erp.things for each row execute function refuse()`
        )
        const quarantined = (companyId: bigint) =>
          Effect.map(
            sql<{ id: string }>`select record_id as id from tributary.quarantine where company_id = ${companyId}`,
            (rows) => rows.map(({ id }) => id)
          )
        const two = [thing(1, "one", 1), thing(2, "two", 2)]
        const cases: ReadonlyArray<readonly [code: string, of: ReadonlyArray<ReturnType<typeof thing>>, id: string]> = [
          // Both of two rows are rejected.
          ...["22001", "22P02", "22003", "54000"].map((code) => [code, two, "true"] as const),
          // The error does not concern a value, whatever the number of records.
          ...["22P04", "57014", "53100", "53200", "42703", "42501", "25006", "42P01", "23514"].flatMap((code) => [
            [code, two, "true"] as const,
            [code, two, "new.id = 2"] as const,
            [code, two.slice(0, 1), "true"] as const
          ])
        ]
        for (const [code, records, id] of cases) {
          const companyId = company()
          yield* set(companyId, code, id)
          const outcome = yield* run(scripted(companyId, pages({ records, syncedThrough: at(5) })), companyId)
          const about = `${code} of ${records.length} where ${id}`
          assert.strictEqual(outcome.status, "failed", about)
          assert.deepStrictEqual(yield* quarantined(companyId), [], about)
          assert.isNull((yield* checkpointOf(companyId))?.cursor ?? null, about)
        }
        // One of two rows is rejected for its value, or the only row.
        for (const [records, id, expected] of [
          [two, "new.id = 2", ["2"]],
          [two.slice(0, 1), "true", ["1"]]
        ] as const) {
          const companyId = company()
          yield* set(companyId, "22001", id)
          const outcome = yield* run(scripted(companyId, pages({ records, syncedThrough: at(5) })), companyId)
          assert.strictEqual(outcome.status, "quarantined")
          assert.deepStrictEqual(yield* quarantined(companyId), [...expected])
        }
      }).pipe(
        Effect.ensuring(
          Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(`drop trigger if exists refuse on erp.things`)).pipe(
            Effect.orDie
          )
        )
      )
    )

    it.effect("resumes at the failed page without reading landed pages again", () =>
      Effect.gen(function* () {
        const companyId = company()
        const all = [1, 2, 3, 4].map((n) => ({ records: [thing(n, `n${n}`, n)], syncedThrough: at(10 + n) }))
        const source = scripted(companyId, (request) => {
          if (request.token === "p2" && source.requests.length < 4) {
            throw failing(new ServerFault({ status: 500, code: "server_error", retryAfter: null }), 8)
          }
          return request.since === null ? pages(...all)(request) : { records: [thing(1, "n1 later", 20)], next: null }
        })
        const first = yield* run(source, companyId)
        // Failed requests count too.
        const sql = yield* SqlClient.SqlClient
        const [counted] = yield* sql<{ requests: bigint; retries: bigint }>`
          select requests, retries from tributary.runs where company_id = ${companyId} order by id limit 1`
        assert.deepStrictEqual(counted, { requests: 10n, retries: 7n })
        assert.strictEqual(first.totals.requests, 10)
        assert.deepStrictEqual([first.status, first.totals.records, first.failure?.kind], ["failed", 2, "ServerFault"])
        const half = yield* checkpointOf(companyId)
        assert.deepStrictEqual([half.cursor, half.scan_token], [null, "p2"])
        source.requests.length = 10
        const second = yield* run(source, companyId)
        assert.deepStrictEqual([second.status, second.resumed, second.totals.records], ["done", true, 3])
        // The rest of the scan, then the changes since its start.
        assert.deepStrictEqual(
          source.requests.slice(10).map(({ since, token }) => [since, token]),
          [
            [null, "p2"],
            [null, "p3"],
            ["2025-12-31T23:55:11.000000Z", null]
          ]
        )
        assert.strictEqual((yield* live(companyId))[0]!["name"], "n1 later")
        assert.strictEqual((yield* checkpointOf(companyId)).cursor, at(11))
        assert.lengthOf(yield* live(companyId), 4)
      })
    )

    it.effect("restarts the scan when its page token is rejected", () =>
      Effect.gen(function* () {
        const companyId = company()
        let refused = false
        const source = scripted(companyId, (request) => {
          if (request.token === "p1" && !refused) {
            refused = true
            throw failing(new PageTokenRefused({ detail: "expired" }))
          }
          return pages(
            { records: [thing(1, "one", 1)], syncedThrough: at(10) },
            { records: [thing(2, "two", 2)], syncedThrough: at(10) }
          )(request)
        })
        const outcome = yield* run(source, companyId)
        assert.strictEqual(outcome.status, "done")
        assert.deepStrictEqual(
          source.requests.map(({ token }) => token),
          [null, "p1", null, "p1"]
        )
        assert.lengthOf(yield* live(companyId), 2)
      })
    )

    it.effect("fails with PagingBroken when page tokens form a cycle", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, ({ token }) => ({
          records: [thing(source.requests.length, "x", 1)],
          next: token === "a" ? "b" : "a",
          syncedThrough: at(1)
        }))
        const outcome = yield* run(source, companyId)
        assert.strictEqual(outcome.failure?.kind, "PagingBroken")
        assert.strictEqual((yield* checkpointOf(companyId)).cursor, null)
      })
    )

    it.effect("soft-deletes rows that a full scan misses, and restores rows that return", () =>
      Effect.gen(function* () {
        const companyId = company()
        const table = tables.plain
        const row = (id: number, name: string) => record(plain, { id: String(id), name, amount: "1.0000" })
        const source = scripted(companyId, pages({ records: [row(1, "a")] }, { records: [row(2, "b"), row(3, "c")] }))
        yield* run(source, companyId, { table })
        source.script = pages({ records: [row(1, "a")] }, { records: [row(3, "c")] })
        const outcome = yield* run(source, companyId, { table })
        assert.deepStrictEqual([outcome.kind, outcome.totals.deleted, outcome.totals.unchanged], ["full", 1, 2])
        assert.deepStrictEqual(
          (yield* live(companyId, "plains")).map((one) => one["id"]),
          [1n, 3n]
        )
        source.script = pages({ records: [row(1, "a"), row(2, "b"), row(3, "c")] })
        yield* run(source, companyId, { table })
        assert.deepStrictEqual(
          (yield* history(companyId, "plains")).filter((one) => one.id === 2n).map((one) => one._op),
          ["insert", "delete", "insert"]
        )
        assert.lengthOf(yield* live(companyId, "plains"), 3)
      })
    )

    it.effect("blocks a mass delete unless deletions are accepted", () =>
      Effect.gen(function* () {
        const companyId = company()
        const table = tables.plain
        const rows = Array.from({ length: 300 }, (_, index) => record(plain, { id: String(index + 1), name: "x" }))
        const source = scripted(companyId, pages({ records: rows }))
        yield* run(source, companyId, { table })
        source.script = pages({ records: rows.slice(0, 3) })
        const doubted = yield* run(source, companyId, { table })
        assert.deepStrictEqual(doubted.massDeleteBlocked, { live: 300, gone: 297 })
        assert.strictEqual(doubted.status, "quarantined")
        assert.lengthOf(yield* live(companyId, "plains"), 300)
        const believed = yield* run(source, companyId, { table, acceptDeletions: true })
        assert.strictEqual(believed.totals.deleted, 297)
        assert.lengthOf(yield* live(companyId, "plains"), 3)
      })
    )

    it.effect("reads an empty or unexpectedly last page a second time before it deletes", () =>
      Effect.gen(function* () {
        const companyId = company()
        const table = tables.plain
        const rows = Array.from({ length: 4 }, (_, index) => record(plain, { id: String(index + 1), name: "x" }))
        const full = pages({ records: rows.slice(0, 2) }, { records: rows.slice(2) })
        const source = scripted(companyId, full)
        assert.strictEqual((yield* run(source, companyId, { table })).totals.requests, 2)
        for (const place of [null, "p1"]) {
          let endsEarly = true
          source.script = (request) => {
            const { token } = request
            if (token !== place || !endsEarly) return full(request)
            endsEarly = false
            return { records: [], next: null }
          }
          const outcome = yield* run(source, companyId, { table })
          assert.deepStrictEqual(
            [outcome.status, outcome.totals.deleted, outcome.totals.unchanged, outcome.totals.requests],
            ["done", 0, 4, 3],
            `an empty page at ${place}`
          )
        }
        source.script = pages({ records: [] })
        assert.strictEqual((yield* run(source, companyId, { table })).totals.deleted, 4)
        // No row is left that an empty list could delete.
        assert.strictEqual((yield* run(source, companyId, { table })).totals.requests, 1)
      })
    )

    it.effect("keeps its cursor when the mass-delete guard blocks the scan", () =>
      Effect.gen(function* () {
        const companyId = company()
        const rows = Array.from({ length: 30 }, (_, index) => record(things, { id: String(index + 1), name: "x" }))
        const source = scripted(companyId, pages({ records: rows, syncedThrough: "2026-01-01T00:00:00.000000Z" }))
        yield* run(source, companyId)
        const positionOf = Effect.flatMap(
          SqlClient.SqlClient,
          (sql) =>
            sql`select cursor, cursor_read_at, full_scan_at from tributary.checkpoints
                 where company_id = ${companyId} and resource = 'things'`
        )
        const before = yield* positionOf
        source.script = pages({ records: [], syncedThrough: "2026-02-01T00:00:00.000000Z" })
        const doubted = yield* run(source, companyId, { full: true })
        assert.deepStrictEqual(doubted.massDeleteBlocked, { live: 30, gone: 30 })
        assert.deepStrictEqual(yield* positionOf, before)
        assert.strictEqual(doubted.cursor, "2026-01-01T00:00:00.000000Z")
        source.script = pages({ records: rows, syncedThrough: "2026-02-01T00:00:00.000000Z" })
        const next = yield* run(source, companyId)
        assert.deepStrictEqual([next.kind, next.status, next.cursor], ["full", "done", "2026-02-01T00:00:00.000000Z"])
      })
    )

    it.effect("refuses an empty list of few rows while the source has one of them", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages({ records: [thing(1, "one", 1), thing(2, "two", 2)] }))
        yield* run(source, companyId)
        source.script = pages({ records: [] })
        let shown: ReturnType<typeof thing> | null = thing(1, "one", 1)
        const get: typeof source.connector.get = (_, id) =>
          Effect.succeed({
            record: shown,
            rejected: null,
            version: null,
            beganAt: source.now,
            source: `GET /things/${id}`
          })
        const reading = { ...source, connector: { ...source.connector, get } }
        const refused = yield* run(reading, companyId, { full: true })
        assert.strictEqual(refused.status, "failed")
        assert.include(refused.failure!.message, "the list was empty twice, and the source has the record 1")
        assert.lengthOf(yield* live(companyId), 2)
        shown = null
        const emptied = yield* run(reading, companyId, { full: true })
        assert.deepStrictEqual([emptied.status, emptied.totals.deleted], ["done", 2])
      })
    )

    it.effect(
      "blocks a mass delete although another run has landed most of the rows that the scan did not return",
      () =>
        Effect.gen(function* () {
          const companyId = company()
          const table = tables.plain
          const rows = (name: string, count: number) =>
            Array.from({ length: count }, (_, index) => record(plain, { id: String(index + 1), name }))
          const source = scripted(companyId, pages({ records: rows("x", 30) }))
          yield* run(source, companyId, { table })
          const push = Effect.gen(function* () {
            const { connector } = source
            const lock = yield* ResourceLock.acquire({ table, connector, companyId, lane: "push" })
            const session = yield* WriteSession.open(lock, {
              run: { kind: "push" },
              origin: "push",
              authority: "newer",
              acceptDeletions: false,
              deletionsShareMax: 0.5,
              children: []
            })
            const page = {
              records: rows("y", 25),
              rejected: [],
              next: null,
              syncedThrough: null,
              beganAt: source.now + 1,
              source: "POST /plains",
              bytes: 0,
              attempts: 1
            }
            yield* session.land({ pages: [{ page }], scan: null, complete: false })
          }).pipe(Effect.scoped, Effect.orDie)
          source.script = pages({ records: [] })
          let answers = 0
          const connector = {
            ...source.connector,
            page: (request: Parameters<typeof source.connector.page>[0]) =>
              Effect.tap(source.connector.page(request), () => ((answers += 1) === 2 ? push : Effect.void))
          } as typeof source.connector
          const blocked = yield* run({ ...source, connector }, companyId, { table })
          assert.deepStrictEqual(blocked.massDeleteBlocked, { live: 30, gone: 30 })
          assert.lengthOf(yield* live(companyId, "plains"), 30)
        })
    )

    it.effect("deletes no record that a push created during the full scan", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages({ records: [thing(1, "one", 1)], syncedThrough: at(10) }))
        yield* run(source, companyId)
        const push = Effect.scoped(
          Effect.gen(function* () {
            const lock = yield* ResourceLock.acquire({
              table: tables.things,
              connector: source.connector,
              companyId,
              lane: "push"
            })
            const session = yield* WriteSession.open(lock, {
              run: { kind: "push" },
              origin: "push",
              authority: "newer",
              acceptDeletions: false,
              deletionsShareMax: 0.5,
              children: []
            })
            const page = {
              records: [thing(2, "two", 11)],
              rejected: [],
              next: null,
              syncedThrough: null,
              beganAt: 0,
              source: "POST /things",
              bytes: 0,
              attempts: 1
            }
            // The write was sent before the scan began, and took effect after the scan had passed its position.
            const observedAt = session.timeOf(0)
            yield* session.land({ pages: [{ page, observedAt }], scan: null, complete: false })
          })
        )
        let isPushed = false
        const connector = {
          ...source.connector,
          page: (request: Parameters<typeof source.connector.page>[0]) =>
            Effect.tap(source.connector.page(request), () => {
              if (isPushed) return Effect.void
              isPushed = true
              return Effect.orDie(push)
            })
        } as typeof source.connector
        const scan = yield* run({ ...source, connector }, companyId, { full: true })
        assert.deepStrictEqual([scan.status, scan.kind, scan.totals.deleted], ["done", "full", 0])
        assert.deepStrictEqual(
          (yield* live(companyId)).map(({ id }) => id),
          [1n, 2n]
        )
        // The next run is a full scan, which resolves it.
        const sql = yield* SqlClient.SqlClient
        yield* sql`update tributary.runs set status = 'done', finished_at = tributary.now()
          where company_id = ${companyId} and lane = 'push'`
        const next = yield* run(source, companyId)
        assert.deepStrictEqual([next.kind, next.totals.deleted], ["full", 1])
        const last = yield* run(source, companyId)
        assert.strictEqual(last.kind, "incremental")
      })
    )

    it.effect("deletes nothing while a record without a number is in quarantine", () =>
      Effect.gen(function* () {
        const companyId = company()
        const table = tables.plain
        const source = scripted(companyId, pages({ records: [record(plain, { id: "1" }), record(plain, { id: "2" })] }))
        yield* run(source, companyId, { table })
        source.script = pages({
          records: [record(plain, { id: "1" })],
          rejected: [{ id: null, field: "id", reason: "has no number", bytes: "{}" }]
        })
        assert.strictEqual((yield* run(source, companyId, { table })).totals.deleted, 0)
        assert.lengthOf(yield* live(companyId, "plains"), 2)
        // A full scan without that record closes its quarantine entry. Then absence means deleted again.
        source.script = pages({ records: [record(plain, { id: "1" })] })
        const outcome = yield* run(source, companyId, { table })
        assert.deepStrictEqual([outcome.status, outcome.totals.deleted], ["done", 1])
        const sql = yield* SqlClient.SqlClient
        const open = yield* sql`
          select 1 from tributary.quarantine where company_id = ${companyId} and resolved_at is null`
        assert.lengthOf(open, 0)
      })
    )

    it.effect("keeps quarantined records that a blocked full scan did not return", () =>
      Effect.gen(function* () {
        const companyId = company()
        const table = tables.plain
        const all = Array.from({ length: 40 }, (_, index) => record(plain, { id: String(index + 1) }))
        const rejected = [{ id: "99", field: "name", reason: "does not fit", bytes: "{}" }]
        const source = scripted(companyId, pages({ records: all, rejected }))
        yield* run(source, companyId, { table })
        source.script = pages({ records: all.slice(0, 4) })
        assert.isNotNull((yield* run(source, companyId, { table })).massDeleteBlocked)
        const sql = yield* SqlClient.SqlClient
        const open = sql`select 1 from tributary.quarantine where company_id = ${companyId} and resolved_at is null`
        assert.lengthOf(yield* open, 1)
        source.script = pages({ records: all })
        yield* run(source, companyId, { table })
        assert.lengthOf(yield* open, 0)
      })
    )

    it.effect("lands nothing after its fence was lost", () =>
      Effect.gen(function* () {
        const companyId = company()
        const page = {
          records: [thing(1, "zombie", 1)],
          rejected: [],
          next: null,
          syncedThrough: at(1),
          beganAt: 1,
          source: "GET /things",
          bytes: 1,
          attempts: 1
        }
        const scan = {
          kind: "full" as const,
          since: null,
          until: null,
          token: null,
          pages: 1,
          syncedThrough: at(1),
          beganAt: 1
        }
        yield* Effect.scoped(
          Effect.gen(function* () {
            const lock = yield* ResourceLock.acquire({
              table: tables.things,
              connector: { catalogue: tiny },
              companyId,
              lane: "live"
            })
            const stale = yield* WriteSession.open(lock, {
              run: { kind: "full" },
              origin: "scan",
              authority: "newer",
              acceptDeletions: false,
              deletionsShareMax: 0.5,
              children: []
            })
            // As if the lock was lost with its connection while the process was suspended.
            const sql = yield* SqlClient.SqlClient
            yield* sql`update tributary.checkpoints set fence = fence + 1 where company_id = ${companyId}`
            const result = yield* Effect.result(stale.land({ pages: [{ page, observedAt: 1 }], scan, complete: true }))
            assert.strictEqual(result._tag === "Failure" ? result.failure._tag : "landed", "FenceLost")
          })
        )
        assert.lengthOf(yield* live(companyId), 0)
        assert.strictEqual((yield* checkpointOf(companyId)).cursor, null)
      })
    )

    it.effect("lets the server end a transaction whose process is silent, so that its locks do not stay", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const lock = yield* ResourceLock.acquire({
            table: tables.things,
            connector: { catalogue: tiny },
            companyId: company(),
            lane: "live"
          })
          const silence = lock.run("look at the limit", "show idle_in_transaction_session_timeout")
          const { rows } = yield* lock.transaction(silence)
          assert.deepStrictEqual(rows, [{ idle_in_transaction_session_timeout: "1min" }])
        })
      )
    )

    it.effect("lands no row of a batch whose checkpoint cannot be updated", () =>
      Effect.gen(function* () {
        const companyId = company()
        const sql = yield* SqlClient.SqlClient
        const source = scripted(companyId, pages({ records: [thing(1, "one", 1)], syncedThrough: at(10) }))
        yield* sql`create function refuse_move() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`
        yield* sql.unsafe(
          `create trigger refuse before update on tributary.checkpoints for each row
             when (new.company_id = ${companyId} and new.cursor is not null) execute function refuse_move()`
        )
        const outcome = yield* run(source, companyId)
        assert.strictEqual(outcome.status, "failed")
        assert.lengthOf(yield* live(companyId), 0)
        yield* sql`drop trigger refuse on tributary.checkpoints`
        assert.strictEqual((yield* run(source, companyId)).status, "done")
        assert.lengthOf(yield* live(companyId), 1)
      })
    )

    it.effect("stops reading when it can no longer land", () =>
      Effect.gen(function* () {
        const companyId = company()
        const sql = yield* SqlClient.SqlClient
        const all = Array.from({ length: 500 }, (_, index) => ({
          records: Array.from({ length: 50 }, (_, one) => thing(index * 50 + one + 1, "x", 1)),
          syncedThrough: at(10)
        }))
        const source = scripted(companyId, pages(...all))
        const connector = {
          ...source.connector,
          page: (request: Parameters<typeof source.connector.page>[0]) =>
            request.token === "p20"
              ? Effect.andThen(
                  Effect.orDie(sql`update tributary.checkpoints set fence = fence + 1 where company_id = ${companyId}`),
                  source.connector.page(request)
                )
              : source.connector.page(request)
        } as typeof source.connector
        const outcome = yield* run({ ...source, connector }, companyId)
        assert.strictEqual(outcome.failure?.kind, "FenceLost")
        // Pages were read ahead only up to the memory limit.
        assert.isBelow(source.requests.length, 300)
      })
    )

    it.effect("continues automatically after its database connection was lost", () =>
      Effect.gen(function* () {
        const companyId = company()
        const sql = yield* SqlClient.SqlClient
        const all = Array.from({ length: 6 }, (_, index) => ({
          records: [thing(index + 1, "x", 1)],
          syncedThrough: at(10)
        }))
        const source = scripted(companyId, pages(...all))
        let cut = 0
        const cutConnection = Effect.gen(function* () {
          const database = yield* Database
          const [killed] = yield* sql<{ n: number }>`
            select count(pg_terminate_backend(pid))::int as n
              from (select distinct l.pid from pg_locks l join pg_stat_activity a using (pid)
                     where l.locktype = 'advisory' and a.datname = ${database.endpoint.database}) as locked`
          cut += killed!.n
        })
        let reached = false
        const connector = {
          ...source.connector,
          page: (request: Parameters<typeof source.connector.page>[0]) =>
            request.token === "p3" && !reached
              ? Effect.andThen(
                  Effect.orDie(cutConnection),
                  Effect.suspend(() => {
                    reached = true
                    return source.connector.page(request)
                  })
                )
              : source.connector.page(request)
        } as typeof source.connector
        const outcome = yield* run({ ...source, connector }, companyId)
        assert.strictEqual(outcome.status, "done")
        assert.isAtLeast(cut, 1)
        assert.lengthOf(yield* live(companyId), 6)
      })
    )

    it.effect("reports a remedy when the source refuses its request", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, () => {
          throw failing(new NotFound({ detail: "no such path" }))
        })
        const outcome = yield* run(source, companyId)
        assert.strictEqual(outcome.status, "failed")
        assert.include(outcome.failure!.message, "not found (404)")
        assert.include(outcome.failure!.remedy, "base address")
        const sql = yield* SqlClient.SqlClient
        const [ledger] = yield* sql<{ status: string; error_kind: string }>`
          select status, error_kind from tributary.runs where company_id = ${companyId}`
        assert.deepStrictEqual(ledger, { status: "failed", error_kind: "NotFound" })
      })
    )
  })
})
