/**
 * The configuration of one program run: flag, environment, `.env`, `config/tributary.yaml`, default, in this order.
 *
 * Promise: a mistake is reported with file, line and the allowed values, and nothing starts. A token is `Redacted` from
 * the moment it is read.
 */
import { resolve } from "node:path"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { didYouMean } from "../catalogue/Nearest.ts"
import { privacyOf } from "./Privacy.ts"
import type { ConfiguredResource } from "../warehouse/WarehouseCatalogue.ts"
import type { Datasets } from "../warehouse/Table.ts"
import type { EngineSettings } from "../sync/EngineSettings.ts"
import type { ResourceSchedule } from "../tasks/Cron.ts"
import type { AlertConfiguration } from "../alerts/Route.ts"
import { alertsOf } from "./Alerts.ts"
import {
  companiesKeyOf,
  companiesOf,
  type CompanyConfiguration,
  type Exclusion,
  exclusionsOf,
  type UnusableCompany
} from "./Companies.ts"
import { ConfigurationError } from "./ConfigurationError.ts"
import type { FileEndpoint } from "../delivery/Endpoint.ts"
import type { Invariant } from "../invariants/Invariant.ts"
import { environmentVariables } from "./EnvironmentVariables.ts"
import { endpointsOf } from "./ChangeEndpoints.ts"
import { invariantsOf } from "./Invariants.ts"
import { type ConfigurationFlags, type Inputs, readInputs } from "./Inputs.ts"
import {
  type DashboardConfiguration,
  dashboardOf,
  type MonitoringConfiguration,
  monitoringOf,
  type WebhookConfiguration,
  webhooksOf
} from "./Listeners.ts"
import { freshnessOf, schedulesOf } from "./Schedules.ts"
import type { List, Paging, Push, Requests, Retention, Settings, SyncSettings } from "./Settings.ts"

/** The settings of the file, and what the environment and the other sources add. */
export interface Configuration
  extends
    Readonly<typeof Requests.Type>,
    Readonly<typeof Paging.Type>,
    Readonly<typeof List.Type>,
    Readonly<Omit<SyncSettings, keyof EngineSettings>> {
  /** Null is the embedded Postgres. */
  readonly databaseUrl: Redacted.Redacted | null
  /** DATABASE_READER_URL: the login for SQL that a person writes; null where it is not set. */
  readonly readerUrl: Redacted.Redacted | null
  /** The port of the embedded Postgres. */
  readonly embeddedPort: number
  /** Connections to Postgres that one process opens at most; null: a share of what the server allows. */
  readonly connectionsMax: number | null
  /** The data directory: the embedded Postgres and other local files. */
  readonly dataDirectory: string
  readonly companies: ReadonlyArray<CompanyConfiguration>
  /** Companies of the warehouse that cannot be used; empty until the warehouse is read. */
  readonly unusable: ReadonlyArray<UnusableCompany>
  /** TRIBUTARY_COMPANIES_KEY: the key of the tokens in the warehouse. */
  readonly companiesKey: Redacted.Redacted | null
  /** Resources beside the catalogue's. */
  readonly resources: ReadonlyArray<ConfiguredResource>
  /** What no company reads; each company has it too. */
  readonly excluded: ReadonlyArray<Exclusion>
  readonly datasets: Datasets
  /** The budget without its reserve; null is no limit beside the source's own. */
  readonly requestsPerMinute: number | null
  /** The unit that the source's limit counts by. */
  readonly budgetScope: "token" | "install"
  readonly engine: EngineSettings
  /** The freshness target. */
  readonly freshnessOf: (resource: string) => Duration.Duration
  /** The time between two polls of a resource while events prove its freshness; zero for as often as any other. */
  readonly provenPollInterval: Duration.Duration
  readonly allowHttp: boolean
  readonly webhooks: WebhookConfiguration
  /** The endpoints that get the changes of the warehouse. */
  readonly changeEndpoints: ReadonlyArray<FileEndpoint>
  readonly push: typeof Push.Type
  /** When `serve` syncs a resource. */
  readonly scheduleOf: (resource: string) => ResourceSchedule
  /** `schedule.time_zone`: where days and months begin. */
  readonly timeZone: string
  readonly retention: typeof Retention.Type
  /** Null: no dashboard. */
  readonly dashboard: DashboardConfiguration | null
  readonly monitoring: MonitoringConfiguration
  readonly alerts: AlertConfiguration
  /** Rules about the records beside those of the connector. */
  readonly invariants: ReadonlyArray<Invariant>
}

/** The limit of the budget with the reserve subtracted; null is unlimited. */
const requestsPerMinuteOf = ({ budget: { requestsPerMinute, reservePercent } }: Settings): number | null =>
  requestsPerMinute === "unlimited" ? null : Math.max(1, Math.floor((requestsPerMinute * (100 - reservePercent)) / 100))

const redacted = (value: string | undefined, label: string): Redacted.Redacted | null =>
  value === undefined ? null : Redacted.make(value, { label })

const resourcesOf = (inputs: Inputs): ReadonlyArray<ConfiguredResource> => {
  const privacy = privacyOf(inputs)
  return Object.entries(inputs.settings.resources).map(
    ([path, { area, modifiedSince, cancel, key, ignoreFields, since, where }]) => ({
      path,
      area,
      modifiedSince,
      cancel,
      key,
      ignoreFields,
      since,
      where: Object.fromEntries(Object.entries(where).map(([field, value]) => [field, String(value)])),
      rules: privacy.get(path) ?? []
    })
  )
}

/** The names of all companies, also of those that cannot be used. */
export const namesOf = ({ companies, unusable }: Configuration): ReadonlyArray<string> =>
  [...companies, ...unusable].map(({ name }) => name)

/** Companies that a message names. */
const namesMax = 20

/** The usable companies with these names (none: all). A name that is not configured is an error. */
export const chooseCompanies = (
  settings: Configuration,
  names: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<CompanyConfiguration>, ConfigurationError> => {
  const { companies } = settings
  const configured = namesOf(settings)
  const further = configured.length - namesMax
  const listed = configured.slice(0, namesMax).join(", ") + (further > 0 ? ` and ${further} more` : "")
  const problems = names
    .filter((name) => !configured.includes(name))
    .map((name) => `there is no company "${name}"; ${didYouMean(name, configured) ?? `configured: ${listed}`}`)
  return problems.length > 0
    ? Effect.fail(new ConfigurationError({ problems }))
    : Effect.succeed(companies.filter(({ name }) => names.length === 0 || names.includes(name)))
}

/** Reads the configuration. All mistakes are reported together. */
export const load = Effect.fn("Configuration.load")(function* (
  flags: ConfigurationFlags,
  environment: Readonly<Record<string, string | undefined>>
): Effect.fn.Return<Configuration, ConfigurationError> {
  const inputs = yield* readInputs(flags, environment)
  const { settings, variable, problems } = inputs
  const checked = {
    companies: companiesOf(inputs),
    companiesKey: companiesKeyOf(inputs),
    resources: resourcesOf(inputs),
    excluded: exclusionsOf(inputs),
    webhooks: webhooksOf(inputs),
    changeEndpoints: endpointsOf(inputs),
    dashboard: dashboardOf(inputs),
    monitoring: monitoringOf(inputs),
    alerts: alertsOf(inputs),
    invariants: invariantsOf(inputs),
    scheduleOf: schedulesOf(inputs)
  }
  if (problems.length > 0) return yield* new ConfigurationError({ problems })

  const databaseUrl = variable("DATABASE_URL")
  const { connectionsMax, current, embeddedPort, history, asOf } = settings.warehouse
  const { concurrency, batchRecordsMax, customFields, ...engine } = settings.sync
  return {
    ...checked,
    timeZone: settings.schedule.timeZone,
    unusable: [],
    ...settings.requests,
    ...settings.paging,
    ...settings.list,
    concurrency,
    batchRecordsMax,
    customFields,
    engine,
    databaseUrl: redacted(databaseUrl, "DATABASE_URL"),
    readerUrl: databaseUrl === undefined ? null : redacted(variable("DATABASE_READER_URL"), "DATABASE_READER_URL"),
    connectionsMax,
    embeddedPort,
    datasets: { current, history, asOf: asOf ?? `${current}_asof` },
    dataDirectory: resolve(variable("TRIBUTARY_HOME") ?? environmentVariables.TRIBUTARY_HOME.default),
    requestsPerMinute: requestsPerMinuteOf(settings),
    budgetScope: settings.budget.scope,
    freshnessOf: freshnessOf(inputs),
    provenPollInterval: settings.freshness.provenPollInterval,
    allowHttp: settings.allowHttp,
    push: settings.push,
    retention: settings.retention
  }
})
