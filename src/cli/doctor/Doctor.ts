/**
 * All checks of `tributary doctor`, run side by side.
 *
 * Promise: nothing is changed. No migration runs, no warehouse is created, nothing is written to the source (a test
 * delivery only with `--send-test`). Requests take permits of the shared budget. Each check has a time limit, and one
 * that breaks hides no other. A skipped check says why.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Priority } from "../../budget/Budget.ts"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import * as StoredCompanies from "../../companies/StoredCompanies.ts"
import type { CompanyConfiguration } from "../../configuration/Companies.ts"
import * as Configuration from "../../configuration/Configuration.ts"
import * as CompanyStates from "../../status/CompanyStates.ts"
import * as Output from "../Output.ts"
import { checkAddresses, checkClocks } from "./Address.ts"
import * as Certificate from "./Certificate.ts"
import * as CompanyChecks from "./CompanyChecks.ts"
import { checkCompany } from "./Company.ts"
import { agreement, historyOf } from "./Agreement.ts"
import { checkInstallations } from "./Installations.ts"
import { about, all, check, checkTables, type Findings, groupAlike, Tables } from "./Finding.ts"
import { leftovers } from "./Leftovers.ts"
import { privacy } from "./Privacy.ts"
import * as Machine from "./Machine.ts"
import { loadSettings, type LoadedSettings } from "./Settings.ts"
import * as Warehouse from "../Warehouse.ts"
import { checkWarehouse } from "./Warehouse.ts"
import * as Webhooks from "./Webhooks.ts"

/** So many paused companies are named. */
const pausedMax = 8

export interface DoctorOptions {
  /** Null is the default file. */
  readonly config: string | null
  /** Empty means all companies. */
  readonly companies: ReadonlyArray<string>
  readonly sendTest: boolean
}

const checkCompanies = Effect.fnUntraced(function* (
  settings: Configuration.Configuration,
  catalogue: Catalogue,
  sendTest: boolean
) {
  const { context } = yield* Tables
  // With the tables, all processes of a token share one rate budget.
  const shared =
    context === null
      ? Context.empty()
      : yield* Layer.build(Warehouse.sharedLayer.pipe(Layer.provide(Layer.succeedContext(context))))
  const checked = yield* Effect.forEach(
    settings.companies,
    (company) =>
      Effect.map(checkCompany(company, { settings, catalogue, sendTest }), (result) => ({ ...company, ...result })),
    { concurrency: companiesAtOnce }
  ).pipe(
    Effect.provideContext(shared),
    // A person waits for the result; a backfill may be using the whole budget.
    Effect.provideService(Priority, { class: "urgent", dueAt: 0 })
  )
  const identified = checked.flatMap(({ name, url, value }) =>
    value === null ? [] : [{ name, url, sourceNumber: value.sourceNumber }]
  )
  return groupAlike([...checked.flatMap(({ findings }) => findings), ...CompanyChecks.duplicateCompanies(identified)])
})

/** Companies that are checked together: each check sends requests to the source. */
const companiesAtOnce = 20
/** Companies that are checked where none is named. */
const companiesMax = 50

/** The companies to check at the source: those that are named, else the worst of many. */
const companiesToCheck = Effect.fnUntraced(function* (
  companies: ReadonlyArray<CompanyConfiguration>,
  isNamed: boolean
) {
  const { context } = yield* Tables
  if (isNamed || companies.length <= companiesMax) return { companies, findings: [] }
  const names = companies.map(({ name }) => name)
  const worst =
    context === null
      ? []
      : yield* CompanyStates.list(names, CompanyStates.anyCompany, null, companiesMax).pipe(
          Effect.provideContext(context),
          Effect.orElseSucceed(() => [])
        )
  const rankOf = new Map(worst.map(({ company }, index) => [company, index]))
  const ordered = companies.toSorted(
    (one, other) => (rankOf.get(one.name) ?? companiesMax) - (rankOf.get(other.name) ?? companiesMax)
  )
  return {
    companies: ordered.slice(0, companiesMax),
    findings: [
      about("companies").skipped(
        `only the worst ${companiesMax} of ${Output.count(companies.length)} companies are checked at the source; --company NAME checks others`
      )
    ]
  }
})

/** The companies of file and warehouse with these names (none: all). A mistake in one hides no other. */
const checkStored = Effect.fnUntraced(function* (
  { settings: file, noCompany }: LoadedSettings,
  names: ReadonlyArray<string>
) {
  const { context } = yield* Tables
  const its = about("companies")
  const read = StoredCompanies.extend(file, StoredCompanies.readOnly(file))
  const all =
    context === null
      ? file
      : yield* read.pipe(
          Effect.provideContext(context),
          Effect.orElseSucceed(() => file)
        )
  const companies = yield* Configuration.chooseCompanies(all, names)
  const isChosen = ({ name }: { readonly name: string }) => names.length === 0 || names.includes(name)
  const paused = companies.filter((one) => one.paused !== null).map(({ name }) => name)
  const findings: Findings = [
    ...(Configuration.namesOf(all).length === 0 ? [noCompany] : []),
    ...(all.companies.length > file.companies.length
      ? [
          its.ok(
            Output.plural(all.companies.length - file.companies.length, "company", "companies") + " of the warehouse"
          )
        ]
      : []),
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

/** The listeners of `serve`, its processes, and the work that it left. */
const checkServe = ({ companies, webhooks, dashboard, proxies }: Configuration.Configuration) => {
  const names = companies.map(({ name }) => name)
  const [first] = names
  const { publicUrl, tls } = webhooks
  return all([
    publicUrl === null || first === undefined
      ? Effect.succeed([])
      : check("webhook address", publicUrl, (its) =>
          Webhooks.publicAddress(its, publicUrl, first, { proxies, secureContext: null })
        ),
    check("webhook certificate", null, () => Certificate.files("webhook certificate", tls)),
    Effect.succeed([Webhooks.page(about("page"), dashboard)]),
    check("page certificate", null, () => Certificate.files("page certificate", dashboard?.tls ?? null)),
    checkTables("serve", null, (its) => Webhooks.serve(its, names), "omitted"),
    checkTables("runs", null, () => leftovers, "omitted")
  ])
}

/** Every finding, in the order in which a person resolves them. */
export const examine = Effect.fn("Doctor.examine")(function* (options: DoctorOptions) {
  const { value: loaded, findings: configuration } = yield* loadSettings(options.config)
  const machine = yield* all(
    Object.entries(Machine.checks).map(([name, run]) => check(name, null, (its) => Effect.sync(() => run(its))))
  )
  const first: Findings = [...machine, ...configuration]
  if (loaded === null) return [...first, about("everything else").skipped("the configuration must be valid first")]
  return yield* Effect.gen(function* () {
    const [disk, warehouse] = yield* Effect.all(
      [check("disk", null, (its) => Machine.disk(its, loaded.settings)), checkWarehouse(loaded.settings)],
      { concurrency: "unbounded" }
    )
    const stored = yield* checkStored(loaded, options.companies).pipe(Effect.provideService(Tables, warehouse.tables))
    const settings = stored.value
    const tables = yield* all([
      checkTables("tables", null, (its) => agreement(its, settings), "omitted"),
      checkTables("history", null, (its) => historyOf(its, settings), "omitted"),
      checkTables("privacy", null, (its) => privacy(its, settings), "omitted"),
      checkTables("radar", null, () => checkInstallations(settings), "omitted")
    ]).pipe(Effect.provideService(Tables, warehouse.tables))
    const addresses = yield* checkAddresses(settings)
    const [{ findings: choice, found: companyFindings }, serveFindings] = yield* Effect.all([
      Effect.flatMap(companiesToCheck(settings.companies, options.companies.length > 0), (chosen) =>
        Effect.map(
          checkCompanies({ ...settings, companies: chosen.companies }, loaded.catalogue, options.sendTest),
          (found) => ({ findings: chosen.findings, found })
        )
      ),
      checkServe(settings)
    ]).pipe(Effect.provideService(Tables, warehouse.tables))
    return [
      ...first,
      ...disk,
      ...warehouse.findings,
      ...tables,
      ...stored.findings,
      ...addresses.flatMap(({ findings }) => findings),
      ...checkClocks(settings, addresses, warehouse.clock),
      ...choice,
      ...companyFindings,
      ...serveFindings
    ] satisfies Findings
  }).pipe(Effect.scoped)
})
