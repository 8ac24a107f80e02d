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
import type { ConfiguredResource } from "../model/Overlay.ts"
import { type Datasets, datasetsDefault } from "../model/Table.ts"
import { batchRecordsMaxDefault, engineDefault, type EngineSettings } from "../pipeline/SyncResource.ts"
import { freshnessDefaultMs } from "../pipeline/Sync.ts"
import { allowedKeys, type CompanySettings, Settings } from "./Settings.ts"

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
}

export type PagingMode = "auto" | "cursor" | "page" | "offset" | "link" | "none"

export interface Configuration {
  /** Null means the embedded Postgres. */
  readonly databaseUrl: Redacted.Redacted | null
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
}

export interface ConfigurationFlags {
  readonly config?: string | undefined
  readonly url?: string | undefined
}

const settingsFileDefault = "config/tributary.yaml"
const homeDefault = ".tributary"
const requestsPerMinuteDefault = 500

/** Reads a YAML file by the Schema; every mistake with its line. */
const readSettings = (file: string): Effect.Effect<Settings, ConfigurationError> =>
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
    if (decoded._tag === "Success") return decoded.success
    const { issues } = SchemaIssue.makeFormatterStandardSchemaV1()(decoded.failure.issue)
    const problems = issues.map(({ path, message }) => {
      const keys = (path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
      // The nearest node that exists: a missing key has none of its own.
      let offset = 0
      for (let length = keys.length; length >= 0; length -= 1) {
        const node = length === 0 ? document.contents : document.getIn(keys.slice(0, length), true)
        if (isNode(node) && node.range) {
          offset = node.range[0]
          break
        }
      }
      const place = keys.join(".")
      const parent = keys.slice(0, -1).filter((key) => typeof key !== "number")
      const allowed = allowedKeys.get(
        parent[0] === "resources" && parent.length === 2 ? "resources.*" : parent.join(".")
      )
      const told =
        message === "Expected no excess property"
          ? `there is no such setting${allowed === undefined ? "" : `; allowed: ${allowed.join(", ")}`}`
          : message.replace(/^Expected/, "expected")
      return problem(offset, `${place}: ${told}`)
    })
    return yield* new ConfigurationError({ problems })
  })

const dayMs = 24 * 60 * 60 * 1000

const engineOf = ({ sync }: Settings): EngineSettings => {
  const days = sync?.full_scan_every_days
  const percent = sync?.deletions_max_percent
  return {
    overlapMs: sync?.overlap_seconds === undefined ? engineDefault.overlapMs : sync.overlap_seconds * 1000,
    fullEveryMs: days === undefined ? engineDefault.fullEveryMs : days === 0 ? null : days * dayMs,
    sweepEveryMs:
      sync?.sweep_every_minutes === undefined ? engineDefault.sweepEveryMs : sync.sweep_every_minutes * 60_000,
    deletionsShareMax: percent === undefined ? engineDefault.deletionsShareMax : percent / 100
  }
}

/** Reads all the places that configure a run. Empty variables count as unset. */
export const load = Effect.fn("Configuration.load")(function* (
  flags: ConfigurationFlags,
  environment: Readonly<Record<string, string | undefined>>
): Effect.fn.Return<Configuration, ConfigurationError> {
  const dotEnv = existsSync(".env") ? parseDotEnv(readFileSync(".env")) : {}
  const variable = (name: string): string | undefined => {
    const value = environment[name] ?? dotEnv[name]
    return value === undefined || value.trim() === "" ? undefined : value.trim()
  }
  const file = flags.config ?? settingsFileDefault
  if (flags.config !== undefined && !existsSync(file)) {
    return yield* new ConfigurationError({ problems: [`${file}: there is no such file`] })
  }
  const settings: Settings = existsSync(file) ? yield* readSettings(file) : {}

  const problems: Array<string> = []
  const url = flags.url ?? variable("SERVICE_API_URL")
  const company = (one: CompanySettings): CompanyConfiguration | undefined => {
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
    if (address === undefined || token === undefined) return undefined
    return {
      name: one.name,
      url: address,
      token: Redacted.make(token, { label: `token of ${one.name}` }),
      companyId: one.company_id === undefined ? null : BigInt(one.company_id),
      resources: one.resources ?? null
    }
  }
  const named = settings.companies ?? []
  const implied = named.length === 0 && (url !== undefined || variable("SERVICE_API_TOKEN") !== undefined)
  const companies = (implied ? [{ name: "main" }] : named).map(company).filter((one) => one !== undefined)
  const names = companies.map((one) => one.name)
  for (const twice of new Set(names.filter((one, index) => names.indexOf(one) !== index))) {
    problems.push(`two companies are called ${twice}`)
  }
  if (problems.length > 0) return yield* new ConfigurationError({ problems })

  const databaseUrl = variable("DATABASE_URL")
  const perMinute = settings.budget?.requests_per_minute
  const reserved = (allowed: number) =>
    Math.max(1, Math.floor((allowed * (100 - (settings.budget?.reserve_percent ?? 0))) / 100))
  return {
    databaseUrl: databaseUrl === undefined ? null : Redacted.make(databaseUrl, { label: "DATABASE_URL" }),
    home: resolve(variable("TRIBUTARY_HOME") ?? homeDefault),
    companies,
    resources: Object.entries(settings.resources ?? {}).map(([path, one]) => ({
      path,
      area: one.area ?? null,
      modifiedSince: one.modifiedsince ?? false,
      cancel: one.cancel ?? false,
      key: one.key ?? null
    })),
    datasets: {
      current: settings.warehouse?.current ?? datasetsDefault.current,
      history: settings.warehouse?.history ?? datasetsDefault.history
    },
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
    freshnessOf: (resource) => {
      const minutes = settings.freshness?.resources?.[resource] ?? settings.freshness?.default_minutes
      return minutes === undefined ? freshnessDefaultMs : minutes * 60_000
    },
    allowHttp: settings.allow_http ?? false
  }
})
