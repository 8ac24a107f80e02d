/**
 * What `config/tributary.yaml` may say, as a Schema. The JSON Schema beside the example is made from it.
 */
import * as Schema from "effect/Schema"

const described = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(schema.annotate({ description }))

const name = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/u, { message: "Expected letters, digits, _ or - (at most 64)" })
)
const dataset = Schema.String.check(
  Schema.isPattern(/^[a-z_][a-z0-9_]{0,40}$/u, { message: "Expected a lower-case name of letters, digits and _" })
)
const natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

/** What a subscription may list. Which names there are, the service says when it is subscribed to them. */
const eventName = Schema.String.check(
  Schema.makeFilter((name: string) =>
    name === "*"
      ? "Expected event names one by one: the service takes no * for all of them"
      : /^[A-Za-z0-9][A-Za-z0-9_/-]*\.[A-Za-z0-9_]+$/.test(name) || "Expected an event name, <resource>.<verb>"
  )
)

export const Company = Schema.Struct({
  name: name.annotate({ description: "what people call the company in output" }),
  url: described(Schema.String, "base address, ending in /!/api/v2; default: SERVICE_API_URL"),
  token_env: described(Schema.String, "the environment variable (or .env entry) that holds the token"),
  token: described(Schema.String, "the token itself; prefer token_env, so that this file holds no secret"),
  company_id: described(Schema.Int, "the company's number, needed only where the service does not answer /me"),
  resources: described(Schema.Array(Schema.String), "resources to sync; default: every resource of the catalogue"),
  webhook_secrets_env: described(
    Schema.Array(Schema.String.check(Schema.isNonEmpty({ message: "Expected the name of an environment variable" }))),
    "the environment variables (or .env entries) that hold signing secrets of subscriptions that were made elsewhere; " +
      "those that tributary webhooks makes are kept by it"
  ),
  webhook_events: described(
    Schema.Array(eventName),
    "the events that this company subscribes to; default: those of webhooks.events"
  )
})

/** A host (an IPv6 address in brackets) and a port. */
export const listenPattern = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})$/u

/** Where a list is below the base address. */
const resourcePath = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_-]*(?:\/[A-Za-z0-9][A-Za-z0-9_-]*)*$/u)
)

export const ResourceSettings = Schema.Struct({
  area: described(
    Schema.String.check(
      Schema.isPattern(/^[a-z0-9_]{1,64}$/u, { message: "Expected lower-case letters, digits and _ (at most 64)" })
    ),
    "the area of its scope, so that a token without it is told beforehand; default: not known, the service says"
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
    "fields (custom_fields as a whole, too) whose change alone makes no new version: a row keeps the value it had when " +
      "another field changed last, and verify does not compare it; the only setting for a resource of the catalogue"
  )
})

export const Webhooks = Schema.Struct({
  listen: described(
    Schema.String.check(
      Schema.isPattern(listenPattern, { message: "Expected host:port, for example 127.0.0.1:8085 or [::1]:8085" })
    ),
    "where tributary serve receives deliveries; plain http on loopback, for a proxy in front of it, unless certificate " +
      "and key are set; default 127.0.0.1:8085"
  ),
  public_url: described(
    Schema.String,
    "the https address under which the service reaches the listener, a path before /hooks/<company> included where the " +
      "proxy adds one; needed by tributary webhooks ensure"
  ),
  certificate: described(Schema.String, "file of the TLS certificate and its chain, PEM; without it a proxy ends TLS"),
  key: described(Schema.String, "file of the certificate's private key, PEM"),
  allow_http: described(
    Schema.Boolean,
    "whether listen may be plain http where other machines reach it, as in a container whose port a proxy guards; " +
      "default false"
  ),
  connections_per_address: described(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1024 })),
    "how many requests one address may have under way that have not come whole after a second, before the slowest is " +
      "cut; raise it for a proxy that passes requests on while they still come; default 64"
  ),
  events: described(
    Schema.Array(eventName).check(
      Schema.isMinLength(1, { message: "Expected at least one event; leave the setting out for its default" })
    ),
    "the events that companies subscribe to; default: those that the service documents by name"
  ),
  tolerance_seconds: described(
    Schema.Int.check(
      Schema.isBetween({ minimum: 300, maximum: 3600 }, { message: "Expected a whole number from 300 to 3600" })
    ),
    "how old the signature of a delivery may be; default 300"
  ),
  body_max_kilobytes: described(
    Schema.Int.check(Schema.isBetween({ minimum: 16, maximum: 16_384 })),
    "the largest delivery that is read; default 1024"
  ),
  keep_days: described(
    Schema.Int.check(Schema.isBetween({ minimum: 8, maximum: 3650 })),
    "how long an event is kept after it was acted on, longer than the service's delivery log tells of it; default 30"
  ),
  check_minutes: described(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1440 })),
    "how often subscriptions and their delivery logs are looked at for events that were missed; default 5"
  ),
  rotate_field: described(
    Schema.String.check(Schema.isPattern(/^[a-z_]{1,64}$/u, { message: "Expected the name of a field" })),
    "the field that carries the new secret when one is rotated; default secret"
  )
})

export const Push = Schema.Struct({
  batch_size: described(
    Schema.Int.check(
      Schema.isBetween({ minimum: 1, maximum: 250 }, { message: "Expected a whole number from 1 to 250" })
    ),
    "records sent in one request at most; default 250, which is what the service takes"
  ),
  use_batch: described(
    Schema.Boolean,
    "whether new records are sent many at a time where the service offers that; default true"
  ),
  idempotency_max_age_hours: described(
    Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 23 }, { message: "Expected a number from 1 to 23" })),
    "how old the key of a request may be when it is sent again; the service forgets keys after 24 hours, and an older " +
      "request is settled by looking its records up; default 23"
  ),
  concurrency: described(
    Schema.Int.check(
      Schema.isBetween({ minimum: 1, maximum: 16 }, { message: "Expected a whole number from 1 to 16" })
    ),
    "requests of one push that are under way at the same time; default 4"
  )
})

const duration = Schema.String.check(
  Schema.isPattern(/^[1-9]\d{0,5}(s|m|h|d)$/u, {
    message: "Expected a number and s, m, h or d, for example 90s or 10m"
  })
)
const timeZone = Schema.String.check(
  Schema.makeFilter(
    (name: string) =>
      Intl.supportedValuesOf("timeZone").includes(name) ||
      name === "UTC" ||
      "Expected the name of a time zone, for example Europe/Berlin or UTC"
  )
)
const missed = Schema.Literals(["once", "skip"])
const jitter = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3600 }))

/** When a resource is synced by `serve`. */
export const Timing = Schema.Union([
  Schema.Literal("off"),
  Schema.Struct({
    every: duration.annotate({ description: "an interval: 90s, 10m, 2h or 1d" }),
    missed: described(missed, "default: that of schedule.missed"),
    jitter_seconds: described(jitter, "default: that of schedule.jitter_seconds")
  }),
  Schema.Struct({
    cron: Schema.String.annotate({
      description: "five fields (minute, hour, day, month, weekday), or six with seconds first"
    }),
    time_zone: described(timeZone, "default: that of schedule.time_zone"),
    missed: described(missed, "default: that of schedule.missed"),
    jitter_seconds: described(jitter, "default: that of schedule.jitter_seconds")
  })
])

export const Schedules = Schema.Struct({
  default: described(
    Timing,
    "when resources are synced by tributary serve; off, { every: 10m } or { cron: ... }; default: often enough for the " +
      "promised freshness, which is every two thirds of it"
  ),
  resources: described(Schema.Record(Schema.String, Timing), "other times for single resources"),
  time_zone: described(timeZone, "in which cron expressions are meant; default UTC"),
  missed: described(
    missed,
    "what becomes of times that passed while nothing ran: once makes up for all of them by one run, skip waits for the " +
      "next; default once"
  ),
  jitter_seconds: described(
    jitter,
    "a run begins at most so much after its time, so that not everything begins at once; default: a tenth of an " +
      "interval, at most 60, and 0 for cron"
  )
})

export const Retention = Schema.Struct({
  runs_days: described(
    positive,
    "how long ended runs are kept in the ledger; the last ones of a resource stay; default 90"
  ),
  quarantine_days: described(positive, "how long quarantine entries are kept after they were resolved; default 90"),
  outbox_days: described(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(7, { message: "Expected at least 7" })),
    "how long pushed records are kept after they were settled; refused ones stay with all of the push they came in. What is " +
      "given again after that is compared with the service first, and nothing is created twice; default 90"
  ),
  history_days: described(
    positive,
    "how long earlier versions of a row are kept after they were replaced; the current one stays. How a record stood " +
      "before that time can no longer be asked; default: for ever"
  )
})

export const Dashboard = Schema.Struct({
  listen: described(
    Schema.Union([
      Schema.Literal("off"),
      Schema.String.check(
        Schema.isPattern(listenPattern, { message: "Expected off, or host:port, for example 127.0.0.1:8086" })
      )
    ]),
    "where tributary serve shows its page; off for nowhere; default 127.0.0.1:8086"
  ),
  password_env: described(
    Schema.String.check(Schema.isNonEmpty({ message: "Expected the name of an environment variable" })),
    "the environment variable (or .env entry) that holds the password, which is also the bearer token for programs; " +
      "needed where other machines can reach the page; default: TRIBUTARY_DASHBOARD_PASSWORD where it is set"
  ),
  public_url: described(
    Schema.String,
    "the address under which people reach the page where a proxy stands in front of it"
  ),
  certificate: described(Schema.String, "file of the TLS certificate and its chain, PEM; without it a proxy ends TLS"),
  key: described(Schema.String, "file of the certificate's private key, PEM"),
  allow_http: described(
    Schema.Boolean,
    "whether the page may be plain http where other machines reach it, as in a container whose port a proxy guards; " +
      "default false"
  )
})

export const Monitoring = Schema.Struct({
  listen: described(
    Schema.String.check(Schema.isPattern(listenPattern, { message: "Expected host:port, for example 127.0.0.1:8087" })),
    "an address of its own for /healthz, /readyz and /metrics, plain http; /metrics is then no longer answered at " +
      "webhooks.listen; default: webhooks.listen"
  ),
  token_env: described(
    Schema.String.check(Schema.isNonEmpty({ message: "Expected the name of an environment variable" })),
    "the environment variable (or .env entry) that holds the bearer token for /metrics; default: TRIBUTARY_METRICS_TOKEN " +
      "where it is set, else no token"
  )
})

export const Settings = Schema.Struct({
  companies: described(Schema.Array(Company), "the companies to sync, a token each"),
  resources: described(
    Schema.Record(resourcePath, ResourceSettings),
    "by the path of their list: resources that the catalogue does not know, whose columns are learnt from the records; " +
      "and of any resource the fields to ignore"
  ),
  warehouse: described(
    Schema.Struct({
      current: described(dataset, "dataset of the current records; default erp"),
      history: described(dataset, "dataset of all versions; default erp_history"),
      connections: described(
        Schema.Int.check(
          Schema.isBetween({ minimum: 8, maximum: 1000 }, { message: "Expected a whole number from 8 to 1000" })
        ),
        "connections to Postgres that one process opens at most; default: a third of what the server allows, at most 28"
      )
    }),
    "where the records go"
  ),
  budget: described(
    Schema.Struct({
      requests_per_minute: described(
        Schema.Union([positive, Schema.Literal("unlimited")]),
        "requests per minute for one token; default 500, which leaves some of the service's 600 to other programs"
      ),
      reserve_percent: described(
        Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 90 })),
        "how much of requests_per_minute is left to other programs; default 0"
      ),
      scope: described(
        Schema.Literals(["token", "install"]),
        "what the service counts its limit by; install: all tokens of one address share one budget; default token"
      )
    }),
    "how much of the service's request limit may be used"
  ),
  requests: described(
    Schema.Struct({
      timeout_seconds: described(positive, "longest wait for one whole answer; default 60"),
      attempts_max: described(positive, "attempts at one request before the run gives up; default 8"),
      retry_after_max_seconds: described(positive, "longest Retry-After that is waited for; default 900")
    }),
    "how patient a request is"
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
      custom_fields: described(Schema.Boolean, "whether the install's own fields are read along; default false"),
      overlap_seconds: described(
        natural,
        "how far before the stored cursor a scan begins at least, for rows that become visible late; default 300"
      ),
      full_scan_every_days: described(
        natural,
        "a resource with modifiedsince is read in full again after this time, so that removals are seen; 0 never; default 7"
      ),
      sweep_every_minutes: described(
        natural,
        "a resource without modifiedsince is read in full again after this time; in between only children of records " +
          "that changed are read; default 0: by every sync"
      ),
      deletions_max_percent: described(
        Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 })),
        "a full scan in which more of a resource's rows are missing is not believed without --accept-deletions; default 50"
      )
    }),
    "how a sync works"
  ),
  freshness: described(
    Schema.Struct({
      default_minutes: described(positive, "how old any resource may be at most; default 15"),
      resources: described(
        Schema.Record(Schema.String, positive),
        "how old single resources may be at most, in minutes; what is due first is read first"
      )
    }),
    "what is promised about the age of the records"
  ),
  webhooks: described(
    Webhooks,
    "how events of the service are received, so that a change arrives within seconds of its delivery"
  ),
  push: described(Push, "how records are written to the service"),
  schedule: described(Schedules, "when tributary serve syncs which resource"),
  retention: described(Retention, "how long what has been dealt with is kept in the dataset tributary"),
  dashboard: described(Dashboard, "the page for people that tributary serve shows"),
  monitoring: described(Monitoring, "where tributary serve answers health checks and metrics"),
  allow_http: described(
    Schema.Boolean,
    "whether plain http is accepted everywhere, to the service too; webhooks.allow_http and dashboard.allow_http accept " +
      "it for what listens here; default false"
  )
})

export type Settings = typeof Settings.Type
export type CompanySettings = typeof Company.Type

/** Allowed keys by place (list indices left out), for messages. */
export const allowedKeys: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["", Object.keys(Settings.fields)],
  ["companies", Object.keys(Company.fields)],
  ["resources", ["the path of a list: letters, digits, _ and -, with / between its parts"]],
  ["resources.*", Object.keys(ResourceSettings.fields)],
  ["warehouse", ["current", "history", "connections"]],
  ["budget", ["requests_per_minute", "reserve_percent", "scope"]],
  ["requests", ["timeout_seconds", "attempts_max", "retry_after_max_seconds"]],
  ["paging", ["mode", "page_size"]],
  ["list", ["items_key"]],
  [
    "sync",
    [
      "concurrency",
      "batch_records",
      "custom_fields",
      "overlap_seconds",
      "full_scan_every_days",
      "sweep_every_minutes",
      "deletions_max_percent"
    ]
  ],
  ["freshness", ["default_minutes", "resources"]],
  ["webhooks", Object.keys(Webhooks.fields)],
  ["push", Object.keys(Push.fields)],
  ["schedule", Object.keys(Schedules.fields)],
  ["schedule.default", ["off", "every, or cron and time_zone", "missed", "jitter_seconds"]],
  ["schedule.resources.*", ["off", "every, or cron and time_zone", "missed", "jitter_seconds"]],
  ["retention", Object.keys(Retention.fields)],
  ["dashboard", Object.keys(Dashboard.fields)],
  ["monitoring", Object.keys(Monitoring.fields)]
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
