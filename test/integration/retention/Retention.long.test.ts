/** Retention on 100,000 runs and 100,000 outbox rows: the rows that it deletes and keeps. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as Retention from "../../../src/retention/Retention.ts"
import { execute, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { testOf } from "../../support/suite.ts"
import { assertEach, assertNone } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

const retentionPeriod = Duration.days(30)
const settings = {
  runs: retentionPeriod,
  quarantine: retentionPeriod,
  outbox: retentionPeriod,
  events: retentionPeriod
}
const nothing = {
  runs: 0,
  quarantine: 0,
  outbox: 0,
  pushes: 0,
  calls: 0,
  samples: 0,
  tasks: 0,
  events: 0,
  dead: 0,
  gaps: 0,
  processes: 0,
  alerts: 0,
  violations: 0
}

/** Runs statements one after the other. */
const tell = (text: string) => Effect.forEach(text.split(";"), (statement) => execute(statement), { discard: true })

/** Row ids in order. */
const ids = (text: string) => Effect.map(execute<{ id: string }>(text), (rows) => rows.map(({ id }) => Number(id)))

const ago = (days: number | string) => `(tributary.now() - make_interval(days => ${days}))`

layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("retention", (it) => {
  const test = testOf(it)
  test("keeps of 100,000 runs those that status, explain and open quarantine need", function* () {
    // Resource a: 90,000 incremental runs, a thousand per day, none near the limit; every 10,000th is a full scan.
    // Resource b: only its first two runs succeed.
    yield* tell(
      `insert into tributary.runs (company_id, resource, lane, kind, status, fence, started_at, finished_at)
         select 1, 'a', 'live', case when n % 10000 = 0 then 'full' else 'incremental' end, 'done', n,
                ${ago("100")} + make_interval(secs => n * 86.4 + 42), ${ago("100")} + make_interval(secs => n * 86.4 + 43)
           from generate_series(1, 90000) n;
         insert into tributary.runs (company_id, resource, lane, kind, status, fence, started_at, finished_at)
         select 1, 'b', 'live', case when n = 1 then 'full' else 'incremental' end, case when n <= 2 then 'done' else 'failed' end,
                n, ${ago("200")} + make_interval(secs => n), ${ago("200")} + make_interval(secs => n + 1)
           from generate_series(1, 9990) n;
         insert into tributary.runs (company_id, resource, lane, kind, status, fence, started_at)
         values (1, 'c', 'live', 'full', 'running', 1, ${ago(300)});
         insert into tributary.runs (company_id, resource, lane, kind, status, fence, started_at, finished_at)
         select 2, 'a', 'records', 'fetch', 'done', n, ${ago("40")}, ${ago("40")} from generate_series(1, 9) n;
         insert into tributary.quarantine
           (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at, resolved_at)
         select 1, 'a', n::text, 'odd', '{}', n, 'GET', ${ago("90")}, ${ago("90")},
                case when n = 77 then null when n % 2 = 0 then ${ago("40")} else ${ago("20")} end
           from generate_series(70, 80) n;
         analyze tributary.runs`
    )
    const before = yield* ids(
      "select id from tributary.runs where finished_at >= tributary.now() - interval '30 days' or finished_at is null"
    )
    // Two processes at once.
    const removed = yield* Effect.all([Retention.pass(settings), Retention.pass(settings)], { concurrency: 2 })
    const gone = removed.reduce((sum, { runs }) => sum + runs, 0)
    const left = new Set(yield* ids("select id from tributary.runs order by id"))
    assert.strictEqual(left.size, 100_000 - gone)
    assert.isAbove(gone, 79_000)
    assertNone(before, (id) => !left.has(id), "young runs and active runs stay")
    const old = yield* ids(
      "select id from tributary.runs where finished_at < tributary.now() - interval '30 days' and resource = 'a' and company_id = 1"
    )
    // The newest 20 runs of resource a are young. Its last full scan is its run 90,000.
    assert.deepStrictEqual(old, [77], "the run of the open quarantine")
    const b = yield* ids("select fence as id from tributary.runs where resource = 'b' order by id")
    assert.deepStrictEqual(
      b,
      [1, 2, ...Array.from({ length: 20 }, (_, index) => 9971 + index)],
      "the last full scan, the last successful run, and the newest twenty"
    )
    assert.strictEqual((yield* ids("select id from tributary.runs where company_id = 2")).length, 9)
    assert.deepStrictEqual(
      yield* ids("select record_id as id from tributary.quarantine order by id"),
      [71, 73, 75, 77, 79],
      "open quarantine entries, and recently resolved ones"
    )
    assert.deepStrictEqual(yield* Retention.pass(settings), nothing)
  })

  test("keeps of 100,000 pushed records those that are rejected, open or young", function* () {
    // Pushes 1 to 5 have 10,000 records each: 1 is finished, 2 has a rejected record, 3 is unfinished, 4 is young, 5
    // finished long ago, with one record that was resolved recently.
    yield* tell(
      `insert into tributary.pushes (company, resource, operation, source, content_hash, record_count, created_at, finished_at)
         select 'main', 'a', 'create', 'file', n::text, 10000, ${ago(90)},
                case when n = 3 then null when n = 4 then ${ago(10)} else ${ago(80)} end
           from generate_series(1, 5) n;
         insert into tributary.push_requests (company, resource, operation, idempotency_key, record_count, state, created_at, closed_at)
         select 'main', 'a', 'batch', n::text, 250, case when n = 400 then 'open' else 'completed' end, ${ago(90)},
                case when n = 400 then null when n > 300 then ${ago(10)} else ${ago(80)} end
           from generate_series(1, 400) n;
         insert into tributary.outbox (company, resource, externalid, record, push_id, state, outcome, request_id, created_at, resolved_at)
         select 'main', 'a', 'r' || n, '{}', (n - 1) / 10000 + 1,
                case when n = 10001 then 'rejected' when n = 20001 then 'pending' else 'done' end,
                case when n in (10001, 20001) then null else 'created' end, (n - 1) / 250 + 1, ${ago(90)},
                case when n = 20001 then null when n = 50000 or n between 30001 and 40000 then ${ago(10)} else ${ago(80)} end
           from generate_series(1, 50000) n;
         insert into tributary.outbox (company, resource, externalid, record, state, outcome, created_at, resolved_at)
         select 'main', 'b', 'f' || n, '{}', case when n = 1 then 'rejected' when n = 2 then 'in_flight' else 'done' end,
                case when n > 2 then 'created' end, ${ago(90)},
                case when n = 2 then null when n > 49990 then ${ago(10)} else ${ago(80)} end
           from generate_series(1, 50000) n;
         analyze tributary.outbox`
    )
    const removed = yield* Retention.pass(settings)
    assert.deepStrictEqual(removed, {
      ...nothing,
      outbox: 10_000 + 9_999 + 49_988,
      pushes: 1,
      // The push requests of 80 days ago, except the one with the rejected record.
      calls: 299
    })
    const left = yield* execute<{ push: string; rows: number }>(
      `select coalesce(push_id::text, 'none') as push, count(*)::float8 as rows from tributary.outbox group by 1 order by 1`
    )
    assertEach(left, ({ push, rows }) => `${push}: ${rows}`, ["2: 10000", "3: 10000", "4: 10000", "5: 1", "none: 12"])
    assert.deepStrictEqual(yield* ids("select id from tributary.pushes order by id"), [2, 3, 4, 5])
    assert.deepStrictEqual(
      yield* ids(
        "select idempotency_key as id from tributary.push_requests where closed_at < tributary.now() - interval '30 days'"
      ),
      [41]
    )
    // No row is deleted while the source may know its key, whatever the setting.
    yield* tell(
      `insert into tributary.outbox (company, resource, externalid, record, state, outcome, resolved_at)
         values ('main', 'b', 'young', '{}', 'done', 'created', tributary.now() - interval '47 hours')`
    )
    yield* Retention.pass({ ...settings, outbox: Duration.zero })
    assert.strictEqual((yield* ids("select id from tributary.outbox where externalid = 'young'")).length, 1)
  })

  test("deletes old budget samples and completed backfill tasks, and no other task", function* () {
    const fingerprint = "a".repeat(64)
    yield* tell(
      `insert into tributary.budgets (fingerprint, requests_per_minute, updated_at) values ('${fingerprint}', 500, tributary.now());
         insert into tributary.budget_usage (fingerprint, at, used, rate_limited_count, is_paused)
         select '${fingerprint}', tributary.now() - make_interval(mins => n), 1, 0, false from generate_series(1, 12000) n;
         insert into tributary.tasks (company, resource, kind, finished_at, status, requested_at)
         values ('main', 'a', 'backfill', ${ago(40)}, 'done', null), ('main', 'b', 'backfill', ${ago(20)}, 'done', null),
                ('main', 'c', 'backfill', ${ago(40)}, 'failed', ${ago(1)}), ('main', 'a', 'sync', ${ago(40)}, 'done', null)`
    )
    const { samples, tasks } = yield* Retention.pass(settings)
    assert.deepStrictEqual({ samples, tasks }, { samples: 12_000 - 25 * 60 + 1, tasks: 1 })
    const left = yield* execute<{ what: string }>(
      "select resource || ' ' || kind as what from tributary.tasks order by 1"
    )
    assert.deepStrictEqual(valuesOf(left, "what"), ["a sync", "b backfill", "c backfill"])
  })
})
