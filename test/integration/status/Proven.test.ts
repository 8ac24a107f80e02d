/** Interfaces show which freshness events prove: status, the page of a resource, metrics. */
import { assert } from "@effect/vitest"
import * as TestClock from "effect/testing/TestClock"
import { readResources } from "../../../src/cli/status/Resources.ts"
import { reportLines } from "../../../src/cli/status/Format.ts"
import * as Format from "../../../src/dashboard/Format.ts"
import { readResourceMetrics } from "../../../src/status/ResourceMetrics.ts"
import * as Resources from "../../../src/status/Resources.ts"
import * as Schedule from "../../../src/status/Schedule.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { shownCompany } from "../../support/pages.ts"
import { clockIs, layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

suite("a freshness that events prove", layerWarehouse, (test) => {
  test("is shown as such wherever freshness is", function* () {
    // The time of both clocks.
    const now = new Date("1970-01-01T12:00:00Z")
    yield* sql.unsafe(clockIs(`timestamptz ''${now.toISOString()}''`))
    yield* TestClock.setTime(now.getTime())
    yield* sql`insert into tributary.companies (company, company_id) values ('north', 7)`
    for (const resource of ["a", "b"]) {
      yield* sql`
          insert into tributary.checkpoints (company_id, resource, lane, cursor, updated_at)
          values (7, ${resource}, 'live', 'c', tributary.now())`
      yield* sql`
          insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
          values (7, ${resource}, 'incremental', 'live', 'done', 1, tributary.now() - interval '2 hours', tributary.now())`
      yield* sql`
          insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, status, started_at, next_run_at, deferred_from)
          values ('north', ${resource}, 'sync', 'every 10 min', 900000, 'done', tributary.now() - interval '2 hours',
                  tributary.now() + interval '1 hour', case when ${resource} = 'a' then tributary.now() end)`
    }
    yield* sql`
        insert into tributary.event_checks (company, checked_at, delay, age_max, expires_at, resources)
        values ('north', tributary.now(), '6 min', '12 min', tributary.now() + interval '15 min', '{a}')`

    const [a, b] = yield* Resources.read([shownCompany("north", 7n)])
    assert.deepStrictEqual([a!.isProven, a!.health.state], [true, "fresh"])
    assert.deepStrictEqual([b!.isProven, b!.health.state], [false, "late"])
    assert.match(JSON.stringify(Format.freshness(a!, now)), /by events/)
    assert.notMatch(JSON.stringify(Format.freshness(b!, now)), /by events/)
    assert.match(JSON.stringify(Format.nextRun(a!, now)), /deferred while events prove freshness/)
    assert.notMatch(JSON.stringify(Format.nextRun(b!, now)), /deferred/)

    const resources = yield* readResources(datasetsDefault, [7n])
    assertEach(resources, ({ resource, isProven }) => `${resource} ${isProven}`, ["a true", "b false"])
    const schedule = yield* Schedule.readOf(["north"])
    const lines = reportLines({
      installations: [],
      resources,
      problems: [],
      schedule,
      webhooks: [],
      outbox: [],
      invariants: [],
      activity: [],
      damaged: []
    }).join("\n")
    assert.match(lines, /6 min ago by events/)
    assert.lengthOf(lines.match(/by events/g)!, 1)
    assert.match(lines, /deferred while events prove their freshness: 1/)

    const metrics = yield* readResourceMetrics(["north"])
    const proven = metrics.find(({ name }) => name === "tributary_freshness_proven")
    assertEach(proven!.samples, ({ labels, value }) => [labels?.["resource"], value], [
      ["a", 1],
      ["b", 0]
    ])
  })
})
