/** `tributary sync`: one sync of every configured resource, each from its checkpoint. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Outcome, RunTotals } from "../sync/Outcome.ts"
import { sync, type SyncCompany, type SyncReport } from "../sync/Sync.ts"
import type { SyncMode } from "../sync/SyncResource.ts"
import { searchIndexesOf } from "../warehouse/Indexes.ts"
import { tableOf } from "../warehouse/Table.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { company, config, json, reported, resources, switchFlag, url, withExamples } from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { codeOf, endWith } from "./Exit.ts"
import * as Invariants from "./Invariants.ts"
import * as Output from "./Output.ts"
import * as Progress from "./Progress.ts"
import { Source } from "./Source.ts"
import * as SyncProgress from "./SyncProgress.ts"
import { onTargets } from "./Targets.ts"

/** Syncs the targets; the warehouse is provided. */
export const run = Effect.fnUntraced(function* (
  settings: Configuration,
  mode: SyncMode,
  companies: ReadonlyArray<SyncCompany>
) {
  const source = yield* Source
  const catalogue = yield* WarehouseCatalogue.load(yield* catalogueOf(settings))
  return yield* sync({
    models: yield* source.models,
    indexes: searchIndexesOf([...catalogue.resources.values()].map((one) => tableOf(one, settings.datasets))),
    companies: companies.map((company) => ({
      ...company,
      resources: company.resources.map(({ path }) => catalogue.resources.get(path)!)
    })),
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
export const summary = ({ companies, durationMs }: SyncReport): string => {
  const outcomes = companies.flatMap((company) => company.outcomes)
  const sum = (total: keyof RunTotals) => outcomes.reduce((result, { totals }) => result + totals[total], 0)
  const countOf = (wanted: Outcome["status"]) => outcomes.filter(({ status }) => status === wanted).length
  const changes = SyncProgress.describeChanges(
    { inserted: sum("inserted"), updated: sum("updated"), deleted: sum("deleted"), quarantined: sum("quarantined") },
    Output.counted(countOf("failed"), "failed"),
    Output.counted(countOf("skipped"), "skipped")
  )
  return (
    `${Output.plural(outcomes.length, "resource")} in ${Output.duration(durationMs)}: ${changes} ` +
    `(${Output.count(sum("records"))} records read, ${Output.count(sum("requests"))} requests)`
  )
}

/** Names each damaged table once, whatever the number of companies, and the one step that repairs them all. */
const noteDamage = Effect.fnUntraced(function* ({ companies }: SyncReport) {
  const failures = companies.flatMap(({ outcomes }) => outcomes.flatMap(({ failure }) => failure ?? []))
  const damaged = failures.filter(({ kind }) => kind === "TableDamaged")
  for (const message of new Set(damaged.map((failure) => failure.message))) yield* Output.note(`tributary: ${message}`)
  if (damaged[0] !== undefined) yield* Output.note(`  what to do: ${damaged[0].remedy}`)
})

/** Reports the failures, notes and quarantine of each company. The progress display shows everything else. */
export const noteProblems = Effect.fnUntraced(function* (report: SyncReport) {
  yield* noteDamage(report)
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
      if (outcome.failure.kind === "TableDamaged") continue
      yield* Output.note(`tributary: ${outcome.failure.message}`)
      yield* Output.note(`  what to do: ${outcome.failure.remedy}`)
    }
    const quarantined = company.outcomes.reduce((total, outcome) => total + outcome.totals.quarantined, 0)
    if (quarantined > 0) {
      yield* Output.note(
        `tributary: company ${company.name}: ${Output.count(quarantined)} records are in quarantine; see them with ` +
          `tributary query "select resource, record_id, field, reason from tributary.quarantine where resolved_at is null"`
      )
    }
  }
})

export const command = Command.make(
  "sync",
  {
    resources: resources("sync"),
    company,
    full: switchFlag("full", "Read every record, also where a cursor exists; absent records are marked as deleted"),
    acceptDeletions: switchFlag(
      "accept-deletions",
      "Accept the deletions of a full scan in which most rows are missing"
    ),
    acceptRestored: switchFlag(
      "accept-restored",
      "The source was restored from a backup: its records replace newer versions"
    ),
    resetOverlap: switchFlag(
      "reset-overlap",
      "Reset the overlap that late rows lengthened; otherwise it halves for each week without one"
    ),
    acceptNewSource: switchFlag(
      "accept-new-source",
      "The configured source replaces the earlier one: rows become those of the new source"
    ),
    url,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const { full, acceptDeletions, acceptRestored, resetOverlap, acceptNewSource } = flags
    const options = { companies: flags.company, resources: flags.resources, acceptNewSource }
    const report = yield* reported(
      onTargets(flags, options, (settings, companies) =>
        Effect.provide(
          Effect.tap(run(settings, { full, acceptDeletions, acceptRestored, resetOverlap }, companies), () =>
            Invariants.evaluate(settings)
          ),
          SyncProgress.layer(Progress.styleOf(flags))
        )
      )
    )
    yield* noteProblems(report)
    yield* Output.printResult(flags.json, report, (report) => [summary(report)])
    yield* endWith(codeOf(report))
  })
).pipe(
  withExamples({
    "tributary sync": "Sync everything that is configured",
    "tributary sync --full --json": "Read everything again and answer in JSON"
  })
)
