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
import { layerPostgres } from "../../budget/Budgets.ts"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import * as Configuration from "../../configuration/Configuration.ts"
import { checkAddresses, checkClocks } from "./Address.ts"
import * as Certificate from "./Certificate.ts"
import * as CompanyChecks from "./CompanyChecks.ts"
import { checkCompany } from "./Company.ts"
import { about, bounded, type Findings } from "./Finding.ts"
import { leftovers } from "./Leftovers.ts"
import * as Machine from "./Machine.ts"
import { loadSettings } from "./Settings.ts"
import * as Warehouse from "./Warehouse.ts"
import * as Webhooks from "./Webhooks.ts"

export interface DoctorOptions {
  /** Null is the default file. */
  readonly config: string | null
  /** Empty means all companies. */
  readonly companies: ReadonlyArray<string>
  readonly sendTest: boolean
}

/** Runs checks side by side; their findings stay in this order. */
const all = <R>(checks: ReadonlyArray<Effect.Effect<Findings, never, R>>) =>
  Effect.map(Effect.all(checks, { concurrency: "unbounded" }), (findings) => findings.flat())

const checkCompanies = Effect.fnUntraced(function* (
  settings: Configuration.Configuration,
  catalogue: Catalogue,
  tables: Warehouse.WarehouseTables,
  sendTest: boolean
) {
  // With the tables, all processes of a token share one rate budget.
  const budgets =
    tables.context === null
      ? Context.empty()
      : yield* Layer.build(layerPostgres.pipe(Layer.provide(Layer.succeedContext(tables.context))))
  const checked = yield* Effect.forEach(
    settings.companies,
    (company) =>
      Effect.map(checkCompany(company, { settings, catalogue, tables, sendTest }), (result) => ({
        name: company.name,
        ...result
      })),
    { concurrency: "unbounded" }
  ).pipe(
    Effect.provideContext(budgets),
    // A person waits for the result; a backfill may be using the whole budget.
    Effect.provideService(Priority, { class: "urgent", dueAt: 0 })
  )
  const identities = new Map(
    checked.flatMap(({ name, identity }) => (identity === null ? [] : [[name, identity] as const]))
  )
  return [...checked.flatMap(({ findings }) => findings), ...CompanyChecks.duplicateCompanies(identities)]
})

/** The listeners of `serve`, its processes, and the work that it left. */
const checkServe = (
  { companies, webhooks, dashboard }: Configuration.Configuration,
  tables: Warehouse.WarehouseTables
) => {
  const names = companies.map(({ name }) => name)
  const { publicUrl, tls } = webhooks
  return all([
    publicUrl === null || names[0] === undefined
      ? Effect.succeed<Findings>([])
      : bounded(about("webhook address", publicUrl), Webhooks.publicAddress(publicUrl, names[0])),
    bounded(about("webhook certificate"), Certificate.files("webhook certificate", tls)),
    Effect.succeed([Webhooks.page(dashboard)]),
    bounded(about("page certificate"), Certificate.files("page certificate", dashboard?.tls ?? null)),
    ...(tables.context === null
      ? []
      : [
          Warehouse.queryTables(tables, about("serve"), Webhooks.serve(names)),
          Warehouse.queryTables(tables, about("runs"), leftovers)
        ])
  ])
}

/** Every finding, in the order in which a person resolves them. */
export const examine = Effect.fn("Doctor.examine")(function* (options: DoctorOptions) {
  const { loaded, findings: configuration } = yield* loadSettings(options.config)
  const machine = yield* all([
    bounded(about("node"), Machine.node),
    bounded(about("time zones"), Machine.timeZones),
    bounded(about(".env"), Machine.environmentFile)
  ])
  const first: Findings = [...machine, ...configuration]
  if (loaded === null) return [...first, about("everything else").skipped("the configuration must be valid first")]
  const companies = yield* Configuration.chooseCompanies(loaded.settings, options.companies)
  const settings = { ...loaded.settings, companies }
  return yield* Effect.gen(function* () {
    const [disk, addresses, warehouse] = yield* Effect.all(
      [bounded(about("disk"), Machine.disk(settings)), checkAddresses(settings), Warehouse.check(settings)],
      { concurrency: "unbounded" }
    )
    const { tables } = warehouse
    const companyFindings = yield* checkCompanies(settings, loaded.catalogue, tables, options.sendTest)
    return [
      ...first,
      ...disk,
      ...warehouse.findings,
      ...addresses.flatMap(({ findings }) => findings),
      ...checkClocks(settings, addresses, warehouse.clock),
      ...companyFindings,
      ...(yield* checkServe(settings, tables))
    ] satisfies Findings
  }).pipe(Effect.scoped)
})
