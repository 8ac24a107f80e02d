/** The tasks in Postgres: due tasks, their claims, and calls of processes that are no longer the owner. */
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { readNowMs as nowMs } from "../../../src/postgres/Now.ts"
import { saveCompany } from "../../support/companies.ts"
import * as TaskClaims from "../../../src/tasks/TaskClaims.ts"
import * as TaskQueue from "../../../src/tasks/TaskQueue.ts"
import * as TaskSchedules from "../../../src/tasks/TaskSchedules.ts"
import { execute, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { valuesOf } from "../../support/rows.ts"

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
  execute(`update tributary.tasks set ${assignments} where company = $1 and resource = $2`, [company, resource])
const taskOf = (company: string, resource: string, kind: TaskQueue.TaskKind = "sync") =>
  Effect.map(TaskQueue.readTasks, (tasks) =>
    tasks.find((task) => task.company === company && task.resource === resource && task.kind === kind)!
  )
const done: TaskClaims.TaskResult = { status: "done", runId: 7n, error: null, remedy: null, failures: 0, nextMs: null }
const namesOf = (claims: ReadonlyArray<TaskClaims.ClaimedTask>) =>
  claims.map(({ resource, kind }) => `${kind} ${resource}`).sort()

/** Stores schedules of resources of a new company. */
const scheduled = Effect.fnUntraced(function* (
  resources: ReadonlyArray<string>,
  more: Partial<TaskSchedules.TaskSchedule> = {}
) {
  const company = newCompany()
  yield* TaskSchedules.upsertSchedules(resources.map((resource) => plan(company, resource, more)))
  return {
    company,
    due: Effect.map(TaskClaims.pollDue(new Set([company])), ({ due }) => due),
    claimed: (processId: string, concurrency = 1) => claim(processId, [company], concurrency),
    request: (resource: string, full = false, by = "Ann") => TaskQueue.requestSync({ company, resource, full, by }),
    /** In minutes from now. */
    dueIn: Effect.fnUntraced(function* (resource: string) {
      const now = yield* nowMs
      return Math.round(((yield* taskOf(company, resource)).nextAt!.getTime() - now) / minute)
    })
  }
})

const alive = Layer.effectDiscard(
  execute("insert into tributary.processes (process_id, companies) values ('me', '{}')")
).pipe(Layer.provideMerge(warehouse))

suite("the task queue", alive, (test) => {
  test("makes a never synced task due at once, and claims it once", function* () {
    const { company, claimed, due } = yield* scheduled(["a", "b"])
    yield* TaskSchedules.upsertSchedules(
      ["a", "b", "off"].map((one) => plan(company, one, one === "off" ? { schedule: null } : {}))
    )
    assert.deepStrictEqual(yield* due, [company])
    // As while a former owner and the next one both claim.
    const claims = yield* Effect.all([claimed("me", 4), claimed("you", 4), claimed("me", 4)], {
      concurrency: "unbounded"
    }).pipe(Effect.map((all) => all.flat()))
    assert.deepStrictEqual(namesOf(claims), ["sync a", "sync b"])
    assert.deepStrictEqual(yield* due, [])
    const mine = claims.find(({ processId }) => processId === "me")!
    const runningTask = yield* taskOf(company, mine.resource)
    assert.isTrue(runningTask.isRunning)
    assert.isNotNull(runningTask.beganAt)
    assert.isTrue(yield* TaskClaims.completeTask(mine, { ...done, nextMs: (yield* nowMs) + minute }))
    assert.deepInclude(yield* taskOf(company, mine.resource), { isRunning: false, status: "done", runId: 7n })
    assert.deepStrictEqual(yield* due, [])
  })

  test("makes a synced task due at its next scheduled time, whichever process synced it", function* () {
    const later = { schedule: "0 3 * * * (UTC)", next: (afterMs: number) => afterMs + 60 * minute }
    const { company, dueIn } = yield* scheduled([])
    yield* saveCompany(company, 4711n)
    yield* execute(
      `insert into tributary.checkpoints (company_id, resource, lane, fence, cursor, updated_at)
           values (4711, 'synced', 'live', 1, '2026-01-01T00:00:00Z', tributary.now()),
                  (4711, 'touched', 'live', 1, null, tributary.now())`
    )
    yield* TaskSchedules.upsertSchedules(["synced", "touched", "new"].map((one) => plan(company, one, later)))
    for (const [resource, minutes] of [
      ["synced", 60],
      ["touched", 0],
      ["new", 0]
    ] as const)
      assert.strictEqual(yield* dueIn(resource), minutes, resource)
  })

  test("releases a task that a former owner left, and ignores the former owner", function* () {
    const { company, claimed } = yield* scheduled(["a", "b"])
    const [mine, other] = [...(yield* claimed("me", 2)), ...(yield* claimed("me", 2))]
    assert.isNull(mine!.abandonedAt)
    yield* TaskClaims.releaseAbandoned([company], [mine!, other!])
    assert.lengthOf(yield* claimed("you", 2), 0, "a task that runs is not released")
    yield* set(company, mine!.resource, "paused_at = tributary.now()")
    yield* TaskClaims.releaseAbandoned([company], [other!])
    const [yours] = yield* claimed("you", 2)
    assert.strictEqual(yours!.resource, mine!.resource, "also while it is paused")
    assert.isTrue(yours!.fence > mine!.fence)
    assert.isNotNull(yours!.abandonedAt)
    assert.isFalse(yield* TaskClaims.completeTask(mine!, { ...done, status: "failed" }))
    assert.isFalse(yield* TaskClaims.rescheduleTask(mine!, 0))
    assert.isFalse(yield* TaskClaims.returnTask(mine!, "stopped"))
    assert.isTrue(yield* TaskClaims.completeTask(yours!, done))
    assert.strictEqual((yield* taskOf(company, yours!.resource)).status, "done")
  })

  test("returns an interrupted task to the queue with its request", function* () {
    const { company, claimed, request } = yield* scheduled(["a"], { schedule: null })
    yield* request("a", true)
    const [mine] = yield* claimed("me")
    assert.deepInclude(mine!, { full: true })
    assert.isNotNull(mine!.requestedAt)
    assert.isTrue(yield* TaskClaims.returnTask(mine!, "stopped: the process was shut down"))
    assert.deepInclude(yield* taskOf(company, "a"), { status: "interrupted", isRunning: false, askedBy: "Ann" })
    const [nextClaim] = yield* claimed("you")
    assert.deepInclude(nextClaim!, { full: true, abandonedAt: null })
    assert.deepStrictEqual(nextClaim!.requestedAt, mine!.requestedAt)
  })

  test("runs a task once more after any number of requests during its run", function* () {
    const { company, claimed, request } = yield* scheduled(["a"], { schedule: null })
    assert.lengthOf(yield* claimed("me"), 0)
    yield* request("a")
    assert.deepStrictEqual((yield* TaskClaims.pollDue(new Set([company]))).requested, [company])
    const [first] = yield* claimed("me")
    yield* request("a", true, "Ben")
    yield* request("a")
    assert.lengthOf(yield* claimed("me"), 0)
    yield* TaskClaims.completeTask(first!, done)
    const [second] = yield* claimed("me")
    assert.isTrue(second!.full, "Ann's smaller request does not replace Ben's full scan")
    yield* TaskClaims.completeTask(second!, done)
    assert.lengthOf(yield* claimed("me"), 0)
    assert.isFalse((yield* taskOf(company, "a")).askedFull)
  })

  test("claims no paused task, except for an explicit request", function* () {
    const { company, claimed, due, request } = yield* scheduled(["a", "b"])
    assert.strictEqual(yield* TaskQueue.pauseTasks({ company, resource: null, by: "Ann" }), 2)
    assert.strictEqual(yield* TaskQueue.pauseTasks({ company, resource: "a", by: "Ben" }), 0)
    assert.strictEqual((yield* taskOf(company, "a")).pausedBy, "Ann")
    assert.deepStrictEqual(yield* due, [])
    yield* request("b")
    const claims = yield* claimed("me", 4)
    assert.deepStrictEqual(namesOf(claims), ["sync b"])
    yield* TaskClaims.completeTask(claims[0]!, { ...done, nextMs: yield* nowMs })
    assert.deepStrictEqual(yield* due, [])
    assert.strictEqual(yield* TaskQueue.resumeTasks({ company, resource: "a", by: "Ann" }), 1)
    assert.deepStrictEqual(namesOf(yield* claimed("me", 4)), ["sync a"])
  })

  test("claims tasks in order, children after parents, within the limit of each company", function* () {
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

  test("claims up to the limit, longest due first across all companies", function* () {
    const companies = [newCompany(), newCompany(), newCompany()]
    yield* TaskSchedules.upsertSchedules(companies.map((company) => plan(company, "a")))
    for (const [minutes, company] of companies.entries()) {
      yield* set(company, "a", `next_run_at = tributary.now() - interval '${minutes + 1} minutes'`)
    }
    const claims = yield* claim("me", companies, 4, 2)
    assert.deepStrictEqual(claims.map(({ company }) => company).sort(), companies.slice(1).sort())
    assert.lengthOf(yield* claim("me", companies, 4, 0), 0)
    assert.deepStrictEqual(valuesOf(yield* claim("me", companies, 4), "company"), companies.slice(0, 1))
  })

  test("accepts one backfill per resource at a time, in parallel with its sync", function* () {
    const { company, claimed } = yield* scheduled(["a"])
    const backfillFrom = (since: string | null) =>
      TaskQueue.requestBackfill({ company, resource: "a", since, until: null, by: "Ann" })
    const since = "2026-01-01T00:00:00Z"
    assert.strictEqual(yield* backfillFrom(since), "asked")
    const claims = yield* claimed("me")
    assert.deepStrictEqual(namesOf(claims), ["backfill a", "sync a"])
    const backfill = claims.find(({ kind }) => kind === "backfill")!
    assert.deepInclude(backfill, { since, until: null })
    assert.strictEqual(yield* backfillFrom(since), "asked", "the same backfill is running")
    assert.strictEqual(yield* backfillFrom(null), "running")
    assert.strictEqual((yield* taskOf(company, "a", "backfill")).since, since)
    yield* TaskClaims.completeTask(backfill, done)
    assert.lengthOf(yield* claimed("me"), 0)
    assert.strictEqual(yield* backfillFrom(null), "asked")
    assert.deepInclude((yield* claimed("me"))[0]!, { kind: "backfill", since: null })
  })

  test("runs missed tasks once or skips them as configured, and keeps late ones due", function* () {
    const { company, dueIn } = yield* scheduled([])
    const plans = ["once", "skip", "late", "left", "future"].map((resource) =>
      plan(company, resource, { missed: resource === "once" ? "once" : "skip" })
    )
    yield* TaskSchedules.upsertSchedules(plans)
    for (const { resource } of plans) {
      const passed = { late: 30, future: -30 }[resource] ?? 90
      yield* set(
        company,
        resource,
        `started_at = tributary.now() - interval '2 h', next_run_at = tributary.now() - interval '${passed} min'`
      )
    }
    yield* set(company, "left", "abandoned_at = tributary.now()")
    // A process was active from an hour ago until twenty minutes ago.
    yield* execute(
      `insert into tributary.processes (process_id, companies, started_at, heartbeat_at)
           values ($1, array[$1], tributary.now() - interval '60 min', tributary.now() - interval '20 min')`,
      [company]
    )
    const before = yield* taskOf(company, "future")
    yield* TaskSchedules.upsertSchedules(plans)
    for (const [resource, minutes] of [
      ["once", -90],
      ["skip", 10],
      ["late", -30],
      ["left", -90]
    ] as const)
      assert.strictEqual(yield* dueIn(resource), minutes, resource)
    assert.deepStrictEqual((yield* taskOf(company, "future")).nextAt, before.nextAt)
  })

  test("follows the configuration: changed schedules, changed freshness targets and removed resources", function* () {
    const { company, claimed, request } = yield* scheduled(["a", "b", "c"])
    yield* request("b")
    const [mine] = yield* claimed("me")
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

  test("are neither locked nor written while the configuration stays the same", function* () {
    const company = newCompany()
    const plans = [plan(company, "a"), plan(company, "b", { schedule: null })]
    yield* TaskSchedules.upsertSchedules(plans)
    const versions = execute(
      "select xmin::text as written, xmax::text as locked from tributary.tasks where company = $1 order by resource",
      [company]
    )
    const before = yield* versions
    yield* TaskSchedules.upsertSchedules(plans)
    assert.deepStrictEqual(yield* versions, before)
    yield* TaskSchedules.upsertSchedules([plan(company, "a", { parent: "b" }), plans[1]!])
    assert.notDeepEqual(yield* versions, before)
  })

  test("stores why a company is blocked, and clears its requests", function* () {
    const { company, request } = yield* scheduled(["a"])
    yield* request("a")
    yield* TaskClaims.blockCompany(company, "the token was refused", "give it another one", "Unauthorized")
    assert.deepInclude(yield* taskOf(company, "a"), {
      status: "failed",
      error: "the token was refused",
      remedy: "give it another one",
      askedAt: null
    })
    yield* saveCompany(company, 12n)
    yield* Effect.flip(saveCompany(company, 13n))
    assert.strictEqual((yield* TaskQueue.companyIds).get(company), 12n, "only a person changes the number")
  })
})
