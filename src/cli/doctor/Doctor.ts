/**
 * All checks of `tributary doctor`, run side by side.
 *
 * Promise: nothing is changed. No migration runs, no warehouse is created, nothing is written to the source. Requests take
 * permits of the shared budget. Each check has a time limit, and one that breaks hides no other. A skipped check says why.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Priority } from "../../budget/Budget.ts"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import * as StoredCompanies from "../../companies/StoredCompanies.ts"
import * as Configuration from "../../configuration/Configuration.ts"
import * as CompanyStates from "../../status/CompanyStates.ts"
import * as Output from "../Output.ts"
import * as Warehouse from "../Warehouse.ts"
import { checkCompany, duplicateCompanies } from "./Company.ts"
import { about, check, type Findings, fromTables, groupAlike, runAll, Tables } from "./Finding.ts"
import * as Machine from "./Machine.ts"
import { checkAddresses, checkClocks } from "./Network.ts"
import { loadSettings, type LoadedSettings } from "./Settings.ts"
import { tableChecks } from "./Tables.ts"
import { checkWarehouse } from "./Warehouse.ts"
import { serveChecks } from "./Webhooks.ts"

/** So many paused companies are named. */
const pausedMax = 8
/** Companies that are checked together: each check sends requests to the source. */
const companiesAtOnce = 20
/** Companies that are checked where none is named. */
const companiesMax = 50

export interface DoctorOptions {
  /** Null is the default file. */
  readonly config: string | null
  /** Empty means all companies. */
  readonly companies: ReadonlyArray<string>
}

/** The companies at the source: those that are named, else the worst of many. */
const checkCompanies = Effect.fnUntraced(function* (
  settings: Configuration.Configuration,
  catalogue: Catalogue,
  isNamed: boolean
) {
  const { context } = yield* Tables
  const { companies: all } = settings
  const isAll = isNamed || all.length <= companiesMax
  const names = all.map(({ name }) => name)
  const worst = isAll
    ? []
    : yield* fromTables(CompanyStates.list(names, CompanyStates.anyCompany, null, companiesMax), [])
  const rankOf = new Map(worst.map(({ company }, index) => [company, index]))
  const ordered = all.toSorted(
    (one, other) => (rankOf.get(one.name) ?? companiesMax) - (rankOf.get(other.name) ?? companiesMax)
  )
  const chosen = isAll ? all : ordered.slice(0, companiesMax)
  // With the tables, all processes of a token share one rate budget.
  const shared =
    context === null
      ? Context.empty()
      : yield* Layer.build(Warehouse.sharedLayer.pipe(Layer.provide(Layer.succeedContext(context))))
  const checked = yield* Effect.forEach(
    chosen,
    (company) =>
      Effect.map(checkCompany(company, { ...settings, companies: chosen }, catalogue), (result) => ({
        ...company,
        ...result
      })),
    { concurrency: companiesAtOnce }
  ).pipe(
    Effect.provideContext(shared),
    // A person waits for the result; a backfill may be using the whole budget.
    Effect.provideService(Priority, { class: "urgent", dueAt: 0 })
  )
  const identified = checked.flatMap(({ name, url, value }) =>
    value === null ? [] : [{ name, url, sourceNumber: value.sourceNumber }]
  )
  const found = groupAlike([...checked.flatMap(({ findings }) => findings), ...duplicateCompanies(identified)])
  if (isAll) return found
  const text = `only the worst ${companiesMax} of ${Output.count(all.length)} companies are checked at the source; --company NAME checks others`
  return [about("companies").skipped(text), ...found]
})

/** The companies of file and warehouse with these names (none: all). A mistake in one hides no other. */
const checkStored = Effect.fnUntraced(function* (
  { settings: file, noCompany }: LoadedSettings,
  names: ReadonlyArray<string>
) {
  const its = about("companies")
  const all = yield* fromTables(StoredCompanies.extend(file, StoredCompanies.readOnly(file)), file)
  const companies = yield* Configuration.chooseCompanies(all, names)
  const isChosen = ({ name }: { readonly name: string }) => names.length === 0 || names.includes(name)
  const paused = companies.filter((one) => one.paused !== null).map(({ name }) => name)
  const stored = all.companies.length - file.companies.length
  const findings: Findings = [
    ...(Configuration.namesOf(all).length === 0 ? [noCompany] : []),
    ...(stored > 0 ? [its.ok(`${Output.plural(stored, "company", "companies")} of the warehouse`)] : []),
    ...all.unusable.filter(isChosen).map(({ problem }) => {
      const [what, ...remedy] = problem.split("; ")
      return its.failed("configuration", what!, remedy.join("; "))
    }),
    ...(paused.length === 0
      ? []
      : [
          its.warning(
            `paused: ${Output.firstOf(paused, pausedMax)}; nothing of them is synced`,
            "tributary company resume NAME, when they should be synced again"
          )
        ])
  ]
  return { findings, value: { ...all, companies } }
})

/** Every finding, in the order in which a person resolves them. */
export const examine = Effect.fn("Doctor.examine")(function* (options: DoctorOptions) {
  const { value: loaded, findings: configuration } = yield* loadSettings(options.config)
  const machine = yield* runAll(Machine.machineChecks, null, undefined).pipe(
    Effect.provideService(Tables, { context: null, reason: "" })
  )
  const first: Findings = [...machine, ...configuration]
  if (loaded === null) return [...first, about("everything else").skipped("the configuration must be valid first")]
  return yield* Effect.gen(function* () {
    const [disk, warehouse] = yield* Effect.all(
      [check("disk", null, (its) => Machine.disk(its, loaded.settings)), checkWarehouse(loaded.settings)],
      { concurrency: "unbounded" }
    )
    return yield* Effect.gen(function* () {
      const { findings: companies, value: settings } = yield* checkStored(loaded, options.companies)
      const tables = yield* runAll(tableChecks, null, settings)
      const addresses = yield* checkAddresses(settings)
      const others = yield* Effect.all(
        [checkCompanies(settings, loaded.catalogue, options.companies.length > 0), runAll(serveChecks, null, settings)],
        { concurrency: "unbounded" }
      )
      return [
        ...first,
        ...disk,
        ...warehouse.findings,
        ...tables,
        ...companies,
        ...addresses.flatMap(({ findings }) => findings),
        ...checkClocks(settings, addresses, warehouse.clock),
        ...others.flat()
      ] satisfies Findings
    }).pipe(Effect.provideService(Tables, warehouse.tables))
  }).pipe(Effect.scoped)
})
