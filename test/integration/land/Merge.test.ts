/** The merge for new and for old Postgres versions: both give the same rows for every pair of a kept and a new row. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import {
  countStaleAnswers,
  type ConflictPolicy,
  mergeSql,
  planForAll,
  planForKeys
} from "../../../src/land/MergeSql.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { plain, things } from "../../support/tiny.ts"
import { warehouseWith } from "../sync/syncing.ts"
import { suite } from "../../support/suite.ts"

const tables = { things: tableOf(things), plain: tableOf(plain) }

const warehouse = warehouseWith([tables.things, tables.plain])

/** Every combination of a kept and a sent row, each under its own id; then new rows, and some unchanged ones. */
const pairs = (table: Table): string => {
  const stamped = table.resource.field.has("lastchangedate")
  const values = (list: string, alias: string) => `(values ${list}) ${alias}(v)`
  const stamps = stamped ? "(null), (1), (2), (3)" : "(null::int)"
  return (
    `create temp table pairs as select row_number() over () as id, kn.v as kept_name, ks.v as kept_stamp, ko.v as kept_at, ` +
    `kd.v as kept_gone, kc.v as kept_custom, sn.v as sent_name, ss.v as sent_stamp, so.v as sent_at, sc.v as sent_custom from ` +
    [
      values("('a'), (null)", "kn"),
      values(stamps, "ks"),
      values("(10), (20)", "ko"),
      values("(true), (false)", "kd"),
      values(`('{"x":1.10}'), (null)`, "kc"),
      values("('a'), ('b')", "sn"),
      values(stamps, "ss"),
      values("(5), (10), (30)", "so"),
      values(`('{"x":1.10}'), ('{"x":1.1}'), (null)`, "sc")
    ].join(" cross join ")
  )
}

const stampOf = (table: Table, value: string) =>
  table.resource.field.has("lastchangedate") ? `timestamptz '2026-01-01' + ${value} * interval '1 second'` : null

const instant = (value: string) => `timestamptz '2026-02-01' + ${value} * interval '1 second'`

const prepared = (table: Table): ReadonlyArray<string> => {
  const stamp = stampOf(table, "kept_stamp")
  const sent = stampOf(table, "sent_stamp")
  const also = stamp === null ? "" : ', "lastchangedate"'
  return [
    `insert into ${table.current} ("_company_id", id, name${also}, custom_fields, _version, _origin, _run_id, _source, _observed_at, _deleted_at) ` +
      `select 1, id, kept_name${stamp === null ? "" : `, ${stamp}`}, kept_custom::jsonb, 1 + id % 3, 'scan', 1, 'before', ${instant("kept_at")}, ` +
      `case when kept_gone then ${instant("kept_at")} end from pairs where id % 20 <> 0`,
    // Rows that a person deleted, some of them after the read of the sent record began.
    `insert into ${table.superseded} ("_company_id", id, _version, _op, _origin, _run_id, _source, _observed_at, _valid_to) ` +
      `select 1, id, 3, 'insert', 'scan', 1, 'before', ${instant("1")}, ${instant("20")} from pairs where id % 20 = 0`,
    mergeSql(table).createStage,
    `insert into "stage_${table.name}" (id, name${also}, custom_fields, "_began", "_source") ` +
      `select id, sent_name${sent === null ? "" : `, ${sent}`}, sent_custom::jsonb, ${instant("sent_at")}, 'request ' || id from pairs where id % 19 <> 0`
  ]
}

suite("the merge", warehouse, (test) => {
  for (const [name, table] of Object.entries(tables)) {
    for (const authority of ["newer", "source"] as const satisfies ReadonlyArray<ConflictPolicy>) {
      test(`${name}, ${authority}: gives the same rows with one statement as with two`, function* () {
        const client = yield* (yield* Database).connect
        const run = <Row extends Record<string, unknown>>(text: string, values?: ReadonlyArray<unknown>) =>
          query<Row>(client, "merge", text, values)
        const [version] = yield* run<{ n: number }>("select current_setting('server_version_num')::int as n")
        if (version!.n < countStaleAnswers) return
        yield* run(pairs(table))
        const sql = mergeSql(table, authority)
        const parameters = [1, "scan", 7, "2026-01-01T00:00:02Z", true]
        const after = Effect.fnUntraced(function* (merge: Effect.Effect<unknown, unknown>) {
          yield* run("begin")
          for (const statement of prepared(table)) yield* run(statement)
          yield* run(planForKeys)
          const counts = yield* merge
          const current = yield* run(`select t::text from ${table.current} t order by id`)
          const history = yield* run(`select h::text from ${table.superseded} h order by id`)
          const [early] = yield* run<{ n: number }>(
            `select count(*)::int as n from ${table.current} t join ${table.superseded} h on h.id = t.id ` +
              `where t._version <= h._version or t.id % 20 = 0 and t._observed_at < h._valid_to`
          )
          assert.strictEqual(early!.n, 0, "a version begins before the one before it ended")
          yield* run("rollback")
          return { counts, current, history }
        })
        const two = yield* after(
          Effect.gen(function* () {
            const superseded = yield* run<{ n: number }>(
              `with kept as (${sql.supersede} returning 1) select count(*)::int as n from kept`,
              [1]
            )
            const [row] = yield* run(sql.merge, parameters)
            return { ...row, updated: superseded[0]!.n }
          })
        )
        const one = yield* after(Effect.map(run(sql.mergeKeeping, parameters), ([row]) => ({ ...row })))
        assert.deepStrictEqual(one, two)
        assert.isAbove(two.history.length, 20)
        assert.isAbove(two.current.length, two.history.length)
      })
    }
  }

  test("runs without JIT compilation and leaves the session setting unchanged", function* () {
    const client = yield* (yield* Database).connect
    const jit = Effect.map(
      query<{ jit: string }>(client, "look", "select current_setting('jit') as jit"),
      ([row]) => row!.jit
    )
    yield* query(client, "compile", "set jit = on")
    for (const plan of [planForKeys, planForAll]) {
      yield* query(client, "begin", `begin; ${plan}`)
      assert.strictEqual(yield* jit, "off")
      yield* query(client, "commit", "commit")
      assert.strictEqual(yield* jit, "on")
    }
  })

  test("uses the primary key index, also for a table without statistics", function* () {
    const client = yield* (yield* Database).connect
    const run = <Row extends Record<string, unknown>>(text: string, values?: ReadonlyArray<unknown>) =>
      query<Row>(client, "merge", text, values)
    const [version] = yield* run<{ n: number }>("select current_setting('server_version_num')::int as n")
    if (version!.n < countStaleAnswers) return
    const sql = mergeSql(tables.things)
    yield* run("begin")
    yield* run(
      `insert into erp.things ("_company_id", id, name, _origin, _observed_at) select 1, g, 'a', 'scan', now() from generate_series(1, 20000) g`
    )
    yield* run(`${planForKeys}; ${sql.createStage}`)
    yield* run(
      `insert into "stage_things" (id, name, "_began") select g, 'b', now() from generate_series(15001, 17500) g`
    )
    const plan = yield* run<{ "QUERY PLAN": string }>(`explain ${sql.mergeKeeping}`, [1, "scan", 7, null, false])
    yield* run("rollback")
    const lines = plan.map((row) => row["QUERY PLAN"])
    assert.isTrue(
      lines.some((line) => /Index Cond: .*\(id = s\.id\)/.test(line)),
      lines.join("\n")
    )
    assert.isFalse(
      lines.some((line) => line.includes("Join Filter")),
      lines.join("\n")
    )
  })
})
