import { once } from "node:events"
import { appendFileSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { connect } from "../../../src/postgres/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { start } from "../../../src/postgres/EmbeddedPostgres.ts"
import { fail } from "../../../src/postgres/embedded/Failure.ts"
import { logSize, withReason } from "../../../src/postgres/embedded/ServerLog.ts"
import { SqlClient } from "effect/sql/SqlClient"
import { ask, emptyRoot, eventually, isAlive, isRoot, serverPid, temporaryRoot, user } from "./embedded.ts"

describe("embedded Postgres", () => {
  it.live("creates a cluster, starts it, stops it and starts it again", () =>
    Effect.gen(function* () {
      const root = yield* emptyRoot
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* start({ root, port: 0 })
          const [row] = yield* ask(
            server,
            `select current_database() as database, current_user as name, current_setting('TimeZone') as zone,
                    current_setting('fsync') as fsync, current_setting('synchronous_commit') as sync,
                    current_setting('max_wal_size') as wal, current_setting('max_connections') as connections,
                    current_setting('listen_addresses') as listen, current_setting('server_version_num')::int / 10000 as major`
          )
          assert.deepStrictEqual(row, {
            database: "tributary",
            name: "tributary",
            zone: "UTC",
            fsync: "on",
            sync: "on",
            wal: "4GB",
            connections: "100",
            listen: "127.0.0.1",
            major: 18
          })
          yield* ask(server, "create table kept as select 7 as n")
          assert.isFalse(server.adopted)
          return server
        })
      )
      assert.isFalse(isAlive(first.pid()))
      assert.isUndefined(serverPid(root))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* start({ root, port: 0 })
          assert.deepStrictEqual(yield* ask(server, "select n from kept"), [{ n: 7 }])
        })
      )
    })
  )

  it.live.runIf(isRoot && process.platform === "linux")("runs for root below a private folder", () =>
    Effect.gen(function* () {
      const folder = yield* emptyRoot
      const privateFolder = join(folder, "..", "private")
      mkdirSync(privateFolder, { mode: 0o700 })
      const root = join(privateFolder, "checkout", ".tributary", "postgres")
      const server = yield* start({ root, port: 0, durable: false })
      assert.deepStrictEqual(yield* ask(server, "create table t as select 1 as n"), [])
      yield* ask(server, "checkpoint")
      assert.deepStrictEqual(yield* ask(server, "select count(*)::int as n from t, pg_reload_conf()"), [{ n: 1 }])
    })
  )

  it.live("makes its folder and password readable for its user only", () =>
    Effect.gen(function* () {
      const root = yield* emptyRoot
      const server = yield* start({ root, port: 0, durable: false })
      assert.strictEqual(statSync(root).mode & 0o777, 0o700)
      assert.strictEqual(statSync(join(root, "password")).mode & 0o777, 0o600)
      const wrong = { ...server, endpoint: { ...server.endpoint, password: Redacted.make("wrong") } }
      const error = yield* Effect.flip(Effect.scoped(connect(wrong)))
      assert.strictEqual(error.code, "28P01")
      assert.notInclude(JSON.stringify(server), Redacted.value(server.endpoint.password))
    })
  )

  it.live("uses a free port when the configured one is in use", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const other = createServer().listen(0, "127.0.0.1")
      yield* Effect.addFinalizer(() => Effect.sync(() => other.close()))
      yield* Effect.promise(() => once(other, "listening"))
      const { port } = other.address() as AddressInfo
      const server = yield* start({ root, port, durable: false })
      assert.notStrictEqual(server.endpoint.port, port)
      assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
    })
  )

  it.live("stops the server when its start is interrupted", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const fiber = yield* Effect.forkChild(Effect.scoped(start({ root, port: 0, durable: false })))
      yield* eventually("the start of the server", () => serverPid(root) !== undefined)
      const pid = serverPid(root)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(pid === undefined || !isAlive(pid))
    })
  )
})

describe("a failed start of embedded Postgres", () => {
  it.live("reports a file in place of the data directory", () =>
    Effect.gen(function* () {
      const root = yield* emptyRoot
      writeFileSync(root, "")
      const error = yield* Effect.flip(Effect.scoped(start({ root })))
      assert.strictEqual(error.step, "folder")
      assert.include(error.hint, "TRIBUTARY_HOME")
    })
  )

  it.live("reports a password that does not fit the cluster, with safe remedies", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const owner = yield* user(root, 0)
      writeFileSync(join(root, "password"), "another")
      const error = yield* Effect.flip(Effect.scoped(start({ root })))
      assert.strictEqual(error.step, "enter")
      assert.include(error.hint, `rename ${root}`)
      assert.include(error.hint, `kill -INT ${owner.entered.pid}`)
      assert.notMatch(error.hint!, /remove|delete/)
      writeFileSync(join(root, "password"), "")
      yield* owner.leave
    })
  )

  it.live("reports the reason from the server log", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      writeFileSync(join(root, "pg18", "postgresql.conf"), "nonsense = 1\n")
      const error = yield* Effect.flip(Effect.scoped(start({ root, port: 0 })))
      assert.strictEqual(error.step, "start")
      assert.include(error.message, "nonsense")
      assert.include(error.message, "FATAL:  configuration file")
    })
  )

  it.live("reports the last PANIC or FATAL of the server where another process is starting it", () =>
    Effect.gen(function* () {
      const root = yield* emptyRoot
      mkdirSync(root, { recursive: true })
      const logFile = join(root, "postgres.log")
      writeFileSync(logFile, "2026-01-01 00:00:00 UTC [1] PANIC:  an earlier one\n")
      const place = { root, logFile } as Parameters<typeof withReason>[0]
      const offset = logSize(place)
      const waiting = fail("wait", "another process is starting it")
      assert.strictEqual(withReason(place, offset, waiting).message, waiting.message)
      appendFileSync(
        logFile,
        [
          '2026-01-01 00:00:01 UTC [2] PANIC:  could not write to file "pg_wal/xlogtemp.2": No space left on device',
          "2026-01-01 00:00:01 UTC [3] LOG:  startup process (PID 2) was terminated by signal 6: Aborted",
          "2026-01-01 00:00:02 UTC [4] FATAL:  the database system is starting up",
          ""
        ].join("\n")
      )
      assert.strictEqual(
        withReason(place, offset, waiting).message,
        'another process is starting it, which cannot start: PANIC:  could not write to file "pg_wal/xlogtemp.2": No space left on device'
      )
      // The log was rotated meanwhile.
      writeFileSync(logFile, "2026-01-01 00:00:03 UTC [5] FATAL:  data directory has wrong ownership\n")
      assert.include(withReason(place, 1_000_000, waiting).message, "FATAL:  data directory has wrong ownership")
    })
  )
})

describe("the embedded Postgres layer", () => {
  it.live("provides the database and its pool, and stops the server with the layer", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const exit = yield* Effect.gen(function* () {
        const database = yield* Database
        assert.isTrue(database.embedded)
        assert.match(database.describe, /^embedded Postgres 18 at 127\.0\.0\.1:\d+ \(/)
        const sql = yield* SqlClient
        return yield* sql`select current_setting('application_name') as name`
      }).pipe(
        Effect.provide(Layer.provideMerge(sqlLayer, Database.layerEmbedded({ root, port: 0, durable: false }))),
        Effect.exit
      )
      assert.deepStrictEqual(exit, Exit.succeed([{ name: "tributary" }]))
      assert.isUndefined(serverPid(root))
    })
  )
})
