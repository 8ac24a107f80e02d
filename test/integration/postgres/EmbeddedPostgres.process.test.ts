/** Several processes on one embedded Postgres, and kills of the processes and of the server. */
import { readdirSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { start } from "../../../src/postgres/EmbeddedPostgres.ts"
import { ask, emptyRoot, eventually, isAlive, serverPid, temporaryRoot, user } from "./embedded.ts"
import { liveTest } from "../../support/live.ts"
import { assertCount } from "../../support/assertions.ts"

describe("embedded Postgres", () => {
  liveTest("is started once by concurrent processes and stopped by the last", function* () {
    const root = yield* emptyRoot
    const users = yield* Effect.all(
      Array.from({ length: 4 }, () => user(root, 0)),
      { concurrency: "unbounded" }
    )
    assert.lengthOf(new Set(users.map(({ entered }) => entered.pid)), 1)
    assertCount(users, ({ entered }) => !entered.adopted, 1)
    // The one that started it leaves first.
    for (const { leave } of users.toSorted((a, b) => Number(a.entered.adopted) - Number(b.entered.adopted))) {
      assert.isTrue(isAlive(users[0]!.entered.pid))
      assert.strictEqual(yield* leave, 0)
    }
    assert.isFalse(isAlive(users[0]!.entered.pid))
    assert.isEmpty(readdirSync(root).filter((name) => name.startsWith("init-")))
  })

  liveTest("is adopted and stopped by the next process when its owner was killed", function* () {
    const root = yield* temporaryRoot
    const owner = yield* user(root, 0)
    yield* owner.kill("SIGKILL")
    assert.isTrue(isAlive(owner.entered.pid))
    const next = yield* Effect.scoped(start({ root, port: 0, durable: false }))
    assert.isTrue(next.adopted)
    assert.strictEqual(next.pid(), owner.entered.pid)
    assert.isFalse(isAlive(owner.entered.pid))
  })

  liveTest("recovers committed rows when owner and server were killed", function* () {
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

  liveTest("is stopped by the finalizers of a process that gets SIGTERM", function* () {
    const root = yield* temporaryRoot
    const owner = yield* user(root, 0)
    yield* owner.kill("SIGTERM")
    assert.isFalse(isAlive(owner.entered.pid))
  })

  liveTest("is started again on the same port when only the server was killed", function* () {
    const root = yield* temporaryRoot
    const server = yield* start({ root, port: 0, durable: false })
    const before = server.pid()
    process.kill(before, "SIGKILL")
    yield* eventually("another server process", () => server.pid() !== before)
    assert.deepStrictEqual(yield* ask(server, "select 1 as n"), [{ n: 1 }])
  })
})
