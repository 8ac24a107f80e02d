/** The findings of `tributary doctor` and their exit code. `Doctor.long.test.ts` tests each finding on a real fault. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { about, check, codeOf, groupAlike, lines } from "../../src/cli/doctor/Finding.ts"
import { test } from "../support/suite.ts"

describe("the findings of tributary doctor", () => {
  it("set the exit code of the most urgent failure", () => {
    const { ok, warning, failed, skipped } = about("x")
    const unreachable = failed("unreachable", "a", "b")
    const refused = failed("refused", "a", "b")
    const configuration = failed("configuration", "a", "b")
    assert.strictEqual(codeOf([ok("a"), warning("a", "b"), skipped("a")]), 0)
    assert.strictEqual(codeOf([ok("a"), unreachable]), 5)
    assert.strictEqual(codeOf([unreachable, refused]), 3)
    assert.strictEqual(codeOf([unreachable, refused, configuration]), 2)
  })

  it("are printed one per line with the remedy below", () => {
    const [first, second, , sum] = lines([
      about("token", "north").warning("is odd", "look at it"),
      about("a longer check").ok("is well")
    ])
    assert.strictEqual(first, "WARNING  token           north: is odd")
    assert.strictEqual(second, "                         -> look at it")
    assert.strictEqual(sum, "")
  })

  it("are one finding where those of many companies differ only in names and numbers", () => {
    const budget = about("budget")
    const refused = Array.from({ length: 400 }, (_, index) =>
      about("token", `c${index}`).failed("refused", `the token of c${index} was refused (${index} ms)`, "renew it")
    )
    const [first, second, third, ...others] = groupAlike([
      about("token", "north").ok("accepted, company 7"),
      ...refused,
      budget.ok("no pause"),
      about("token", "west").ok("accepted, company 9")
    ])
    assert.strictEqual(first?.subject, "north")
    assert.deepInclude(second, {
      subject: "400 companies (c0, c1, c2, c3, c4 and 395 more)",
      message: "the token of c0 was refused (0 ms)",
      kind: "refused",
      remedy: "renew it"
    })
    assert.deepStrictEqual([third, others.map(({ subject }) => subject)], [budget.ok("no pause"), ["west"]])
  })

  test("report a check as failed when it exceeds 10 s or throws", function* () {
    const waiting = yield* Effect.forkChild(check("x", null, () => Effect.never))
    yield* TestClock.adjust("10 seconds")
    const [late] = yield* Fiber.join(waiting)
    assert.deepInclude(late, { status: "failed", kind: "unreachable", message: "no answer within 10 s" })
    const [broken] = yield* check("x", null, () => Effect.die(new Error("out of order")))
    assert.deepInclude(broken, { status: "failed", message: "the check itself failed: out of order" })
  })
})
