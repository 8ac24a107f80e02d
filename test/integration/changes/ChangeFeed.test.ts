/** The change feed: a reader of it has the records of the warehouse, and gets every change once and in order. */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type pg from "pg"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import { PositionLost } from "../../../src/changes/ChangeFeed.ts"
import * as HistoryRetention from "../../../src/retention/HistoryRetention.ts"
import { codeOf } from "../../../src/cli/Exit.ts"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { changing, things } from "../../support/tiny.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

let companies = 0n

/** A company with a source in memory, which lists the changes since the cursor, or everything. */
const makeCompany = () => {
  const companyId = (companies += 1n)
  const { rows, put, source } = changing(companyId)
  return {
    companyId,
    rows,
    put,
    run: Effect.fnUntraced(function* (full = false) {
      const report = yield* sync({
        companies: [{ name: `one-${companyId}`, connector: source.connector, resources: [things] }],
        datasets: datasetsDefault,
        concurrency: 1,
        batchRecordsMax: 100,
        mode: { full }
      })
      assert.strictEqual(codeOf(report), 0, String(report.companies[0]!.outcomes[0]!.failure?.message))
    })
  }
}

/** A reader with the records that it knows, by id, and the place to which it has read. */
const makeReader = (companyId: bigint) => {
  const known = new Map<bigint, string>()
  const seen: Array<ChangeFeed.Change> = []
  let position = ChangeFeed.beginning
  /** Reads to the end of the feed, some changes at a time. */
  const read = Effect.fnUntraced(function* (max = 1000) {
    const fresh: Array<ChangeFeed.Change> = []
    yield* ChangeFeed.order
    for (;;) {
      yield* ChangeFeed.confirm(position)
      const changes = yield* ChangeFeed.readAfter(position, { companyId, resources: null }, max)
      for (const change of changes) {
        if (change.op === "truncate") known.clear()
        else if (change.op === "delete") known.delete(change.id!)
        else if (change.op !== "missing") known.set(change.id!, change.after!)
      }
      fresh.push(...changes)
      if (changes.length === 0) break
      position = ChangeFeed.parse(changes.at(-1)!.resume)!
    }
    seen.push(...fresh)
    return fresh
  })
  /** Asserts that the reader has exactly the live rows. */
  const assertEqual = Effect.gen(function* () {
    const rows = yield* execute<{ id: bigint; record: string }>(
      `select h.id, h.record::text as record from erp_history.things h
        where h._company_id = ${companyId} and h._valid_to is null and h._op <> 'delete' order by h.id`
    )
    assert.deepStrictEqual(
      [...known].sort(([a], [b]) => Number(a - b)),
      rows.map(({ id, record }) => [id, record])
    )
  })
  return { read, known, seen, assertEqual, position: () => position }
}

const operations = (changes: ReadonlyArray<ChangeFeed.Change>) =>
  changes.map(({ op, id }) => (id === null ? op : `${op} ${id}`))

const nameOf = (text: string | null) => (text === null ? null : (JSON.parse(text) as { readonly name: string }).name)

suite("the change feed", layerWarehouse, (test) => {
  test("has each version once, with the record before and after it, and where it came from", function* () {
    const company = makeCompany()
    const reader = makeReader(company.companyId)
    company.put(1, "one")
    company.put(2, "two")
    yield* company.run()
    assert.deepStrictEqual(operations(yield* reader.read()), ["insert 1", "insert 2"])
    company.put(2, "second")
    yield* company.run()
    const [updated, ...others] = yield* reader.read()
    assert.deepStrictEqual(others, [])
    assert.strictEqual(updated!.op, "update")
    assert.deepStrictEqual(updated!.changed, ["lastchangedate", "name"])
    assert.deepStrictEqual([nameOf(updated!.before), nameOf(updated!.after)], ["two", "second"])
    assert.deepStrictEqual([updated!.origin, updated!.version], ["scan", 2n])
    assert.isNotNull(updated!.source)
    company.rows.delete(1)
    yield* company.run(true)
    const [deleted] = yield* reader.read()
    assert.deepStrictEqual(operations([deleted!]), ["delete 1"])
    assert.deepStrictEqual([nameOf(deleted!.before), deleted!.after], ["one", null])
    company.put(1, "again")
    yield* company.run()
    const [again] = yield* reader.read()
    assert.deepStrictEqual([again!.op, again!.before, nameOf(again!.after)], ["insert", null, "again"])
    yield* reader.assertEqual
    yield* company.run()
    assert.deepStrictEqual(yield* reader.read(), [])
    // From the beginning, in parts that end within a batch.
    const second = makeReader(company.companyId)
    yield* second.read(1)
    assert.deepStrictEqual(second.seen, reader.seen)
    yield* second.assertEqual
  })

  test("orders by commit and without a gap, whichever landing began first", function* () {
    yield* ChangeFeed.order
    const { number: end } = yield* ChangeFeed.end
    const { connect } = yield* Database
    const [first, second] = [yield* connect, yield* connect]
    const add = (client: pg.Client, id: number) =>
      query(
        client,
        "add a batch",
        `insert into tributary.change_batches (company_id, resource, history, ids, changes, began)
             values (900, 'things', 'erp_history.things', '{${id},${id + 1}}', 2, now())`
      )
    yield* query(first, "begin", "begin")
    yield* add(first, 10)
    yield* add(second, 20)
    yield* ChangeFeed.order
    yield* query(first, "commit", "commit")
    yield* Effect.all([ChangeFeed.order, ChangeFeed.order, ChangeFeed.order], { concurrency: "unbounded" })
    const rows = yield* execute<{ position: bigint; id: bigint }>(
      `select position, id from tributary.changes where company_id = 900 order by position`
    )
    assertEach(rows, ({ position, id }) => `${position - end}: ${id}`, ["1: 20", "2: 21", "3: 10", "4: 11"])
  })

  test("begins a table again that was dropped or truncated, or that lost its checkpoints", function* () {
    const company = makeCompany()
    const reader = makeReader(company.companyId)
    for (let id = 1; id <= 3; id += 1) company.put(id, `thing ${id}`)
    yield* company.run()
    yield* reader.read()
    yield* execute("truncate erp.things")
    company.rows.delete(3)
    yield* company.run()
    assert.strictEqual((yield* reader.read())[0]!.op, "truncate")
    yield* reader.assertEqual
    assert.deepStrictEqual(new Set(reader.known.keys()), new Set([1n, 2n]))
    yield* company.run()
    assert.deepStrictEqual(yield* reader.read(), [])
    // Checkpoints of a time before the first sync were restored, and the rows were not.
    yield* execute(`delete from tributary.checkpoints where company_id = ${company.companyId}`)
    yield* company.run()
    assert.deepStrictEqual(operations(yield* reader.read()), ["truncate", "insert 1", "insert 2"])
    yield* reader.assertEqual
    yield* company.run()
    assert.deepStrictEqual(yield* reader.read(), [])
  })

  test("says what to do where a position is of another feed or was removed", function* () {
    const company = makeCompany()
    const reader = makeReader(company.companyId)
    company.put(1, "one")
    yield* company.run()
    company.put(1, "two")
    yield* company.run()
    yield* reader.read()
    const position = reader.position()
    const other = { ...position, token: position.token === "1" ? "2" : "1" }
    assert.instanceOf(yield* Effect.flip(ChangeFeed.confirm(other)), PositionLost)
    const selection = { companyId: null, resources: null }
    const late = yield* Effect.flip(ChangeFeed.readAfter({ number: position.number + 1n, token: null }, selection, 10))
    assert.match(late.message, /restored.*export/s)
    yield* HistoryRetention.remove("erp_history", Duration.zero)
    const gone = yield* Effect.flip(ChangeFeed.readAfter({ number: 1n, token: null }, selection, 10))
    assert.match(gone.message, /removed with the history/)
    // The end of the feed, and its beginning, can be read on from.
    assert.deepStrictEqual(yield* reader.read(), [])
    assert.deepStrictEqual(yield* ChangeFeed.readAfter(ChangeFeed.beginning, selection, 10), [])
  })
})
