/**
 * The identity of a checkpoint: a cursor is valid only for the table that it filled, its source, and the settings that
 * shaped the rows.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { ConnectorShape, SourceDescription } from "../../../src/connector/Connector.ts"
import { type Datasets, datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import { fetchRecords } from "../../../src/sync/FetchRecords.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { codeOf } from "../../../src/cli/Exit.ts"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { clockIs, execute, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { changing, failing, type Script, things, tiny } from "../../support/tiny.ts"
import { disturbed, quarantined, serverFault } from "../sync/syncing.ts"
import { suite } from "../../support/suite.ts"
import { until } from "../../support/until.ts"
import { assertCount } from "../../support/assertions.ts"

let companies = 0n

interface Options {
  readonly datasets?: Datasets
  readonly full?: boolean
  readonly description?: SourceDescription
  readonly generation?: number
  readonly batchRecordsMax?: number
  readonly connector?: ConnectorShape
}

/** A company with ten records that has been synced once. */
const synced = Effect.fnUntraced(function* (first: Options = {}) {
  const companyId = (companies += 1n)
  const { rows, rejected, put, source } = changing(companyId)
  for (let id = 1; id <= 10; id += 1) put(id, `thing ${id}`)
  const connectorOf = (options: Options) => ({
    ...(options.connector ?? source.connector),
    catalogue: options.generation === undefined ? tiny : { ...tiny, generation: options.generation },
    ...(options.description === undefined ? {} : { source: options.description })
  })
  const run = (options: Options = {}) =>
    sync({
      companies: [{ name: `one-${companyId}`, connector: connectorOf(options), resources: [things] }],
      datasets: options.datasets ?? datasetsDefault,
      concurrency: 1,
      batchRecordsMax: options.batchRecordsMax ?? 100,
      mode: { full: options.full ?? false, acceptsOlderCatalogue: options.full ?? false }
    })
  /** Runs, and asserts that the warehouse has exactly the source's rows. */
  const checked = Effect.fnUntraced(function* (options: Options = {}) {
    const report = yield* run(options)
    const [outcome] = report.companies[0]!.outcomes
    assert.strictEqual(codeOf(report), 0, JSON.stringify(outcome!.failure ?? outcome!.notes))
    const rowsRead = yield* execute<{ id: string; name: string }>(
      `select id::text, name from ${options.datasets?.current ?? "erp"}.things t
        where _company_id = ${companyId} and _deleted_at is null order by t.id`
    )
    const expected = [...rows].sort(([a], [b]) => a - b).map(([id, { name }]) => ({ id: String(id), name }))
    assert.deepStrictEqual([...rowsRead], expected)
    return outcome!
  })
  /** The versions of record 3 in its history. */
  const versions = Effect.map(
    execute<{ name: string }>(
      `select record ->> 'name' as name from erp_history.things where _company_id = ${companyId} and id = 3 order by _version`
    ),
    (versionRows) => versionRows.map(({ name }) => name)
  )
  /** The next run reads every record, for this reason; and the one after it only changes. */
  const readsOnceInFull = Effect.fnUntraced(function* (reason: RegExp, options: Options = {}) {
    const outcome = yield* checked(options)
    assert.strictEqual(outcome.kind, "full")
    assert.match(outcome.notes.join(), reason)
    put(3, "third")
    assert.strictEqual((yield* checked(options)).kind, "incremental")
  })
  yield* checked(first)
  return { companyId, rows, rejected, put, source, run, checked, connectorOf, versions, readsOnceInFull }
})

/** Replaces the clock of the warehouse by this expression. Quotes must be doubled. */
const nowIs = (expression: string) => execute(clockIs(expression))
const clockIsRight = Effect.ensuring(Effect.orDie(nowIs("clock_timestamp()")))

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

/** The state after a full scan of `things` that was interrupted after a page of five. */
const beginScan = (companyId: bigint) =>
  execute(
    `insert into tributary.scans (company_id, resource, lane, run_id, kind, token, pages, synced_through, started_at, refetch_generation)
     values (${companyId}, 'things', 'live', 1, 'full', '5', 1, '2026-01-01T03:03:20.000Z', tributary.now(), 0)`
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

/** The list, with a page of five records before the others. */
const inTwoPages =
  (listed: Script): Script =>
  (request) => {
    const all = listed({ ...request, token: null })
    return request.token === null
      ? { ...all, records: all.records.slice(0, 5), next: "5" }
      : { ...all, records: all.records.slice(5) }
  }

suite("a checkpoint", warehouse, (test, it) => {
  test("is discarded after its table was dropped, and row versions continue from the history", function* () {
    const { put, checked, readsOnceInFull, versions } = yield* synced()
    put(3, "second")
    yield* checked()
    yield* execute("drop table erp.things cascade")
    yield* readsOnceInFull(/another table/)
    assert.deepStrictEqual(yield* versions, ["thing 3", "second", "third"])
  })

  test("is discarded after its table was truncated, or a setting changed", function* () {
    const description = (custom: string) => ({ address: "https://one/api", settings: { custom_fields: custom } })
    const { readsOnceInFull } = yield* synced({ description: description("false") })
    const changed = { description: description("true") }
    yield* readsOnceInFull(/custom_fields changed from false to true/, changed)
    yield* execute("truncate erp.things")
    yield* readsOnceInFull(/truncated/, changed)
  })

  test("is valid for one dataset only, and a switch of datasets reads every record", function* () {
    const { checked, readsOnceInFull } = yield* synced()
    const datasets = { current: "erp_prod", history: "erp_prod_history", asOf: "erp_prod_asof" }
    yield* readsOnceInFull(/./, { datasets })
    assert.strictEqual((yield* checked()).kind, "full")
  })

  test("restored from an older copy is discarded, and every record is read", function* () {
    const { put, checked, readsOnceInFull } = yield* synced()
    yield* copyOf("tributary.checkpoints", "public.older")
    put(3, "second")
    yield* checked()
    yield* restore("tributary.checkpoints", "public.older")
    yield* readsOnceInFull(/restored or copied/)
  })

  test("fills a dropped column in every row when the first full scan was interrupted", function* () {
    const { companyId, source, run, checked } = yield* synced()
    // The state after a first scan that was interrupted after a page of five.
    yield* execute(`delete from erp.things where _company_id = ${companyId} and id > 5`)
    yield* execute(
      `update tributary.checkpoints set cursor = null, cursor_read_at = null, full_scan_at = null where company_id = ${companyId}`
    )
    yield* beginScan(companyId)
    const listed = source.script
    source.script = (request) => {
      const all = listed({ ...request, token: null })
      return { ...all, records: all.records.slice(Number(request.token ?? 0)) }
    }
    yield* execute("alter table erp.things drop column name cascade")
    yield* run()
    yield* checked()
  })

  test("of a process that waited for another one has the scan as that one left it", function* () {
    const { companyId, checked } = yield* synced()
    yield* beginScan(companyId)
    const other = yield* (yield* Database).connect
    yield* query(other, "begin", "begin")
    yield* query(other, "lock", `select from tributary.checkpoints where company_id = ${companyId} for update`)
    yield* query(other, "complete the scan", `delete from tributary.scans where company_id = ${companyId}`)
    const waiting = yield* Effect.forkChild(checked())
    yield* until(
      "the process waits",
      execute<{ n: number }>(
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
      ),
      ([row]) => row!.n > 0
    )
    yield* query(other, "commit", "commit")
    assert.isFalse((yield* Fiber.join(waiting)).resumed)
  })

  test("continues from the version in the history for a row that lost its version column", function* () {
    const { put, checked, versions } = yield* synced()
    put(3, "second")
    yield* checked()
    yield* execute("alter table erp.things drop column _version cascade")
    yield* checked()
    put(3, "third")
    yield* checked()
    assert.deepStrictEqual(yield* versions, ["thing 3", "second", "third"])
  })

  test("of a table with rows from an older copy leads to equal rows after a full scan", function* () {
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

  test("reports a clock that was set back, and later reads replace rows with future times", function* () {
    const { companyId, rows, put, run, checked } = yield* synced()
    const later = yield* synced()
    yield* Effect.gen(function* () {
      yield* nowIs("clock_timestamp() - interval ''1 hour''")
      // A different value under the same timestamp, so that the time of the reads decides.
      rows.set(3, { ...rows.get(3)!, name: "after the clock was set back" })
      rows.delete(4)
      put(5, "changed")
      assert.strictEqual(codeOf(yield* run({ generation: 0 })), 2, "a run that writes nothing does not hide the change")
      assert.match((yield* checked()).notes.join(), /clock is 3[56]\d\d s behind its last landing/)
      assert.strictEqual((yield* checked()).kind, "incremental")
      const [row] = yield* execute<{ future: number }>(
        `select count(*)::int as future from tributary.checkpoints where company_id = ${companyId} and updated_at > tributary.now()`
      )
      assert.strictEqual(row!.future, 0)
    }).pipe(clockIsRight)
    // The clock is correct again: rows read meanwhile are older than any read from now on.
    rows.set(3, { ...rows.get(3)!, name: "after it was set right" })
    yield* checked({ full: true })
    yield* later.checked()
  })

  test("resolves quarantined records that a full scan misses after the clock was set back", function* () {
    const { companyId, rows, rejected, run, checked } = yield* synced()
    const open = Effect.map(quarantined(companyId), (all) => all.map(({ id }) => id))
    rejected.push({ id: "11", field: "name", reason: "does not fit", bytes: '{"id":11}' })
    rejected.push({ id: null, field: "id", reason: "has no number", bytes: "{}" })
    yield* nowIs("clock_timestamp() + interval ''1 hour''")
    yield* run({ full: true }).pipe(clockIsRight)
    assert.deepStrictEqual(yield* open, ["11", null])
    rejected.length = 0
    rows.delete(4)
    assert.strictEqual((yield* checked({ full: true })).totals.deleted, 1)
    assert.deepStrictEqual(yield* open, [])
  })

  test("deletes a missing row that another lane read before the clock was set back", function* () {
    const { companyId, rows, put, run, checked } = yield* synced()
    put(4, "read by number")
    yield* nowIs("clock_timestamp() + interval ''1 hour''")
    yield* run({ full: true }).pipe(clockIsRight)
    yield* execute(
      `update tributary.runs set lane = 'records' where company_id = ${companyId} and finished_at > tributary.now()`
    )
    rows.delete(4)
    assert.strictEqual((yield* checked({ full: true })).totals.deleted, 1)
  })

  test("resolves no quarantine of its own run when the clock goes back by under a minute", function* () {
    const { companyId, rows, rejected, run } = yield* synced()
    rejected.push({ id: null, field: "id", reason: "has no number", bytes: "{}" })
    rows.delete(4)
    const [{ now }] = (yield* execute<{ now: string }>("select now()::text as now")) as [{ now: string }]
    // Each call of the clock returns an earlier time than the previous one.
    yield* nowIs(`timestamptz ''${now}'' - (clock_timestamp() - timestamptz ''${now}'')`)
    const report = yield* run({ full: true }).pipe(clockIsRight)
    const [outcome] = report.companies[0]!.outcomes
    assert.deepStrictEqual([outcome!.status, outcome!.totals.deleted], ["quarantined", 0])
    assert.lengthOf(yield* quarantined(companyId), 1)
  })

  test("deletes refetch requests from before the clock was set back after a full scan", function* () {
    const { companyId, checked } = yield* synced()
    yield* requestRefetch(companyId, "tributary.now() + interval '1 hour'")
    yield* checked({ full: true })
    assert.strictEqual(yield* countRefetchRequests(companyId), 0)
  })

  test("keeps a refetch request that was made while the clock was set back and a full scan was interrupted", function* () {
    const { companyId, source, run, checked } = yield* synced()
    const listed = source.script
    let isInterrupted = true
    source.script = (request) => {
      if (request.token !== null && isInterrupted) throw failing(serverFault)
      return inTwoPages(listed)(request)
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

  it.effect.each([
    { what: "its table is truncated", change: "truncate erp.things" },
    { what: "the clock is set back", change: clockIs("clock_timestamp() - interval ''1 hour''") },
    { what: "the clock is set forward", change: clockIs("clock_timestamp() + interval ''1 hour''") }
  ])("restarts a run during which $what", ({ change }) =>
    Effect.gen(function* () {
      const { rows, source, checked } = yield* synced()
      rows.set(3, { ...rows.get(3)!, name: "changed" })
      source.script = inTwoPages(source.script)
      source.requests.length = 0
      const { connector } = yield* disturbed(source, "5", execute(change))
      yield* checked({ connector, full: true, batchRecordsMax: 1 }).pipe(clockIsRight)
      assertCount(source.requests, ({ token }) => token === null, 2)
    })
  )

  test("of a newer catalogue generation is refused, unless a full scan is requested", function* () {
    const { run, checked } = yield* synced({ generation: 2 })
    const report = yield* run({ generation: 1 })
    assert.strictEqual(codeOf(report), 2)
    const { failure } = report.companies[0]!.outcomes[0]!
    assert.match(`${failure!.message}; ${failure!.remedy}`, /generation 2.*upgrade this program.*sync things --full/)
    for (const [options, kind] of [
      [{ generation: 2 }, "incremental"],
      [{ generation: 1, full: true }, "full"],
      [{ generation: 1 }, "incremental"],
      [{ generation: 2 }, "full"]
    ] as const)
      assert.strictEqual((yield* checked(options)).kind, kind)
  })

  test("of another source is refused in every lane before anything is written", function* () {
    const here = { address: "https://one/api", settings: {} }
    const there = { address: "https://two/api", settings: {} }
    const { companyId, run, put, connectorOf, checked } = yield* synced({ description: here })
    const before = yield* execute(`select * from tributary.checkpoints where company_id = ${companyId}`)
    put(3, "of the other source")
    const report = yield* run({ description: there })
    assert.strictEqual(codeOf(report), 2)
    assert.strictEqual(report.companies[0]!.failure!.kind, "SourceChanged")
    const single = yield* fetchRecords({
      companyId,
      connector: { ...connectorOf({ description: there }), get: () => Effect.die("never lands") },
      table: tableOf(things),
      ids: [],
      authority: "source"
    })
    assert.strictEqual(single.failure!.kind, "SourceChanged")
    assert.match(single.failure!.message, /https:\/\/one\/api.*https:\/\/two\/api/)
    assert.match(single.failure!.remedy, /--accept-new-source/)
    assert.deepStrictEqual(
      [...(yield* execute(`select * from tributary.checkpoints where company_id = ${companyId}`))],
      [...before]
    )
    assert.strictEqual((yield* checked({ description: here })).kind, "incremental")
  })

  test("that is accepted while a run reads the earlier one: the run writes nothing of it", function* () {
    const here = { address: "https://one/api", settings: {} }
    const { companyId, run, put, source } = yield* synced({ description: here })
    put(3, "of the earlier source")
    // The run has its fence already, as if the acceptance had ended runs just before.
    const accept = execute(`update tributary.companies set address = 'https://two/api' where company_id = ${companyId}`)
    const { connector } = yield* disturbed(source, null, accept)
    const report = yield* run({ description: here, connector })
    assert.strictEqual(report.companies[0]!.outcomes[0]!.failure?.kind, "FenceLost")
    const rows = yield* execute<{ name: string }>(
      `select name from erp.things where _company_id = ${companyId} and id = 3`
    )
    assert.deepStrictEqual(
      rows.map(({ name }) => name),
      ["thing 3"]
    )
  })
})
