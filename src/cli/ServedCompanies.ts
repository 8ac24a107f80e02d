/** The companies of `serve`: those of the configuration file, and those of the warehouse at the time of a read. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { companyFingerprint } from "../budget/TokenFingerprint.ts"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import type { Resource } from "../catalogue/Resource.ts"
import * as CompanyStore from "../companies/CompanyStore.ts"
import * as StoredCompanies from "../companies/StoredCompanies.ts"
import { type CompanyConfiguration, exclusionOf } from "../configuration/Companies.ts"
import { installationLabel } from "../configuration/Installations.ts"
import { chooseCompanies, type Configuration } from "../configuration/Configuration.ts"
import type { ConfigurationError } from "../configuration/ConfigurationError.ts"
import { everyEvent } from "../configuration/SettingValues.ts"
import * as OnDemand from "../connector/OnDemand.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { CompanySource, ServedCompany } from "../serve/Registry.ts"
import type { SecretsCompany } from "../subscriptions/SecretCache.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import { type Table, tableOf } from "../warehouse/Table.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { Source } from "./Source.ts"
import * as Targets from "./Targets.ts"
import type { WarehouseError } from "./Warehouse.ts"

/**
 * The events that a company subscribes to: its own, else those of all companies, else the source's; none of an excluded
 * resource.
 */
export const eventsOf = (
  company: CompanyConfiguration,
  { webhooks }: Configuration,
  reader: DeliveryReader
): ReadonlyArray<string> => {
  const events = company.webhookEvents ?? webhooks.events ?? reader.eventsDefault
  return (events === everyEvent ? reader.eventsOf(company.resources) : events).filter(
    (event) => exclusionOf(company, event.slice(0, event.lastIndexOf("."))) === undefined
  )
}

/** The name, token and configured signing secrets of a company. */
export const secretsOf = ({ name, token, webhookSecrets }: CompanyConfiguration): SecretsCompany => ({
  name,
  token,
  configured: webhookSecrets
})

/** How long companies share the tables that were read. A column inferred meanwhile fails the run, which is retried. */
const tablesSharedMs = 500

/** The tables of resources. Companies with the same resources have the same tables: one query serves them all. */
const makeTables = Effect.fnUntraced(function* ({ datasets }: Configuration, catalogue: Catalogue) {
  const sql = yield* SqlClient.SqlClient
  const nowMs = yield* MonotonicClock.make
  const reads = new Map<string, ServedCompany["company"]["tables"]>()
  const makeRead = (resources: ReadonlyArray<Resource>): ServedCompany["company"]["tables"] => {
    let last: { readonly tables: ReadonlyMap<string, Table>; readonly atMs: number } | null = null
    const anew = WarehouseCatalogue.resources(catalogue, resources).pipe(
      Effect.map((whole) => new Map(whole.map((resource) => [resource.path, tableOf(resource, datasets)]))),
      Effect.tap((tables) =>
        Effect.sync(() => {
          last = { tables, atMs: nowMs() }
        })
      ),
      Effect.provideService(SqlClient.SqlClient, sql)
    )
    return Effect.suspend(() =>
      last !== null && nowMs() - last.atMs < tablesSharedMs ? Effect.succeed(last.tables) : anew
    )
  }
  return (resources: ReadonlyArray<Resource>) => {
    const key = resources.map(({ path }) => path).join(" ")
    const read = reads.get(key) ?? makeRead(resources)
    reads.set(key, read)
    return read
  }
})

/** A company with the settings from which it was connected. */
interface Connected extends ServedCompany {
  readonly configuration: CompanyConfiguration
}

const makeConnect = Effect.fnUntraced(function* (settings: Configuration) {
  const reader = yield* (yield* Source).deliveries
  const tablesOf = yield* makeTables(settings, yield* catalogueOf(settings))
  // The rate budgets are part of the warehouse. A connection has a scope of its own.
  const context = Context.omit(Scope.Scope)(yield* Effect.context<Source | SqlClient.SqlClient | Scope.Scope>())
  const connectors = yield* OnDemand.make
  return Effect.fnUntraced(function* (
    configuration: CompanyConfiguration
  ): Effect.fn.Return<Connected, ConfigurationError> {
    const { name, connector, resources, close } = yield* connectors.of(
      Effect.provideContext(Targets.connectOne(settings, configuration), context)
    )
    return {
      configuration,
      company: {
        name,
        connector,
        tables: tablesOf(resources),
        engine: configuration.installation.engine,
        batchRecordsMax: settings.batchRecordsMax,
        requestsPerMinute: configuration.installation.requestsPerMinute,
        events: eventsOf(configuration, settings, reader)
      },
      secrets: secretsOf(configuration),
      installation: installationLabel(configuration),
      fingerprint: companyFingerprint(configuration),
      isPaused: configuration.paused !== null,
      excluded: configuration.excluded,
      close
    }
  })
})

const settingsKey = ({
  name,
  installation,
  url,
  companyId,
  resources,
  excluded,
  webhookEvents
}: CompanyConfiguration): string =>
  JSON.stringify([
    name,
    installation,
    url,
    companyId === null ? null : String(companyId),
    resources,
    excluded,
    webhookEvents
  ])

/** Whether a connection made for one is right for the other. */
const isSameConnection = (one: CompanyConfiguration, other: CompanyConfiguration): boolean =>
  one === other ||
  (settingsKey(one) === settingsKey(other) && Redacted.value(one.token) === Redacted.value(other.token))

type ServeError = ConfigurationError | WarehouseError

/** The companies of the file with these names (none: all), and those of the warehouse where `isStored`. */
export const make = Effect.fnUntraced(function* (
  settings: Configuration,
  names: ReadonlyArray<string>,
  isStored: boolean
): Effect.fn.Return<CompanySource<ServeError>, ConfigurationError, Source | SqlClient.SqlClient | Scope.Scope> {
  const connect = yield* makeConnect(settings)
  const readStored = StoredCompanies.read(settings)
  const isChosen = ({ name }: { readonly name: string }) => names.length === 0 || names.includes(name)
  const connected = new Map<string, Connected>()
  /** What was logged about unusable companies. */
  let logged: ReadonlySet<string> = new Set()
  const logProblems = (problems: ReadonlyArray<string>) =>
    Effect.suspend(() => {
      const added = problems.filter((problem) => !logged.has(problem))
      logged = new Set(problems)
      return Effect.forEach(added, (problem) => Effect.logWarning(`${problem}; nothing of it is synced until then`))
    })
  const connectChanged = (one: CompanyConfiguration) => {
    const last = connected.get(one.name)
    const isSame = last !== undefined && isSameConnection(last.configuration, one)
    return isSame ? Effect.succeed({ ...last, configuration: one, isPaused: one.paused !== null }) : connect(one)
  }
  return {
    revision: isStored ? CompanyStore.readRevision : Effect.succeed(0n),
    read: Effect.fnUntraced(function* (before) {
      const none: StoredCompanies.StoredCompanies = { ...settings, companies: [], unusable: [] }
      const stored = isStored ? yield* readStored : none
      const all = { ...settings, companies: [...settings.companies, ...stored.companies], unusable: stored.unusable }
      if (before.size === 0) yield* chooseCompanies(all, names)
      const problems = stored.unusable.filter(isChosen).map(({ problem }) => problem)
      const served = new Map<string, Connected>()
      for (const one of settings.companies.filter(isChosen)) served.set(one.name, yield* connectChanged(one))
      for (const one of stored.companies.filter(isChosen)) {
        // A mistake in one row does not end the others.
        const result = yield* Effect.result(connectChanged(one))
        if (result._tag === "Success") served.set(one.name, result.success)
        else problems.push(`company ${one.name}: ${result.failure.message}`)
      }
      yield* logProblems(problems)
      connected.clear()
      for (const [name, one] of served) connected.set(name, one)
      return served
    })
  }
})
