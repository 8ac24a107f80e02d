/**
 * The Schema of `config/tributary.yaml`. The JSON Schema beside the example is generated from it.
 */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { connectionsMin } from "../postgres/ConnectionBudget.ts"
import { freshnessDefault } from "../sync/EngineSettings.ts"
import { provenPollIntervalDefault } from "../tasks/EventProofs.ts"
import { datasetsDefault } from "../warehouse/Table.ts"
import { Alerts } from "./AlertSettings.ts"
import { ChangeEndpoint } from "./EndpointSettings.ts"
import { InstallationSettings, name, topLevel } from "./InstallationSettings.ts"
import { InvariantRule } from "./InvariantSettings.ts"
import { Dashboard, Monitoring, Webhooks } from "./ListenerSettings.ts"
import { resourcePath, ResourceSettings } from "./ResourceSettings.ts"
import { Schedules } from "./ScheduleSettings.ts"
import {
  address,
  between,
  days,
  hours,
  minutes,
  eventNames,
  meaning,
  pattern,
  positive,
  required,
  section,
  setting,
  variableName
} from "./SettingValues.ts"

const dataset = pattern(/^[a-z_][a-z0-9_]{0,40}$/u, "Expected a lower-case name of letters, digits and _")

/** A company of the file, and of `tributary.company_settings` in the warehouse. */
export const Company = section({
  name: required("name", name, "the name of the company in output"),
  installation: setting(
    "installation",
    name,
    "the installation of the company, of installations; default: the top level's settings"
  ),
  url: setting(
    "url",
    address,
    "base address, ending in /!/api/v2; default: that of its installation, else SERVICE_API_URL"
  ),
  tokenVariable: setting("token_env", variableName, "the environment variable (or .env entry) that holds the token"),
  token: setting("token", Schema.String, "the token itself; prefer token_env, so that this file holds no secret"),
  companyId: setting(
    "company_id",
    meaning(Schema.Int, Schema.BigInt, BigInt),
    "the company's number at the source, needed only where the service does not answer /me"
  ),
  warehouseNumber: setting(
    "warehouse_number",
    meaning(Schema.Int, Schema.BigInt, BigInt),
    "the company's number in the warehouse (`_company_id`), needed only where another company has its number; it never changes"
  ),
  resources: setting(
    "resources",
    Schema.Array(Schema.String),
    "resources to sync; default: every resource of the catalogue"
  ),
  excludeResources: setting(
    "exclude_resources",
    Schema.Array(resourcePath),
    "resources (paths, or patterns with *) that this company does not read, beside those of the top level",
    []
  ),
  secretVariables: setting(
    "webhook_secrets_env",
    Schema.Array(variableName),
    "the environment variables (or .env entries) that hold signing secrets of subscriptions that were created elsewhere; " +
      "tributary webhooks ensure stores the secrets of those that it creates",
    []
  ),
  webhookEvents: setting(
    "webhook_events",
    eventNames,
    "the events that this company subscribes to; default: those of webhooks.events"
  )
})
export type CompanySettings = typeof Company.Type

const Warehouse = section({
  current: setting("current", dataset, "dataset of the current records", datasetsDefault.current),
  history: setting("history", dataset, "dataset of all versions", datasetsDefault.history),
  asOf: setting("as_of", dataset, "dataset of the records as of a moment; default: the name of current with _asof"),
  embeddedPort: setting(
    "embedded_port",
    between(1024, 65_535),
    "port of the embedded Postgres on 127.0.0.1; the next free one where another program uses it",
    54329
  ),
  connectionsMax: setting(
    "connections",
    between(connectionsMin, 1000),
    "connections to Postgres that one process opens at most; default: a third of what the server allows, at most 30"
  )
})

const Freshness = section({
  default: setting(
    "default_minutes",
    minutes(positive),
    "the maximum age of a resource",
    Duration.toMinutes(freshnessDefault)
  ),
  resources: setting(
    "resources",
    Schema.Record(Schema.String, minutes(positive)),
    "the maximum age of single resources, in minutes; the resource that is due first is read first",
    {}
  ),
  provenPollInterval: setting(
    "proven_poll_hours",
    hours(between(0, 168)),
    "how often a resource is polled while events prove its freshness; 0 polls it as often as any other",
    Duration.toHours(provenPollIntervalDefault)
  )
})

export const Push = section({
  batchRecordsMax: setting(
    "batch_size",
    between(1, 250),
    "records sent in one request at most, up to the maximum of the service",
    250
  ),
  useBatch: setting(
    "use_batch",
    Schema.Boolean,
    "whether new records are sent in batches where the service offers that",
    true
  ),
  keyAgeMax: setting(
    "idempotency_max_age_hours",
    hours(
      Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 23 }, { message: "Expected a number from 1 to 23" }))
    ),
    "how old the key of a request may be when it is sent again; the service forgets keys after 24 hours, and an older " +
      "request is resolved by looking its records up",
    23
  ),
  concurrency: setting("concurrency", between(1, 16), "requests of one push in flight at the same time", 4)
})

export const Retention = section({
  runs: setting("runs_days", days(positive), "how long finished runs are kept; the last ones of a resource stay", 90),
  quarantine: setting(
    "quarantine_days",
    days(positive),
    "how long quarantine entries are kept after they were resolved",
    90
  ),
  outbox: setting(
    "outbox_days",
    days(Schema.Int.check(Schema.isGreaterThanOrEqualTo(7, { message: "Expected at least 7" }))),
    "how long pushed records are kept after they were resolved; rejected ones stay with all records of their push. A " +
      "record that is pushed again after that is compared with the service first, and nothing is created twice",
    90
  ),
  history: setting(
    "history_days",
    days(positive),
    "how long earlier versions of a row are kept after they were replaced; the current one stays. The state of a record " +
      "before that time is lost; default: for ever"
  )
})

export const Settings = section({
  installations: setting(
    "installations",
    Schema.Array(InstallationSettings),
    "the installations of the service, where they differ; a company belongs to one by its name",
    []
  ),
  companies: setting("companies", Schema.Array(Company), "the companies to sync, a token each", []),
  resources: setting(
    "resources",
    Schema.Record(resourcePath, ResourceSettings),
    "by the path of their list: resources that the catalogue does not know, whose columns are inferred from the records; " +
      "and, for any resource or a pattern with *, the fields to ignore, exclude, hash or mask, and the day since which records are read",
    {}
  ),
  excludeResources: setting(
    "exclude_resources",
    Schema.Array(resourcePath),
    "resources (paths, or patterns with *) that no company reads: they are not synced, subscribed to, verified or " +
      "pushed. The warehouse keeps the rows that it has",
    []
  ),
  ...topLevel,
  warehouse: setting("warehouse", Warehouse, "the datasets and the connections of the warehouse", {}),
  freshness: setting("freshness", Freshness, "the freshness targets", {}),
  webhooks: setting(
    "webhooks",
    Webhooks,
    "how events of the service are received, so that a change arrives within seconds of its delivery",
    {}
  ),
  changeEndpoints: setting(
    "change_endpoints",
    Schema.Array(ChangeEndpoint),
    "the addresses to which tributary serve sends the changes of the warehouse, as signed webhooks",
    []
  ),
  push: setting("push", Push, "how records are written to the service", {}),
  schedule: setting("schedule", Schedules, "when tributary serve syncs which resource", {}),
  retention: setting("retention", Retention, "how long finished work is kept in the dataset tributary", {}),
  dashboard: setting("dashboard", Dashboard, "the pages of tributary serve for people", {}),
  monitoring: setting("monitoring", Monitoring, "the listener of tributary serve for health checks and metrics", {}),
  invariants: setting(
    "invariants",
    Schema.Array(InvariantRule),
    "rules about the records beside the built-in ones, evaluated after their tables changed",
    []
  ),
  alerts: setting("alerts", Alerts, "which conditions tributary serve reports to whom", {})
})
export type Settings = typeof Settings.Type

/** The JSON Schema of the file, for editors. */
export const jsonSchema = () => {
  const { schema } = Schema.toJsonSchemaDocument(Settings, { onExcessProperty: "error" })
  return { $schema: "https://json-schema.org/draft/2020-12/schema", title: "Tributary configuration", ...schema }
}

/** A part of {@link jsonSchema}, as far as it states names. */
interface JsonNode {
  readonly properties?: Readonly<Record<string, JsonNode>>
  readonly patternProperties?: Readonly<Record<string, JsonNode>>
  readonly additionalProperties?: JsonNode
  readonly items?: JsonNode
  readonly anyOf?: ReadonlyArray<JsonNode>
}

const nodeBelow = (node: JsonNode | undefined, key: string | number): JsonNode | undefined =>
  typeof key === "number"
    ? node?.items
    : (node?.properties?.[key] ?? Object.values(node?.patternProperties ?? {})[0] ?? node?.additionalProperties)

const namesIn = ({ properties, patternProperties, anyOf = [] }: JsonNode): string => {
  if (patternProperties !== undefined) return "the path of a list: letters, digits, _ and -, with / between its parts"
  return properties === undefined
    ? anyOf
        .map(namesIn)
        .filter((names) => names !== "")
        .join("; or ")
    : Object.keys(properties).join(", ")
}

/** The names that the file may have below a place, for messages. */
export const allowedNames = (place: ReadonlyArray<string | number>): string =>
  namesIn(place.reduce(nodeBelow, jsonSchema() as JsonNode | undefined) ?? {})
