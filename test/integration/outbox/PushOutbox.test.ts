/** Pushes by the worker of `serve`, of rows that are inserted by SQL. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { settingsDefault } from "../../support/pushSettings.ts"
import { until } from "../../support/until.ts"
import { makeWorker, off } from "../tasks/working.ts"
import { makeStand, people, stand } from "./stand.ts"
import { suite } from "../../support/suite.ts"

suite("the worker, for the outbox", stand, (test) => {
  test("pushes inserted rows in batches, and a blocked resource does not delay the others", function* () {
    const one = yield* makeStand()
    const { sql, name } = one
    yield* one.faults({
      kind: "status",
      status: 403,
      method: "POST",
      path: "/areas",
      body: { error: { code: "insufficient_scope", message: "no" } }
    })
    const insert = (resource: string, records: ReadonlyArray<object>) =>
      sql`insert into tributary.outbox (company, resource, record)
            select ${name}, ${resource}, r from jsonb_array_elements(${JSON.stringify(records)}::text::jsonb) r`
    yield* insert("areas", [{ name: "Area", externalid: "a" }])
    yield* insert("planets", [{ name: "Mars", externalid: "m" }])
    yield* insert("salesmen", people(120))
    const worker = yield* makeWorker(() => off, { push: settingsDefault })
    yield* worker.own(one.company)
    const running = yield* Effect.forkChild(worker.run)
    const states = Effect.map(
      sql<{ resource: string; state: string; rows: number }>`
          select resource, state, count(*)::int as rows from tributary.outbox where company = ${name} group by 1, 2 order by 1, 2`,
      (rows) => rows.map(({ resource, state, rows: count }) => `${resource} ${state} ${count}`).join(", ")
    )
    const becomes = (expected: string) => until("the states", Effect.orDie(states), (now) => now === expected)
    yield* becomes("areas in_flight 1, planets rejected 1, salesmen done 120")
    yield* insert("salesmen", people(30, 120))
    yield* becomes("areas in_flight 1, planets rejected 1, salesmen done 150")
    assert.isAtMost((yield* one.calls).filter(({ operation }) => operation === "batch").length, 2)
    yield* one.noFaults
    yield* becomes("areas done 1, planets rejected 1, salesmen done 150")
    assert.isUndefined(running.pollUnsafe())
    assert.deepStrictEqual((yield* one.isEqual).differences, [])
  })
})
