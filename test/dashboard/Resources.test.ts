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
        health: Resources.healthOf(state, now)
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

describe("the health of a resource", () => {
  const failed = { ...run, status: "failed" as const }
  const failedTask: Task = { ...task, status: "failed", endedAt: before(1) }
  const paused = { ...task, pausedAt: before(60) }
  const never = { task: { ...task, status: null, endedAt: null }, lastRun: null, freshAt: null }
  const skipped: Task = { ...task, status: "skipped" }
  type Change = Partial<Parameters<typeof Resources.healthOf>[0]>
  const cases: ReadonlyArray<readonly [title: string, change: Change, expected: Partial<Resources.Health>]> = [
    ["fresh within its target", {}, { state: "fresh", isLate: false, ageMs: 300_000, targetMs: 900_000 }],
    ["fresh at its target", { freshAt: before(15) }, { state: "fresh" }],
    ["late beyond its target", { freshAt: before(16) }, { state: "late", isLate: true }],
    ["late with quarantine", { freshAt: before(16), quarantined: 1 }, { state: "late" }],
    ["in quarantine", { quarantined: 1 }, { state: "quarantine" }],
    ["not of a negative age after the clock was set back", { freshAt: before(-5) }, { ageMs: 0 }],
    ["never late without a target", { task: null, freshAt: before(10_000) }, { state: "fresh" }],
    ["never synced without a target", { task: null, lastRun: null, freshAt: null }, { state: "never-synced" }],
    ["late before the first read", never, { state: "late", ageMs: null }],
    [
      "never synced during the first read",
      { ...never, lastRun: { ...failed, status: "running" } },
      { state: "never-synced" }
    ],
    ["failing after a failure", { lastRun: failed }, { state: "failing", isFailing: true, isLate: false }],
    ["failing and late", { lastRun: failed, freshAt: before(60) }, { state: "failing", isLate: true }],
    ["failing after a failed task", { task: failedTask }, { state: "failing" }],
    ["fresh after a run that ended well since", { task: { ...failedTask, endedAt: before(8) } }, { state: "fresh" }],
    ["not late while paused", { task: paused, freshAt: before(60) }, { state: "paused", isLate: false }],
    ["failing while paused", { task: paused, lastRun: failed }, { state: "failing" }],
    [
      "neither late nor failing under an access block",
      { task: skipped, lastRun: failed, freshAt: null },
      { state: "blocked", isFailing: false, isLate: false }
    ]
  ]
  it.each(cases)("is %s", (_, change, expected) => {
    assert.deepInclude(Resources.healthOf({ ...fresh, ...change }, now), expected)
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
    const [clock] = yield* sql<{ now: Date }>`select tributary.now() as now`
    const shown = yield* Resources.read([company, shownCompany("other", 2n)], clock!.now)
    const stored = yield* readResources(datasetsDefault)
    assert.strictEqual(stored.length, resources.length)
    assert.deepStrictEqual(
      shown.map((state) => [state.resource, state.freshAt?.toISOString() ?? null, state.lastRun?.status ?? null]),
      stored.map(({ resource, freshAt, lastRun }) => [resource, freshAt, lastRun])
    )
    assert.strictEqual(shown.find(({ resource }) => resource === "widgets1")?.lastRun?.status, "abandoned")
    assert.strictEqual((yield* Resources.read([company], clock!.now, "widgets3")).length, 1)
  })
})
