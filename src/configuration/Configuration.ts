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
import { type Proxies, proxiesOfVariables } from "../http/Proxies.ts"
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
import { checkNetworks, type Network, networksOf } from "./Network.ts"
import { freshnessOf, schedulesOf } from "./Schedules.ts"
import type { Written } from "./InstallationSettings.ts"
import {
  type Installation,
  installationOf,
  type InstallationResource,
  installationResourcesOf,
  installationsOf
} from "./Installations.ts"
import type { Push, Retention } from "./Settings.ts"

/** The settings of the file, and what the environment and the other sources add. */
export interface Configuration {
  /** What the top level describes. */
  readonly installation: Installation
  /** The others: those of the file, and once the warehouse is read its own. */
  readonly installations: ReadonlyArray<Installation>
  /** Resources that only some of them have; they are in `resources` too. */
  readonly installationResources: ReadonlyArray<InstallationResource>
  /** The settings as the file has them: the default of the installations of the warehouse. */
  readonly written: Written
  /** Resources of one company that are read at the same time. */
  readonly concurrency: number
  /** Records landed in one transaction, about. */
  readonly batchRecordsMax: number
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
  /** The freshness target. */
  readonly freshnessOf: (resource: string) => Duration.Duration
  /** The time between two polls of a resource while events prove its freshness; zero for as often as any other. */
  readonly provenPollInterval: Duration.Duration
  /** How requests to an installation leave this machine. */
  readonly networkOf: (installation: Installation) => Network
  /** The proxies of all other requests; null reaches every address directly. */
  readonly proxies: Proxies | null
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
  const shared = {
    installation: installationOf(inputs.written),
    installations: installationsOf(inputs),
    installationResources: installationResourcesOf(inputs)
  }
  const proxies = proxiesOfVariables(variable, problems)
  const networkOf = networksOf(variable, proxies)
  checkNetworks(inputs, networkOf, [shared.installation, shared.installations])
  const checked = {
    proxies,
    networkOf,
    ...shared,
    companies: companiesOf(inputs, shared),
    companiesKey: companiesKeyOf(inputs),
    resources: [
      ...resourcesOf(inputs),
      ...new Map(shared.installationResources.map(({ resource }) => [resource.path, resource])).values()
    ],
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
  const { concurrency, batchRecordsMax } = settings.sync
  return {
    ...checked,
    timeZone: settings.schedule.timeZone,
    unusable: [],
    written: inputs.written,
    concurrency,
    batchRecordsMax,
    databaseUrl: redacted(databaseUrl, "DATABASE_URL"),
    readerUrl: databaseUrl === undefined ? null : redacted(variable("DATABASE_READER_URL"), "DATABASE_READER_URL"),
    connectionsMax,
    embeddedPort,
    datasets: { current, history, asOf: asOf ?? `${current}_asof` },
    dataDirectory: resolve(variable("TRIBUTARY_HOME") ?? environmentVariables.TRIBUTARY_HOME.default),
    freshnessOf: freshnessOf(inputs),
    provenPollInterval: settings.freshness.provenPollInterval,
    push: settings.push,
    retention: settings.retention
  }
})
