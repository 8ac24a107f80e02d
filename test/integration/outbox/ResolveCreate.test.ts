/**
 * Creates from the outbox against the reference server and Postgres: the requests, the outcomes of the rows, and the
 * rows of the warehouse.
 */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ConnectorShape } from "../../../src/connector/Connector.ts"
import { ServerFault, SourceError } from "../../../src/connector/SourceError.ts"
import type { WriteResult } from "../../../src/connector/WriteResult.ts"
import { everyoneOnce, makeStand, type OutboxRow, people, stand } from "./stand.ts"
import { suite } from "../../support/suite.ts"
import { assertEach, assertNone } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

const tally = (rows: ReadonlyArray<OutboxRow>) => {
  const counts: Record<string, number> = {}
  for (const { state, outcome, code } of rows) {
    const name = outcome ?? (code === null ? state : `${state} ${code}`)
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

/** The number of records with each externalid at the source. */
const recordCounts = (records: ReadonlyArray<Readonly<Record<string, unknown>>>) => {
  const times = new Map<unknown, number>()
  for (const { externalid } of records) times.set(externalid, (times.get(externalid) ?? 0) + 1)
  return times
}

/** A connector that answers 500 to every request with the first key, whether or not the source has stored its records. */
const failingForOneKey = (connector: ConnectorShape, isStored: boolean): ConnectorShape => {
  let spoilt: string | null = null
  return {
    ...connector,
    write: (request) =>
      Effect.suspend(() => {
        spoilt ??= request.idempotencyKey
        if (request.idempotencyKey !== spoilt) return connector.write(request)
        const reason = new ServerFault({ status: 500, code: "server_error", retryAfter: null })
        const failedRequest = { method: "POST", path: "/salesmen/batch", requestId: null }
        const fail = Effect.fail(new SourceError({ reason, request: failedRequest }))
        return isStored ? Effect.andThen(connector.write(request), fail) : fail
      })
  }
}

suite("creates from the outbox", stand, (test) => {
  describe("without problems", () => {
    test("write 600 records with three push requests, and the warehouse has them at once", function* () {
      const one = yield* makeStand()
      yield* one.insert(people(600))
      const pushed = yield* one.push()
      assert.deepStrictEqual(pushed.failure, null)
      assert.strictEqual(pushed.status, "done")
      assert.strictEqual(pushed.counts.created, 600)
      assert.strictEqual(pushed.counts.waiting + pushed.counts.sending, 0)
      assert.deepStrictEqual(pushed.calls, { sent: 3, batches: 3 })
      const rows = yield* one.rows
      assert.isTrue(rows.every((row) => row.state === "done" && row.outcome === "created" && row.record_id !== null))
      assert.isTrue(rows.every(({ differences }) => differences === null))
      yield* one.hasRecords(600)
      const [origins] = yield* one.sql<{ origins: ReadonlyArray<string> }>`
          select array_agg(distinct _origin) as origins from erp.salesmen where _company_id = ${one.id}`
      assert.deepStrictEqual(origins?.origins, ["push"])
      assert.isTrue((yield* one.calls).every(({ state, body }) => state === "completed" && body === null))
      const [run] = yield* one.sql<{ kind: string; status: string; records: bigint }>`
          select kind, status, records from tributary.runs where company_id = ${one.id} and lane = 'push'`
      assert.deepStrictEqual(run, { kind: "push", status: "done", records: 600n })
    })

    test("send one record alone, and each record alone when batches are disabled", function* () {
      const one = yield* makeStand()
      yield* one.insert(people(1))
      assert.deepStrictEqual((yield* one.push()).calls, { sent: 1, batches: 0 })
      yield* one.insert(people(5, 1))
      assert.deepStrictEqual((yield* one.push({ useBatch: false })).calls, { sent: 5, batches: 0 })
      yield* one.hasRecords(6)
    })
  })

  describe("of records that the source already has", () => {
    test("adopt and compare existing records, and reject cancelled and ambiguous ones", function* () {
      for (const more of [3, 60]) {
        const one = yield* makeStand()
        yield* one.put([
          { name: "Person 0", externalid: "p-0", commissionrate: "1.500" },
          { name: "Person 1", externalid: "p-1", commissionrate: "9.000" },
          { name: "Person 2", externalid: "p-2", cancel: true }
        ])
        yield* one.put([{ name: "twin", externalid: "p-3" }])
        yield* one.put([{ name: "other twin", externalid: "p-3" }])
        const pushed = yield* one.pushAll(people(more + 4))
        const rows = yield* one.rows
        assert.deepStrictEqual(tally(rows), {
          adopted: 2,
          "rejected cancelled": 1,
          "rejected ambiguous_externalid": 1,
          created: more
        })
        assert.strictEqual(pushed.counts.different, 1)
        assert.deepStrictEqual(
          rows.flatMap(({ differences }) => differences?.map(({ field }) => field) ?? []),
          ["commissionrate"]
        )
        yield* one.hasRecords(more + 5)
      }
    })

    test("find hundreds of existing records by a list instead of a lookup of each", function* () {
      const one = yield* makeStand()
      yield* one.put(people(450))
      yield* one.pushAll(people(500))
      assert.deepStrictEqual(tally(yield* one.rows), { adopted: 450, created: 50 })
      // Five pages of the scan that finds the possible duplicates, and five of the list that confirms them.
      assert.isAtMost((yield* one.reads).length, 12)
      yield* one.hasRecords(500)
    })

    test("reject a record whose externalid exists in another spelling", function* () {
      const one = yield* makeStand()
      yield* one.put([
        { name: "was 0", externalid: "P-0" },
        { name: "was 1", externalid: " p-1 " },
        { name: "Person 2", externalid: "p-2" },
        { name: "other", externalid: "P-2" }
      ])
      yield* one.pushAll(people(63))
      const rows = yield* one.rows
      assert.deepStrictEqual(tally(rows), { "rejected ambiguous_externalid": 2, adopted: 1, created: 60 })
      assert.match(
        rows[0]!.reason!,
        /has record \d+ with the externalid "P-0", which differs in case, blanks or Unicode/
      )
      assert.strictEqual((yield* one.sourceRecords).length, 64)
    })

    test("reject a record whose unique key another record has, with the message of the source", function* () {
      const one = yield* makeStand()
      yield* one.put([{ name: "Person 1", externalid: "another person" }])
      yield* one.pushAll(people(3))
      const rows = yield* one.rows
      assert.deepStrictEqual(tally(rows), { created: 2, "rejected duplicate": 1 })
      assert.isTrue(rows[1]!.reason !== null && rows[1]!.reason !== "")
    })
  })

  describe("with rejected records", () => {
    test("store code and field of each rejection, and create the other records", function* () {
      const one = yield* makeStand("areas")
      const records = Array.from({ length: 40 }, (_, at) => ({ name: `Area ${at % 39}`, externalid: `a-${at}` }))
      const pushed = yield* one.pushAll([...records, { name: 5, externalid: "a-odd" }, { name: "without key" }])
      assert.deepStrictEqual(tally(yield* one.rows), { created: 39, "rejected duplicate": 1, "rejected invalid": 2 })
      assert.deepStrictEqual(pushed.calls, { sent: 1, batches: 1 })
      // Rejected records are not sent again automatically.
      assert.deepStrictEqual((yield* one.push()).calls, { sent: 0, batches: 0 })
    })

    test("split a rejected batch in halves until each record has an outcome", function* () {
      const one = yield* makeStand()
      yield* one.faults({
        kind: "status",
        status: 400,
        method: "POST",
        path: "/salesmen/batch",
        body: { error: { code: "invalid_json", message: "no", field: null } }
      })
      const pushed = yield* one.pushAll(people(12))
      yield* one.noFaults
      assert.strictEqual(pushed.counts.created, 12)
      assert.deepStrictEqual(tally(yield* one.rows), { created: 12 })
      const calls = yield* one.calls
      assert.deepStrictEqual(
        calls
          .filter(({ state }) => state === "rejected")
          .map(({ items }) => items)
          .sort((a, b) => b - a),
        [12, 6, 6, 3, 3, 3, 3, 2, 2, 2, 2]
      )
      assert.strictEqual(calls.filter(({ operation }) => operation === "create").length, 12)
    })

    test("send records one by one when the source does not offer batches", function* () {
      const one = yield* makeStand()
      yield* one.faults({
        kind: "status",
        status: 405,
        method: "POST",
        path: "/salesmen/batch",
        body: { error: { code: "method_not_allowed", message: "no" } }
      })
      yield* one.insert(people(7))
      const pushed = yield* one.push()
      yield* one.noFaults
      assert.deepStrictEqual(pushed.calls, { sent: 8, batches: 1 })
      assert.strictEqual(pushed.counts.created, 7)
    })
  })

  describe("with uncertain outcomes", () => {
    test("look records up when the batch response contains no result", function* () {
      const one = yield* makeStand()
      yield* one.faults({
        kind: "status",
        status: 207,
        method: "POST",
        path: "/salesmen/batch",
        times: 1,
        body: { results: [] }
      })
      yield* one.pushAll(people(8))
      yield* one.noFaults
      assert.deepStrictEqual(tally(yield* one.rows), { created: 8 })
      assert.isTrue((yield* one.rows).every(({ attempts }) => attempts === 1))
      assert.strictEqual((yield* one.sourceRecords).length, 8)
    })

    test("look up records whose results are missing, duplicated, unclear or transient errors", function* () {
      const one = yield* makeStand()
      const { connector } = one.company
      let isFirst = true
      const spoil = (items: ReadonlyArray<WriteResult>): ReadonlyArray<WriteResult> => [
        ...items.filter(({ index }) => index !== 2 && index !== 5),
        ...items.filter(({ index }) => index === 3).map((item) => ({ ...item, index: 4 })),
        { _tag: "WriteUncertain", index: 5, detail: "no idea" },
        { _tag: "WriteUncertain", index: 99, detail: "no such record" }
      ]
      const spoiling: ConnectorShape = {
        ...connector,
        write: (request) =>
          Effect.map(connector.write(request), (answer) => {
            const items = isFirst ? spoil(answer.items) : answer.items
            isFirst = false
            return { ...answer, items }
          })
      }
      const pushed = yield* one.pushAll(people(10), {}, { company: { ...one.company, connector: spoiling } })
      assert.deepStrictEqual(pushed.calls, { sent: 1, batches: 1 })
      yield* everyoneOnce(one, 10)
    })

    test("use a new key when the source repeats its 500 for the old one", function* () {
      for (const isStored of [false, true]) {
        const one = yield* makeStand()
        const failing = failingForOneKey(one.company.connector, isStored)
        const pushed = yield* one.pushAll(people(9), {}, { company: { ...one.company, connector: failing } })
        assert.strictEqual(pushed.calls.sent, isStored ? 3 : 5)
        yield* everyoneOnce(one, 9)
      }
    })

    test("look a whole batch up by what has changed since it was sent", function* () {
      const one = yield* makeStand()
      const old = { company: one.id, resource: "salesmen", records: people(2_000, 1_000) }
      yield* one.control("POST", "/records", { ...old, at: "2020-01-01T00:00:00Z" })
      const failing = failingForOneKey(one.company.connector, true)
      yield* one.insert(people(200))
      const before = (yield* one.reads).length
      assert.strictEqual((yield* one.push({}, { company: { ...one.company, connector: failing } })).status, "done")
      assert.deepStrictEqual(tally(yield* one.rows), { created: 200 })
      // 20 pages of the scan that proves that the records are new, and a few of the list.
      assert.isAtMost((yield* one.reads).slice(before).length, 24)
      yield* one.hasRecords(2_200)
    })

    test("look records up and split the batch when the source fails repeatedly", function* () {
      const one = yield* makeStand()
      yield* one.faults({ kind: "status", status: 500, method: "POST", path: "/salesmen/batch", times: 6 })
      yield* one.insert(people(2))
      const pushed = yield* one.push()
      yield* one.noFaults
      // The key was abandoned after three rounds of two attempts.
      assert.strictEqual(pushed.status, "done")
      assert.deepStrictEqual(tally(yield* one.rows), { created: 2 })
      const calls = yield* one.calls
      assertEach(calls, ({ operation, state, failures }) => `${operation} ${state} ${failures}`, [
        "batch abandoned 3",
        "create completed 0",
        "create completed 0"
      ])
      assert.strictEqual((yield* one.sourceRecords).length, 2)
    })
  })

  test("a push from the outbox sends its own rows and earlier rows of the same records, and finishes", function* () {
    const one = yield* makeStand()
    const { sql, name } = one
    yield* one.put(people(1))
    const insert = (operation: string, records: ReadonlyArray<object>) =>
      sql<{ id: bigint }>`
            with p as (
              insert into tributary.pushes (company, resource, operation, source, content_hash, record_count)
              values (${name}, 'salesmen', ${operation}, 'test', ${JSON.stringify(records)}, ${records.length}) returning id
            ), o as (
              insert into tributary.outbox (company, resource, operation, push_id, record)
              select ${name}, 'salesmen', ${operation}, p.id, r
                from p, jsonb_array_elements(${JSON.stringify(records)}::text::jsonb) r
            ) select id from p`
    yield* one.insert(
      [
        { externalid: "p-0", phone1: "1" },
        { externalid: "p-0", email1: "a@b.c" }
      ],
      "update"
    )
    yield* insert("create", people(2, 50))
    const [mine] = yield* insert("update", [{ externalid: "p-0", phone1: "2" }])
    const pushed = yield* one.push({}, { scope: { push: mine!.id } })
    assert.strictEqual(pushed.failure, null)
    assert.strictEqual(pushed.counts.updated, 1)
    assert.deepStrictEqual(
      (yield* one.rows).map(({ outcome, state }) => outcome ?? state),
      ["updated", "updated", "pending", "pending", "updated"]
    )
    const finished = yield* sql<{ done: boolean }>`
          select finished_at is not null as done from tributary.pushes where company = ${name} order by id`
    assert.deepStrictEqual(valuesOf(finished, "done"), [false, true])
    assert.strictEqual((yield* one.sourceRecords)[0]?.["phone1"], "2")
  })

  test("creates that cannot continue keep state and key of the rows while the source is unreachable or forbids writing", function* () {
    const one = yield* makeStand()
    yield* one.insert(people(30))
    yield* one.faults({ kind: "reset", path: "/salesmen" })
    const away = yield* one.push()
    assert.deepStrictEqual([away.status, away.failure?.kind, away.counts.waiting], ["stopped", "Unreachable", 30])
    yield* one.faults({ kind: "reset", method: "POST", path: "/salesmen" })
    const lost = yield* one.push()
    assert.deepStrictEqual([lost.status, lost.failure?.kind, lost.counts.sending], ["stopped", "Unreachable", 30])
    yield* one.faults({
      kind: "status",
      status: 403,
      method: "POST",
      path: "/salesmen",
      body: { error: { code: "insufficient_scope", message: "no" } }
    })
    const barred = yield* one.push()
    assert.deepStrictEqual([barred.failure?.kind, barred.failure?.disposition], ["Forbidden", "blocked"])
    assert.strictEqual(barred.counts.sending, 30)
    yield* one.noFaults
    const pushed = yield* one.push()
    assert.strictEqual(pushed.status, "done")
    assert.strictEqual(pushed.counts.created, 30)
    assertNone([...recordCounts(yield* one.sourceRecords).values()], (times) => times !== 1)
    assert.strictEqual((yield* one.calls).length, 1)
    assert.deepStrictEqual((yield* one.isEqual).differences, [])
  })
})
