/** The task worker against a source in memory: shared tasks, counted runs, and what it leaves when it is stopped. */
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Latch, Ref, Scope } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape, Identity } from "../../../src/connector/Connector.ts"
import { Forbidden, type SourceError, Unauthorized } from "../../../src/connector/SourceError.ts"
import * as ResourceLock from "../../../src/land/ResourceLock.ts"
import * as WarehouseCatalogue from "../../../src/warehouse/WarehouseCatalogue.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { Database, type DatabaseShape } from "../../../src/postgres/Database.ts"
import * as ProcessSlot from "../../../src/warehouse/ProcessSlot.ts"
import type { Company } from "../../../src/sync/Company.ts"
import type { TaskWorkerOptions } from "../../../src/tasks/WorkerState.ts"
import * as DeliveryGaps from "../../../src/reconcile/DeliveryGaps.ts"
import * as TaskQueue from "../../../src/tasks/TaskQueue.ts"
import { execute, otherProcess } from "../../support/postgres.ts"
import { failing, pages, plain, record, scripted, things, tiny } from "../../support/tiny.ts"
import { flowing, until, untilTrue } from "../../support/until.ts"
import { run, serverFault, warehouseWith } from "../sync/syncing.ts"
import { hourly, makeWorker, off } from "./working.ts"
import { suite } from "../../support/suite.ts"
import { assertCount } from "../../support/assertions.ts"

const tables = new Map([things, plain].map((resource) => [resource.path, tableOf(resource)]))
const warehouse = warehouseWith([...tables.values()])

let companies = 0n
/** A company whose records the test sets; by default one page with one record. `change` replaces parts of its connector. */
const makeCompany = (change: (connector: ConnectorShape) => Partial<ConnectorShape> = () => ({})) => {
  const companyId = (companies += 1n)
  const source = scripted(companyId, (request) =>
    pages({
      records: [record(request.resource, { id: "1", name: "one", lastchangedate: "2026-01-01T00:00:01Z" })],
      syncedThrough: "2026-01-01T00:00:10Z"
    })(request)
  )
  const company: Company = {
    name: `company${companyId}`,
    connector: { ...source.connector, ...change(source.connector) },
    tables: Effect.succeed(tables),
    engine: engineDefault,
    batchRecordsMax: 100,
    events: []
  }
  return { companyId, source, company, name: company.name }
}

/** A company whose first request has no answer, and tells that it was made. */
const makeHeld = Effect.gen(function* () {
  const reading = yield* Deferred.make<void>()
  let isFirst = true
  const held = makeCompany(({ page }) => ({
    page: (request) => {
      if (!isFirst) return page(request)
      isFirst = false
      return Effect.andThen(Deferred.succeed(reading, undefined), Effect.never)
    }
  }))
  return { ...held, isReading: flowing(Deferred.await(reading)) }
})

const request = (company: string, resource: string, full = false) =>
  TaskQueue.requestSync({ company, resource, full, by: "Ann" })

/** Runs the tasks of these companies until it is interrupted. */
const runTasks = (
  all: ReadonlyArray<{ readonly company: Company }>,
  scheduleOf: TaskWorkerOptions["scheduleOf"] = () => hourly
) =>
  Effect.gen(function* () {
    const worker = yield* makeWorker(scheduleOf)
    yield* Effect.forEach(all, ({ company }) => worker.own(company))
    return yield* worker.run
  }).pipe(Effect.scoped)

const taskOf = (company: string, resource: string, kind: TaskQueue.TaskKind = "sync") =>
  Effect.map(TaskQueue.readTasks, (all) =>
    all.find((task) => task.company === company && task.resource === resource && task.kind === kind)
  )

const becomes = (company: string, resource: string, status: TaskQueue.TaskStatus, kind: TaskQueue.TaskKind = "sync") =>
  Effect.map(
    until("the task", taskOf(company, resource, kind), (task) => task?.status === status && task.askedAt === null),
    (task) => task!
  )

/** Waits for the end of another run. */
const runsAgain = (company: string, resource: string, runId: bigint | null) =>
  until("another run", taskOf(company, resource), (task) => task?.runId !== runId && task?.askedAt === null)

interface RunRow {
  readonly id: bigint
  readonly resource: string
  readonly lane: string
  readonly kind: string
  readonly status: string
  readonly error: string | null
}
const runsOf = (companyId: bigint) =>
  execute<RunRow>(
    "select id, resource, lane, kind, status, error from tributary.runs where company_id = $1 order by id",
    [companyId]
  )

suite("the task worker", warehouse, (test) => {
  test("sends no request for a company that has nothing due", function* () {
    let identified = 0
    const { company, name } = makeCompany(({ identify }) => ({
      identify: Effect.andThen(
        Effect.sync(() => (identified += 1)),
        identify
      )
    }))
    const busy = makeCompany()
    const tasks = yield* Effect.forkScoped(runTasks([{ company }, busy], () => off))
    yield* until("the task", taskOf(name, "things"), (task) => task !== undefined)
    yield* request(busy.name, "things")
    yield* becomes(busy.name, "things", "done")
    assert.strictEqual(identified, 0)
    yield* request(name, "things")
    yield* becomes(name, "things", "done")
    assert.strictEqual(identified, 1)
    yield* Fiber.interrupt(tasks)
  })

  test("runs the tasks of a company for as long as it owns the company", function* () {
    const kept = makeCompany()
    const moved = yield* makeHeld
    const first = yield* makeWorker()
    const ownership = yield* Scope.make()
    yield* Scope.provide(first.own(moved.company), ownership)
    yield* first.own(kept.company)
    yield* Effect.forkScoped(first.run)
    yield* moved.isReading
    for (const resource of tables.keys()) yield* becomes(kept.name, resource, "done")

    // The other resource of the company, whose request has an answer.
    yield* until("its other run", runsOf(moved.companyId), (runs) => runs.some(({ status }) => status === "done"))
    yield* Scope.close(ownership, Exit.void)
    const [interrupted, ...others] = (yield* runsOf(moved.companyId)).filter(({ status }) => status !== "done")
    assert.lengthOf(others, 0)
    assert.strictEqual(interrupted!.status, "abandoned", "the end of the ownership waits for the end of the run")
    assert.deepInclude((yield* taskOf(moved.name, interrupted!.resource))!, { status: null })

    const second = yield* makeWorker()
    yield* second.own(moved.company)
    yield* Effect.forkScoped(second.run)
    for (const resource of tables.keys()) yield* becomes(moved.name, resource, "done")
    assert.strictEqual((yield* TaskQueue.companyIds).get(kept.name), kept.companyId)
    const task = yield* taskOf(kept.name, "things")
    assert.approximately(task!.nextAt!.getTime(), task!.beganAt!.getTime() + 3_600_000, 1_000)
  })

  test("counts a run that another command has made", function* () {
    const { company, companyId, name, source } = makeCompany()
    const outcome = yield* run(company, companyId)
    const requestCount = source.requests.length
    yield* Effect.forkScoped(runTasks([{ company }]))
    assert.strictEqual((yield* becomes(name, "things", "done")).runId, outcome.runId)
    yield* becomes(name, "plains", "done")
    assertCount(source.requests.slice(requestCount), ({ resource }) => resource === "things", 0)
    // A request needs a run that begins after it.
    yield* request(name, "things", true)
    yield* runsAgain(name, "things", outcome.runId)
    assert.strictEqual((yield* runsOf(companyId)).at(-1)!.kind, "full")
  })

  test("retries a failed task with its reason, and runs a requested backfill", function* () {
    const one = makeCompany()
    const good = one.source.script
    one.source.script = (asked) => {
      if (asked.resource.path === "things") throw failing(serverFault)
      return good(asked)
    }
    yield* Effect.forkScoped(runTasks([one]))
    const failed = yield* becomes(one.name, "things", "failed")
    assert.include(failed.error!, "500")
    assert.isNotNull(failed.remedy)
    assert.strictEqual(failed.failures, 1)
    assert.approximately(failed.nextAt!.getTime() - failed.endedAt!.getTime(), 30_000, 2_000)
    yield* becomes(one.name, "plains", "done")
    one.source.script = good
    yield* request(one.name, "things")
    assert.deepInclude(yield* becomes(one.name, "things", "done"), { failures: 0, error: null, remedy: null })

    const range = { since: "2026-01-01T00:00:00Z", until: "2026-02-01T00:00:00Z" }
    yield* TaskQueue.requestBackfill({ company: one.name, resource: "things", ...range, by: "Ann" })
    const backfill = yield* becomes(one.name, "things", "done", "backfill")
    assert.isNull(backfill.nextAt)
    assert.deepInclude((yield* runsOf(one.companyId)).at(-1)!, { lane: "backfill", status: "done" })
  })

  test("blocks a company whose token is refused, and skips resources without scope", function* () {
    const identity = yield* Ref.make<Effect.Effect<Identity, SourceError>>(
      Effect.fail(failing(new Unauthorized({ kind: "unknown", code: "invalid_token" })))
    )
    const refused = makeCompany(() => ({ identify: Effect.flatten(Ref.get(identity)) }))
    const narrow = makeCompany(({ identify }) => ({
      identify: Effect.map(identify, (whole) => ({ ...whole, scopes: ["other:read"] }))
    }))
    const late = makeCompany()
    late.source.script = () => {
      throw failing(new Forbidden({ kind: "module", code: "feature_not_licensed", scope: null, detail: "no" }))
    }
    yield* Effect.forkScoped(runTasks([refused, narrow, late]))
    const rests = yield* becomes(refused.name, "things", "failed")
    assert.isNotNull(rests.remedy)
    assert.strictEqual(rests.failureKind, "Unauthorized")
    assert.lengthOf(refused.source.requests, 0)
    assert.deepInclude(yield* becomes(narrow.name, "things", "skipped"), {
      error: "things: the token lacks the scope shop:read",
      remedy: "give the token the scope shop:read",
      failures: 0
    })
    assert.lengthOf(narrow.source.requests, 0)
    assert.strictEqual((yield* becomes(late.name, "things", "skipped")).failures, 0)
    // A request makes the worker check the token again.
    yield* Ref.set(identity, refused.source.connector.identify)
    yield* request(refused.name, "things")
    assert.isNull((yield* becomes(refused.name, "things", "done")).error)
  })

  test("asks a source that fails for nothing but its identity, and runs what is due when it answers again", function* () {
    let isAway = true
    let questions = 0
    const one = makeCompany(({ identify }) => ({
      identify: Effect.suspend(() => {
        questions += 1
        return isAway && questions > 1 ? Effect.fail(failing(serverFault)) : identify
      })
    }))
    const good = one.source.script
    one.source.script = () => {
      throw failing(serverFault)
    }
    yield* Effect.forkScoped(runTasks([one]))
    for (const resource of ["things", "plains"]) {
      assert.include((yield* becomes(one.name, resource, "failed")).error!, "500")
    }
    const asked = (least: number) => untilTrue("questions", () => questions >= least)
    // Both began before the first of them failed.
    yield* asked(3)
    const before = one.source.requests.length
    yield* asked(5)
    assert.lengthOf(one.source.requests, before)
    const { endedAt, failures, nextAt } = (yield* taskOf(one.name, "things"))!
    assert.strictEqual(failures, 0, "the source failed, and not the task")
    assert.isAtMost(nextAt!.getTime(), endedAt!.getTime(), "it stays due")

    isAway = false
    one.source.script = good
    for (const resource of ["things", "plains"]) yield* becomes(one.name, resource, "done")
    assertCount(yield* runsOf(one.companyId), ({ status }) => status === "done", 2)
  })

  test("ends the session of a former owner that does not respond, and no session of a command", function* () {
    const one = makeCompany()
    yield* Effect.scoped(
      Effect.gen(function* () {
        // As in a process that was suspended during a landing and has lost its companies.
        const stopped = yield* otherProcess
        yield* Effect.provideService(ProcessSlot.acquire, Database, stopped)
        const acquire = (resource: Resource, process: DatabaseShape) =>
          ResourceLock.acquire({
            table: tableOf(resource),
            connector: one.source.connector,
            companyId: one.companyId,
            lane: "live"
          }).pipe(Effect.provideService(Database, process))
        const lock = yield* acquire(things, stopped)
        const [inside, goesOn] = [Latch.makeUnsafe(), Latch.makeUnsafe()]
        const look = Effect.andThen(goesOn.await, lock.run("look", "select 1"))
        const landing = yield* Effect.forkScoped(lock.transaction(Effect.andThen(inside.open, look)))
        yield* inside.await
        const command = yield* acquire(plain, yield* otherProcess)
        yield* Effect.forkScoped(runTasks([one]))
        yield* becomes(one.name, "things", "done")
        yield* goesOn.open
        const exit = yield* Effect.exit(Fiber.join(landing))
        assert.strictEqual(exit._tag, "Failure", "its session has ended, and its open transaction is rolled back")
        assert.isNull((yield* taskOf(one.name, "plains"))!.status)
        yield* command.transaction(command.run("look", "select 1"))
      })
    )
    assert.strictEqual((yield* runsOf(one.companyId)).find(({ resource }) => resource === "things")!.status, "done")
  })

  test("reads a resource for its delivery gaps, in full where one needs that, and not while it is paused", function* () {
    const one = makeCompany()
    const { company, companyId, name } = one
    yield* Effect.forkScoped(runTasks([one], () => off))
    yield* until("the tasks", taskOf(name, "plains"), (task) => task !== undefined)
    for (const resource of tables.keys()) {
      yield* request(name, resource)
      yield* becomes(name, resource, "done")
    }
    const gap = {
      subscriptionId: null,
      cause: "event_lost",
      detail: "",
      beganAt: null,
      lasts: false,
      events: []
    } as const
    const closed = (resource: string) =>
      until(
        "the closed gap",
        execute<{ closedBy: string | null }>(
          `select closed_by as "closedBy" from tributary.delivery_gaps where company = $1 and resource = $2 and closed_at is not null`,
          [name, resource]
        ),
        (rows) => rows.length > 0
      )
    const overlap = Duration.toMillis(company.engine.overlap)
    const open = (resource: string, more: Partial<DeliveryGaps.NewGap> = {}) =>
      DeliveryGaps.open(name, [{ ...gap, resource, endedMsAgo: overlap, ...more }])
    yield* open("things")
    yield* closed("things")
    const [last] = (yield* runsOf(companyId)).filter(({ resource }) => resource === "things").slice(-1)
    assert.strictEqual(last!.kind, "incremental")

    yield* execute("delete from tributary.delivery_gaps")
    yield* TaskQueue.pauseTasks({ company: name, resource: "things", by: "Ann" })
    yield* open("things", { requiresFullScan: true })
    yield* open("plains")
    yield* closed("plains")
    assert.strictEqual((yield* runsOf(companyId)).filter(({ resource }) => resource === "things").at(-1)!.id, last!.id)
    yield* TaskQueue.resumeTasks({ company: name, resource: "things", by: "Ann" })
    yield* closed("things")
    assert.strictEqual((yield* runsOf(companyId)).filter(({ resource }) => resource === "things").at(-1)!.kind, "full")
  })

  test("stores why a gap stays open, and tries again later", function* () {
    const one = makeCompany()
    yield* Effect.forkScoped(runTasks([one], () => off))
    yield* until("the tasks", taskOf(one.name, "things"), (task) => task !== undefined)
    yield* request(one.name, "things")
    yield* becomes(one.name, "things", "done")
    one.source.script = () => {
      throw failing(serverFault)
    }
    yield* DeliveryGaps.open(one.name, [
      {
        subscriptionId: null,
        resource: "things",
        cause: "event_lost",
        detail: "",
        beganAt: null,
        lasts: false,
        events: []
      }
    ])
    const [gap] = yield* until(
      "the reason",
      execute<{ error: string | null; waits: boolean; attempts: number }>(
        "select last_error as error, attempts, next_attempt_at > tributary.now() as waits from tributary.delivery_gaps where company = $1",
        [one.name]
      ),
      ([row]) => row?.error !== null
    )
    assert.match(gap!.error!, /500/)
    assert.deepInclude(gap!, { waits: true, attempts: 1 })
  })

  test("promotes unknown fields to columns, and fills them in later runs", function* () {
    const sql = yield* SqlClient.SqlClient
    const one = makeCompany()
    const configured = { path: "widgets", area: null, modifiedSince: false, cancel: false, key: null }
    const catalogue = yield* WarehouseCatalogue.addConfigured(tiny, [configured])
    const widgets = catalogue.resources.get("widgets")!
    yield* TablePlan.apply([tableOf(widgets)])
    one.source.script = (request) => {
      const { resource } = request
      const isKnown = resource.field.has("colour")
      const values = isKnown ? { id: "1", colour: "red" } : { id: "1" }
      return pages({ records: [record(resource, values, isKnown ? {} : { extra: '{"colour":"red"}' })] })(request)
    }
    const company: Company = {
      ...one.company,
      tables: WarehouseCatalogue.resources(catalogue, [widgets]).pipe(
        Effect.map((whole) => new Map(whole.map((resource) => [resource.path, tableOf(resource)]))),
        Effect.provideService(SqlClient.SqlClient, sql)
      )
    }
    yield* Effect.forkScoped(runTasks([{ company }]))
    const first = yield* becomes(one.name, "widgets", "done")
    assert.deepStrictEqual(yield* sql`select colour from erp.widgets where _extra is null`, [{ colour: "red" }])
    yield* request(one.name, "widgets", true)
    yield* runsAgain(one.name, "widgets", first.runId)
    assert.deepInclude(yield* becomes(one.name, "widgets", "done"), { failures: 0 })
  })
})
