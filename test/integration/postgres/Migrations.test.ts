import { cpSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import {
  MigrationError,
  ensure,
  folderDefault,
  migrate,
  pendingMigrations,
  readMigrations
} from "../../../src/postgres/Migrations.ts"
import { layerSql } from "../../support/postgres.ts"
import { temporaryFolder } from "../../support/servers.ts"
import { test, testWith } from "../../support/suite.ts"

const testSql = testWith(layerSql)

const folderOf = (files: Record<string, string>) =>
  Effect.tap(temporaryFolder, (folder) =>
    Effect.sync(() => {
      for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
    })
  )

const first = `
create schema control;
create table control.a (id int); -- a comment; with a semicolon
create function control.f() returns int language plpgsql as $$ begin return 1; end; $$;
insert into control.a select control.f();`
const second = "alter table control.a add column name text;"

const names = (migrations: ReadonlyArray<{ readonly file: string }>) => migrations.map(({ file }) => file)

const refused = (folder: string) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(migrate({ folder }))
    assert.instanceOf(error, MigrationError)
    return error
  })

describe("migrate", () => {
  testSql("makes nothing in a database without control plane for a command that reads", function* () {
    const sql = yield* SqlClient
    const folder = yield* folderOf({ "0001_first.sql": first })
    assert.include((yield* Effect.flip(ensure({ folder, mustExist: true }))).message, "no warehouse in this database")
    assert.deepStrictEqual(yield* sql`select nspname from pg_namespace where nspname in ('tributary', 'control')`, [])
    yield* ensure({ folder })
    writeFileSync(join(folder, "0002_second.sql"), second)
    assert.deepStrictEqual(names(yield* ensure({ folder, mustExist: true })), ["0002_second.sql"], "a later version")
  })

  testSql("gives the same result through a pool, with one query when the database is current", function* () {
    const sql = yield* SqlClient
    const folder = yield* folderOf({ "0001_first.sql": first })
    assert.deepStrictEqual(names(yield* ensure({ folder })), ["0001_first.sql"])
    writeFileSync(join(folder, "0002_second.sql"), second)
    assert.deepStrictEqual(names(yield* ensure({ folder })), ["0002_second.sql"])
    // While another program migrates, a program with a current database does not wait.
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`select pg_advisory_xact_lock(7305881473)`
        assert.deepStrictEqual(names(yield* ensure({ folder })), [])
      })
    )
    writeFileSync(join(folder, "0002_second.sql"), `${second} -- changed`)
    assert.instanceOf(yield* Effect.flip(ensure({ folder })), MigrationError)
  })

  testSql("applies files with many statements in order, once, and records them", function* () {
    const sql = yield* SqlClient
    const folder = yield* folderOf({ "0001_first.sql": first, "README.md": "not a migration" })
    for (const file of ["0001_first.sql", "0002_second.sql"] as const) {
      if (file === "0002_second.sql") writeFileSync(join(folder, file), second)
      assert.deepStrictEqual(names(yield* pendingMigrations({ folder })), [file])
      assert.deepStrictEqual(names(yield* migrate({ folder })), [file])
      assert.deepStrictEqual(names(yield* migrate({ folder })), [])
    }
    assert.deepStrictEqual(yield* sql`select id, name from control.a`, [{ id: 1, name: null }])
    assert.deepStrictEqual(
      yield* sql`select id, name, checksum ~ '^[0-9a-f]{64}$' and applied_at <= now() as sound
                       from tributary.migrations order by id`,
      [
        { id: 1, name: "first", sound: true },
        { id: 2, name: "second", sound: true }
      ]
    )
  })

  testSql("does nothing for an empty folder and creates no schema", function* () {
    const sql = yield* SqlClient
    const folder = yield* folderOf({})
    assert.deepStrictEqual(yield* migrate({ folder }), [])
    assert.deepStrictEqual(yield* sql`select 1 from pg_namespace where nspname = 'tributary'`, [])
  })

  testSql("adds a later file to a warehouse of the baseline, and keeps its rows", function* () {
    const sql = yield* SqlClient
    const folder = yield* temporaryFolder
    cpSync(folderDefault, folder, { recursive: true })
    const baseline = yield* migrate({ folder })
    yield* sql`insert into tributary.privacy_rules (resource, statement, fields) values ('things', 'exclude', '[]')`
    const later = `${String(baseline.at(-1)!.id + 1).padStart(4, "0")}_later.sql`
    writeFileSync(
      join(folder, later),
      "alter table tributary.privacy_rules add column note text not null default 'none'"
    )
    assert.deepStrictEqual(names(yield* ensure({ folder, mustExist: true })), [later])
    assert.deepStrictEqual(yield* sql`select resource, note from tributary.privacy_rules`, [
      { resource: "things", note: "none" }
    ])
    assert.deepStrictEqual(yield* pendingMigrations({ folder }), [])
  })

  testSql("applies each file once when programs start concurrently", function* () {
    const sql = yield* SqlClient
    const folder = yield* folderOf({ "0001_first.sql": first, "0002_second.sql": second })
    const done = yield* Effect.all(
      Array.from({ length: 5 }, () => migrate({ folder })),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(
      done.map((applied) => applied.length).toSorted((a, b) => a - b),
      [0, 0, 0, 0, 2]
    )
    assert.lengthOf(yield* sql`select * from control.a`, 1)
  })

  testSql("reports file and line of an error, and rolls back every file", function* () {
    const sql = yield* SqlClient
    const bad = "create table control.b (id int);\n-- 𝄞 ü\n\nselect *\n  from nowhere;\n"
    const folder = yield* folderOf({ "0001_first.sql": first, "0002_bad.sql": bad })
    const error = yield* refused(folder)
    assert.deepInclude(error, {
      file: "0002_bad.sql",
      line: 5,
      message: 'migration 0002_bad.sql, line 5: relation "nowhere" does not exist (42P01)'
    })
    assert.deepStrictEqual(yield* sql`select 1 from pg_namespace where nspname in ('control', 'tributary')`, [])
    const without = yield* refused(yield* folderOf({ "0001_divide.sql": "select 1/0" }))
    assert.deepInclude(without, { line: undefined, message: "migration 0001_divide.sql: division by zero (22012)" })
    const body = "-- 𝄞\ncreate function f() returns int language sql as $$\n  select nothing\n$$;"
    assert.strictEqual((yield* refused(yield* folderOf({ "0001_body.sql": body }))).line, 3)
  })

  testSql("ignores the line endings of an applied file", function* () {
    const folder = yield* folderOf({ "0001_first.sql": first })
    yield* migrate({ folder })
    writeFileSync(join(folder, "0001_first.sql"), first.replaceAll("\n", "\r\n"))
    assert.deepStrictEqual(yield* migrate({ folder }), [])
  })

  const both = { "0001_first.sql": first, "0002_second.sql": second }
  for (const { what, before, after, message } of [
    {
      what: "a file that changed after it was applied",
      before: both,
      after: { ...both, "0001_first.sql": `${first} ` },
      message: "migration 0001_first.sql was changed after it was applied: undo the change and make it in a new file"
    },
    {
      what: "a new file with a lower number than an applied one",
      before: { "0002_first.sql": first },
      after: { "0001_late.sql": "select 1", "0002_first.sql": first },
      message: "migration 0001_late.sql comes before one that was applied already (0002): rename it to 0003_late.sql"
    },
    {
      what: "a database that a newer program has migrated",
      before: both,
      after: { "0001_first.sql": first },
      message: "0002_second.sql was applied by a newer version of this program"
    },
    {
      what: "a warehouse from before 0.1.0",
      before: { "0001_installation.sql": first, "0002_second.sql": second },
      after: { "0001_companies.sql": first },
      message: "0001_installation.sql is from before 0.1.0, and so is this warehouse: use another database"
    },
    {
      what: "an installation that lacks an applied file",
      before: both,
      after: { "0002_second.sql": second },
      message: "0001_first.sql was applied to this database and is missing here"
    },
    {
      what: "a file that ends the transaction",
      before: {},
      after: { "0001_commit.sql": "commit; begin" },
      message: "0001_commit.sql ends the transaction"
    }
  ] as ReadonlyArray<Readonly<Record<"what" | "message", string> & Record<"before" | "after", Record<string, string>>>>)
    testSql(`rejects ${what}`, function* () {
      yield* migrate({ folder: yield* folderOf(before) })
      assert.include((yield* refused(yield* folderOf(after))).message, message)
    })

  testSql("reports a lost connection as a retryable database error", function* () {
    const folder = yield* folderOf({ "0001_end.sql": "select pg_terminate_backend(pg_backend_pid())" })
    assert.deepInclude(yield* Effect.flip(migrate({ folder })), { _tag: "DatabaseError", isRetryable: true })
  })
})

/**
 * Statements that lock a table for a time that grows with its size: a rewrite, a check of all rows, an index. Readers
 * and writers of the running version would wait that long.
 */
const lockingPatterns: ReadonlyArray<readonly [pattern: RegExp, instead: string]> = [
  [/\balter (column )?\S+ (set data )?type\b/i, "add a column and fill it in batches"],
  [/\bset not null\b/i, "add a check constraint, not valid, and validate it"],
  [
    /\badd column (if not exists )?\S+ (?!.*\bdefault (now|transaction_timestamp)\(\)).*\b(default \w+\(|generated|serial)/i,
    "add it without a default and fill it in batches"
  ],
  [/\badd (constraint \S+ )?(primary key|unique|exclude)\b/i, "it builds an index"],
  [/\badd (constraint \S+ )?(check|foreign key)\b(?![\s\S]*\bnot valid\b)/i, "add it not valid, and validate it"],
  [/^\s*(lock|cluster|vacuum|reindex|refresh)\b/i, "it holds a table that others use"],
  [/^\s*(update|delete|merge|insert into[\s\S]*\bfrom)\b/i, "a program does that in batches"],
  [/^\s*create (unique )?index\b/i, "it reads the whole table"]
]

const createdIn = (sql: string) => [...sql.matchAll(/create table (?:if not exists )?(\S+)/gi)].map(([, name]) => name!)

/**
 * Forbidden statements of a file. A comment above a statement can allow it with a reason: `-- short: a row per
 * company`.
 */
const lockingStatements = (sql: string): ReadonlyArray<string> => {
  const created = createdIn(sql)
  return sql
    .replace(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''")
    .split(/;[^\n]*\n/)
    .filter((statement) => !/^-- short: \S/m.test(statement))
    .map((statement) => statement.replace(/--.*$/gm, "").trim())
    .filter((statement) => !created.some((table) => new RegExp(`\\b${table}\\b`, "i").test(statement)))
    .flatMap((statement) =>
      lockingPatterns.filter(([pattern]) => pattern.test(statement)).map(([, instead]) => `${statement}: ${instead}`)
    )
}

describe("the migration files", () => {
  test("contain no statement that locks a table while it scans it", function* () {
    const files = yield* readMigrations(folderDefault)
    for (const { file, sql } of files) {
      assert.deepStrictEqual(lockingStatements(`${sql}\n`), [], file)
    }
    for (const statement of [
      "alter table tributary.inbox alter column tries type bigint;",
      "alter table tributary.inbox add column drawn uuid not null default gen_random_uuid();",
      "alter table tributary.inbox add constraint inbox_tries check (tries >= 0);",
      "create index inbox_tries on tributary.inbox (tries);",
      "update tributary.inbox set tries = 0;"
    ]) {
      assert.lengthOf(lockingStatements(`${statement}\n`), 1, statement)
      assert.deepStrictEqual(lockingStatements(`-- short: it has no rows yet\n${statement}\n`), [])
    }
    const fine = `create table tributary.b (id int);
        create index b_id on tributary.b (id);
        alter table tributary.inbox add column note text not null default '', add column at timestamptz default now();
        alter table tributary.inbox add constraint c check (tries >= 0) not valid;\n`
    assert.deepStrictEqual(lockingStatements(fine), [])
  })

  test("are rejected without a unique number and a valid name", function* () {
    const twice = yield* Effect.flip(readMigrations(yield* folderOf({ "0001_a.sql": "", "0001_b.sql": "" })))
    assert.strictEqual(
      twice.message,
      "migration 0001_b.sql has the same number as 0001_a.sql: give it the next free one"
    )
    const named = yield* Effect.flip(readMigrations(yield* folderOf({ "1_a.sql": "" })))
    assert.strictEqual(named.message, "migration 1_a.sql is not named NNNN_name.sql")
    assert.include((yield* Effect.flip(readMigrations("/nowhere"))).message, "/nowhere")
  })
})
