import { compare } from "../../../src/verify/Compare.ts"
import { assert } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Fiber, Latch } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { id, integer, lastchangedate, ref, string } from "../../../connectors/service-v2/catalogue/fields.ts"
import { exact } from "../../../connectors/service-v2/catalogue/resource.ts"
import { Forbidden, Unreachable } from "../../../src/connector/SourceError.ts"
import type { ConnectorShape, Identity, FetchedRecord } from "../../../src/connector/Connector.ts"
import { scan } from "../../../src/extract/Scan.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import { fetchRecords } from "../../../src/sync/FetchRecords.ts"
import { sync, type SyncOptions } from "../../../src/sync/Sync.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { execute } from "../../support/postgres.ts"
import { failing, pages, plain, record, scripted, shopOf, shopResource, things } from "../../support/tiny.ts"
import { flowing, settled } from "../../support/until.ts"
import {
  at,
  checkpoint,
  company,
  disturbed,
  history,
  list,
  live,
  page,
  plains,
  run,
  tables,
  thing,
  upTo,
  valuesOf,
  warehouseWith,
  newSource,
  synced
} from "./syncing.ts"
import { suite } from "../../support/suite.ts"

const bills = shopResource("bills", "L R", [id(), string("name", 50), lastchangedate()], { modifiedSince: true })
const parts = shopResource("parts", "L", [id(), ref("billid", "bills"), integer("rank")], {
  filters: exact("billid"),
  parent: { resource: "bills", field: "billid" }
})
// It checks the requirements of a parent.
shopOf(bills, parts)

const warehouse = warehouseWith([tables.things, tables.plain, tableOf(bills), tableOf(parts)])

const everything = { backfill: { since: null, until: null } }
const minutes = (count: number) => count * 60
const day = minutes(24 * 60)

suite("the sync engine", warehouse, (test, it) => {
  test("detects rows that become visible late, and increases the overlap", function* () {
    const { companyId, source } = yield* synced(list(minutes(20), thing(1, "a", 60)))
    source.script = list(minutes(21), thing(2, "four minutes late", minutes(16)))
    const outcome = yield* run(source, companyId)
    assert.strictEqual(source.requests.at(-1)!.since, at(minutes(15)))
    assert.deepStrictEqual([outcome.totals.late, outcome.totals.lateMs], [1, 4 * 60_000])
    assert.match(outcome.notes.join(), /1 row became visible up to 240 s/)
    assert.strictEqual((yield* checkpoint(companyId)).learned_overlap_ms, BigInt(8 * 60_000))
    yield* run(source, companyId)
    assert.strictEqual(source.requests.at(-1)!.since, at(minutes(13)))
    assert.deepStrictEqual(yield* valuesOf(companyId), ["a", "four minutes late"])
    // A full scan finds rows beyond the overlap.
    source.script = list(
      minutes(32),
      thing(1, "a", 60),
      thing(2, "four minutes late", minutes(16)),
      thing(3, "in time", minutes(20)),
      thing(4, "too late", minutes(1))
    )
    const full = yield* run(source, companyId, { full: true })
    assert.deepStrictEqual([full.totals.inserted, full.totals.late], [2, 1])
    assert.strictEqual((yield* checkpoint(companyId)).learned_overlap_ms, BigInt(40 * 60_000))
  })

  test("halves the learned overlap each week, and resets it on request", function* () {
    const { companyId, source } = yield* synced(list(day, thing(1, "a", 60)))
    source.script = list(day, thing(2, "hours late", 0))
    yield* run(source, companyId)
    yield* run(source, companyId)
    const begins = () => source.requests.at(-1)!.since
    assert.strictEqual(begins(), at(0), "a day at most")
    yield* execute(
      "update tributary.checkpoints set overlap_learned_at = tributary.now() - interval '14 days' where company_id = $1",
      [companyId]
    )
    const sixHours = at(day - minutes(6 * 60))
    yield* run(source, companyId)
    assert.strictEqual(begins(), sixHours, "after two weeks")
    for (const [what, late, expected] of [
      ["a slightly late row neither renews the learned overlap nor raises the rest of it", 1, sixHours],
      ["a row that is later than the rest of the overlap renews it", 10 * 60, at(day - minutes(20 * 60))]
    ] as const) {
      source.script = list(day, thing(2 + late, "x", day - minutes(late)))
      yield* run(source, companyId)
      yield* run(source, companyId)
      assert.strictEqual(begins(), expected, what)
    }
    yield* run(source, companyId, { resetOverlap: true })
    assert.strictEqual(begins(), at(day - minutes(5)), "as configured")
    assert.strictEqual((yield* checkpoint(companyId)).learned_overlap_ms, 0n)
  })

  test("ends a scan whose pages are empty and always have a next page", function* () {
    const companyId = company()
    let requestCount = 0
    const source = scripted(companyId, () => {
      // An endless scan fails here, so that the test ends.
      if ((requestCount += 1) > 1_000) throw failing(new Unreachable({ detail: "too many requests" }))
      return { ...page(null), next: `cursor-${requestCount}` }
    })
    const outcome = yield* flowing(run(source, companyId))
    assert.strictEqual(outcome.status, "failed")
    assert.match(outcome.failure!.message, /200 pages in a row had no new record/)
    assert.isAtMost(requestCount, 406, "the scan restarts once")
    source.script = list(minutes(20), thing(1, "a", 60))
    const next = yield* run(source, companyId, { acceptDeletions: true })
    assert.deepStrictEqual([next.status, next.kind, next.resumed], ["done", "full", false])
  })

  test("ends a scan whose pages repeat two pages and always have a next page", function* () {
    const records = [thing(1, "a", 60), thing(2, "b", 60)]
    const source = scripted(company(), () => ({
      ...page(null, records[source.requests.length % 2]!),
      next: source.requests.length > 1_000 ? null : `cursor-${source.requests.length}`
    }))
    const from = { since: null, until: null, resume: null, cursor: null, overlapMs: 0, reason: null }
    const read = scan(
      source.connector,
      things,
      { kind: "full", ...from },
      Number,
      Effect.succeed(null),
      () => Effect.void
    )
    assert.match((yield* Effect.flip(read)).message, /200 pages in a row had no new record/)
  })

  test("reports once a field that is missing from every record, and keeps its values", function* () {
    const all = upTo(25).map((id) => thing(id, `name ${id}`, 60))
    const without = upTo(25).map((id) => record(things, { id: String(id), name: undefined, lastchangedate: at(60) }))
    const { companyId, source } = yield* synced(list(minutes(20), ...all))
    const findings = execute("select field, kind, rows, runs from tributary.field_findings where company_id = $1", [
      companyId
    ])
    source.script = list(minutes(21), ...without)
    const outcome = yield* run(source, companyId, { full: true })
    assert.match(outcome.notes.join(), /things\.name: no record of the last full scan carried it, and 25 rows keep/)
    const finding = { field: "name", kind: "absent", rows: 25n }
    assert.deepStrictEqual(yield* findings, [{ ...finding, runs: 1 }])
    assert.notMatch((yield* run(source, companyId, { full: true })).notes.join(), /things\.name/)
    assert.deepStrictEqual(yield* findings, [{ ...finding, runs: 2 }])
    assert.strictEqual((yield* valuesOf(companyId))[0], "name 1")
    // A field that only some records of a response omit is not reported.
    source.script = list(minutes(22), all[0]!, ...without.slice(1))
    yield* run(source, companyId, { full: true })
    assert.deepStrictEqual(yield* findings, [])
  })

  test("reports a field that changes with every read, and makes no versions once it is ignored", function* () {
    const companyId = company()
    let read = 0
    const source = scripted(companyId, () => {
      read += 1
      const all = upTo(30).map((id) => ({
        ...plains(id === 4 && read === 7 ? "changed" : `name ${id}`, id)[0]!,
        extra: `{"age_days":${read},"fixed":1}`
      }))
      return { ...page(null, ...all), next: null }
    })
    const once = (table = tables.plain) => run(source, companyId, { table })
    const versions = Effect.map(history(companyId, "plains"), ({ length }) => length)
    const note =
      /plains\.age_days: changed in 30 records .* 3 times in a row.*resources\.plains\.ignore_fields: \[age_days\]/
    for (const isReported of [false, false, false, true, false])
      assert.strictEqual(note.test((yield* once()).notes.join()), isReported)
    const findings = execute(
      "select field, runs from tributary.field_findings where company_id = $1 and kind = 'volatile'",
      [companyId]
    )
    assert.deepStrictEqual(yield* findings, [{ field: "age_days", runs: 4 }])
    assert.strictEqual(yield* versions, 150)

    const ignoring = tableOf({ ...plain, ignoredFields: ["age_days"] })
    yield* once(ignoring)
    assert.strictEqual(yield* versions, 150, "no version for the ignored field alone")
    assert.deepStrictEqual(yield* findings, [])
    yield* once(ignoring)
    assert.strictEqual(yield* versions, 151, "one version for the record with another change")
    const [, , , changed, other] = yield* live(companyId, "plains")
    assert.deepStrictEqual(
      [changed!["_extra"], other!["_extra"]],
      [
        { age_days: 7, fixed: 1 },
        { age_days: 5, fixed: 1 }
      ]
    )
    const sentTexts = upTo(30).map((id) =>
      JSON.stringify({ id, name: id === 4 ? "changed" : `name ${id}`, age_days: 99, fixed: 1 })
    )
    assert.deepStrictEqual((yield* compare(ignoring, companyId, sentTexts)).differences, [])
    assert.strictEqual((yield* compare(tables.plain, companyId, sentTexts)).differences.length, 30)
  })

  test("counts no row as late that was here with its stamp", function* () {
    const bad = { id: "4", field: "price", reason: "is no number", bytes: `{"id":4,"price":"x"}` }
    const first = page(minutes(30), thing(1, "a", 1), thing(2, "b", 2), thing(3, "c", 3))
    const { companyId, source } = yield* synced(pages({ ...first, rejected: [bad] }))
    // Version 2 of row 2, so that its history has a version.
    source.script = pages({ ...page(minutes(32), thing(2, "b", minutes(31))), rejected: [bad] })
    yield* run(source, companyId)
    yield* execute("delete from erp.things where _company_id = $1 and id in (2, 3)", [companyId])
    // Row 1 with another value and the same stamp; 2 and 3 again; 4, which was in quarantine.
    const rows = [thing(2, "b", minutes(31)), thing(3, "c", 3), thing(4, "repaired", 4)]
    source.script = list(minutes(50), thing(1, "A", 1), ...rows)
    const { totals } = yield* run(source, companyId, { full: true })
    assert.deepStrictEqual([totals.inserted, totals.updated, totals.late], [3, 1, 0])
    assert.strictEqual((yield* checkpoint(companyId)).learned_overlap_ms, 0n)
    // Among rows that were here, one that is late counts with its own stamp.
    const others = [thing(5, "too late", minutes(10)), thing(6, "later", minutes(12))]
    source.script = list(minutes(51), thing(1, "AA", 1), ...rows, ...others)
    const late = yield* run(source, companyId, { full: true })
    assert.deepStrictEqual([late.totals.late, late.totals.lateMs], [2, 40 * 60_000])
  })

  test("reads every record when synced_through of the source goes back", function* () {
    const { companyId, source } = yield* synced(list(minutes(40), thing(1, "a", 1)))
    const all = [thing(1, "a", 1), thing(2, "stamped before", minutes(15))]
    source.script = ({ since }) => ({ ...page(minutes(20), ...(since === null ? all : [])), next: null })
    const outcome = yield* run(source, companyId)
    assert.deepStrictEqual([outcome.status, outcome.kind], ["done", "full"])
    assert.match(outcome.notes.join(), /read in full: the source reports synced_through/)
    assert.deepStrictEqual(yield* valuesOf(companyId), ["a", "stamped before"])
    assert.deepInclude(yield* checkpoint(companyId), { cursor: at(minutes(20)), full_scan_reason: null })
    assert.strictEqual((yield* run(source, companyId)).kind, "incremental")
  })

  test("keeps newer versions after a restore of the source until a person accepts the restore", function* () {
    const { companyId, source } = yield* synced(list(30, thing(1, "new", 25), thing(2, "b", 1)))
    source.script = list(31, thing(1, "restored", 5), thing(2, "b", 1))
    const full = run(source, companyId, { full: true })
    const { status, totals } = yield* full
    assert.deepStrictEqual([status, totals.staleVersions], ["quarantined", 1])
    assert.deepStrictEqual(yield* valuesOf(companyId), ["new", "b"])
    assert.strictEqual((yield* run(source, companyId)).status, "quarantined")
    // Also where the row has a read time of the future.
    const readAt = (interval: string) =>
      execute(`update erp.things set _observed_at = tributary.now() + interval '${interval}' where _company_id = $1`, [
        companyId
      ])
    yield* readAt("1 hour")
    assert.strictEqual((yield* full).totals.staleVersions, 1)
    yield* readAt("-1 hour")
    const accepted = yield* run(source, companyId, { acceptRestored: true })
    assert.deepStrictEqual([accepted.status, accepted.totals.updated], ["done", 1])
    assert.deepStrictEqual(yield* valuesOf(companyId), ["restored", "b"])
    assert.strictEqual((yield* run(source, companyId)).kind, "incremental")
  })

  it.effect.each([
    { syncedThrough: null, title: "is missing" },
    { syncedThrough: "2031-01-01T00:00:00Z", title: "lies in the future of its answer" }
  ])("uses the time of the response less the overlap when synced_through $title", ({ syncedThrough }) =>
    Effect.gen(function* () {
      const { companyId, source } = newSource(pages({ records: [thing(1, "a", 60)], syncedThrough }))
      const { page: readPage } = source.connector
      const connector: ConnectorShape = {
        ...source.connector,
        page: (request) => Effect.map(readPage(request), (one) => ({ ...one, answeredAt: "2026-01-01T00:50:00Z" }))
      }
      yield* run({ connector }, companyId)
      assert.strictEqual((yield* checkpoint(companyId)).cursor, "2026-01-01T00:45:00Z")
      assert.strictEqual((yield* run({ connector }, companyId)).kind, "incremental")
      assert.strictEqual(source.requests.at(-1)!.since, "2026-01-01T00:40:00Z")
    })
  )

  test("repeats full scans while records have no time of change, also after a full backfill", function* () {
    for (const mode of [{}, everything]) {
      const { companyId, source } = newSource(list(10, thing(1, "a", 1), thing(2, "unstamped", null)))
      yield* run(source, companyId, mode)
      source.script = list(11, thing(1, "a", 1), thing(2, "changed without a stamp", null))
      const outcome = yield* run(source, companyId)
      assert.deepStrictEqual([outcome.kind, outcome.totals.updated], ["full", 1])
      source.script = list(12, thing(1, "a", 1), thing(2, "stamped", 12))
      yield* run(source, companyId, mode)
      assert.strictEqual((yield* run(source, companyId)).kind, mode === everything ? "full" : "incremental")
    }
  })

  test("keeps a row newer than the position of a full scan, and scans in full again", function* () {
    const { companyId, source } = yield* synced(list(minutes(10), thing(1, "one", 60), thing(4, "four", 60)))
    source.script = list(minutes(20), thing(2, "two", minutes(15)), thing(3, "visible late", minutes(8)))
    yield* run(source, companyId)
    // A replica that lags behind responds, with an earlier synced_through. It lacks the row of minute 15, and one that
    // became visible within the overlap of 5 minutes after its stamp. The missing row of minute 1 is deleted.
    source.script = list(minutes(10), thing(1, "one", 60))
    assert.strictEqual((yield* run(source, companyId, { full: true })).totals.deleted, 1)
    assert.deepStrictEqual(yield* valuesOf(companyId), ["one", "two", "visible late"])
    assert.match((yield* checkpoint(companyId)).full_scan_reason!, /2 rows are newer than the last full scan/)
    // A replica that is up to date confirms the deletion.
    source.script = list(minutes(21), thing(1, "one", 60))
    const confirmed = yield* run(source, companyId)
    assert.deepStrictEqual([confirmed.kind, confirmed.totals.deleted], ["full", 2])
    assert.deepStrictEqual(yield* valuesOf(companyId), ["one"])
    assert.isNull((yield* checkpoint(companyId)).full_scan_reason)
  })

  it.effect.each([
    { what: "with a stamp after its position", table: tables.things },
    { what: "without a stamp", table: tables.plain }
  ])("keeps a row $what that another full scan landed meanwhile", ({ table }) =>
    Effect.gen(function* () {
      const companyId = company()
      const isStamped = table === tables.things
      const scanned = (minute: number, ...ids: ReadonlyArray<number>) =>
        isStamped
          ? list(minutes(minute), ...ids.map((id) => thing(id, `n${id}`, minutes(id === 4 ? 21 : 1))))
          : list(null, ...ids.flatMap((id) => plains(`n${id}`, id)))
      const source = scripted(companyId, scanned(10, 1, 2, 3))
      yield* run(source, companyId, { table })
      const read = yield* Deferred.make<void>()
      const answered = yield* Deferred.make<void>()
      // The backfill begins first. Its last request is answered last, after record 4 was created.
      const held = Effect.andThen(Deferred.succeed(read, undefined), Deferred.await(answered))
      const slow = yield* disturbed(scripted(companyId, scanned(18, 1, 2, 4)), null, held)
      const backfill = yield* Effect.forkChild(run(slow, companyId, { table, ...everything }))
      yield* Deferred.await(read)
      yield* TestClock.adjust("1 second")
      const after = Effect.andThen(Deferred.succeed(answered, undefined), Fiber.await(backfill))
      const late = yield* disturbed(scripted(companyId, scanned(20, 1, 2)), null, after)
      assert.strictEqual((yield* run(late, companyId, { table, full: true })).status, "done")
      assert.deepStrictEqual(yield* valuesOf(companyId, table.resource.path), ["n1", "n2", "n4"])
      source.script = scanned(30, 1, 2)
      const outcome = yield* run(source, companyId, { table })
      assert.deepStrictEqual([outcome.kind, outcome.totals.deleted], ["full", 1])
    })
  )

  test("reads the children of parents that changed between two full scans", function* () {
    const companyId = company()
    const bill = (number: number, name: string, minute: number) =>
      record(bills, { id: String(number), name, lastchangedate: at(60 * minute) })
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
      ...(path === "bills" ? page(9 * 60, ...changed) : partsOf(where?.[0]?.value))
    }))
    const engine = { ...engineDefault, cursorlessScanInterval: Duration.hours(1) }
    const options: SyncOptions = {
      companies: [{ name: `one-${companyId}`, connector: source.connector, resources: [parts, bills], engine }],
      datasets: datasetsDefault,
      concurrency: 2,
      batchRecordsMax: 100
    }
    /** The kinds of the runs, the number of their requests and of written rows. */
    const kinds = Effect.map(sync(options), ({ companies: [one] }) =>
      one!.outcomes.map(({ kind, totals }) => `${kind} ${totals.requests} ${totals.updated + totals.inserted}`)
    )
    // The children were never read, so they are read in full, after their parents.
    assert.deepStrictEqual(yield* kinds, ["full 1 3", "full 1 2"])
    all = [part(1, 1, 7), part(2, 2, 8), part(3, 2, 1), part(4, 2, 1)]
    changed = [bill(2, "changed", 8)]
    assert.deepStrictEqual(yield* kinds, ["children 1 2", "incremental 1 1"])
    assert.deepStrictEqual(source.requests.at(-1), { resource: "parts", since: null, token: null })
    assert.deepStrictEqual<unknown>(yield* valuesOf(companyId, "parts", "rank"), [1n, 8n, 1n, 1n])
    assert.deepStrictEqual(yield* kinds, ["children 0 0", "incremental 1 0"])
    // The first child of a parent. At first the source returns no child.
    all = [...all, part(5, 3, 5)]
    changed = [bill(3, "c", 8)]
    isEmptyOnce = true
    assert.deepStrictEqual(yield* kinds, ["children 2 1", "incremental 1 1"])
    // A full scan finds a changed child whose parent did not change.
    yield* sync({ ...options, mode: { full: true } })
    assert.deepStrictEqual<unknown>(yield* valuesOf(companyId, "parts", "rank"), [7n, 8n, 1n, 1n, 5n])
  })

  test("fetches single records, soft-deletes missing ones, and accepts older versions for a repair", function* () {
    const { companyId, source } = yield* synced(
      list(9, thing(1, "a", 5), thing(2, "b", 5), thing(3, "c", 5), thing(4, "d", 5))
    )
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
    assert.deepStrictEqual(yield* valuesOf(companyId), ["a", "newer", "d"])
    assert.strictEqual((yield* read("source")).totals.updated, 1)
    assert.deepStrictEqual(yield* valuesOf(companyId), ["older at the source", "newer", "d"])
    // A deleted record that is found again exists.
    now["2"] = thing(2, "back", 1)
    yield* read("newer")
    assert.deepStrictEqual(yield* valuesOf(companyId), ["older at the source", "back", "newer", "d"])
  })

  test("locks a resource only while fetched records land, and waits for the lock then", function* () {
    const companyId = company()
    const requestLatch = yield* Latch.make()
    const mayAnswer = yield* Latch.make()
    const connector: ConnectorShape = {
      ...scripted(companyId, list(60)).connector,
      get: (_resource, number) =>
        Effect.gen(function* () {
          if (number === "150") {
            yield* requestLatch.open
            yield* mayAnswer.await
          }
          const beganAt = Number(yield* Clock.monotonicTimeNanos) / 1e6
          const one = thing(Number(number), `n${number}`, 60)
          return { record: one, rejected: null, version: null, beganAt, source: `GET /things/${number}` }
        })
    }
    const ids = upTo(250).map(String)
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
    const others = execute(
      `select 1 from pg_stat_activity where datname = current_database() and query like '%pg_try_advisory_lock%'
              and pid not in ($1, pg_backend_pid())`,
      [lockRow!.pid]
    )
    yield* settled("the other session", Effect.orDie(others), ({ length }) => length > 0)
    yield* query(other, "unlock", "select pg_advisory_unlock(hashtextextended($1, 0))", lock)
    const outcome = yield* flowing(Fiber.join(reading))
    assert.deepStrictEqual([outcome.status, outcome.totals.records, outcome.totals.inserted], ["done", 250, 250])
    assert.lengthOf(yield* live(companyId), 250)
    assert.deepStrictEqual(
      yield* execute("select status, records from tributary.runs where company_id = $1 order by id", [companyId]),
      [100n, 100n, 50n].map((records) => ({ status: "done", records }))
    )
  })

  test("skips resources that the token may not read, unless the command names them", function* () {
    const { companyId, source } = newSource(() => {
      throw failing(new Forbidden({ kind: "scope", code: "insufficient_scope", scope: "shop:read", detail: "no" }))
    })
    const identify = (identity: Partial<Identity>) =>
      Effect.succeed({ companyId, sourceNumber: companyId, user: null, scopes: null, features: null, ...identity })
    const outcomes = (identity: Partial<Identity>, named: boolean) =>
      sync({
        companies: [
          {
            name: `one-${companyId}`,
            connector: { ...source.connector, identify: identify(identity) },
            resources: [things],
            named
          }
        ],
        datasets: datasetsDefault,
        concurrency: 1,
        batchRecordsMax: 100
      }).pipe(Effect.map(({ companies: [one] }) => one!.outcomes.map(({ status, failure }) => [status, failure?.kind])))
    assert.deepStrictEqual(yield* outcomes({ scopes: ["other:read"] }, false), [["skipped", "NotInScope"]])
    assert.lengthOf(source.requests, 0)
    assert.deepStrictEqual(yield* outcomes({}, false), [["skipped", "Forbidden"]])
    assert.deepStrictEqual(yield* outcomes({ scopes: ["other:read"] }, true), [["failed", "Forbidden"]])
  })
})
