/** Rare events of an embedded Postgres: stale files, used connections and ports, kills during its creation. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import { Effect, Fiber, Redacted, Schedule, type Scope } from "effect"
import { connect, query } from "../../../src/postgres/Connection.ts"
import { freePort } from "../../../src/postgres/embedded/Postmaster.ts"
import { start } from "../../../src/postgres/EmbeddedPostgres.ts"
import { ask, emptyRoot, eventually, isAlive, program, temporaryRoot, user } from "./embedded.ts"

describe("embedded Postgres", () => {
  it.live("is stopped although a foreign client is connected", () =>
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

  it.live("waits for its configured port while another program uses it briefly", () =>
    Effect.gen(function* () {
      // As by the last connections of a killed server.
      const other = createServer().listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(other, "listening"))
      const { port } = other.address() as AddressInfo
      assert.notStrictEqual(yield* freePort({ port, waitMax: Duration.zero }), port)
      const portFiber = yield* Effect.forkChild(freePort({ port, waitMax: Duration.minutes(1) }))
      yield* Effect.sleep(100)
      assert.isUndefined(portFiber.pollUnsafe())
      other.close()
      assert.strictEqual(yield* Fiber.join(portFiber), port)
    })
  )

  it.live("keeps a process registered as user when one of its sessions crashes", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const server = yield* start({ root, port: 0, durable: false })
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
      yield* Effect.scoped(start({ root, port: 0, durable: false }))
      assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
    })
  )

  it.live.runIf(process.platform === "linux")(
    "starts despite a stale postmaster.pid with the pid of a running process",
    () =>
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
    "starts despite a stale postmaster.pid with the pid of another cluster's server",
    () =>
      Effect.gen(function* () {
        const other = yield* start({ root: yield* temporaryRoot, port: 0, durable: false })
        const closed = yield* freePort({ port: 0, waitMax: Duration.zero })
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

  it.live("keeps running when a process cannot check for users because all connections are used", () =>
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
  )

  it.live("truncates the log of a running server", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const server = yield* start({ root, port: 0, durable: false })
      const log = join(root, "postgres.log")
      yield* ask(server, "do $$ begin for i in 1..9 loop raise log '%', repeat('x', 1024 * 1024); end loop; end $$")
      assert.isAbove(statSync(log).size, 8 * 1024 * 1024)
      yield* Effect.scoped(start({ root, port: 0, durable: false }))
      yield* eventually("the truncated log", () => statSync(log).size < 8 * 1024 * 1024)
      yield* ask(server, "do $$ begin raise log 'still here'; end $$")
      yield* eventually("the next line", () => readFileSync(log, "utf8").includes("still here"))
      assert.isBelow(statSync(log).size, 1024 * 1024)
      assert.isAbove(statSync(`${log}.1`).size, 8 * 1024 * 1024)
    })
  )

  it.live("deletes the folders of killed starts and no others", () =>
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

  it.live("creates the cluster again when initdb was killed", () =>
    Effect.gen(function* () {
      const root = yield* emptyRoot
      const child = spawn(process.execPath, [program, root, "0"], { stdio: ["pipe", "ignore", "ignore"] })
      const exited = once(child, "exit")
      const drafts = () => (existsSync(root) ? readdirSync(root) : []).filter((name) => name.startsWith("init-"))
      yield* eventually("the start of initdb", () => drafts().length > 0)
      child.kill("SIGKILL")
      yield* Effect.promise(() => exited)
      const server = yield* start({ root, port: 0, durable: false })
      assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
    })
  )
})
