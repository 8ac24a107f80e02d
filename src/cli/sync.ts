/** `tributary sync`: one sync of every configured resource, each from its checkpoint. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Failure, Outcome, RunTotals } from "../sync/Outcome.ts"
import { type CompanyReport, sync, type SyncCompany, type SyncReport } from "../sync/Sync.ts"
import type { SyncMode } from "../sync/SyncResource.ts"
import { searchIndexesOf } from "../warehouse/Indexes.ts"
import { tableOf } from "../warehouse/Table.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { company, config, json, resources, switchFlag, url, verbose, withExamples } from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { codeOf, endWith } from "./Exit.ts"
import * as Invariants from "./Invariants.ts"
import { CommandLine } from "./Invocation.ts"
import * as Output from "./Output.ts"
import * as Progress from "./Progress.ts"
import * as Models from "./Models.ts"
import * as SyncProgress from "./SyncProgress.ts"
import { onTargets } from "./Targets.ts"

/** Syncs the targets; the warehouse is provided. */
export const run = Effect.fnUntraced(function* (
  settings: Configuration,
  mode: SyncMode,
  companies: ReadonlyArray<SyncCompany>
) {
  const catalogue = yield* WarehouseCatalogue.load(yield* catalogueOf(settings))
  return yield* sync({
    models: (yield* Models.of(settings)).models,
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
    freshnessOf: settings.freshnessOf
  })
})

/** The totals of runs in one line. */
const totalsOf = (outcomes: ReadonlyArray<Outcome>, durationMs: number | null): string => {
  const sum = (total: keyof RunTotals) => outcomes.reduce((result, { totals }) => result + totals[total], 0)
  const countOf = (wanted: Outcome["status"]) => outcomes.filter(({ status }) => status === wanted).length
  const changes = SyncProgress.describeChanges(
    { inserted: sum("inserted"), updated: sum("updated"), deleted: sum("deleted"), quarantined: sum("quarantined") },
    Output.counted(countOf("failed"), "failed"),
    Output.counted(countOf("skipped"), "skipped")
  )
  return (
    `${Output.plural(outcomes.length, "resource")}${durationMs === null ? "" : ` in ${Output.duration(durationMs)}`}: ` +
    `${changes} (${Output.plural(sum("records"), "record")} read, ${Output.plural(sum("requests"), "request")})`
  )
}

/** Companies that the summary names. */
const companiesMax = 5

/** The totals of a sync: of each company where they are few, and of all. */
export const summary = ({ companies, durationMs }: SyncReport): ReadonlyArray<string> => {
  const lineOf = ({ name, outcomes, failure }: CompanyReport, ms: number | null) =>
    `${name}: ${failure !== null && outcomes.length === 0 ? "failed" : totalsOf(outcomes, ms)}`
  if (companies.length === 1) return [lineOf(companies[0]!, durationMs)]
  const all = companies.flatMap(({ outcomes }) => outcomes)
  return [
    ...(companies.length > companiesMax ? [] : companies.map((company) => lineOf(company, null))),
    totalsOf(all, durationMs)
  ]
}

/** Names each damaged table once, whatever the number of companies, and the one step that repairs them all. */
const damageLines = ({ companies }: SyncReport): ReadonlyArray<string> => {
  const failures = companies.flatMap(({ outcomes }) => outcomes.flatMap(({ failure }) => failure ?? []))
  const damaged = failures.filter(({ kind }) => kind === "TableDamaged")
  const [first] = damaged
  return first === undefined ? [] : [...new Set(damaged.map(({ message }) => message)), `what to do: ${first.remedy}`]
}

/** One line: what happened, and the command that comes next. */
const failureLine = (place: string, { disposition, message, remedy }: Failure, again: string): string => {
  const isCheck = disposition === "refused" || disposition === "blocked" || disposition === "configuration"
  const next = remedy.includes("tributary ") ? "" : `; next: ${isCheck ? "tributary doctor" : again}`
  return `${place}: ${message}; ${remedy}${next}`
}

/** Skipped resources that are named. */
const skippedMax = 5

/** The resources that the token may not read: one line for each reason. */
const skippedLines = ({ name, outcomes }: CompanyReport): ReadonlyArray<string> => {
  const byReason = new Map<string, Array<string>>()
  for (const { resource, status, failure } of outcomes) {
    if (status !== "skipped" || failure === null) continue
    const reason = `${failure.message.replace(`${resource}: `, "")}; ${failure.remedy}`
    byReason.set(reason, [...(byReason.get(reason) ?? []), resource])
  }
  return [...byReason].map(
    ([reason, resources]) => `${name}: skipped ${Output.firstOf(resources, skippedMax)}: ${reason}`
  )
}

const companyLines = (company: CompanyReport, again: string): ReadonlyArray<string> => {
  const { name, outcomes, failure } = company
  const quarantined = outcomes.reduce((total, { totals }) => total + totals.quarantined, 0)
  return [
    ...(failure === null ? skippedLines(company) : [failureLine(name, failure, again)]),
    ...outcomes.flatMap((outcome) => {
      const place = `${name} ${outcome.resource}`
      const own = outcome.status === "failed" && outcome.failure?.kind !== "TableDamaged" ? outcome.failure : null
      const blocked = outcome.massDeleteBlocked
      return [
        ...outcome.notes.map((text) => `${place}: ${text}`),
        ...(own === null || own.stops === "company" ? [] : [failureLine(place, own, again)]),
        ...(blocked === null
          ? []
          : [
              `${place}: ${Output.count(blocked.gone)} of ${Output.plural(blocked.live, "row")} were missing at the source, ` +
                `and the mass-delete guard deleted none; if they are deleted there: ` +
                `tributary sync ${outcome.resource} --company ${name} --full --accept-deletions`
            ])
      ]
    }),
    ...(quarantined === 0
      ? []
      : [
          `${name}: ${Output.plural(quarantined, "record is", "records are")} in quarantine; see them with ` +
            `tributary query "select resource, record_id, field, reason from tributary.quarantine where resolved_at is null"`
        ])
  ]
}

/** Reports the failures, notes and quarantine of each company: each once, in one line. */
export const noteProblems = Effect.fnUntraced(function* (report: SyncReport) {
  const again = yield* CommandLine
  for (const line of [...damageLines(report), ...report.companies.flatMap((company) => companyLines(company, again))]) {
    yield* Output.note(`tributary: ${line}`)
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
    verbose,
    url,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const { full, acceptDeletions, acceptRestored, resetOverlap, acceptNewSource } = flags
    const options = { companies: flags.company, resources: flags.resources, acceptNewSource }
    const report = yield* onTargets(flags, options, (settings, companies) =>
      SyncProgress.resumable(
        Effect.tap(run(settings, { full, acceptDeletions, acceptRestored, resetOverlap }, companies), () =>
          Invariants.evaluate(settings)
        ),
        SyncProgress.layer(Progress.styleOf(flags), { isVerbose: flags.verbose })
      )
    )
    yield* noteProblems(report)
    yield* Output.printResult(flags.json, report, summary)
    yield* endWith(codeOf(report))
  })
).pipe(
  withExamples({
    "tributary sync": "Sync everything that is configured",
    "tributary sync --full --json": "Read everything again and answer in JSON"
  })
)
