/**
 * The identity of a checkpoint: a cursor is valid only for the table that it filled, its source, and the settings that
 * shaped the rows.
 */
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { Rejected, SourceDescription } from "../../../src/connector/Connector.ts"
import { ServerFault } from "../../../src/connector/SourceError.ts"
import { type Datasets, datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import { fetchRecords } from "../../../src/sync/FetchRecords.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { codeOf } from "../../../src/cli/Exit.ts"
import { clockIs, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { failing, record, scripted, things, tiny } from "../../support/tiny.ts"

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()

/** A source in memory. It lists the changes since the cursor, or everything. */
const makeSource = (companyId: bigint) => {
  const rows = new Map<number, { readonly name: string; readonly second: number }>()
  const rejected: Array<Rejected> = []
  let second = 0
  const put = (id: number, name: string) => rows.set(id, { name, second: (second += 1_000) })
  const source = scripted(companyId, ({ since }) => ({
    records: [...rows]
      .filter((row) => since === null || at(row[1].second) >= since)
      .map(([id, row]) =>
        record(things, { id: String(id), name: row.name, lastchangedate: at(row.second) }, { customFields: "{}" })
      ),
    rejected,
    syncedThrough: at((second += 1_000)),
    next: null
  }))
  return { rows, rejected, put, source }
}

let companies = 0n

interface Options {
  readonly datasets?: Datasets
  readonly full?: boolean
  readonly description?: SourceDescription
  readonly generation?: number
  readonly name?: string
}

const erp = datasetsDefault

/** A company with ten records that has been synced once. */
const synced = Effect.fnUntraced(function* (first: Options = {}) {
  const companyId = (companies += 1n)
  const { rows, rejected, put, source } = makeSource(companyId)
  for (let id = 1; id <= 10; id += 1) put(id, `thing ${id}`)
  const connectorOf = (options: Options) => ({
    ...source.connector,
    catalogue: options.generation === undefined ? tiny : { ...tiny, generation: options.generation },
    ...(options.description === undefined ? {} : { source: options.description })
  })
  const run = (options: Options = {}) =>
    sync({
      companies: [{ name: "one", connector: connectorOf(options), resources: [things] }],
      datasets: options.datasets ?? erp,
      concurrency: 1,
      batchRecordsMax: 100,
      mode: { full: options.full ?? false, acceptsOlderCatalogue: options.full ?? false }
    })
  /** Asserts that the warehouse has exactly the source's rows. */
  const assertEqual = Effect.fnUntraced(function* (dataset = "erp") {
    const rowsRead = yield* execute<{ id: string; name: string }>(
      `select id::text, name from ${dataset}.things t where _company_id = ${companyId} and _deleted_at is null order by t.id`
    )
    const expected = [...rows].sort(([a], [b]) => a - b).map(([id, { name }]) => ({ id: String(id), name }))
    assert.deepStrictEqual([...rowsRead], expected)
  })
  const checked = Effect.fnUntraced(function* (options: Options = {}) {
    const report = yield* run(options)
    const [outcome] = report.companies[0]!.outcomes
    assert.strictEqual(codeOf(report), 0, JSON.stringify(outcome!.failure ?? outcome!.notes))
    yield* assertEqual(options.datasets?.current)
    return outcome!
  })
  yield* checked(first)
  return { companyId, rows, rejected, put, source, run, checked, connectorOf, assertEqual }
})

const execute = <Row extends object>(statement: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(statement))

/** Replaces the clock of the warehouse by this expression. Quotes must be doubled. */
const nowIs = (expression: string) => execute(clockIs(expression))

/** Inserts a refetch request for a record of `things`. */
const requestRefetch = (companyId: bigint, requestedAt: string, id = "1") =>
  execute(
    `insert into tributary.refetch_requests (company_id, resource, field, value, requested_at)
       values (${companyId}, 'things', 'id', '${id}', ${requestedAt})`
  )

const countRefetchRequests = (companyId: bigint) =>
  Effect.map(
    execute<{ requests: number }>(
      `select count(*)::int as requests from tributary.refetch_requests where company_id = ${companyId}`
    ),
    ([row]) => row!.requests
  )

const copyOf = (table: string, copy: string) => execute(`create table ${copy} as select * from ${table}`)

/** Restores a table as from a dump: dropped, created, filled. */
const restore = Effect.fnUntraced(function* (table: string, copy: string) {
  yield* execute(`create table ${copy}_new (like ${table} including all)`)
  yield* execute(`insert into ${copy}_new select * from ${copy}`)
  yield* execute(`drop table ${table} cascade`)
  yield* execute(`alter table ${copy}_new set schema ${table.split(".")[0]!}`)
  yield* execute(`alter table ${table.split(".")[0]!}.${copy.split(".")[1]!}_new rename to ${table.split(".")[1]!}`)
  yield* execute(`drop table ${copy}`)
})

describe("a checkpoint", () => {
  layer(warehouse, { timeout: "60 seconds" })("against Postgres", (it) => {
    it.effect("reads only changes while table, source and settings are unchanged", () =>
      Effect.gen(function* () {
        const { put, checked } = yield* synced()
        put(3, "changed")
        assert.strictEqual((yield* checked()).kind, "incremental")
      })
    )

    it.effect("is discarded after its table was dropped, and row versions continue from the history", () =>
      Effect.gen(function* () {
        const { companyId, put, checked } = yield* synced()
        put(3, "second")
        yield* checked()
        yield* execute("drop table erp.things cascade")
        const outcome = yield* checked()
        assert.strictEqual(outcome.kind, "full")
        assert.match(outcome.notes.join(), /another table/)
        put(3, "third")
        assert.strictEqual((yield* checked()).kind, "incremental")
        const versions = yield* execute<{ version: string; name: string }>(
          `select _version::text as version, record ->> 'name' as name from erp_history.things
            where _company_id = ${companyId} and id = 3 order by _version`
        )
        assert.deepStrictEqual(
          versions.map(({ version, name }) => `${version} ${name}`),
          ["1 thing 3", "2 second", "3 third"]
        )
      })
    )

    it.effect("is discarded after its table was truncated", () =>
      Effect.gen(function* () {
        const { put, checked } = yield* synced()
        put(3, "second")
        yield* checked()
        yield* execute("truncate erp.things")
        const outcome = yield* checked()
        assert.match(outcome.notes.join(), /truncated/)
        put(3, "third")
        yield* checked()
      })
    )

    it.effect("is valid for one dataset only, and a switch of datasets reads every record", () =>
      Effect.gen(function* () {
        const { put, checked } = yield* synced()
        const datasets = { current: "erp_prod", history: "erp_prod_history", asOf: "erp_prod_asof" }
        assert.strictEqual((yield* checked({ datasets })).kind, "full")
        put(4, "changed")
        assert.strictEqual((yield* checked({ datasets })).kind, "incremental")
        assert.strictEqual((yield* checked()).kind, "full")
      })
    )

    it.effect("of a table restored from an older copy leads to equal rows with later versions", () =>
      Effect.gen(function* () {
        const { companyId, rows, put, checked } = yield* synced()
        yield* copyOf("erp.things", "public.older")
        put(3, "second")
        put(11, "new since")
        rows.delete(5)
        yield* checked({ full: true })
        put(3, "third")
        yield* checked()
        yield* restore("erp.things", "public.older")
        yield* checked()
        put(3, "fourth")
        yield* checked()
        const versions = yield* execute<{ name: string }>(
          `select record ->> 'name' as name from erp_history.things where _company_id = ${companyId} and id = 3 order by _version`
        )
        assert.deepStrictEqual(
          versions.map(({ name }) => name),
          ["thing 3", "second", "thing 3", "third", "fourth"]
        )
      })
    )

    it.effect("restored from an older copy is discarded, and every record is read", () =>
      Effect.gen(function* () {
        const { put, checked } = yield* synced()
        yield* copyOf("tributary.checkpoints", "public.older")
        put(3, "second")
        yield* checked()
        yield* restore("tributary.checkpoints", "public.older")
        const outcome = yield* checked()
        assert.match(outcome.notes.join(), /restored or copied/)
        assert.strictEqual((yield* checked()).kind, "incremental")
      })
    )

    it.effect("reads every record once after a changed setting, and reports the setting", () =>
      Effect.gen(function* () {
        const description = (custom: string) => ({ address: "https://one/api", settings: { custom_fields: custom } })
        const { checked } = yield* synced({ description: description("false") })
        const outcome = yield* checked({ description: description("true") })
        assert.strictEqual(outcome.kind, "full")
        assert.match(outcome.notes.join(), /custom_fields changed from false to true/)
        assert.strictEqual((yield* checked({ description: description("true") })).kind, "incremental")
      })
    )

    it.effect("reads every record after a write by an older program version in any lane", () =>
      Effect.gen(function* () {
        const { companyId, checked } = yield* synced()
        yield* execute(
          `insert into tributary.checkpoints (company_id, resource, lane, fence, updated_at)
           values (${companyId}, 'things', 'records', 1, tributary.now())`
        )
        const outcome = yield* checked()
        assert.strictEqual(outcome.kind, "full")
        assert.match(outcome.notes.join(), /an earlier version of this program/)
        const [row] = yield* execute<{ fence: bigint; identity_fence: bigint }>(
          `select fence, identity_fence from tributary.checkpoints where company_id = ${companyId} and lane = 'records'`
        )
        assert.isTrue(row!.fence > 1n, "an earlier holder of the lane is fenced off")
        assert.strictEqual(row!.identity_fence, row!.fence)
        assert.strictEqual((yield* checked()).kind, "incremental")
        yield* execute(
          `update tributary.checkpoints set fence = fence + 1 where company_id = ${companyId} and lane = 'live'`
        )
        assert.strictEqual((yield* checked()).kind, "full")
        assert.strictEqual((yield* checked()).kind, "incremental")
      })
    )

    it.effect("without an identity, as after an upgrade, reads every record once", () =>
      Effect.gen(function* () {
        const { companyId, checked } = yield* synced()
        yield* execute(
          `update tributary.checkpoints set identity_fence = null, table_identity = null, shape = null where company_id = ${companyId}`
        )
        assert.strictEqual((yield* checked()).kind, "full")
        assert.strictEqual((yield* checked()).kind, "incremental")
      })
    )

    it.effect("restarts a run whose table is truncated during the run", () =>
      Effect.gen(function* () {
        const { rows, source, checked } = yield* synced()
        const listed = source.script
        let pages = 0
        source.script = (request) => {
          const all = listed({ ...request, token: null })
          const start = request.token === null ? 0 : Number(request.token)
          pages += 1
          return {
            ...all,
            records: all.records.slice(start, start + 5),
            next: start + 5 < all.records.length ? String(start + 5) : null
          }
        }
        const { page } = source.connector
        let isTruncated = false
        const truncating = {
          ...source.connector,
          page: (request: Parameters<typeof page>[0]) =>
            Effect.tap(page(request), () =>
              request.token === null || isTruncated
                ? Effect.void
                : Effect.suspend(() => {
                    isTruncated = true
                    return Effect.orDie(execute("truncate erp.things")).pipe(
                      Effect.provideService(SqlClient.SqlClient, sql)
                    )
                  })
            )
        }
        const sql = yield* SqlClient.SqlClient
        const report = yield* sync({
          companies: [{ name: "one", connector: truncating, resources: [things] }],
          datasets: erp,
          concurrency: 1,
          batchRecordsMax: 1,
          mode: { full: true }
        })
        assert.isTrue(isTruncated)
        assert.strictEqual(codeOf(report), 0, JSON.stringify(report.companies[0]!.failure))
        assert.strictEqual(report.companies[0]!.outcomes[0]!.failure, null)
        assert.isAbove(pages, rows.size / 5)
        yield* checked()
      })
    )

    it.effect("fills a dropped column in every row when the first full scan was interrupted", () =>
      Effect.gen(function* () {
        const { companyId, source, run, checked } = yield* synced()
        // The state after a first scan that was interrupted after a page of five.
        yield* execute(`delete from erp.things where _company_id = ${companyId} and id > 5`)
        yield* execute(
          `update tributary.checkpoints set cursor = null, cursor_read_at = null, full_scan_at = null, scan_run_id = 1, scan_kind = 'full',
             scan_token = '5', scan_pages = 1, scan_synced_through = '${at(11_000)}', scan_started_at = tributary.now()
            where company_id = ${companyId}`
        )
        const listed = source.script
        source.script = (request) => {
          const all = listed({ ...request, token: null })
          return { ...all, records: all.records.slice(Number(request.token ?? 0)) }
        }
        yield* execute("alter table erp.things drop column name cascade")
        yield* run()
        yield* checked()
      })
    )

    it.effect("continues from the version in the history for a row that lost its version column", () =>
      Effect.gen(function* () {
        const { companyId, put, checked } = yield* synced()
        put(3, "second")
        yield* checked()
        yield* execute("alter table erp.things drop column _version cascade")
        yield* checked()
        put(3, "third")
        yield* checked()
        const [versions] = yield* execute<{ names: string }>(
          `select string_agg(record ->> 'name', ', ' order by _version) as names from erp_history.things
            where _company_id = ${companyId} and id = 3`
        )
        assert.strictEqual(versions!.names, "thing 3, second, third")
      })
    )

    it.effect("of a table with rows from an older copy leads to equal rows after a full scan", () =>
      Effect.gen(function* () {
        const { companyId, put, checked } = yield* synced()
        yield* copyOf("erp.things", "public.older")
        put(3, "second")
        yield* checked()
        yield* execute(`delete from erp.things where _company_id = ${companyId}`)
        yield* execute(`insert into erp.things select * from public.older where _company_id = ${companyId}`)
        yield* execute("drop table public.older")
        yield* checked({ full: true })
        put(3, "third")
        yield* checked()
      })
    )

    it.effect("creates the primary key of a table that was restored without it", () =>
      Effect.gen(function* () {
        const { put, checked } = yield* synced()
        yield* copyOf("erp.things", "public.older")
        yield* execute("create table public.bare (like erp.things including all excluding indexes)")
        yield* execute("insert into public.bare select * from public.older")
        yield* execute("drop table erp.things cascade")
        yield* execute("drop table public.older")
        yield* execute("alter table public.bare rename to things")
        yield* execute("alter table public.things set schema erp")
        put(3, "second")
        yield* checked()
        const [key] = yield* execute<{ keys: number }>(
          "select count(*)::int as keys from pg_index where indrelid = 'erp.things'::regclass and indisprimary"
        )
        assert.strictEqual(key!.keys, 1)
      })
    )

    it.effect("reports a clock that was set back, and later reads replace rows with future times", () =>
      Effect.gen(function* () {
        const { companyId, rows, put, run, checked } = yield* synced()
        const later = yield* synced()
        yield* Effect.gen(function* () {
          yield* nowIs("clock_timestamp() - interval ''1 hour''")
          // A different value under the same timestamp, so that the time of the reads decides.
          rows.set(3, { ...rows.get(3)!, name: "after the clock was set back" })
          rows.delete(4)
          put(5, "changed")
          assert.strictEqual(
            codeOf(yield* run({ generation: 0 })),
            2,
            "a run that writes nothing does not hide the change"
          )
          const outcome = yield* checked()
          assert.match(outcome.notes.join(), /clock is 3[56]\d\d s behind its last landing/)
          assert.strictEqual((yield* checked()).kind, "incremental")
          const [row] = yield* execute<{ future: number }>(
            `select count(*)::int as future from tributary.checkpoints where company_id = ${companyId} and updated_at > tributary.now()`
          )
          assert.strictEqual(row!.future, 0)
        }).pipe(Effect.ensuring(Effect.orDie(nowIs("clock_timestamp()"))))
        // The clock is correct again: rows read meanwhile are older than any read from now on.
        rows.set(3, { ...rows.get(3)!, name: "after it was set right" })
        yield* checked({ full: true })
        yield* later.checked()
      })
    )

    it.effect("resolves quarantined records that a full scan misses after the clock was set back", () =>
      Effect.gen(function* () {
        const { companyId, rows, rejected, run, checked } = yield* synced()
        const open = execute<{ id: string | null }>(
          `select record_id as id from tributary.quarantine where company_id = ${companyId} and resolved_at is null order by 1`
        )
        rejected.push({ id: "11", field: "name", reason: "does not fit", bytes: '{"id":11}' })
        rejected.push({ id: null, field: "id", reason: "has no number", bytes: "{}" })
        yield* nowIs("clock_timestamp() + interval ''1 hour''")
        yield* run({ full: true }).pipe(Effect.ensuring(Effect.orDie(nowIs("clock_timestamp()"))))
        assert.deepStrictEqual(yield* open, [{ id: "11" }, { id: null }])
        rejected.length = 0
        rows.delete(4)
        assert.strictEqual((yield* checked({ full: true })).totals.deleted, 1)
        assert.deepStrictEqual(yield* open, [])
      })
    )

    it.effect("resolves no quarantine of its own run when the clock goes back by under a minute", () =>
      Effect.gen(function* () {
        const { companyId, rows, rejected, run } = yield* synced()
        rejected.push({ id: null, field: "id", reason: "has no number", bytes: "{}" })
        rows.delete(4)
        const [{ now }] = (yield* execute<{ now: string }>("select now()::text as now")) as [{ now: string }]
        // Each call of the clock returns an earlier time than the previous one.
        yield* nowIs(`timestamptz ''${now}'' - (clock_timestamp() - timestamptz ''${now}'')`)
        const report = yield* run({ full: true }).pipe(Effect.ensuring(Effect.orDie(nowIs("clock_timestamp()"))))
        const [outcome] = report.companies[0]!.outcomes
        assert.deepStrictEqual([outcome!.status, outcome!.totals.deleted], ["quarantined", 0])
        const open = yield* execute(
          `select 1 from tributary.quarantine where company_id = ${companyId} and resolved_at is null`
        )
        assert.lengthOf(open, 1)
      })
    )

    it.effect("deletes refetch requests from before the clock was set back after a full scan", () =>
      Effect.gen(function* () {
        const { companyId, checked } = yield* synced()
        yield* requestRefetch(companyId, "tributary.now() + interval '1 hour'")
        yield* checked({ full: true })
        assert.strictEqual(yield* countRefetchRequests(companyId), 0)
      })
    )

    it.effect(
      "keeps a refetch request that was made while the clock was set back and a full scan was interrupted",
      () =>
        Effect.gen(function* () {
          const { companyId, source, run, checked } = yield* synced()
          const listed = source.script
          let isInterrupted = true
          source.script = (request) => {
            if (request.token !== null && isInterrupted)
              throw failing(new ServerFault({ status: 500, code: null, retryAfter: null }))
            const all = listed({ ...request, token: null })
            return request.token === null
              ? { ...all, records: all.records.slice(0, 5), next: "5" }
              : { ...all, records: all.records.slice(5) }
          }
          yield* requestRefetch(companyId, "tributary.now()")
          yield* run({ full: true })
          yield* requestRefetch(companyId, "tributary.now() - interval '1 hour'", "2")
          isInterrupted = false
          assert.isTrue((yield* checked()).resumed)
          assert.strictEqual(yield* countRefetchRequests(companyId), 1)
          source.script = listed
          yield* checked({ full: true })
          assert.strictEqual(yield* countRefetchRequests(companyId), 0)
        })
    )

    it.effect.each([
      { direction: "back", sign: "-" },
      { direction: "forward", sign: "+" }
    ])("restarts a run during which the clock is set $direction", ({ sign }) =>
      Effect.gen(function* () {
        const { rows, source, connectorOf, assertEqual } = yield* synced()
        const sql = yield* SqlClient.SqlClient
        rows.set(3, { ...rows.get(3)!, name: "changed" })
        const { page } = source.connector
        let firstPages = 0
        const connector = {
          ...connectorOf({}),
          page: (request: Parameters<typeof page>[0]) =>
            Effect.tap(page(request), () => {
              if (request.token === null) firstPages++
              return Effect.orDie(nowIs(`clock_timestamp() ${sign} interval ''1 hour''`)).pipe(
                Effect.provideService(SqlClient.SqlClient, sql)
              )
            })
        }
        const report = yield* sync({
          companies: [{ name: "one", connector, resources: [things] }],
          datasets: erp,
          concurrency: 1,
          batchRecordsMax: 100,
          mode: { full: true }
        }).pipe(Effect.ensuring(Effect.orDie(nowIs("clock_timestamp()"))))
        assert.strictEqual(codeOf(report), 0, JSON.stringify(report.companies[0]!.outcomes[0]!.failure))
        assert.strictEqual(firstPages, 2)
        yield* assertEqual()
      })
    )

    it.effect("of a newer catalogue generation is refused, unless a full scan is requested", () =>
      Effect.gen(function* () {
        const { run, checked } = yield* synced({ generation: 2 })
        const report = yield* run({ generation: 1 })
        assert.strictEqual(codeOf(report), 2)
        const { failure } = report.companies[0]!.outcomes[0]!
        assert.match(
          `${failure!.message}; ${failure!.remedy}`,
          /generation 2.*upgrade this program.*sync things --full/
        )
        assert.strictEqual((yield* checked({ generation: 2 })).kind, "incremental")
        assert.strictEqual((yield* checked({ generation: 1, full: true })).kind, "full")
        assert.strictEqual((yield* checked({ generation: 1 })).kind, "incremental")
        assert.strictEqual((yield* checked({ generation: 2 })).kind, "full")
      })
    )

    it.effect("of another source is refused in every lane before anything is written", () =>
      Effect.gen(function* () {
        const here = { address: "https://one/api", settings: {} }
        const there = { address: "https://two/api", settings: {} }
        const { companyId, run, put, connectorOf, checked, assertEqual } = yield* synced({ description: here })
        yield* assertEqual()
        const before = yield* execute(`select * from tributary.checkpoints where company_id = ${companyId}`)
        put(3, "of the other source")
        const report = yield* run({ description: there })
        assert.strictEqual(codeOf(report), 2)
        const { failure } = report.companies[0]!.outcomes[0]!
        assert.match(failure!.message, /https:\/\/one\/api.*https:\/\/two\/api/)
        assert.match(failure!.remedy, /--accept-new-source/)
        const single = yield* fetchRecords({
          companyId,
          connector: {
            ...connectorOf({ description: there }),
            get: () => Effect.die("never lands")
          },
          table: tableOf(things),
          ids: [],
          authority: "source"
        })
        assert.strictEqual(single.failure!.kind, "SourceChanged")
        assert.deepStrictEqual(
          [...(yield* execute(`select * from tributary.checkpoints where company_id = ${companyId}`))],
          [...before]
        )
        assert.strictEqual((yield* checked({ description: here })).kind, "incremental")
      })
    )
  })
})
