/** The tasks in Postgres: due tasks, their claims, and calls of processes that are no longer the owner. */
import { assert, describe, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as SourceGuard from "../../../src/sync/SourceGuard.ts"
import * as TaskClaims from "../../../src/tasks/TaskClaims.ts"
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
  parent: null,
  schedule: "every 10 min",
  freshnessTarget: Duration.minutes(15),
  missed: "once",
  next: (afterMs, lastBeganMs) => (lastBeganMs === null ? afterMs : afterMs + 10 * minute),
  ...more
})
const claim = (processId: string, companies: ReadonlyArray<string>, concurrency: number, limit = 100) =>
  TaskClaims.claimTasks(processId, { companies, concurrency, limit })

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
const done: TaskClaims.TaskResult = { status: "done", runId: 7n, error: null, remedy: null, failures: 0, nextMs: null }
const namesOf = (claims: ReadonlyArray<TaskClaims.ClaimedTask>) =>
  claims.map(({ resource, kind }) => `${kind} ${resource}`).sort()

describe("the task queue", () => {
  layer(warehouse, { timeout: "60 seconds" })("in Postgres", (it) => {
    it.effect("makes a never synced task due at once, and claims it once", () =>
      Effect.gen(function* () {
        const company = newCompany()
        const sql = yield* SqlClient.SqlClient
        yield* sql`insert into tributary.processes (process_id, companies) values ('me', ${[company]})`
        yield* TaskSchedules.upsertSchedules([
          plan(company, "a"),
          plan(company, "b"),
          plan(company, "off", { schedule: null })
        ])
        assert.deepStrictEqual((yield* TaskClaims.pollDue(new Set([company]))).due, [company])
        // As while a former owner and the next one both claim.
        const claims = yield* Effect.all(
          [claim("me", [company], 4), claim("you", [company], 4), claim("me", [company], 4)],
          {
            concurrency: "unbounded"
          }
        ).pipe(Effect.map((all) => all.flat()))
        assert.sameMembers(
          claims.map(({ resource }) => resource),
          ["a", "b"]
        )
        assert.deepStrictEqual((yield* TaskClaims.pollDue(new Set([company]))).due, [])
        const mine = claims.find(({ processId }) => processId === "me")!
        const runningTask = yield* taskOf(company, mine.resource)
        assert.isTrue(runningTask.isRunning)
        assert.isNotNull(runningTask.beganAt)
        assert.isTrue(yield* TaskClaims.completeTask(mine, { ...done, nextMs: (yield* nowMs) + minute }))
        const completedTask = yield* taskOf(company, mine.resource)
        assert.deepInclude(completedTask, { isRunning: false, status: "done", runId: 7n })
        assert.deepStrictEqual((yield* TaskClaims.pollDue(new Set([company]))).due, [])
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

    it.effect("releases a task that a former owner left, and ignores the former owner", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a"), plan(company, "b")])
        const [mine, other] = [...(yield* claim("me", [company], 2)), ...(yield* claim("me", [company], 2))]
        assert.isNull(mine!.abandonedAt)
        yield* TaskClaims.releaseAbandoned([company], [mine!, other!])
        assert.lengthOf(yield* claim("you", [company], 2), 0, "a task that runs is not released")
        yield* set(company, mine!.resource, "paused_at = tributary.now()")
        yield* TaskClaims.releaseAbandoned([company], [other!])
        const [yours] = yield* claim("you", [company], 2)
        assert.strictEqual(
          yours!.resource,
          mine!.resource,
          "a task that a process left is finished even while it is paused"
        )
        assert.isTrue(yours!.fence > mine!.fence)
        assert.isNotNull(yours!.abandonedAt)
        assert.isFalse(yield* TaskClaims.completeTask(mine!, { ...done, status: "failed" }))
        assert.isFalse(yield* TaskClaims.rescheduleTask(mine!, 0))
        assert.isFalse(yield* TaskClaims.returnTask(mine!, "stopped"))
        assert.isTrue(yield* TaskClaims.completeTask(yours!, done))
        assert.strictEqual((yield* taskOf(company, yours!.resource)).status, "done")
      })
    )

    it.effect("returns an interrupted task to the queue with its request", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a", { schedule: null })])
        yield* TaskQueue.requestSync({ company, resource: "a", full: true, by: "Ann" })
        const [mine] = yield* claim("me", [company], 1)
        assert.deepInclude(mine!, { full: true })
        assert.isNotNull(mine!.requestedAt)
        assert.isTrue(yield* TaskClaims.returnTask(mine!, "stopped: the process was shut down"))
        assert.deepInclude(yield* taskOf(company, "a"), { status: "interrupted", isRunning: false, askedBy: "Ann" })
        const [nextClaim] = yield* claim("you", [company], 1)
        assert.deepInclude(nextClaim!, { full: true, abandonedAt: null })
        assert.strictEqual(nextClaim!.requestedAt?.getTime(), mine!.requestedAt?.getTime())
      })
    )

    it.effect("runs a task once more after any number of requests during its run", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a", { schedule: null })])
        assert.lengthOf(yield* claim("me", [company], 1), 0)
        yield* TaskQueue.requestSync({ company, resource: "a", full: false, by: "Ann" })
        assert.deepStrictEqual((yield* TaskClaims.pollDue(new Set([company]))).requested, [company])
        const [first] = yield* claim("me", [company], 1)
        yield* TaskQueue.requestSync({ company, resource: "a", full: true, by: "Ben" })
        yield* TaskQueue.requestSync({ company, resource: "a", full: false, by: "Ann" })
        assert.lengthOf(yield* claim("me", [company], 1), 0)
        yield* TaskClaims.completeTask(first!, done)
        const [second] = yield* claim("me", [company], 1)
        assert.isTrue(second!.full, "Ann's smaller request does not replace Ben's full scan")
        yield* TaskClaims.completeTask(second!, done)
        assert.lengthOf(yield* claim("me", [company], 1), 0)
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
        assert.deepStrictEqual((yield* TaskClaims.pollDue(new Set([company]))).due, [])
        yield* TaskQueue.requestSync({ company, resource: "b", full: false, by: "Ann" })
        const claims = yield* claim("me", [company], 4)
        assert.deepStrictEqual(namesOf(claims), ["sync b"])
        yield* TaskClaims.completeTask(claims[0]!, { ...done, nextMs: yield* nowMs })
        assert.deepStrictEqual((yield* TaskClaims.pollDue(new Set([company]))).due, [])
        assert.strictEqual(yield* TaskQueue.resumeTasks({ company, resource: "a", by: "Ann" }), 1)
        assert.deepStrictEqual(namesOf(yield* claim("me", [company], 4)), ["sync a"])
      })
    )

    it.effect("claims tasks in order, children after parents, within the limit of each company", () =>
      Effect.gen(function* () {
        const company = newCompany()
        const other = newCompany()
        yield* TaskSchedules.upsertSchedules([
          plan(company, "parent"),
          plan(company, "child", { parent: "parent" }),
          plan(company, "late", { freshnessTarget: Duration.minutes(1) }),
          plan(company, "later", { freshnessTarget: Duration.hours(1) }),
          plan(other, "one")
        ])
        yield* set(company, "late", "next_run_at = tributary.now() - interval '10 min'")
        yield* set(company, "later", "next_run_at = tributary.now() - interval '20 min'")
        yield* TaskQueue.requestSync({ company, resource: "later", full: false, by: "Ann" })
        const order: Array<string> = []
        const claimNext = Effect.tap(claim("me", [company, other], 2), (claims) =>
          Effect.sync(() => order.push(...claims.map(({ resource }) => resource).sort()))
        )
        const [later] = (yield* claimNext).filter(({ company: name }) => name === company)
        yield* claimNext
        yield* claimNext
        assert.deepStrictEqual(order, ["later", "one", "late"], "the company has its limit of two running tasks")
        yield* TaskClaims.completeTask(later!, done)
        const [parent] = yield* claimNext
        assert.strictEqual(parent!.resource, "parent")
        yield* set(company, "late", "process_id = null, next_run_at = null")
        yield* claimNext
        assert.deepStrictEqual(order.slice(3), ["parent"], "its parent still runs")
        yield* TaskClaims.completeTask(parent!, done)
        yield* claimNext
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
        const claims = yield* claim("me", companies, 4, 2)
        assert.deepStrictEqual(claims.map(({ company }) => company).sort(), companies.slice(1).sort())
        assert.lengthOf(yield* claim("me", companies, 4, 0), 0)
        assert.deepStrictEqual(
          (yield* claim("me", companies, 4)).map(({ company }) => company),
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
        const claims = yield* claim("me", [company], 1)
        assert.deepStrictEqual(namesOf(claims), ["backfill a", "sync a"])
        const backfill = claims.find(({ kind }) => kind === "backfill")!
        assert.deepInclude(backfill, { since: range.since, until: null })
        assert.strictEqual(yield* TaskQueue.requestBackfill(range), "asked", "the same backfill is running")
        assert.strictEqual(yield* TaskQueue.requestBackfill({ ...range, since: null }), "running")
        assert.strictEqual((yield* taskOf(company, "a", "backfill")).since, range.since)
        yield* TaskClaims.completeTask(backfill, done)
        assert.lengthOf(yield* claim("me", [company], 1), 0)
        assert.strictEqual(yield* TaskQueue.requestBackfill({ ...range, since: null }), "asked")
        const [another] = yield* claim("me", [company], 1)
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
        yield* set(company, "left", "abandoned_at = tributary.now()")
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
        yield* TaskQueue.requestSync({ company, resource: "b", full: false, by: "Ann" })
        const [mine] = yield* claim("me", [company], 1)
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
        assert.isTrue(yield* TaskClaims.completeTask(mine!, done))
      })
    )

    it.effect("are neither locked nor written while the configuration stays the same", () =>
      Effect.gen(function* () {
        const company = newCompany()
        const sql = yield* SqlClient.SqlClient
        const plans = [plan(company, "a"), plan(company, "b", { schedule: null })]
        yield* TaskSchedules.upsertSchedules(plans)
        const versions = sql<{
          readonly written: string
          readonly locked: string
        }>`select xmin::text as written, xmax::text as locked from tributary.tasks where company = ${company} order by resource`
        const before = yield* versions
        yield* TaskSchedules.upsertSchedules(plans)
        assert.deepStrictEqual(yield* versions, before)
        yield* TaskSchedules.upsertSchedules([plan(company, "a", { parent: "b" }), plans[1]!])
        assert.notDeepEqual(yield* versions, before)
      })
    )

    it.effect("stores why a company is blocked, and clears its requests", () =>
      Effect.gen(function* () {
        const company = newCompany()
        yield* TaskSchedules.upsertSchedules([plan(company, "a")])
        yield* TaskQueue.requestSync({ company, resource: "a", full: false, by: "Ann" })
        yield* TaskClaims.blockCompany(company, "the token was refused", "give it another one", "Unauthorized")
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
