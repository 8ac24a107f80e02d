/**
 * A past that is no longer complete: an as-of query answers what the warehouse showed then, or fails. Each test damages the
 * tables of the resource as a person or a restore does.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import { makeTimedCompany } from "../../support/feeding.ts"
import { execute, layerWarehouse, passMinute, sql } from "../../support/postgres.ts"
import { companyReader, readAsOf } from "./readers.ts"
import { suite } from "../../support/suite.ts"

/** Runs several statements in one transaction. */
const script = (...statements: ReadonlyArray<string>) =>
  sql.withTransaction(Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true }))

const things = (dataset: string) => `select id || ' ' || name as row from ${dataset}.things order by _company_id, id`

const rowsNow = Effect.map(execute<{ row: string }>(things("erp")), (rows) => rows.map(({ row }) => row))

/** The rows as of a moment or position. */
const asOf = (moment: string, mode = "") =>
  Effect.map(readAsOf<{ row: string }>(moment, things("erp_asof"), { mode }), (rows) => rows.map(({ row }) => row))

const refusal = (moment: string, mode = "") =>
  Effect.map(Effect.flip(asOf(moment, mode)), (error) => DatabaseError.from("")(error).message)

/** A moment and a position, with the rows of that time. */
const moment = Effect.gen(function* () {
  yield* ChangeFeed.order
  const time = yield* passMinute
  return { time, position: `position ${ChangeFeed.textOf(yield* ChangeFeed.end)}`, rows: yield* rowsNow }
})
type Moment = Effect.Success<typeof moment>

const assertAnswers = Effect.fnUntraced(function* ({ time, position, rows }: Moment) {
  assert.deepStrictEqual(yield* asOf(time), rows)
  assert.deepStrictEqual(yield* asOf(position), rows)
})

const assertRefuses = Effect.fnUntraced(function* ({ time, position }: Moment, reason: RegExp) {
  for (const message of [yield* refusal(time), yield* refusal(position), yield* refusal(time, "source")])
    assert.match(message, reason)
})

/** No two versions of a record are valid at the begin of any version. */
const assertSingle = Effect.gen(function* () {
  const times = yield* execute<{ time: string }>(
    "select distinct _valid_from::text as time from erp_history.things order by 1"
  )
  for (const { time } of times) {
    const rows = yield* Effect.result(asOf(time))
    if (rows._tag === "Failure") continue
    const ids = rows.success.map((row) => row.split(" ")[0])
    assert.lengthOf(new Set(ids), ids.length, time)
  }
})

/** A company whose record 1 has three versions, and a moment after each. */
const versioned = Effect.gen(function* () {
  yield* execute("drop schema if exists erp, erp_history, erp_asof, erp_models_asof, copies cascade")
  yield* execute("create schema copies")
  yield* execute(
    "truncate tributary.checkpoints, tributary.companies, tributary.change_batches, tributary.runs cascade"
  )
  const company = makeTimedCompany(1n)
  company.put(1, "first")
  company.put(2, "other")
  yield* company.sync(true)
  const first = yield* moment
  company.put(1, "second")
  yield* company.sync()
  const second = yield* moment
  return { company, first, second }
})

const currentTable = "erp.things"
const historyTable = "erp_history.things__superseded"

const copy = (table: string) => execute(`create table copies.${table.split(".")[1]!} as table ${table}`)

const anew = (table: string) => {
  const [schema, name] = table.split(".")
  return script(
    `create table public.${name} (like ${table} including all)`,
    `insert into public.${name} select * from copies.${name}`,
    `drop table ${table} cascade`,
    `alter table public.${name} set schema ${schema}`
  )
}

const refilled = (table: string, remove: "truncate" | "delete from") =>
  script(`${remove} ${table}`, `insert into ${table} select * from copies.${table.split(".")[1]!}`)

const controlTables = ["checkpoints", "change_batches", "change_feed", "runs"].map((name) => `tributary.${name}`)

const emptiedAndFilled = (table: string) =>
  script(
    `truncate ${table} cascade`,
    `insert into ${table} overriding system value select * from copies.${table.split(".")[1]!}`
  )

/** Both tables of the rows, in one transaction. */
const deletedAndFilled = script(
  ...[currentTable, historyTable].map((table) => `delete from ${table}`),
  ...[currentTable, historyTable].map((table) => `insert into ${table} select * from copies.${table.split(".")[1]!}`)
)

suite("the past", layerWarehouse, (test, it) => {
  it.effect.each([
    ["dropped", currentTable, `drop table ${currentTable} cascade`],
    ["truncated", currentTable, `truncate ${currentTable}`],
    ["dropped", historyTable, `drop table ${historyTable} cascade`],
    ["truncated", historyTable, `truncate ${historyTable}`],
    ["emptied", historyTable, `delete from ${historyTable}`]
  ] as const)("is refused once a table was %s (%s), before the next sync and after it", ([kind, table, damage]) =>
    Effect.gen(function* () {
      const { company, first, second } = yield* versioned
      yield* assertAnswers(first)
      yield* assertAnswers(second)
      yield* execute(damage)
      // Dropping a table drops the views over it.
      const between = kind === "dropped" ? /does not exist/ : /Run "tributary sync/
      yield* assertRefuses(first, between)
      yield* assertRefuses(second, between)
      yield* company.sync()
      yield* assertRefuses(first, /is not complete before .* (another table|truncated|deleted by hand).*Choose/)
      yield* assertRefuses(second, /things of company 1/)
      const repaired = yield* moment
      assert.deepStrictEqual(repaired.rows, ["1 second", "2 other"], table)
      company.put(1, "third")
      yield* company.sync()
      yield* assertAnswers(repaired)
      yield* assertAnswers(yield* moment)
      yield* assertSingle
    })
  )

  it.effect.each([
    ["created anew", currentTable, anew],
    ["created anew", historyTable, anew],
    ["truncated and filled", currentTable, (table: string) => refilled(table, "truncate")],
    ["truncated and filled", historyTable, (table: string) => refilled(table, "truncate")],
    ["emptied and filled", historyTable, (table: string) => refilled(table, "delete from")]
  ] as const)("is refused once an older copy was restored alone: %s (%s)", ([, table, restore]) =>
    Effect.gen(function* () {
      const { company, first, second } = yield* versioned
      yield* copy(table)
      company.put(1, "third")
      yield* company.sync()
      const third = yield* moment
      company.put(1, "fourth")
      yield* company.sync()
      yield* restore(table)
      for (const one of [first, second, third]) yield* assertRefuses(one, /does not exist|Run "tributary sync/)
      yield* company.sync()
      for (const one of [first, second, third]) yield* assertRefuses(one, /is not complete before/)
      const repaired = yield* moment
      assert.deepStrictEqual(repaired.rows, ["1 fourth", "2 other"])
      company.put(1, "fifth")
      yield* company.sync()
      yield* assertAnswers(repaired)
      yield* assertAnswers(yield* moment)
      yield* assertSingle
    })
  )

  test("keeps rows that a person deletes or replaces by older ones, and the next sync reads every record", function* () {
    const { company, first, second } = yield* versioned
    yield* copy(currentTable)
    company.put(1, "third")
    yield* company.sync()
    const third = yield* moment
    yield* execute("delete from erp.things where id = 2")
    yield* assertRefuses(first, /Run "tributary sync/)
    yield* company.sync()
    assert.deepStrictEqual(yield* rowsNow, ["1 third", "2 other"])
    for (const one of [first, second, third, yield* moment]) yield* assertAnswers(one)
    yield* refilled(currentTable, "delete from")
    yield* assertRefuses(third, /Run "tributary sync/)
    yield* company.sync()
    assert.deepStrictEqual(yield* rowsNow, ["1 third", "2 other"])
    for (const one of [first, second, third, yield* moment]) yield* assertAnswers(one)
    yield* assertSingle
  })

  test("stays answered after a rewrite of its tables that loses nothing", function* () {
    const { company, first, second } = yield* versioned
    for (const rewrite of [
      `vacuum full ${currentTable}`,
      `vacuum full ${historyTable}`,
      `cluster ${currentTable} using things_pkey`
    ]) {
      yield* execute(rewrite)
      yield* assertRefuses(first, /Run "tributary sync/)
      yield* company.sync()
      for (const one of [first, second, yield* moment]) yield* assertAnswers(one)
    }
  })

  test("is refused after the control plane was lost or emptied, until a full scan", function* () {
    const { company, first } = yield* versioned
    yield* execute("truncate tributary.checkpoints cascade")
    yield* assertRefuses(first, /no checkpoint tells/)
    yield* execute("truncate tributary.companies")
    yield* assertRefuses(first, /no checkpoint tells/)
    yield* company.sync()
    yield* assertRefuses(first, /is not complete before .* older than its checkpoint/)
    yield* assertAnswers(yield* moment)
  })

  test("stays answered up to the last run after a restore of the control plane alone", function* () {
    const { company, first, second } = yield* versioned
    yield* execute("create table copies.checkpoints as table tributary.checkpoints")
    company.put(1, "third")
    yield* company.sync()
    const third = yield* moment
    yield* script(
      "truncate tributary.checkpoints cascade",
      "insert into tributary.checkpoints select * from copies.checkpoints"
    )
    yield* company.sync()
    for (const { time, rows } of [first, second]) assert.deepStrictEqual(yield* asOf(time), rows)
    assert.match(yield* refusal(third.time), /is not complete before .* truncated/)
    yield* assertAnswers(yield* moment)
    yield* assertSingle
  })

  test("is refused once rows were deleted and filled, and a later control plane without that mark restored", function* () {
    const { company, first, second } = yield* versioned
    for (const table of [currentTable, historyTable]) yield* copy(table)
    company.put(1, "third")
    company.put(3, "new")
    yield* company.sync()
    const third = yield* moment
    for (const table of controlTables) yield* copy(table)
    yield* deletedAndFilled
    for (const table of controlTables) yield* emptiedAndFilled(table)
    for (const one of [first, second, third]) yield* assertRefuses(one, /Run "tributary sync/)
    yield* company.sync()
    for (const one of [first, second, third]) yield* assertRefuses(one, /is not complete before/)
    const repaired = yield* moment
    assert.deepStrictEqual(repaired.rows, ["1 third", "2 other", "3 new"])
    yield* assertAnswers(repaired)
    yield* assertSingle
  })

  test("of a control plane and deleted and filled rows of one moment is complete before that moment", function* () {
    const { company, first, second } = yield* versioned
    yield* company.sync()
    for (const table of [currentTable, historyTable, ...controlTables]) yield* copy(table)
    company.put(1, "third")
    yield* company.sync()
    const third = yield* moment
    yield* deletedAndFilled
    for (const table of controlTables) yield* emptiedAndFilled(table)
    yield* company.sync()
    for (const { time, rows } of [first, second]) assert.deepStrictEqual(yield* asOf(time), rows)
    assert.match(yield* refusal(third.time), /is not complete before/)
    yield* assertAnswers(yield* moment)
    yield* assertSingle
  })

  test("at a position is refused where a version that the restored feed lacks may have landed", function* () {
    const { company, first, second } = yield* versioned
    const other = makeTimedCompany(2n)
    yield* passMinute
    const began = yield* passMinute
    other.put(7, "x")
    yield* other.sync(true)
    const at = yield* moment
    for (const table of controlTables) yield* copy(table)
    company.put(1, "third")
    yield* company.sync()
    // The read of the third version began before the landing of the other company.
    yield* execute(`update erp.things set _observed_at = '${began}' where id = 1`)
    yield* execute(`update erp_history.things__superseded set _valid_to = '${began}' where id = 1 and _version = 2`)
    yield* execute(
      `update tributary.change_batches set began = '${began}' where id = (select max(id) from tributary.change_batches)`
    )
    yield* ChangeFeed.order
    assert.deepStrictEqual(yield* asOf(at.position), at.rows)
    for (const table of controlTables) yield* emptiedAndFilled(table)
    other.put(7, "y")
    yield* other.sync()
    // The table shows the third version here, and the feed does not tell it yet.
    const between = yield* moment
    assert.match(yield* refusal(between.position), /things of company 1/)
    yield* company.sync()
    for (const { position } of [at, between])
      assert.match(yield* refusal(position), /things of company 1 is not complete before position/)
    for (const { position, rows } of [first, second]) assert.deepStrictEqual(yield* asOf(position), rows)
    yield* assertAnswers(yield* moment)
    company.put(1, "fourth")
    yield* company.sync(true)
    assert.match(yield* refusal(at.position), /things of company 1 is not complete before position/)
    assert.deepStrictEqual(yield* asOf(second.position), second.rows)
    yield* assertAnswers(yield* moment)
  })

  test("of all datasets restored to one moment is complete before that moment and after the next sync", function* () {
    const { company, first, second } = yield* versioned
    const all = [currentTable, historyTable, ...controlTables]
    yield* company.sync()
    for (const table of all) yield* copy(table)
    company.put(1, "third")
    yield* company.sync()
    const third = yield* moment
    for (const table of all) yield* emptiedAndFilled(table)
    yield* company.sync()
    yield* assertAnswers(first)
    yield* assertAnswers(second)
    assert.match(yield* refusal(third.time), /is not complete before/)
    const repaired = yield* moment
    assert.deepStrictEqual(repaired.rows, ["1 third", "2 other"])
    yield* assertAnswers(repaired)
    yield* assertSingle
  })

  test("of one company does not hinder the reader of another one", function* () {
    const { company, first } = yield* versioned
    const other = makeTimedCompany(2n)
    other.put(7, "of the other company")
    yield* other.sync(true)
    yield* company.sync()
    const both = yield* moment
    yield* execute("delete from erp_history.things__superseded where _company_id = 1")
    const role = `past_reader_${process.pid}`
    for (const companyId of [1n, 2n]) yield* companyReader(companyId, `${role}_${companyId}`)
    const read = (companyId: bigint) =>
      readAsOf(both.time, `select name from erp_asof_${companyId}.things`, { role: `${role}_${companyId}` })
    assert.deepStrictEqual(yield* read(2n), [{ name: "of the other company" }])
    assert.match(DatabaseError.from("")(yield* Effect.flip(read(1n))).message, /things of company 1/)
    yield* assertRefuses(first, /things of company 1/)
    yield* company.sync()
    assert.deepStrictEqual(yield* read(2n), [{ name: "of the other company" }])
    assert.match(DatabaseError.from("")(yield* Effect.flip(read(1n))).message, /is not complete before/)
    yield* execute("drop schema if exists erp_asof_1, erp_asof_2, erp_1, erp_2, erp_history_1, erp_history_2 cascade")
  })
})
