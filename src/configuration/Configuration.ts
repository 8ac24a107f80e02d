/**
 * The configuration of one program run: flag, environment, `.env`, `config/tributary.yaml`, default, in this order.
 *
 * Promise: a mistake is reported with file, line and what is allowed, and nothing starts; a token is `Redacted` from
 * the moment it is read.
 */
import { existsSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { parse as parseDotEnv } from "dotenv"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type { ConfiguredResource } from "../warehouse/Overlay.ts"
import { type Datasets, datasetsDefault } from "../warehouse/Table.ts"
import { batchRecordsMaxDefault, engineDefault, type EngineSettings } from "../sync/SyncResource.ts"
import { freshnessDefaultMs } from "../sync/Sync.ts"
import * as Cron from "../tasks/Cron.ts"
import type { ResourceSchedule } from "../tasks/Cron.ts"
import { allowedKeys, type CompanySettings, listenPattern, Settings } from "./Settings.ts"

/** What is wrong with the configuration, one line per mistake, and what to do. */
export class ConfigurationError extends Data.TaggedError("ConfigurationError")<{
  readonly problems: ReadonlyArray<string>
}> {
  override get message(): string {
    return this.problems.join("\n")
  }
}

export interface CompanyConfiguration {
  readonly name: string
  readonly url: string
  readonly token: Redacted.Redacted
  readonly companyId: bigint | null
  /** Null is every resource of the catalogue. */
  readonly resources: ReadonlyArray<string> | null
  /** Signing secrets of subscriptions that were made elsewhere, accepted beside those that the warehouse keeps. */
  readonly webhookSecrets: ReadonlyArray<Redacted.Redacted>
  /** Null is what {@link WebhookConfiguration.events} says. */
  readonly webhookEvents: ReadonlyArray<string> | null
}

/** How events of the service are received. */
export interface WebhookConfiguration {
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
  /** The https address in front of the listener, without a slash at its end; null when nobody said. */
  readonly publicUrl: string | null
  /** Files in PEM form; null leaves TLS to a proxy. */
  readonly tls: { readonly certificate: string; readonly key: string } | null
  /** Null is what the source subscribes to when nobody says. */
  readonly events: ReadonlyArray<string> | null
  /** How old the signature of a delivery may be. */
  readonly toleranceMs: number
  /** How far the sender's clock may be ahead. */
  readonly aheadMs: number
  readonly bodyBytesMax: number
  /** Slow requests of one address. */
  readonly connectionsPerAddressMax: number
  /** How long an event is kept after it was acted on. */
  readonly keepMs: number
  /** How often subscriptions and delivery logs are looked at. */
  readonly checkEveryMs: number
  /** The field that carries a new secret when one is rotated. */
  readonly rotateField: string
}

/** How records are written to the service. */
export interface PushConfiguration {
  /** Records in one request at most. */
  readonly batchRecordsMax: number
  /** Whether new records go many at a time where the source offers that. */
  readonly useBatch: boolean
  /** How old a request's key may be when it is sent again. */
  readonly keyAgeMaxMs: number
  /** Requests under way at the same time. */
  readonly concurrency: number
}

/** The page for people. */
export interface DashboardConfiguration {
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
  /** Files in PEM form; null for plain HTTP. */
  readonly tls: { readonly certificate: string; readonly key: string } | null
  /** Null only where nobody else can reach it. */
  readonly password: Redacted.Redacted | null
  /** The address that people use, without a slash at its end; null where they come directly. */
  readonly publicUrl: string | null
}

/** How long what has been dealt with is kept. */
export interface RetentionConfiguration {
  readonly runsMs: number
  readonly quarantineMs: number
  readonly outboxMs: number
  /** Null for ever. */
  readonly historyMs: number | null
}

export type PagingMode = "auto" | "cursor" | "page" | "offset" | "link" | "none"

export interface Configuration {
  /** Null means the embedded Postgres. */
  readonly databaseUrl: Redacted.Redacted | null
  /** DATABASE_READER_URL: the login for SQL that a person writes; null where it is not set. */
  readonly readerUrl: Redacted.Redacted | null
  /** Connections to Postgres that one process opens at most; null: a share of what the server allows. */
  readonly connectionsMax: number | null
  /** Where the embedded Postgres and other local files live. */
  readonly home: string
  readonly companies: ReadonlyArray<CompanyConfiguration>
  /** Resources beside the catalogue's. */
  readonly resources: ReadonlyArray<ConfiguredResource>
  readonly datasets: Datasets
  /** What may be used, the reserve taken off; null is no limit but the service's own. */
  readonly requestsPerMinute: number | null
  /** What the service's limit is counted by. */
  readonly budgetScope: "token" | "install"
  readonly requestTimeoutMs: number
  readonly attemptsMax: number
  readonly retryAfterMaxMs: number
  readonly pagingMode: PagingMode
  readonly pageSize: number | null
  readonly itemsKey: string | null
  readonly customFields: boolean
  readonly concurrency: number
  readonly batchRecordsMax: number
  readonly engine: EngineSettings
  /** How old a resource may be at most, in milliseconds. */
  readonly freshnessOf: (resource: string) => number
  readonly allowHttp: boolean
  readonly webhooks: WebhookConfiguration
  readonly push: PushConfiguration
  /** When `serve` syncs a resource. */
  readonly scheduleOf: (resource: string) => ResourceSchedule
  readonly retention: RetentionConfiguration
  /** Null shows no page. */
  readonly dashboard: DashboardConfiguration | null
  readonly monitoring: MonitoringConfiguration
}

/** Where health and metrics are answered. */
export interface MonitoringConfiguration {
  /** Null is with the deliveries. */
  readonly listen: { readonly host: string; readonly port: number } | null
  /** What `/metrics` wants; null is nothing. */
  readonly token: Redacted.Redacted | null
}

export interface ConfigurationFlags {
  readonly config?: string | undefined
  readonly url?: string | undefined
  /** Where deliveries are received, `host:port`; else what the file says. */
  readonly listen?: string | undefined
  /** Where health and metrics are answered, `host:port`; else what the file says. */
  readonly monitoring?: string | undefined
  /** Where the page for people is, `host:port` or `off`; else what the file says. */
  readonly dashboard?: string | undefined
}

const settingsFileDefault = "config/tributary.yaml"
const homeDefault = ".tributary"
const requestsPerMinuteDefault = 500

/** What a file says, and where it says it. */
interface Read {
  readonly settings: Settings
  /** `file:line:column` of the nearest thing there is to a setting, with the setting's own name; for messages. */
  readonly place: (...keys: ReadonlyArray<string | number>) => string
}

/** Reads a YAML file by the Schema; every mistake with its line. */
const readSettings = (file: string): Effect.Effect<Read, ConfigurationError> =>
  Effect.gen(function* () {
    const { isNode, LineCounter, parseDocument } = yield* Effect.promise(() => import("yaml"))
    const text = readFileSync(file, "utf8")
    const lines = new LineCounter()
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
    const problem = (offset: number, message: string) => {
      const { line, col } = lines.linePos(offset)
      return `${file}:${line}:${col}: ${message}`
    }
    if (document.errors.length > 0) {
      return yield* new ConfigurationError({
        problems: document.errors.map((error) => problem(error.pos[0], error.message))
      })
    }
    const decoded = Schema.decodeUnknownResult(Settings)(document.toJS() ?? {}, {
      errors: "all",
      onExcessProperty: "error"
    })
    const at = (keys: ReadonlyArray<unknown>): number => {
      // The nearest node that exists: a missing key has none of its own.
      for (let length = keys.length; length >= 0; length -= 1) {
        const node = length === 0 ? document.contents : document.getIn(keys.slice(0, length), true)
        if (isNode(node) && node.range) return node.range[0]
      }
      return 0
    }
    if (decoded._tag === "Success") {
      return { settings: decoded.success, place: (...keys) => problem(at(keys), keys.join(".")) }
    }
    const { issues } = SchemaIssue.makeFormatterStandardSchemaV1()(decoded.failure.issue)
    const problems = issues.map(({ path, message }) => {
      const keys = (path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
      const place = keys.join(".")
      const parent = keys.slice(0, -1).filter((key) => typeof key !== "number")
      const allowed = allowedKeys.get(
        parent[0] === "resources" && parent.length === 2 ? "resources.*" : parent.join(".")
      )
      const told =
        message === "Expected no excess property"
          ? `there is no such setting${allowed === undefined ? "" : `; allowed: ${allowed.join(", ")}`}`
          : message.replace(/^Expected/, "expected")
      return problem(at(keys), `${place}: ${told}`)
    })
    return yield* new ConfigurationError({ problems })
  })

const dayMs = 24 * 60 * 60 * 1000

const engineOf = ({ sync }: Settings): EngineSettings => {
  const days = sync?.full_scan_every_days
  const percent = sync?.deletions_max_percent
  return {
    overlapMs: sync?.overlap_seconds === undefined ? engineDefault.overlapMs : sync.overlap_seconds * 1000,
    fullScanEveryMs: days === undefined ? engineDefault.fullScanEveryMs : days === 0 ? null : days * dayMs,
    cursorlessScanEveryMs:
      sync?.sweep_every_minutes === undefined ? engineDefault.cursorlessScanEveryMs : sync.sweep_every_minutes * 60_000,
    deletionsShareMax: percent === undefined ? engineDefault.deletionsShareMax : percent / 100
  }
}

const webhooksDefault = {
  listen: "127.0.0.1:8085",
  toleranceSeconds: 300,
  aheadSeconds: 60,
  bodyMaxKilobytes: 1024,
  connectionsPerAddress: 64,
  keepDays: 30,
  checkMinutes: 5,
  rotateField: "secret"
} as const

/** Whether the host is this machine: 127/8, `::1`, `localhost`. */
const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host)

/** What is wrong with the address that the service is told, or undefined. */
const wrongPublicUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return "is no address"
  const url = new URL(text)
  if (url.protocol !== "https:") return "is not https, and the service delivers to nothing else"
  if (url.username !== "" || url.password !== "") return "carries credentials"
  if (url.search !== "" || url.hash !== "") return "carries a query or a fragment"
  return undefined
}

const webhooksOf = (
  settings: Settings,
  place: Read["place"],
  listenFlag: string | undefined,
  problems: Array<string>
): WebhookConfiguration => {
  const { webhooks = {} } = settings
  const wrong = (key: string, told: string) => problems.push(`${place("webhooks", key)}: ${told}`)

  if (listenFlag !== undefined && !listenPattern.test(listenFlag)) {
    problems.push("--listen: expected host:port, for example 127.0.0.1:8085")
  }
  const listen = listenFlag ?? webhooks.listen ?? webhooksDefault.listen
  const [, bracketed = "127.0.0.1", digits = "0"] = listenPattern.exec(listen) ?? []
  const host = bracketed.replace(/^\[(.*)\]$/, "$1")
  const port = Number(digits)
  const wrongListen = (told: string) =>
    listenFlag === undefined ? wrong("listen", told) : problems.push(`--listen: ${told}`)
  if (port > 65_535) wrongListen(`${port} is no port; expected 0 (any free one) to 65535`)

  const { certificate, key, public_url: publicUrl } = webhooks
  if (certificate !== undefined && key === undefined) wrong("certificate", "set key too, or neither of the two")
  if (key !== undefined && certificate === undefined) wrong("key", "set certificate too, or neither of the two")
  const acceptsHttp = settings.allow_http === true || webhooks.allow_http === true
  if (certificate === undefined && key === undefined && !isLoopback(host) && !acceptsHttp) {
    wrongListen(
      `${host} is reachable from other machines, which would talk plain http to it; ` +
        "set certificate and key, or listen on 127.0.0.1 behind a proxy, or set webhooks.allow_http if you accept that"
    )
  }
  const problem = publicUrl === undefined ? undefined : wrongPublicUrl(publicUrl)
  if (problem !== undefined) {
    wrong(
      "public_url",
      `${problem}; expected the address before /hooks/<company>, for example https://hooks.example.com`
    )
  }
  return {
    host,
    port,
    // As the source may write it, too: the host in lower case, no port that goes without saying.
    publicUrl: publicUrl === undefined || problem !== undefined ? null : new URL(publicUrl).href.replace(/\/+$/, ""),
    tls:
      certificate === undefined || key === undefined ? null : { certificate: resolve(certificate), key: resolve(key) },
    events: webhooks.events ?? null,
    toleranceMs: (webhooks.tolerance_seconds ?? webhooksDefault.toleranceSeconds) * 1000,
    aheadMs: webhooksDefault.aheadSeconds * 1000,
    bodyBytesMax: (webhooks.body_max_kilobytes ?? webhooksDefault.bodyMaxKilobytes) * 1024,
    connectionsPerAddressMax: webhooks.connections_per_address ?? webhooksDefault.connectionsPerAddress,
    keepMs: (webhooks.keep_days ?? webhooksDefault.keepDays) * dayMs,
    checkEveryMs: (webhooks.check_minutes ?? webhooksDefault.checkMinutes) * 60_000,
    rotateField: webhooks.rotate_field ?? webhooksDefault.rotateField
  }
}

const hourMs = 60 * 60 * 1000

const pushOf = ({ push = {} }: Settings): PushConfiguration => ({
  batchRecordsMax: push.batch_size ?? 250,
  useBatch: push.use_batch ?? true,
  keyAgeMaxMs: Math.round((push.idempotency_max_age_hours ?? 23) * hourMs),
  concurrency: push.concurrency ?? 4
})

const unitsMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: hourMs, d: dayMs }

/** `90s`, `10m`, `2h`, `1d`; the Schema has seen that it is one. */
const durationOf = (text: string): number => Number(text.slice(0, -1)) * (unitsMs[text.slice(-1)] ?? 0)

/** A schedule that keeps the promise, where nobody says one. */
const autoMs = (freshnessMs: number): number => Math.max(60_000, Math.round((freshnessMs * 2) / 3))

const schedulesOf = (
  { schedule = {} }: Settings,
  place: Read["place"],
  freshnessOf: (resource: string) => number,
  problems: Array<string>
): Configuration["scheduleOf"] => {
  type Wish = NonNullable<typeof schedule.default>
  /** What holds of a time, whenever it is: as said beside it, else for all. */
  const manner = (own: Exclude<Wish, "off"> | undefined): Omit<ResourceSchedule, "timing"> => {
    const jitterSeconds = own?.jitter_seconds ?? schedule.jitter_seconds
    return {
      missed: own?.missed ?? schedule.missed ?? "once",
      jitterMs: jitterSeconds === undefined ? null : jitterSeconds * 1000
    }
  }
  const of = (wish: Wish, where: ReadonlyArray<string>): ResourceSchedule => {
    if (wish === "off") return { ...manner(undefined), timing: { kind: "off" } }
    if ("every" in wish) return { ...manner(wish), timing: { kind: "every", everyMs: durationOf(wish.every) } }
    const timeZone = wish.time_zone ?? schedule.time_zone ?? "UTC"
    const wrong = Cron.wrongCron(wish.cron)
    if (wrong !== undefined) problems.push(`${place("schedule", ...where, "cron")}: ${wrong}`)
    return { ...manner(wish), timing: { kind: "cron", expression: wish.cron, timeZone } }
  }
  const byResource = new Map(
    Object.entries(schedule.resources ?? {}).map(([resource, wish]) => [resource, of(wish, ["resources", resource])])
  )
  const fallback = schedule.default === undefined ? undefined : of(schedule.default, ["default"])
  return (resource) =>
    byResource.get(resource) ??
    fallback ?? { ...manner(undefined), timing: { kind: "every", everyMs: autoMs(freshnessOf(resource)) } }
}

const dashboardDefault = { listen: "127.0.0.1:8086", passwordVariable: "TRIBUTARY_DASHBOARD_PASSWORD" } as const

const dashboardOf = (
  settings: Settings,
  place: Read["place"],
  flag: string | undefined,
  variable: (name: string) => string | undefined,
  problems: Array<string>
): DashboardConfiguration | null => {
  const { dashboard = {} } = settings
  const listen = flag ?? dashboard.listen ?? dashboardDefault.listen
  if (listen === "off") return null
  const wrong = (key: string, told: string) =>
    problems.push(
      flag !== undefined && key === "listen" ? `--dashboard: ${told}` : `${place("dashboard", key)}: ${told}`
    )
  const parts = listenPattern.exec(listen)
  if (parts === null) {
    wrong("listen", "expected off, or host:port, for example 127.0.0.1:8086")
    return null
  }
  const [, bracketed = "127.0.0.1", digits = "0"] = parts
  const host = bracketed.replace(/^\[(.*)\]$/, "$1")
  const port = Number(digits)
  if (port > 65_535) wrong("listen", `${port} is no port; expected 0 (any free one) to 65535`)
  const { certificate, key, password_env: name, public_url: publicUrl } = dashboard
  const password = variable(name ?? dashboardDefault.passwordVariable)
  if (name !== undefined && password === undefined)
    wrong("password_env", `${name} is not set in the environment or .env`)
  if (password !== undefined && password.length < 8) wrong("password_env", "the password has fewer than 8 characters")
  if (certificate !== undefined && key === undefined) wrong("certificate", "set key too, or neither of the two")
  if (key !== undefined && certificate === undefined) wrong("key", "set certificate too, or neither of the two")
  if (!isLoopback(host)) {
    if (password === undefined) {
      wrong(
        "listen",
        `${host} is reachable from other machines: set a password (dashboard.password_env, or ` +
          `${dashboardDefault.passwordVariable}), or listen on 127.0.0.1`
      )
    }
    if (certificate === undefined && settings.allow_http !== true && dashboard.allow_http !== true) {
      wrong(
        "listen",
        `${host} is reachable from other machines, to which the password would go in clear; set certificate and key, ` +
          "or listen on 127.0.0.1 behind a proxy, or set dashboard.allow_http if you accept that"
      )
    }
  }
  if (publicUrl !== undefined && (!URL.canParse(publicUrl) || !/^https?:$/.test(new URL(publicUrl).protocol))) {
    wrong("public_url", "expected an address, for example https://tributary.example.com")
  } else if (publicUrl !== undefined && new URL(publicUrl).pathname !== "/") {
    wrong("public_url", "the page has to be at the root of its address; give it a name of its own")
  } else if (publicUrl !== undefined && password === undefined) {
    wrong("public_url", `set a password too (dashboard.password_env, or ${dashboardDefault.passwordVariable})`)
  }
  return {
    host,
    port,
    tls:
      certificate === undefined || key === undefined ? null : { certificate: resolve(certificate), key: resolve(key) },
    password: password === undefined ? null : Redacted.make(password, { label: "password of the page" }),
    publicUrl: publicUrl === undefined ? null : publicUrl.replace(/\/+$/, "")
  }
}

const metricsTokenVariable = "TRIBUTARY_METRICS_TOKEN"

const monitoringOf = (
  { monitoring = {} }: Settings,
  place: Read["place"],
  flag: string | undefined,
  variable: (name: string) => string | undefined,
  problems: Array<string>
): MonitoringConfiguration => {
  const listen = flag ?? monitoring.listen
  const [, bracketed, digits] = listenPattern.exec(listen ?? "") ?? []
  if (listen !== undefined && (bracketed === undefined || Number(digits) > 65_535)) {
    const where = flag === undefined ? place("monitoring", "listen") : "--monitoring"
    problems.push(`${where}: expected host:port, for example 127.0.0.1:8087`)
  }
  const { token_env: name } = monitoring
  const token = variable(name ?? metricsTokenVariable)
  if (name !== undefined && token === undefined) {
    problems.push(`${place("monitoring", "token_env")}: ${name} is not set in the environment or .env`)
  }
  return {
    listen: bracketed === undefined ? null : { host: bracketed.replace(/^\[(.*)\]$/, "$1"), port: Number(digits) },
    token: token === undefined ? null : Redacted.make(token, { label: "token of the metrics" })
  }
}

const retentionOf = ({ retention = {} }: Settings): RetentionConfiguration => ({
  runsMs: (retention.runs_days ?? 90) * dayMs,
  quarantineMs: (retention.quarantine_days ?? 90) * dayMs,
  outboxMs: (retention.outbox_days ?? 90) * dayMs,
  historyMs: retention.history_days === undefined ? null : retention.history_days * dayMs
})

/** Reads all the places that configure a run. Empty variables count as unset. */
/** What stands in the environment, or else in `.env`. An empty one counts as unset, and hides nothing. */
export const variables = (
  environment: Readonly<Record<string, string | undefined>>
): ((name: string) => string | undefined) => {
  const dotEnv = existsSync(".env") ? parseDotEnv(readFileSync(".env")) : {}
  return (name) =>
    [environment[name], dotEnv[name]].map((value) => value?.trim()).find((value) => value !== undefined && value !== "")
}

/** A variable's name for messages; what may be a secret that somebody put in its place is not repeated. */
export const variableStatus = (name: string): string =>
  /^[A-Za-z_]\w*$/.test(name) && !name.startsWith("whsec_") ? name : "the variable that is named"

/** The companies with these names, or all where no name is given; a name that is not configured is an error. */
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

export const load = Effect.fn("Configuration.load")(function* (
  flags: ConfigurationFlags,
  environment: Readonly<Record<string, string | undefined>>
): Effect.fn.Return<Configuration, ConfigurationError> {
  const variable = variables(environment)
  const file = flags.config ?? settingsFileDefault
  if (flags.config !== undefined && !existsSync(file)) {
    return yield* new ConfigurationError({ problems: [`${file}: there is no such file`] })
  }
  const { settings, place }: Read = existsSync(file)
    ? yield* readSettings(file)
    : { settings: {}, place: (...keys) => keys.join(".") }

  const problems: Array<string> = []
  const url = flags.url ?? variable("SERVICE_API_URL")
  const company = (one: CompanySettings, index: number): CompanyConfiguration | undefined => {
    const address = one.url ?? url
    const token = one.token_env === undefined ? (one.token ?? variable("SERVICE_API_TOKEN")) : variable(one.token_env)
    if (address === undefined) problems.push(`company ${one.name}: set its url, or SERVICE_API_URL`)
    if (token === undefined) {
      problems.push(
        one.token_env === undefined
          ? `company ${one.name}: set token_env, or SERVICE_API_TOKEN`
          : `company ${one.name}: ${one.token_env} is not set in the environment or .env`
      )
    }
    const webhookSecrets = (one.webhook_secrets_env ?? []).flatMap((name, position) => {
      const secret = variable(name)
      if (secret !== undefined) return [Redacted.make(secret, { label: `signing secret of ${one.name}` })]
      problems.push(
        `${place("companies", index, "webhook_secrets_env", position)}: ${variableStatus(name)} is not set in the environment or .env`
      )
      return []
    })
    if (address === undefined || token === undefined) return undefined
    return {
      name: one.name,
      url: address,
      token: Redacted.make(token, { label: `token of ${one.name}` }),
      companyId: one.company_id === undefined ? null : BigInt(one.company_id),
      resources: one.resources ?? null,
      webhookSecrets,
      webhookEvents: one.webhook_events ?? null
    }
  }
  const named = settings.companies ?? []
  const implied = named.length === 0 && (url !== undefined || variable("SERVICE_API_TOKEN") !== undefined)
  const companies = (implied ? [{ name: "main" }] : named).map(company).filter((one) => one !== undefined)
  const names = companies.map((one) => one.name)
  for (const twice of new Set(names.filter((one, index) => names.indexOf(one) !== index))) {
    problems.push(`two companies are called ${twice}`)
  }
  const webhooks = webhooksOf(settings, place, flags.listen, problems)
  const dashboard = dashboardOf(settings, place, flags.dashboard, variable, problems)
  const monitoring = monitoringOf(settings, place, flags.monitoring, variable, problems)
  const freshnessOf = (resource: string) => {
    const minutes = settings.freshness?.resources?.[resource] ?? settings.freshness?.default_minutes
    return minutes === undefined ? freshnessDefaultMs : minutes * 60_000
  }
  const scheduleOf = schedulesOf(settings, place, freshnessOf, problems)
  if (problems.length > 0) return yield* new ConfigurationError({ problems })

  const databaseUrl = variable("DATABASE_URL")
  const readerUrl = databaseUrl === undefined ? undefined : variable("DATABASE_READER_URL")
  const perMinute = settings.budget?.requests_per_minute
  const reserved = (allowed: number) =>
    Math.max(1, Math.floor((allowed * (100 - (settings.budget?.reserve_percent ?? 0))) / 100))
  return {
    databaseUrl: databaseUrl === undefined ? null : Redacted.make(databaseUrl, { label: "DATABASE_URL" }),
    readerUrl: readerUrl === undefined ? null : Redacted.make(readerUrl, { label: "DATABASE_READER_URL" }),
    home: resolve(variable("TRIBUTARY_HOME") ?? homeDefault),
    companies,
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
    requestsPerMinute: perMinute === "unlimited" ? null : reserved(perMinute ?? requestsPerMinuteDefault),
    budgetScope: settings.budget?.scope ?? "token",
    requestTimeoutMs: (settings.requests?.timeout_seconds ?? 60) * 1000,
    attemptsMax: settings.requests?.attempts_max ?? 8,
    retryAfterMaxMs: (settings.requests?.retry_after_max_seconds ?? 900) * 1000,
    pagingMode: settings.paging?.mode ?? "auto",
    pageSize: settings.paging?.page_size ?? null,
    itemsKey: settings.list?.items_key ?? null,
    customFields: settings.sync?.custom_fields ?? false,
    concurrency: settings.sync?.concurrency ?? 4,
    batchRecordsMax: settings.sync?.batch_records ?? batchRecordsMaxDefault,
    engine: engineOf(settings),
    freshnessOf,
    allowHttp: settings.allow_http ?? false,
    webhooks,
    push: pushOf(settings),
    scheduleOf,
    retention: retentionOf(settings),
    dashboard,
    monitoring
  }
})
