import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { NotFound, PageDrift } from "../../../src/connector/SourceError.ts"
import * as ResourceLock from "../../../src/land/ResourceLock.ts"
import { execute } from "../../support/postgres.ts"
import { failing, pages, record, scripted, things, tiny } from "../../support/tiny.ts"
import { flowing, settled } from "../../support/until.ts"
import {
  at,
  checkpoint,
  company,
  disturbed,
  failingAt,
  history,
  list,
  live,
  page,
  plains,
  push,
  quarantined,
  run,
  serverFault,
  tables,
  thing,
  tokenRefused,
  upTo,
  valuesOf,
  warehouse,
  newSource,
  synced
} from "./syncing.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

suite("a run", warehouse, (test, it) => {
  test("lands a full scan, and then the changes since the earliest position of its pages", function* () {
    const { companyId, source } = newSource(
      pages(
        page(20, thing(1, "one", 1)),
        { records: [thing(2, "two", 2)], syncedThrough: "2026-01-01T00:00:15.000000000Z" },
        page(30, thing(3, "three", 3))
      )
    )
    const first = yield* run(source, companyId)
    assert.deepStrictEqual([first.status, first.kind, first.totals.inserted], ["done", "full", 3])
    assert.strictEqual((yield* checkpoint(companyId)).cursor, "2026-01-01T00:00:15.000000000Z", "byte for byte")
    const [, second, third] = yield* live(companyId)
    source.script = list(40, thing(2, "two", 2), thing(1, "ONE", 32))
    const outcome = yield* run(source, companyId)
    // The stored cursor less the overlap, in the cursor's own format.
    assert.strictEqual(source.requests.at(-1)!.since, "2025-12-31T23:55:15.000000000Z")
    assert.deepStrictEqual([outcome.totals.inserted, outcome.totals.updated, outcome.totals.unchanged], [0, 1, 1])
    const [changed, ...others] = yield* live(companyId)
    assert.deepInclude(changed!, { name: "ONE", _version: 2n, _op: "update" })
    assert.deepStrictEqual(others, [second, third])
    const versions = yield* history(companyId)
    assert.deepStrictEqual(
      versions.map(({ id, version, op, name, open }) => `${id}.${version} ${op} ${name}${open ? " open" : ""}`),
      ["1.1 insert one", "1.2 update ONE open", "2.1 insert two open", "3.1 insert three open"]
    )
  })

  test("keeps the newest version of a record, and the fields that a version omits", function* () {
    const companyId = company()
    const priced = (name: string | undefined, price: string | undefined, seconds: number) =>
      record(things, { id: "1", name, price, lastchangedate: at(seconds) })
    const source = scripted(companyId, list(10, priced("new", "5.0000", 9)))
    yield* run(source, companyId)
    for (const [version, unchanged, name, price] of [
      [priced("older", "6.0000", 5), 1, "new", "5.0000"],
      [priced("of the same time, read later", "6.0000", 9), 0, "of the same time, read later", "6.0000"],
      [priced("without a price", undefined, 10), 0, "without a price", "6.0000"],
      [priced(undefined, "7.0000", 11), 0, "without a price", "7.0000"]
    ] as const) {
      source.script = list(12, version)
      assert.strictEqual((yield* run(source, companyId)).totals.unchanged, unchanged)
      assert.deepInclude((yield* live(companyId))[0]!, { name, price })
    }
    // The record moved between the pages, so that both versions are read.
    source.script = pages(page(20, thing(2, "one", 13)), page(20, thing(2, "two", 14)))
    yield* run(source, companyId)
    assert.deepStrictEqual(
      (yield* history(companyId)).filter(({ id }) => id === 2).map(({ name }) => name),
      ["one", "two"]
    )
  })

  test("stores unusual values exactly", function* () {
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
      )
    ]
    yield* run(scripted(companyId, list(1, ...odd)), companyId)
    const rows = yield* execute<Record<string, string | boolean>>(
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
    const [version] = yield* execute<{ record: string }>(
      `select record::text from erp_history.things where _company_id = $1 and id = 1`,
      [companyId]
    )
    assert.include(version!.record, '"price": "0.1000"')
    assert.include(version!.record, '"later": 1.10')
    // 1.10 and 1.1 are different texts, so this is a change.
    const [one] = odd
    const next = scripted(companyId, list(2, { ...one!, extra: one!.extra!.replace("1.10", "1.1") }))
    next.now += 1_000_000
    assert.strictEqual((yield* run(next, companyId)).totals.updated, 1)
  })

  test("quarantines a record that does not fit once, and resolves it when it fits", function* () {
    const bad = { id: "7", field: "name", reason: "holds a NUL character", bytes: '{"id":7,"name":"\\u0000"}' }
    const { companyId, source } = newSource(pages({ ...page(10, thing(1, "one", 1)), rejected: [bad] }))
    const outcome = yield* run(source, companyId)
    assert.deepStrictEqual([outcome.status, outcome.totals.quarantined], ["quarantined", 1])
    yield* run(source, companyId)
    assert.deepStrictEqual(yield* quarantined(companyId), [{ id: "7", reason: bad.reason, bytes: bad.bytes, times: 2 }])
    source.script = list(30, thing(7, "repaired", 20))
    assert.strictEqual((yield* run(source, companyId)).status, "done")
    assert.deepStrictEqual(yield* quarantined(companyId), [])
  })

  test("quarantines the one row that Postgres rejects and lands the others", function* () {
    const companyId = company()
    const records = upTo(100).map((id) =>
      record(things, { id: String(id), name: "x", price: id === 58 ? "not a number" : "1.5000" })
    )
    const { status, totals } = yield* run(scripted(companyId, list(1, ...records)), companyId)
    assert.deepStrictEqual([status, totals.inserted, totals.quarantined], ["quarantined", 99, 1])
    const [row] = yield* quarantined(companyId)
    assert.strictEqual(row!.id, "58")
    assert.include(row!.reason, "22P02")
    assert.include(row!.bytes, "not a number")
  })

  it.effect("fails without quarantine when every row is rejected, or not for a value", () =>
    Effect.gen(function* () {
      const two = [thing(1, "one", 1), thing(2, "two", 2)]
      /** Lands records into a table that refuses some of them with this error. */
      const refuse = Effect.fnUntraced(function* (code: string, of: typeof two, id: string) {
        const companyId = company()
        yield* execute(
          `create or replace function refuse() returns trigger language plpgsql as $$ begin
               if new."_company_id" = ${companyId} and (${id}) then raise exception 'refused' using errcode = '${code}'; end if;
               return new; end $$`
        )
        yield* execute(
          "create or replace trigger refuse before insert or update on erp.things for each row execute function refuse()"
        )
        const { status } = yield* flowing(run(scripted(companyId, list(5, ...of)), companyId))
        const { cursor } = yield* checkpoint(companyId)
        return { status, cursor, quarantined: (yield* quarantined(companyId)).map((row) => row.id) }
      })
      for (const [code, records, id] of [
        // Both of two rows are rejected.
        ...["22001", "54000"].map((code) => [code, two, "true"] as const),
        // The error does not concern a value, whatever the number of records.
        ...["22P04", "53100", "42703", "25006", "23514"].map((code) => [code, two, "new.id = 2"] as const),
        ["57014", two.slice(0, 1), "true"] as const
      ])
        assert.deepStrictEqual(
          yield* refuse(code, records, id),
          { status: "failed", cursor: null, quarantined: [] },
          `${code} of ${records.length} where ${id}`
        )
      // One of two rows is rejected for its value, or the only row.
      for (const [records, id, expected] of [
        [two, "new.id = 2", "2"],
        [two.slice(0, 1), "true", "1"]
      ] as const)
        assert.deepInclude(yield* refuse("22001", [...records], id), {
          status: "quarantined",
          quarantined: [expected]
        })
    }).pipe(Effect.ensuring(Effect.orDie(execute("drop trigger if exists refuse on erp.things"))))
  )

  test("resumes at the failed page without reading landed pages again", function* () {
    const all = pages(...upTo(4).map((n) => page(10 + n, thing(n, `n${n}`, n))))
    const { companyId, source } = newSource(failingAt("p2", all, failing(serverFault, 8)))
    const first = yield* run(source, companyId)
    // Failed requests count too.
    const [counted] = yield* execute<{ requests: bigint; retries: bigint }>(
      "select requests, retries from tributary.runs where company_id = $1",
      [companyId]
    )
    assert.deepStrictEqual(counted, { requests: 10n, retries: 7n })
    assert.strictEqual(first.totals.requests, 10)
    assert.deepStrictEqual([first.status, first.totals.records, first.failure?.kind], ["failed", 2, "ServerFault"])
    assert.deepInclude(yield* checkpoint(companyId), { cursor: null, token: "p2" })
    source.requests.length = 0
    source.script = (request) =>
      request.since === null ? all(request) : { ...page(null, thing(1, "n1 later", 20)), next: null }
    const second = yield* run(source, companyId)
    assert.deepStrictEqual([second.status, second.resumed, second.totals.records], ["done", true, 3])
    // The rest of the scan, then the changes since its start.
    assertEach(source.requests, ({ since, token }) => token ?? since, ["p2", "p3", at(11 - 300)])
    assert.strictEqual((yield* checkpoint(companyId)).cursor, at(11))
    assert.deepStrictEqual(yield* valuesOf(companyId), ["n1 later", "n2", "n3", "n4"])
  })

  test("restarts the scan when its page token is rejected or its pages drift, and fails when they form a cycle", function* () {
    const all = pages(page(10, thing(1, "one", 1)), page(10, thing(2, "two", 1)))
    for (const error of [tokenRefused, new PageDrift({ detail: "moved" })]) {
      const companyId = company()
      const broken = failingAt("p1", all, failing(error))
      const source = scripted(companyId, (request) => (source.requests.length === 2 ? broken : all)(request))
      assert.strictEqual((yield* run(source, companyId)).status, "done")
      assertEach(source.requests, ({ token }) => token, [null, "p1", null, "p1"])
      assert.deepStrictEqual(yield* valuesOf(companyId), ["one", "two"])
      source.script = broken
      assert.strictEqual((yield* run(source, companyId, { full: true })).failure?.kind, error._tag)
      source.requests.length = 0
      source.script = all
      yield* run(source, companyId)
      assert.isNull(source.requests[0]!.token, "from the first page after it failed")
    }
    const companyId = company()
    const cycle = scripted(companyId, ({ token }) => ({
      ...page(1, thing(cycle.requests.length, "x", 1)),
      next: token === "a" ? "b" : "a"
    }))
    assert.strictEqual((yield* run(cycle, companyId)).failure?.kind, "PagingBroken")
    assert.isNull((yield* checkpoint(companyId)).cursor)
  })

  test("soft-deletes rows that a full scan misses, unless one of its records has no number", function* () {
    const { plain: table } = tables
    const { companyId, source } = newSource(pages(page(null, ...plains("x", 1, 2)), page(null, ...plains("x", 3))))
    yield* run(source, companyId, { table })
    // A record without a number may be any of those that the scan misses.
    const nameless = { id: null, field: "id", reason: "has no number", bytes: "{}" }
    source.script = pages({ ...page(null, ...plains("x", 1, 2)), rejected: [nameless] })
    assert.strictEqual((yield* run(source, companyId, { table })).totals.deleted, 0)
    assert.lengthOf(yield* live(companyId, "plains"), 3)
    // A full scan without that record closes its quarantine entry. Then absence means deleted again.
    source.script = pages(page(null, ...plains("x", 1)), page(null, ...plains("x", 2)))
    const { kind, status, totals } = yield* run(source, companyId, { table })
    assert.deepStrictEqual([kind, status, totals.deleted, totals.unchanged], ["full", "done", 1, 2])
    assert.deepStrictEqual(yield* quarantined(companyId), [])
  })

  test("blocks a mass delete, and keeps its cursor and the quarantine, unless deletions are accepted", function* () {
    const rows = upTo(300).map((id) => thing(id, "x", null))
    const rejected = [{ id: "999", field: "name", reason: "does not fit", bytes: "{}" }]
    const { companyId, source } = yield* synced(pages({ ...page(0, ...rows), rejected }))
    const before = yield* checkpoint(companyId)
    source.script = list(60, ...rows.slice(0, 3))
    const doubted = yield* run(source, companyId, { full: true })
    assert.deepStrictEqual(doubted.massDeleteBlocked, { live: 300, gone: 297 })
    assert.deepStrictEqual([doubted.status, doubted.cursor], ["quarantined", at(0)])
    const { cursor, cursor_read_at: readAt, full_scan_at: scannedAt } = before
    assert.deepInclude(yield* checkpoint(companyId), { cursor, cursor_read_at: readAt, full_scan_at: scannedAt })
    assert.lengthOf(yield* live(companyId), 300)
    assert.lengthOf(yield* quarantined(companyId), 1)
    const believed = yield* run(source, companyId, { acceptDeletions: true })
    assert.deepStrictEqual([believed.kind, believed.status, believed.cursor], ["full", "done", at(60)])
    assert.strictEqual(believed.totals.deleted, 297)
    assert.lengthOf(yield* live(companyId), 3)
    assert.deepStrictEqual(yield* quarantined(companyId), [])
  })

  test("blocks a mass delete although a push has landed most of the rows that the scan did not return", function* () {
    const { plain: table } = tables
    const { companyId, source } = newSource(list(null, ...plains("x", ...upTo(30))))
    yield* run(source, companyId, { table })
    source.script = list(null)
    const pushing = Effect.suspend(() => push(companyId, table, source.now + 1, plains("y", ...upTo(25))))
    const blocked = yield* flowing(run(yield* disturbed(source, null, pushing), companyId, { table }))
    assert.deepStrictEqual(blocked.massDeleteBlocked, { live: 30, gone: 30 })
    assert.lengthOf(yield* live(companyId, "plains"), 30)
  })

  test("refuses an empty list of few rows while the source has any of them", function* () {
    const { companyId, source } = yield* synced(pages({ records: [thing(1, "one", 1), thing(2, "two", 2)] }))
    source.script = list(null)
    const shown = new Map([1, 2].map((id) => [String(id), thing(id, `${id}`, id)]))
    const get: typeof source.connector.get = (_, id) => {
      const record = shown.get(id) ?? null
      return Effect.succeed({ record, rejected: null, version: null, beganAt: source.now, source: `GET ${id}` })
    }
    const scan = flowing(run({ connector: { ...source.connector, get } }, companyId, { full: true }))
    // The record that was removed says nothing about the other one.
    for (const id of ["1", "2"]) {
      const refused = yield* scan
      assert.strictEqual(refused.status, "failed")
      assert.include(refused.failure!.message, `the list was empty twice, and the source has the record ${id}`)
      assert.lengthOf(yield* live(companyId), 2)
      shown.delete(id)
    }
    const emptied = yield* scan
    assert.deepStrictEqual([emptied.status, emptied.totals.deleted], ["done", 2])
  })

  test("deletes no record that a push created during the full scan", function* () {
    const { companyId, source } = yield* synced(list(10, thing(1, "one", 1)))
    // The write was sent before the scan began, and took effect after the scan had passed its position.
    const pushing = push(companyId, tables.things, source.now - 60_000, [thing(2, "two", 11)])
    const scan = yield* run(yield* disturbed(source, null, pushing), companyId, { full: true })
    assert.deepStrictEqual([scan.status, scan.kind, scan.totals.deleted], ["done", "full", 0])
    assert.deepStrictEqual(yield* valuesOf(companyId), ["one", "two"])
    // The next run is a full scan, which resolves it.
    yield* execute(
      "update tributary.runs set status = 'done', finished_at = tributary.now() where company_id = $1 and lane = 'push'",
      [companyId]
    )
    const next = yield* run(source, companyId)
    assert.deepStrictEqual([next.kind, next.totals.deleted], ["full", 1])
    assert.strictEqual((yield* run(source, companyId)).kind, "incremental")
  })

  test("lets the server end a transaction whose process is silent, so that its locks do not stay", function* () {
    const lock = yield* ResourceLock.acquire({
      table: tables.things,
      connector: { catalogue: tiny },
      companyId: company(),
      lane: "live"
    })
    const silence = lock.run("look at the limit", "show idle_in_transaction_session_timeout")
    assert.deepStrictEqual((yield* lock.transaction(silence)).rows, [{ idle_in_transaction_session_timeout: "1min" }])
  })

  test("lands no row of a batch whose checkpoint cannot be updated", function* () {
    const { companyId, source } = newSource(list(10, thing(1, "one", 1)))
    yield* execute(
      "create function refuse_move() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$"
    )
    yield* execute(
      `create trigger refuse before update on tributary.checkpoints for each row
             when (new.company_id = ${companyId} and new.cursor is not null) execute function refuse_move()`
    )
    assert.strictEqual((yield* run(source, companyId)).status, "failed")
    assert.lengthOf(yield* live(companyId), 0)
    yield* execute("drop trigger refuse on tributary.checkpoints")
    assert.strictEqual((yield* run(source, companyId)).status, "done")
    assert.lengthOf(yield* live(companyId), 1)
  })

  test("lands nothing after its fence was lost, and stops reading", function* () {
    const all = upTo(500).map((index) => page(10, ...upTo(50).map((one) => thing(index * 50 + one, "x", 1))))
    const { companyId, source } = newSource(pages(...all))
    // As if the lock was lost with its connection while the process was suspended.
    const loss = execute("update tributary.checkpoints set fence = fence + 1 where company_id = $1", [companyId])
    assert.strictEqual((yield* run(yield* disturbed(source, null, loss), companyId)).failure?.kind, "FenceLost")
    assert.lengthOf(yield* live(companyId), 0)
    assert.isNull((yield* checkpoint(companyId)).cursor)
    // Pages were read ahead only up to the memory limit.
    assert.isBelow(source.requests.length, 300)
  })

  test("continues automatically after its database connection was lost", function* () {
    const { companyId, source } = newSource(pages(...upTo(6).map((id) => page(10, thing(id, "x", 1)))))
    const cut = settled(
      "a session with the lock",
      execute<{ n: number }>(
        `select count(pg_terminate_backend(pid))::int as n
           from (select distinct l.pid from pg_locks l join pg_stat_activity a using (pid)
                  where l.locktype = 'advisory' and a.datname = current_database()) as locked`
      ),
      ([killed]) => killed!.n > 0
    )
    assert.strictEqual((yield* flowing(run(yield* disturbed(source, "p3", cut, "before"), companyId))).status, "done")
    assert.lengthOf(yield* live(companyId), 6)
  })

  test("reports a remedy when the source refuses its request", function* () {
    const companyId = company()
    const refused = failing(new NotFound({ detail: "no such path" }))
    const outcome = yield* run(scripted(companyId, failingAt(null, list(1), refused)), companyId)
    assert.strictEqual(outcome.status, "failed")
    assert.include(outcome.failure!.message, "not found (404)")
    assert.include(outcome.failure!.remedy, "base address")
    assert.deepStrictEqual(
      yield* execute("select status, error_kind from tributary.runs where company_id = $1", [companyId]),
      [{ status: "failed", error_kind: "NotFound" }]
    )
  })
})
