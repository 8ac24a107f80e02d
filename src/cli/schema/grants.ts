/** The command `schema grants`: SQL that gives the loader and the reader their rights. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import { parseUrl } from "../../postgres/DatabaseUrl.ts"
import { superuser } from "../../postgres/embedded/Postmaster.ts"
import * as CompanyGrants from "../../warehouse/CompanyGrants.ts"
import * as Grants from "../../warehouse/Grants.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "../../warehouse/Model.ts"
import { configuration, defaultFlag, resultCommand, textFlag } from "../Command.ts"
import * as Warehouse from "../Warehouse.ts"
import { invalid, invalidNames } from "./SchemaChanges.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"

/** The number of a company, as the source last answered it. */
export const companyIdOf = Effect.fnUntraced(function* (company: string) {
  const companyId = yield* TaskQueue.companyIdOf(company)
  if (companyId !== null) return companyId
  return yield* invalid(`the warehouse does not know the number of company ${company}; sync it first: tributary sync`)
})

const userOf = (url: Redacted.Redacted) => Effect.map(parseUrl(url), ({ user }) => user)

export const grantsCommand = resultCommand({
  name: "grants",
  description:
    "Print the statements that give the loader and the reader their rights, for the owner or an administrator to run",
  examples: {
    "tributary schema grants | psql": "Create both roles with their rights",
    "tributary schema grants --owner etl | sudo -u postgres psql":
      "As an administrator, where the role etl owns the tables",
    "tributary schema grants --company north | psql": "A role that reads the rows of one company only"
  },
  flags: {
    loader: defaultFlag("loader", "ROLE", "The role that syncs", Grants.roleNamesDefault.loader),
    reader: textFlag(
      "reader",
      "ROLE",
      `The role that queries (default: ${Grants.roleNamesDefault.reader}; with --company, followed by its number)`
    ),
    owner: textFlag("owner", "ROLE", "The role that owns the tables (default: the user of DATABASE_URL)"),
    company: textFlag(
      "company",
      "NAME",
      "Only a reader of this company's rows, by name; reads its number from the warehouse"
    )
  },
  run: (flags, file) =>
    Effect.gen(function* () {
      const settings = yield* configuration(file)
      const companyId = Option.isNone(flags.company)
        ? null
        : yield* Warehouse.provide(companyIdOf(flags.company.value), { ...settings, mustExist: true })
      const { loader } = flags
      const reader = Option.getOrElse(flags.reader, () =>
        companyId === null ? Grants.roleNamesDefault.reader : CompanyGrants.readerDefault(companyId)
      )
      const unusable = invalidNames("role", [loader, reader])
      if (unusable.length > 0) return yield* invalid(...unusable)
      const datasets = {
        ...settings.datasets,
        models: modelsDatasetDefault,
        asOfModels: asOfModelsDataset,
        control: Grants.controlDataset
      }
      const user = settings.databaseUrl === null ? superuser : yield* userOf(settings.databaseUrl)
      const owner = Option.getOrElse(flags.owner, () => user)
      if (companyId === null) return { statements: Grants.statements(datasets, { loader, reader, owner }) }
      if (reader === loader || reader === Grants.roleNamesDefault.reader) {
        return yield* invalid(`the role ${reader} has the rows of every company; choose another --reader`)
      }
      return { statements: CompanyGrants.statements(datasets, companyId, reader, owner) }
    }),
  lines: ({ statements }) => statements.map((statement) => `${statement};`)
})
