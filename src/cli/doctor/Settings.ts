/** The check of the configuration: it loads, names a company, and names only resources that exist. */
import { existsSync, readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import * as Configuration from "../../configuration/Configuration.ts"
import { catalogueOf } from "../EffectiveCatalogue.ts"
import type { Source } from "../Source.ts"
import { about, type Findings } from "./Finding.ts"

export interface LoadedSettings {
  readonly findings: Findings
  /** Null when the configuration is invalid. */
  readonly loaded: { readonly settings: Configuration.Configuration; readonly catalogue: Catalogue } | null
}

const configDefault = "config/tributary.yaml"
const { ok, warning, failed } = about("configuration")

const perResource = Schema.optionalKey(
  Schema.Struct({ resources: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)) })
)

/** The settings of single resources outside `companies`. */
const ResourceSettings = Schema.Struct({ freshness: perResource, schedule: perResource })

/** Each setting of a single resource in the file, with the resource that it names. */
const namedResources = Effect.fnUntraced(function* (file: string) {
  const { parse } = yield* Effect.promise(() => import("yaml"))
  const text = existsSync(file) ? readFileSync(file, "utf8") : ""
  const settings = Schema.decodeUnknownOption(ResourceSettings)(parse(text) ?? {})
  if (settings._tag === "None") return []
  return (["freshness", "schedule"] as const).flatMap((section) =>
    Object.keys(settings.value[section]?.resources ?? {}).map((path) => ({ setting: `${section}.resources`, path }))
  )
})

const unknownResources = Effect.fnUntraced(function* (
  file: string,
  { companies }: Configuration.Configuration,
  catalogue: Catalogue
) {
  const isUnknown = (path: string) => !catalogue.resources.has(path)
  return [
    ...companies.flatMap(({ name, resources }) => {
      const unknown = (resources ?? []).filter(isUnknown)
      return unknown.length === 0
        ? []
        : [
            failed(
              "configuration",
              `company ${name} names resources that do not exist: ${unknown.join(", ")}`,
              "correct them under companies; declare a resource that the catalogue lacks under resources"
            )
          ]
    }),
    ...(yield* namedResources(file))
      .filter(({ path }) => isUnknown(path))
      .map(({ setting, path }) =>
        warning(`${setting} names ${path}, which does not exist: it has no effect`, "correct or remove it")
      )
  ]
})

export const loadSettings = Effect.fnUntraced(function* (
  config: string | null
): Effect.fn.Return<LoadedSettings, never, Source> {
  const file = config ?? configDefault
  const result = yield* Effect.result(
    Effect.gen(function* () {
      const settings = yield* Configuration.load({ config: config ?? undefined }, process.env)
      return { settings, catalogue: yield* catalogueOf(settings) }
    })
  )
  if (result._tag === "Failure") {
    const findings = result.failure.problems.map((problem) =>
      failed("configuration", problem, "correct it; npx tributary init writes a new configuration")
    )
    return { findings, loaded: null }
  }
  const { settings, catalogue } = result.success
  const names = settings.companies.map(({ name }) => name)
  if (names.length === 0) {
    const finding = failed(
      "configuration",
      existsSync(file) ? `${file} names no company` : "no source is configured",
      "npx tributary init writes a configuration; npx tributary demo works without one"
    )
    return { findings: [finding], loaded: result.success }
  }
  const problems = yield* unknownResources(file, settings, catalogue)
  const place = existsSync(file) ? file : "the environment"
  return {
    loaded: result.success,
    findings:
      problems.length > 0
        ? problems
        : [ok(`${place}: ${names.length === 1 ? "company" : "companies"} ${names.join(", ")}`)]
  }
})
