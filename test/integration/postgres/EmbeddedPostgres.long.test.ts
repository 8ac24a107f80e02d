/** An embedded Postgres: its start and stop, stale files, used connections and ports, kills during its creation. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Layer, Redacted, Schedule, type Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { connect, query } from "../../../src/postgres/driver/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { freePort } from "../../../src/postgres/embedded/Postmaster.ts"
import { start } from "../../../src/postgres/EmbeddedPostgres.ts"
import { ask, emptyRoot, eventually, isAlive, isRoot, program, serverPid, temporaryRoot, user } from "./embedded.ts"
import { liveTest } from "../../support/live.ts"

const startIn = (root: string) => start({ root, port: 0, durable: false })

/** The server of another process, with this database. */
const serverOf = ({ entered: { port } }: Effect.Success<ReturnType<typeof user>>, root: string, database: string) => ({
  endpoint: {
    host: "127.0.0.1",
    port,
    user: "tributary",
    password: Redacted.make(readFileSync(join(root, "password"), "utf8").trim()),
    database
  },
  describe: "",
  embedded: true
})

describe("embedded Postgres", () => {
  liveTest("creates a private cluster, starts it, stops it and starts it again", function* () {
    const root = yield* emptyRoot
    const first = yield* Effect.scoped(
      Effect.gen(function* () {
        const server = yield* start({ root, port: 0 })
        const settings = {
          TimeZone: "UTC",
          fsync: "on",
          synchronous_commit: "on",
          max_wal_size: "4GB",
          max_connections: "100",
          listen_addresses: "127.0.0.1"
        }
        const [row] = yield* ask(
          server,
          `select current_database() as database, current_user as name, current_setting('server_version_num')::int / 10000 as major,
                    (select json_object_agg(name, current_setting(name)) from unnest('{${Object.keys(settings).join()}}'::text[]) name) as settings`
        )
        assert.deepStrictEqual(row, { database: "tributary", name: "tributary", major: 18, settings })
        assert.strictEqual(statSync(root).mode & 0o777, 0o700)
        assert.strictEqual(statSync(join(root, "password")).mode & 0o777, 0o600)
        const wrong = { ...server, endpoint: { ...server.endpoint, password: Redacted.make("wrong") } }
        assert.strictEqual((yield* Effect.flip(Effect.scoped(connect(wrong)))).code, "28P01")
        assert.notInclude(JSON.stringify(server), Redacted.value(server.endpoint.password))
        yield* ask(server, "create table kept as select 7 as n")
        assert.isFalse(server.adopted)
        return server
      })
    )
    assert.isFalse(isAlive(first.pid()))
    assert.isUndefined(serverPid(root))
    const second = yield* start({ root, port: 0 })
    assert.deepStrictEqual(yield* ask(second, "select n from kept"), [{ n: 7 }])
  })

  it.live.runIf(isRoot && process.platform === "linux")("runs for root below a private folder", () =>
    Effect.gen(function* () {
      const folder = yield* emptyRoot
      const privateFolder = join(folder, "..", "private")
      mkdirSync(privateFolder, { mode: 0o700 })
      const root = join(privateFolder, "checkout", ".tributary", "postgres")
      const server = yield* startIn(root)
      assert.deepStrictEqual(yield* ask(server, "create table t as select 1 as n"), [])
      yield* ask(server, "checkpoint")
      assert.deepStrictEqual(yield* ask(server, "select count(*)::int as n from t, pg_reload_conf()"), [{ n: 1 }])
    })
  )

  liveTest("stops the server when its start is interrupted", function* () {
    const root = yield* temporaryRoot
    const fiber = yield* Effect.forkChild(Effect.scoped(startIn(root)))
    yield* eventually("the start of the server", () => serverPid(root) !== undefined)
    const pid = serverPid(root)
    yield* Fiber.interrupt(fiber)
    assert.isTrue(pid === undefined || !isAlive(pid))
  })

  liveTest("reports a password that does not fit the cluster, with safe remedies", function* () {
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

  liveTest("reports the reason from the server log", function* () {
    const root = yield* temporaryRoot
    writeFileSync(join(root, "pg18", "postgresql.conf"), "nonsense = 1\n")
    const error = yield* Effect.flip(Effect.scoped(start({ root, port: 0 })))
    assert.strictEqual(error.step, "start")
    assert.include(error.message, "nonsense")
    assert.include(error.message, "FATAL:  configuration file")
  })

  liveTest("provides the database and its pool, and stops the server with the layer", function* () {
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

  liveTest("is stopped although a foreign client is connected", function* () {
    const root = yield* temporaryRoot
    const visitor = yield* user(root, 0)
    yield* connect(serverOf(visitor, root, "tributary"))
    yield* visitor.leave
    assert.isFalse(isAlive(visitor.entered.pid))
  })

  liveTest(
    "uses a free port when the configured one is in use, and waits when another program uses it briefly",
    function* () {
      const other = createServer().listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(other, "listening"))
      const { port } = other.address() as AddressInfo
      const server = yield* start({ root: yield* temporaryRoot, port, durable: false })
      assert.notStrictEqual(server.endpoint.port, port)
      assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
      // As by the last connections of a killed server.
      const portFiber = yield* Effect.forkChild(freePort({ port, waitMax: Duration.minutes(1) }))
      yield* Effect.sleep(100)
      assert.isUndefined(portFiber.pollUnsafe())
      other.close()
      assert.strictEqual(yield* Fiber.join(portFiber), port)
    }
  )

  liveTest("keeps a process registered as user when one of its sessions crashes", function* () {
    const root = yield* temporaryRoot
    const server = yield* startIn(root)
    const [row] = yield* ask(
      server,
      "select pid from pg_stat_activity where application_name = 'tributary' and pid <> pg_backend_pid()"
    )
    process.kill(Number(row?.["pid"]), "SIGKILL")
    // Postgres ends every session and recovers. The process registers again as soon as it responds.
    const places = "select count(*)::int as n from pg_locks where locktype = 'advisory' and granted"
    yield* ask(server, places).pipe(
      Effect.flatMap(([usableRow]) => (usableRow?.["n"] === 1 ? Effect.void : Effect.fail("not yet"))),
      Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 200 })
    )
    yield* Effect.scoped(startIn(root))
    assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
  })

  it.live.runIf(process.platform === "linux")(
    "starts despite a stale postmaster.pid with the pid of another process",
    () =>
      Effect.gen(function* () {
        const other = yield* startIn(yield* temporaryRoot)
        const closed = yield* freePort({ port: 0, waitMax: Duration.zero })
        // A process that is no server, and the server of another cluster.
        for (const [pid, port] of [
          [process.pid, 54329],
          [other.pid(), other.endpoint.port],
          [other.pid(), closed]
        ]) {
          const root = yield* temporaryRoot
          const folder = join(root, "pg18")
          const stale = `${pid}\n${folder}\n1700000000\n${port}\n\n127.0.0.1\n0 0\nready   \n`
          writeFileSync(join(folder, "postmaster.pid"), stale, { mode: 0o600 })
          const began = performance.now()
          const started = yield* Effect.scoped(
            Effect.gen(function* () {
              const server = yield* startIn(root)
              assert.isFalse(server.adopted)
              assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
              return server.pid()
            })
          )
          assert.isBelow(performance.now() - began, 20_000)
          assert.isFalse(isAlive(started))
        }
        assert.deepStrictEqual(yield* ask(other, "select 1 as n"), [{ n: 1 }])
      })
  )

  liveTest("keeps running when a process cannot check for users because all connections are used", function* () {
    const root = yield* temporaryRoot
    // A durable server has 100 connections.
    const users = [yield* user(root, 0, "durable"), yield* user(root, 0)]
    const { pid } = users[0]!.entered
    const one = connect(serverOf(users[0]!, root, "postgres"))
    const fill: Effect.Effect<void, never, Scope.Scope> = one.pipe(
      Effect.flatMap(() => Effect.suspend(() => fill)),
      Effect.catch(({ code }) => Effect.sync(() => assert.strictEqual(code, "53300")))
    )
    const busy = yield* one
    yield* fill
    // The processes lose their locks as users, and find no free connection to register again.
    for (const { child } of users) child.kill("SIGSTOP")
    yield* query(busy, "end", "select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory'")
    yield* fill
    for (const { child, leave } of users) {
      child.kill("SIGCONT")
      yield* leave
    }
    assert.isTrue(isAlive(pid))
  })

  liveTest("truncates the log of a running server", function* () {
    const root = yield* temporaryRoot
    const server = yield* startIn(root)
    const log = join(root, "postgres.log")
    yield* ask(server, "do $$ begin for i in 1..9 loop raise log '%', repeat('x', 1024 * 1024); end loop; end $$")
    assert.isAbove(statSync(log).size, 8 * 1024 * 1024)
    yield* Effect.scoped(startIn(root))
    yield* eventually("the truncated log", () => statSync(log).size < 8 * 1024 * 1024)
    yield* ask(server, "do $$ begin raise log 'still here'; end $$")
    yield* eventually("the next line", () => readFileSync(log, "utf8").includes("still here"))
    assert.isBelow(statSync(log).size, 1024 * 1024)
    assert.isAbove(statSync(`${log}.1`).size, 8 * 1024 * 1024)
  })

  liveTest("deletes the folders of killed starts and no others", function* () {
    const root = yield* emptyRoot
    const living = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] })
    yield* Effect.addFinalizer(() => Effect.sync(() => living.kill("SIGKILL")))
    const stat = readFileSync(`/proc/${living.pid}/stat`, "utf8")
    const started = stat.slice(stat.lastIndexOf(") ") + 2).split(" ")[19]
    const kept = `init-${living.pid}.${started}-AAAAAA`
    const swept = [
      "init-999999999.1-BBBBBB",
      `init-${living.pid}.1-CCCCCC`,
      `init-${process.pid}.1-DDDDDD`,
      "init-EEEEEE"
    ]
    for (const name of [kept, ...swept]) mkdirSync(join(root, name, "data"), { recursive: true })
    yield* Effect.scoped(startIn(root))
    assert.deepStrictEqual(
      readdirSync(root).filter((name) => name.startsWith("init-")),
      [kept]
    )
  })

  liveTest("creates the cluster again when initdb was killed", function* () {
    const root = yield* emptyRoot
    const child = spawn(process.execPath, [program, root, "0"], { stdio: ["pipe", "ignore", "ignore"] })
    const exited = once(child, "exit")
    const drafts = () => (existsSync(root) ? readdirSync(root) : []).filter((name) => name.startsWith("init-"))
    yield* eventually("the start of initdb", () => drafts().length > 0)
    child.kill("SIGKILL")
    yield* Effect.promise(() => exited)
    const server = yield* startIn(root)
    assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
  })
})
