import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Redacted, Schedule, type Scope } from "effect"
import { connect, query } from "../../../src/postgres/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { freePort } from "../../../src/postgres/embedded/Postmaster.ts"
import { type EmbeddedServer, start } from "../../../src/postgres/EmbeddedPostgres.ts"
import { SqlClient } from "effect/sql/SqlClient"

const program = fileURLToPath(new URL("./embedded-user.ts", import.meta.url))
const isRoot = process.getuid?.() === 0

/** A place for one server; what a failed test left running in it is killed. */
const emptyRoot = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "tributary-embedded-"))
    chmodSync(folder, 0o755)
    return join(folder, "postgres")
  }),
  (root) =>
    Effect.gen(function* () {
      const pid = serverPid(root)
      if (pid !== undefined && isAlive(pid)) process.kill(pid, "SIGQUIT")
      if (pid !== undefined) yield* eventually("the server to end", () => !isAlive(pid))
      rmSync(join(root, ".."), { recursive: true, force: true })
    })
)

/** The same with a cluster in it: a copy of one that is made once, which is faster than initdb. */
const temporaryRoot = Effect.tap(emptyRoot, (root) => Effect.sync(() => execFileSync("cp", ["-a", template, root])))
let template = ""
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-embedded-"))
  chmodSync(folder, 0o755)
  template = join(folder, "postgres")
  await Effect.runPromise(Effect.scoped(start({ root: template, port: 0, durable: false })))
  return () => rmSync(folder, { recursive: true })
})

const serverPid = (root: string): number | undefined => {
  const file = join(root, "pg18", "postmaster.pid")
  return existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : undefined
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

const eventually = (what: string, check: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (check() ? Effect.void : Effect.fail(`waited in vain for ${what}`))).pipe(
    Effect.retry({ schedule: Schedule.spaced("20 millis"), times: 500 }),
    Effect.orDie
  )

interface User {
  readonly child: ReturnType<typeof spawn>
  readonly entered: { readonly pid: number; readonly port: number; readonly adopted: boolean }
  /** Closes its input and waits for it to go. */
  readonly leave: Effect.Effect<number | null>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
}

/** Another process that uses the server. */
const user = (root: string, port?: number, durable?: "durable") =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<User> => {
      const child = spawn(
        process.execPath,
        [program, root, ...[port, durable].flatMap((one) => (one === undefined ? [] : [String(one)]))],
        {
          stdio: ["pipe", "pipe", "pipe"]
        }
      )
      let output = ""
      child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
      const exited = once(child, "exit")
      const first = once(createInterface(child.stdout), "line")
      const line: unknown = (await Promise.race([first, exited.then(() => [`exited: ${output}`])]))[0]
      return {
        child,
        entered: JSON.parse(String(line)) as User["entered"],
        leave: Effect.promise(async () => {
          child.stdin.end()
          await exited
          return child.exitCode
        }),
        kill: (signal) =>
          Effect.promise(async () => {
            child.kill(signal)
            await exited
          })
      }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

const ask = (server: EmbeddedServer, text: string) =>
  Effect.scoped(Effect.flatMap(connect(server), (client) => query<Record<string, unknown>>(client, "ask", text)))

describe("start and stop", () => {
  it.live("makes a cluster, starts it, stops it, and starts it again", () =>
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

  it.live.runIf(isRoot && process.platform === "linux")("as root, under a private home too", () =>
    Effect.gen(function* () {
      const folder = yield* emptyRoot
      const home = join(folder, "..", "home")
      mkdirSync(home, { mode: 0o700 })
      const root = join(home, "checkout", ".tributary", "postgres")
      const server = yield* start({ root, port: 0, durable: false })
      assert.deepStrictEqual(yield* ask(server, "create table t as select 1 as n"), [])
      yield* ask(server, "checkpoint")
      assert.deepStrictEqual(yield* ask(server, "select count(*)::int as n from t, pg_reload_conf()"), [{ n: 1 }])
    })
  )

  it.live("keeps its folder and password to itself", () =>
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

  it.live("takes a free port when the wanted one is taken", () =>
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

  it.live("stops a server whose start is interrupted", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const fiber = yield* Effect.forkChild(Effect.scoped(start({ root, port: 0, durable: false })))
      yield* eventually("the server to be launched", () => serverPid(root) !== undefined)
      const pid = serverPid(root)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(pid === undefined || !isAlive(pid))
    })
  )
})

describe("several users", () => {
  it.live("an adopter that leaves last stops the server", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const owner = yield* user(root, 0)
      const adopter = yield* user(root, 0)
      assert.isFalse(owner.entered.adopted)
      assert.deepStrictEqual(adopter.entered, { ...owner.entered, adopted: true })
      assert.strictEqual(yield* owner.leave, 0)
      assert.isTrue(isAlive(owner.entered.pid))
      assert.strictEqual(yield* adopter.leave, 0)
      assert.isFalse(isAlive(owner.entered.pid))
    })
  )

  it.live("processes that start at once share one server, and the last one stops it", () =>
    Effect.gen(function* () {
      const root = yield* emptyRoot
      const users = yield* Effect.all(
        Array.from({ length: 4 }, () => user(root, 0)),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(new Set(users.map(({ entered }) => entered.pid)), 1)
      assert.lengthOf(
        users.filter(({ entered }) => !entered.adopted),
        1
      )
      yield* Effect.forEach(users, ({ leave }) => leave, { concurrency: "unbounded" })
      assert.isFalse(isAlive(users[0]!.entered.pid))
      assert.isEmpty(readdirSync(root).filter((name) => name.startsWith("init-")))
    })
  )

  it.live("many come and go at the same time, and nothing is left", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const visit = Effect.scoped(
        Effect.flatMap(start({ root, port: 0, durable: false }), (server) => ask(server, "select 1 as n"))
      )
      const rows = yield* Effect.all(
        Array.from({ length: 30 }, () => visit),
        { concurrency: 5 }
      )
      assert.isTrue(rows.every(([row]) => row?.["n"] === 1))
      assert.isUndefined(serverPid(root))
    })
  )

  it.live("a client that is no user of ours does not keep the server up", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const visitor = yield* user(root, 0)
      const password = Redacted.make(readFileSync(join(root, "password"), "utf8").trim())
      yield* connect({
        endpoint: { host: "127.0.0.1", port: visitor.entered.port, user: "tributary", password, database: "tributary" },
        describe: "",
        embedded: true
      })
      yield* visitor.leave
      assert.isFalse(isAlive(visitor.entered.pid))
    })
  )
})

describe("kills", () => {
  it.live("kill -9 of the owner: the next user adopts the server and stops it", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const owner = yield* user(root, 0)
      yield* owner.kill("SIGKILL")
      assert.isTrue(isAlive(owner.entered.pid))
      const next = yield* Effect.scoped(start({ root, port: 0, durable: false }))
      assert.isTrue(next.adopted)
      assert.strictEqual(next.pid(), owner.entered.pid)
      assert.isFalse(isAlive(owner.entered.pid))
    })
  )

  it.live("kill -9 of the owner while an adopter stays: the adopter stops it", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const owner = yield* user(root, 0)
      const adopter = yield* user(root, 0)
      yield* owner.kill("SIGKILL")
      yield* adopter.leave
      assert.isFalse(isAlive(owner.entered.pid))
    })
  )

  it.live("kill -9 of owner and server: the next start recovers what was committed", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const owner = yield* user(root, 0)
      const pid = owner.entered.pid
      yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* start({ root, port: 0, durable: false })
          yield* ask(server, "create table kept as select 7 as n")
        })
      )
      yield* owner.kill("SIGKILL")
      process.kill(pid, "SIGKILL")
      const rows = yield* Effect.scoped(
        Effect.flatMap(start({ root, port: 0, durable: false }), (server) => ask(server, "select n from kept"))
      )
      assert.deepStrictEqual(rows, [{ n: 7 }])
      assert.isUndefined(serverPid(root))
    })
  )

  it.live("SIGTERM runs the finalizers: the server is stopped", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const owner = yield* user(root, 0)
      yield* owner.kill("SIGTERM")
      assert.isFalse(isAlive(owner.entered.pid))
    })
  )

  it.live("a server that is killed under its users is started again on the same port", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const server = yield* start({ root, port: 0, durable: false })
      const before = server.pid()
      process.kill(before, "SIGKILL")
      yield* eventually("another server", () => server.pid() !== before)
      assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
    })
  )

  it.live("the port that everybody knows is waited for, when it is taken for a moment", () =>
    Effect.gen(function* () {
      // As by what a server had just begun to serve when it was killed.
      const other = createServer().listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(other, "listening"))
      const { port } = other.address() as AddressInfo
      assert.notStrictEqual(yield* freePort({ port, waitMs: 0 }), port)
      const found = yield* Effect.forkChild(freePort({ port, waitMs: 60_000 }))
      yield* Effect.sleep(100)
      assert.isUndefined(found.pollUnsafe())
      other.close()
      assert.strictEqual(yield* Fiber.join(found), port)
    })
  )

  it.live("a crash of a session does not lose our place among the users", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const server = yield* start({ root, port: 0, durable: false })
      const [row] = yield* ask(
        server,
        "select pid from pg_stat_activity where application_name = 'tributary' and pid <> pg_backend_pid()"
      )
      process.kill(Number(row?.["pid"]), "SIGKILL")
      // Postgres ends every session and recovers; we are a user again as soon as it answers.
      const places = "select count(*)::int as n from pg_locks where locktype = 'advisory' and granted"
      yield* ask(server, places).pipe(
        Effect.flatMap(([found]) => (found?.["n"] === 1 ? Effect.void : Effect.fail("not yet"))),
        Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 200 })
      )
      yield* Effect.scoped(start({ root, port: 0, durable: false }))
      assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
    })
  )

  it.live.runIf(process.platform === "linux")("a stale postmaster.pid of a living stranger does not matter", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const file = join(root, "pg18", "postmaster.pid")
      writeFileSync(file, `${process.pid}\n${join(root, "pg18")}\n0\n54329\n\n127.0.0.1\n0 0\nready   \n`, {
        mode: 0o600
      })
      const server = yield* start({ root, port: 0, durable: false })
      assert.isFalse(server.adopted)
      assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
    })
  )

  it.live.runIf(process.platform === "linux")(
    "a stale postmaster.pid of another cluster's server does not matter",
    () =>
      Effect.gen(function* () {
        const other = yield* start({ root: yield* temporaryRoot, port: 0, durable: false })
        const closed = yield* freePort({ port: 0, waitMs: 0 })
        for (const port of [other.endpoint.port, closed]) {
          const root = yield* temporaryRoot
          const folder = join(root, "pg18")
          writeFileSync(
            join(folder, "postmaster.pid"),
            `${other.pid()}\n${folder}\n1700000000\n${port}\n\n127.0.0.1\n0 0\nready   \n`,
            { mode: 0o600 }
          )
          const began = performance.now()
          const pid = yield* Effect.scoped(
            Effect.gen(function* () {
              const server = yield* start({ root, port: 0, durable: false })
              assert.isFalse(server.adopted)
              assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
              return server.pid()
            })
          )
          assert.isBelow(performance.now() - began, 20_000)
          assert.isFalse(isAlive(pid))
        }
        assert.deepStrictEqual(yield* ask(other, "select 1 as n"), [{ n: 1 }])
      })
  )

  it.live("a server whose connections are all in use is not stopped by a user that lost its own", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      // A durable server has 100 connections.
      const users = [yield* user(root, 0, "durable"), yield* user(root, 0)]
      const { pid, port } = users[0]!.entered
      const password = Redacted.make(readFileSync(join(root, "password"), "utf8").trim())
      const one = connect({
        endpoint: { host: "127.0.0.1", port, user: "tributary", password, database: "postgres" },
        describe: "",
        embedded: true
      })
      const fill: Effect.Effect<void, never, Scope.Scope> = one.pipe(
        Effect.flatMap(() => Effect.suspend(() => fill)),
        Effect.catch(({ code }) => Effect.sync(() => assert.strictEqual(code, "53300")))
      )
      const busy = yield* one
      yield* fill
      // They lose their places, and find no free connection to enter again.
      for (const { child } of users) child.kill("SIGSTOP")
      yield* query(busy, "end", "select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory'")
      yield* fill
      for (const { child, leave } of users) {
        child.kill("SIGCONT")
        yield* leave
      }
      assert.isTrue(isAlive(pid))
    })
  )

  it.live("the log of a running server stays within bounds", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const server = yield* start({ root, port: 0, durable: false })
      const log = join(root, "postgres.log")
      yield* ask(server, "do $$ begin for i in 1..9 loop raise log '%', repeat('x', 1024 * 1024); end loop; end $$")
      assert.isAbove(statSync(log).size, 8 * 1024 * 1024)
      yield* Effect.scoped(start({ root, port: 0, durable: false }))
      yield* eventually("the log to be cut", () => statSync(log).size < 8 * 1024 * 1024)
      yield* ask(server, "do $$ begin raise log 'still here'; end $$")
      yield* eventually("the next line", () => readFileSync(log, "utf8").includes("still here"))
      assert.isBelow(statSync(log).size, 1024 * 1024)
      assert.isAbove(statSync(`${log}.1`).size, 8 * 1024 * 1024)
    })
  )

  it.live("sweeps the folders of starts that were killed, and no others", () =>
    Effect.gen(function* () {
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
      yield* Effect.scoped(start({ root, port: 0, durable: false }))
      assert.deepStrictEqual(
        readdirSync(root).filter((name) => name.startsWith("init-")),
        [kept]
      )
    })
  )

  it.live("kill -9 during initdb: the next start makes the cluster anew", () =>
    Effect.gen(function* () {
      const root = yield* emptyRoot
      const child = spawn(process.execPath, [program, root, "0"], { stdio: ["pipe", "ignore", "ignore"] })
      const exited = once(child, "exit")
      const drafts = () => (existsSync(root) ? readdirSync(root) : []).filter((name) => name.startsWith("init-"))
      yield* eventually("initdb to begin", () => drafts().length > 0)
      child.kill("SIGKILL")
      yield* Effect.promise(() => exited)
      const server = yield* start({ root, port: 0, durable: false })
      assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
    })
  )
})

describe("errors say what to do", () => {
  it.live("a file where the folder should be", () =>
    Effect.gen(function* () {
      const root = yield* emptyRoot
      writeFileSync(root, "")
      const error = yield* Effect.flip(Effect.scoped(start({ root })))
      assert.strictEqual(error.step, "folder")
      assert.include(error.hint, "TRIBUTARY_HOME")
    })
  )

  it.live("a password that is not the cluster's", () =>
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

  it.live("a cluster that cannot be started says why", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      writeFileSync(join(root, "pg18", "postgresql.conf"), "nonsense = 1\n")
      const error = yield* Effect.flip(Effect.scoped(start({ root, port: 0 })))
      assert.strictEqual(error.step, "start")
      assert.include(error.message, "nonsense")
    })
  )
})

describe("as a layer", () => {
  it.live("gives the database and its pool, and stops with the layer", () =>
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
