/** The transaction that stores the records of a push: all of them once, or none. */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Result, Stream } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { InputError } from "../../../src/outbox/input/InputRecord.ts"
import { enqueue } from "../../../src/outbox/Enqueue.ts"
import { EnqueueRejected } from "../../../src/outbox/ValidateInput.ts"
import type { Operation, Problem } from "../../../src/outbox/Push.ts"
import * as QueryInput from "../../../src/outbox/input/QueryInput.ts"
import { ndJsonStream, resourceOf } from "../../outbox/support.ts"
import { layerWarehouse as warehouse } from "../../support/postgres.ts"
import { settled } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

const person = (externalid: string, name = externalid) => ({ externalid, name })
const ndjson = (records: ReadonlyArray<object>) => records.map((record) => `${JSON.stringify(record)}\n`).join("")

/** The operations of one company that no other test uses. */
const world = (company: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const problems: Array<string> = []
    const onProblem = ({ line, field, message }: Problem) =>
      Effect.sync(() => void problems.push(`${line} ${field}: ${message}`))
    const options = (operation: Operation = "create") => ({
      company,
      resource: resourceOf("salesmen"),
      operation,
      source: "test",
      onProblem
    })
    const give = (records: ReadonlyArray<object>, operation?: Operation) =>
      enqueue({ ...options(operation), records: ndJsonStream(ndjson(records)) })
    const rows = sql<Record<string, unknown>>`
      select externalid, record_id, record::text as record, push_id, line::int as line, state, outcome, validated
      from tributary.outbox where company = ${company} order by id`
    const pushes = sql<Record<string, unknown>>`
      select id, record_count::int as records, duplicates::int as known, finished_at is not null as finished, length(content_hash) as digest
      from tributary.pushes where company = ${company} order by id`
    const set = (externalid: string, state: string) =>
      sql`update tributary.outbox set state = ${state}, code = 'x', attempts = 3, absence_confirmed_at = now()
          where company = ${company} and externalid = ${externalid}`
    return { company, sql, problems, options, give, rows, pushes, set }
  })

/** Repeats a query until it returns the expected count. */
const untilOne =
  (expected: number) =>
  <E, R>(ask: Effect.Effect<ReadonlyArray<{ readonly count: number }>, E, R>) =>
    settled("the count", ask, ([row]) => row!.count === expected)

/** The problems of a rejected enqueue. */
const refusedOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.result(effect), (result) => {
    assert.isTrue(Result.isFailure(result), "the enqueue should be rejected")
    const error = (result as Result.Failure<A, E>).failure
    assert.instanceOf(error, EnqueueRejected)
    return error
  })

suite("enqueue", warehouse, (test) => {
  test("rejects externalids that differ only in case or Unicode form", function* () {
    const { give, problems, rows } = yield* world("alike")
    yield* refusedOf(give([person("Shop-1"), person("b"), person("SHOP-1")]))
    assert.match(
      problems.join(),
      /3 externalid: "SHOP-1" differs from "Shop-1" in line 1 in case or Unicode form alone/
    )
    assert.deepStrictEqual(yield* rows, [])
    yield* give([person("Shop-1")])
    yield* refusedOf(give([person("shop-1")]))
    assert.match(problems.at(-1)!, /1 externalid: "shop-1" differs from "Shop-1" of the outbox/)
    yield* give([person("Shop-1"), person("other")])
  })

  test("stores records in the given order, exactly as they will be sent", function* () {
    const { give, rows, pushes } = yield* world("order")
    const summary = yield* give([person("B", "tab\tand\nline\\"), person("A")])
    assert.deepStrictEqual(
      { ...summary, pushId: null },
      { pushId: null, given: 2, enqueued: 2, known: 0, resumed: false }
    )
    const row = { record_id: null, push_id: summary.pushId, state: "pending", outcome: null, validated: true }
    assert.deepStrictEqual(yield* rows, [
      { ...row, externalid: "B", record: '{"name":"tab\\tand\\nline\\\\","externalid":"B"}', line: 1 },
      { ...row, externalid: "A", record: '{"name":"A","externalid":"A"}', line: 2 }
    ])
    assert.deepStrictEqual(yield* pushes, [{ id: summary.pushId, records: 2, known: 0, finished: false, digest: 64 }])
  })

  test("stores no record when one is invalid, and reports all problems", function* () {
    const { give, rows, pushes, problems } = yield* world("problems")
    const error = yield* refusedOf(give([person("A"), { name: 1 }, person("B"), person("A", "other"), person("A")]))
    assert.strictEqual(error.problems, 4)
    assert.deepStrictEqual(problems, [
      "2 externalid: is required: it shows whether the record was written already",
      "2 name: must be a text, not 1",
      '4 externalid: "A" is given twice: in line 1 and in line 4',
      '5 externalid: "A" is given twice: in line 1 and in line 5'
    ])
    assert.deepStrictEqual([yield* rows, yield* pushes], [[], []])
  })

  test("rejects empty input and operations that the API does not offer", function* () {
    const { give, options, problems } = yield* world("nothing")
    assert.strictEqual((yield* refusedOf(give([]))).message, "the input has no records")
    const resource = resourceOf("emailtemplates")
    const error = yield* refusedOf(enqueue({ ...options("cancel"), resource, records: ndJsonStream('{"id":1}') }))
    assert.match(error.message, /cannot be cancelled through this API/)
    assert.lengthOf(problems, 1)
  })

  test("resumes an unfinished push of the same records, and starts a new one otherwise", function* () {
    const { give, rows, pushes, sql, company, set } = yield* world("resume")
    const records = [person("A"), person("B"), person("C")]
    const first = yield* give(records)
    yield* set("A", "done")
    const again = yield* give(records)
    assert.deepStrictEqual(again, { pushId: first.pushId, given: 3, enqueued: 3, known: 0, resumed: true })
    assert.lengthOf(yield* pushes, 1)
    // The same records in another order are another push. Only its waiting record is new.
    const other = yield* give([person("C"), person("A")])
    assert.deepStrictEqual(
      { ...other, pushId: null },
      { pushId: null, given: 2, enqueued: 1, known: 1, resumed: false }
    )
    assertEach(yield* rows, (row) => [row["externalid"], row["push_id"], row["line"], row["state"]], [
      ["A", first.pushId, 1, "done"],
      ["B", first.pushId, 2, "pending"],
      ["C", other.pushId, 1, "pending"]
    ])
    yield* sql`update tributary.pushes set finished_at = now() where company = ${company}`
    yield* sql`update tributary.outbox set state = 'done' where company = ${company}`
    const fresh = yield* give(records)
    assert.deepStrictEqual(
      { ...fresh, pushId: null },
      { pushId: null, given: 3, enqueued: 0, known: 3, resumed: false }
    )
    assert.notStrictEqual(fresh.pushId, first.pushId)
  })

  test("finishes an earlier push whose last rows moved to a newer push", function* () {
    const { give, pushes } = yield* world("emptied")
    yield* give([person("A")])
    yield* give([person("A"), person("B")])
    assertEach(yield* pushes, (push) => [push["records"], push["known"], push["finished"]], [
      [1, 0, true],
      [2, 0, false]
    ])
  })

  test("replaces the values of unsent records, and rejects other values for sent ones", function* () {
    const { give, rows, set, problems, pushes, sql, company } = yield* world("other")
    const first = yield* give([person("waits"), person("refused"), person("kept"), person("done"), person("sent")])
    yield* set("refused", "rejected")
    yield* set("kept", "rejected")
    yield* set("done", "done")
    yield* set("sent", "in_flight")
    const second = yield* give([person("waits", "1"), person("refused", "2"), person("kept"), person("done")])
    assert.deepStrictEqual(second, {
      pushId: second.pushId,
      given: 4,
      enqueued: 2,
      known: 2,
      knownOpen: { sending: 0, rejected: 1, different: 0, pushes: [first.pushId] },
      resumed: false
    })
    assertEach(yield* rows, (row) => [row["externalid"], row["push_id"], row["line"], row["state"], row["record"]], [
      ["waits", second.pushId, 1, "pending", '{"name":"1","externalid":"waits"}'],
      ["refused", second.pushId, 2, "pending", '{"name":"2","externalid":"refused"}'],
      ["kept", first.pushId, 3, "rejected", '{"name":"kept","externalid":"kept"}'],
      ["done", first.pushId, 4, "done", '{"name":"done","externalid":"done"}'],
      ["sent", first.pushId, 5, "in_flight", '{"name":"sent","externalid":"sent"}']
    ])
    const cleared = yield* sql`
          select from tributary.outbox where company = ${company} and externalid = 'refused'
            and code is null and attempts = 0 and absence_confirmed_at is null`
    assert.lengthOf(cleared, 1)
    const before = [yield* rows, yield* pushes]
    const error = yield* refusedOf(
      give([person("new"), person("done", "3"), person("waits", "4"), person("sent", "5")])
    )
    assert.strictEqual(error.problems, 2)
    assert.deepStrictEqual(problems, [
      `2 null: was pushed before (push ${first.pushId}) with other values; change it with --update`,
      `4 null: was pushed before (push ${first.pushId}) with other values; change it with --update`
    ])
    assert.deepStrictEqual([yield* rows, yield* pushes], before)
  })

  test("reports known records that are in flight or different", function* () {
    const { give, set, sql, company } = yield* world("known")
    const first = yield* give([person("done"), person("sent"), person("differs")])
    yield* set("done", "done")
    yield* set("sent", "in_flight")
    yield* set("differs", "done")
    yield* sql`update tributary.outbox set differences = '[]' where company = ${company} and externalid = 'differs'`
    const second = yield* give([person("differs"), person("sent"), person("done"), person("new")])
    assert.deepStrictEqual(second, {
      pushId: second.pushId,
      given: 4,
      enqueued: 1,
      known: 3,
      knownOpen: { sending: 1, rejected: 0, different: 1, pushes: [first.pushId] },
      resumed: false
    })
    assert.deepStrictEqual((yield* give([person("done"), person("late")])).knownOpen, undefined)
  })

  test("adds rows that were inserted by SQL to the push", function* () {
    const { give, rows, sql, company } = yield* world("sql")
    yield* sql`insert into tributary.outbox (company, resource, record)
                   values (${company}, 'salesmen', '{"externalid": "A", "name": "A"}')`
    const summary = yield* give([person("A"), person("B")])
    assert.strictEqual(summary.enqueued, 2)
    assert.deepStrictEqual(
      (yield* rows).map((row) => [row["push_id"], row["record"], row["validated"]]),
      ["A", "B"].map((name) => [summary.pushId, `{"name":"${name}","externalid":"${name}"}`, true])
    )
  })

  test("accepts the same change again in a later push, and once in the same push", function* () {
    const { give, rows, sql, company } = yield* world("changes")
    const changes = [
      { id: 4, name: "A" },
      { externalid: "B", name: "B" },
      { id: 4, name: "C" }
    ]
    const first = yield* give(changes, "update")
    assert.deepStrictEqual(yield* give(changes, "update"), { ...first, resumed: true })
    assertEach(yield* rows, (row) => [row["externalid"], row["record_id"], row["record"], row["line"]], [
      [null, "4", '{"name":"A"}', 1],
      ["B", null, '{"name":"B"}', 2],
      [null, "4", '{"name":"C"}', 3]
    ])
    // The record to update is part of the content that identifies a push.
    const others = yield* give([{ id: 5, name: "A" }, ...changes.slice(1)], "update")
    assert.deepStrictEqual([others.resumed, others.enqueued], [false, 3])
    yield* sql`update tributary.pushes set finished_at = now() where company = ${company}`
    assert.deepStrictEqual((yield* give(changes, "update")).enqueued, 3)
    yield* give([{ id: 4 }, { externalid: "B" }], "cancel")
    assert.lengthOf(yield* rows, 11)
  })

  test("lets concurrent programs with the same records join one push", function* () {
    const { give, rows, pushes, sql, company, problems } = yield* world("race")
    const records = Array.from({ length: 200 }, (_, index) => person(`R${index}`))
    const client = yield* (yield* Database).connect
    // The lock is kept until all programs wait for it.
    yield* query(client, "hold", "begin")
    yield* query(
      client,
      "hold",
      `select pg_advisory_xact_lock(hashtextextended('tributary push ' || $1::text || ' ' || $2::text, 0))`,
      [company, "salesmen"]
    )
    const runs = yield* Effect.forkChild(
      Effect.all([give(records), give(records), give(records), give(records)], { concurrency: "unbounded" })
    )
    yield* sql<{ count: number }>`
          select count(*)::int as count from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())`.pipe(untilOne(4))
    yield* query(client, "release", "commit")
    const summaries = yield* Fiber.join(runs)
    assert.strictEqual(summaries.filter(({ resumed }) => !resumed).length, 1)
    assert.strictEqual(new Set(summaries.map(({ pushId }) => pushId)).size, 1)
    assert.lengthOf(yield* rows, 200)
    assert.lengthOf(yield* pushes, 1)
    // Concurrently with the same records in another order: each record belongs to one of the two pushes, once.
    const reversed = [...records].reverse()
    yield* Effect.all([give(reversed), give(records), give(reversed), give(records)], { concurrency: "unbounded" })
    assert.lengthOf(yield* rows, 200)
    assert.deepStrictEqual(problems, [])
  })

  test("retries after a deadlock with a transaction that locks rows in another order", function* () {
    const { give, sql, company, rows } = yield* world("deadlock")
    yield* give([person("A"), person("B")])
    const client = yield* (yield* Database).connect
    const lock = (externalid: string) =>
      query(client, "lock", "select from tributary.outbox where company = $1 and externalid = $2 for update", [
        company,
        externalid
      ])
    // Only the session of the enqueue detects a deadlock.
    yield* query(client, "begin", "begin; set local deadlock_timeout = '1h'")
    yield* lock("B")
    const run = yield* Effect.forkChild(give([person("A", "1"), person("B", "2")]))
    // The enqueue holds the lock of A and waits for B.
    yield* sql<{ count: number }>`
          select count(*)::int as count from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%for update%'`.pipe(
      untilOne(1)
    )
    yield* lock("A")
    yield* query(client, "commit", "commit")
    assert.strictEqual((yield* Fiber.join(run)).enqueued, 2)
    assertEach(yield* rows, (row) => row["record"], ['{"name":"1","externalid":"A"}', '{"name":"2","externalid":"B"}'])
  })

  test("stores nothing when its input fails midway", function* () {
    const { options, rows, pushes } = yield* world("broken")
    const broken = new InputError({ message: "the disk is gone", remedy: "" })
    const records = Stream.concat(ndJsonStream(ndjson([person("A")])), Stream.fail(broken))
    assert.strictEqual(yield* Effect.flip(enqueue({ ...options(), records })), broken)
    assert.deepStrictEqual([yield* rows, yield* pushes], [[], []])
  })
})

suite("the input query of a push", warehouse, (test) => {
  const read = (statement: string) => Stream.runCollect(QueryInput.read(statement))

  test("returns its rows with all digits, and null counts as absent", function* () {
    const records =
      yield* read(`select 9007199254740993 as id, 1.10::numeric(20,4) as amount, null as nothing, 'a"\n' as text,
          date '2026-03-16' as day, timestamptz '2026-03-16 10:00+01' as at, true as flag -- the end;`)
    assert.deepStrictEqual(records, [
      {
        _tag: "Json",
        line: 1,
        json: '{"id":9007199254740993,"amount":1.1000,"nothing":null,"text":"a\\"\\n","day":"2026-03-16","at":"2026-03-16T09:00:00+00:00","flag":true}',
        nullIsAbsent: true
      }
    ])
  })

  test("reads all rows in batches", function* () {
    for (const count of [0, 1, 999, 1000, 1001, 2500]) {
      const records = yield* read(`with n as (select * from generate_series(1, ${count}) as id) select id from n;`)
      assert.lengthOf(records, count)
      assert.isTrue(records.every(({ line }, index) => line === index + 1))
    }
  })

  test("rejects writes, several statements and failing queries", function* () {
    const sql = yield* SqlClient.SqlClient
    const refused: ReadonlyArray<readonly [string, RegExp]> = [
      ["select nothing", /the query failed: column "nothing" does not exist/],
      ["select 1) q; drop table tributary.outbox; select (1", /the query failed: .*/],
      ["select 1/(id - 1500) as id from generate_series(1, 3000) id", /division by zero/]
    ]
    for (const [statement, expected] of refused) {
      const error = yield* Effect.flip(read(statement))
      assert.instanceOf(error, InputError)
      assert.match(error.message, expected)
    }
    assert.lengthOf(yield* sql`select from pg_tables where schemaname = 'tributary' and tablename = 'outbox'`, 1)
  })
})
