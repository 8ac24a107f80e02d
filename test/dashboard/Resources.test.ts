import { assert, describe, it } from "@effect/vitest"
import { readResources } from "../../src/cli/status/Resources.ts"
import { nextRun } from "../../src/dashboard/Format.ts"
import * as Resources from "../../src/status/Resources.ts"
import { writeTimes } from "../../src/web/Times.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import type { Task } from "../../src/tasks/TaskQueue.ts"
import { seed, shownCompany } from "../support/pages.ts"
import { layerPages, sql } from "../support/postgres.ts"
import { suite } from "../support/suite.ts"

const now = new Date("2026-11-20T12:00:00Z")
const before = (minutes: number) => new Date(now.getTime() - minutes * 60_000)

const task: Task = {
  company: "north",
  resource: "things",
  kind: "sync",
  schedule: "every 10 min",
  promiseMs: 15 * 60_000,
  nextAt: null,
  deferredFrom: null,
  pausedAt: null,
  pausedBy: null,
  askedAt: null,
  askedBy: null,
  askedFull: false,
  since: null,
  until: null,
  runningSince: null,
  beganAt: before(5),
  endedAt: before(5),
  status: "done",
  runId: 1n,
  failures: 0,
  error: null,
  remedy: null,
  failureKind: null
}
const run: Resources.LastRun = {
  id: 1n,
  status: "done",
  kind: "incremental",
  beganAt: before(5),
  endedAt: before(5),
  errorKind: null,
  error: null,
  remedy: null,
  note: null
}
const fresh = { task, lastRun: run, freshAt: before(5), quarantined: 0 }

describe("the next run", () => {
  const nextOf = async (minutes: number, change: Partial<typeof task> = {}) => {
    const state = { ...fresh, task: { ...task, nextAt: before(-minutes), ...change } }
    const shown = nextRun(
      {
        company: "north",
        companyId: 1n,
        resource: "things",
        ...state,
        backfill: null,
        checkpoint: null,
        isProven: false,
        rows: null,
        failure: null,
        health: {
          state: "fresh",
          isFailing: false,
          isLate: false,
          isPaused: false,
          isRunning: false,
          isBlocked: false,
          ageMs: 5 * 60_000,
          targetMs: task.promiseMs
        }
      },
      now
    )
    return writeTimes((await shown).toString(), "UTC")
      .replaceAll(/<[^>]+>/g, "")
      .replaceAll(/\s+/g, " ")
      .trim()
  }
  it("warns where the target is missed before it", async () => {
    assert.strictEqual(await nextOf(9), "in 9 min")
    assert.strictEqual(await nextOf(12), "in 12 min after its target")
    assert.strictEqual(await nextOf(12, { failures: 1 }), "in 12 min retry")
    assert.strictEqual(await nextOf(12, { deferredFrom: before(1) }), "in 12 min deferred while events prove freshness")
  })
})

suite("the resources page", layerPages, (test) => {
  test("shows the same freshness as tributary status", function* () {
    const resources = Array.from({ length: 20 }, (_, index) => `widgets${index}`)
    yield* seed([["north", 1]], resources, 200)
    // Later runs that do not make the resource fresh.
    yield* sql`insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
                 select 1, 'widgets1', kind, lane, status, 1, tributary.now(), tributary.now()
                   from (values ('children', 'live', 'done'), ('full', 'backfill', 'done'), ('fetch', 'records', 'done'),
                                ('incremental', 'live', 'abandoned')) as x (kind, lane, status)`
    const company = shownCompany("north", 1n)
    const shown = yield* Resources.read([company, shownCompany("other", 2n)])
    const stored = yield* readResources(datasetsDefault)
    assert.strictEqual(stored.length, resources.length)
    assert.deepStrictEqual(
      shown.map((state) => [state.resource, state.freshAt?.toISOString() ?? null, state.lastRun?.status ?? null]),
      stored.map(({ resource, freshAt, lastRun }) => [resource, freshAt, lastRun])
    )
    assert.strictEqual(shown.find(({ resource }) => resource === "widgets1")?.lastRun?.status, "abandoned")
    assert.strictEqual((yield* Resources.read([company], "widgets3")).length, 1)
  })
})
