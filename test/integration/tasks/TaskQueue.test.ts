/** The task queue in Postgres: due tasks, their leases, and calls of processes that lost a lease. */
import { assert, describe, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as SourceGuard from "../../../src/sync/SourceGuard.ts"
import * as TaskLeases from "../../../src/tasks/TaskLeases.ts"
import * as TaskQueue from "../../../src/tasks/TaskQueue.ts"
import * as TaskSchedules from "../../../src/tasks/TaskSchedules.ts"
import { layerWarehouse as warehouse } from "../../support/postgres.ts"

let companies = 0
/** A new company for each test, so that tests share a database and no row. */
const newCompany = () => `company${(companies += 1)}`

const minute = 60_000
const plan = (
  company: string,
  resource: string,
  more: Partial<TaskSchedules.TaskSchedule> = {}
): TaskSchedules.TaskSchedule => ({
  company,
  resource,
  schedule: "every 10 min",
  freshnessTarget: Duration.minutes(15),
  missed: "once",
  next: (afterMs, lastBeganMs) => (lastBeganMs === null ? afterMs : afterMs + 10 * minute),
  ...more
})
const runnable = (company: string, ...resources: ReadonlyArray<string>): ReadonlyArray<TaskLeases.Runnable> =>
  resources.map((resource) => ({ company, resource, parent: null }))

const set = (company: string, resource: string, assignments: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe(`update tributary.tasks set ${assignments} where company = $1 and resource = $2`, [company, resource])
  )
const taskOf = (company: string, resource: string, kind: TaskQueue.TaskKind = "sync") =>
  Effect.map(TaskQueue.readTasks, (tasks) =>
    tasks.find((task) => task.company === company && task.resource === resource && task.kind === kind)!
  )
const nowMs = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ ms: number }>`select (extract(epoch from tributary.now()) * 1000)::float8 as ms`,
    (rows) => rows[0]!.ms
  )
)
const done: TaskLeases.TaskResult = { status: "done", runId: 7n, error: null, remedy: null, failures: 0, nextMs: null }
const namesOf = (claims: ReadonlyArray<TaskLeases.ClaimedTask>) =>
  claims.map(({ resource, kind }) => `${kind} ${resource}`).sort()

describe("the task queue", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("in Postgres", (it) => {
    it.effect("makes a never synced task due at once, and lets one process claim it", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([
          plan(company, "a"),
          plan(company, "b"),
          plan(company, "off", { schedule: null })
        ])
        assert.deepStrictEqual((yield* TaskLeases.pollDue([company])).due, [company])
        const claimable = runnable(company, "a", "b", "off")
        const [mine, yours] = yield* Effect.all(
          [
            TaskLeases.claimTasks("me", claimable, 4),
            TaskLeases.claimTasks("you", claimable, 4),
            TaskLeases.claimTasks("she", claimable, 4)
          ],
          { concurrency: "unbounded" }
        ).pipe(Effect.map((all) => all.flat()))
        assert.sameMembers([mine!.resource, yours!.resource], ["a", "b"])
        assert.deepStrictEqual((yield* TaskLeases.pollDue([company])).due, [])
        const runningTask = yield* taskOf(company, "a")
        assert.isTrue(runningTask.isRunning)
        assert.isNotNull(runningTask.beganAt)
        assert.isTrue(yield* TaskLeases.completeTask(mine!, { ...done, nextMs: (yield* nowMs) + minute }))
        const completedTask = yield* taskOf(company, mine!.resource)
        assert.deepInclude(completedTask, { isRunning: false, status: "done", runId: 7n })
        assert.deepStrictEqual((yield* TaskLeases.pollDue([company])).due, [])
      })
    )

    it.effect("makes a synced task due at its next scheduled time, whichever process synced it", () =>
      Effect.gen(function* () {
        const company = newCompany()
        const sql = yield* SqlClient.SqlClient
        const later = { schedule: "0 3 * * * (UTC)", next: (afterMs: number) => afterMs + 60 * minute }
        yield* SourceGuard.saveCompanyId(company, 4711n)
        yield* sql`insert into tributary.checkpoints (company_id, resource, lane, fence, cursor, updated_at)
          values (4711, 'synced', 'live', 1, '2026-01-01T00:00:00Z', tributary.now()),
                 (4711, 'touched', 'live', 1, null, tributary.now())`
        yield* TaskSchedules.upsertSchedules([
          plan(company, "synced", later),
          plan(company, "touched", later),
          plan(company, "new", later)
        ])
        const now = yield* nowMs
        const dueIn = (resource: string) =>
          Effect.map(taskOf(company, resource), ({ nextAt }) => Math.round((nextAt!.getTime() - now) / minute))
        assert.strictEqual(yield* dueIn("synced"), 60)
        assert.strictEqual(yield* dueIn("touched"), 0)
        assert.strictEqual(yield* dueIn("new"), 0)
      })
    )

    it.effect("moves a task with an expired lease to another process and ignores the former one", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a")])
        const [myLease] = yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1)
        assert.isNull(myLease!.leaseExpiredAt)
        assert.lengthOf(yield* TaskLeases.renewLeases([myLease!]), 1)
        assert.lengthOf(yield* TaskLeases.claimTasks("you", runnable(company, "a"), 1), 0)
        yield* set(company, "a", "lease_expires_at = tributary.now() - interval '1 ms', paused_at = tributary.now()")
        const [yourLease] = yield* TaskLeases.claimTasks("you", runnable(company, "a"), 1)
        assert.isTrue(yourLease!.fence > myLease!.fence)
        assert.isNotNull(
          yourLease!.leaseExpiredAt,
          "a task that a process abandoned is finished even while it is paused"
        )
        assert.lengthOf(yield* TaskLeases.renewLeases([myLease!]), 0)
        assert.isFalse(yield* TaskLeases.completeTask(myLease!, { ...done, status: "failed" }))
        assert.isFalse(yield* TaskLeases.rescheduleTask(myLease!, 0))
        assert.isFalse(yield* TaskLeases.returnTask(myLease!, "stopped"))
        assert.isTrue((yield* taskOf(company, "a")).isRunning)
        assert.isTrue(yield* TaskLeases.completeTask(yourLease!, done))
        assert.strictEqual((yield* taskOf(company, "a")).status, "done")
      })
    )

    it.effect("returns an interrupted task to the queue with its request", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a", { schedule: null })])
        yield* TaskQueue.requestSync({ company, resource: "a", full: true, by: "Ann" })
        const [lease] = yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1)
        assert.deepInclude(lease!, { full: true })
        assert.isNotNull(lease!.requestedAt)
        assert.isTrue(yield* TaskLeases.returnTask(lease!, "stopped: the process was shut down"))
        assert.deepInclude(yield* taskOf(company, "a"), { status: "interrupted", isRunning: false, askedBy: "Ann" })
        const [nextLease] = yield* TaskLeases.claimTasks("you", runnable(company, "a"), 1)
        assert.deepInclude(nextLease!, { full: true, leaseExpiredAt: null })
        assert.strictEqual(nextLease!.requestedAt?.getTime(), lease!.requestedAt?.getTime())
      })
    )

    it.effect("runs a task once more after any number of requests during its run", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a", { schedule: null })])
        assert.lengthOf(yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1), 0)
        yield* TaskQueue.requestSync({ company, resource: "a", full: false, by: "Ann" })
        assert.deepStrictEqual((yield* TaskLeases.pollDue([company])).requested, [company])
        const [first] = yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1)
        yield* TaskQueue.requestSync({ company, resource: "a", full: true, by: "Ben" })
        yield* TaskQueue.requestSync({ company, resource: "a", full: false, by: "Ann" })
        assert.lengthOf(yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1), 0)
        yield* TaskLeases.completeTask(first!, done)
        const [second] = yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1)
        assert.isTrue(second!.full, "Ann's smaller request does not replace Ben's full scan")
        yield* TaskLeases.completeTask(second!, done)
        assert.lengthOf(yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1), 0)
        assert.isFalse((yield* taskOf(company, "a")).askedFull)
      })
    )

    it.effect("claims no paused task, except for an explicit request", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a"), plan(company, "b")])
        assert.strictEqual(yield* TaskQueue.pauseTasks({ company, resource: null, by: "Ann" }), 2)
        assert.strictEqual(yield* TaskQueue.pauseTasks({ company, resource: "a", by: "Ben" }), 0)
        assert.strictEqual((yield* taskOf(company, "a")).pausedBy, "Ann")
        assert.deepStrictEqual((yield* TaskLeases.pollDue([company])).due, [])
        yield* TaskQueue.requestSync({ company, resource: "b", full: false, by: "Ann" })
        const leases = yield* TaskLeases.claimTasks("me", runnable(company, "a", "b"), 4)
        assert.deepStrictEqual(namesOf(leases), ["sync b"])
        yield* TaskLeases.completeTask(leases[0]!, { ...done, nextMs: yield* nowMs })
        assert.deepStrictEqual((yield* TaskLeases.pollDue([company])).due, [])
        assert.strictEqual(yield* TaskQueue.resumeTasks({ company, resource: "a", by: "Ann" }), 1)
        assert.deepStrictEqual(namesOf(yield* TaskLeases.claimTasks("me", runnable(company, "a", "b"), 4)), ["sync a"])
      })
    )

    it.effect("claims tasks in order, children after parents, within the limit of each company", () =>
      Effect.gen(function* () {
        const company = newCompany()
        const other = newCompany()
        yield* TaskSchedules.upsertSchedules([
          plan(company, "parent"),
          plan(company, "child"),
          plan(company, "late", { freshnessTarget: Duration.minutes(1) }),
          plan(company, "later", { freshnessTarget: Duration.hours(1) }),
          plan(other, "one")
        ])
        yield* set(company, "late", "next_run_at = tributary.now() - interval '10 min'")
        yield* set(company, "later", "next_run_at = tributary.now() - interval '20 min'")
        yield* TaskQueue.requestSync({ company, resource: "later", full: false, by: "Ann" })
        const claimable = [
          ...runnable(company, "parent", "late", "later"),
          { company, resource: "child", parent: "parent" },
          ...runnable(other, "one")
        ]
        const order: Array<string> = []
        const claim = Effect.tap(TaskLeases.claimTasks("me", claimable, 2), (claims) =>
          Effect.sync(() => order.push(...claims.map(({ resource }) => resource).sort()))
        )
        const [later] = (yield* claim).filter(({ company: name }) => name === company)
        yield* claim
        yield* claim
        assert.deepStrictEqual(order, ["later", "one", "late"], "the company has its limit of two running tasks")
        yield* TaskLeases.completeTask(later!, done)
        const [parent] = yield* claim
        assert.strictEqual(parent!.resource, "parent")
        yield* set(company, "late", "lease_owner = null, lease_expires_at = null, next_run_at = null")
        yield* claim
        assert.deepStrictEqual(order.slice(3), ["parent"], "its parent still runs")
        yield* TaskLeases.completeTask(parent!, done)
        yield* claim
        assert.deepStrictEqual(order.slice(3), ["parent", "child"])
      })
    )

    it.effect("claims up to the limit, longest due first across all companies", () =>
      Effect.gen(function* () {
        const companies = [newCompany(), newCompany(), newCompany()]
        yield* TaskSchedules.upsertSchedules(companies.map((company) => plan(company, "a")))
        for (const [minutes, company] of companies.entries()) {
          yield* set(company, "a", `next_run_at = tributary.now() - interval '${minutes + 1} minutes'`)
        }
        const claimable = companies.flatMap((company) => runnable(company, "a"))
        const leases = yield* TaskLeases.claimTasks("me", claimable, 4, 2)
        assert.deepStrictEqual(leases.map(({ company }) => company).sort(), companies.slice(1).sort())
        assert.lengthOf(yield* TaskLeases.claimTasks("me", claimable, 4, 0), 0)
        assert.deepStrictEqual(
          (yield* TaskLeases.claimTasks("me", claimable, 4)).map(({ company }) => company),
          companies.slice(0, 1)
        )
      })
    )

    it.effect("accepts one backfill per resource at a time, in parallel with its sync", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a")])
        const range = { company, resource: "a", since: "2026-01-01T00:00:00Z", until: null, by: "Ann" }
        assert.strictEqual(yield* TaskQueue.requestBackfill(range), "asked")
        const claims = yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1)
        assert.deepStrictEqual(namesOf(claims), ["backfill a", "sync a"])
        const backfill = claims.find(({ kind }) => kind === "backfill")!
        assert.deepInclude(backfill, { since: range.since, until: null })
        assert.strictEqual(yield* TaskQueue.requestBackfill(range), "asked", "the same backfill is running")
        assert.strictEqual(yield* TaskQueue.requestBackfill({ ...range, since: null }), "running")
        assert.strictEqual((yield* taskOf(company, "a", "backfill")).since, range.since)
        yield* TaskLeases.completeTask(backfill, done)
        assert.lengthOf(yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1), 0)
        assert.strictEqual(yield* TaskQueue.requestBackfill({ ...range, since: null }), "asked")
        const [another] = yield* TaskLeases.claimTasks("me", runnable(company, "a"), 1)
        assert.deepInclude(another!, { kind: "backfill", since: null })
      })
    )

    it.effect("runs missed tasks once or skips them as configured, and keeps late ones due", () =>
      Effect.gen(function* () {
        const company = newCompany()
        const sql = yield* SqlClient.SqlClient
        const plans = [
          plan(company, "once"),
          plan(company, "skip", { missed: "skip" }),
          plan(company, "late", { missed: "skip" }),
          plan(company, "left", { missed: "skip" }),
          plan(company, "future", { missed: "skip" })
        ]
        yield* TaskSchedules.upsertSchedules(plans)
        for (const { resource } of plans) {
          const passed = resource === "late" ? 30 : resource === "future" ? -30 : 90
          yield* set(
            company,
            resource,
            `started_at = tributary.now() - interval '2 h', next_run_at = tributary.now() - interval '${passed} min'`
          )
        }
        yield* set(company, "left", "lease_owner = 'killed', lease_expires_at = tributary.now() - interval '80 min'")
        // A process was active from an hour ago until twenty minutes ago.
        yield* sql`
          insert into tributary.processes (process_id, companies, started_at, heartbeat_at)
          values (${company}, ${[company]}, tributary.now() - interval '60 min', tributary.now() - interval '20 min')`
        const before = yield* taskOf(company, "future")
        yield* TaskSchedules.upsertSchedules(plans)
        const now = yield* nowMs
        const dueIn = (resource: string) =>
          Effect.map(taskOf(company, resource), ({ nextAt }) => Math.round((nextAt!.getTime() - now) / minute))
        assert.strictEqual(yield* dueIn("once"), -90)
        assert.strictEqual(yield* dueIn("skip"), 10)
        assert.strictEqual(yield* dueIn("late"), -30)
        assert.strictEqual(yield* dueIn("left"), -90)
        assert.deepStrictEqual((yield* taskOf(company, "future")).nextAt, before.nextAt)
      })
    )

    it.effect("follows the configuration: changed schedules, changed freshness targets and removed resources", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a"), plan(company, "b"), plan(company, "c")])
        const [lease] = yield* TaskLeases.claimTasks("me", runnable(company, "b"), 1)
        yield* set(company, "a", "started_at = tributary.now(), next_run_at = tributary.now() + interval '1 min'")
        const same = yield* taskOf(company, "a")
        yield* TaskSchedules.upsertSchedules([plan(company, "a", { freshnessTarget: Duration.minutes(1) })])
        assert.deepInclude(yield* taskOf(company, "a"), { nextAt: same.nextAt, promiseMs: minute })
        yield* TaskSchedules.upsertSchedules([plan(company, "a", { schedule: "every 1 h" })])
        assert.isAbove((yield* taskOf(company, "a")).nextAt!.getTime(), same.nextAt!.getTime())
        yield* TaskSchedules.upsertSchedules([plan(company, "a", { schedule: null })])
        assert.deepInclude(yield* taskOf(company, "a"), { schedule: null, nextAt: null })
        assert.isUndefined(yield* taskOf(company, "c"))
        assert.isTrue((yield* taskOf(company, "b")).isRunning, "a running task stays until it ends")
        assert.isTrue(yield* TaskLeases.completeTask(lease!, done))
      })
    )

    it.effect("stores why a company is blocked, and clears its requests", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a")])
        yield* TaskQueue.requestSync({ company, resource: "a", full: false, by: "Ann" })
        yield* TaskLeases.blockCompany(company, "the token was refused", "give it another one")
        assert.deepInclude(yield* taskOf(company, "a"), {
          status: "failed",
          error: "the token was refused",
          remedy: "give it another one",
          askedAt: null
        })
        yield* SourceGuard.saveCompanyId(company, 12n)
        yield* SourceGuard.saveCompanyId(company, 13n)
        assert.strictEqual((yield* TaskQueue.companyIds).get(company), 12n, "only a person changes the number")
      })
    )
  })
})
