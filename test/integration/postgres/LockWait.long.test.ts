/** Migrations while other sessions hold locks: the wait of other statements, and the messages. */
import { cpSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger, type Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type pg from "pg"
import { connect, query } from "../../../src/postgres/driver/Connection.ts"
import { Database, DatabaseError } from "../../../src/postgres/Database.ts"
import { folderDefault, migrate } from "../../../src/postgres/Migrations.ts"
import { layerSql } from "../../support/postgres.ts"
import { valuesOf } from "../../support/rows.ts"
import { temporaryFolder } from "../../support/servers.ts"

const run = <A, E>(test: Effect.Effect<A, E, Database | SqlClient | Scope.Scope>) =>
  test.pipe(Effect.scoped, Effect.provide(layerSql))

/** The migrations of this package, and one more that changes a table of the engine. */
const withOneMore = Effect.tap(temporaryFolder, (path) =>
  Effect.sync(() => {
    cpSync(folderDefault, path, { recursive: true })
    writeFileSync(
      join(path, "9999_more.sql"),
      "alter table tributary.delivery_gaps add column x int; alter table tributary.subscriptions add column x int;"
    )
  })
)

/** A session with an open transaction that has run this statement, as a dump does. */
const reading = (statement: string) =>
  Effect.gen(function* () {
    const client = yield* connect(yield* Database)
    const [row] = yield* query<{ pid: number }>(
      client,
      "read",
      "begin; set application_name = 'nightly dump'; select pg_backend_pid() as pid"
    )
    yield* query(client, "read", statement)
    return { client, pid: row!.pid }
  })

const end = (client: pg.Client) => query(client, "end", "commit")

/** The log lines of an effect. */
const logging = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    const fiber = yield* Effect.forkChild(Effect.provide(effect, Logger.layer([logger])))
    return { lines, fiber }
  })

const blocked = (sql: SqlClient, pid: number) =>
  sql<{ n: number }>`select count(*)::int as n from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`.pipe(
    Effect.flatMap(([row]) => (row!.n > 0 ? Effect.void : Effect.fail("not yet"))),
    Effect.retry({ times: 10_000 })
  )

/** Repeats a statement. Returns the longest duration of one in milliseconds. */
const longest = (statement: string, isOver: () => boolean) =>
  Effect.gen(function* () {
    const client = yield* connect(yield* Database)
    let max = 0
    while (!isOver()) {
      const began = performance.now()
      yield* query(client, "use", statement)
      max = Math.max(max, performance.now() - began)
      yield* Effect.sleep(10)
    }
    return max
  }).pipe(Effect.scoped)

/** The two seconds of a lock wait, and what a busy machine adds. Without a bound the wait would not end. */
const boundMs = 3_500

describe.concurrent("a migration behind an open transaction", () => {
  it.live("blocks other statements for at most two seconds, and succeeds when the transaction ends", () =>
    run(
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* migrate()
        const reader = yield* reading("select * from tributary.delivery_gaps")
        const { lines, fiber } = yield* logging(
          migrate({ folder: yield* withOneMore, lockTimeout: { pause: "100 millis" } })
        )
        yield* blocked(sql, reader.pid)
        let isOver = false
        const others = yield* Effect.forkChild(
          Effect.all(
            [
              "select count(*) from tributary.subscriptions",
              "insert into tributary.delivery_gaps (company, resource, cause, detail, began_at, ended_at) values (gen_random_uuid()::text, 'orders', 'event_lost', '', now(), now())"
            ].map((statement) => longest(statement, () => isOver)),
            { concurrency: "unbounded" }
          )
        )
        while (lines.length === 0) yield* Effect.sleep(10)
        yield* end(reader.client)
        assert.deepStrictEqual(valuesOf(yield* Fiber.join(fiber), "file"), ["9999_more.sql"])
        isOver = true
        for (const ms of yield* Fiber.join(others)) assert.isBelow(ms, boundMs)
        assert.include(lines[0], `session ${reader.pid} (nightly dump, user `)
        assert.include(lines[0], "last statement: select * from tributary.delivery_gaps")
      })
    )
  )

  it.live("fails after its attempts, with the blocking session and the command to end it", () =>
    run(
      Effect.gen(function* () {
        yield* migrate()
        const reader = yield* reading("select * from tributary.delivery_gaps")
        const error = yield* Effect.flip(migrate({ folder: yield* withOneMore, lockTimeout: { attemptsMax: 1 } }))
        assert.instanceOf(error, DatabaseError)
        assert.deepInclude(error, { code: "55P03", isRetryable: true })
        assert.include(error.message, "cannot migrate the warehouse")
        assert.include(error.message, `select pg_terminate_backend(${reader.pid})`)
        yield* end(reader.client)
        assert.lengthOf(yield* migrate({ folder: yield* withOneMore }), 1)
      })
    )
  )

  it.live("limits the total lock wait of one attempt", () =>
    run(
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`create table a (id int)`
        yield* sql`create table b (id int)`
        const first = yield* reading("select * from a")
        const second = yield* reading("select * from b")
        const path = yield* temporaryFolder
        writeFileSync(join(path, "0001_both.sql"), "alter table a add column x int; alter table b add column x int;")
        const { fiber } = yield* logging(migrate({ folder: path, lockTimeout: { attemptsMax: 1 } }))
        yield* blocked(sql, first.pid)
        const began = performance.now()
        yield* Effect.sleep(1_200)
        yield* end(first.client)
        yield* blocked(sql, second.pid)
        // From here on the migration holds the lock of `a` and waits for `b`, for the rest of its two seconds.
        yield* sql`select * from a`
        // With two seconds for each lock it would be 3.2 s.
        assert.isBelow(performance.now() - began, 3_000)
        assert.include((yield* Effect.flip(Fiber.join(fiber))).message, `session ${second.pid}`)
        yield* end(second.client)
      })
    )
  )

  it.live("runs in one program while the others wait and log that they wait", () =>
    run(
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`create table a (id int)`
        const reader = yield* reading("select * from a")
        const path = yield* temporaryFolder
        writeFileSync(join(path, "0001_one.sql"), "alter table a add column x int")
        const one = yield* logging(migrate({ folder: path, lockTimeout: { pause: "100 millis" } }))
        yield* blocked(sql, reader.pid)
        const other = yield* logging(migrate({ folder: path }))
        while (one.lines.length === 0) yield* Effect.sleep(10)
        yield* end(reader.client)
        assert.lengthOf(yield* Fiber.join(one.fiber), 1)
        assert.lengthOf(yield* Fiber.join(other.fiber), 0)
        assert.deepStrictEqual(other.lines, ["Another program is migrating this database: waiting for it"])
      })
    )
  )
})
