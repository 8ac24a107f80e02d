/** The command `schema publication`: SQL that publishes the current records for logical replication. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Option from "effect/Option"
import * as Publication from "../../warehouse/Publication.ts"
import { config, defaultFlag, json, onWarehouse, textFlag, withExamples } from "../Command.ts"
import { endWith, exitCode } from "../Exit.ts"
import * as Output from "../Output.ts"
import { companyIdOf } from "./grants.ts"
import { invalid, invalidNames } from "./SchemaChanges.ts"

export const publicationCommand = Command.make(
  "publication",
  {
    name: defaultFlag("name", "NAME", "The name of the publication", Publication.nameDefault),
    company: textFlag("company", "NAME", "Publish the rows of this company only, by name (Postgres 15 or later)"),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const plan = yield* onWarehouse(flags, (settings) =>
      Effect.gen(function* () {
        const { name } = flags
        const invalidName = invalidNames("publication", [name])
        if (invalidName.length > 0) return yield* invalid(...invalidName)
        const companyId = Option.isNone(flags.company) ? null : yield* companyIdOf(flags.company.value)
        const planned = yield* Publication.plan({ name, dataset: settings.datasets.current, companyId })
        if (planned !== null) return planned
        return yield* invalid("a publication of one company needs Postgres 15 or later: leave --company out")
      })
    )
    const { statements, problems, tables } = plan
    yield* Output.printResult(flags.json, plan, () =>
      statements.length > 0
        ? statements.map((statement) => `${statement};`)
        : [`-- There is nothing to run: the publication ${flags.name} has ${Output.plural(tables, "table")}.`]
    )
    for (const problem of problems) yield* Output.note(problem, "Warn")
    if (problems.length > 0) yield* endWith(exitCode.incomplete)
  })
).pipe(
  Command.withDescription(
    "Print the statements that publish the current records for logical replication, and check its requirements"
  ),
  withExamples({
    "tributary schema publication | psql": "Create the publication, or add the tables that are new",
    "tributary schema publication --name north --company north": "The rows of one company"
  })
)
