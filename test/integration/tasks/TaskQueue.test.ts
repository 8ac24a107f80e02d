/** The tasks in Postgres: which are due, in which order, and their results. */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { readNowMs as nowMs } from "../../../src/postgres/Now.ts"
import { saveCompany } from "../../support/companies.ts"
import * as DueTasks from "../../../src/tasks/DueTasks.ts"
import * as TaskQueue from "../../../src/tasks/TaskQueue.ts"
import * as TaskSchedules from "../../../src/tasks/TaskSchedules.ts"
import { execute, layerWarehouse as warehouse, sql } from "../../support/postgres.ts"
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
/** A process: it begins tasks, and has taken them until it stores their results. */
const makeProcess = (companies: ReadonlyArray<string>, concurrency = 1) => {
  const taken = new Set<DueTasks.DueTask>()
  const takenTasks = () => [...taken].map(({ company, resource, kind }) => ({ company, resource, kind, runs: true }))
  return {
    due: Effect.map(
      Effect.suspend(() => DueTasks.pollDue(new Set(companies), takenTasks())),
      ({ due }) => due
    ),
    begin: (limit = 100) =>
      Effect.tap(
        Effect.suspend(() => DueTasks.nextTasks({ companies, taken: takenTasks(), concurrency, limit })),
        (tasks) => Effect.sync(() => tasks.forEach((task) => taken.add(task)))
      ),
    complete: (task: DueTasks.DueTask, result: Partial<DueTasks.TaskResult> = {}) =>
      Effect.andThen(
        DueTasks.completeTask(task, { ...done, ...result }),
        Effect.sync(() => taken.delete(task))
      )
  }
}

const set = (company: string, resource: string, assignments: string) =>
  execute(`update tributary.tasks set ${assignments} where company = $1 and resource = $2`, [company, resource])
const taskOf = (company: string, resource: string, kind: TaskQueue.TaskKind = "sync") =>
  Effect.map(TaskQueue.readTasks, (tasks) =>
    tasks.find((task) => task.company === company && task.resource === resource && task.kind === kind)!
  )
const done: DueTasks.TaskResult = { status: "done", runId: 7n, error: null, remedy: null, failures: 0, nextMs: null }
const namesOf = (tasks: ReadonlyArray<DueTasks.DueTask>) =>
  tasks.map(({ resource, kind }) => `${kind} ${resource}`).sort()

/** Stores schedules of resources of a new company. */
const scheduled = Effect.fnUntraced(function* (
  resources: ReadonlyArray<string>,
  more: Partial<TaskSchedules.TaskSchedule> = {}
) {
  const company = newCompany()
  yield* TaskSchedules.upsertSchedules(resources.map((resource) => plan(company, resource, more)))
  return {
    company,
    process: (concurrency = 1) => makeProcess([company], concurrency),
    request: (resource: string, full = false, by = "Ann") => TaskQueue.requestSync({ company, resource, full, by }),
    /** In minutes from now. */
    dueIn: Effect.fnUntraced(function* (resource: string) {
      const now = yield* nowMs
      return Math.round(((yield* taskOf(company, resource)).nextAt!.getTime() - now) / minute)
    })
  }
})

suite("the task queue", warehouse, (test) => {
  test("makes a never synced task due at once, until its result is stored", function* () {
    const { company, process } = yield* scheduled(["a", "b"])
    yield* TaskSchedules.upsertSchedules(
      ["a", "b", "off"].map((one) => plan(company, one, one === "off" ? { schedule: null } : {}))
    )
    const mine = process(4)
    assert.deepStrictEqual(yield* mine.due, [company])
    const begun = [...(yield* mine.begin()), ...(yield* mine.begin()), ...(yield* mine.begin())]
    assert.deepStrictEqual(namesOf(begun), ["sync a", "sync b"])
    assert.deepStrictEqual(yield* mine.due, [])
    // The next owner, if this process is killed now.
    assert.deepStrictEqual(yield* process().due, [company])
    const [a, b] = begun
    yield* mine.complete(a!, { nextMs: (yield* nowMs) + minute })
    yield* mine.complete(b!)
    const task = yield* taskOf(company, "a")
    assert.deepInclude(task, { status: "done", runId: 7n })
    assert.strictEqual(task.beganAt!.getTime(), Math.floor(a!.nowMs))
    assert.deepStrictEqual(yield* process().due, [])
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

  test("runs a task once more after any number of requests during its run", function* () {
    const { company, process, request } = yield* scheduled(["a"], { schedule: null })
    const mine = process()
    assert.lengthOf(yield* mine.begin(), 0)
    yield* request("a")
    assert.deepStrictEqual((yield* DueTasks.pollDue(new Set([company]), [])).requested, [company])
    const [first] = yield* mine.begin()
    yield* request("a", true, "Ben")
    yield* request("a")
    assert.lengthOf(yield* mine.begin(), 0)
    yield* mine.complete(first!)
    const [second] = yield* mine.begin()
    assert.isTrue(second!.full, "Ann's smaller request does not replace Ben's full scan")
    yield* mine.complete(second!)
    assert.lengthOf(yield* mine.begin(), 0)
    assert.isFalse((yield* taskOf(company, "a")).askedFull)
  })

  test("tries a failed request again as it was made", function* () {
    const { company, process, request } = yield* scheduled(["a"])
    yield* request("a", true)
    const mine = process()
    const [first] = yield* mine.begin()
    yield* mine.complete(first!, { status: "failed", failures: 1, nextMs: yield* nowMs })
    assert.deepInclude(yield* taskOf(company, "a"), { askedAt: null, askedFull: true, failures: 1 })
    const [again] = yield* mine.begin()
    assert.deepInclude(again!, { full: true, failures: 1 })
  })

  test("begins no paused task, except for an explicit request", function* () {
    const { company, process, request } = yield* scheduled(["a", "b"])
    const mine = process(4)
    assert.strictEqual(yield* TaskQueue.pauseTasks({ company, resource: null, by: "Ann" }), 2)
    assert.strictEqual(yield* TaskQueue.pauseTasks({ company, resource: "a", by: "Ben" }), 0)
    assert.strictEqual((yield* taskOf(company, "a")).pausedBy, "Ann")
    assert.deepStrictEqual(yield* mine.due, [])
    yield* request("b")
    const begun = yield* mine.begin()
    assert.deepStrictEqual(namesOf(begun), ["sync b"])
    yield* mine.complete(begun[0]!, { nextMs: yield* nowMs })
    assert.deepStrictEqual(yield* mine.due, [])
    assert.strictEqual(yield* TaskQueue.resumeTasks({ company, resource: "a", by: "Ann" }), 1)
    assert.deepStrictEqual(namesOf(yield* mine.begin()), ["sync a"])
  })

  test("begins tasks in order, children after parents, within the limit of each company", function* () {
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
    const mine = makeProcess([company, other], 2)
    const order: Array<string> = []
    const beginNext = Effect.tap(mine.begin(), (tasks) =>
      Effect.sync(() => order.push(...tasks.map(({ resource }) => resource).sort()))
    )
    const [later] = (yield* beginNext).filter(({ company: name }) => name === company)
    const [late] = yield* beginNext
    yield* beginNext
    assert.deepStrictEqual(order, ["later", "one", "late"], "the company has its limit of two running tasks")
    yield* mine.complete(later!)
    const [parent] = yield* beginNext
    assert.strictEqual(parent!.resource, "parent")
    yield* mine.complete(late!)
    yield* beginNext
    assert.deepStrictEqual(order.slice(3), ["parent"], "its parent still runs")
    yield* mine.complete(parent!)
    yield* beginNext
    assert.deepStrictEqual(order.slice(3), ["parent", "child"])
  })

  test("begins up to the limit, longest due first across all companies", function* () {
    const companies = [newCompany(), newCompany(), newCompany()]
    yield* TaskSchedules.upsertSchedules(companies.map((company) => plan(company, "a")))
    for (const [minutes, company] of companies.entries()) {
      yield* set(company, "a", `next_run_at = tributary.now() - interval '${minutes + 1} minutes'`)
    }
    const mine = makeProcess(companies, 4)
    const begun = yield* mine.begin(2)
    assert.deepStrictEqual(begun.map(({ company }) => company).sort(), companies.slice(1).sort())
    assert.lengthOf(yield* mine.begin(0), 0)
    assert.deepStrictEqual(valuesOf(yield* mine.begin(), "company"), companies.slice(0, 1))
  })

  test("leaves out a task that rests, and lets others of its company begin", function* () {
    const { company } = yield* scheduled(["a", "b"])
    const taken = [{ company, resource: "a", kind: "sync", runs: false }] as const
    const begun = yield* DueTasks.nextTasks({ companies: [company], taken, concurrency: 1, limit: 100 })
    assert.deepStrictEqual(namesOf(begun), ["sync b"])
    const both = [...taken, { company, resource: "b", kind: "sync", runs: false }] as const
    assert.deepStrictEqual((yield* DueTasks.pollDue(new Set([company]), both)).due, [])
  })

  test("accepts one backfill per resource at a time, in parallel with its sync", function* () {
    const { company, process } = yield* scheduled(["a"])
    const mine = process()
    yield* saveCompany(company, 4712n)
    const backfillFrom = (since: string | null) =>
      TaskQueue.requestBackfill({ company, resource: "a", since, until: null, by: "Ann" })
    const since = "2026-01-01T00:00:00Z"
    assert.strictEqual(yield* backfillFrom(since), "asked")
    const begun = yield* mine.begin()
    assert.deepStrictEqual(namesOf(begun), ["backfill a", "sync a"])
    const backfill = begun.find(({ kind }) => kind === "backfill")!
    assert.deepInclude(backfill, { since, until: null })
    const [{ id }] = (yield* execute<{ id: bigint }>(
      `insert into tributary.runs (company_id, resource, kind, lane, fence, started_at)
         values (4712, 'a', 'full', 'backfill', 1, tributary.now()) returning id`
    )) as [{ id: bigint }]
    assert.isNotNull((yield* taskOf(company, "a", "backfill")).runningSince)
    assert.strictEqual(yield* backfillFrom(since), "asked", "the same backfill is running")
    assert.strictEqual(yield* backfillFrom(null), "running")
    assert.strictEqual((yield* taskOf(company, "a", "backfill")).since, since)
    yield* execute("update tributary.runs set status = 'done', finished_at = tributary.now() where id = $1", [id])
    yield* mine.complete(backfill)
    assert.lengthOf(yield* mine.begin(), 0)
    assert.strictEqual(yield* backfillFrom(null), "asked")
    assert.deepInclude((yield* mine.begin())[0]!, { kind: "backfill", since: null })
  })

  test("runs missed tasks once or skips them as configured, and keeps late ones due", function* () {
    const { company, dueIn } = yield* scheduled([])
    const plans = ["once", "skip", "late", "future"].map((resource) =>
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
      ["late", -30]
    ] as const)
      assert.strictEqual(yield* dueIn(resource), minutes, resource)
    assert.deepStrictEqual((yield* taskOf(company, "future")).nextAt, before.nextAt)
  })

  test("follows the configuration: changed schedules, changed freshness targets and removed resources", function* () {
    const { company, process, request } = yield* scheduled(["a", "b", "c"])
    yield* request("b")
    const mine = process()
    const [running] = yield* mine.begin()
    yield* set(company, "a", "started_at = tributary.now(), next_run_at = tributary.now() + interval '1 min'")
    const same = yield* taskOf(company, "a")
    yield* TaskSchedules.upsertSchedules([plan(company, "a", { freshnessTarget: Duration.minutes(1) })])
    assert.deepInclude(yield* taskOf(company, "a"), { nextAt: same.nextAt, promiseMs: minute })
    yield* TaskSchedules.upsertSchedules([plan(company, "a", { schedule: "every 1 h" })])
    assert.isAbove((yield* taskOf(company, "a")).nextAt!.getTime(), same.nextAt!.getTime())
    yield* TaskSchedules.upsertSchedules([plan(company, "a", { schedule: null })])
    assert.deepInclude(yield* taskOf(company, "a"), { schedule: null, nextAt: null })
    assert.isUndefined(yield* taskOf(company, "c"))
    assert.isUndefined(yield* taskOf(company, "b"))
    yield* mine.complete(running!)
    assert.isUndefined(yield* taskOf(company, "b"), "the end of a run brings no removed task back")
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
    const message = "the token was refused"
    const remedy = "give it another one"
    yield* DueTasks.blockCompany(company, { kind: "Unauthorized", message, remedy, stops: "company" })
    assert.deepInclude(yield* taskOf(company, "a"), {
      status: "failed",
      error: "the token was refused",
      remedy: "give it another one",
      askedAt: null
    })
    yield* sql`update tributary.tasks set status = 'done', error = null, next_run_at = tributary.now() + interval '1 hour' where company = ${company}`
    const away = {
      kind: "Unreachable",
      message: "the source does not answer",
      remedy: "wait",
      stops: "resource"
    } as const
    yield* DueTasks.blockCompany(company, away)
    assert.deepInclude(
      yield* taskOf(company, "a"),
      { status: "done", error: null },
      "a task that is not due has not failed"
    )
    yield* saveCompany(company, 12n)
    yield* Effect.flip(saveCompany(company, 13n))
    assert.strictEqual((yield* TaskQueue.companyIds).get(company), 12n, "only a person changes the number")
  })
})
