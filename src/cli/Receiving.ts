/**
 * What `serve` runs, as the configuration wants it, for it and for whoever shows it at work: what receives events, and
 * what pushes rows of the outbox.
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import type { CompanyConfiguration, Configuration, ConfigurationError } from "../configuration/Configuration.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import * as Overlay from "../model/Overlay.ts"
import { tableOf } from "../model/Table.ts"
import type { Database } from "../postgres/Database.ts"
import * as PushFigures from "../push/Figures.ts"
import * as Keep from "../push/Keep.ts"
import type { Company } from "../webhook/Company.ts"
import type { SecretsCompany } from "../webhook/Secrets.ts"
import type { ServiceOptions } from "../webhook/Service.ts"
import { catalogueOf } from "./Effective.ts"
import { Source } from "./Source.ts"
import * as Sync from "./sync.ts"
import type { WarehouseError } from "./Warehouse.ts"

/** The events that a company subscribes to: its own, else those of all companies, else the source's. */
export const eventsOf = (
  { webhookEvents }: CompanyConfiguration,
  { webhooks }: Configuration,
  { eventsDefault }: DeliveryReader
): ReadonlyArray<string> => webhookEvents ?? webhooks.events ?? eventsDefault

/** What opens a company's secrets. */
export const secretsOf = ({ name, token, webhookSecrets }: CompanyConfiguration): SecretsCompany => ({
  name,
  token,
  configured: webhookSecrets
})

/** The companies of these names (all of them when there are none), connected. Nothing is asked of the source yet. */
export const companies = Effect.fnUntraced(function* (settings: Configuration, names: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const source = yield* Source
  const reader = yield* source.deliveries
  const catalogue = yield* catalogueOf(settings)
  const targets = yield* Sync.targets(settings, {
    resources: [],
    companies: names,
    full: false,
    acceptDeletions: false
  })
  const configured = new Map(settings.companies.map((company) => [company.name, company]))
  return targets.map(({ name, connector, resources }): Company => ({
    name,
    connector,
    tables: Overlay.resources(catalogue, resources).pipe(
      Effect.map((whole) => new Map(whole.map((resource) => [resource.path, tableOf(resource, settings.datasets)]))),
      Effect.provideService(SqlClient.SqlClient, sql)
    ),
    engine: settings.engine,
    batchRecordsMax: settings.batchRecordsMax,
    requestsPerMinute: settings.requestsPerMinute,
    events: eventsOf(configured.get(name)!, settings, reader)
  }))
})

/** What waiting may help against: a warehouse that is away. */
const isPassing = (error: ConfigurationError | WarehouseError): boolean =>
  error._tag === "DatabaseError" && error.isRetryable

/** The service for the companies of these names (all of them when there are none). */
export const service = Effect.fnUntraced(function* (
  settings: Configuration,
  names: ReadonlyArray<string>,
  warehouse: Layer.Layer<Database | SqlClient.SqlClient, WarehouseError>
): Effect.fn.Return<ServiceOptions<ConfigurationError | WarehouseError>, never, Source> {
  const source = yield* Source
  const { webhooks } = settings
  return {
    reader: yield* source.deliveries,
    listen: { host: webhooks.host, port: webhooks.port, tls: webhooks.tls, bodyBytesMax: webhooks.bodyBytesMax },
    window: { toleranceMs: webhooks.toleranceMs, aheadMs: webhooks.aheadMs },
    publicUrl: webhooks.publicUrl,
    keepMs: webhooks.keepMs,
    checkEveryMs: webhooks.checkEveryMs,
    secrets: settings.companies
      .filter(({ name }) => names.length === 0 || names.includes(name))
      .map((company) => secretsOf(company)),
    companies: Effect.provideService(companies(settings, names), Source, source),
    parts: (all) => [{ what: "pushing what stands in the outbox", run: Keep.keep(all, settings.push) }],
    figures: PushFigures.make,
    warehouse,
    isPassing
  }
})
