/** The state of a resource (`tributary.resource_states`), case by case. */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Resources from "../../../src/status/Resources.ts"
import { shownCompany } from "../../support/pages.ts"
import { clockIs, execute, layerPages, pagesNow } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

const test = testWith(layerPages)

const before = (minutes: number): string => new Date(new Date(pagesNow).getTime() - minutes * 60_000).toISOString()

interface Task {
  readonly status: string | null
  /** Minutes since its last run ended; null before the first. */
  readonly ended: number | null
  readonly isPaused: boolean
}

interface Case {
  /** Null without a task. */
  readonly task: Task | null
  /** The minutes since the start of the last run that made it fresh; null without one. */
  readonly fresh: number | null
  /** The status of a later run. */
  readonly later: string | null
  readonly quarantined: number
}

const task: Task = { status: "done", ended: 5, isPaused: false }
const fresh: Case = { task, fresh: 5, later: null, quarantined: 0 }

/** Stores only this resource. */
const store = Effect.fnUntraced(function* (one: Case) {
  for (const table of ["tasks", "runs", "quarantine"]) yield* execute(`delete from tributary.${table}`)
  if (one.task !== null) {
    const { status, ended, isPaused } = one.task
    yield* execute(
      `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, status, started_at, finished_at, paused_at)
       values ('north', 'things', 'sync', 'every 10 min', 900000, $1, $2::timestamptz, $2, $3::timestamptz)`,
      [status, ended === null ? null : before(ended), isPaused ? before(60) : null]
    )
  }
  const runs = [
    ...(one.fresh === null ? [] : [["done", one.fresh] as const]),
    ...(one.later === null ? [] : [[one.later, 1] as const])
  ]
  for (const [status, minutes] of runs) {
    yield* execute(
      `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
       values (7, 'things', 'incremental', 'live', $1, 1, $2::timestamptz, case when $1 <> 'running' then $2::timestamptz end)`,
      [status, before(minutes)]
    )
  }
  yield* execute(
    `insert into tributary.quarantine (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at)
     select 7, 'things', n::text, 'a NUL cannot be stored', '{}', 1, 'GET /x', tributary.now(), tributary.now() from generate_series(1, $1::int) n`,
    [one.quarantined]
  )
})

const readHealth = Effect.gen(function* () {
  const [state, ...others] = yield* Resources.read([shownCompany("north", 7n)])
  assert.lengthOf(others, 0)
  return state!
})

const failedTask: Task = { ...task, status: "failed", ended: 1 }
const paused: Task = { ...task, isPaused: true }
const skipped: Task = { ...task, status: "skipped" }
const never: Partial<Case> = { task: { ...task, status: null, ended: null }, fresh: null }

const cases: ReadonlyArray<readonly [title: string, change: Partial<Case>, expected: Partial<Resources.Health>]> = [
  ["fresh within its target", {}, { state: "fresh", isLate: false, ageMs: 300_000, targetMs: 900_000 }],
  ["fresh at its target", { fresh: 15 }, { state: "fresh" }],
  ["late beyond its target", { fresh: 16 }, { state: "late", isLate: true }],
  ["late with quarantine", { fresh: 16, quarantined: 1 }, { state: "late" }],
  ["in quarantine", { quarantined: 1 }, { state: "quarantine" }],
  ["not of a negative age after the clock was set back", { fresh: -5 }, { state: "fresh", ageMs: 0 }],
  ["never late without a target", { task: null, fresh: 10_000 }, { state: "fresh", targetMs: null }],
  ["never synced without a target", { task: null, fresh: null }, { state: "never-synced" }],
  ["late before the first read", never, { state: "late", ageMs: null }],
  ["never synced during the first read", { ...never, later: "running" }, { state: "never-synced", isRunning: true }],
  ["late after a first read that was abandoned", { ...never, later: "abandoned" }, { state: "late", isRunning: false }],
  ["failing after a failure", { later: "failed" }, { state: "failing", isFailing: true, isLate: false }],
  ["failing and late", { later: "failed", fresh: 60 }, { state: "failing", isLate: true }],
  ["failing after a failed task", { task: failedTask }, { state: "failing" }],
  ["fresh after a run that ended well since", { task: { ...failedTask, ended: 8 } }, { state: "fresh" }],
  ["not late while paused", { task: paused, fresh: 60 }, { state: "paused", isLate: false, isPaused: true }],
  ["failing while paused", { task: paused, later: "failed" }, { state: "failing", isPaused: true }],
  [
    "neither late nor failing under an access block",
    { task: skipped, later: "failed", fresh: null },
    { state: "blocked", isFailing: false, isLate: false, isBlocked: true }
  ]
]

describe("the state of a resource", () => {
  test("follows from its task, runs and quarantine", function* () {
    yield* execute("insert into tributary.companies (company, company_id) values ('north', 7)")
    yield* execute(
      "insert into tributary.checkpoints (company_id, resource, updated_at) values (7, 'things', tributary.now())"
    )
    for (const [title, change, expected] of cases) {
      yield* store({ ...fresh, ...change })
      assert.deepInclude((yield* readHealth).health, expected, title)
    }
  })

  test("has its last failure, of its task or of a run by a command", function* () {
    yield* execute("insert into tributary.companies (company, company_id) values ('north', 7)")
    yield* store({ ...fresh, task: failedTask, later: "failed" })
    yield* execute("update tributary.tasks set error = 'of the task', remedy = 'repair it', failures = 3")
    yield* execute("update tributary.runs set error = 'of the run' where status = 'failed'")
    assert.deepInclude(
      (yield* readHealth).failure,
      { error: "of the task", remedy: "repair it" },
      "both are of one minute"
    )
    yield* execute("update tributary.runs set finished_at = finished_at + interval '1 second' where status = 'failed'")
    assert.deepInclude((yield* readHealth).failure, { error: "of the run", remedy: null })
    yield* execute("update tributary.tasks set status = 'skipped'")
    yield* execute("update tributary.runs set status = 'done' where status = 'failed'")
    assert.deepInclude((yield* readHealth).failure, { error: "of the task" }, "of a blocked resource")
    yield* execute("update tributary.tasks set status = 'done'")
    assert.isNull((yield* readHealth).failure, "what it had before")
  })

  test("is fresh by a proof of events, which is no run", function* () {
    yield* execute("insert into tributary.companies (company, company_id) values ('north', 7)")
    yield* store({ ...fresh, task: { ...task, ended: 59 }, fresh: 60 })
    assert.strictEqual((yield* readHealth).health.state, "late")
    yield* execute(
      `insert into tributary.event_checks (company, checked_at, delay, age_max, expires_at, resources)
       values ('north', tributary.now(), '6 min', '12 min', tributary.now() + interval '15 min', '{things}')`
    )
    yield* execute(
      "insert into tributary.checkpoints (company_id, resource, updated_at, cursor) values (7, 'things', tributary.now(), 'c')"
    )
    const { health, isProven } = yield* readHealth
    assert.deepStrictEqual([health.state, isProven], ["fresh", true])
    const [row] = yield* execute<{ ran: boolean }>(
      "select succeeded_at < fresh_at as ran from tributary.resource_states"
    )
    assert.isTrue(row!.ran)
    // The proof does not end the failure of the last run.
    yield* execute(
      `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
       values (7, 'things', 'incremental', 'live', 'failed', 1, '${before(30)}', '${before(30)}')`
    )
    assert.deepInclude((yield* readHealth).health, { state: "failing", isFailing: true, isLate: false })
  })

  test("after the clock was set back is that of before", function* () {
    yield* execute("insert into tributary.companies (company, company_id) values ('north', 7)")
    yield* store({ ...fresh, later: "failed" })
    yield* execute(clockIs(`timestamptz ''${before(600)}''`))
    assert.deepInclude((yield* readHealth).health, { state: "failing", ageMs: 0, isLate: false })
    yield* store(fresh)
    assert.deepInclude((yield* readHealth).health, { state: "fresh", ageMs: 0, isLate: false })
  })
})
