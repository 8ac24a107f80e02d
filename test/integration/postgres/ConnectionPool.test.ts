/**
 * The connection budget and its pool: the number of connections, the order of waiters, and the effect of a lost
 * connection.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Latch } from "effect"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { budgetOf, connectionsMin } from "../../../src/postgres/ConnectionBudget.ts"
import * as ConnectionPool from "../../../src/postgres/driver/ConnectionPool.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { layerDatabase, otherProcess } from "../../support/postgres.ts"
import { settled } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"

describe("the connection budget", () => {
  it("is a third of the server's connections, with a reserve for other clients", () => {
    const { connections, ordinary, pages, landings } = budgetOf(97, null)
    assert.deepStrictEqual(
      { connections, ordinary, pages, landings },
      { connections: 30, ordinary: 6, pages: 2, landings: 16 }
    )
    assert.isAtMost(budgetOf(60, null).connections, 20)
    for (const allowed of [1, 5, 17, 25]) {
      const small = budgetOf(allowed, null)
      assert.strictEqual(small.connections, connectionsMin)
      assert.isAtLeast(small.ordinary, 2)
      assert.isAtLeast(Math.min(small.pages, small.landings), 1)
    }
  })

  it("follows the connections setting up to the maximum of 30", () => {
    assert.strictEqual(budgetOf(97, 12).connections, 12)
    assert.strictEqual(budgetOf(17, 20).connections, 20)
    assert.strictEqual(budgetOf(1000, 1000).connections, 30)
  })
})

const urgency = (party: string, dueAt: number, of = 1): ConnectionPool.Urgency => ({ class: of, party, dueAt })

suite("the connection pool", layerDatabase, (test) => {
  const pool = (capacity: number) =>
    Effect.flatMap(Database, ({ connect }) => ConnectionPool.make({ connect, capacity: () => capacity }))

  test("lends connections by class, then by due time", function* () {
    const { use, stats } = yield* pool(1)
    const release = yield* Deferred.make<void>()
    const served: Array<string> = []
    const fibers = [yield* Effect.forkScoped(use(urgency("first", 0), () => Deferred.await(release)))]
    yield* settled("the connection is lent", Effect.sync(stats), ({ lent }) => lent === 1)
    for (const [name, of] of [
      ["backfill", urgency("a", 1, 2)],
      ["late", urgency("a", 20)],
      ["due", urgency("b", 10)],
      ["event", urgency("c", 99, 0)]
    ] as const) {
      fibers.push(yield* Effect.forkScoped(use(of, () => Effect.sync(() => void served.push(name)))))
      yield* settled("the waiter is queued", Effect.sync(stats), ({ waiting }) => waiting === fibers.length - 1)
    }
    yield* Deferred.succeed(release, undefined)
    for (const fiber of fibers) yield* Fiber.join(fiber)
    // Every fourth connection goes to the longest waiter. The test itself used the first.
    assert.deepStrictEqual(served, ["event", "due", "backfill", "late"])
  })

  test("lends a connection to the longest waiter despite a stream of more urgent work", function* () {
    const { use, stats } = yield* pool(1)
    let urgent = 0
    const stream = Effect.forever(
      use(urgency("busy", 0, 0), (client) =>
        Effect.tap(query(client, "work", "select 1"), () => Effect.sync(() => (urgent += 1)))
      )
    )
    for (let at = 0; at < 3; at += 1) yield* Effect.forkScoped(stream)
    yield* settled("the waiters are queued", Effect.sync(stats), ({ waiting }) => waiting >= 2)
    yield* use(urgency("last", Number.POSITIVE_INFINITY, 2), () => Effect.void)
    assert.isAbove(urgent, 0)
  })

  test("opens no more connections than its capacity and reuses them", function* () {
    const { use, stats } = yield* pool(3)
    let most = 0
    const pids = yield* Effect.forEach(
      Array.from({ length: 30 }, (_, at) => at),
      (at) =>
        use(urgency(String(at % 5), at), (client) =>
          Effect.map(query<{ pid: number }>(client, "look", "select pg_backend_pid() as pid"), ([row]) => {
            most = Math.max(most, stats().lent)
            return row!.pid
          })
        ),
      { concurrency: "unbounded" }
    )
    assert.isAtMost(most, 3)
    assert.isAtMost(new Set(pids).size, 3)
  })

  test("rolls back and discards a connection whose work was interrupted", function* () {
    const { use } = yield* pool(1)
    const begun = Latch.makeUnsafe()
    const pidOf = (client: Parameters<Parameters<typeof use>[1]>[0]) =>
      Effect.map(
        query<{ pid: number; open: boolean }>(client, "look", "select pg_backend_pid() as pid"),
        ([row]) => row!.pid
      )
    let before = 0
    const fiber = yield* Effect.forkScoped(
      use(urgency("a", 0), (client) =>
        Effect.gen(function* () {
          before = yield* pidOf(client)
          yield* query(client, "begin", "begin")
          yield* begun.open
          return yield* Effect.never
        })
      )
    )
    yield* begun.await
    yield* Fiber.interrupt(fiber)
    assert.notStrictEqual(yield* use(urgency("a", 0), pidOf), before)
  })
})

suite("the advisory locks", layerDatabase, (test) => {
  test("are acquired again after their connection was lost", function* () {
    const database = yield* Database
    const { locks } = database
    const other = (yield* otherProcess).locks
    const client = yield* database.connect
    assert.isTrue(yield* locks.tryLock("kept"))
    yield* query(
      client,
      "end the session",
      `select pg_terminate_backend(pid, 5000) from pg_locks
          where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`
    )
    yield* settled(
      "acquired again",
      Effect.andThen(locks.restore, Effect.exit(Effect.scoped(other.tryLock("kept")))),
      (exit) => Exit.isSuccess(exit) && !exit.value
    )
    assert.isTrue(locks.has("kept"))
    assert.isFalse(yield* Effect.scoped(other.tryLock("kept")))
  })
})
