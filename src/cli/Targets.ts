/** The companies and resources that a command line names, and their connections to the source. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import * as StoredCompanies from "../companies/StoredCompanies.ts"
import type { CompanyConfiguration } from "../configuration/Companies.ts"
import * as Configuration from "../configuration/Configuration.ts"
import { ConfigurationError } from "../configuration/ConfigurationError.ts"
import { isInstalled } from "../postgres/embedded/DataDirectory.ts"
import * as SourceGuard from "../sync/SourceGuard.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import { configuration, requireWarehouse } from "./Command.ts"
import { chooseResources, exclusionProblem, unknownResource } from "./CompanyResources.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { Source } from "./Source.ts"
import * as Warehouse from "./Warehouse.ts"

/** The companies and resources of a command; all where none is named. */
interface TargetOptions {
  readonly companies: ReadonlyArray<string>
  readonly resources?: ReadonlyArray<string>
  readonly acceptNewSource?: boolean
  /** Whether no warehouse is made where there is none. */
  readonly isReading?: boolean
}

/** A resource of the catalogue by its path. */
export const resourceOf = Effect.fnUntraced(function* (settings: Configuration.Configuration, path: string) {
  const catalogue = yield* catalogueOf(settings)
  const resource = catalogue.resources.get(path)
  return resource ?? (yield* new ConfigurationError({ problems: [unknownResource(catalogue, path)] }))
})

/** Refuses a resource of the command line that the company excludes. */
export const refuseExcluded = (
  { companies }: Configuration.Configuration,
  name: string,
  path: string
): Effect.Effect<void, ConfigurationError> => {
  const company = companies.find((one) => one.name === name)
  const problem = company === undefined ? null : exclusionProblem(company, path, "the push")
  return problem === null ? Effect.void : Effect.fail(new ConfigurationError({ problems: [problem] }))
}

const noSource = Effect.flatMap(isInstalled, (hasDemo) =>
  Effect.fail(
    new ConfigurationError({
      problems: [
        "no source is configured: set SERVICE_API_URL and SERVICE_API_TOKEN, or write config/tributary.yaml, or set " +
          "TRIBUTARY_COMPANIES_KEY and add a company to the warehouse: tributary company add NAME",
        ...(hasDemo ? ["to try it without a source: tributary demo"] : [])
      ]
    })
  )
)

/** A company with its resources. */
const withResources = Effect.fnUntraced(function* (
  catalogue: Catalogue,
  company: CompanyConfiguration,
  named: ReadonlyArray<string>
) {
  const { problems, resources } = chooseResources(catalogue, company, named)
  if (problems.length > 0) return yield* new ConfigurationError({ problems })
  return {
    company,
    resources,
    named: named.length > 0 || company.resources !== null
  }
})

/** Why the companies with these names (none: all) cannot be worked on. */
const refusalsOf = (
  { companies, unusable }: Configuration.Configuration,
  names: ReadonlyArray<string>
): ReadonlyArray<string> => [
  ...unusable.flatMap(({ name, problem, paused }) =>
    names.includes(name) || (names.length === 0 && paused === null) ? [problem] : []
  ),
  ...companies.flatMap(({ name, paused }) =>
    paused !== null && names.includes(name)
      ? [
          `company ${name} is paused since ${paused.at.toISOString()} by ${paused.by}; to resume it: ` +
            `tributary company resume ${name}`
        ]
      : []
  )
]

/** The companies with their resources: those named on the command line, else all that are not paused. */
const choose = Effect.fnUntraced(function* (settings: Configuration.Configuration, options: TargetOptions) {
  const catalogue = yield* catalogueOf(settings)
  if (Configuration.namesOf(settings).length === 0) return yield* noSource
  const { companies, resources = [] } = options
  const chosen = yield* Configuration.chooseCompanies(settings, companies)
  const problems = refusalsOf(settings, companies)
  if (problems.length > 0) return yield* new ConfigurationError({ problems })
  const active = chosen.filter(({ paused }) => paused === null)
  if (active.length === 0) {
    return yield* new ConfigurationError({
      problems: ["every company is paused; to resume one: tributary company resume NAME"]
    })
  }
  return yield* Effect.forEach(active, (company) => withResources(catalogue, company, resources))
})

/** Whether the warehouse may have companies: it exists. */
export const mayHaveCompanies = Warehouse.exists

/**
 * The names and resources of the chosen companies of the file. A mistake in it fails before anything starts. Where
 * `isOpen`, other companies may be named: the warehouse may have them.
 */
export const check = Effect.fnUntraced(function* (
  settings: Configuration.Configuration,
  options: TargetOptions,
  isOpen: boolean
) {
  const source = yield* Source
  const names = settings.companies.map(({ name }) => name)
  const inFile = options.companies.filter((name) => names.includes(name))
  if (isOpen && (names.length === 0 || (inFile.length === 0 && options.companies.length > 0))) return []
  return yield* Effect.forEach(
    yield* choose(settings, isOpen ? { ...options, companies: inFile } : options),
    ({ company, resources }) => Effect.as(source.connect(company, settings), { name: company.name, resources })
  )
}, Effect.scoped)

type Target = Effect.Success<ReturnType<typeof withResources>>

const connectTarget = Effect.fnUntraced(function* (
  settings: Configuration.Configuration,
  { company, resources, named }: Target,
  acceptNewSource: boolean
) {
  const connector = yield* (yield* Source).connect(company, settings)
  const guarded = yield* SourceGuard.guarded(
    { ...company, configured: settings.companies.map(({ name }) => name) },
    connector,
    acceptNewSource
  )
  return {
    name: company.name,
    connector: guarded,
    resources,
    named,
    engine: company.installation.engine,
    pageSize: company.installation.pageSize
  } satisfies SyncCompany
})

/** The chosen companies, connected within the warehouse, where all processes share the rate budget. Sends no request. */
export const connect = Effect.fnUntraced(function* (settings: Configuration.Configuration, options: TargetOptions) {
  return yield* Effect.forEach(yield* choose(settings, options), (target) =>
    connectTarget(settings, target, options.acceptNewSource ?? false)
  )
})

/** A company with its configured resources, connected like those of {@link connect}. */
export const connectOne = Effect.fnUntraced(function* (
  settings: Configuration.Configuration,
  company: CompanyConfiguration
) {
  const target = yield* withResources(yield* catalogueOf(settings), company, [])
  return yield* connectTarget(settings, target, false)
})

/** Reads the configuration, and runs the body on its warehouse with the chosen companies. */
export const onTargets = Effect.fnUntraced(function* <A, E, R>(
  flags: { readonly config: Option.Option<string>; readonly url: Option.Option<string> },
  options: TargetOptions,
  body: (settings: Configuration.Configuration, companies: ReadonlyArray<SyncCompany>) => Effect.Effect<A, E, R>
) {
  const file = yield* configuration(flags.config, { url: Option.getOrUndefined(flags.url) })
  const { isReading: mustExist = false } = options
  if (mustExist) yield* requireWarehouse(file)
  yield* check(file, options, yield* mayHaveCompanies(file))
  return yield* StoredCompanies.extend(file).pipe(
    Effect.flatMap((settings) => Effect.flatMap(connect(settings, options), (companies) => body(settings, companies))),
    Effect.scoped,
    (effect) => Warehouse.provide(effect, { ...file, mustExist })
  )
})
