/** The deferral of polls while events prove freshness: when it begins, and that it ends as soon as the proof does. */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as EventProofs from "../../../src/tasks/EventProofs.ts"
import * as DueTasks from "../../../src/tasks/DueTasks.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

let companies = 0
/** So long that no company's place in it, which its name decides, is within the ten minutes since its last poll. */
const interval = Duration.days(10_000)

/** A company with a proven resource that was polled ten minutes ago, and is about to be polled again. */
const proven = Effect.fnUntraced(function* () {
  const number = (companies += 1)
  const company = `company${number}`
  const run = (text: string) => sql.unsafe(text, [company])
  yield* sql`insert into tributary.companies (company, company_id) values (${company}, ${number})`
  yield* sql`
    insert into tributary.checkpoints (company_id, resource, lane, cursor, updated_at)
    values (${number}, 'a', 'live', 'c', tributary.now())`
  yield* run(
    `insert into tributary.event_checks (company, checked_at, delay, age_max, expires_at, resources)
     values ($1, tributary.now(), '6 min', '12 min', tributary.now() + interval '15 min', '{a}')`
  )
  yield* run(
    `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, status, started_at, finished_at, next_run_at)
     values ($1, 'a', 'sync', 'every 10 min', 900000, 'done', tributary.now() - interval '10 min',
             tributary.now() - interval '10 min', tributary.now() + interval '10 seconds')`
  )
  const task = Effect.map(
    sql<{ inMs: number; isDeferred: boolean; sinceMs: number }>`
      select (extract(epoch from next_run_at - tributary.now()) * 1000)::float8 as "inMs", deferred_from is not null as "isDeferred",
             (extract(epoch from next_run_at - started_at) * 1000)::float8 as "sinceMs"
        from tributary.tasks where company = ${company}`,
    ([row]) => row!
  )
  const isDeferred = Effect.map(task, (one) => one.isDeferred)
  const update = EventProofs.update(interval)
  return { company, number, isDeferred, run, task, update }
})

/** What ends a proof, as it is stored. */
const endings: ReadonlyArray<readonly [what: string, text: string]> = [
  [
    "a delivery gap",
    "insert into tributary.delivery_gaps (company, resource, cause, detail) values ($1, 'a', 'subscription_inactive', '')"
  ],
  [
    "a dead letter",
    `insert into tributary.inbox (company, resource, event_id, event_type, sent_at, body, state)
     values ($1, 'a', 'e', 'a.updated', tributary.now(), '', 'dead_letter')`
  ],
  [
    "an event that is pending for long",
    `insert into tributary.inbox (company, resource, event_id, event_type, sent_at, body, received_at, next_attempt_at)
     values ($1, 'a', 'e', 'a.updated', tributary.now(), '', tributary.now() - interval '11 min', tributary.now() - interval '11 min')`
  ],
  [
    "an event that fails",
    `insert into tributary.inbox (company, resource, event_id, event_type, sent_at, body, received_at, next_attempt_at, last_error)
     values ($1, 'a', 'e', 'a.updated', tributary.now(), '', tributary.now() - interval '11 min', tributary.now() + interval '1 hour', 'no')`
  ],
  [
    "a quarantined record",
    `insert into tributary.quarantine (company_id, resource, reason, bytes, run_id, source, first_seen_at, last_seen_at)
     select company_id, 'a', 'odd', '{}', 1, '', tributary.now(), tributary.now() from tributary.companies where company = $1`
  ],
  [
    "a required full scan",
    `update tributary.checkpoints set full_scan_reason = 'older rows'
      where company_id = (select company_id from tributary.companies where company = $1)`
  ],
  ["the end of checks", "update tributary.event_checks set expires_at = tributary.now() where company = $1"],
  [
    "a withdrawn resource",
    "update tributary.event_checks set resources = '{}', withdrawn_at = tributary.now() where company = $1"
  ]
]

suite("the deferral of polls", layerWarehouse, (test, it) => {
  test("defers a poll that is about to be due, by at most the interval after the last one", function* () {
    const { company, run, task, update } = yield* proven()
    yield* update
    const deferred = yield* task
    assert.isTrue(deferred.isDeferred)
    assert.isAbove(deferred.inMs, 10_000)
    assert.isAtMost(deferred.sinceMs, Duration.toMillis(interval))
    assert.deepStrictEqual(yield* update, { deferred: 0, ended: 0 })

    // The next polls are at the same place of each interval.
    yield* run(
      `update tributary.tasks set started_at = next_run_at + interval '1 second', deferred_from = null,
                  next_run_at = tributary.now() where company = $1`
    )
    yield* update
    assert.approximately((yield* task).sinceMs, Duration.toMillis(interval) - 1000, 1)

    // A person's request runs at once, and ends the deferral.
    yield* run("update tributary.tasks set requested_at = tributary.now() where company = $1")
    const [next] = yield* DueTasks.nextTasks({ companies: [company], taken: [], concurrency: 1, limit: 1 })
    assert.strictEqual(next?.resource, "a")
    const result = { status: "done", runId: null, error: null, remedy: null, failures: 0, nextMs: next!.nowMs } as const
    yield* DueTasks.completeTask(next!, result)
    assert.isFalse((yield* task).isDeferred)
  })

  it.effect("ends as soon as the proof does", () =>
    Effect.forEach(
      endings,
      Effect.fnUntraced(function* ([what, text]) {
        const { isDeferred, run, task, update } = yield* proven()
        yield* update
        assert.isTrue(yield* isDeferred, what)
        yield* run(text)
        assert.strictEqual((yield* update).ended, 1, what)
        const { inMs, ...ended } = yield* task
        assert.isFalse(ended.isDeferred, what)
        assert.isAtMost(inMs, 10_000, what)
        assert.deepStrictEqual(yield* update, { deferred: 0, ended: 0 }, what)
      })
    )
  )

  it.effect("leaves polls that are not proven, too strict, or at times that a person set", () =>
    Effect.forEach(
      [
        "update tributary.tasks set freshness_target_ms = 660000 where company = $1",
        "update tributary.tasks set schedule = '0 3 * * * (UTC)' where company = $1",
        "update tributary.tasks set status = 'quarantined' where company = $1",
        "update tributary.tasks set paused_at = tributary.now() where company = $1",
        "update tributary.event_checks set resources = '{b}' where company = $1",
        "update tributary.event_checks set checked_at = checked_at - interval '10 min' where company = $1"
      ],
      Effect.fnUntraced(function* (text) {
        const { isDeferred, run, update } = yield* proven()
        yield* run(text)
        yield* update
        assert.isFalse(yield* isDeferred, text)
      })
    )
  )

  test("ends where it is turned off", function* () {
    const { isDeferred, update } = yield* proven()
    yield* update
    assert.isTrue(yield* isDeferred)
    yield* Effect.raceFirst(
      EventProofs.updateForever(Duration.zero),
      Effect.repeat(isDeferred, { until: (one) => !one })
    )
    assert.isFalse(yield* isDeferred)
  })
})
