/** The check of the configuration: it loads, names a company, and names only resources that exist. */
import * as Effect from "effect/Effect"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import * as Configuration from "../../configuration/Configuration.ts"
import { readInputs } from "../../configuration/Inputs.ts"
import type { Settings } from "../../configuration/Settings.ts"
import { isInstalled } from "../../postgres/embedded/DataDirectory.ts"
import { chooseResources } from "../CompanyResources.ts"
import { catalogueOf } from "../EffectiveCatalogue.ts"
import * as Output from "../Output.ts"
import type { Source } from "../Source.ts"
import { about, type Checked, type Finding, type Findings } from "./Finding.ts"

export interface LoadedSettings {
  readonly settings: Configuration.Configuration
  readonly catalogue: Catalogue
  /** For the case that the warehouse has no company either. */
  readonly noCompany: Finding
}

/** Companies that a finding names; further ones are only counted. */
const namesMax = 20

const { ok, warning, failed } = about("configuration")

/** The settings of single resources outside `companies`, with the resources that they name. */
const namedResources = ({ freshness, schedule }: Settings) =>
  Object.entries({ freshness, schedule }).flatMap(([section, { resources }]) =>
    Object.keys(resources).map((path) => ({ setting: `${section}.resources`, path }))
  )

const unknownResources = (
  { companies }: Configuration.Configuration,
  file: Settings,
  catalogue: Catalogue
): Findings => {
  return [
    ...[...new Set(companies.flatMap((company) => chooseResources(catalogue, company).problems))].map((problem) =>
      failed("configuration", problem, "correct the list; declare a resource that the catalogue lacks under resources")
    ),
    ...namedResources(file)
      .filter(({ path }) => !catalogue.resources.has(path))
      .map(({ setting, path }) =>
        warning(`${setting} names ${path}, which does not exist: it has no effect`, "correct or remove it")
      )
  ]
}

/** Loads the configuration of a file; null is the default one. No value where it is invalid. */
export const loadSettings = Effect.fnUntraced(function* (
  config: string | null
): Effect.fn.Return<Checked<LoadedSettings>, never, Source> {
  const flags = { config: config ?? undefined }
  const result = yield* Effect.result(
    Effect.gen(function* () {
      const settings = yield* Configuration.load(flags, process.env)
      const inputs = yield* readInputs(flags, process.env)
      return { settings, file: inputs.settings, path: inputs.path, catalogue: yield* catalogueOf(settings) }
    })
  )
  if (result._tag === "Failure") {
    const findings = result.failure.problems.map((problem) =>
      failed("configuration", problem, "correct it; tributary init writes a new configuration")
    )
    return { findings, value: null }
  }
  const { settings, file, path, catalogue } = result.success
  const names = settings.companies.map(({ name }) => name)
  const noCompany = failed(
    "configuration",
    path === null ? "no source is configured" : `${path} names no company`,
    "tributary init writes a configuration; tributary company add adds a company to the warehouse" +
      ((yield* isInstalled) ? "; tributary demo works without one" : "")
  )
  const value = { ...result.success, noCompany }
  if (names.length === 0) return { findings: [], value }
  const problems = unknownResources(settings, file, catalogue)
  const place = path ?? "the environment"
  const text = `${place}: ${names.length === 1 ? "company" : "companies"} ${Output.firstOf(names, namesMax)}`
  return { findings: problems.length > 0 ? problems : [ok(text)], value }
})
