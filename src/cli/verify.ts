/**
 * `tributary verify`: a comparison of the warehouse with the source.
 *
 * Promise: exit code 0 means that every record of every named resource (with `--sample`: every record drawn) is equal on
 * both sides; without names, of every resource that was synced. The others are listed. Code 4 means that records differ, also
 * where they are only not yet synced, or that no resource was compared. `--as-of-sync` accepts records
 * that are not yet synced, and no other difference.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Flag from "effect/cli/Flag"
import type * as SqlClient from "effect/sql/SqlClient"
import { Priority } from "../budget/Budget.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { tableOf } from "../warehouse/Table.ts"
import { type Failure, failureOf } from "../sync/Outcome.ts"
import { fetchRecords } from "../sync/FetchRecords.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import type { Database } from "../postgres/Database.ts"
import type { Mismatch, ResourceReport } from "../verify/Report.ts"
import { notSynced, verifyResource } from "../verify/Verify.ts"
import { company, repeatedFlag, resources, resultCommand, switchFlag, url } from "./Command.ts"
import { codeOfFailures, type ExitCode, exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { onTargets } from "./Targets.ts"

/** Findings of one resource that are printed for people. */
const findingsShownMax = 20
/** Fields of one finding that are printed for people. */
const fieldsShownMax = 8
const valueShownMax = 100
const seedMax = 2_000_000_000

interface VerifyCommandOptions {
  /** Null compares everything. */
  readonly sample: number | null
  readonly seed: number
  readonly repair: boolean
  /** Whether resources that were never synced are left out, unless they are named; default: they are compared. */
  readonly skipsUnsynced?: boolean
  /** Of the requests; by default they yield to syncs, since a verification reads everything. */
  readonly priority?: Priority
}

interface CompanyVerified {
  readonly name: string
  readonly companyId: bigint | null
  readonly resources: ReadonlyArray<ResourceReport>
  /** The failure that prevented the comparison of the company. */
  readonly failure: Failure | null
}

export interface VerifyReport {
  /** Whether no record differs. */
  readonly equal: boolean
  /** Null when everything was compared. */
  readonly sample: { readonly records: number; readonly seed: number } | null
  readonly requests: number
  readonly companies: ReadonlyArray<CompanyVerified>
}

/** The settings that a verification needs. */
type VerifySettings = Pick<Configuration, "datasets" | "concurrency">

const verifyCompany = Effect.fnUntraced(function* (
  settings: VerifySettings,
  options: VerifyCommandOptions,
  { name, connector, resources, named = false }: SyncCompany
) {
  const identified = yield* Effect.result(connector.identify)
  if (identified._tag === "Failure") {
    const failure = failureOf(identified.failure)
    return { name, companyId: null, resources: [], failure } satisfies CompanyVerified
  }
  const { companyId } = identified.success
  // Inferred columns are compared like any other.
  const catalogue = yield* WarehouseCatalogue.load(connector.catalogue)
  const tables = resources.map((given) => tableOf(catalogue.resources.get(given.path) ?? given, settings.datasets))
  const { damaged, rules } = yield* TablePlan.plan(tables)
  const reports = yield* Effect.forEach(
    tables,
    (table) => {
      const damage = [...damaged, ...rules].find(({ resource }) => resource === table.resource.path) ?? null
      const repair = (ids: ReadonlyArray<string>) =>
        fetchRecords({ companyId, connector, table, ids, authority: "source" }).pipe(
          Effect.map(({ failure }) => (failure === null ? null : `${failure.message}; ${failure.remedy}`))
        )
      return verifyResource<Database | SqlClient.SqlClient>({
        companyId,
        connector,
        table,
        damage,
        sample: options.sample,
        seed: options.seed,
        repair: options.repair ? repair : null,
        named,
        skipsUnsynced: options.skipsUnsynced ?? false
      })
    },
    { concurrency: settings.concurrency }
  )
  return { name, companyId, resources: reports, failure: null } satisfies CompanyVerified
})

/** Whether the resource was never synced, and so not compared. */
const isLeftOut = ({ remarks }: ResourceReport): boolean => remarks.includes(notSynced)

const resultText = (report: ResourceReport): string => {
  const differences = Output.list([
    Output.counted(report.missing, "missing"),
    Output.counted(report.surplus, "surplus"),
    Output.counted(report.different, "different"),
    Output.counted(report.unreadable, "unreadable")
  ])
  const waiting = report.notYetSynced === 0 ? "" : ` (${Output.count(report.notYetSynced)} of them not yet synced)`
  return differences === "" ? "equal" : `${differences}${waiting}`
}

/** Verifies the targets; the warehouse is provided. */
export const run = Effect.fn("verify.run")(function* (
  settings: VerifySettings,
  options: VerifyCommandOptions,
  targets: ReadonlyArray<SyncCompany>
) {
  const { priority = { class: "backfill", dueAt: Number.POSITIVE_INFINITY } } = options
  const companies = yield* Effect.forEach(targets, (target) => verifyCompany(settings, options, target), {
    concurrency: "unbounded"
  }).pipe(Effect.provideService(Priority, priority))
  const resources = companies.flatMap((company) => company.resources)
  return {
    equal:
      companies.every(({ failure }) => failure === null) &&
      !(resources.length > 0 && resources.every(isLeftOut)) &&
      resources.every(({ status }) => status === "equal" || status === "skipped"),
    sample: options.sample === null ? null : { records: options.sample, seed: options.seed },
    requests: resources.reduce((sum, { requests }) => sum + requests, 0),
    companies
  } satisfies VerifyReport
})

/** The exit code of a report. */
export const codeOf = (report: VerifyReport, asOfSync: boolean): ExitCode => {
  const resources = report.companies.flatMap((company) => company.resources)
  const failures = [...report.companies, ...resources].flatMap(({ failure }) => (failure === null ? [] : [failure]))
  const failed = codeOfFailures(failures)
  if (failed !== null) return failed
  const isWrong = ({ status }: ResourceReport) => status === "unequal" || (status === "waiting" && !asOfSync)
  const isNothing = resources.length > 0 && resources.every(isLeftOut)
  return isNothing || resources.some(isWrong) ? exitCode.incomplete : exitCode.ok
}

const cut = (value: string | null, none: string): string =>
  value === null ? none : value.length <= valueShownMax ? value : `${value.slice(0, valueShownMax)}…`

const findingLines = (finding: Mismatch): ReadonlyArray<string> => {
  const what =
    finding.kind === "missing" && finding.isDeleted
      ? "missing: it is deleted in the warehouse"
      : finding.kind === "surplus"
        ? "surplus: the source has no such record"
        : finding.kind
  const remarks = [
    ...(finding.notYetSynced ? ["not yet synced"] : []),
    ...(finding.quarantined === null ? [] : [`in quarantine: ${finding.quarantined}`])
  ]
  const fields = finding.fields.slice(0, fieldsShownMax)
  const width = Math.max(0, ...fields.map(({ field }) => field.length))
  return [
    `    ${finding.id}  ${[what, ...remarks].join("; ")}`,
    ...fields.map(({ field, source, warehouse }) =>
      source === null && warehouse === null
        ? `      ${field}`
        : `      ${field.padEnd(width)}  source ${cut(source, "(not sent)")}  warehouse ${cut(warehouse, "(none)")}`
    ),
    ...(finding.fields.length > fields.length
      ? [`      and ${Output.plural(finding.fields.length - fields.length, "more field")}`]
      : [])
  ]
}

/** The report for people. */
export const lines = (report: VerifyReport): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (const { name, companyId, resources, failure } of report.companies) {
    if (failure !== null) {
      out.push(`company ${name}: ${failure.message}`, `  what to do: ${failure.remedy}`)
      continue
    }
    const shown = resources.filter(
      ({ status, source, warehouse }) => status !== "skipped" && (status !== "equal" || source + warehouse > 0)
    )
    const empty = resources.filter(({ status }) => status !== "skipped").length - shown.length
    out.push(`company ${name} (${companyId})`)
    out.push(
      Output.table(
        ["resource", "", "source", "warehouse", "missing", "surplus", "different", "quarantine", "requests"],
        shown.map((one) => [
          one.resource,
          one.status === "waiting"
            ? "not yet synced"
            : one.sample !== null && one.status === "equal"
              ? "sample equal"
              : one.status,
          Output.count(one.source),
          Output.count(one.warehouse),
          Output.count(one.missing),
          Output.count(one.surplus),
          Output.count(one.different),
          Output.count(one.quarantined),
          Output.count(one.requests)
        ]),
        ["left", "left", "right", "right", "right", "right", "right", "right", "right"]
      )
    )
    if (empty > 0) out.push(`  and ${Output.plural(empty, "resource")} without records on either side`)
    const leftOut = resources.filter(isLeftOut).map(({ resource }) => resource)
    if (leftOut.length > 0) out.push(`  ${notSynced}: ${leftOut.join(", ")}`)
    for (const one of resources) {
      if (isLeftOut(one)) continue
      if (one.findings.length === 0 && one.remarks.length === 0 && one.failure === null && one.repair === null) continue
      out.push(
        "",
        `  ${one.resource}: ${one.failure?.message ?? (one.status === "skipped" ? "skipped" : resultText(one))}`
      )
      if (one.failure !== null) out.push(`    what to do: ${one.failure.remedy}`)
      for (const finding of one.findings.slice(0, findingsShownMax)) out.push(...findingLines(finding))
      const more = Math.max(0, one.findings.length - findingsShownMax) + one.more
      if (more > 0)
        out.push(
          `    and ${Output.count(more)} more; --json lists ${one.more === 0 ? "them all" : `${Output.count(one.findings.length)} of them`}`
        )
      for (const remark of one.remarks) out.push(`    (${remark})`)
      if (one.repair !== null) {
        const { asked, mended, left, failure: why } = one.repair
        out.push(
          `    repair: ${Output.count(asked)} read again, ${Output.count(mended)} repaired, ${Output.count(left)} left` +
            (why === null ? "" : `; ${why}`)
        )
      }
    }
    out.push("")
  }
  out.push(summary(report))
  return out
}

const percent = (share: number): string => (share >= 0.9995 ? "more than 99.9 %" : `${(share * 100).toFixed(1)} %`)

const summary = (report: VerifyReport): string => {
  const all = report.companies.flatMap((company) => company.resources)
  const resources = all.filter((one) => !isLeftOut(one))
  const leftOut = all.length - resources.length
  if (leftOut > 0 && resources.length === 0)
    return "Nothing was compared: no resource was synced. Run first: tributary sync"
  const unsynced =
    leftOut === 0
      ? ""
      : ` ${Output.plural(leftOut, "resource is not synced and was", "resources are not synced and were")} not compared.`
  const sum = (pick: (one: ResourceReport) => number) => resources.reduce((total, one) => total + pick(one), 0)
  const requests = Output.plural(report.requests, "request")
  const records = sum(({ source }) => source)
  const differing = sum((one) => one.missing + one.surplus + one.different + one.unreadable)
  const waiting = sum(({ notYetSynced }) => notYetSynced)
  const failed = resources.filter(({ status }) => status === "failed").length
  const chances = resources.flatMap(({ sample }) => (sample === null ? [] : [sample.chance]))
  const sampled =
    report.sample === null
      ? ""
      : ` This is a sample (seed ${report.sample.seed}), not a proof` +
        (chances.length === 0
          ? "."
          : `: it finds an error in one of a hundred rows of a resource with a probability of at least ${percent(Math.min(...chances))}.`)
  if (report.equal) {
    return `Equal: ${Output.plural(records, "record")} of ${Output.plural(resources.length, "resource")}, every value, both ways (${requests}).${sampled}${unsynced}`
  }
  const reasons = Output.list([
    Output.plurals(differing - waiting, "record differs", "records differ"),
    Output.plurals(waiting, "is not yet synced", "are not yet synced"),
    Output.plurals(failed, "resource could not be compared", "resources could not be compared"),
    report.companies.some(({ failure }) => failure !== null) ? "a company could not be reached" : ""
  ])
  const hint =
    differing - waiting > 0 && resources.every(({ repair }) => repair === null)
      ? " To read those records again: tributary verify --repair"
      : ""
  return `Not equal: ${reasons} (${Output.plural(records, "record")} compared, ${requests}).${sampled}${unsynced}${hint}`
}

export const command = resultCommand({
  name: "verify",
  examples: {
    "tributary verify": "Compare every synced resource; reads every record once",
    "tributary verify --sample 200": "Compare 200 rows of each resource, drawn at random",
    "tributary verify --resource RESOURCE --repair": "Repair the differences of one resource"
  },
  flags: {
    resources: resources("compare"),
    resource: repeatedFlag("resource", "NAME", "A resource to compare, as a flag (may be repeated)"),
    company,
    sample: Flag.Int("sample").pipe(
      Flag.withDescription("Compare this many rows of each resource, drawn at random, instead of everything"),
      Flag.withMetavar("N"),
      Flag.optional
    ),
    seed: Flag.Int("seed").pipe(
      Flag.withDescription("Draw the same sample as a run that printed this seed"),
      Flag.withMetavar("N"),
      Flag.optional
    ),
    repair: switchFlag("repair", "Read exactly the differing records again, and compare them once more"),
    asOfSync: switchFlag("as-of-sync", "End with code 0 when the only differences are changes since the last sync"),
    url
  },
  run: (flags, config) =>
    Effect.gen(function* () {
      const sample = Option.getOrNull(flags.sample)
      if (sample !== null && sample < 1) return yield* usageError("--sample takes a number of records from 1")
      const drawn = yield* Random.nextIntBetween(1, seedMax)
      const seed = Option.getOrElse(flags.seed, () => drawn)
      const report = yield* onTargets(
        { ...flags, config },
        { companies: flags.company, resources: [...flags.resources, ...flags.resource], isReading: true },
        (settings, companies) => run(settings, { sample, seed, repair: flags.repair, skipsUnsynced: true }, companies)
      )
      return { ...report, code: codeOf(report, flags.asOfSync) }
    }),
  lines,
  code: ({ code }) => code
})
