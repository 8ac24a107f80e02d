/** The command `export`: files of the warehouse's tables. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import * as Export from "../export/Export.ts"
import { formats, type Manifest } from "../export/Manifest.ts"
import { tableOf } from "../warehouse/Table.ts"
import { config, demoWarehouse, json, onWarehouse, resources, switchFlag, textFlag, withExamples } from "./Command.ts"
import { CommandFailed, exitCode, usageError } from "./Exit.ts"
import { CommandLine } from "./Invocation.ts"
import * as Output from "./Output.ts"
import { companyIdOf } from "./schema/grants.ts"
import { refuseDamaged, warehouseResources } from "./schema/SchemaChanges.ts"
import * as Targets from "./Targets.ts"

const summary = ({ tables, exportedAt, format, since, position }: Manifest, folder: string): ReadonlyArray<string> => {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  const bytes = tables.reduce((sum, { files }) => sum + files.reduce((size, file) => size + file.bytes, 0), 0)
  return [
    `${Output.plural(rows, since === null ? "row" : "changed row")} of ${Output.plural(tables.length, "table")} as of ${exportedAt} in ${folder} (${format}, ${(bytes / 1e6).toFixed(1)} MB); its files are named in manifest.json`,
    `later changes: --since ${position}`
  ]
}

export const command = Command.make(
  "export",
  {
    resources: resources("export"),
    to: Flag.String("to").pipe(
      Flag.withDescription("The folder of the files; it is created where it does not exist"),
      Flag.withMetavar("DIR")
    ),
    format: Flag.Literals("format", formats).pipe(
      Flag.withDescription("The format of the files (default: parquet)"),
      Flag.withDefault("parquet" as const)
    ),
    history: switchFlag("history", "Every version of the records, too, below history/"),
    since: textFlag(
      "since",
      "POSITION",
      "Only records that changed after this position of the change feed: that of an earlier manifest"
    ),
    company: textFlag("company", "NAME", "The rows of this company only"),
    demo: demoWarehouse,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const manifest = yield* onWarehouse(flags, (settings) =>
      Effect.gen(function* () {
        const chosen =
          flags.resources.length > 0
            ? yield* Effect.forEach(flags.resources, (path) => Targets.resourceOf(settings, path))
            : yield* warehouseResources(settings)
        yield* refuseDamaged(settings, chosen)
        const since = Option.isNone(flags.since) ? null : ChangeFeed.parse(flags.since.value)
        if (since === null && Option.isSome(flags.since))
          return yield* usageError(`--since ${flags.since.value}: expected a position, such as 1200-1f3a9c`)
        const companyId = Option.isNone(flags.company) ? null : yield* companyIdOf(flags.company.value)
        return yield* Export.run({
          folder: flags.to,
          format: flags.format,
          datasets: settings.datasets,
          tables: chosen.map((resource) => tableOf(resource, settings.datasets).name),
          history: flags.history,
          since,
          companyId,
          onTable: (table, rows) =>
            flags.json ? Effect.void : Output.note(`  ${table}: ${Output.plural(rows, "row")}`)
        }).pipe(
          Effect.onInterrupt(() =>
            Effect.flatMap(CommandLine, (again) =>
              Output.note(`Stopped; the files of the export before are unchanged. Start again with: ${again}`)
            )
          ),
          Effect.catchTags({
            ExportFailed: ({ message }) => Effect.fail(new CommandFailed({ code: exitCode.configuration, message })),
            PositionLost: ({ message }) => Effect.fail(new CommandFailed({ code: exitCode.configuration, message }))
          })
        )
      })
    )
    yield* Output.printResult(flags.json, manifest, (written) => summary(written, flags.to))
  })
).pipe(
  withExamples({
    "tributary export --to ./files": "Every table as Parquet, with exact decimals",
    "tributary export widgets --history --format ndjson --to ./files": "One resource with all versions",
    "tributary export --since 1200-1f3a9c --to ./changed":
      "The records that changed after the position of an earlier manifest"
  })
)
