/** Damaged tables: what is reported, what other resources do meanwhile, and what a repair keeps. */
import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { history } from "../../../src/cli/doctor/Tables.ts"
import { about } from "../../../src/cli/doctor/Finding.ts"
import { read } from "../../../src/cli/query.ts"
import * as QueryInput from "../../../src/outbox/input/QueryInput.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as TableRepair from "../../../src/warehouse/TableRepair.ts"
import * as VersionOverlap from "../../../src/warehouse/VersionOverlap.ts"
import { layerWarehouse as warehouse, sql } from "../../support/postgres.ts"
import { things } from "../../support/tiny.ts"
import { suite } from "../../support/suite.ts"
import { valuesOf } from "../../support/rows.ts"

const named = (path: string): Table => tableOf({ ...things, path })

const execute = (...texts: ReadonlyArray<string>) =>
  Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true })

const select = (text: string) => sql.unsafe<Record<string, unknown>>(text)

const insert = (
  path: string,
  id: number | null,
  version: number,
  name: string,
  at = `now() + interval '${version} s'`
) =>
  `insert into erp.${path} (_company_id, id, name, price, _version, _op, _origin, _observed_at)
   values (1, ${id}, '${name}', 1.25, ${version}, 'update', 'scan', ${at})`

const insertVersion = (path: string, id: number, version: number, name: string, at: string) =>
  `insert into erp_history.${path}__superseded (_company_id, id, name, _version, _op, _origin, _observed_at, _valid_to)
   values (1, ${id}, '${name}', ${version}, 'insert', 'scan', '${at}', '2026-02-01Z')`

/** A table with two records and a superseded version. */
const filled = Effect.fnUntraced(function* (path: string) {
  yield* TablePlan.apply([named(path)])
  yield* execute(
    insert(path, 1, 2, "one"),
    insert(path, 2, 1, "two"),
    insertVersion(path, 1, 1, "first", "2026-01-01Z")
  )
  return named(path)
})

interface Damage {
  readonly name: string
  /** Statements that damage the table `PATH`. */
  readonly damage: ReadonlyArray<string>
  readonly reported: RegExp
  readonly done: RegExp
  /** The names of the records after the repair; default: as before. */
  readonly names?: ReadonlyArray<string>
}

const cases: ReadonlyArray<Damage> = [
  {
    name: "rows that were restored over others",
    damage: [
      "alter table erp.PATH drop constraint PATH_pkey",
      "insert into erp.PATH select * from erp.PATH",
      insert("PATH", 1, 1, "older")
    ],
    reported: /erp\.PATH is damaged: it has no primary key, and several rows for one record$/,
    done: /^erp\.PATH: 2 copies of rows removed; 1 older row of the same records removed$/
  },
  {
    name: "a history that was restored over another one",
    damage: [
      "alter table erp_history.PATH__superseded drop constraint PATH__superseded_pkey",
      "insert into erp_history.PATH__superseded select * from erp_history.PATH__superseded",
      insertVersion("PATH", 1, 1, "another", "2026-01-02Z")
    ],
    reported: /erp_history\.PATH__superseded is damaged: it has no primary key, and several rows for one version$/,
    done: /^erp_history\.PATH__superseded: 1 copy of rows removed; 1 version moved to erp_history\.PATH__superseded__damaged: another version has the same number$/
  },
  {
    name: "a copy of the table without constraints, and rows without a key",
    damage: [
      "alter table erp.PATH rename to PATH_kept",
      "create table erp.PATH as table erp.PATH_kept",
      insert("PATH", null, 1, "unknown")
    ],
    reported: /erp\.PATH is damaged: rows have no value in id$/,
    done: /^erp\.PATH: 1 row without id moved to erp\.PATH__damaged$/
  },
  {
    name: "a column of a type that has the values",
    damage: [
      "drop view erp_history.PATH, erp_asof.PATH",
      "alter table erp.PATH alter column price type double precision"
    ],
    reported: /erp\.PATH is damaged: the column price is double precision and should be numeric\(20,4\)$/,
    done: /^erp\.PATH: the column price was converted to numeric\(20,4\)$/
  },
  {
    name: "a column of a type with other values",
    damage: [
      "drop view erp_history.PATH, erp_asof.PATH",
      "alter table erp.PATH alter column price type text using 'cheap'"
    ],
    reported: /the column price is text and should be numeric\(20,4\)$/,
    done: /^erp\.PATH: the column price is price__damaged now, because its values are no numeric\(20,4\); a new one was created$/
  },
  {
    name: "a view in the place of the table",
    damage: ["alter table erp.PATH rename to PATH_kept", "create view erp.PATH as table erp.PATH_kept"],
    reported: /erp\.PATH is damaged: it is a view and should be a table$/,
    done: /^erp\.PATH: it is erp\.PATH__damaged now, and views that read it still do; a new one was created$/,
    names: []
  },
  {
    name: "tables in the place of the views",
    damage: [
      "drop view erp_history.PATH, erp_asof.PATH",
      "create table erp_history.PATH (a int)",
      "create table erp_asof.PATH (a int)"
    ],
    reported: /erp_history\.PATH is damaged: it is a table and should be a view$/,
    done: /^erp_history\.PATH: it is erp_history\.PATH__damaged now/
  },
  {
    name: "a lost key column",
    damage: ["alter table erp.PATH drop column id cascade"],
    reported: /erp\.PATH is damaged: it lacks id, without which its rows mean nothing$/,
    done: /^erp\.PATH: it is erp\.PATH__damaged now/,
    names: []
  },
  {
    name: "a key on other columns",
    damage: ["alter table erp.PATH drop constraint PATH_pkey, add primary key (id)"],
    reported: /erp\.PATH is damaged: its primary key is \(id\)$/,
    done: /^erp\.PATH: the primary key on \(id\) was removed$/
  },
  {
    name: "a key that a landing cannot use",
    damage: ["alter table erp.PATH drop constraint PATH_pkey, add primary key (_company_id, id) deferrable"],
    reported: /erp\.PATH is damaged: its primary key is \(.+\)$/,
    done: /^erp\.PATH: the primary key on \(.+\) was removed$/
  },
  {
    name: "columns that refuse records",
    damage: [
      "alter table erp.PATH add column mine int not null default 1, alter column name set not null",
      "alter table erp.PATH alter column mine drop default"
    ],
    reported: /its column mine refuses records without a value|its column name refuses records without a value/,
    done: /the column mine takes the values of the source again/
  },
  {
    name: "a child table, whose rows count as its own",
    damage: ["create table erp.PATH_more () inherits (erp.PATH)", insert("PATH_more", 1, 1, "again")],
    reported: /erp\.PATH is damaged: the rows of erp\.PATH_more count as its own \(inheritance\)$/,
    done: /^erp\.PATH: erp\.PATH_more no longer inherits from it$/
  }
]

suite("a damaged table", warehouse, (test) => {
  for (const [index, one] of cases.entries()) {
    const path = `damage${index}`
    const own = (text: string) => text.replaceAll("PATH", path)
    const pattern = ({ source }: RegExp) => new RegExp(own(source))
    test(`${one.name}: is reported, blocks no other, and is repaired`, function* () {
      const table = yield* filled(path)
      const other = named(`${path}_other`)
      yield* execute(...one.damage.map(own))
      const [before] = yield* select(`select pg_relation_filenode('erp_history.${path}__superseded') as history,
          case when to_regclass('erp.${path}') is not null then pg_relation_filenode('erp.${path}') end as current`)
      const { damaged } = yield* TablePlan.applyUndamaged([table, other])
      assert.isTrue(damaged.length > 0 && damaged.every(({ resource }) => resource === path))
      assert.match(damaged[0]!.message, pattern(one.reported))
      assert.deepStrictEqual((yield* TablePlan.plan([other])).statements, [])
      assert.strictEqual((yield* Effect.flip(TablePlan.apply([table])))._tag, "TableDamaged")

      const repaired = yield* TablePlan.changing(path, TableRepair.repair(table))
      assert.match(`${repaired[0]!.table}: ${repaired[0]!.done.join("; ")}`, pattern(one.done))
      assert.deepInclude(yield* TablePlan.plan([table]), { statements: [], damaged: [] })
      const rows = yield* select(`select name from erp.${path} order by id`)
      assert.deepStrictEqual(valuesOf(rows, "name"), [...(one.names ?? ["one", "two"])])
      assert.lengthOf(yield* select(`select name from erp_history.${path}__superseded`), 1)
      yield* select(`select * from erp_history.${path}`)
      // By its new file the next run recognises a repaired table, and reads every record.
      const [after] = yield* select(`select pg_relation_filenode('erp_history.${path}__superseded') as history,
          pg_relation_filenode('erp.${path}') as current`)
      for (const { table: name } of repaired) {
        if (name === `erp.${path}`) assert.notStrictEqual(after!["current"], before!["current"])
        if (name === `erp_history.${path}__superseded`) assert.notStrictEqual(after!["history"], before!["history"])
      }
    })
  }

  test("keeps what a copy without constraints has, and adds them again without a repair", function* () {
    const table = yield* filled("copied")
    yield* execute("alter table erp.copied rename to kept", "create table erp.copied as table erp.kept")
    const { damaged, statements } = yield* TablePlan.applyUndamaged([table])
    assert.deepStrictEqual(damaged, [])
    assert.include(statements.join("\n"), 'alter table "erp"."copied" add primary key')
    assert.include(statements.join("\n"), 'alter column "_op" set not null')
    assert.deepStrictEqual(yield* TablePlan.planFor([table]), [])
  })

  test("has versions of a record that are valid at one moment, until a repair ends them", function* () {
    const [table, other] = [yield* filled("overlapping"), yield* filled("disjoint")]
    const its = about("history")
    assert.strictEqual((yield* history(its, [table, other]))[0]?.status, "ok")
    yield* execute("update erp_history.overlapping__superseded set _valid_to = '2999-01-01Z'")
    const [finding] = yield* history(its, [table, other])
    assert.deepStrictEqual(
      [finding?.status, finding?.remedy],
      ["failed", "tributary schema repair ends each version where the next one begins"]
    )
    assert.include(finding?.message, "valid at one moment in erp_history.overlapping__superseded, as of record 1:")
    assert.strictEqual(yield* VersionOverlap.repair(table), 1)
    assert.strictEqual(yield* VersionOverlap.repair(table), 0)
    assert.strictEqual((yield* history(its, [table, other]))[0]?.status, "ok")
    const [version] = yield* select(`select s._valid_to = c._observed_at as ends_at_next
        from erp_history.overlapping__superseded s join erp.overlapping c using (_company_id, id)`)
    assert.isTrue(version?.["ends_at_next"])
  })

  test("leaves a table that a view of a person keeps from its repair, and names the view", function* () {
    const table = yield* filled("viewed")
    yield* execute(
      "drop view erp_history.viewed, erp_asof.viewed",
      "alter table erp.viewed alter column price type double precision",
      "create view public.mine as select price from erp.viewed"
    )
    assert.include((yield* Effect.flip(TablePlan.changing("viewed", TableRepair.repair(table)))).message, "mine")
    assert.lengthOf((yield* TablePlan.plan([table])).damaged, 1)
  })

  test("is not read by a query, nor by a push from one, under any name", function* () {
    yield* filled("keyless")
    yield* execute(
      "create table erp.own (note text)",
      "alter table erp.keyless drop constraint keyless_pkey",
      "insert into erp.keyless select * from erp.keyless",
      "create view public.sums as select sum(price) from erp.keyless",
      "grant select on public.sums to public"
    )
    for (const text of [
      "select count(*) from keyless",
      "select * from public.sums",
      "select * from erp_history.keyless"
    ]) {
      const failure = yield* Effect.flip(read(text))
      assert.match(failure.message, /erp\.keyless is damaged: it has no primary key.*tributary schema repair/)
    }
    const pushed = yield* Effect.flip(Stream.runCollect(QueryInput.read("select name from erp.keyless")))
    assert.match(pushed.message, /erp\.keyless is damaged/)
    assert.deepStrictEqual((yield* read("select count(*) from own")).rows, [["0"]])
  })
})
