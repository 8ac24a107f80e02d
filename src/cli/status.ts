/**
 * The command `status`: the content of the warehouse, its freshness, and its last errors. Where there are many companies
 * it shows totals and the worst of them; `--company`, `--state` and `--all` show more.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { chooseCompanies, type Configuration } from "../configuration/Configuration.ts"
import * as EmbeddedPostgres from "../postgres/EmbeddedPostgres.ts"
import * as Activity from "../status/Activity.ts"
import { installationLabel } from "../configuration/Installations.ts"
import * as CompanyStates from "../status/CompanyStates.ts"
import * as Invariants from "../status/Invariants.ts"
import * as Outbox from "../status/Outbox.ts"
import * as Schedule from "../status/Schedule.ts"
import * as Problems from "../status/Problems.ts"
import * as Webhooks from "../status/Webhooks.ts"
import { companyStates } from "../tasks/CountCompanies.ts"
import * as TaskQueue from "../tasks/TaskQueue.ts"
import { company, config, demoWarehouse, json, onWarehouse, switchFlag, withExamples } from "./Command.ts"
import * as Connection from "./Connection.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import * as Output from "./Output.ts"
import { embeddedRoot, locationOf } from "./Warehouse.ts"
import { damagedTables } from "./schema/SchemaChanges.ts"
import { fleetLines, readFleet } from "./status/Fleet.ts"
import { reportLines } from "./status/Format.ts"
import { readResources } from "./status/Resources.ts"

/** Companies of one report of `--all`, so that the memory does not grow with their number. */
const reportMax = 50

/** A sentence for each damaged table. */
const readDamage = (settings: Configuration) =>
  Effect.map(damagedTables(settings), (damaged) => damaged.map(({ message }) => message))

/** The state of each resource, with the settings that limit what is read. */
const readOf = Effect.fnUntraced(function* (settings: Configuration, ids: ReadonlyArray<bigint> | null) {
  const { resources } = yield* catalogueOf(settings)
  return yield* readResources(settings.datasets, ids, settings.companies, (path) => resources.get(path))
})

const membersOf = ({ companies }: Configuration) =>
  companies.map((one) => ({ name: one.name, installation: installationLabel(one) }))

/** Everything about these companies; null is all. */
const readReport = (settings: Configuration, names: ReadonlyArray<string> | null, ids: ReadonlyArray<bigint> | null) =>
  Effect.all({
    resources: readOf(settings, ids),
    problems: Problems.read(names),
    schedule: Schedule.readOf(names),
    webhooks: Webhooks.readOf(names),
    outbox: Outbox.openOf(names),
    invariants: Invariants.summary(ids),
    activity: Activity.readDay(names),
    damaged: readDamage(settings),
    installations: CompanyStates.readInstallations(
      membersOf(settings).filter(({ name }) => names === null || names.includes(name))
    )
  })

/** Prints the address alone, so that another program can take it. */
const printConnection = Effect.fnUntraced(function* (flags: {
  readonly config: Option.Option<string>
  readonly demo: boolean
  readonly json: boolean
  readonly owner: boolean
}) {
  const { url, isBrief } = yield* onWarehouse(flags, (settings) =>
    Effect.gen(function* () {
      const location = locationOf(settings, flags.demo)
      return {
        url: Redacted.value(yield* Connection.urlFor(location, flags.owner)),
        isBrief: location.databaseUrl === null && !(yield* EmbeddedPostgres.look(embeddedRoot(location))).stays
      }
    })
  )
  yield* Output.printResult(flags.json, { url }, () => [url])
  if (isBrief) yield* Output.note("the server runs while a command does; to keep it running: tributary postgres start")
})

export const command = Command.make(
  "status",
  {
    company,
    all: switchFlag(
      "all",
      `Every resource, also of more than ${CompanyStates.detailedMax} companies; --json prints a line for each ${reportMax}`
    ),
    state: Flag.Literals("state", companyStates).pipe(
      Flag.withDescription("The worst companies in this state, as tributary serve counts them"),
      Flag.optional
    ),
    connection: switchFlag("connection", "Print the address of the warehouse for other programs, with its password"),
    owner: Connection.owner,
    config,
    demo: demoWarehouse,
    json
  },
  Effect.fn(function* (flags) {
    if (flags.connection || flags.owner) return yield* printConnection(flags)
    yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        const report = (names: ReadonlyArray<string> | null, ids: ReadonlyArray<bigint> | null) =>
          Effect.flatMap(readReport(settings, names, ids), (read) => Output.printResult(flags.json, read, reportLines))
        const known = yield* TaskQueue.companyIds
        const idsOf = (names: ReadonlyArray<string>) => names.flatMap((name) => known.get(name) ?? [])
        if (flags.company.length > 0) {
          yield* chooseCompanies(
            settings,
            flags.company.filter((name) => !known.has(name))
          )
          return yield* report(flags.company, idsOf(flags.company))
        }
        const state = Option.getOrNull(flags.state)
        if (state === null && known.size <= CompanyStates.detailedMax) return yield* report(null, null)
        const names = [...known.keys()].sort()
        if (!flags.all || state !== null) {
          return yield* Output.printResult(
            flags.json,
            yield* readFleet(names, membersOf(settings), state, yield* readDamage(settings)),
            fleetLines
          )
        }
        for (let from = 0; from < names.length; from += reportMax) {
          const some = names.slice(from, from + reportMax)
          yield* report(some, idsOf(some))
        }
      })
    )
  })
).pipe(
  withExamples({
    "tributary status": "A table of every resource, or of the worst companies",
    "tributary status --state late": "The companies that are late, the worst first",
    "tributary status --company north": "Every resource of a company",
    "tributary status --connection": "The address for psql, DBeaver, Metabase and dbt, of a login that may only read",
    "tributary status --demo --json": "The demo's warehouse, for a machine"
  })
)
