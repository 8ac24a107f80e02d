/** The page of the rate budgets, and its chart. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { budgetChart, type ChartOptions, describe as inWords, refusalsOf } from "../../src/dashboard/BudgetChart.ts"
import { writeTimes } from "../../src/web/Times.ts"
import { routes } from "../../src/dashboard/pages/Budget.ts"
import type { Sample } from "../../src/tasks/SampleBudget.ts"
import { ask, unconnected, warehouse } from "./asking.ts"
import { suite, test } from "../support/suite.ts"
import { valuesOf } from "../support/rows.ts"
import { assertCount } from "../support/assertions.ts"
import { sql } from "../support/postgres.ts"

const at = (minute: number, second = 0): Date => new Date(Date.UTC(2026, 0, 1, 12, minute, second))
const options: ChartOptions = { id: "one", from: at(0), to: at(60), gapMs: 40_000 }
const point = (when: Date, more: Partial<Sample> = {}): Sample => ({
  at: when,
  used: 10,
  allowed: 100,
  configured: 100,
  refusals: 0,
  isPaused: false,
  ...more
})
const pathOf = (svg: string, name: string) => new RegExp(`<path\\s+class="${name}"\\s+d="([^"]*)"`).exec(svg)?.[1]
const drawn = (points: ReadonlyArray<Sample>) =>
  Effect.promise(async () => (await budgetChart(points, options)).toString())

test("the budget chart leaves a gap where no process measured, and marks refusals and pauses", function* () {
  const apart = yield* drawn([point(at(1)), point(at(1, 15)), point(at(1, 30)), point(at(9)), point(at(9, 15))])
  for (const path of ["used", "allowed"]) assert.lengthOf(pathOf(apart, path)!.match(/M/g)!, 2)
  // y: 100 on an axis that ends at 100, is 110 high and has its base at 134. x: 12:01 of an hour that is 1,000 wide.
  assert.match(pathOf(apart, "allowed")!, /^M16\.7,24L/)

  const points = [
    point(at(1)),
    point(at(1, 15), { refusals: 2, isPaused: true, used: 60, allowed: 75 }),
    point(at(1, 30), { refusals: 2, isPaused: true, allowed: 75 }),
    point(at(1, 45), { refusals: 3, allowed: 75 })
  ]
  assert.deepStrictEqual(valuesOf(refusalsOf(points), "refusals"), [2, 1])
  const svg = yield* drawn(points)
  assert.lengthOf(svg.match(/<text class="refused"/g)!, 2)
  assert.lengthOf(svg.match(/<rect\s+class="paused"/g)!, 1)
  assert.strictEqual(
    writeTimes(inWords(points, options), "UTC"),
    "Between 12:00 and 13:00 at most 60 of 75 allowed requests a minute were used, at 12:01. The source requested a pause once. It refused requests (429) 3 times."
  )

  const single = yield* drawn([point(at(5), { used: 0, allowed: null, configured: null })])
  assert.notInclude(single, "NaN")
  assert.strictEqual(pathOf(single, "allowed"), "")
  assert.include(yield* drawn([]), "Nothing was measured")
})

suite("the budget page", warehouse, (test) => {
  test("draws at most twelve budgets, those with the most use first, and counts the others", function* () {
    const names = Array.from({ length: 18 }, (_, index) => `c${String(index).padStart(2, "0")}`)
    const companies = names.map((name, index) =>
      unconnected(name, { fingerprint: `${name}${"f".repeat(61)}`, requestsPerMinute: 100 * (index + 1) })
    )
    for (const [index, { fingerprint }] of companies.entries()) {
      yield* sql`insert into tributary.budgets (fingerprint, requests_per_minute, updated_at) values (${fingerprint}, ${100 * (index + 1)}, tributary.now())`
      yield* sql`
          insert into tributary.budget_usage (fingerprint, at, used, allowed, configured, rate_limited_count, is_paused)
          select ${fingerprint}, tributary.now() - make_interval(secs => 15 * n), 90, ${100 * (index + 1)}, null, 0, false from generate_series(0, 200) n`
    }
    const { text, read } = yield* ask(routes, companies, "/budget")
    const lanes = [...text.matchAll(/<span class="name"><a href="\/budget\?company=(\w+)"/g)].map(([, name]) => name)
    assert.deepStrictEqual(lanes, names.slice(0, 12))
    assert.include(read, "12 budgets on one scale")
    assert.include(read, "6 further budgets are only in the table.")
    assertCount(text.match(/<th scope="row"|<tr role="row">/g)!, (one) => one.startsWith("<tr"), 19)
    assert.isBelow(Buffer.byteLength(text), 200_000)
  })
})
