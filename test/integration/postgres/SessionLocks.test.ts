/** Advisory locks of a process that are acquired and released together, and prepared statements across changes of a table. */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { queryNamed } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import * as Statement from "../../../src/postgres/Statement.ts"
import { layerSql, otherProcess, sql } from "../../support/postgres.ts"
import { turn } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"

suite("the locks of a process", layerSql, (test) => {
  const names = Array.from({ length: 50 }, (_, at) => `lock ${at}`)
  const acquireAll = ({ locks }: Database["Service"]) =>
    Effect.forEach(names, (name) => locks.tryLock(name), { concurrency: "unbounded" })

  test("are exclusive, and free again after their scope, when many are requested at a time", function* () {
    const [one, other] = [yield* otherProcess, yield* otherProcess]
    const scope = yield* Scope.make()
    const all = names.map(() => true)
    const none = names.map(() => false)
    assert.deepStrictEqual(yield* Scope.provide(acquireAll(one), scope), all)
    assert.deepStrictEqual(yield* acquireAll(one), none, "within the process")
    assert.deepStrictEqual(yield* acquireAll(other), none, "in another process")
    yield* Scope.close(scope, Exit.void)
    assert.deepStrictEqual(yield* acquireAll(other), all)
  })

  test("are released by a requester that was interrupted", function* () {
    const [one, other] = [yield* otherProcess, yield* otherProcess]
    for (const pauses of [0, 1, 2, 5]) {
      const fiber = yield* Effect.forkChild(Effect.scoped(Effect.andThen(acquireAll(one), Effect.never)))
      for (let pause = 0; pause < pauses; pause += 1) yield* turn
      yield* Fiber.interrupt(fiber)
      assert.isTrue((yield* Effect.scoped(acquireAll(other))).every(Boolean), `after ${pauses} turns`)
      assert.isFalse(names.some((name) => one.locks.has(name)))
    }
  })

  test("a statement that a session has prepared fails in a retryable way after its result has changed", function* () {
    const { connect } = yield* Database
    yield* sql.unsafe("create table public.changing (value int4)")
    const client = yield* connect
    const statement = Statement.make({
      name: "read what changes",
      isPrepared: true,
      columns: { value: "int4" },
      text: "select value from public.changing"
    })
    assert.deepStrictEqual(yield* queryNamed(client, statement), [])
    // A table of the same shape needs no new session.
    yield* sql.unsafe("drop table public.changing")
    yield* sql.unsafe("create table public.changing (value int4)")
    assert.deepStrictEqual(yield* queryNamed(client, statement), [])
    yield* sql.unsafe("alter table public.changing alter value type text")
    const error = yield* Effect.flip(queryNamed(client, statement))
    assert.isTrue(error.isRetryable, error.message)
  })
})
