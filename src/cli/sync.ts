/** `tributary sync`: one sync of every configured resource, each from its checkpoint. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as SqlClient from "effect/sql/SqlClient"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { CompanyConfiguration } from "../configuration/Companies.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { chooseCompanies } from "../configuration/Configuration.ts"
import { ConfigurationError } from "../configuration/ConfigurationError.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import type { RunTotals } from "../sync/Outcome.ts"
import * as SourceGuard from "../sync/SourceGuard.ts"
import { sync, type SyncCompany, type SyncReport } from "../sync/Sync.ts"
import type { SyncMode } from "../sync/SyncResource.ts"
import * as Progress from "./Progress.ts"
import * as SyncProgress from "./SyncProgress.ts"
import { company, config, configuration, json, reported, resources, url } from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { codeOf, CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"
import * as Warehouse from "./Warehouse.ts"

/** The resources a company syncs: those named on the command line, else in the configuration, else all. */
const resourcesOf = (
  catalogue: Catalogue,
  company: CompanyConfiguration,
  named: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<Resource>, ConfigurationError> => {
  const paths = named.length > 0 ? named : (company.resources ?? [...catalogue.resources.keys()])
  const unknown = paths.filter((path) => !catalogue.resources.has(path))
  return unknown.length > 0
    ? Effect.fail(
        new ConfigurationError({
          problems: unknown.map(
            (path) =>
              `there is no resource "${path}"; the catalogue has ${[...catalogue.resources.keys()].sort().join(", ")}`
          )
        })
      )
    : Effect.succeed([...new Set(paths)].map((path) => catalogue.resources.get(path)!))
}

/** The companies and resources of a command; all where none is named. */
export interface TargetOptions {
  readonly resources: ReadonlyArray<string>
  readonly companies: ReadonlyArray<string>
  readonly acceptNewSource?: boolean
}

/** The companies of a configuration, connected. Sends no request to the source. */
export const targets = Effect.fnUntraced(function* (settings: Configuration, options: TargetOptions) {
  const source = yield* Source
  const catalogue = yield* catalogueOf(settings)
  if (settings.companies.length === 0) {
    return yield* new ConfigurationError({
      problems: [
        "no source is configured: set SERVICE_API_URL and SERVICE_API_TOKEN, or write config/tributary.yaml",
        "to try it without a source: npx tributary demo"
      ]
    })
  }
  const chosen = yield* chooseCompanies(settings, options.companies)
  return yield* Effect.forEach(chosen, (company) =>
    Effect.gen(function* () {
      const resources = yield* resourcesOf(catalogue, company, options.resources)
      const named = options.resources.length > 0 || company.resources !== null
      const bare = yield* source.connect(company, settings)
      // Without a warehouse nothing is written, and no earlier source is known.
      const sql = Option.getOrNull(yield* Effect.serviceOption(SqlClient.SqlClient))
      const connector =
        sql === null
          ? bare
          : yield* Effect.provideService(
              SourceGuard.guarded(company.name, bare, options.acceptNewSource ?? false),
              SqlClient.SqlClient,
              sql
            )
      return { name: company.name, connector, resources, named }
    })
  )
})

/** The targets with the inferred columns and the table names of the warehouse. */
export const withInferred = Effect.fnUntraced(function* (
  settings: Configuration,
  companies: ReadonlyArray<SyncCompany>
) {
  const wanted = [...new Set(companies.flatMap(({ resources }) => resources))]
  const whole = yield* WarehouseCatalogue.resources(yield* catalogueOf(settings), wanted)
  const byPath = new Map(whole.map((resource) => [resource.path, resource]))
  return companies.map((company) => ({
    ...company,
    resources: company.resources.map((resource) => byPath.get(resource.path) ?? resource)
  }))
})

/** Syncs the targets; the warehouse is provided. */
export const run = Effect.fnUntraced(function* (
  settings: Configuration,
  mode: SyncMode,
  companies: ReadonlyArray<SyncCompany>
) {
  const source = yield* Source
  return yield* sync({
    models: yield* source.models,
    companies: yield* withInferred(settings, companies),
    datasets: settings.datasets,
    // `sync --full` goes back to an older program on purpose.
    mode: { ...mode, acceptsOlderCatalogue: mode.full === true && mode.backfill === undefined },
    concurrency: settings.concurrency,
    batchRecordsMax: settings.batchRecordsMax,
    engine: settings.engine,
    freshnessOf: settings.freshnessOf
  })
})

/** The totals of a sync in one line. */
export const summary = (report: SyncReport): string => {
  const outcomes = report.companies.flatMap((company) => company.outcomes)
  const sum = (pick: (totals: RunTotals) => number) =>
    outcomes.reduce((total, outcome) => total + pick(outcome.totals), 0)
  const failed = outcomes.filter(({ status }) => status === "failed").length
  const skipped = outcomes.filter(({ status }) => status === "skipped").length
  const counts: ReadonlyArray<readonly [number, string]> = [
    [sum((totals) => totals.inserted), "new"],
    [sum((totals) => totals.updated), "changed"],
    [sum((totals) => totals.deleted), "deleted"],
    [sum((totals) => totals.quarantined), "in quarantine"],
    [failed, "failed"],
    [skipped, "skipped"]
  ]
  const parts = counts.flatMap(([count, what]) => (count === 0 ? [] : [`${Output.count(count)} ${what}`]))
  return (
    `${outcomes.length} ${outcomes.length === 1 ? "resource" : "resources"} in ${Output.duration(report.durationMs)}: ` +
    `${parts.length === 0 ? "nothing new" : parts.join(", ")} ` +
    `(${Output.count(sum((totals) => totals.records))} records read, ${Output.count(sum((totals) => totals.requests))} requests)`
  )
}

/** Reports the failures, notes and quarantine of each company. The progress display shows everything else. */
export const tellProblems = Effect.fnUntraced(function* (report: SyncReport) {
  for (const company of report.companies) {
    if (company.failure !== null) {
      yield* Output.note(`tributary: company ${company.name}: ${company.failure.message}`)
      yield* Output.note(`  what to do: ${company.failure.remedy}`)
    }
    for (const outcome of company.outcomes) {
      for (const text of outcome.notes) yield* Output.note(`tributary: ${outcome.resource}: ${text}`)
      if (outcome.status === "skipped" && outcome.failure !== null && company.failure === null) {
        yield* Output.note(`tributary: skipped ${outcome.failure.message}; ${outcome.failure.remedy}`)
      }
      if (outcome.status !== "failed" || outcome.failure === null || outcome.failure.stops === "company") continue
      yield* Output.note(`tributary: ${outcome.failure.message}`)
      yield* Output.note(`  what to do: ${outcome.failure.remedy}`)
    }
    const quarantined = company.outcomes.reduce((total, outcome) => total + outcome.totals.quarantined, 0)
    if (quarantined > 0) {
      yield* Output.note(
        `tributary: company ${company.name}: ${Output.count(quarantined)} records are in quarantine; see them with ` +
          `npx tributary query "select resource, record_id, field, reason from tributary.quarantine where resolved_at is null"`
      )
    }
  }
})

export const command = Command.make(
  "sync",
  {
    resources: resources("sync"),
    company,
    full: Flag.Boolean("full").pipe(
      Flag.withDescription("Read every record, also where a cursor exists; absent records are marked as deleted"),
      Flag.withDefault(false)
    ),
    acceptDeletions: Flag.Boolean("accept-deletions").pipe(
      Flag.withDescription("Accept the deletions of a full scan in which most rows are missing"),
      Flag.withDefault(false)
    ),
    acceptRestored: Flag.Boolean("accept-restored").pipe(
      Flag.withDescription("The source was restored from a backup: its records replace newer versions"),
      Flag.withDefault(false)
    ),
    resetOverlap: Flag.Boolean("reset-overlap").pipe(
      Flag.withDescription(
        "Reset the overlap that late rows lengthened; otherwise it halves for each week without one"
      ),
      Flag.withDefault(false)
    ),
    acceptNewSource: Flag.Boolean("accept-new-source").pipe(
      Flag.withDescription("The configured source replaces the earlier one: rows become those of the new source"),
      Flag.withDefault(false)
    ),
    url,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const report = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config, { url: Option.getOrUndefined(flags.url) })
        const options = {
          resources: flags.resources,
          companies: flags.company,
          acceptNewSource: flags.acceptNewSource
        }
        const { full, acceptDeletions, acceptRestored, resetOverlap } = flags
        const mode = { full, acceptDeletions, acceptRestored, resetOverlap }
        // A mistake in the configuration ends the command before anything starts.
        yield* Effect.scoped(targets(settings, options))
        // Connected again within the warehouse, so that all processes share the budget.
        return yield* Effect.flatMap(targets(settings, options), (companies) => run(settings, mode, companies)).pipe(
          Effect.scoped,
          Effect.provide(SyncProgress.layer(Progress.styleOf(flags))),
          (effect) => Warehouse.provide(effect, settings)
        )
      })
    )
    yield* tellProblems(report)
    yield* Output.print(flags.json ? Output.toJson(report) : summary(report))
    const code = codeOf(report)
    if (code !== exitCode.ok) return yield* new CommandFailed({ code, message: "" })
  })
).pipe(
  Command.withDescription("Bring the warehouse up to date: read the changes of every resource since the last sync"),
  Command.withExamples([
    { command: "tributary sync", description: "Sync everything that is configured" },
    { command: "tributary sync --full --json", description: "Read everything again and answer in JSON" }
  ])
)
