/**
 * The services of `serve`, as the configuration states them. The receiver and the outbox poller also run in the demo;
 * {@link backgroundWork} is that of `serve` alone: task worker, row counts, retention and dashboard.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { Resource } from "../catalogue/Resource.ts"
import type { CompanyConfiguration } from "../configuration/Companies.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import type { DashboardConfiguration } from "../configuration/Listeners.ts"
import type { ConfigurationError } from "../configuration/ConfigurationError.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import { fingerprintOf } from "../budget/PostgresPermitStore.ts"
import type { Dashboard } from "../dashboard/Dashboard.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { type Datasets, type Table, tableOf } from "../warehouse/Table.ts"
import * as Polling from "../postgres/Polling.ts"
import * as OutboxMetrics from "../status/OutboxMetrics.ts"
import * as OutboxPoller from "../outbox/OutboxPoller.ts"
import * as SyncMetrics from "../status/SyncMetrics.ts"
import * as Retention from "../retention/Retention.ts"
import * as CountCompanies from "../tasks/CountCompanies.ts"
import * as CountRows from "../tasks/CountRows.ts"
import * as SampleBudget from "../tasks/SampleBudget.ts"
import * as TaskWorker from "../tasks/TaskWorker.ts"
import type { Company } from "../sync/Company.ts"
import type { SecretsCompany } from "../subscriptions/SecretCache.ts"
import { type BackgroundService, hookUrl, type ServiceOptions } from "../serve/Serve.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { Source } from "./Source.ts"
import * as Targets from "./Targets.ts"
import { Version } from "./Version.ts"
import type { WarehouseError } from "./Warehouse.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** The events that a company subscribes to: its own, else those of all companies, else the source's. */
export const eventsOf = (
  { webhookEvents }: CompanyConfiguration,
  { webhooks }: Configuration,
  { eventsDefault }: DeliveryReader
): ReadonlyArray<string> => webhookEvents ?? webhooks.events ?? eventsDefault

/** The name, token and configured signing secrets of a company. */
export const secretsOf = ({ name, token, webhookSecrets }: CompanyConfiguration): SecretsCompany => ({
  name,
  token,
  configured: webhookSecrets
})

/** How long companies share the tables that were read. A column inferred meanwhile fails the run, which is retried. */
const tablesSharedMs = 500

/** The companies with these names (none: all), connected. Sends no request to the source. */
export const companies = Effect.fnUntraced(function* (settings: Configuration, names: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const source = yield* Source
  const reader = yield* source.deliveries
  const catalogue = yield* catalogueOf(settings)
  const targets = yield* Targets.connect(settings, { companies: names })
  const configured = new Map(settings.companies.map((company) => [company.name, company]))
  const nowMs = yield* MonotonicClock.make
  /** Companies with the same resources have the same tables: one query serves them all. */
  const read = new Map<string, { readonly tables: ReadonlyMap<string, Table>; readonly atMs: number }>()
  const tablesOf = (resources: ReadonlyArray<Resource>) => {
    const key = resources.map(({ path }) => path).join(" ")
    const anew = WarehouseCatalogue.resources(catalogue, resources).pipe(
      Effect.map((whole) => new Map(whole.map((resource) => [resource.path, tableOf(resource, settings.datasets)]))),
      Effect.tap((tables) => Effect.sync(() => read.set(key, { tables, atMs: nowMs() }))),
      Effect.provideService(SqlClient.SqlClient, sql)
    )
    return Effect.suspend((): typeof anew | Effect.Effect<ReadonlyMap<string, Table>> => {
      const last = read.get(key)
      return last !== undefined && nowMs() - last.atMs < tablesSharedMs ? Effect.succeed(last.tables) : anew
    })
  }
  return targets.map(({ name, connector, resources }): Company => ({
    name,
    connector,
    tables: tablesOf(resources),
    engine: settings.engine,
    batchRecordsMax: settings.batchRecordsMax,
    requestsPerMinute: settings.requestsPerMinute,
    events: eventsOf(configured.get(name)!, settings, reader)
  }))
})

/** Whether a retry may help: the warehouse is unreachable. */
const isTransient = (error: ConfigurationError | WarehouseError): boolean =>
  error._tag === "DatabaseError" && error.isRetryable

/** Starts the dashboard. Its modules are loaded only here. */
export const startDashboard = Effect.fnUntraced(function* (at: DashboardConfiguration, datasets: Datasets) {
  const Dashboard = yield* Effect.promise(() => import("../dashboard/Dashboard.ts"))
  return yield* Dashboard.start({ ...at, datasets, version: yield* Version })
})

type Service = ServiceOptions<ConfigurationError | WarehouseError>

/** The work of `serve` beside receiver and outbox poller, and its metrics. */
interface MoreWork {
  readonly work: NonNullable<Service["work"]>
  readonly metrics: NonNullable<Service["metrics"]>
}

/** The work of `serve` beside receiver and outbox poller; `dashboard` is null where it is off. */
export const backgroundWork = Effect.fnUntraced(function* (
  settings: Configuration,
  dashboard: Dashboard | null
): Effect.fn.Return<MoreWork, never, Source> {
  const source = yield* Source
  const models = yield* source.models
  const { datasets, scheduleOf, freshnessOf, concurrency, retention, budgetScope } = settings
  const fingerprints = new Map(
    settings.companies.map(({ name, url, token }) => [name, fingerprintOf(url, token, budgetScope)])
  )
  const shown = (companies: ReadonlyArray<Company>) =>
    companies.map((company) => ({
      ...company,
      fingerprint: fingerprints.get(company.name)!,
      receivesAt: hookUrl(settings.webhooks.publicUrl, company.name)
    }))
  return {
    work: Effect.fnUntraced(function* (companies, processId) {
      const tasks = yield* TaskWorker.make({ processId, scheduleOf, freshnessOf, concurrency, datasets, models })
      const page: ReadonlyArray<BackgroundService> =
        dashboard === null
          ? []
          : [{ what: "the dashboard", run: dashboard.connect(shown(companies)), beforeTables: true }]
      return {
        services: [{ what: "syncing by schedule", run: tasks.run }, ...page],
        singletons: [
          { what: "counting the states of companies", run: CountCompanies.countForever },
          { what: "counting rows", run: CountRows.countRows(datasets) },
          {
            what: "sampling the budgets",
            run: SampleBudget.sampleBudget([...new Set(shown(companies).map(({ fingerprint }) => fingerprint))])
          },
          {
            what: "retention",
            run: Retention.runRetention(
              { ...retention, events: settings.webhooks.eventRetention },
              { dataset: datasets.history, retention: retention.history }
            ),
            beforeTables: true
          }
        ],
        ofCompany: (company) => [
          {
            what: `company ${company.name}: syncing by schedule`,
            run: Effect.scoped(Effect.andThen(tasks.own(company), Effect.never))
          }
        ]
      }
    }),
    metrics: (companies) =>
      SyncMetrics.make(
        shown(companies).map(({ name, fingerprint, connector }) => ({ name, fingerprint, usage: connector.usage }))
      )
  }
})

/** The service for the companies with these names (none: all). */
export const service = Effect.fnUntraced(function* (
  settings: Configuration,
  names: ReadonlyArray<string>,
  {
    warehouse,
    ownership,
    more
  }: Pick<Service, "warehouse" | "ownership"> & {
    readonly more?: MoreWork
  }
): Effect.fn.Return<Service, never, Source> {
  const source = yield* Source
  const { webhooks, monitoring } = settings
  return {
    reader: yield* source.deliveries,
    listen: {
      host: webhooks.host,
      port: webhooks.port,
      tls: webhooks.tls,
      bodyBytesMax: webhooks.bodyBytesMax,
      connectionsPerAddressMax: webhooks.connectionsPerAddressMax,
      monitoring: monitoring.listen,
      metricsToken: monitoring.token
    },
    window: webhooks,
    publicUrl: webhooks.publicUrl,
    checkInterval: webhooks.checkInterval,
    secrets: settings.companies
      .filter(({ name }) => names.length === 0 || names.includes(name))
      .map((company) => secretsOf(company)),
    companies: Effect.provideService(companies(settings, names), Source, source),
    ownership,
    work: Effect.fnUntraced(function* (all, processId) {
      const others = more === undefined ? null : yield* more.work(all, processId)
      const interval = Polling.interval(all.length)
      return {
        services: others?.services ?? [],
        singletons: others?.singletons ?? [],
        ofCompany: (company) => [
          {
            what: `company ${company.name}: pushing the outbox`,
            run: OutboxPoller.poll(company, settings.push, interval)
          },
          ...(others?.ofCompany(company) ?? [])
        ]
      }
    }),
    metrics: (all) =>
      Effect.gen(function* () {
        const pushed = yield* OutboxMetrics.make(all.map(({ name }) => name))
        const figures = more === undefined ? Effect.succeed([]) : yield* more.metrics(all)
        return Effect.map(Effect.all([pushed, figures]), (both) => both.flat())
      }),
    warehouse,
    isTransient
  }
})
