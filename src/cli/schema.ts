/** The command `schema`: the warehouse's tables, columns and views, planned and applied. */
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { repeatedFlag, warehouseCommand } from "./Command.ts"
import { exitCode } from "./Exit.ts"
import { dbtCommand } from "./schema/dbt.ts"
import { reportLines, reportNotes } from "./schema/Format.ts"
import { grantsCommand } from "./schema/grants.ts"
import { publicationCommand } from "./schema/publication.ts"
import { repairCommand } from "./schema/repair.ts"
import { apply, plan } from "./schema/SchemaChanges.ts"

const planCommand = warehouseCommand({
  name: "plan",
  description: "Show the SQL that brings the warehouse's tables up to date; changes nothing",
  examples: { "tributary schema plan": "SQL, new fields, and names that differ from the API's" },
  flags: {},
  run: plan,
  lines: (report) => reportLines(report, true),
  notes: reportNotes,
  code: ({ damaged }) => (damaged.length > 0 ? exitCode.configuration : exitCode.ok)
})

const types = ["integer", "number", "decimal", "boolean", "text", "date", "timestamp", "json"] as const

const applyCommand = warehouseCommand({
  name: "apply",
  description: "Bring the warehouse's tables up to date, only by additions, and create columns for unknown fields",
  examples: {
    "tributary schema apply": "Everything that schema plan shows",
    "tributary schema apply --field widgets.colour --type text": "One column, with a type of your choice"
  },
  flags: {
    field: repeatedFlag(
      "field",
      "RESOURCE.FIELD",
      "Create a column for this unknown field only (may be repeated; default: all of them)"
    ),
    type: Flag.Literals("type", types).pipe(
      Flag.withDescription("The type of the columns of --field (default: inferred from the values)"),
      Flag.optional
    )
  },
  makesWarehouse: true,
  run: (settings, { field, type }) => apply(settings, { fields: field, type: Option.getOrNull(type) }),
  lines: (report) => reportLines(report, false),
  notes: reportNotes,
  code: ({ damaged, refusedViews }) =>
    damaged.length > 0 ? exitCode.configuration : refusedViews.length > 0 ? exitCode.incomplete : exitCode.ok
})

export const command = Command.make("schema").pipe(
  Command.withSubcommands([planCommand, applyCommand, repairCommand, grantsCommand, publicationCommand, dbtCommand])
)
