/** Metrics of tasks, runs and rate budgets: when tasks are late, due or failed, and counters that survive retention. */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as SyncMetrics from "../../../src/status/SyncMetrics.ts"
import { layerWarehouse as warehouse, sql } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

const fingerprint = "f".repeat(64)
const minutes = (count: number) => `(tributary.now() - make_interval(mins => ${count}))`

const tell = (text: string) =>
  Effect.forEach(text.split(";"), (statement) => sql.unsafe(statement, []), { discard: true })

const run = (resource: string, kind: string, status: string, minutesAgo: number, lane = "live") =>
  `insert into tributary.runs (company_id, resource, lane, kind, status, fence, started_at, finished_at, inserted, unchanged)
   values (7, '${resource}', '${lane}', '${kind}', '${status}', 1, ${minutes(minutesAgo)}, ${minutes(minutesAgo)}, 3, 4)`

const usage = Effect.succeed({ requests: 5, retries: 2, rateLimited: 1, bytes: 900 })

const samplesOf = (figures: Effect.Success<Effect.Success<ReturnType<typeof SyncMetrics.make>>>, name: string) => {
  const figure = figures.find((one) => one.name === `tributary_${name}`)
  return Object.fromEntries(
    (figure?.samples ?? []).map(({ labels = {}, value }) => [
      Object.entries(labels)
        .filter(([key]) => key !== "company")
        .map(([, text]) => text)
        .join(" "),
      Math.round(value)
    ])
  )
}

describe("SyncMetrics", () => {
  const test = testWith(warehouse)

  test("counts late, due, paused and failed tasks, and reports the rate budget", function* () {
    const schedule = (resource: string, columns: string, values: string) =>
      `insert into tributary.tasks (company, resource, kind, freshness_target_ms${columns})
         values ('north', '${resource}', 'sync', ${(resource === "fresh" ? 5 : 15) * 60_000}${values})`
    yield* tell(
      [
        "insert into tributary.companies (company, company_id) values ('north', 7), ('south', 8)",
        schedule("fresh", ", next_run_at", `, ${minutes(-5)}`),
        schedule("old", ", next_run_at, failures", `, ${minutes(10)}, 3`),
        schedule("never", ", next_run_at, requested_at", `, ${minutes(-5)}, ${minutes(2)}`),
        schedule("barred", ", status, next_run_at", `, 'skipped', ${minutes(-5)}`),
        schedule("resting", ", paused_at, next_run_at", `, ${minutes(60)}, ${minutes(60)}`),
        schedule("busy", ", next_run_at", `, ${minutes(30)}`),
        // Tasks of another company and of a backfill: the metrics by resource contain neither.
        "insert into tributary.tasks (company, resource, kind) values ('west', 'fresh', 'sync'), ('north', 'fresh', 'backfill')",
        run("fresh", "full", "done", 4),
        // Runs that read children or single records prove nothing about the other records.
        run("old", "full", "done", 120),
        run("old", "children", "done", 3),
        run("old", "fetch", "done", 2, "records"),
        run("old", "incremental", "failed", 1),
        run("resting", "incremental", "done", 5),
        run("busy", "incremental", "done", 5),
        run("busy", "incremental", "running", 0),
        `insert into tributary.quarantine
             (company_id, resource, reason, bytes, run_id, source, first_seen_at, last_seen_at, resolved_at)
           values (7, 'old', 'odd', 'a', 1, '', now(), now(), null), (7, 'old', 'odd', 'b', 1, '', now(), now(), now())`,
        "insert into tributary.row_counts (company_id, resource, rows, deleted) values (7, 'fresh', 90, 10)",
        `insert into tributary.budgets
             (fingerprint, requests_per_minute, used, rule, rate_limited_count, retry_after_at, updated_at)
           values ('${fingerprint}', 500, array[9] || array_fill(0, array[200]) || 30,
             '{"lowered":{"to":375,"at":4000000000000}}', 4, ${minutes(-2)}, tributary.now() - interval '1 second')`,
        `insert into tributary.processes (process_id, companies, heartbeat_at, stopped_at)
           values ('a', '{north}', tributary.now(), null), ('b', '{north}', ${minutes(2)}, null), ('c', '{north}', now(), now())`
      ].join(";")
    )
    const figures = yield* yield* SyncMetrics.make(() => [{ name: "north", installation: "one", fingerprint, usage }])
    assert.deepStrictEqual(samplesOf(figures, "freshness_late"), {
      barred: 0,
      busy: 0,
      fresh: 0,
      never: 1,
      old: 1,
      resting: 0
    })
    const ages = samplesOf(figures, "freshness_age_seconds")
    assert.sameMembers(Object.keys(ages), ["busy", "fresh", "old", "resting"])
    assert.closeTo(ages["old"]!, 7_200, 30)
    assert.strictEqual(samplesOf(figures, "freshness_target_seconds")["fresh"], 300)
    assert.deepStrictEqual(samplesOf(figures, "run_last_status"), {
      "busy running": 1,
      "fresh done": 1,
      "old failed": 1,
      "resting done": 1
    })
    assert.deepStrictEqual(samplesOf(figures, "task_failures"), { busy: 0, fresh: 0, never: 0, old: 3, resting: 0 })
    assert.deepStrictEqual(samplesOf(figures, "rows"), { fresh: 90 })
    assert.strictEqual(samplesOf(figures, "quarantine_open")["old"], 1)
    assert.deepStrictEqual(samplesOf(figures, "tasks"), { running: 1, paused: 1, due: 2, waiting: 3 })
    assert.closeTo(samplesOf(figures, "tasks_oldest_due_seconds")[""]!, 600, 30)
    assert.deepStrictEqual(samplesOf(figures, "serve_alive"), { "": 1 })
    assert.deepStrictEqual(samplesOf(figures, "budget_used_requests"), { "": 30 })
    assert.deepStrictEqual(samplesOf(figures, "budget_allowed_requests"), { "": 375 })
    assert.deepStrictEqual(samplesOf(figures, "budget_refusals_total"), { "": 4 })
    assert.closeTo(samplesOf(figures, "budget_paused_seconds")[""]!, 120, 30)
    assert.deepStrictEqual(samplesOf(figures, "source_requests_total"), { "": 5 })
  })

  test("counts each ended run once despite retention, and queries at most every five seconds", function* () {
    const clock = (at: string) =>
      tell(
        `create or replace function tributary.now() returns timestamptz language sql volatile parallel safe as
             $f$ select timestamptz '${at}' $f$`
      )
    yield* tell("insert into tributary.companies (company, company_id) values ('north', 7)")
    yield* clock("2026-05-01T00:00:10Z")
    const ask = yield* SyncMetrics.make(() => [{ name: "north", installation: "one", fingerprint, usage }])
    const runs = Effect.map(ask, (figures) => samplesOf(figures, "runs_ended_total"))
    const nothing = { done: 0, quarantined: 0, failed: 0, abandoned: 0 }
    assert.deepStrictEqual(yield* runs, nothing, "earlier ended runs are not counted")
    yield* tell([run("fresh", "incremental", "done", 0), run("old", "incremental", "failed", 0)].join(";"))
    yield* clock("2026-05-01T00:00:11Z")
    assert.deepStrictEqual(yield* runs, nothing, "the last result is still fresh")
    yield* TestClock.adjust("6 seconds")
    assert.deepStrictEqual(yield* runs, nothing, "the run ended less than two seconds ago")
    yield* clock("2026-05-01T00:00:16Z")
    yield* TestClock.adjust("6 seconds")
    assert.deepStrictEqual(yield* runs, { ...nothing, done: 1, failed: 1 })
    yield* tell("delete from tributary.runs")
    yield* clock("2026-05-01T00:00:30Z")
    yield* TestClock.adjust("6 seconds")
    const figures = yield* ask
    assert.deepStrictEqual(samplesOf(figures, "runs_ended_total"), { ...nothing, done: 1, failed: 1 })
    assert.deepStrictEqual(samplesOf(figures, "records_total"), {
      inserted: 6,
      updated: 0,
      unchanged: 8,
      deleted: 0,
      quarantined: 0
    })
  })
})
