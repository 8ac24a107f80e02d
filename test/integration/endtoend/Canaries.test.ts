/**
 * Privacy rules for every field of every resource, and values under them in every place that a value can reach: records,
 * versions, rejected records, deliveries, pushes, answers and messages of the source. None of them is in anything that the
 * program keeps, prints or shows. `test/cli/Canaries.long.test.ts` searches what only commands and processes have.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Layer, Logger, References, Tracer } from "effect"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import * as Explain from "../../../src/cli/explain.ts"
import * as Output from "../../../src/cli/Output.ts"
import * as Verify from "../../../src/cli/verify.ts"
import { type Event, isEvent } from "../../../src/connector/Delivery.ts"
import { protect, protectDeliveries } from "../../../src/connector/ProtectedConnector.ts"
import * as Export from "../../../src/export/Export.ts"
import { push } from "../../../src/outbox/OutboxWorker.ts"
import { forget } from "../../../src/retention/Forget.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { sync, type SyncCompany } from "../../../src/sync/Sync.ts"
import { explain, findHistory } from "../../../src/verify/Explain.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as WarehouseCatalogue from "../../../src/warehouse/WarehouseCatalogue.ts"
import { application, origin } from "../../support/application.ts"
import {
  canary,
  canaryEvent,
  canaryRecord,
  databaseTexts,
  leaksOf,
  paths as allPaths,
  privacyKey,
  refusal,
  rulesOfAll
} from "../../support/canaries.ts"
import { loadText } from "../../support/configuration.ts"
import { shownCompany } from "../../support/pages.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { settingsDefault } from "../../support/pushSettings.ts"
import { connect, layerClients, makeSource } from "../../support/source.ts"
import { testWith } from "../../support/suite.ts"
import { flowing } from "../../support/until.ts"

const test = testWith(Layer.merge(layerWarehouse, layerClients))

/** Some resources of each kind of rule, with and without lists. The long test has all of them. */
const named = ["customers", "orders", "items", "vendors", "invoices", "payments", "employees"]
const paths = allPaths.filter((path, at) => named.includes(path) || at % 9 === 0)

/** What an effect logs, and its spans with everything that a collector gets of them. */
const observed = () => {
  const texts: Array<string> = []
  const spans: Array<Tracer.Span> = []
  const logger = Logger.make(({ cause, fiber, message }) => {
    const annotations = fiber.getRef(References.CurrentLogAnnotations)
    texts.push(Output.toJson({ message, annotations }), Cause.pretty(cause))
  })
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      const event = span.event.bind(span)
      span.event = (name, time, attributes) => {
        texts.push(name, Output.toJson(attributes ?? {}))
        event(name, time, attributes)
      }
      spans.push(span)
      return span
    }
  })
  return {
    observe: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      effect.pipe(
        Effect.withTracer(tracer),
        Effect.provide(Logger.layer([logger])),
        Effect.provideService(References.MinimumLogLevel, "All")
      ),
    texts: () => [
      ...texts,
      ...spans.map(
        ({ attributes, name, status }) =>
          `${name} ${Output.toJson(Object.fromEntries(attributes))} ` +
          (status._tag === "Ended" && Exit.isFailure(status.exit) ? Cause.pretty(status.exit.cause) : "")
      )
    ]
  }
}

/** The files of an export in each format that is text, with all versions. */
const exportedTexts = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-canaries-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  for (const format of ["csv", "ndjson"] as const)
    yield* Export.run({
      folder: join(folder, format),
      format,
      datasets: datasetsDefault,
      tables: paths,
      history: true,
      since: null,
      companyId: null
    })
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"))
})

const explainedTexts = Effect.forEach(
  paths,
  Effect.fnUntraced(function* (path) {
    const history = (yield* findHistory(datasetsDefault, path))!
    const all = yield* Effect.forEach(["1", "2"], (id) => explain(datasetsDefault, history, id, null))
    return all.flat().flatMap((one) => [Output.toJson(one), ...Explain.lines(one)])
  })
).pipe(Effect.map((texts) => texts.flat()))

const pagesMax = 4

/** The pages of the dashboard, from link to link: of pages of one form the first ones. */
const pageTexts = Effect.gen(function* () {
  const { answer, cookie } = yield* application([shownCompany("north", 1n)])
  const texts: Array<string> = []
  const waiting = ["/", ...paths.map((path) => `/records?company=north&resource=${path}&id=1`)]
  const opened = new Set<string>()
  const counts = new Map<string, number>()
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const form = path.replaceAll(/=[^&]*/g, "=").replaceAll(/\/(?:\d+|north\/\w+)/g, "/…")
    const count = counts.get(form) ?? 0
    if (opened.has(path) || count >= pagesMax) continue
    opened.add(path)
    counts.set(form, count + 1)
    const text = yield* Effect.promise(async () =>
      (await answer(new Request(`${origin}${path}`, { headers: { cookie } }))).text()
    )
    texts.push(`${path}\n${text}`)
    for (const [, to] of text.matchAll(/href="(\/[^"]*)"/g))
      if (!to!.startsWith("/assets/")) waiting.push(to!.replaceAll("&amp;", "&"))
  }
  assert.isAbove(texts.length, 40)
  return texts
})

/** A source with canaries, the resources under rules, and how they are read. */
const makeStand = Effect.gen(function* () {
  const source = yield* makeSource("empty")
  const control = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => source.control(method, path, body))
  const settings = yield* loadText(rulesOfAll, { TRIBUTARY_PRIVACY_KEY: privacyKey })
  const catalogue = yield* WarehouseCatalogue.addConfigured(serviceV2, settings.resources)
  const resources = [...catalogue.resources.values()].filter(({ path }) => paths.includes(path))
  return {
    control,
    resources,
    protectionOf: WarehouseCatalogue.protectionOf(catalogue, settings.resources),
    /** The company as it is read under the rules of these resources, or without any. */
    companyOf: Effect.fnUntraced(function* (catalogueOfCompany: typeof serviceV2, own: typeof resources) {
      const client = yield* connect(source, 1, {
        catalogue: catalogueOfCompany,
        includeCustomFields: true,
        retry: { attemptsMax: 1, backoffBase: Duration.millis(1), backoffMax: Duration.millis(1) }
      })
      return { name: "north", connector: protect(client.connector), resources: own }
    }),
    catalogue,
    /** Puts new versions with new canaries into the source. */
    plant: Effect.forEach(
      resources,
      (resource) =>
        control("POST", "/records", {
          company: 1,
          resource: resource.path,
          records: [canaryRecord(resource, 1), canaryRecord(resource, 2), canaryRecord(resource, 3, true)]
        }),
      { concurrency: 8, discard: true }
    )
  }
})

const read = (company: SyncCompany) =>
  flowing(sync({ companies: [company], datasets: datasetsDefault, concurrency: 4, batchRecordsMax: 2_500 }))

const literalOf = (value: unknown) =>
  value === null ? "null" : `'${(typeof value === "string" ? value : JSON.stringify(value)).replaceAll("'", "''")}'`

const storeEvent = (event: Event, body: Uint8Array) =>
  execute(
    `insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, body)
     values ('north', ${literalOf(event.id)}, ${literalOf(event.type)}, ${literalOf(event.resource)}, '1', now(), '\\x${Buffer.from(body).toString("hex")}')`
  )

test("no value under a rule is in anything that is kept, printed or shown", function* () {
  const { catalogue, companyOf, control, plant, protectionOf, resources } = yield* makeStand
  const company = yield* companyOf(catalogue, resources)
  const { connector } = company
  const { observe, texts } = observed()
  const printed: Array<string> = []
  const print = (value: unknown, lines: ReadonlyArray<string> = []) => printed.push(Output.toJson(value), ...lines)

  const readAgain = observe(read(company)).pipe(Effect.tap((report) => Effect.sync(() => print(report))))
  const verify = observe(
    flowing(
      Verify.run({ datasets: datasetsDefault, concurrency: 4 }, { sample: null, seed: 1, repair: false }, [company])
    )
  ).pipe(Effect.tap((report) => Effect.sync(() => print(report, Verify.lines(report)))))

  yield* plant
  const [first] = (yield* readAgain).companies
  assert.deepStrictEqual(
    first!.outcomes.flatMap(({ failure, resource }) => (failure === null ? [] : [[resource, failure.message]])),
    []
  )
  yield* plant
  yield* readAgain
  const [counts] = yield* execute<{ rejected: number; versions: number }>(
    `select (select count(*)::int from tributary.quarantine) as rejected,
            (select count(*)::int from erp_history.customers) as versions`
  )
  assert.isAbove(counts!.rejected, 10)
  assert.isAbove(counts!.versions, 2)

  // A comparison that finds differences.
  for (const { path } of resources.slice(0, 12)) {
    yield* execute(`update erp.${path} set _extra = '{"unstated":"changed"}' where id = 1`)
    yield* execute(`delete from erp.${path} where id = 2`)
  }
  const verified = yield* verify
  assert.isFalse(verified.equal)

  // Deliveries, also about resources that the catalogue does not know.
  const reader = protectDeliveries(deliveryReader, protectionOf)
  for (const [at, type] of [...paths.map((path) => `${path}.updated`), "gadgets.updated", "announcement"].entries()) {
    const resource = resources[at]
    const data = resource === undefined ? { id: 1, name: canary(), deep: [{ x: canary() }] } : canaryRecord(resource, 1)
    const body = Buffer.from(canaryEvent(`evt_${at}`, type, data))
    const event = reader.read(body)
    assert.isTrue(isEvent(event))
    if (!isEvent(event)) continue
    yield* storeEvent(event, reader.kept!(event, body))
  }

  // Pushes that are refused before they are sent, that the source refuses, and that it answers with the record.
  const pushed = resources.filter(
    ({ operations, protection }) => operations.includes("U") && protection!.sent.field.has("externalid")
  )
  for (const isRefused of [true, false]) {
    if (isRefused)
      yield* control("POST", "/faults", {
        rules: [{ kind: "status", status: 422, method: "PATCH", body: refusal("invalid") }],
        seed: 1
      })
    for (const resource of pushed.slice(0, 6)) {
      const records = [{ id: 1, externalid: `pushed ${isRefused}` }, canaryRecord(resource, 1)]
      yield* execute(
        `insert into tributary.outbox (company, resource, operation, record)
         select 'north', '${resource.path}', 'update', r from jsonb_array_elements(${literalOf(records)}) r`
      )
      const result = yield* observe(
        flowing(
          push({
            company: { name: "north", connector, engine: engineDefault, batchRecordsMax: 100 },
            companyId: 1n,
            table: tableOf(resource),
            children: [],
            settings: settingsDefault,
            scope: "outbox"
          })
        )
      )
      print(result)
    }
    yield* control("DELETE", "/faults")
  }
  const outcomes = yield* execute<{ code: string }>(
    "select distinct coalesce(code, outcome) as code from tributary.outbox"
  )
  assert.includeMembers(
    outcomes.map(({ code }) => code),
    ["updated", "invalid"]
  )

  // Runs that fail with an answer that quotes records.
  yield* control("POST", "/faults", {
    seed: 1,
    rules: [
      { path: "/customers", kind: "status", status: 422, body: refusal("invalid") },
      { path: "/orders", kind: "status", status: 500, body: refusal("server_error") },
      { path: "/items", kind: "status", status: 403, body: refusal("forbidden_here") },
      { path: "/vendors", kind: "status", status: 404, body: refusal("not_found") },
      { path: "/invoices", kind: "status", status: 200, body: { odd: canary() } },
      { path: "/payments", kind: "html", body: canary() }
    ]
  })
  const failed = yield* readAgain
  assert.isAtLeast(failed.companies[0]!.outcomes.filter(({ failure }) => failure !== null).length, 6)
  yield* verify
  yield* control("DELETE", "/faults")

  yield* observe(
    forget(tableOf(resources.find(({ path }) => path === "vendors")!), { name: "north", id: 1n }, 1n, {
      by: "a person",
      isRead: true
    })
  ).pipe(Effect.tap((receipt) => Effect.sync(() => print(receipt))))

  /** Everything that the program has kept, printed or shown. A new place is added here. */
  const surfaces: Readonly<Record<string, ReadonlyArray<string>>> = {
    "the database": yield* databaseTexts,
    "the reports of sync, verify, push and forget": printed,
    explain: yield* explainedTexts,
    "the files of an export": yield* exportedTexts,
    "the dashboard": yield* pageTexts,
    "the log and the traces": texts()
  }
  assert.deepStrictEqual(leaksOf(surfaces).slice(0, 20), [])
})

test("no value is in the database any more after a rule for it", function* () {
  const { catalogue, companyOf, plant, resources } = yield* makeStand
  const plain = resources.map(({ path }) => serviceV2.resources.get(path)!)
  const before = yield* companyOf(serviceV2, plain)
  yield* plant
  yield* read(before)
  yield* plant
  yield* read(before)
  for (const [at, resource] of resources.entries()) {
    const body = Buffer.from(canaryEvent(`evt_${at}`, `${resource.path}.updated`, canaryRecord(resource, 1)))
    const event = deliveryReader.read(body)
    if (isEvent(event)) yield* storeEvent(event, body)
    for (const state of ["pending", "done", "rejected"])
      yield* execute(
        `insert into tributary.outbox (company, resource, externalid, record, state, validated, reason, problems, differences)
         values ('north', '${resource.path}', '${state}', ${literalOf(canaryRecord(resource, 1))}, '${state}', true, ${literalOf(canary())},
                 ${literalOf([{ field: "name", message: canary() }])}, ${literalOf([{ field: "name", given: canary(), current: canary() }])})`
      )
  }
  assert.isAbove(leaksOf({ database: yield* databaseTexts }).length, 40)
  const [company] = (yield* read(yield* companyOf(catalogue, resources))).companies
  assert.deepStrictEqual(
    company!.outcomes.flatMap(({ failure }) => failure ?? []),
    []
  )
  assert.deepStrictEqual(leaksOf({ database: yield* databaseTexts }).slice(0, 20), [])
})
