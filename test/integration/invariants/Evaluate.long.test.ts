/** Statements for many companies that reach their time limit. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as TestClock from "effect/testing/TestClock"
import type { Invariant } from "../../../src/invariants/Invariant.ts"
import { evaluate, prepare, ruleOf, test } from "./evaluating.ts"
import { changed, run, scanned, states } from "./landings.ts"
import { assertNone } from "../../support/assertions.ts"

describe("a statement for many companies that reaches its time limit", () => {
  /** Sixty companies with a record each, and a rule that takes time for each record. */
  const sixty = Effect.gen(function* () {
    yield* prepare
    const companies = Array.from({ length: 60 }, (_one, index) => index + 1)
    yield* run("delete from erp.things")
    yield* run("insert into erp.things select c, 1, 1 from generate_series(1, 60) c")
    yield* run("analyze erp.things")
    yield* scanned(companies, ["things"])
    yield* changed(companies, ["things"])
  })
  // Postgres evaluates the case, which costs more, after the condition of the company.
  const slow = (name: string, seconds: string) =>
    ruleOf(
      name,
      `select _company_id as company_id, 'things' as resource, id, 'x' as detail from {{things}} where pg_sleep(${seconds}) is null`
    )

  /** By the clock of the machine: the time of a statement tells whether it reached its limit. */
  const evaluated = (rule: Invariant) => TestClock.withLive(evaluate([rule], { timeout: Duration.seconds(1) }))

  test("is divided until it is fast enough, at each evaluation", function* () {
    yield* sixty
    const rule = slow("each", "case when id = 1 then 0.05 else 0 end")
    for (const round of [1, 2]) {
      assert.strictEqual(yield* evaluated(rule), 60)
      assertNone(yield* states, (line) => !line.endsWith("holds"), `round ${round}`)
      yield* changed(
        Array.from({ length: 60 }, (_one, index) => index + 1),
        ["things"]
      )
    }
  })

  test("is divided down to the one company that is too slow", function* () {
    yield* sixty
    const rule = slow("one", "case when _company_id = 30 then 5 else 0 end")
    assert.strictEqual(yield* evaluated(rule), 60)
    assert.deepStrictEqual(
      (yield* states).filter((line) => !line.endsWith("holds")),
      ["one of 30: failed (canceling statement due to statement timeout)"]
    )
  })
})
