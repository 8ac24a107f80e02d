/**
 * The steps of `tributary demo`: sync, change, sync again, webhook, comparison.
 *
 * Promise: nothing is simulated. A real Postgres and the real reference server run, the real pipeline syncs over HTTP,
 * and a signed event arrives over HTTPS. Every value of the warehouse is compared with the server's own state.
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Configuration } from "../configuration/Configuration.ts"
import type { DashboardConfiguration } from "../configuration/Listeners.ts"
import * as Statement from "../postgres/Statement.ts"
import { identifier } from "../warehouse/Identifier.ts"
import { datasetsDefault, tableOf } from "../warehouse/Table.ts"
import type { SyncReport } from "../sync/Sync.ts"
import { compare } from "../verify/Compare.ts"
import * as DemoDelivery from "./DemoDelivery.ts"
import * as DemoServe from "./DemoServe.ts"
import * as DemoWebhook from "./DemoWebhook.ts"
import { codeOf, CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import { read as runQuery } from "./query.ts"
import type { Reference } from "../connector/Demo.ts"
import type { QueryResult } from "../warehouse/ReaderQuery.ts"
import { companyOf, Source } from "./Source.ts"
import { readResources } from "./status/Resources.ts"
import * as Sync from "./sync.ts"
import * as Targets from "./Targets.ts"
import * as Warehouse from "./Warehouse.ts"

export type Say = (line: string) => Effect.Effect<void>

interface StoryOptions<E> {
  /** The reference server, which starts beside Postgres. */
  readonly reference: Effect.Effect<Reference, E>
  readonly settings: Configuration
  readonly say: Say
  readonly progress: Layer.Layer<never>
}

interface ResourceResult {
  readonly resource: string
  readonly rows: number
  readonly cursor: string | null
  readonly durationMs: number
}

export interface StoryReport {
  readonly records: number
  /** The company whose cursors are shown. */
  readonly company: string
  readonly webhook: DemoWebhook.TransferResult
  /** The same change, as an endpoint received it from the warehouse. */
  readonly delivery: DemoDelivery.ReceivedChange
  readonly resources: ReadonlyArray<ResourceResult>
  readonly queries: ReadonlyArray<{ readonly title: string; readonly sql: string; readonly result: QueryResult }>
}

export const dropStatement = Statement.make({
  name: "drop the demo's datasets",
  text: `drop schema if exists ${Object.values(datasetsDefault).map(identifier).join(", ")} cascade`
})
export const truncateStatement = Statement.make({
  name: "empty the demo's control plane",
  text: `truncate tributary.runs, tributary.checkpoints, tributary.quarantine,
           tributary.inbox, tributary.webhook_secrets, tributary.subscriptions, tributary.processes,
           tributary.delivery_gaps, tributary.companies, tributary.tasks, tributary.row_counts,
           tributary.budget_usage, tributary.activity, tributary.activity_watermarks, tributary.change_batches, tributary.change_endpoints restart identity cascade`
})

/** Empties the demo's warehouse: its source was the reference server of an earlier run. */
const emptyWarehouse = Effect.andThen(Statement.run(dropStatement), Statement.run(truncateStatement))

/** Starts the reference server with the data of the demo. */
export const startReference = Effect.flatMap(Source, (source) =>
  source.reference({ port: 0, controlPort: 0, data: "demo", rows: undefined, seed: undefined })
)

/** Connects the companies of the reference server to an empty warehouse. */
const makeWorld = Effect.fnUntraced(function* <E>({ reference: starting, settings, say }: StoryOptions<E>) {
  const source = yield* Source
  const demo = yield* source.demo
  const reference = yield* starting
  yield* say(`The reference server answers the ERP's API at ${reference.baseUrl}`)
  yield* emptyWarehouse
  const companies = yield* demo.companies(reference)
  const { installation } = settings
  const configured = companies.map(({ name, token }) =>
    companyOf({ name, installation, url: reference.baseUrl, token })
  )
  const own = { ...settings, companies: configured, datasets: datasetsDefault }
  const sources = yield* Targets.connect(own, { companies: [] })
  return { demo, reference, companies, settings: own, sources, say } satisfies DemoWebhook.DemoWorld
})

const syncAll = Effect.fnUntraced(function* (
  { settings, sources, say }: DemoWebhook.DemoWorld,
  progress: Layer.Layer<never>
) {
  const report = yield* Sync.run(settings, {}, sources).pipe(Effect.provide(progress))
  const code = codeOf(report)
  if (code !== exitCode.ok) {
    yield* Sync.noteProblems(report)
    return yield* new CommandFailed({ code, message: "the demo's own sync did not succeed; please report it" })
  }
  for (const line of Sync.summary(report)) yield* say(`   ${line}`)
  return report
})

const differencesShownMax = 20

/** Compares every row and value in both directions; returns the number of records. */
const compareAll = Effect.fnUntraced(function* ({ demo, reference, companies, say }: DemoWebhook.DemoWorld) {
  const resources = [...(yield* Source).catalogue.resources.values()]
  const pairs = companies.flatMap((company) => resources.map((resource) => ({ ...company, resource })))
  const compared = yield* Effect.forEach(pairs, ({ companyId, name, resource }) =>
    Effect.gen(function* () {
      const state = yield* demo.state(reference, companyId, resource.path)
      const { source, differences } = yield* compare(tableOf(resource), companyId, state)
      return {
        records: source,
        differences: differences.map(
          ({ id, kind, fields }) =>
            `${name} ${resource.path} ${id}: ${kind}${fields.length === 0 ? "" : ` in ${fields.join(", ")}`}`
        )
      }
    })
  )
  const records = compared.reduce((sum, one) => sum + one.records, 0)
  const differences = compared.flatMap((one) => one.differences)
  if (differences.length > 0) {
    for (const line of differences.slice(0, differencesShownMax)) yield* Output.note(`   ${line}`)
    return yield* new CommandFailed({
      code: exitCode.incomplete,
      message: `the warehouse differs from the source in ${Output.count(differences.length)} of ${Output.plural(records, "record")}; please report it`
    })
  }
  yield* say(
    `   yes: ${Output.count(records)} records in ${compared.length} tables of ${companies.length} companies are equal`
  )
  return records
})

/** Brings one change from the source to the warehouse, and from there to another program. */
const bringChange = Effect.fnUntraced(function* (world: DemoWebhook.DemoWorld, certificate: DemoWebhook.Certificate) {
  const endpoint = yield* DemoDelivery.begin()
  const transfer = yield* DemoWebhook.transferByWebhook(world, certificate)
  const delivery = yield* endpoint.received
  const { resource, id, op, changed, position } = delivery
  yield* world.say(
    `   sent on to another program at ${endpoint.url}, signed: ${resource} ${id}, ${op} of ${changed.join(", ")}`
  )
  yield* world.say(`   its position in the change feed is ${position}`)
  return { ...transfer, delivery }
}, Effect.scoped)

/** Rows, cursor and time of each resource, over all companies and syncs. */
const resourceResults = Effect.fnUntraced(function* (syncs: ReadonlyArray<SyncReport>) {
  const statuses = yield* readResources(datasetsDefault)
  const outcomes = syncs.flatMap(({ companies }) => companies.flatMap((company) => company.outcomes))
  const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, one) => total + one, 0)
  return [...(yield* Source).catalogue.resources.keys()].map((resource): ResourceResult => {
    const own = statuses.filter((status) => status.resource === resource)
    return {
      resource,
      rows: sum(own.map(({ rows }) => rows)),
      cursor: own[0]?.cursor ?? null,
      durationMs: sum(outcomes.flatMap((one) => (one.resource === resource ? [one.durationMs] : [])))
    }
  })
})

/** Serves until the program ends, with changes at the source. */
const serve = Effect.fnUntraced(function* (
  world: DemoWebhook.DemoWorld,
  page: DashboardConfiguration,
  port: number,
  certificate: DemoWebhook.Certificate,
  json: boolean
) {
  const { settings } = world
  const webhooks = { ...settings.webhooks, host: "127.0.0.1", port, tls: certificate.files, publicUrl: null }
  const url = yield* DemoServe.begin({ ...world, settings: { ...settings, webhooks } }, page)
  yield* world.say(`
7. Serving: schedules, webhooks, and the dashboard

   the dashboard is at ${url}
   a record changes at the source every few seconds; Ctrl-C ends it`)
  if (json) yield* Output.print(Output.toJson({ ready: true, dashboard: url }))
  return yield* Effect.never
})

/** Runs the steps; `print` shows the report. With a dashboard, it then serves until it is stopped. */
export const tellStory = Effect.fn("demo.tellStory")(function* <E, R, F>(
  options: StoryOptions<F>,
  page: DashboardConfiguration | null,
  json: boolean,
  print: (report: StoryReport) => Effect.Effect<void, E, R>
) {
  const { say, progress } = options
  const world = yield* makeWorld(options)
  const { companies, demo, sources } = world

  yield* say("\n1. First sync: every record of every resource\n")
  const first = yield* syncAll(world, progress)

  yield* say("\n2. Something changes at the source, through its API\n")
  for (const line of yield* DemoWebhook.describe(demo.change(sources[0]!.connector))) yield* say(`   ${line}`)

  yield* say("\n3. Incremental sync: only changes are requested\n")
  const second = yield* syncAll(world, progress)

  yield* say("\n4. A webhook delivers a change, without polling, and another program gets it\n")
  const certificate = yield* DemoWebhook.throwAwayCertificate(Warehouse.demoDirectory(options.settings))
  const { webhook, port, delivery } = yield* bringChange(world, certificate)

  yield* say("\n5. Is the warehouse equal to the source? Every row and every value, both ways\n")
  const records = yield* compareAll(world)
  const resources = yield* resourceResults([first, second])
  const queries = yield* Effect.forEach(demo.queries, ({ title, sql }) =>
    Effect.map(runQuery(sql), (result) => ({ title, sql, result }))
  )
  yield* print({ records, company: companies[0]!.name, webhook, delivery, resources, queries })
  if (page !== null) return yield* serve(world, page, port, certificate, json)
})
