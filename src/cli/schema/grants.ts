/** The command `schema grants`: SQL that gives the loader and the reader their rights. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Grants from "../../warehouse/Grants.ts"
import { config, configuration, json, reported, withExamples } from "../Command.ts"
import * as Output from "../Output.ts"
import { invalid, modelDatasets } from "./SchemaChanges.ts"

export const grantsCommand = Command.make(
  "grants",
  {
    loader: Flag.String("loader").pipe(
      Flag.withDescription("The role that syncs"),
      Flag.withMetavar("ROLE"),
      Flag.withDefault(Grants.roleNamesDefault.loader)
    ),
    reader: Flag.String("reader").pipe(
      Flag.withDescription("The role that queries"),
      Flag.withMetavar("ROLE"),
      Flag.withDefault(Grants.roleNamesDefault.reader)
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const statements = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        const { loader, reader } = flags
        const invalidNames = [loader, reader].filter((name) => !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name))
        if (invalidNames.length > 0) {
          return yield* invalid(
            ...invalidNames.map((name) => `"${name}" is no name for a role: letters, digits and _, at most 63`)
          )
        }
        return Grants.statements(
          { ...settings.datasets, ...modelDatasets(settings), control: Grants.controlDataset },
          { loader, reader }
        )
      })
    )
    yield* Output.printResult(flags.json, { statements }, () => statements.map((statement) => `${statement};`))
  })
).pipe(
  Command.withDescription(
    "Print the statements that give the loader and the reader their rights, for the owner to run"
  ),
  withExamples({
    "tributary schema grants | psql": "Create both roles with their rights"
  })
)
