/** A sync and a task worker while the source refuses or redirects the requests of some resources. */
import { assert, describe, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { ServiceClient } from "../../../connectors/service-v2/client/index.ts"
import { codeOf } from "../../../src/cli/Exit.ts"
import * as Processes from "../../../src/processes/Processes.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { sync } from "../../../src/sync/Sync.ts"
import type { ResourceSchedule } from "../../../src/tasks/Cron.ts"
import * as TaskQueue from "../../../src/tasks/TaskQueue.ts"
import * as TaskWorker from "../../../src/tasks/TaskWorker.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import { layerSource, Source } from "../../support/source.ts"
import { until } from "../../support/until.ts"

const paths = ["salesmen", "jobs", "vendors", "vendororderfroms", "areas", "zones"]
const resources = paths.map((path) => serviceV2.resources.get(path)!)
const tables = new Map(resources.map((resource) => [resource.path, tableOf(resource)]))
const hourly: ResourceSchedule = {
  timing: { kind: "every", interval: Duration.hours(1) },
  missed: "once",
  jitterMax: Duration.zero
}

let companies = 600
const makeCompany = Effect.gen(function* () {
  const source = yield* Source
  const sql = yield* SqlClient.SqlClient
  const id = (companies += 1)
  const control = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => source.control(method, path, body))
  const { token } = (yield* control("POST", "/tokens", { company: id, scopes: ["*"] })) as { readonly token: string }
  const connector = yield* ServiceClient.make({
    baseUrl: source.baseUrl,
    token: Redacted.make(token),
    catalogue: serviceV2,
    retry: { attemptsMax: 2, backoffBase: Duration.millis(1), backoffMax: Duration.millis(2) }
  })
  const name = `company ${id}`
  const write = (resource: string, name: string) =>
    control("POST", "/records", { company: id, resource, records: [{ id: id * 100, name }] })
  const arm = (rules: ReadonlyArray<object>) => control("POST", "/faults", { rules })
  const run = Effect.map(
    sync({
      companies: [{ name, connector, resources }],
      datasets: datasetsDefault,
      concurrency: 3,
      batchRecordsMax: 100
    }),
    (report) => {
      const [company] = report.companies
      return {
        code: codeOf(report),
        failure: company!.failure,
        unread: company!.outcomes.filter(({ status }) => status !== "done")
      }
    }
  )
  const vendor = Effect.map(
    sql<{ name: string }>`select name from erp.vendors where _company_id = ${id} order by id`,
    (rows) => rows.map((row) => row.name)
  )
  const questions = Effect.map(
    control("GET", "/requests"),
    (answer) =>
      (answer as { requests: ReadonlyArray<{ path: string }> }).requests.filter(({ path }) => path === "/me").length
  )
  const revoke = control("POST", "/tokens/revoke", { token })
  const company = { name, connector, tables: Effect.succeed(tables), engine: engineDefault, batchRecordsMax: 100 }
  return { arm, company, name, questions, revoke, run, vendor, write }
})

const redirect = (status: number, location: string) => ({ kind: "status", status, headers: { location } })
/** What two resources meet at the same time, and the exit code. */
const refusals: ReadonlyArray<readonly [string, readonly [object, object], number]> = [
  ["403 and 302", [{ kind: "status", status: 403, code: "forbidden" }, redirect(302, "/login")], 3],
  [
    "401 and 307",
    [{ kind: "status", status: 401, code: "token_revoked" }, redirect(307, "https://elsewhere.example/jobs")],
    3
  ],
  [
    "404 and HTML",
    [
      { kind: "status", status: 404, code: "not_found" },
      { kind: "html", status: 200 }
    ],
    5
  ]
]

describe("the scope of a refusal", () => {
  layer(layerSource([...tables.values()]), { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    it.effect("is the resource whose requests are refused, in a sync", () =>
      Effect.gen(function* () {
        const { arm, questions, run, vendor, write } = yield* makeCompany
        yield* run
        for (const [name, faults, code] of refusals) {
          yield* write("vendors", name)
          yield* arm(["/salesmen", "/jobs"].map((path, index) => ({ ...faults[index], path })))
          const before = yield* questions
          const report = yield* run
          yield* arm([])
          assert.isNull(report.failure, name)
          assert.deepStrictEqual(
            report.unread.map(({ resource, status }) => [resource, status]),
            [
              ["salesmen", "failed"],
              ["jobs", "failed"]
            ],
            name
          )
          assert.strictEqual(report.code, code, name)
          assert.deepStrictEqual(yield* vendor, [name], "the changed row of another resource was landed")
          assert.isAtMost((yield* questions) - before, 3, "one identification, and at most a question for each kind")
        }
      })
    )

    it.effect("is the resource also where a parent is refused, but not its children", () =>
      Effect.gen(function* () {
        const { arm, run, write } = yield* makeCompany
        yield* write("vendors", "first")
        yield* arm([{ kind: "status", status: 403, code: "forbidden", path: "/vendors" }])
        const { unread } = yield* run
        yield* arm([])
        assert.deepStrictEqual(
          unread.map(({ resource }) => resource),
          ["vendors"]
        )
      })
    )

    it.effect("is the company when the token is revoked, or the whole address redirects", () =>
      Effect.gen(function* () {
        const redirected = yield* makeCompany
        yield* redirected.arm([{ ...redirect(302, "https://elsewhere.example/"), after: 1 }])
        const moved = yield* redirected.run
        yield* redirected.arm([])
        assert.strictEqual(moved.failure?.kind, "Redirected")
        const { questions, revoke, run } = yield* makeCompany
        yield* run
        const before = yield* questions
        yield* revoke
        const report = yield* run
        assert.strictEqual(report.failure?.kind, "Unauthorized")
        assert.strictEqual(report.code, 3)
        assert.strictEqual((yield* questions) - before, 1)
      })
    )

    it.effect("is the resource whose requests are refused, in a task worker that goes on", () =>
      Effect.gen(function* () {
        const one = yield* makeCompany
        const other = yield* makeCompany
        yield* one.write("vendors", "first")
        yield* one.arm([
          { kind: "status", status: 403, code: "forbidden", path: "/jobs" },
          { ...redirect(302, "/login"), path: "/salesmen" },
          { kind: "status", status: 503, path: "/zones" }
        ])
        const processId = yield* Processes.makeId
        yield* Processes.heartbeat(processId, [one.name, other.name])
        const worker = yield* TaskWorker.make({
          processId,
          scheduleOf: () => hourly,
          freshnessOf: () => Duration.minutes(90),
          concurrency: 3,
          datasets: datasetsDefault,
          models: []
        })
        yield* worker.own(one.company)
        yield* worker.own(other.company)
        yield* Effect.forkScoped(worker.run)
        const states = Effect.map(TaskQueue.readTasks, (tasks) =>
          tasks
            .filter(({ company }) => company === one.name || company === other.name)
            .map(({ company, resource, status, failureKind }) => ({ company, resource, status, failureKind }))
        )
        const ended = yield* until(
          "the first run of each resource",
          Effect.orDie(states),
          (tasks) => tasks.length === 2 * paths.length && tasks.every(({ status }) => status !== null)
        )
        const expected = (company: string) =>
          paths.map((resource) => {
            const failureKind = { jobs: "Forbidden", salesmen: "Redirected", zones: "ServerFault" }[resource] ?? null
            return { company, resource, status: failureKind === null ? "done" : "failed", failureKind }
          })
        const inOrder = (tasks: typeof ended) =>
          tasks.toSorted((a, b) => (`${a.company} ${a.resource}` < `${b.company} ${b.resource}` ? -1 : 1))
        const all = inOrder([...expected(one.name), ...expected(other.name)] as typeof ended)
        assert.deepStrictEqual(inOrder(ended), all)
        // The refused resources are requested again: the others keep their state.
        for (const resource of ["jobs", "salesmen", "zones"])
          yield* TaskQueue.requestSync({ company: one.name, resource, full: false, by: "Ann" })
        const again = yield* until(
          "the second run of the refused resources",
          Effect.orDie(Effect.map(TaskQueue.readTasks, (tasks) => tasks.filter(({ company }) => company === one.name))),
          (tasks) => tasks.every((task) => task.status === "done" || (task.failures >= 2 && !task.isRunning))
        )
        assert.deepStrictEqual(
          again
            .filter(({ status }) => status !== "done")
            .map(({ resource }) => resource)
            .toSorted(),
          ["jobs", "salesmen", "zones"]
        )
        yield* one.arm([])
        // A revoked token stops the company at the first refusal.
        yield* one.revoke
        yield* TaskQueue.requestSync({ company: one.name, resource: "vendors", full: false, by: "Ann" })
        const stopped = yield* until("the end of the company", Effect.orDie(states), (tasks) =>
          tasks.every(({ company, status }) => company !== one.name || status === "failed")
        )
        assert.deepStrictEqual(
          inOrder(stopped.filter(({ company }) => company === other.name)),
          inOrder(expected(other.name) as typeof ended)
        )
      }).pipe(Effect.scoped)
    )
  })
})
