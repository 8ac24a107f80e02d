/** The hours of the charts: which rows are read, and by which index, in a warehouse with the hours of a month. */
import { assert } from "@effect/vitest"
import * as Activity from "../../../src/status/Activity.ts"
import * as Processes from "../../../src/status/Processes.ts"
import * as RunDetails from "../../../src/status/RunDetails.ts"
import * as RunHours from "../../../src/status/RunHours.ts"
import { layerPages, pagesNow, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

suite("the activity by hour", layerPages, (test) => {
  test("reads only the hours of the day by the index, and no hour of the future", function* () {
    yield* sql`insert into tributary.activity (resolution, at, company, resource, runs)
        select 'hour', date_trunc('hour', tributary.now(), 'UTC') - hour * interval '1 hour', 'north', 'r' || number, 1
          from generate_series(-2, 743) hour, generate_series(1, 30) number`
    yield* sql`analyze tributary.activity`
    const now = new Date(pagesNow)
    const statements: ReadonlyArray<readonly [text: string, parameters: ReadonlyArray<unknown>]> = [
      [Activity.hoursStatement.text, [null]],
      [Activity.companyHoursStatement.text, [["north"]]],
      [Activity.resourceHoursStatement.text, [["north"], ["r1"]]],
      [RunHours.hoursStatement.text, [null, null]],
      [RunDetails.hoursStatement.text, ["north", "r1"]],
      [Processes.startsStatement.text, [now]]
    ]
    for (const [text, parameters] of statements) {
      const plan = JSON.stringify(yield* sql.unsafe(`explain (format json) ${text}`, parameters))
      assert.include(plan, "activity_by_time", text)
      assert.match(plan, /"Index Cond":"[^"]*at = ANY/, text)
    }

    const hours = yield* Activity.readTotals
    assert.strictEqual(hours.length, 24)
    assert.deepStrictEqual(new Set(hours.map(({ runs }) => runs)), new Set([30]))
    assert.isAtMost(hours.at(-1)!.at.getTime(), now.getTime())
  })
})
