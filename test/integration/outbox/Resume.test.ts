/** Pushes that resume after a process died or the source failed, and pushes beside another process. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape } from "../../../src/connector/Connector.ts"
import * as Problems from "../../../src/status/Problems.ts"
import { everyoneOnce, makeStand, people, type Stand, stand } from "./stand.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

/** Pushes until this number of calls has reached the point, and dies there. */
const dieAt = Effect.fnUntraced(function* (one: Stand, calls: number, point: "before" | "after") {
  const reached = Latch.makeUnsafe(false)
  let count = 0
  const { connector } = one.company
  const here = Effect.suspend(() => {
    count += 1
    if (count === calls) reached.openUnsafe()
    return Effect.never
  })
  const dying: ConnectorShape = {
    ...connector,
    write: (request) => (point === "before" ? here : Effect.andThen(connector.write(request), here))
  }
  const fiber = yield* Effect.forkChild(one.push({}, { company: { ...one.company, connector: dying } }))
  yield* reached.await
  yield* Fiber.interrupt(fiber)
})

suite("resuming a push", stand, (test) => {
  describe("after its process died", () => {
    test("needs a person only while no process serves the rows", function* () {
      const one = yield* makeStand()
      const unresolved = Problems.read([one.name]).pipe(
        Effect.map((all) => all.filter(({ kind }) => kind === "unresolved")),
        Effect.provideService(SqlClient.SqlClient, one.sql)
      )
      yield* one.sql`insert into tributary.companies (company, company_id) values (${one.name}, ${one.id})`
      yield* one.insert(people(30))
      const during: Array<number> = []
      const { connector } = one.company
      const observed: ConnectorShape = {
        ...connector,
        write: (request) =>
          Effect.andThen(
            Effect.orDie(Effect.tap(unresolved, ({ length }) => Effect.sync(() => during.push(length)))),
            connector.write(request)
          )
      }
      yield* dieAt({ ...one, company: { ...one.company, connector: observed } }, 1, "after")
      assert.deepStrictEqual(during, [0], "the push still ran")
      const runs =
        yield* one.sql`select status, error_kind from tributary.runs where company_id = ${one.id} and lane = 'push'`
      assert.deepStrictEqual(runs, [{ status: "abandoned", error_kind: "Interrupted" }])
      assertEach(yield* unresolved, ({ subject, size, command }) => [subject, size, command], [
        ["salesmen", 1, `tributary push retry salesmen --company ${one.name}`]
      ])
      yield* one.sql`insert into tributary.processes (process_id, companies) values (${one.name}, ${[one.name]})`
      yield* one.sql`insert into tributary.tasks (company, resource, kind) values (${one.name}, 'salesmen', 'sync')`
      assert.deepStrictEqual(yield* unresolved, [])
      yield* one.sql`update tributary.processes set stopped_at = tributary.now() where process_id = ${one.name}`
      assert.lengthOf(yield* unresolved, 1)
      yield* one.push()
      assert.deepStrictEqual(yield* unresolved, [])
      yield* everyoneOnce(one, 30)
    })

    test("looks every record up when the token and its keys were replaced", function* () {
      for (const point of ["before", "after"] as const) {
        const one = yield* makeStand("estquotepricelists")
        yield* one.insert(Array.from({ length: 30 }, (_, at) => ({ name: `List ${at}`, externalid: `l-${at}` })))
        yield* dieAt(one, 1, point)
        const { connector } = yield* one.anew
        const again = one.push({}, { company: { ...one.company, connector } })
        // The source may still process requests in flight with the other token.
        const soon = yield* again
        assert.deepStrictEqual([soon.status, soon.failure?.kind, soon.calls.sent], ["stopped", "AnotherToken", 0])
        yield* one.sql`update tributary.push_requests set created_at = created_at - interval '11 minutes' where company = ${one.name}`
        const pushed = yield* again
        assert.strictEqual(pushed.status, "done")
        assert.strictEqual(pushed.counts.created, 30)
        assert.strictEqual(pushed.calls.sent, point === "before" ? 1 : 0)
        yield* everyoneOnce(one, 30)
      }
    })

    test("reads the record again after an update with an expired key", function* () {
      const one = yield* makeStand()
      yield* one.put(people(1))
      yield* one.insert([{ externalid: "p-0", phone1: "1" }], "update")
      yield* dieAt(one, 1, "after")
      yield* one.sql`update tributary.push_requests set created_at = created_at - interval '25 hours' where company = ${one.name}`
      const pushed = yield* one.push()
      assert.strictEqual(pushed.counts.updated, 1)
      assert.strictEqual(pushed.calls.sent, 0)
      assert.deepStrictEqual((yield* one.isEqual).differences, [])
    })
  })

  test("after the source failed every write sends the remaining records", function* () {
    const one = yield* makeStand()
    yield* one.insert(people(40))
    yield* one.faults({ kind: "status", status: 500, method: "POST", path: "/salesmen" })
    const settings = { batchRecordsMax: 8, concurrency: 1 }
    const stopped = yield* one.push(settings)
    assert.deepStrictEqual([stopped.status, stopped.failure?.kind], ["stopped", "FailsEveryWrite"])
    assert.strictEqual(stopped.counts.waiting + stopped.counts.sending, 40)
    yield* one.noFaults
    assert.strictEqual((yield* one.push(settings)).status, "done")
    yield* everyoneOnce(one, 40)
  })

  test("while another process pushes waits for the first process and finds all records written", function* () {
    const one = yield* makeStand()
    yield* one.insert(people(700))
    const both = yield* Effect.all([one.push(), one.push()], { concurrency: "unbounded" })
    assert.deepStrictEqual(valuesOf(both, "status"), ["done", "done"])
    assert.strictEqual(both[0].calls.sent + both[1].calls.sent, 3)
    yield* everyoneOnce(one, 700)
  })
})
