/** SQL of a user on a real Postgres whose owner is a superuser: Postgres rejects everything except reading. */
import { existsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { read, readParts } from "../../../src/cli/query.ts"
import type { QueryResult } from "../../../src/warehouse/ReaderQuery.ts"
import * as Grants from "../../../src/warehouse/Grants.ts"
import * as Reader from "../../../src/warehouse/Reader.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { connect, query } from "../../../src/postgres/driver/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import * as QueryInput from "../../../src/outbox/input/QueryInput.ts"
import { layerSql, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"
import { temporaryFolder } from "../../support/servers.ts"

const filled = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* Migrations.migrate()
    for (const name of ["erp", "erp_history", "erp_models"]) yield* sql.unsafe(`create schema ${name}`)
    yield* sql.unsafe("create table erp.orders as select id, 'order ' || id as name from generate_series(1, 50) as id")
    yield* sql.unsafe("create function erp.remove() returns int language sql as 'delete from erp.orders; select 1'")
    yield* sql.unsafe(
      "create function erp.lift() returns text language sql security definer as $$ select pg_read_file('PG_VERSION') $$"
    )
    yield* sql.unsafe("revoke execute on function erp.lift() from public")
  })
)

const embedded = filled.pipe(
  Layer.provideMerge(sqlLayer),
  Layer.provideMerge(
    Layer.effectContext(
      Effect.flatMap(temporaryFolder, (path) =>
        TestClock.withLive(Layer.build(Database.layerEmbedded({ root: join(path, "pg"), port: 0, durable: false })))
      )
    )
  )
)

/** Columns that contain no secret, although their names suggest one. */
const harmless = ["change_batches.token", "scans.token", "pushes.content_hash"]

/** A superuser's DATABASE_URL, as of a Postgres container. */
const superuser = filled.pipe(Layer.provideMerge(layerSql))

const fingerprint = Effect.gen(function* () {
  return yield* sql.unsafe(
    `select (select count(*)::int from erp.orders) as orders, (select count(*)::int from pg_class) as relations,
            (select count(*)::int from pg_largeobject_metadata) as objects`
  )
})

const marker = join(tmpdir(), `tributary-reader-${process.pid}`)

const refused: ReadonlyArray<readonly [statement: string, problem: RegExp]> = [
  ["commit; delete from erp.orders", /query runs one read-only statement .*syntax error at or near "commit"/],
  ["rollback; delete from erp.orders; select 1", /one read-only statement/],
  ["select 1; delete from erp.orders", /cannot insert multiple commands|one read-only statement/],
  ["explain select 1; delete from erp.orders", /cannot insert multiple commands|one read-only statement/],
  ["delete from erp.orders", /one read-only statement/],
  [`copy (select 1) to program 'touch ${marker}'`, /one read-only statement/],
  [`copy erp.orders from program 'touch ${marker}'`, /one read-only statement/],
  ["set transaction read write", /one read-only statement/],
  ["do $$ begin delete from erp.orders; end $$", /one read-only statement/],
  ["explain analyze delete from erp.orders", /read-only transaction|permission denied/],
  ["explain analyze create table erp.mine as select 1", /read-only transaction|permission denied/],
  ["with gone as (delete from erp.orders returning id) select * from gone", /data-modifying|read-only/],
  ["select 1 into erp.mine", /SELECT INTO|INTO/],
  ["select * from erp.orders for update", /read-only|permission denied/],
  ["select pg_read_file('/etc/passwd')", /permission denied/],
  ["select pg_read_binary_file('PG_VERSION')", /permission denied/],
  ["select pg_ls_dir('.')", /permission denied/],
  ["select pg_reload_conf()", /permission denied/],
  ["select lo_import('/etc/passwd')", /permission denied|read-only/],
  ["select lo_create(0)", /read-only|permission denied/],
  ["select erp.remove()", /read-only|permission denied/],
  ["select erp.lift()", /permission denied/],
  ["select set_config('transaction_read_only', 'off', false)", /read-write mode/],
  ["select set_config('default_transaction_read_only', 'off', false), erp.remove()", /read-only|permission denied/],
  ["select set_config('role', 'tributary', false)", /permission denied/],
  ["select set_config('session_authorization', 'tributary', false)", /permission denied/],
  ["select set_config('role', 'none', false), pg_read_file('PG_VERSION')", /permission denied/],
  ["select query_to_xml('delete from erp.orders', true, true, '')", /not allowed|read-only|permission denied/],
  [
    "select set_config('role', 'none', false), query_to_xml('select * from tributary.webhook_secrets', true, true, '')",
    /permission denied/
  ],
  ["select * from tributary.webhook_secrets", /permission denied/],
  ["select idempotency_key from tributary.push_requests", /permission denied/],
  ["select rolpassword from pg_authid", /permission denied/],
  ["select nextval('tributary.outbox_id_seq')", /permission denied|read-only/],
  ["select tributary.delete_company_rows('x', 1, '{tributary.runs}')", /permission denied|read-only/],
  ["select * from dblink('dbname=tributary', 'delete from erp.orders') as t(x text)", /does not exist/],
  ["", /syntax error|one statement/]
]

suite("SQL of a user", embedded, (test) => {
  test("reads, changes nothing, and cannot lock, write WAL, notify, or end sessions, and its temporary files have a limit", function* () {
    assert.strictEqual((yield* read("select count(*) from erp.orders")).rows[0]?.[0], "50")
    for (const statement of ["delete from erp.orders", "select erp.remove()", "select pg_read_file('PG_VERSION')"]) {
      yield* Effect.flip(read(statement))
    }
    for (const call of [
      "pg_advisory_lock(1)",
      "pg_try_advisory_lock(1)",
      "pg_advisory_xact_lock_shared(1)",
      "pg_logical_emit_message(false, 'a', repeat('x', 1000))",
      "pg_logical_emit_message(true, 'a', 'b'::bytea)",
      "pg_notify('a', 'b')",
      "pg_cancel_backend(1)",
      "pg_terminate_backend(1)",
      "lo_from_bytea(0, 'a')",
      "pg_create_physical_replication_slot('a')"
    ]) {
      assert.match((yield* Effect.flip(read(`select ${call}`))).message, /permission denied for function/, call)
    }
    assert.deepStrictEqual((yield* read("show temp_file_limit")).rows, [["1GB"]])
  })
})

suite("on a server with a superuser role", superuser, (test) => {
  test("the reader rejects statements that write, and they change nothing", function* () {
    const version = Number((yield* read("show server_version_num")).rows[0]?.[0])
    const before = yield* fingerprint
    yield* Effect.forEach(
      // Before Postgres 16 lo_create is not refused, but rolled back with the transaction.
      refused.filter(([statement]) => version >= 160_000 || !statement.includes("lo_create")),
      Effect.fnUntraced(function* ([statement, problem]) {
        const error = yield* Effect.flip(read(statement))
        assert.match(error.message, problem, statement)
        assert.isFalse(error.isRetryable, statement)
        assert.isFalse(error.message.includes("\n"), statement)
      }),
      { concurrency: 4 }
    )
    const pushed = yield* Effect.flip(Stream.runCollect(QueryInput.read("select pg_read_file('/etc/passwd') as id")))
    assert.match(pushed.message, /permission denied/)
    assert.deepStrictEqual(yield* fingerprint, before)
    assert.isFalse(existsSync(marker))
  })

  test("the reader cannot end the sessions of the program", function* () {
    const client = yield* (yield* Database).connect
    const [row] = yield* query<{ pid: number }>(client, "ask", "select pg_backend_pid() as pid")
    for (const name of ["pg_terminate_backend", "pg_cancel_backend"]) {
      const error = yield* Effect.flip(read(`select ${name}(${row!.pid})`))
      // Postgres before 16 uses other words.
      assert.match(error.message, /permission denied|must be a superuser/)
    }
    yield* query(client, "ask", "select 1")
  })

  test("the reader reads records and control plane tables without secrets, also new tables", function* () {
    const count = (from: string) => Effect.map(read(`select count(*) as n from ${from};`), ({ rows }) => rows[0]?.[0])
    assert.strictEqual(yield* count("erp.orders"), "50")
    assert.strictEqual(yield* count("tributary.runs"), "0")
    yield* sql.unsafe("create table erp.later as select 1 as id")
    yield* sql.unsafe("create view erp_models.more as select id from erp.later")
    assert.strictEqual(yield* count("erp.later"), "1")
    assert.strictEqual(yield* count("erp_models.more"), "1")
    yield* sql.unsafe("drop table erp.later cascade")
    assert.match((yield* read("explain select * from erp.orders")).rows[0]?.[0] ?? "", /Seq Scan on orders/)
    assert.deepStrictEqual((yield* read("show transaction_read_only")).rows, [["on"]])
    assert.deepStrictEqual((yield* read("show statement_timeout")).rows, [["1min"]])
    assert.deepStrictEqual((yield* read("values (1.10, null)")).rows, [["1.10", null]])
    assert.deepStrictEqual((yield* read("with one as (select 1 as id, 2 as id) select * from one -- end;")).rows, [
      ["1", "2"]
    ])
    const pushed = yield* Stream.runCollect(QueryInput.read("select id from erp.orders order by id limit 1"))
    assert.deepInclude([...pushed][0]!, { json: '{"id":1}' })
  })

  test("the reader returns a large result in parts and keeps its statement timeout", function* () {
    const parts: Array<QueryResult> = []
    const take = (part: QueryResult) => Effect.sync(() => void parts.push(part))
    yield* readParts(
      `select repeat('x', 1000000) as x, current_setting('statement_timeout') as "limit",
                set_config('statement_timeout', '0', false) from generate_series(1, 100)`,
      take
    )
    assert.strictEqual(parts.flatMap(({ rows }) => rows).length, 100)
    assert.isAtMost(Math.max(...parts.map(({ rows }) => rows.length)), 10)
    for (const { rows } of parts) assert.strictEqual(rows[0]?.[1] ?? "1min", "1min")
    const error = yield* Effect.flip(read("select repeat('x', 1000000) from generate_series(1, 100)"))
    assert.match(error.message, /larger than 64 MB; add a limit, or use --json/)
    parts.length = 0
    yield* readParts("select 1 as one where false", take)
    assertEach(parts, ({ columns, rows }) => [columns[0]?.name, rows], [["one", []]])
  })

  test("the reader has access to no table or column that may contain a secret", function* () {
    yield* read("select 1")
    const rows = yield* sql<{ name: string; isread: boolean; odd: string | null }>`
        select c.relname::text as name, has_table_privilege('tributary_reader', c.oid, 'select') as isread,
               (select string_agg(c.relname || '.' || attname, ',') from pg_attribute
                 where attrelid = c.oid and attnum > 0
                   and attname ~ '(secret|sealed|password|salt|hash|token|signing|^key$|_key$)') as odd
          from pg_class c where c.relnamespace = 'tributary'::regnamespace and c.relkind in ('r', 'v')`
    assert.isAbove(rows.length, 20)
    for (const { name, isread, odd } of rows) {
      assert.strictEqual(isread, !(name in Grants.secretTables), name)
      const secrets = (odd?.split(",") ?? []).filter((column) => !harmless.includes(column))
      assert.isTrue(!isread || secrets.length === 0, `${secrets.join(", ")}: add the table to Grants.secretTables`)
    }
    const shown = yield* sql<{ name: string; columns: string }>`
        select c.relname::text as name, string_agg(attname, ',' order by attnum) as columns
          from pg_class c join pg_attribute on attrelid = c.oid and attnum > 0
         where c.relnamespace = 'tributary'::regnamespace and c.relkind in ('r', 'v')
           and not has_table_privilege('tributary_reader', c.oid, 'select')
           and has_column_privilege('tributary_reader', c.oid, attnum, 'select')
         group by 1 order by 1`
    assert.deepStrictEqual(shown, [
      { name: "access_tokens", columns: "name,created_at,created_by,used_at" },
      {
        name: "change_endpoints",
        columns:
          "name,kind,url,origin,only_company,resources,operations,fields,batch_max,allow_private,retry_hours,state,state_since," +
          "reason,last_position,process_id,leased_until,fence,failing_since,failures,next_attempt_at,succeeded_at,attempts," +
          "delivered,created_at"
      },
      {
        name: "company_settings",
        columns:
          "company,installation,url,company_id,resources,webhook_events,paused_at,paused_by,created_at,updated_at,exclude_resources"
      },
      {
        name: "push_requests",
        columns: "id,company,resource,operation,record_count,state,created_at,failed_attempts,status,reason"
      },
      {
        name: "warehouse",
        columns: "is_this,identity,pause_reason,confirmed_at,company_revision,password_set_at"
      }
    ])
  })

  test("is refused when the superuser role cannot drop its rights", function* () {
    const { endpoint, describe: name } = yield* Database
    const without = Database.of({
      ...(yield* Database),
      endpoint: { ...endpoint, password: Redacted.make("") },
      describe: name
    })
    const error = yield* Effect.flip(Effect.provideService(read("select 1"), Database, without))
    assert.match(error.message, /superuser without a password.*schema grants.*DATABASE_READER_URL/)
    const { host, port, user, password, database } = endpoint
    const url = Redacted.make(`postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`)
    const named = yield* Effect.flip(
      Effect.provideService(read("select 1"), Reader.ReaderOptions, { url, datasets: datasetsDefault })
    )
    assert.match(
      named.message,
      /DATABASE_READER_URL names a role that can take the rights of .*; name one that may only read/
    )
  })

  test("is refused for a role that can become superuser or read server files", function* () {
    const database = yield* Database
    const { host, port, database: name } = database.endpoint
    const user = "tributary_test_climber"
    const password = Redacted.make("climb")
    const owner = Database.of({ ...database, endpoint: { ...database.endpoint, user, password } })
    for (const power of ["tributary_test_boss", "pg_read_server_files"]) {
      yield* Effect.acquireUseRelease(
        Effect.gen(function* () {
          if (power === "tributary_test_boss") yield* sql.unsafe(`create role ${power} superuser`)
          yield* sql.unsafe(`create role ${user} login password 'climb' noinherit`)
          yield* sql.unsafe(`grant ${power} to ${user}`)
        }),
        () =>
          Effect.gen(function* () {
            const connected = Database.of({ ...owner, connect: connect(owner) })
            const asOwner = yield* Effect.flip(Effect.provideService(read("select 1"), Database, connected))
            assert.match(asOwner.message, new RegExp(`can take the rights of .*${power}.*DATABASE_READER_URL`))
            const url = Redacted.make(`postgres://${user}:climb@${host}:${port}/${name}`)
            const named = yield* Effect.flip(
              Effect.provideService(read("select 1"), Reader.ReaderOptions, { url, datasets: datasetsDefault })
            )
            assert.match(named.message, new RegExp(`DATABASE_READER_URL names .*${power}`))
          }),
        () =>
          Effect.gen(function* () {
            yield* sql.unsafe(`drop role ${user}`)
            if (power === "tributary_test_boss") yield* sql.unsafe(`drop role ${power}`)
          })
      )
    }
  })
})
