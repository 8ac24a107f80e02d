/** The command `schema`: the warehouse's tables, columns and views, planned and applied. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { config, json, onWarehouse, onWarehouseOrNew, repeatedFlag, withExamples } from "./Command.ts"
import { endWith, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import { dbtCommand } from "./schema/dbt.ts"
import { printReport } from "./schema/Format.ts"
import { grantsCommand } from "./schema/grants.ts"
import { publicationCommand } from "./schema/publication.ts"
import { repairCommand } from "./schema/repair.ts"
import { apply, plan } from "./schema/SchemaChanges.ts"

const planCommand = Command.make(
  "plan",
  { config, json },
  Effect.fn(function* (flags) {
    const report = yield* onWarehouse(flags, plan)
    yield* flags.json ? Output.print(Output.toJson(report)) : printReport(report, true)
    if (report.damaged.length > 0) yield* endWith(exitCode.configuration)
  })
).pipe(
  Command.withDescription("Show the SQL that brings the warehouse's tables up to date; changes nothing"),
  withExamples({
    "tributary schema plan": "SQL, new fields, and names that differ from the API's"
  })
)

const types = ["integer", "number", "decimal", "boolean", "text", "date", "timestamp", "json"] as const

const applyCommand = Command.make(
  "apply",
  {
    field: repeatedFlag(
      "field",
      "RESOURCE.FIELD",
      "Create a column for this unknown field only (may be repeated; default: all of them)"
    ),
    type: Flag.Literals("type", types).pipe(
      Flag.withDescription("The type of the columns of --field (default: inferred from the values)"),
      Flag.optional
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const options = { fields: flags.field, type: Option.getOrNull(flags.type) }
    const report = yield* onWarehouseOrNew(flags, (settings) => apply(settings, options))
    yield* flags.json ? Output.print(Output.toJson(report)) : printReport(report, false)
    if (report.damaged.length > 0) yield* endWith(exitCode.configuration)
    if (report.refusedViews.length > 0) yield* endWith(exitCode.incomplete)
  })
).pipe(
  Command.withDescription(
    "Bring the warehouse's tables up to date, only by additions, and create columns for unknown fields"
  ),
  withExamples({
    "tributary schema apply": "Everything that schema plan shows",
    "tributary schema apply --field widgets.colour --type text": "One column, with a type of your choice"
  })
)

export const command = Command.make("schema").pipe(
  Command.withSubcommands([planCommand, applyCommand, repairCommand, grantsCommand, publicationCommand, dbtCommand])
)
