/** `tributary schema`: what the warehouse has of tables, columns and views, and what it would get. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as SqlClient from "effect/sql/SqlClient"
import type { InferredType } from "../catalogue/Field.ts"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { ConfigurationError } from "../configuration/Configuration.ts"
import * as Adoption from "../warehouse/Adoption.ts"
import * as Dbt from "../warehouse/Dbt.ts"
import * as Grants from "../warehouse/Grants.ts"
import { type ModelDatasets, modelsDatasetDefault } from "../warehouse/Model.ts"
import * as Overlay from "../warehouse/Overlay.ts"
import { tableOf } from "../warehouse/Table.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"
import * as Views from "../warehouse/Views.ts"
import { config, configuration, json, reported } from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"
import * as Warehouse from "./Warehouse.ts"

/** An unknown field as the commands tell of it. */
export interface UnknownField {
  readonly resource: string
  readonly field: string
  readonly times: number
  readonly sampleTypes: ReadonlyArray<string>
  /** Name and type of the column that it becomes; null when its type cannot be told yet. */
  readonly column: string | null
  readonly type: InferredType | null
  /** Whether the next sync makes the column by itself: the resource is known from the configuration only. */
  readonly isAutomatic: boolean
}

/** A name of the API that the database has another name for. */
export interface MappedName {
  /** Null for the name of a resource. */
  readonly resource: string | null
  readonly name: string
  readonly inDatabase: string
}

export interface SchemaReport {
  /** SQL that would run, or ran. */
  readonly statements: ReadonlyArray<string>
  readonly adopted: ReadonlyArray<Adoption.Promotion>
  readonly unknownFields: ReadonlyArray<UnknownField>
  readonly names: ReadonlyArray<MappedName>
  readonly skippedViews: ReadonlyArray<Views.Skipped>
  readonly refusedViews: ReadonlyArray<Views.Refused>
}

/** Which unknown fields become columns. */
export interface PromoteOptions {
  /** `resource.field`; empty is all. */
  readonly fields: ReadonlyArray<string>
  /** Instead of what the values look like. */
  readonly type: InferredType | null
}

const everyField: PromoteOptions = { fields: [], type: null }

const modelDatasets = (settings: Configuration): ModelDatasets => ({
  current: settings.datasets.current,
  models: modelsDatasetDefault
})

/** What the companies sync. */
const synced = ({ resources }: Pick<Catalogue, "resources">, { companies }: Configuration): ReadonlyArray<Resource> => {
  if (companies.length === 0 || companies.some((company) => company.resources === null)) return [...resources.values()]
  const wanted = new Set(companies.flatMap((company) => company.resources ?? []))
  return [...resources.values()].filter(({ path }) => wanted.has(path))
}

/** The resources whose tables the warehouse has to have. */
const resourcesOf = Effect.fnUntraced(function* (settings: Configuration) {
  return synced(yield* Overlay.load(yield* catalogueOf(settings)), settings)
})

const wrong = (...problems: ReadonlyArray<string>) => new ConfigurationError({ problems })

/** Picks the fields that are wished for; a wish that cannot be granted says which can. */
const chosen = (
  known: ReadonlyArray<Adoption.Candidate>,
  { fields, type }: PromoteOptions
): Effect.Effect<ReadonlyArray<Adoption.Candidate>, ConfigurationError> => {
  const nameOf = (one: Adoption.Candidate) => `${one.resource}.${one.field}`
  if (fields.length === 0) {
    return type === null
      ? Effect.succeed(known)
      : Effect.fail(wrong("--type is for the fields named with --field; name at least one"))
  }
  const names = new Set(known.map(nameOf))
  const missing = fields.filter((one) => !names.has(one))
  if (missing.length > 0) {
    const offered = names.size === 0 ? "no unknown field was seen" : `there are: ${[...names].slice(0, 20).join(", ")}`
    return Effect.fail(
      wrong(...missing.map((one) => `"${one}" is no unknown field that a record was seen to carry; ${offered}`))
    )
  }
  return Effect.succeed(
    known.filter((one) => fields.includes(nameOf(one))).map((one) => ({ ...one, type: type ?? one.type }))
  )
}

const wishesOf = (
  all: ReadonlyArray<Adoption.Candidate>,
  resource: Resource
): ReadonlyArray<Adoption.PromotionRequest> =>
  all.flatMap(({ resource: path, field, type }) => (path === resource.path && type !== null ? [{ field, type }] : []))

/** Names that differ from the API's, given and about to be given. */
const mapped = Effect.fnUntraced(function* (
  resources: ReadonlyArray<Resource>,
  adoptions: ReadonlyArray<Adoption.Promotion>
) {
  const sql = yield* SqlClient.SqlClient
  const given = yield* sql<{ scope: string; name: string; column: string }>`
    select scope, api_name as name, sql_name as column from tributary.names
     where api_name <> sql_name order by scope, given_at, api_name`
  const known = given.map(({ scope, name, column }): MappedName => ({
    resource: scope === "" ? null : scope,
    name,
    inDatabase: column
  }))
  const all = [
    ...known,
    ...resources.flatMap(({ path, table }) =>
      table === null || table === path ? [] : [{ resource: null, name: path, inDatabase: table }]
    ),
    ...adoptions.flatMap(({ resource, field, column }) =>
      field === column ? [] : [{ resource, name: field, inDatabase: column }]
    )
  ]
  return [...new Map(all.map((one) => [`${one.resource ?? ""} ${one.name}`, one])).values()]
})

const reportOf = Effect.fnUntraced(function* (
  resources: ReadonlyArray<Resource>,
  known: ReadonlyArray<Adoption.Candidate>,
  adoptions: ReadonlyArray<Adoption.Promotion>,
  statements: ReadonlyArray<string>,
  views: Pick<Views.ViewPlan, "skipped" | "refused">
) {
  const automatic = new Set(resources.filter(({ basis }) => basis === "configured").map(({ path }) => path))
  return {
    statements,
    adopted: adoptions,
    unknownFields: known.map(({ resource, field, times, kinds, type }) => ({
      resource,
      field,
      times,
      sampleTypes: kinds,
      column: adoptions.find((one) => one.resource === resource && one.field === field)?.column ?? null,
      type,
      isAutomatic: automatic.has(resource)
    })),
    names: yield* mapped(resources, adoptions),
    skippedViews: views.skipped,
    refusedViews: views.refused
  } satisfies SchemaReport
})

/** What {@link apply} would do; changes nothing. */
export const plan = Effect.fn("schema.plan")(function* (settings: Configuration) {
  const source = yield* Source
  const resources = yield* resourcesOf(settings)
  const statements = [...(yield* TablePlan.planFor(resources.map((one) => tableOf(one, settings.datasets))))]
  const known = yield* Adoption.candidates(resources)
  const adoptions: Array<Adoption.Promotion> = []
  for (const resource of resources) {
    const planned = yield* Adoption.planFor(resource, wishesOf(known, resource), settings.datasets)
    adoptions.push(...planned.adoptions)
    statements.push(...planned.statements)
  }
  const views = yield* Views.planFor(yield* source.models, modelDatasets(settings))
  statements.push(...views.steps.flatMap((step) => step.statements))
  return yield* reportOf(resources, known, adoptions, statements, views)
})

/** Brings tables, learnt columns, views and indexes up to date; answers what ran. */
export const apply = Effect.fn("schema.apply")(function* (settings: Configuration, wish: PromoteOptions = everyField) {
  const source = yield* Source
  const resources = yield* resourcesOf(settings)
  const known = yield* Adoption.candidates(resources)
  const adopting = yield* chosen(known, wish)
  const statements = [...(yield* TablePlan.apply(resources.map((one) => tableOf(one, settings.datasets))))]
  const adoptions: Array<Adoption.Promotion> = []
  for (const resource of resources) {
    const adopted = yield* Adoption.promote(resource, wishesOf(adopting, resource), settings.datasets)
    adoptions.push(...adopted.adoptions)
    statements.push(...adopted.statements)
  }
  const views = yield* Views.apply(yield* source.models, modelDatasets(settings))
  statements.push(...views.done)
  const left = known.filter(
    ({ resource, field }) => !adoptions.some((one) => one.resource === resource && one.field === field)
  )
  return yield* reportOf(resources, left, adoptions, statements, views)
})

// -------------------------------------------------------------------------------------------------------------- telling

const isComment = (statement: string): boolean => statement.startsWith("comment on ")

const plural = (count: number, one: string, many = `${one}s`): string =>
  `${Output.count(count)} ${count === 1 ? one : many}`

const tell = Effect.fnUntraced(function* (report: SchemaReport, isPlan: boolean) {
  const { statements, unknownFields, names, refusedViews, skippedViews, adopted } = report
  if (isPlan) {
    for (const statement of statements) if (!isComment(statement)) yield* Output.print(`${statement};`)
    const comments = statements.filter(isComment).length
    if (comments > 0) yield* Output.print(`-- and ${plural(comments, "comment")} on tables and columns`)
  }
  if (unknownFields.length > 0) {
    yield* Output.print(`\nFields that no catalogue states${isPlan ? "" : " and that have no column"}:`)
    yield* Output.print(
      Output.table(
        ["field", "records", "values seen", isPlan ? "becomes" : "would become", "by"],
        unknownFields.map((one) => [
          `${one.resource}.${one.field}`,
          Output.count(one.times),
          one.sampleTypes.join(", "),
          one.type === null ? "nothing yet" : `${one.column ?? one.field} ${one.type}`,
          one.isAutomatic ? "the next sync" : "schema apply"
        ]),
        ["left", "right"]
      )
    )
  }
  if (names.length > 0) {
    yield* Output.print("\nNames that differ from the API's:")
    yield* Output.print(
      Output.table(
        ["name", "in the database"],
        names.map(({ resource, name, inDatabase }) => [resource === null ? name : `${resource}.${name}`, inDatabase])
      )
    )
  }
  for (const { name, missing } of skippedViews) {
    yield* Output.note(`  the view ${name} needs tables that are not synced: ${missing.join(", ")}`)
  }
  for (const { name, reason, remedy } of refusedViews) {
    yield* Output.note(`tributary: ${name} was left as it is: ${reason}`)
    yield* Output.note(`  what to do: ${remedy}`)
  }
  if (isPlan) {
    yield* Output.print(
      statements.length === 0
        ? "The warehouse has everything that it should have."
        : `\n${plural(statements.length, "statement")} would run: npx tributary schema apply`
    )
    return
  }
  for (const { resource, field, column, type } of adopted) {
    yield* Output.print(`  ${resource}.${field} has the column ${column} (${type}) now`)
  }
  yield* Output.print(
    statements.length === 0
      ? "The warehouse had everything already; nothing was changed."
      : `${plural(statements.length, "statement")} ran.`
  )
})

const planCommand = Command.make(
  "plan",
  { config, json },
  Effect.fn(function* (flags) {
    const report = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        return yield* Warehouse.provide(plan(settings), settings)
      })
    )
    if (flags.json) return yield* Output.print(Output.toJson(report))
    yield* tell(report, true)
  })
).pipe(
  Command.withDescription("Show the statements that would bring the warehouse's tables up to date; changes nothing"),
  Command.withExamples([
    {
      command: "tributary schema plan",
      description: "What would run, new fields, and names that differ from the API's"
    }
  ])
)

const types = ["integer", "number", "decimal", "boolean", "text", "date", "timestamp", "json"] as const

const applyCommand = Command.make(
  "apply",
  {
    field: Flag.String("field").pipe(
      Flag.withDescription("Make a column of this unknown field only (may be repeated; default: all of them)"),
      Flag.withMetavar("RESOURCE.FIELD"),
      Flag.between(0, 1000)
    ),
    type: Flag.Literals("type", types).pipe(
      Flag.withDescription("The type of the columns made for --field, instead of what the values look like"),
      Flag.optional
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const report = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        const wish = { fields: flags.field, type: Option.getOrNull(flags.type) }
        return yield* Warehouse.provide(apply(settings, wish), settings)
      })
    )
    yield* flags.json ? Output.print(Output.toJson(report)) : tell(report, false)
    if (report.refusedViews.length > 0) {
      return yield* new CommandFailed({ code: exitCode.incomplete, message: "" })
    }
  })
).pipe(
  Command.withDescription(
    "Bring the warehouse's tables up to date, additively, and make columns of fields that no catalogue states"
  ),
  Command.withExamples([
    { command: "tributary schema apply", description: "Everything that schema plan shows" },
    {
      command: "tributary schema apply --field widgets.colour --type text",
      description: "A column for one field, of a type of your choice"
    }
  ])
)

const grantsCommand = Command.make(
  "grants",
  {
    loader: Flag.String("loader").pipe(
      Flag.withDescription("The role that syncs"),
      Flag.withMetavar("ROLE"),
      Flag.withDefault(Grants.roleNamesDefault.loader)
    ),
    reader: Flag.String("reader").pipe(
      Flag.withDescription("The role that asks"),
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
        const odd = [loader, reader].filter((name) => !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name))
        if (odd.length > 0) {
          return yield* wrong(
            ...odd.map((name) => `"${name}" is no name for a role: letters, digits and _, at most 63`)
          )
        }
        return Grants.statements(
          { ...settings.datasets, ...modelDatasets(settings), control: Grants.controlDataset },
          { loader, reader }
        )
      })
    )
    if (flags.json) return yield* Output.print(Output.toJson({ statements }))
    for (const statement of statements) yield* Output.print(`${statement};`)
  })
).pipe(
  Command.withDescription(
    "Print the statements that give the loader and the reader their rights, for the owner to run"
  ),
  Command.withExamples([
    { command: "tributary schema grants | psql", description: "Make the roles and grant them what they need" }
  ])
)

/** The warehouse as dbt sources, each with the text of its file. With no warehouse to ask, nothing is learnt. */
export const dbt = Effect.fn("schema.dbt")(function* (settings: Configuration, useWarehouse: boolean) {
  const resources = useWarehouse
    ? yield* Warehouse.provide(resourcesOf(settings), settings)
    : synced(yield* catalogueOf(settings), settings)
  const models = yield* (yield* Source).models
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

const dbtCommand = Command.make(
  "dbt",
  {
    out: Flag.String("out").pipe(
      Flag.withDescription("Folder to write a file per source to, for example models/sources (default: print them)"),
      Flag.withMetavar("DIR"),
      Flag.optional
    ),
    catalogueOnly: Flag.Boolean("catalogue-only").pipe(
      Flag.withDescription("Leave the warehouse alone; columns that were learnt from records are left out"),
      Flag.withDefault(false)
    ),
    config
  },
  Effect.fn(function* (flags) {
    const written = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        // The embedded Postgres is not made for this.
        const isThere = settings.databaseUrl !== null || existsSync(join(settings.home, "postgres"))
        return yield* dbt(settings, isThere && !flags.catalogueOnly)
      })
    )
    if (Option.isNone(flags.out)) return yield* Output.print(written.text.trimEnd())
    const folder = flags.out.value
    yield* reported(
      Effect.try({
        try: () => {
          mkdirSync(folder, { recursive: true })
          for (const { name, text } of written.files) writeFileSync(join(folder, name), text)
        },
        catch: (cause) =>
          new CommandFailed({
            code: exitCode.usage,
            message: `${folder} cannot be written to (${cause instanceof Error ? cause.message : String(cause)})`
          })
      })
    )
    for (const { name, tables } of written.files) {
      yield* Output.print(`${join(folder, name)}: ${plural(tables, "table")} with columns and tests`)
    }
  })
).pipe(
  Command.withDescription("Write dbt sources: every table and view with its columns, types, meanings and tests"),
  Command.withExamples([
    { command: "tributary schema dbt --out models/sources", description: "A file per source, in a dbt project" },
    { command: "tributary schema dbt --catalogue-only", description: "Print what needs no warehouse to be known" }
  ])
)

export const command = Command.make("schema").pipe(
  Command.withDescription("Plan and apply the warehouse's tables, columns and views; print rights and dbt sources"),
  Command.withSubcommands([planCommand, applyCommand, grantsCommand, dbtCommand])
)
