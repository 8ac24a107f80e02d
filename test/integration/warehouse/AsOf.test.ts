/** As-of queries: the views show what the table showed at each moment and position, and what the source had by its times. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import * as HistoryRetention from "../../../src/retention/HistoryRetention.ts"
import { applyViews } from "../../../src/sync/Sync.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { makeCompany, makeTimedCompany } from "../../support/feeding.ts"
import { numbers } from "../../support/numbers.ts"
import { execute, layerWarehouse, passMinute } from "../../support/postgres.ts"
import { things } from "../../support/tiny.ts"
import { companyReader, namesModel, readAsOf } from "./readers.ts"
import { suite, testWith } from "../../support/suite.ts"
import { valuesOf } from "../../support/rows.ts"

const failure = (asOf: string, mode = "") =>
  Effect.map(Effect.flip(readAsOf(asOf, "select * from erp_asof.things", { mode })), DatabaseError.from("read"))

/** Every row with every column, as text. */
const rowsOf = (dataset: string, companyId: bigint) =>
  `select t::text as row from ${dataset}.things t where _company_id = ${companyId} order by id`

let companies = 100n

suite("a query as of each moment", layerWarehouse, (test) => {
  test("shows the rows of that time, with deletions, records that came back, and backfills", function* () {
    const company = makeTimedCompany((companies += 1n))
    const other = makeTimedCompany((companies += 1n))
    const next = numbers(20_261_031)
    const moments: Array<{
      readonly time: string
      readonly position: string
      readonly rows: ReadonlyArray<object>
    }> = []
    const puts: Array<{ readonly id: number; readonly name: string; readonly second: number }> = []
    for (let step = 0; step < 20; step += 1) {
      const isFull = step % 5 === 4
      for (let change = next(4) + 1; change > 0; change -= 1) {
        const id = next(12) + 1
        if (isFull && next(2) === 0) company.rows.delete(id)
        else if (puts.at(-1)?.id !== id) {
          company.put(id, `thing ${step} ${change}`)
          puts.push({ id, ...company.rows.get(id)! })
          yield* company.sync()
        }
      }
      yield* company.sync(isFull, step % 7 === 6)
      other.put(next(3) + 1, `other ${step}`)
      if (next(2) === 0) yield* other.sync()
      yield* ChangeFeed.order
      const time = yield* passMinute
      const position = ChangeFeed.textOf(yield* ChangeFeed.end)
      moments.push({ time, position, rows: yield* execute(rowsOf("erp", company.companyId)) })
    }
    assert.isAbove((yield* execute("select from erp_history.things where _op = 'delete'")).length, 3)
    for (const { time, position, rows } of moments) {
      assert.deepStrictEqual(yield* readAsOf(time, rowsOf("erp_asof", company.companyId)), rows, time)
      assert.deepStrictEqual(
        yield* readAsOf(`position ${position}`, rowsOf("erp_asof", company.companyId)),
        rows,
        position
      )
    }
    // The source's times are of January, and the deletions were found later.
    for (let round = 0; round < 20; round += 1) {
      const second = next(puts.at(-1)!.second + 2_000)
      const expected = new Map<number, string>()
      for (const put of puts) if (put.second <= second) expected.set(put.id, put.name)
      const time = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
      const rows = yield* readAsOf<{ id: bigint; name: string }>(
        time,
        `select id, name from erp_asof.things where _company_id = ${company.companyId} order by id`,
        { mode: "source" }
      )
      assert.deepStrictEqual(
        rows.map(({ id, name }) => [Number(id), name] as const),
        [...expected].sort(([a], [b]) => a - b),
        time
      )
    }
    const last = yield* readAsOf(moments.at(-1)!.time, rowsOf("erp_asof", company.companyId), { mode: "source" })
    assert.deepStrictEqual(last, moments.at(-1)!.rows)
  })
})

describe("a query as of a moment", () => {
  const test = testWith(layerWarehouse)

  test("shows one version of a record whose newer version came with an older read", function* () {
    yield* makeCompany((companies += 1n)).sync()
    const companyId = (companies += 1n)
    const version = (number: number, from: number, until: number | null) =>
      execute(
        `insert into ${until === null ? "erp.things" : "erp_history.things__superseded"}
             (_company_id, id, _version, _origin, _observed_at${until === null ? "" : ", _valid_to"})
           values (${companyId}, 1, ${number}, 'scan', to_timestamp(${from})${until === null ? "" : `, to_timestamp(${until})`})`
      )
    yield* version(1, 10, 100)
    yield* version(2, 100, 90)
    yield* version(3, 90, null)
    const expectations: ReadonlyArray<readonly [second: number, versions: ReadonlyArray<bigint>]> = [
      [9, []],
      [10, [1n]],
      [89, [1n]],
      [90, [3n]],
      [99, [3n]],
      [100, [3n]],
      [500, [3n]]
    ]
    for (const [second, expected] of expectations) {
      const rows = yield* readAsOf<{ _version: bigint }>(
        new Date(second * 1_000).toISOString(),
        `select _version from erp_asof.things where _company_id = ${companyId}`
      )
      assert.deepStrictEqual(valuesOf(rows, "_version"), expected, `${second}`)
    }
  })

  test("shows what had landed at a position, also of reads that began before it and landed after it", function* () {
    yield* makeCompany((companies += 1n)).sync()
    const companyId = (companies += 1n)
    const read = (id: number, version: number, began: number, landed: number) =>
      execute(
        `insert into tributary.change_batches (company_id, resource, history, ids, versions, changes, began, landed_at)
           values (${companyId}, 'things', '"erp_history"."things"', '{${id}}', '{${version}}', 1, to_timestamp(${began}), to_timestamp(${landed}))`
      ).pipe(
        Effect.andThen(ChangeFeed.order),
        Effect.andThen(ChangeFeed.end),
        Effect.map((end) => `position ${ChangeFeed.textOf(end)}`)
      )
    yield* execute(
      `insert into erp.things (_company_id, id, _version, _origin, _observed_at)
         values (${companyId}, 1, 3, 'scan', to_timestamp(12)), (${companyId}, 2, 1, 'scan', to_timestamp(5))`
    )
    yield* execute(
      `insert into erp_history.things__superseded (_company_id, id, _version, _origin, _observed_at, _valid_to)
         values (${companyId}, 1, 1, 'scan', to_timestamp(10), to_timestamp(6)),
                (${companyId}, 1, 2, 'scan', to_timestamp(6), to_timestamp(12))`
    )
    const expectations: ReadonlyArray<readonly [position: string, rows: ReadonlyArray<string>]> = [
      [yield* read(1, 1, 10, 11), ["1 1"]],
      [yield* read(2, 1, 5, 20), ["1 1", "2 1"]],
      [yield* read(1, 2, 6, 21), ["1 2", "2 1"]],
      [yield* read(1, 3, 12, 22), ["1 3", "2 1"]],
      // A batch of a company that moved here landed long before its position.
      [yield* read(3, 1, 1, 2), ["1 3", "2 1"]]
    ]
    for (const [position, expected] of expectations) {
      const rows = yield* readAsOf<{ row: string }>(
        position,
        `select id || ' ' || _version as row from erp_asof.things where _company_id = ${companyId} order by id`
      )
      assert.deepStrictEqual(valuesOf(rows, "row"), expected, position)
    }
  })

  test("is possible for the models, and for a reader of one company, which sees its rows only", function* () {
    const company = makeCompany((companies += 1n))
    company.put(1, "one")
    yield* company.sync()
    yield* ChangeFeed.order
    const { number: position } = yield* ChangeFeed.end
    company.put(1, "second")
    company.put(2, "two")
    yield* company.sync()
    yield* applyViews({ models: [namesModel], datasets: datasetsDefault })
    const names = (dataset: string) =>
      `select name, day = current_date as today from ${dataset}.names where company_id = ${company.companyId} order by name`
    const one = [{ name: "one", today: true }]
    assert.deepStrictEqual(yield* readAsOf(`position ${position}`, names("erp_models_asof")), one)
    assert.strictEqual((yield* readAsOf(`position ${position}`, names("erp_models"))).length, 2)
    const dated = yield* readAsOf<{ day: string }>(
      "2027-12-31 23:59:59+00",
      "select day::text as day from erp_models_asof.names"
    )
    assert.deepStrictEqual(dated[0], { day: "2027-12-31" })

    const role = `reader_${process.pid}`
    yield* companyReader(company.companyId, role)
    const read = (moment: string, dataset: string) => readAsOf(moment, `select name from ${dataset}.things`, { role })
    const own = `erp_asof_${company.companyId}`
    assert.deepStrictEqual(yield* read(`position ${position}`, own), [{ name: "one" }])
    assert.strictEqual((yield* read("now", own)).length, 2)
    assert.match(DatabaseError.from("")(yield* Effect.flip(read("now", "erp_asof"))).message, /permission denied/)
  })

  test("reads views that are made again when they were dropped, and follow new columns of the table", function* () {
    const own = { current: "made", history: "made_history", asOf: "made_asof" }
    const table = tableOf(things, own)
    yield* TablePlan.apply([table])
    assert.deepStrictEqual(yield* TablePlan.planFor([table]), [])
    yield* execute("drop view made_asof.things")
    yield* execute("drop index made_history.things__overtaken")
    yield* TablePlan.apply([table])
    const more = tableOf({ ...things, fields: [...things.fields, { ...things.fields[1]!, name: "label" }] }, own)
    yield* TablePlan.apply([more])
    assert.deepStrictEqual(yield* TablePlan.planFor([more]), [])
    const columns = (dataset: string) =>
      execute(
        `select attname, format_type(atttypid, atttypmod) as type from pg_attribute where attrelid = '${dataset}.things'::regclass and attnum > 0 order by attnum`
      )
    assert.deepStrictEqual(yield* columns("made_asof"), yield* columns("made"))
  })
})

suite("a query as of a moment whose history was removed", layerWarehouse, (test) => {
  test("says what to do without a moment, for an impossible one, and for one without its history", function* () {
    const company = makeCompany((companies += 1n))
    company.put(1, "one")
    yield* company.sync()
    company.put(1, "two")
    yield* company.sync()
    yield* ChangeFeed.order
    const { number } = yield* ChangeFeed.end
    const messages = yield* Effect.forEach(
      [
        ["", ""],
        ["yesterday-ish", ""],
        ["position x", ""],
        ["now", "guess"],
        ["position 1", "source"],
        [`position ${number + 1n}`, ""],
        [`position ${number}-0`, ""]
      ] as const,
      ([asOf, mode]) => Effect.map(failure(asOf, mode), ({ code, message }) => `${code} ${message}`)
    )
    for (const [index, expected] of [
      /^TB004 tributary.as_of is not set \(Set a moment/,
      /^TB004 tributary.as_of is "yesterday-ish" \(Set it to/,
      /^TB004 tributary.as_of is "position x" \(Set it to/,
      /^TB004 tributary.as_of_mode is "guess" \(Set it to/,
      /^TB004 the source has no positions.*tributary.as_of_mode to warehouse/,
      /^TB002 position \d+ was not given by this feed.*Choose a moment/,
      /^TB002/
    ].entries())
      assert.match(messages[index]!, expected)
    yield* HistoryRetention.remove(datasetsDefault.history, Duration.zero)
    assert.match((yield* failure("2026-01-01")).message, /removed with the history \(Choose a later moment/)
    assert.match((yield* failure("position 1")).message, /removed with the history \(Choose a later position/)
    assert.isAbove((yield* readAsOf("now", "select from erp_asof.things")).length, 0)
  })
})
