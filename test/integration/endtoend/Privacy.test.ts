/**
 * Privacy rules over the whole catalogue of the reference server: what may not be kept is nowhere in the database, and
 * `verify` compares what is kept.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { type PatternRule, protect as protectResource } from "../../../src/catalogue/Protection.ts"
import * as Verify from "../../../src/cli/verify.ts"
import * as FieldRules from "../../../src/connector/FieldRules.ts"
import { protect } from "../../../src/connector/ProtectedConnector.ts"
import { forget } from "../../../src/retention/Forget.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { transaction } from "../../../src/postgres/Transaction.ts"
import * as Tables from "../../../src/serve/Tables.ts"
import type { Company } from "../../../src/sync/Company.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { syncResource } from "../../../src/sync/SyncResource.ts"
import * as ResourceLock from "../../../src/land/ResourceLock.ts"
import * as ColumnPromotion from "../../../src/warehouse/ColumnPromotion.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as WarehouseCatalogue from "../../../src/warehouse/WarehouseCatalogue.ts"
import { databaseTexts } from "../../support/canaries.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { connect, layerClients, makeSource } from "../../support/source.ts"
import { testWith } from "../../support/suite.ts"
import { flowing, settled } from "../../support/until.ts"

const test = testWith(Layer.merge(layerWarehouse, layerClients))

const hash = FieldRules.hash(Redacted.make("a key of the installation, 32 characters"))

/** Texts of at least eight characters in the record, at any depth, but for those of kept members. Numbers and days occur by chance. */
const textsOf = (value: unknown, isKept: (name: string) => boolean): ReadonlyArray<string> => {
  if (typeof value === "string") return value.length >= 8 && !/^[\d.:TZ-]+$/.test(value) ? [value] : []
  if (typeof value !== "object" || value === null) return []
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, isKept))
  return Object.entries(value).flatMap(([name, member]) => (isKept(name) ? [] : textsOf(member, isKept)))
}

const whole = { sample: null, seed: 1, repair: false }

/** The demo company under rules that change: what is synced, and what of it is in the database. */
const makeCompany = Effect.gen(function* () {
  const source = yield* makeSource("demo")
  yield* Effect.promise(() => source.control("PUT", "/dialect", { extraFields: 11 }))
  const under = Effect.fnUntraced(function* (rules: ReadonlyArray<PatternRule>, paths: ReadonlyArray<string>) {
    const configured = yield* WarehouseCatalogue.addConfigured(serviceV2, [
      { path: "*", area: null, modifiedSince: false, cancel: false, key: null, rules }
    ])
    const catalogue = yield* WarehouseCatalogue.load(configured)
    const { connector } = yield* connect(source, 1, { catalogue, includeCustomFields: true })
    const wanted = [...catalogue.resources.values()].filter(({ path }) => paths.includes(path))
    // A person wants these rules, also where others replaced them.
    const tables = wanted.map((one) => tableOf(one))
    yield* TablePlan.apply(tables, { goesBack: true })
    const companies = [{ name: "north", connector: protect(connector), resources: wanted }]
    const report = yield* flowing(
      sync({ companies, datasets: datasetsDefault, concurrency: 4, batchRecordsMax: 2_500 })
    )
    for (const { outcomes } of report.companies)
      for (const outcome of outcomes) assert.strictEqual(outcome.status, "done", JSON.stringify(outcome.failure))
    const verified = yield* flowing(Verify.run({ datasets: datasetsDefault, concurrency: 4 }, whole, companies))
    assert.deepStrictEqual(
      verified.companies
        .flatMap(({ resources }) => resources)
        .filter(({ status }) => status !== "equal")
        .map(({ resource, findings }) => `${resource} ${JSON.stringify(findings[0])}`),
      []
    )
    return wanted
  })
  /** Values of the source under rules that are in the database, with the table. */
  const leaks = Effect.fnUntraced(function* (resources: ReadonlyArray<Resource>) {
    const texts = yield* databaseTexts
    const all = texts.join("\n")
    const found: Array<string> = []
    let searched = 0
    for (const { path, protection } of resources) {
      const lines = yield* Effect.promise(() => source.lines(`/state?company=1&resource=${path}&include=custom_fields`))
      const isKept = (name: string) => protection?.ruleOf(name) === undefined
      for (const value of new Set(lines.flatMap((line) => textsOf(JSON.parse(line), isKept)))) {
        // A value of customfields, and of every run.
        if (serviceV2.resources.has(value)) continue
        searched += 1
        for (const form of [value, Buffer.from(value).toString("hex"), Buffer.from(value).toString("base64")])
          if (all.includes(form))
            found.push(`${path}: ${form} in ${texts.find((one) => one.includes(form))?.split("\n")[0]}`)
      }
    }
    assert.isAbove(searched, 30)
    return found
  })
  return { source, under, leaks }
})

const excluded = [{ pattern: "*", rule: FieldRules.exclude }]
const hashed = [
  { pattern: "*", rule: hash },
  { pattern: "custom_fields", rule: FieldRules.exclude }
]
const masked = [{ pattern: "*", rule: FieldRules.mask("***", 2) }]

for (const [what, rules, paths] of [
  ["excluded", excluded, ["customers", "employees", "orders", "apbills", "customfields", "contacts", "vendors"]],
  ["hashed", hashed, ["customers", "employees", "orders", "vouchers"]],
  ["masked", masked, ["customers", "employees", "orders"]]
] as const)
  test(`values that are ${what} are in no table, and are equal to those of the source`, function* () {
    const { leaks, under } = yield* makeCompany
    assert.deepStrictEqual((yield* leaks(yield* under(rules, paths))).slice(0, 20), [])
  })

test("a forgotten record has no value in any version, once the source does not have it", function* () {
  const { source, under } = yield* makeCompany
  const put = (name: string) =>
    Effect.promise(() =>
      source.control("POST", "/records", {
        company: 1,
        resource: "customers",
        records: [{ id: 1, name }]
      })
    )
  yield* put("Leopoldine Feuerstein")
  const [customers] = yield* under([], ["customers"])
  yield* put("Someone else")
  yield* under([], ["customers"])
  yield* execute(
    `insert into tributary.quarantine (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at)
     values (1, 'customers', '1', 'odd', 'Leopoldine Feuerstein', 1, 'GET', now(), now())`
  )
  yield* execute(
    `insert into tributary.outbox (company, resource, record_id, record, state, request_id, reason)
     values ('north', 'customers', '1', '{"name":"Leopoldine Feuerstein"}', 'rejected', 5, 'Leopoldine Feuerstein')`
  )
  yield* execute(
    `insert into tributary.push_requests (id, company, resource, operation, idempotency_key, record_count, state, reason) overriding system value
     values (5, 'north', 'customers', 'create', 'a', 1, 'rejected', 'invalid: Leopoldine Feuerstein')`
  )
  const forgetIt = forget(tableOf(customers!), { name: "north", id: 1n }, 1n, { by: "a person", isRead: true })
  const first = yield* forgetIt
  assert.deepInclude(first?.rows, {
    "erp_history.customers__superseded": 1,
    "erp.customers": 0,
    "tributary.quarantine": 1
  })
  assert.isTrue(first?.isCurrentKept)
  assert.notInclude((yield* databaseTexts).join(), "Feuerstein")
  yield* under([], ["customers"])
  yield* Effect.promise(() => source.control("POST", "/remove", { company: 1, resource: "customers", id: 1 }))
  yield* execute("update tributary.checkpoints set full_scan_at = null, cursor = null")
  yield* under([], ["customers"])
  const last = yield* forgetIt
  assert.isFalse(last?.isCurrentKept)
  assert.notInclude((yield* databaseTexts).join(), "Someone else")
  const versions = yield* execute<{ id: string }>("select id::text from erp_history.customers where id = 1")
  assert.isAtLeast(versions.length, 3, "its versions and its number stay")
  assert.isNull(
    yield* forget(tableOf(customers!), { name: "north", id: 1n }, 987_654n, {
      by: "a person",
      isRead: true
    })
  )
})

test("a change of the rules applies to rows, versions and deliveries, and can be taken back", function* () {
  const { leaks, source, under } = yield* makeCompany
  const paths = ["customers", "orders"]
  yield* under([], paths)
  const changed = { id: 1, name: "A former name of the customer", phone: "+49 30 901820" }
  yield* Effect.promise(() =>
    source.control("POST", "/records", { company: 1, resource: "customers", records: [changed] })
  )
  yield* under([], paths)
  yield* execute(
    `insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, body)
     values ('north', 'evt_1', 'customers.updated', 'customers', '1', now(), convert_to('{"data":{"id":1,"name":"A former name of the customer"}}', 'UTF8'))`
  )
  const versions = () =>
    execute<{ count: number; names: number }>(
      `select count(*)::int as count, count(record ->> 'name')::int as names from erp_history.customers`
    )
  const [before] = yield* versions()
  const partly = [
    { pattern: "name", rule: hash },
    { pattern: "phone", rule: FieldRules.mask("***", 2) },
    { pattern: "creditlimit", rule: hash },
    { pattern: "description", rule: FieldRules.exclude }
  ]
  const resources = yield* under(partly, paths)
  assert.deepStrictEqual(yield* leaks(resources), [])
  const all = (yield* databaseTexts).join("\n")
  for (const value of ["A former name", "901820", Buffer.from("A former name").toString("hex")])
    assert.notInclude(all, value)
  const [after] = yield* versions()
  assert.deepStrictEqual(after, before, "each version is kept, with the hash of its name")
  const [joined] = yield* execute<{ equal: boolean }>(
    `select bool_and(h.record ->> 'name' = c.name) as equal from erp_history.customers h
       join erp.customers c using (_company_id, id) where h._valid_to is null`
  )
  assert.isTrue(joined?.equal)
  yield* under(excluded, paths)
  yield* under([], paths)
  const [last] = yield* execute<{ name: string | null }>("select name from erp.customers where id = 1")
  assert.strictEqual(last?.name, "A former name of the customer")
})

test("a rule for a field with an inferred column takes the column away", function* () {
  const { source, under } = yield* makeCompany
  const send = (name: string) =>
    Effect.promise(() =>
      source.control("POST", "/records", {
        company: 1,
        resource: "vendors",
        records: [
          {
            id: 1,
            name,
            iban: `${name} iban`,
            phone: `${name} phone`,
            limit: 4711.5,
            detail: { iban: name }
          }
        ]
      })
    )
  yield* send("Canary one")
  yield* under([], ["vendors"])
  const promotions = yield* ColumnPromotion.candidates([serviceV2.resources.get("vendors")!])
  const requests = promotions.flatMap(({ field, type }) => (type === null ? [] : [{ field, type }]))
  assert.includeMembers(
    requests.map(({ field }) => field),
    ["iban", "phone", "limit", "detail"]
  )
  yield* ColumnPromotion.promote(serviceV2.resources.get("vendors")!, requests, datasetsDefault)
  yield* send("Canary two")
  yield* under([], ["vendors"])
  yield* under(
    [
      { pattern: "iban", rule: FieldRules.exclude },
      { pattern: "phone", rule: FieldRules.mask("***", 2) },
      { pattern: "limit", rule: hash },
      { pattern: "name", rule: hash }
    ],
    ["vendors"]
  )
  const all = (yield* databaseTexts).join("\n")
  for (const value of ["Canary", "4711.5"]) assert.notInclude(all, value)
  const versions = yield* execute<{ phone: string; isEqual: boolean }>(
    `select record ->> 'phone' as phone, record ->> 'limit' = (select _extra ->> 'limit' from erp.vendors where id = 1) as "isEqual"
       from erp_history.vendors where id = 1 order by _version desc limit 2`
  )
  assert.deepStrictEqual(versions, [
    { phone: "***ne", isEqual: true },
    { phone: "***ne", isEqual: true }
  ])
  yield* under([], ["vendors"])
})

test("a rule is refused while another view reads the column, and names the view", function* () {
  const customers = serviceV2.resources.get("customers")!
  const hashedCustomers = protectResource(customers, [{ pattern: "creditlimit", rule: hash }]).resource
  yield* TablePlan.apply([tableOf(customers)])
  yield* execute("create schema bi")
  yield* execute(
    "create view bi.limits as select lim from erp_history.customers, lateral (select record ->> 'creditlimit' as lim) r"
  )
  const refused = yield* Effect.flip(TablePlan.apply([tableOf(hashedCustomers)]))
  assert.include(refused.message, "bi.limits")
  const left = yield* execute<{ name: string }>("select to_regclass('bi.limits')::text as name")
  assert.deepStrictEqual(left, [{ name: "bi.limits" }])
  yield* execute("drop view bi.limits")
  yield* TablePlan.apply([tableOf(hashedCustomers)])
})

test("a rule rewrites a text column in place: a view over it and an index on it stay", function* () {
  const vendors = serviceV2.resources.get("vendors")!
  yield* TablePlan.apply([tableOf(vendors)])
  yield* execute(
    "insert into erp.vendors (_company_id, id, _origin, _observed_at, name) values (1, 1, 'scan', now(), 'Canary')"
  )
  yield* execute("create schema bi")
  yield* execute("create view bi.names as select name from erp.vendors")
  yield* execute("create index of_a_person on erp.vendors (name)")
  yield* TablePlan.apply([tableOf(protectResource(vendors, [{ pattern: "name", rule: hash }]).resource)])
  assert.deepStrictEqual(
    yield* execute("select name, to_regclass('erp.of_a_person') is not null as indexed from bi.names"),
    [{ name: hash.keep("Canary"), indexed: true }]
  )
})

test("rules that others replaced are the older ones: only a person goes back to them", function* () {
  const vendors = serviceV2.resources.get("vendors")!
  const under = (...rules: ReadonlyArray<PatternRule>) => tableOf(protectResource(vendors, rules).resource)
  const name = () => Effect.map(execute<{ name: string }>("select name from erp.vendors"), ([row]) => row?.name)
  const [none, hashing, masking] = [
    under(),
    under({ pattern: "name", rule: hash }),
    under({ pattern: "name", rule: FieldRules.mask("***", 0) })
  ]
  yield* TablePlan.apply([none])
  yield* execute(
    "insert into erp.vendors (_company_id, id, _origin, _observed_at, name) values (1, 1, 'scan', now(), 'Canary')"
  )
  yield* TablePlan.apply([hashing])
  const before = yield* TablePlan.applyUndamaged([none])
  assert.deepStrictEqual(
    before.rules.map(({ isReplaced, resource }) => ({ isReplaced, resource })),
    [{ isReplaced: true, resource: "vendors" }]
  )
  assert.strictEqual(yield* name(), hash.keep("Canary"))
  yield* TablePlan.apply([masking])
  for (const older of [none, hashing]) {
    const refused = yield* Effect.flip(TablePlan.apply([older]))
    assert.include(refused.message, "others have replaced")
  }
  assert.strictEqual(yield* name(), "***")
  yield* TablePlan.apply([hashing], { goesBack: true })
  assert.include((yield* Effect.flip(TablePlan.apply([masking]))).message, "others have replaced")
  yield* TablePlan.apply([hashing])
})

test("a process under older rules does not make a table that is missing", function* () {
  const vendors = serviceV2.resources.get("vendors")!
  const numeric = vendors.fields.find(({ type: { _tag } }) => _tag !== "string")!
  const under = (...rules: ReadonlyArray<PatternRule>) => tableOf(protectResource(vendors, rules).resource)
  const [none, masking] = [under(), under({ pattern: numeric.name, rule: FieldRules.mask("***", 0) })]
  yield* TablePlan.apply([none])
  yield* TablePlan.apply([masking])
  yield* execute("drop table erp.vendors cascade")
  const { rules, statements } = yield* TablePlan.applyUndamaged([none])
  assert.deepStrictEqual(statements, [])
  assert.deepStrictEqual(
    rules.map(({ isReplaced }) => isReplaced),
    [true]
  )
  yield* TablePlan.apply([masking])
  assert.deepStrictEqual(yield* TablePlan.planFor([masking]), [])
})

test("a process under older rules stores no body of a delivery, and none while rules are applied", function* () {
  const vendors = serviceV2.resources.get("vendors")!
  yield* TablePlan.apply([tableOf(vendors)])
  const { revision } = yield* TablePlan.plan([tableOf(vendors)])
  const inbox = yield* InboxWriter.make({ rules: () => revision })
  const store = (id: string) =>
    Effect.callback<InboxWriter.Outcome>((resume) => {
      const event = {
        company: "north",
        eventId: id,
        eventType: "vendors.updated",
        resource: "vendors",
        recordId: "1",
        stamp: null,
        occurredAt: null,
        sentAt: 0,
        body: Buffer.from(`{"data":{"id":1,"name":"Canary ${id}"}}`)
      }
      inbox.put(event, (outcome) => resume(Effect.succeed(outcome)))
    })
  const body = (id: string) =>
    Effect.map(
      execute<{ body: string }>(
        `select convert_from(body, 'UTF8') as body from tributary.inbox where event_id = '${id}'`
      ),
      ([row]) => row?.body
    )
  assert.strictEqual(yield* flowing(store("before")), "stored")
  assert.include(yield* body("before"), "Canary")
  yield* transaction(
    Effect.gen(function* () {
      yield* execute("select pg_advisory_xact_lock(7261003)")
      assert.strictEqual(yield* flowing(store("meanwhile")), "stored")
    })
  )
  assert.strictEqual(yield* body("meanwhile"), "{}")
  yield* TablePlan.apply([tableOf(protectResource(vendors, [{ pattern: "name", rule: hash }]).resource)])
  assert.strictEqual(yield* flowing(store("after")), "stored")
  assert.strictEqual(yield* body("after"), "{}")
  assert.notInclude((yield* databaseTexts).join("\n"), "Canary")
})

test("a run under other rules writes nothing after the rules of another process", function* () {
  const source = yield* makeSource("demo")
  const { connector } = yield* connect(source, 1, { catalogue: serviceV2 })
  const employees = serviceV2.resources.get("employees")!
  const hashedEmployees = protectResource(employees, [{ pattern: "name", rule: hash }]).resource
  const runtime = yield* Effect.context<SqlClient.SqlClient>()
  // The other process applies its rules while this one has read a page and not written it.
  const page: typeof connector.page = (request) =>
    Effect.tap(connector.page(request), () =>
      TablePlan.apply([tableOf(hashedEmployees, datasetsDefault)]).pipe(Effect.provideContext(runtime), Effect.orDie)
    )
  const companies = [{ name: "north", connector: { ...connector, page }, resources: [employees] }]
  const report = yield* flowing(sync({ companies, datasets: datasetsDefault, concurrency: 1, batchRecordsMax: 2_500 }))
  assert.strictEqual(report.companies[0]?.outcomes[0]?.failure?.kind, "FenceLost")
  const [row] = yield* execute<{ count: number }>("select count(*)::int as count from erp.employees")
  assert.strictEqual(row?.count, 0)
  const stale = {
    table: tableOf(employees, datasetsDefault),
    connector,
    companyId: 1n,
    lane: "records"
  } as const
  assert.strictEqual((yield* Effect.flip(ResourceLock.acquire(stale)))._tag, "RulesChanged")
})

test("a new company tells nothing about the rules for the tables of another one", function* () {
  const [vendors, users] = ["vendors", "users"].map((path) => serviceV2.resources.get(path)!)
  const company = (resource: Resource) =>
    ({ tables: Effect.succeed(new Map([[resource.path, tableOf(resource)]])) }) as unknown as Company
  const tables = yield* Tables.make
  yield* tables.create([company(vendors!)])
  const before = tables.rules()
  yield* TablePlan.apply([tableOf(protectResource(vendors!, [{ pattern: "name", rule: hash }]).resource)])
  yield* tables.prepare(company(users!))
  assert.deepStrictEqual([before, tables.rules()], [0n, 0n])
})

test("a page that lands while rules are applied follows them, and a run that begins meanwhile writes nothing", function* () {
  const source = yield* makeSource("empty")
  const { connector } = yield* connect(source, 1)
  yield* Effect.promise(() =>
    source.control("POST", "/records", { company: 1, resource: "vendors", records: [{ id: 2, name: "Canary" }] })
  )
  const vendors = serviceV2.resources.get("vendors")!
  const under = (rule: PatternRule["rule"]) => tableOf(protectResource(vendors, [{ pattern: "name", rule }]).resource)
  yield* TablePlan.apply([tableOf(vendors)])
  const locksAwaited = (wanted: number) =>
    settled(
      "sessions wait",
      execute<{ n: number }>(
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
      ),
      ([row]) => row!.n >= wanted
    )
  const names = Effect.map(execute<{ name: string }>("select name from erp.vendors order by id"), (rows) =>
    rows.map(({ name }) => name)
  )

  const context = yield* Effect.context<SqlClient.SqlClient>()
  const hashing = yield* ResourceLock.acquire({ table: tableOf(vendors), connector, companyId: 1n, lane: "live" }).pipe(
    Effect.flatMap(({ run, transaction: landing }) =>
      run(
        "insert into",
        "insert into erp.vendors (_company_id, id, _origin, _observed_at, name) values (1, 1, 'scan', now(), 'Canary')"
      ).pipe(
        Effect.andThen(Effect.forkDetach(TablePlan.apply([under(hash)]))),
        Effect.tap(locksAwaited(1)),
        Effect.provideContext(context),
        landing
      )
    ),
    Effect.scoped
  )
  yield* flowing(Fiber.join(hashing))
  assert.deepStrictEqual(yield* names, [hash.keep("Canary")])

  const holder = yield* (yield* Database).connect
  yield* Effect.promise(() => holder.query("begin; select from erp.vendors for update"))
  const masking = yield* Effect.forkChild(TablePlan.apply([under(FieldRules.mask("***", 0))]))
  yield* locksAwaited(1)
  const late = { connector: protect(connector), companyId: 1n, table: under(hash) }
  const second = yield* Effect.forkChild(syncResource(late))
  // Its checkpoint does not exist yet: the transaction of the rules cannot see it.
  const third = yield* Effect.forkChild(syncResource({ ...late, companyId: 2n }))
  yield* locksAwaited(3)
  yield* Effect.promise(() => holder.query("commit"))
  yield* flowing(Fiber.join(masking))
  for (const run of [second, third])
    assert.include(["FenceLost", "RulesChanged"], (yield* flowing(Fiber.join(run))).failure?.kind)
  assert.deepStrictEqual(yield* names, ["***"])
})

test("records that were pushed before, or are to be pushed, follow a new rule", function* () {
  const vendors = serviceV2.resources.get("vendors")!
  yield* TablePlan.apply([tableOf(vendors, datasetsDefault)])
  const record = '{"vendorcode":"V1","name":"Canary","phone":"Canary","custom_fields":{"x":{"iban":"Canary"}}}'
  yield* execute(
    `insert into tributary.outbox (company, resource, externalid, record, state, outcome, resolved_at, validated, reason, problems, differences)
     select 'north', 'vendors', state, '${record}', state, case state when 'done' then 'created' end, now(), true, 'has Canary',
            '[{"field":"name","message":"is Canary"}]', '[{"field":"name","given":"Canary","current":"x"},{"field":"vendorcode","given":"a","current":"b"}]'
       from unnest(array['done', 'rejected', 'pending', 'in_flight']) state`
  )
  yield* execute(
    `insert into tributary.push_requests (company, resource, operation, idempotency_key, record_count, reason)
     values ('north', 'vendors', 'create', 'a', 1, 'invalid: Canary')`
  )
  const rules = [
    { pattern: "name", rule: hash },
    { pattern: "phone", rule: FieldRules.exclude },
    { pattern: "iban", rule: FieldRules.mask("***", 0) }
  ]
  yield* TablePlan.apply([tableOf(protectResource(vendors, rules).resource, datasetsDefault)])
  const rows = yield* execute<{ state: string; validated: boolean; record: object; differences: unknown }>(
    "select state, validated, record, differences from tributary.outbox order by id"
  )
  const kept = { vendorcode: "V1", name: hash.keep("Canary"), phone: null, custom_fields: { x: { iban: "***" } } }
  const differences = [{ field: "vendorcode", given: "a", current: "b" }]
  const validated = { done: true, rejected: true, pending: false }
  assert.deepStrictEqual(
    rows.slice(0, 3),
    Object.entries(validated).map(([state, isValid]) => ({ state, validated: isValid, record: kept, differences }))
  )
  // The request of a record that is being sent may be sent again. Afterwards the record is validated again.
  assert.deepStrictEqual(
    rows.slice(3).map((row) => [row.state, row.validated, row.record]),
    [["in_flight", false, JSON.parse(record)]]
  )
  const texts = yield* execute<{ text: string }>(
    `select to_jsonb(o)::text as text from tributary.outbox o where state <> 'in_flight' union all select to_jsonb(r)::text from tributary.push_requests r`
  )
  assert.notInclude(texts.map(({ text }) => text).join(), "Canary")
})

test("records in quarantine that a rule makes equal stay as one", function* () {
  const vendors = serviceV2.resources.get("vendors")!
  yield* TablePlan.apply([tableOf(vendors, datasetsDefault)])
  yield* execute(
    `insert into tributary.quarantine (company_id, resource, reason, bytes, run_id, source, first_seen_at, last_seen_at)
     select 1, 'vendors', 'is missing', json_build_object('name', n)::text, 1, '', now(), now() from generate_series(1, 1500) n
      union all select 1, 'vendors', 'is missing', '{}', 1, '', now(), now()`
  )
  yield* TablePlan.apply([tableOf(protectResource(vendors, excluded).resource, datasetsDefault)])
  const rows = yield* execute<{ bytes: string }>("select bytes from tributary.quarantine where resolved_at is null")
  assert.deepStrictEqual(rows, [{ bytes: "{}" }])
})

test("a rule that stays is not applied again when another one changes", function* () {
  const { source, under } = yield* makeCompany
  const send = (name: string) =>
    Effect.promise(() =>
      source.control("POST", "/records", {
        company: 1,
        resource: "vendors",
        records: [
          { id: 1, name, iban: "DE02 1203", vendorcode: "V1" },
          { id: 2, name: { iban: "DE02 1203" } }
        ]
      })
    )
  const kept = () =>
    execute<{ iban: string }>(
      `select record ->> 'iban' as iban from erp_history.vendors where id = 1
        union select bytes::json -> 'name' ->> 'iban' from tributary.quarantine where record_id = '2'`
    )
  const hashedIban = { pattern: "iban", rule: hash }
  for (const rules of [[], [{ pattern: "vendorcode", rule: hash }], []]) {
    yield* send(`named under ${rules.length} more`)
    yield* under([hashedIban, ...rules], ["vendors"]).pipe(Effect.exit)
    assert.deepStrictEqual(yield* kept(), [{ iban: hash.keep("DE02 1203") ?? "" }])
  }
})

test("texts that come back from a backup follow the rules again, and a truncated table is compared once", function* () {
  const customers = serviceV2.resources.get("customers")!
  const table = tableOf(
    protectResource(customers, [
      { pattern: "name", rule: hash },
      { pattern: "salesman", rule: FieldRules.mask("***", 2) }
    ]).resource
  )
  const confirmed = () =>
    execute<{ confirmed: boolean }>(
      "select tables = tributary.table_identity('erp.customers', 'erp_history.customers__superseded') as confirmed from tributary.privacy_rules"
    )
  yield* TablePlan.apply([table])
  yield* TablePlan.apply([table])
  assert.deepStrictEqual(yield* confirmed(), [{ confirmed: true }])
  yield* execute("truncate erp.customers")
  yield* execute(
    `insert into erp.customers (_company_id, id, _origin, _observed_at, name, salesman) values
       (1, 1, 'scan', now(), 'Canary', '901820'), (1, 2, 'scan', now(), '${hash.keep("Kept")}', '***20')`
  )
  assert.lengthOf((yield* TablePlan.plan([table])).rules, 1)
  yield* TablePlan.apply([table])
  assert.deepStrictEqual(yield* execute("select name, salesman from erp.customers order by id"), [
    { name: hash.keep("Canary"), salesman: "***20" },
    { name: hash.keep("Kept"), salesman: "***20" }
  ])
  assert.deepStrictEqual(yield* confirmed(), [{ confirmed: true }])
})

test("columns that come back from a backup follow the rules again", function* () {
  const customers = serviceV2.resources.get("customers")!
  const rules = [
    { pattern: "creditlimit", rule: hash },
    { pattern: "name", rule: FieldRules.exclude }
  ]
  const table = tableOf(protectResource(customers, rules).resource, datasetsDefault)
  yield* TablePlan.apply([table])
  yield* execute("drop view erp_asof.customers, erp_history.customers")
  yield* execute(
    "alter table erp.customers drop column creditlimit, add column creditlimit numeric(20, 4), add column name text"
  )
  yield* execute(
    "insert into erp.customers (_company_id, id, _origin, _observed_at, creditlimit, name) values (1, 1, 'scan', now(), 4711, 'Canary')"
  )
  yield* TablePlan.apply([table])
  const rows = yield* execute(
    "select to_jsonb(c) ->> 'creditlimit' as limit, to_jsonb(c) ? 'name' as named from erp.customers c"
  )
  assert.deepStrictEqual(rows, [{ limit: hash.keep("4711"), named: false }])
})
