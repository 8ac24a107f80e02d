/** Every kind of problem at once: all interfaces name those of `tributary.problems` and no others, and each ends with its cause. */
import { randomUUID } from "node:crypto"
import { assert, describe } from "@effect/vitest"
import { Array, Effect, Layer, Record, Redacted } from "effect"
import { leftovers } from "../../../src/cli/doctor/Leftovers.ts"
import { problemLines } from "../../../src/cli/Problems.ts"
import * as SqlClient from "effect/sql/SqlClient"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as FleetMetrics from "../../../src/status/FleetMetrics.ts"
import { alertKinds, type Kind, kinds, kindTraits, severityOf } from "../../../src/status/ProblemKinds.ts"
import * as Problems from "../../../src/status/Problems.ts"
import * as CountCompanies from "../../../src/tasks/CountCompanies.ts"
import * as Grants from "../../../src/warehouse/Grants.ts"
import { literal } from "../../../src/warehouse/Identifier.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "../../../src/warehouse/Model.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { plain } from "../../dashboard/markup.ts"
import { alertingProcess, alertsTo } from "../../support/alerting.ts"
import { makeHostile } from "../../support/hostileRole.ts"
import { ask, shownCompany, showing } from "../../support/pages.ts"
import { clockIs, databaseUrl, execute, layerPages, pagesNow } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

const test = testWith(layerPages)

/** Every name of a company or subject ends with this. */
const hostile = `'"%I%s\n<script>alert(1)</script>\\`
const text = (name: string): string => literal(name + hostile)
const companies = ["token", "many", "down1", "down2"].map((name, index) => ({
  name: name + hostile,
  number: BigInt(index + 1)
}))
const names = companies.map(({ name }) => name)
const many = text("many")
const things = text("things")

const failed = (company: string, resource: string, kind: string): string =>
  `insert into tributary.tasks (company, resource, kind, status, failures, finished_at, failure_kind, error, remedy)
   values (${company}, ${resource}, 'sync', 'failed', 1, tributary.now(), '${kind}', 'it failed', 'repair it')`
const rule = (name: string, state: string, open: number): string =>
  `with rule as (
     insert into tributary.invariants (name, severity, statement, comment, resources, query)
     values (${text(name)}, 'critical', 'It holds.', '', '{things}', 'select') returning name)
   insert into tributary.invariant_states (invariant, company_id, state, open_violations) select name, 2, '${state}', ${open} from rule`
const endpoint = (name: string, state: string): string =>
  `insert into tributary.change_endpoints (name, url, origin, state, last_position)
   values (${text(name)}, 'https://shop.example.com', 'command', '${state}', 0)`
const subscription = (company: string, state: string): string =>
  `insert into tributary.subscriptions (company, subscription_id, url, events, state, checked_at)
   values (${company}, 's1', 'https://hooks.example.com', '{things.updated}', '${state}', tributary.now())`
const disk = JSON.stringify([
  {
    kind: "disk",
    subject: `db${hostile}`,
    level: 1,
    critical_from: 1,
    what: "full",
    remedy: "free space",
    command: null
  }
])

/** What makes each kind hold, and what ends it. */
const causes: Readonly<Record<Kind, readonly [begin: string, end: string]>> = {
  installation: [
    `with one as (${failed(text("down1"), things, "Unreachable")}) ${failed(text("down2"), things, "Unreachable")}`,
    "delete from tributary.tasks where failure_kind = 'Unreachable'"
  ],
  token: [
    failed(text("token"), things, "Unauthorized"),
    "delete from tributary.tasks where failure_kind = 'Unauthorized'"
  ],
  failing: [failed(many, text("fails"), "Bug"), "delete from tributary.tasks where failure_kind = 'Bug'"],
  restore: [
    "update tributary.warehouse set pause_reason = 'the source is another one'",
    "update tributary.warehouse set pause_reason = null"
  ],
  disk: [
    `insert into tributary.processes (process_id, companies, observed) values ('disk', '{}', ${literal(disk)})`,
    "update tributary.processes set observed = '[]' where process_id = 'disk'"
  ],
  receiver: [
    subscription(many, "active"),
    `update tributary.processes set companies = array[${many}] where process_id = 'disk'`
  ],
  dead_letters: [
    `insert into tributary.inbox (company, event_id, event_type, sent_at, body, state)
     values (${many}, 'e1', 'things.updated', tributary.now(), '', 'dead_letter')`,
    "update tributary.inbox set state = 'done', resolved_at = tributary.now()"
  ],
  rejected: [
    `insert into tributary.outbox (company, resource, record, state) values (${many}, ${things}, '{}', 'rejected')`,
    "delete from tributary.outbox"
  ],
  endpoint: [endpoint("dead", "dead"), "update tributary.change_endpoints set state = 'active' where state = 'dead'"],
  undelivered: [
    `${endpoint("lives", "active")};
     insert into tributary.change_retries (endpoint, position, company_number, resource, state, next_attempt_at)
     values (${text("lives")}, 1, 2, ${things}, 'dead', tributary.now())`,
    "delete from tributary.change_retries"
  ],
  invariant: [rule("violated", "violated", 1), "update tributary.invariant_states set open_violations = 0"],
  late: [
    `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms)
     values (${many}, ${text("late")}, 'sync', 'every 10 min', 900000)`,
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
     values (2, ${text("late")}, 'full', 'live', 'done', 1, tributary.now(), tributary.now())`
  ],
  budget: [
    `insert into tributary.budgets (fingerprint, updated_at, retry_after_at)
     values (repeat('f', 64), tributary.now(), tributary.now() + interval '2 hours')`,
    "update tributary.budgets set retry_after_at = tributary.now()"
  ],
  unresolved: [
    `insert into tributary.push_requests (company, resource, operation, idempotency_key, body, record_count)
     values (${many}, ${things}, 'create', 'k1', '{}', 1)`,
    "delete from tributary.push_requests"
  ],
  process: [
    `insert into tributary.processes (process_id, companies, host, started_at, heartbeat_at)
     values ('lost', '{}', ${text("web")}, tributary.now() - interval '1 hour', tributary.now() - interval '5 minutes')`,
    "update tributary.processes set stopped_at = tributary.now() where process_id = 'lost'"
  ],
  gap: [
    `insert into tributary.delivery_gaps (company, resource, cause, detail) values (${many}, ${things}, 'unobserved', 'none ran')`,
    "update tributary.delivery_gaps set ended_at = tributary.now()"
  ],
  subscription: [subscription(text("token"), "deleted"), "delete from tributary.subscriptions where state = 'deleted'"],
  quarantine: [
    `insert into tributary.quarantine (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at)
     values (2, ${things}, '1', 'a NUL', '{}', 1, 'GET /x', tributary.now(), tributary.now())`,
    "update tributary.quarantine set resolved_at = tributary.now()"
  ],
  unevaluated: [rule("broken", "failed", 0), "update tributary.invariant_states set state = 'holds'"],
  blocked: [
    `insert into tributary.tasks (company, resource, kind, status, finished_at) values (${many}, ${text("blocked")}, 'sync', 'skipped', tributary.now())`,
    "update tributary.tasks set status = 'done' where status = 'skipped'"
  ]
}

const run = (statements: string) =>
  Effect.forEach(statements.split(";\n"), (statement) => execute(statement), { discard: true })

const prepare = Effect.gen(function* () {
  for (const { name, number } of companies) {
    const installation = name.startsWith("down") ? text("erp") : "null"
    yield* execute(
      `insert into tributary.companies (company, company_id, installation, budget)
       values (${literal(name)}, ${number}, ${installation}, case when ${number} = 2 then repeat('f', 64) end)`
    )
  }
  // All pushes are paused in place of single ones.
  for (const [kind, [begin]] of Record.toEntries(causes)) if (kind !== "restore") yield* run(begin)
})

type Row = Pick<Problems.Problem, "kind" | "company" | "subject" | "severity" | "level"> & {
  readonly is_consequence: boolean
}
const readView = execute<Row>("select * from tributary.problems")
const kindsOf = (rows: ReadonlyArray<{ readonly kind: Kind }>): ReadonlyArray<Kind> => {
  const present = new Set(rows.map(({ kind }) => kind))
  return kinds.filter((kind) => present.has(kind))
}
/** The kinds that are no consequence of others. */
const readKinds = Effect.map(readView, (rows) => kindsOf(rows.filter((one) => !one.is_consequence)))

/** What each interface says, as kinds or as their words. */
const interfaces = Effect.gen(function* () {
  const problems = yield* Problems.read(names)
  const url = yield* showing(companies.map(({ name, number }) => shownCompany(name, number)))
  const page = yield* ask(url)
  assert.strictEqual(page.status, 200)
  assert.notInclude(page.text, "<script>alert(1)")
  const list = /<h2 id="needed">[\s\S]*?<\/section>/.exec(page.text)![0]
  const metrics = yield* FleetMetrics.readFleetMetrics(names.map((name) => ({ name, installation: "one" })))
  const samples = metrics.find(({ name }) => name === "tributary_problems")!.samples
  const alerting = yield* alertingProcess("one", yield* databaseUrl, alertsTo([]), names)
  yield* alerting.evaluate
  const conditions = yield* execute<{ kind: Kind }>("select kind from tributary.alert_conditions")
  const doctor = yield* leftovers
  return {
    problems,
    words: [...list.matchAll(/<span class="badge [^>]*>([\s\S]*?)<\/span>/g)].map(([, word]) => plain(word!)),
    lines: problemLines(problems),
    doctor: doctor.flatMap(({ check }) => kinds.filter((kind) => kind === check)),
    metric: samples.filter(({ value }) => value > 0).map(({ labels }) => labels?.["kind"]),
    series: samples.length,
    conditions: kindsOf(conditions),
    menu: yield* Problems.readMenu
  }
})

/** The interfaces have the kinds of the view, which are these. */
const assertAll = Effect.fnUntraced(function* (expected: ReadonlyArray<Kind>) {
  const view = yield* readView
  for (const { kind, level, severity } of view) assert.strictEqual(severity, severityOf(kind, level), kind)
  assert.deepStrictEqual(yield* readKinds, expected)
  const keys = view.map(({ kind, company, subject }) => JSON.stringify([kind, company, subject]))
  assert.strictEqual(new Set(keys).size, keys.length, "a problem is one row")
  const shown = yield* interfaces
  assert.sameMembers(
    shown.problems.map(({ kind, company, subject }) => JSON.stringify([kind, company, subject])),
    keys
  )
  assert.sameMembers(
    Array.dedupe(shown.words),
    Array.dedupe(expected.map((kind) => kindTraits[kind].word)),
    "the overview"
  )
  const lines = shown.lines.filter((line) => /^ {4}(?:warning|critical): /.test(line))
  assert.lengthOf(lines, expected.length)
  for (const [index, kind] of expected.entries()) {
    const severity = view.find((one) => one.kind === kind && !one.is_consequence)!.severity
    assert.isTrue(lines[index]!.startsWith(`    ${severity}: ${kindTraits[kind].title} (`), lines[index])
  }
  for (const line of shown.lines) assert.notMatch(line, /\n/, "a name breaks no line")
  assert.deepStrictEqual(shown.doctor, [...expected], "doctor")
  assert.deepStrictEqual(shown.metric, [...expected], "the metric")
  assert.strictEqual(shown.series, kinds.length * 2)
  assert.deepStrictEqual(
    shown.conditions,
    expected.filter((kind) => alertKinds.includes(kind)),
    "alerts"
  )
  const sections = new Set(
    expected
      .filter((kind) => !["token", "failing", "late", "blocked"].includes(kind))
      .flatMap((kind) => kindTraits[kind].section ?? [])
  )
  assert.sameMembers(Record.keys(shown.menu), [...sections], "the menu")
  return view
})

describe("problems", () => {
  test("of every kind are the same in each interface", function* () {
    yield* prepare
    const others = yield* assertAll(kinds.filter((kind) => kind !== "restore"))
    yield* run(causes.restore[0])
    yield* execute("delete from tributary.alert_conditions")
    const restored = yield* assertAll(kinds.filter((kind) => kind !== "unresolved"))
    assert.sameMembers([...kindsOf([...others, ...restored])], [...kinds], "the kinds of SQL are those of the data")
    for (const { subject, company } of restored) {
      assert.isTrue(company === null || names.includes(company))
      assert.isTrue(subject === "" || subject.endsWith(hostile), subject)
    }
    // The pages that they lead to exist.
    const url = yield* showing(companies.map(({ name, number }) => shownCompany(name, number)))
    for (const problem of yield* Problems.read(names)) {
      const { status } = yield* ask(`${url}${Problems.pageOf(problem).split("#")[0]}`)
      assert.strictEqual(status, 200, Problems.pageOf(problem))
    }
  })

  test("are the same before and after the states of companies are counted, and end with their causes", function* () {
    yield* prepare
    const before = yield* readView
    while ((yield* CountCompanies.countDue()).some(({ isNew }) => isNew));
    assert.sameDeepMembers([...(yield* readView)], [...before])
    let left = kinds.filter((kind) => kind !== "restore")
    for (const kind of left) {
      yield* run(causes[kind][1])
      left = left.filter((one) => one !== kind)
      assert.deepStrictEqual(yield* readKinds, left, `without ${kind}`)
    }
    assert.deepStrictEqual(yield* readView, [])
    assert.deepStrictEqual(problemLines(yield* Problems.read(names)), ["  nothing needs a person"])
    yield* run(causes.restore[0])
    assert.deepStrictEqual(yield* readKinds, ["restore"])
    yield* run(causes.restore[1])
    assert.deepStrictEqual(yield* readView, [])
  })

  test("can be read by the reader, whatever the settings of its role", function* () {
    yield* prepare
    const expected = yield* readView
    const reader = `reader_${randomUUID().slice(0, 8)}`
    const loader = `${reader}_loader`
    const datasets = {
      ...datasetsDefault,
      models: modelsDatasetDefault,
      asOfModels: asOfModelsDataset,
      control: Grants.controlDataset
    }
    yield* execute(`create role ${reader} login password 'not-a-secret'`)
    yield* Effect.addFinalizer(() =>
      Effect.orDie(
        Effect.forEach([reader, loader], (role) =>
          Effect.andThen(execute(`drop owned by ${role} cascade`), execute(`drop role ${role}`))
        )
      )
    )
    for (const statement of Grants.statements(datasets, { loader, reader })) yield* execute(statement)
    yield* Effect.flatMap(SqlClient.SqlClient, (client) => makeHostile(client, [reader]))
    const url = new URL(Redacted.value(yield* databaseUrl))
    url.username = reader
    url.password = "not-a-secret"
    const rows = yield* Effect.provide(
      readView,
      Layer.fresh(Layer.provideMerge(sqlLayer, Database.layerUrl(Redacted.make(url.href))))
    )
    assert.strictEqual(rows.length, expected.length)
    assert.deepStrictEqual(kindsOf(rows), kindsOf(expected))
  })
})

describe("a warehouse in an odd state", () => {
  const problemsOf = Effect.map(readView, (rows) =>
    rows
      .map(
        ({ kind, subject, is_consequence: isConsequence }) => `${kind} ${subject}${isConsequence ? " (follows)" : ""}`
      )
      .toSorted()
  )
  const north = "insert into tributary.companies (company, company_id) values ('north', 1)"
  const task = `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, status, failures, finished_at, failure_kind)
     values ('north', 'things', 'sync', 'every 10 min', 900000, $1, $2, tributary.now(), $3)`

  test("has no problem without rows, and without tasks", function* () {
    assert.deepStrictEqual(yield* problemsOf, [])
    yield* execute(north)
    assert.deepStrictEqual(yield* problemsOf, [])
    assert.deepStrictEqual(yield* Problems.read(null), [])
  })

  test("has the problems of a company whose source never answered", function* () {
    yield* execute(task, ["failed", 1, "Unauthorized"])
    assert.deepStrictEqual(yield* problemsOf, ["failing things (follows)", "late things (follows)", "token "])
    assert.lengthOf(yield* Problems.read(null), 3)
  })

  test("says whether a failure without a kind is a consequence", function* () {
    yield* execute(north)
    yield* execute(task, ["failed", 12, "Unauthorized"])
    yield* execute(
      "insert into tributary.tasks (company, resource, kind, status, failures, finished_at) values ('north', 'others', 'sync', 'failed', 1, tributary.now())"
    )
    assert.deepStrictEqual(yield* problemsOf, [
      "failing others",
      "failing things (follows)",
      "late things (follows)",
      "token "
    ])
    for (const { what, remedy } of yield* Problems.read(null)) assert.isAbove(Math.min(what.length, remedy.length), 5)
  })

  test("finds what became late after the last count, also when no process counts again", function* () {
    yield* execute(north)
    yield* execute(task, ["done", 0, null])
    yield* execute(
      `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at)
       values (1, 'things', 'full', 'live', 'running', 1, tributary.now())`
    )
    yield* CountCompanies.countDue()
    assert.deepStrictEqual(yield* problemsOf, [], "its first run is in progress")
    yield* execute("update tributary.runs set status = 'abandoned', finished_at = tributary.now()")
    assert.deepStrictEqual(yield* problemsOf, ["late things"])
    yield* execute("update tributary.tasks set paused_at = tributary.now(), updated_at = tributary.now()")
    yield* execute("delete from tributary.company_states")
    yield* CountCompanies.countDue()
    assert.deepStrictEqual(yield* problemsOf, [], "it is paused")
    yield* execute("update tributary.tasks set paused_at = null, updated_at = tributary.now()")
    assert.deepStrictEqual(yield* problemsOf, ["late things"])
  })

  test("has one problem for lost processes of one name, and none for a process that another one replaced", function* () {
    const process = (id: string, started: string, heartbeat: string, host: string | null) =>
      execute(
        `insert into tributary.processes (process_id, companies, started_at, heartbeat_at, host, pid)
         values ($1, '{}', tributary.now() - $2::interval, tributary.now() - $3::interval, $4, case when $4::text is not null then 1 end)`,
        [id, started, heartbeat, host]
      )
    yield* process("a", "2 hours", "5 minutes", "web")
    yield* process("b", "2 hours", "4 minutes", "web")
    yield* process("c", "2 hours", "4 minutes", null)
    yield* process("d", "1 minute", "1 second", null)
    assert.deepStrictEqual(yield* problemsOf, ["process web, pid 1"])
    // It started before the clock was set back.
    yield* process("e", "-1 hour", "4 minutes", "back")
    assert.deepStrictEqual(yield* problemsOf, ["process back, pid 1", "process web, pid 1"])
    yield* execute(clockIs(`timestamptz ''${pagesNow}'' + interval ''2 days''`))
    assert.deepStrictEqual(yield* problemsOf, [], "after a day")
  })

  test("cannot store observations that make the view fail", function* () {
    const stored = yield* Effect.exit(
      execute(
        `insert into tributary.processes (process_id, companies, observed) values ('p1', '{}', '{"kind": "disk"}')`
      )
    )
    assert.strictEqual(stored._tag, "Failure")
    assert.deepStrictEqual(yield* problemsOf, [])
  })
})
