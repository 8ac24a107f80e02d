/** The companies and resources that a command line names, and their connections to the source. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import { chooseCompanies, type Configuration } from "../configuration/Configuration.ts"
import { ConfigurationError } from "../configuration/ConfigurationError.ts"
import * as SourceGuard from "../sync/SourceGuard.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import { configuration } from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { Source } from "./Source.ts"
import * as Warehouse from "./Warehouse.ts"

/** The companies and resources of a command; all where none is named. */
interface TargetOptions {
  readonly companies: ReadonlyArray<string>
  readonly resources?: ReadonlyArray<string>
  readonly acceptNewSource?: boolean
}

const unknownResources = ({ resources }: Catalogue, paths: ReadonlyArray<string>) =>
  new ConfigurationError({
    problems: paths.map(
      (path) => `there is no resource "${path}"; the catalogue has ${[...resources.keys()].sort().join(", ")}`
    )
  })

/** A resource of the catalogue by its path. */
export const resourceOf = Effect.fnUntraced(function* (settings: Configuration, path: string) {
  const catalogue = yield* catalogueOf(settings)
  return catalogue.resources.get(path) ?? (yield* unknownResources(catalogue, [path]))
})

/** The companies with their resources: those named on the command line, else in the configuration, else all. */
const choose = Effect.fnUntraced(function* (settings: Configuration, options: TargetOptions) {
  const catalogue = yield* catalogueOf(settings)
  if (settings.companies.length === 0) {
    return yield* new ConfigurationError({
      problems: [
        "no source is configured: set SERVICE_API_URL and SERVICE_API_TOKEN, or write config/tributary.yaml",
        "to try it without a source: npx tributary demo"
      ]
    })
  }
  const { companies, resources = [] } = options
  return yield* Effect.forEach(
    yield* chooseCompanies(settings, companies),
    Effect.fnUntraced(function* (company) {
      const paths = resources.length > 0 ? resources : (company.resources ?? [...catalogue.resources.keys()])
      const unknown = paths.filter((path) => !catalogue.resources.has(path))
      if (unknown.length > 0) return yield* unknownResources(catalogue, unknown)
      return {
        company,
        resources: [...new Set(paths)].map((path) => catalogue.resources.get(path)!),
        named: resources.length > 0 || company.resources !== null
      }
    })
  )
})

/** The names and resources of the chosen companies. A mistake in the configuration fails before anything starts. */
export const check = Effect.fnUntraced(function* (settings: Configuration, options: TargetOptions) {
  const source = yield* Source
  return yield* Effect.forEach(yield* choose(settings, options), ({ company, resources }) =>
    Effect.as(source.connect(company, settings), { name: company.name, resources })
  )
}, Effect.scoped)

/** The chosen companies, connected within the warehouse, where all processes share the rate budget. Sends no request. */
export const connect = Effect.fnUntraced(function* (settings: Configuration, options: TargetOptions) {
  const source = yield* Source
  return yield* Effect.forEach(yield* choose(settings, options), ({ company, resources, named }) =>
    source.connect(company, settings).pipe(
      Effect.flatMap((connector) => SourceGuard.guarded(company.name, connector, options.acceptNewSource ?? false)),
      Effect.map((connector): SyncCompany => ({ name: company.name, connector, resources, named }))
    )
  )
})

/** Reads the configuration, and runs the body on its warehouse with the chosen companies. */
export const onTargets = Effect.fnUntraced(function* <A, E, R>(
  flags: { readonly config: Option.Option<string>; readonly url: Option.Option<string> },
  options: TargetOptions,
  body: (settings: Configuration, companies: ReadonlyArray<SyncCompany>) => Effect.Effect<A, E, R>
) {
  const settings = yield* configuration(flags.config, { url: Option.getOrUndefined(flags.url) })
  yield* check(settings, options)
  return yield* connect(settings, options).pipe(
    Effect.flatMap((companies) => body(settings, companies)),
    Effect.scoped,
    (effect) => Warehouse.provide(effect, settings)
  )
})
