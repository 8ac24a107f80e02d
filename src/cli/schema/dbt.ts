/** The command `schema dbt`: the warehouse as dbt sources. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as Folder from "../../files/Folder.ts"
import * as Dbt from "../../warehouse/Dbt.ts"
import { modelsDatasetDefault } from "../../warehouse/Model.ts"
import { config, configuration, textFlag, withExamples } from "../Command.ts"
import { catalogueOf } from "../EffectiveCatalogue.ts"
import { usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import * as Models from "../Models.ts"
import * as Warehouse from "../Warehouse.ts"
import { syncedResources, warehouseResources } from "./SchemaChanges.ts"

/** dbt sources, each with the text of its file. Inferred columns need the warehouse. */
const dbtSources = Effect.fn("schema.dbt")(function* (settings: Configuration, useWarehouse: boolean) {
  const resources = useWarehouse
    ? yield* Warehouse.provide(warehouseResources(settings), { ...settings, mustExist: true })
    : syncedResources(yield* catalogueOf(settings), settings)
  const { models } = yield* Models.of(settings)
  const { Document } = yield* Effect.promise(() => import("yaml"))
  const textOf = (sources: ReadonlyArray<Dbt.DbtSource>): string => {
    const document = new Document({ version: 2, sources }, { aliasDuplicateObjects: false })
    document.commentBefore = Dbt.heading.map((line) => ` ${line}`).join("\n")
    return document.toString({ lineWidth: 0 })
  }
  const datasets = { ...settings.datasets, models: modelsDatasetDefault }
  const sources = Dbt.sourcesOf({ resources, models, datasets, freshnessOf: settings.freshnessOf })
  return {
    text: textOf(sources),
    files: sources.map((one) => ({ name: `tributary_${one.name}.yml`, text: textOf([one]), tables: one.tables.length }))
  }
})

export const dbtCommand = Command.make(
  "dbt",
  {
    out: textFlag(
      "out",
      "DIR",
      "Write one file per source into this folder, for example models/sources (default: print them)"
    ),
    config
  },
  Effect.fn(function* (flags) {
    const settings = yield* configuration(flags.config)
    // This command does not create the embedded Postgres.
    const written = yield* dbtSources(settings, yield* Warehouse.exists(settings))
    if (Option.isNone(flags.out)) return yield* Output.print(written.text.trimEnd())
    const folder = flags.out.value
    yield* Effect.try({
      try: () => {
        Folder.make(folder)
        for (const { name, text } of written.files) writeFileSync(join(folder, name), text)
      },
      catch: (cause) =>
        usageError(`${folder} cannot be written (${cause instanceof Error ? cause.message : String(cause)})`)
    })
    for (const { name, tables } of written.files) {
      yield* Output.print(`${join(folder, name)}: ${Output.plural(tables, "table")} with columns and tests`)
    }
  })
).pipe(
  Command.withDescription("Write dbt sources: every table and view with its columns, types, meanings and tests"),
  withExamples({
    "tributary schema dbt --out models/sources": "One file per source, in a dbt project"
  })
)
