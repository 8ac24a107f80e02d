/**
 * The Schema of `config/tributary.yaml`. The JSON Schema beside the example is generated from it.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { Dashboard, Monitoring, Webhooks } from "./ListenerSettings.ts"
import { Schedules } from "./ScheduleSettings.ts"
import { between, described, durationIn, eventName, natural, pattern, positive, variableName } from "./SettingValues.ts"

const name = pattern(/^[A-Za-z0-9_-]{1,64}$/u, "Expected letters, digits, _ or - (at most 64)")
const dataset = pattern(/^[a-z_][a-z0-9_]{0,40}$/u, "Expected a lower-case name of letters, digits and _")

export const Company = Schema.Struct({
  name: name.annotate({ description: "the name of the company in output" }),
  url: described(Schema.String, "base address, ending in /!/api/v2; default: SERVICE_API_URL"),
  token_env: described(Schema.String, "the environment variable (or .env entry) that holds the token"),
  token: described(Schema.String, "the token itself; prefer token_env, so that this file holds no secret"),
  company_id: described(Schema.Int, "the company's number, needed only where the service does not answer /me"),
  resources: described(Schema.Array(Schema.String), "resources to sync; default: every resource of the catalogue"),
  webhook_secrets_env: described(
    Schema.Array(variableName),
    "the environment variables (or .env entries) that hold signing secrets of subscriptions that were created elsewhere; " +
      "tributary webhooks stores the secrets of those that it creates"
  ),
  webhook_events: described(
    Schema.Array(eventName),
    "the events that this company subscribes to; default: those of webhooks.events"
  )
})

/** The path of a list below the base address. */
const resourcePath = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_-]*(?:\/[A-Za-z0-9][A-Za-z0-9_-]*)*$/u)
)

export const ResourceSettings = Schema.Struct({
  area: described(
    pattern(/^[a-z0-9_]{1,64}$/u, "Expected lower-case letters, digits and _ (at most 64)"),
    "the area of its scope, so that a token without it is reported before a request; default: unknown"
  ),
  modifiedsince: described(
    Schema.Boolean,
    "whether its list offers modifiedsince and its records carry lastchangedate; default false: every sync reads all of it"
  ),
  cancel: described(
    Schema.Boolean,
    "whether its records carry the flag cancel and its list takes cancel=any; default false"
  ),
  key: described(Schema.String, "the text field by which people know a record"),
  ignore_fields: described(
    Schema.Array(Schema.String.check(Schema.isNonEmpty({ message: "Expected the name of a field" }))),
    "fields (also custom_fields as a whole) whose change alone makes no new version: a row keeps their values until " +
      "another field changes, and verify does not compare them; the only setting for a resource of the catalogue"
  )
})

export const Push = Schema.Struct({
  batch_size: described(
    between(1, 250),
    "records sent in one request at most; default 250, the maximum of the service"
  ),
  use_batch: described(
    Schema.Boolean,
    "whether new records are sent in batches where the service offers that; default true"
  ),
  idempotency_max_age_hours: described(
    durationIn(
      "hours",
      Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 23 }, { message: "Expected a number from 1 to 23" }))
    ),
    "how old the key of a request may be when it is sent again; the service forgets keys after 24 hours, and an older " +
      "request is resolved by looking its records up; default 23"
  ),
  concurrency: described(between(1, 16), "requests of one push in flight at the same time; default 4")
})

export const Retention = Schema.Struct({
  runs_days: described(
    durationIn("days", positive),
    "how long finished runs are kept; the last ones of a resource stay; default 90"
  ),
  quarantine_days: described(
    durationIn("days", positive),
    "how long quarantine entries are kept after they were resolved; default 90"
  ),
  outbox_days: described(
    durationIn("days", Schema.Int.check(Schema.isGreaterThanOrEqualTo(7, { message: "Expected at least 7" }))),
    "how long pushed records are kept after they were resolved; rejected ones stay with all records of their push. A " +
      "record that is pushed again after that is compared with the service first, and nothing is created twice; default 90"
  ),
  history_days: described(
    durationIn("days", positive),
    "how long earlier versions of a row are kept after they were replaced; the current one stays. The state of a record " +
      "before that time is lost; default: for ever"
  )
})

export const Settings = Schema.Struct({
  companies: described(Schema.Array(Company), "the companies to sync, a token each"),
  resources: described(
    Schema.Record(resourcePath, ResourceSettings),
    "by the path of their list: resources that the catalogue does not know, whose columns are inferred from the records; " +
      "and the fields to ignore of any resource"
  ),
  warehouse: described(
    Schema.Struct({
      current: described(dataset, "dataset of the current records; default erp"),
      history: described(dataset, "dataset of all versions; default erp_history"),
      connections: described(
        between(8, 1000),
        "connections to Postgres that one process opens at most; default: a third of what the server allows, at most 28"
      )
    }),
    "the datasets and the connections of the warehouse"
  ),
  budget: described(
    Schema.Struct({
      requests_per_minute: described(
        Schema.Union([positive, Schema.Literal("unlimited")]),
        "requests per minute for one token; default 500, which leaves some of the service's 600 to other programs"
      ),
      reserve_percent: described(
        between(0, 90),
        "the share of requests_per_minute that is left to other programs; default 0"
      ),
      scope: described(
        Schema.Literals(["token", "install"]),
        "the unit that the service's limit counts by; install: all tokens of one address share one budget; default token"
      )
    }),
    "how much of the service's request limit may be used"
  ),
  requests: described(
    Schema.Struct({
      timeout_seconds: described(durationIn("seconds", positive), "the timeout of one whole answer; default 60"),
      attempts_max: described(positive, "attempts at one request before the run gives up; default 8"),
      retry_after_max_seconds: described(
        durationIn("seconds", positive),
        "longest Retry-After that is waited for; default 900"
      )
    }),
    "timeouts and retries of a request"
  ),
  paging: described(
    Schema.Struct({
      mode: described(
        Schema.Literals(["auto", "cursor", "page", "offset", "link", "none"]),
        "how this installation pages; default auto"
      ),
      page_size: described(positive, "records per page; default: not sent, so that the service decides")
    }),
    "how lists are paged"
  ),
  list: described(
    Schema.Struct({ items_key: described(Schema.String, "the key of the records in a list answer; default auto") }),
    "the shape of list answers"
  ),
  sync: described(
    Schema.Struct({
      concurrency: described(positive, "resources of one company that are read at the same time; default 4"),
      batch_records: described(positive, "records landed in one transaction, about; default 2500"),
      custom_fields: described(Schema.Boolean, "whether the install's own fields are read too; default false"),
      overlap_seconds: described(
        durationIn("seconds", natural),
        "how far before the stored cursor a scan begins at least, for rows that become visible late; default 300"
      ),
      full_scan_every_days: described(
        durationIn("days", natural),
        "a resource with modifiedsince is read in full again after this time, so that removals are seen; 0 never; default 7"
      ),
      sweep_every_minutes: described(
        durationIn("minutes", natural),
        "a resource without modifiedsince is read in full again after this time; in between only children of records " +
          "that changed are read; default 0: by every sync"
      ),
      deletions_max_percent: described(
        between(0, 100),
        "a full scan in which more of a resource's rows are missing stops at the mass-delete guard; --accept-deletions passes it; default 50"
      )
    }),
    "how a sync works"
  ),
  freshness: described(
    Schema.Struct({
      default_minutes: described(durationIn("minutes", positive), "the maximum age of a resource; default 15"),
      resources: described(
        Schema.Record(Schema.String, durationIn("minutes", positive)),
        "the maximum age of single resources, in minutes; the resource that is due first is read first"
      )
    }),
    "the freshness targets"
  ),
  webhooks: described(
    Webhooks,
    "how events of the service are received, so that a change arrives within seconds of its delivery"
  ),
  push: described(Push, "how records are written to the service"),
  schedule: described(Schedules, "when tributary serve syncs which resource"),
  retention: described(Retention, "how long finished work is kept in the dataset tributary"),
  dashboard: described(Dashboard, "the pages of tributary serve for people"),
  monitoring: described(Monitoring, "the listener of tributary serve for health checks and metrics"),
  allow_http: described(
    Schema.Boolean,
    "whether plain http is accepted everywhere, to the service too; webhooks.allow_http and dashboard.allow_http accept " +
      "it for one listener; default false"
  )
})

export type Settings = typeof Settings.Type
export type CompanySettings = typeof Company.Type

const timingKeys = ["off", "every, or cron and time_zone", "missed", "jitter_seconds"]

/** Allowed keys of a struct and of the structs inside it, by place. A list has the place of its items. */
const keysIn = (schema: unknown, place = ""): ReadonlyArray<readonly [string, ReadonlyArray<string>]> => {
  const below = (key: string) => (place === "" ? key : `${place}.${key}`)
  if (!Predicate.isObjectKeyword(schema)) return []
  if ("fields" in schema && Predicate.isObject(schema.fields))
    return [
      [place, Object.keys(schema.fields)],
      ...Object.entries(schema.fields).flatMap(([key, field]) => keysIn(field, below(key)))
    ]
  if ("value" in schema) return keysIn(schema.value, below("*"))
  return "schema" in schema ? keysIn(schema.schema, place) : []
}

/** Allowed keys by place (list indices left out), for messages. */
export const allowedKeys: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ...keysIn(Settings),
  ["resources", ["the path of a list: letters, digits, _ and -, with / between its parts"]],
  ["schedule.default", timingKeys],
  ["schedule.resources.*", timingKeys]
])

/** The JSON Schema of the file, for editors. */
export const jsonSchema = (): object => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(Settings, { onExcessProperty: "error" })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Tributary configuration",
    ...schema,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
  }
}
