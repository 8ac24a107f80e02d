/** A sync and a task worker while the source refuses or redirects the requests of some resources. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { codeOf } from "../../../src/cli/Exit.ts"
import * as FailureScope from "../../../src/connector/FailureScope.ts"
import {
  Forbidden,
  Malformed,
  NotFound,
  Redirected,
  ServerFault,
  type SourceReason,
  Unauthorized
} from "../../../src/connector/SourceError.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { sync } from "../../../src/sync/Sync.ts"
import * as TaskQueue from "../../../src/tasks/TaskQueue.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import { execute } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { failing, plain, record, scripted } from "../../support/tiny.ts"
import { until } from "../../support/until.ts"
import { makeWorker } from "../tasks/working.ts"
import { company, valuesOf, warehouseWith } from "./syncing.ts"
import { assertEach } from "../../support/assertions.ts"

const paths = ["areas", "jobs", "salesmen", "vendors", "zones"]
const resources = paths.map((path) => ({ ...plain, path }))
const tables = new Map(resources.map((resource) => [resource.path, tableOf(resource)]))

const redirected = (status: number, to: string) => new Redirected({ status, to })
const forbidden = new Forbidden({ kind: "other", code: "forbidden", scope: null, detail: "no" })
const revoked = new Unauthorized({ kind: "revoked", code: "token_revoked" })
const html = new Malformed({ detail: "HTML" })

/** A company whose records have this name. `refusals` has what the requests of a resource and of the identity meet. */
const makeCompany = Effect.gen(function* () {
  const companyId = company()
  const refusals = new Map<string, SourceReason>()
  let name = "first"
  let questions = 0
  const { connector } = scripted(companyId, ({ resource }) => {
    const reason = refusals.get(resource.path)
    if (reason !== undefined) throw failing(reason)
    return { records: [record(resource, { id: "1", name })], next: null }
  })
  const identify = Effect.suspend(() => {
    questions += 1
    const reason = refusals.get("identity")
    return reason === undefined ? connector.identify : Effect.fail(failing(reason))
  })
  const scoped = yield* FailureScope.make({ ...connector, identify })
  const run = sync({
    companies: [{ name: `company ${companyId}`, connector: scoped, resources }],
    datasets: datasetsDefault,
    concurrency: 3,
    batchRecordsMax: 100
  })
  const owned = {
    name: `company ${companyId}`,
    connector: scoped,
    tables: Effect.succeed(tables),
    engine: engineDefault,
    batchRecordsMax: 100,
    events: []
  }
  const rename = (to: string) => {
    name = to
  }
  return { companyId, refusals, run, owned, rename, questions: () => questions }
})

/** What two resources meet at the same time, and the exit code. */
const refusals: ReadonlyArray<readonly [SourceReason, SourceReason, number]> = [
  [forbidden, redirected(302, "/login"), 3],
  [revoked, redirected(307, "https://elsewhere.example/jobs"), 3],
  [new NotFound({ detail: "no such path" }), html, 5]
]

suite("the scope of a refusal", warehouseWith([...tables.values()]), (test) => {
  test("is the resource whose requests are refused, in a sync", function* () {
    for (const [ofSalesmen, ofJobs, code] of refusals) {
      const one = yield* makeCompany
      yield* one.run
      one.rename("changed")
      one.refusals.set("salesmen", ofSalesmen).set("jobs", ofJobs)
      const before = one.questions()
      const report = yield* one.run
      const [{ failure, outcomes }] = report.companies as [(typeof report.companies)[number]]
      assert.isNull(failure)
      assert.sameMembers(
        outcomes.flatMap(({ resource, status }) => (status === "done" ? [] : [`${resource} ${status}`])),
        ["jobs failed", "salesmen failed"]
      )
      assert.strictEqual(codeOf(report), code)
      assert.deepStrictEqual(yield* valuesOf(one.companyId, "vendors"), ["changed"])
      assert.isAtMost(one.questions() - before, 3, "one identification, and at most a question for each kind")
    }
  })

  test("is the company when the source refuses its identity", function* () {
    const one = yield* makeCompany
    yield* one.run
    const before = one.questions()
    one.refusals.set("identity", revoked)
    const report = yield* one.run
    assert.strictEqual(report.companies[0]!.failure?.kind, "Unauthorized")
    assert.strictEqual(codeOf(report), 3)
    assert.strictEqual(one.questions() - before, 1)
  })

  test("is the resource whose requests are refused, in a task worker that goes on", function* () {
    const companies = [yield* makeCompany, yield* makeCompany] as const
    const [one, other] = companies
    for (const { refusals: ofCompany } of companies)
      ofCompany
        .set("jobs", forbidden)
        .set("salesmen", redirected(302, "/login"))
        .set("zones", new ServerFault({ status: 503, code: null, retryAfter: null }))
    const worker = yield* makeWorker()
    for (const { owned } of companies) yield* worker.own(owned)
    yield* Effect.forkScoped(worker.run)
    const states = ({ owned }: typeof one) =>
      execute<{ resource: string; status: string; kind: string | null }>(
        "select resource, status, failure_kind as kind from tributary.tasks where company = $1 order by resource",
        [owned.name]
      ).pipe(Effect.orDie)
    const expected = [
      ["areas", "done", null],
      ["jobs", "failed", "Forbidden"],
      ["salesmen", "failed", "Redirected"],
      ["vendors", "done", null],
      ["zones", "failed", "ServerFault"]
    ]
    for (const company of companies) {
      const ended = yield* until(
        "the first run of each resource",
        states(company),
        (tasks) => tasks.length === paths.length && tasks.every(({ status }) => status !== null)
      )
      assertEach(ended, ({ resource, status, kind }) => [resource, status, kind], expected)
    }
    // A refused identity stops the company at the first refusal.
    one.refusals.set("identity", revoked).set("vendors", revoked)
    yield* TaskQueue.requestSync({ company: one.owned.name, resource: "vendors", full: false, by: "Ann" })
    yield* until("the end of the company", states(one), (tasks) => tasks.every(({ status }) => status === "failed"))
    assert.deepStrictEqual(
      (yield* states(other)).map(({ status }) => status),
      expected.map(([, status]) => status)
    )
  })
})
