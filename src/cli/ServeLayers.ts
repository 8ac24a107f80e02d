/**
 * The services of `serve`, as the configuration states them. The receiver and the worker also run in the demo;
 * {@link backgroundWork} is that of `serve` alone: deliveries of changes, row counts, retention and dashboard.
 */
import * as Effect from "effect/Effect"
import type { Configuration } from "../configuration/Configuration.ts"
import type { DashboardConfiguration } from "../configuration/Listeners.ts"
import type { ConfigurationError } from "../configuration/ConfigurationError.ts"
import type { Dashboard } from "../dashboard/Dashboard.ts"
import * as AlertMetrics from "../status/AlertMetrics.ts"
import * as EndpointSecrets from "../delivery/EndpointSecrets.ts"
import * as EndpointStore from "../delivery/EndpointStore.ts"
import * as Sender from "../delivery/Sender.ts"
import * as OutboxMetrics from "../status/OutboxMetrics.ts"
import * as EndpointMetrics from "../status/EndpointMetrics.ts"
import * as SyncMetrics from "../status/SyncMetrics.ts"
import * as EvaluateAlerts from "../alerts/Evaluate.ts"
import * as Evaluate from "../invariants/Evaluate.ts"
import { observeForever } from "../processes/Observe.ts"
import * as Retention from "../retention/Retention.ts"
import * as CountCompanies from "../tasks/CountCompanies.ts"
import * as CountRows from "../tasks/CountRows.ts"
import * as EventProofs from "../tasks/EventProofs.ts"
import * as SampleBudget from "../tasks/SampleBudget.ts"
import * as WriteActivity from "../tasks/WriteActivity.ts"
import { type BackgroundService, type CurrentCompanies, hookUrl, type ServiceOptions } from "../serve/Serve.ts"
import * as InvariantMetrics from "../status/InvariantMetrics.ts"
import { protectDeliveries } from "../connector/ProtectedConnector.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import * as Invariants from "./Invariants.ts"
import * as Models from "./Models.ts"
import { Source } from "./Source.ts"
import * as ServedCompanies from "./ServedCompanies.ts"
import { Version } from "./Version.ts"
import type { WarehouseError } from "./Warehouse.ts"
import { searchIndexesOf } from "../warehouse/Indexes.ts"
import { tableOf } from "../warehouse/Table.ts"
import { protectionOf } from "../warehouse/WarehouseCatalogue.ts"

/** Whether a retry may help: the warehouse is unreachable. */
const isTransient = (error: ConfigurationError | WarehouseError): boolean =>
  error._tag === "DatabaseError" && error.isRetryable

/** Starts the dashboard. Its modules are loaded only here. */
export const startDashboard = Effect.fnUntraced(function* (at: DashboardConfiguration, settings: Configuration) {
  const [Dashboard, Assistants] = yield* Effect.promise(() =>
    Promise.all([import("../dashboard/Dashboard.ts"), import("./Assistants.ts")])
  )
  const assistant = yield* Assistants.forDashboard(settings)
  return yield* Dashboard.start({ ...at, datasets: settings.datasets, version: yield* Version, assistant })
})

type Service = ServiceOptions<ConfigurationError | WarehouseError>

/** The work of `serve` beside receiver and worker, and its metrics. */
type MoreWork = Required<Pick<Service, "work" | "metrics">>

/** What a process stores about itself and its companies. */
const observe = Effect.fnUntraced(function* (
  settings: Configuration,
  companies: CurrentCompanies,
  processId: string
): Effect.fn.Return<BackgroundService> {
  const Machine = yield* Effect.promise(() => import("./doctor/Machine.ts"))
  const observed = () =>
    companies().map(({ company, fingerprint, installation }) => ({
      company: company.name,
      installation,
      budget: fingerprint
    }))
  return { what: "storing what it observes", run: observeForever(processId, observed, Machine.diskProblems(settings)) }
})

/** The sending of changes to endpoints, and of messages to alert routes, whose modules are loaded only for a route. */
const send = Effect.fnUntraced(function* (settings: Configuration, processId: string) {
  const { routes } = settings.alerts
  const AlertFeed = routes.length === 0 ? null : yield* Effect.promise(() => import("../alerts/AlertFeed.ts"))
  yield* EndpointStore.apply(settings.changeEndpoints, AlertFeed?.definitionsOf(routes))
  return yield* Sender.run({
    processId,
    keys: EndpointSecrets.keysOf(settings),
    proxies: settings.proxies,
    routes: AlertFeed?.feedsOf(routes) ?? new Map()
  })
})

/** The work of `serve` beside receiver and worker; `dashboard` is null where it is off. */
export const backgroundWork = Effect.fnUntraced(function* (
  settings: Configuration,
  dashboard: Dashboard | null
): Effect.fn.Return<MoreWork, ConfigurationError, Source> {
  const invariants = yield* Invariants.of(settings)
  const { datasets, retention } = settings
  const shown = (companies: CurrentCompanies) =>
    companies().map(({ company, excluded, fingerprint, installation }) => ({
      ...company,
      installation,
      excluded,
      fingerprint,
      receivesAt: hookUrl(settings.webhooks.publicUrl, company.name),
      push: settings.push
    }))
  return {
    work: Effect.fnUntraced(function* (companies, processId) {
      const page: ReadonlyArray<BackgroundService> =
        dashboard === null
          ? []
          : [{ what: "the dashboard", run: dashboard.connect(() => shown(companies)), beforeTables: true }]
      return {
        services: [
          yield* observe(settings, companies, processId),
          {
            what: "sending changes and alerts",
            run: send(settings, processId),
            beforeTables: true
          },
          ...page
        ],
        singletons: [
          {
            what: "evaluating alerts",
            run: EvaluateAlerts.evaluateForever(settings.alerts, () =>
              companies().flatMap(({ company, isPaused }) => (isPaused ? [] : [company.name]))
            )
          },
          { what: "counting the states of companies", run: CountCompanies.countForever },
          { what: "deferring polls of proven resources", run: EventProofs.updateForever(settings.provenPollInterval) },
          {
            what: "evaluating invariants",
            run: Evaluate.evaluateForever({ invariants, current: datasets.current })
          },
          { what: "counting rows", run: CountRows.countRows(datasets) },
          {
            what: "sampling the budgets",
            run: SampleBudget.sampleBudget(() => [...new Set(companies().map(({ fingerprint }) => fingerprint))])
          },
          {
            what: "writing the activity",
            run: WriteActivity.writeForever(() =>
              companies().map(({ company, fingerprint }) => ({ company: company.name, fingerprint }))
            )
          },
          {
            what: "retention",
            run: Retention.runRetention(
              { ...retention, events: settings.webhooks.eventRetention },
              { dataset: datasets.history, retention: retention.history }
            ),
            beforeTables: true
          }
        ]
      }
    }),
    metrics: Effect.fnUntraced(function* (companies) {
      const syncs = yield* SyncMetrics.make(() =>
        companies().map(({ company: { name, connector }, fingerprint, installation }) => ({
          name,
          installation,
          fingerprint,
          usage: connector.usage
        }))
      )
      return Effect.map(Effect.all([syncs, yield* EndpointMetrics.make, yield* InvariantMetrics.make]), (all) =>
        all.flat()
      )
    })
  }
})

/**
 * The service for the companies of the settings with these names (none: all), and for those of the warehouse where
 * `hasStored`.
 */
export const service = Effect.fnUntraced(function* (
  settings: Configuration,
  names: ReadonlyArray<string>,
  {
    warehouse,
    ownership,
    more,
    hasStored
  }: Pick<Service, "warehouse" | "ownership"> & {
    readonly more?: MoreWork
    readonly hasStored: boolean
  }
): Effect.fn.Return<Service, ConfigurationError, Source> {
  const source = yield* Source
  const { concurrency, datasets, freshnessOf, monitoring, push, scheduleOf, webhooks } = settings
  const catalogue = yield* catalogueOf(settings)
  const { models } = yield* Models.of(settings)
  const indexes = searchIndexesOf([...catalogue.resources.values()].map((one) => tableOf(one, datasets)))
  return {
    reader: protectDeliveries(yield* source.deliveries, protectionOf(catalogue, settings.resources)),
    worker: {
      scheduleOf,
      freshnessOf,
      concurrency,
      datasets,
      models,
      indexes,
      push,
      isForEventsOnly: more === undefined
    },
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
    checkInterval: webhooks.checkInterval === "off" ? null : webhooks.checkInterval,
    companies: Effect.provideService(ServedCompanies.make(settings, names, hasStored), Source, source),
    ownership,
    ...(more === undefined ? {} : { work: more.work }),
    metrics: (all) =>
      Effect.gen(function* () {
        const pushed = yield* OutboxMetrics.make(() => all().map(({ company }) => company.name))
        const alerts = yield* AlertMetrics.make
        const figures = more === undefined ? Effect.succeed([]) : yield* more.metrics(all)
        return Effect.map(Effect.all([pushed, alerts, figures]), (all) => all.flat())
      }),
    warehouse,
    isTransient
  }
})
