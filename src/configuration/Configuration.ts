/**
 * The configuration of one program run: flag, environment, `.env`, `config/tributary.yaml`, default, in this order.
 *
 * Promise: a mistake is reported with file, line and the allowed values, and nothing starts. A token is `Redacted` from
 * the moment it is read.
 */
import { resolve } from "node:path"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ConfiguredResource } from "../warehouse/WarehouseCatalogue.ts"
import { type Datasets, datasetsDefault } from "../warehouse/Table.ts"
import { batchRecordsMaxDefault, engineDefault, type EngineSettings } from "../sync/SyncResource.ts"
import type { ResourceSchedule } from "../tasks/Cron.ts"
import { companiesOf, type CompanyConfiguration } from "./Companies.ts"
import { ConfigurationError } from "./ConfigurationError.ts"
import { type ConfigurationFlags, readInputs } from "./Inputs.ts"
import {
  type DashboardConfiguration,
  dashboardOf,
  type MonitoringConfiguration,
  monitoringOf,
  type WebhookConfiguration,
  webhooksOf
} from "./Listeners.ts"
import { freshnessOf, schedulesOf } from "./Schedules.ts"
import type { Settings } from "./Settings.ts"

/** How records are written to the service. */
export interface PushConfiguration {
  /** Records in one request at most. */
  readonly batchRecordsMax: number
  /** Whether new records are sent in batches where the source offers that. */
  readonly useBatch: boolean
  /** Maximum age of an idempotency key that is sent again. */
  readonly keyAgeMax: Duration.Duration
  /** Requests in flight at the same time. */
  readonly concurrency: number
}

/** How long finished work is kept. */
export interface RetentionConfiguration {
  readonly runs: Duration.Duration
  readonly quarantine: Duration.Duration
  readonly outbox: Duration.Duration
  /** Null for ever. */
  readonly history: Duration.Duration | null
}

export type PagingMode = "auto" | "cursor" | "page" | "offset" | "link" | "none"

export interface Configuration {
  /** Null is the embedded Postgres. */
  readonly databaseUrl: Redacted.Redacted | null
  /** DATABASE_READER_URL: the login for SQL that a person writes; null where it is not set. */
  readonly readerUrl: Redacted.Redacted | null
  /** Connections to Postgres that one process opens at most; null: a share of what the server allows. */
  readonly connectionsMax: number | null
  /** The data directory: the embedded Postgres and other local files. */
  readonly dataDirectory: string
  readonly companies: ReadonlyArray<CompanyConfiguration>
  /** Resources beside the catalogue's. */
  readonly resources: ReadonlyArray<ConfiguredResource>
  readonly datasets: Datasets
  /** The budget without its reserve; null is no limit beside the source's own. */
  readonly requestsPerMinute: number | null
  /** The unit that the source's limit counts by. */
  readonly budgetScope: "token" | "install"
  readonly requestTimeout: Duration.Duration
  readonly attemptsMax: number
  readonly retryAfterMax: Duration.Duration
  readonly pagingMode: PagingMode
  readonly pageSize: number | null
  readonly itemsKey: string | null
  readonly customFields: boolean
  readonly concurrency: number
  readonly batchRecordsMax: number
  readonly engine: EngineSettings
  /** The freshness target. */
  readonly freshnessOf: (resource: string) => Duration.Duration
  readonly allowHttp: boolean
  readonly webhooks: WebhookConfiguration
  readonly push: PushConfiguration
  /** When `serve` syncs a resource. */
  readonly scheduleOf: (resource: string) => ResourceSchedule
  readonly retention: RetentionConfiguration
  /** Null: no dashboard. */
  readonly dashboard: DashboardConfiguration | null
  readonly monitoring: MonitoringConfiguration
}

const dataDirectoryDefault = ".tributary"
const requestsPerMinuteDefault = 500

const engineOf = ({ sync }: Settings): EngineSettings => {
  const days = sync?.full_scan_every_days
  const percent = sync?.deletions_max_percent
  return {
    overlap: sync?.overlap_seconds ?? engineDefault.overlap,
    fullScanInterval:
      days === undefined ? engineDefault.fullScanInterval : Duration.isZero(days) ? Duration.infinity : days,
    cursorlessScanInterval: sync?.sweep_every_minutes ?? engineDefault.cursorlessScanInterval,
    deletionsShareMax: percent === undefined ? engineDefault.deletionsShareMax : percent / 100
  }
}

const pushOf = ({ push = {} }: Settings): PushConfiguration => ({
  batchRecordsMax: push.batch_size ?? 250,
  useBatch: push.use_batch ?? true,
  keyAgeMax: push.idempotency_max_age_hours ?? Duration.hours(23),
  concurrency: push.concurrency ?? 4
})

const retentionOf = ({ retention = {} }: Settings): RetentionConfiguration => ({
  runs: retention.runs_days ?? Duration.days(90),
  quarantine: retention.quarantine_days ?? Duration.days(90),
  outbox: retention.outbox_days ?? Duration.days(90),
  history: retention.history_days ?? null
})

/** The limit of the budget with the reserve subtracted; null is unlimited. */
const requestsPerMinuteOf = ({ budget }: Settings): number | null => {
  const limit = budget?.requests_per_minute ?? requestsPerMinuteDefault
  if (limit === "unlimited") return null
  return Math.max(1, Math.floor((limit * (100 - (budget?.reserve_percent ?? 0))) / 100))
}

const redacted = (value: string | undefined, label: string): Redacted.Redacted | null =>
  value === undefined ? null : Redacted.make(value, { label })

/** The companies with these names (none: all). A name that is not configured is an error. */
export const chooseCompanies = (
  { companies }: Configuration,
  names: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<CompanyConfiguration>, ConfigurationError> => {
  const configured = companies.map(({ name }) => name)
  const problems = names
    .filter((name) => !configured.includes(name))
    .map((name) => `there is no company "${name}"; configured: ${configured.join(", ")}`)
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
    webhooks: webhooksOf(inputs),
    dashboard: dashboardOf(inputs),
    monitoring: monitoringOf(inputs),
    scheduleOf: schedulesOf(inputs)
  }
  if (problems.length > 0) return yield* new ConfigurationError({ problems })

  const databaseUrl = variable("DATABASE_URL")
  return {
    ...checked,
    databaseUrl: redacted(databaseUrl, "DATABASE_URL"),
    readerUrl: databaseUrl === undefined ? null : redacted(variable("DATABASE_READER_URL"), "DATABASE_READER_URL"),
    dataDirectory: resolve(variable("TRIBUTARY_HOME") ?? dataDirectoryDefault),
    resources: Object.entries(settings.resources ?? {}).map(([path, one]) => ({
      path,
      area: one.area ?? null,
      modifiedSince: one.modifiedsince ?? false,
      cancel: one.cancel ?? false,
      key: one.key ?? null,
      ignoreFields: one.ignore_fields ?? []
    })),
    datasets: {
      current: settings.warehouse?.current ?? datasetsDefault.current,
      history: settings.warehouse?.history ?? datasetsDefault.history
    },
    connectionsMax: settings.warehouse?.connections ?? null,
    requestsPerMinute: requestsPerMinuteOf(settings),
    budgetScope: settings.budget?.scope ?? "token",
    requestTimeout: settings.requests?.timeout_seconds ?? Duration.seconds(60),
    attemptsMax: settings.requests?.attempts_max ?? 8,
    retryAfterMax: settings.requests?.retry_after_max_seconds ?? Duration.minutes(15),
    pagingMode: settings.paging?.mode ?? "auto",
    pageSize: settings.paging?.page_size ?? null,
    itemsKey: settings.list?.items_key ?? null,
    customFields: settings.sync?.custom_fields ?? false,
    concurrency: settings.sync?.concurrency ?? 4,
    batchRecordsMax: settings.sync?.batch_records ?? batchRecordsMaxDefault,
    engine: engineOf(settings),
    freshnessOf: freshnessOf(inputs),
    allowHttp: settings.allow_http ?? false,
    push: pushOf(settings),
    retention: retentionOf(settings)
  }
})
