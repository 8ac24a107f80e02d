/** The command `schema publication`: SQL that publishes the current records for logical replication. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Publication from "../../warehouse/Publication.ts"
import { defaultFlag, textFlag, warehouseCommand } from "../Command.ts"
import { exitCode } from "../Exit.ts"
import * as Output from "../Output.ts"
import { companyIdOf } from "./grants.ts"
import { invalid, invalidNames } from "./SchemaChanges.ts"

export const publicationCommand = warehouseCommand({
  name: "publication",
  description:
    "Print the statements that publish the current records for logical replication, and check its requirements",
  examples: {
    "tributary schema publication | psql": "Create the publication, or add the tables that are new",
    "tributary schema publication --name north --company north": "The rows of one company"
  },
  flags: {
    name: defaultFlag("name", "NAME", "The name of the publication", Publication.nameDefault),
    company: textFlag("company", "NAME", "Publish the rows of this company only, by name (Postgres 15 or later)")
  },
  run: ({ datasets }, { name, company }) =>
    Effect.gen(function* () {
      const invalidName = invalidNames("publication", [name])
      if (invalidName.length > 0) return yield* invalid(...invalidName)
      const companyId = Option.isNone(company) ? null : yield* companyIdOf(company.value)
      const planned = yield* Publication.plan({ name, dataset: datasets.current, companyId })
      if (planned !== null) return planned
      return yield* invalid("a publication of one company needs Postgres 15 or later: leave --company out")
    }),
  lines: ({ statements, tables }, { name }) =>
    statements.length > 0
      ? statements.map((statement) => `${statement};`)
      : [`-- There is nothing to run: the publication ${name} has ${Output.plural(tables, "table")}.`],
  notes: ({ problems }) => problems,
  code: ({ problems }) => (problems.length > 0 ? exitCode.incomplete : exitCode.ok)
})
