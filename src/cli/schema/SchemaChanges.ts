/** The changes that bring the warehouse's tables, columns and views up to date: planned, or applied. */
import * as Effect from "effect/Effect"
import * as Statement from "../../postgres/Statement.ts"
import type { InferredType } from "../../catalogue/Field.ts"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import type { Resource } from "../../catalogue/Resource.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import { ConfigurationError } from "../../configuration/ConfigurationError.ts"
import * as ColumnPromotion from "../../warehouse/ColumnPromotion.ts"
import { searchIndexesOf } from "../../warehouse/Indexes.ts"
import { modelDatasetsOf } from "../../warehouse/Model.ts"
import * as WarehouseCatalogue from "../../warehouse/WarehouseCatalogue.ts"
import { tableOf } from "../../warehouse/Table.ts"
import * as TablePlan from "../../warehouse/TablePlan.ts"
import * as Views from "../../warehouse/Views.ts"
import { chooseResources } from "../CompanyResources.ts"
import { catalogueOf } from "../EffectiveCatalogue.ts"
import * as Models from "../Models.ts"

/** A field of records that the catalogue does not state. */
interface UnknownField {
  readonly resource: string
  readonly field: string
  readonly times: number
  readonly sampleTypes: ReadonlyArray<string>
  /** Name and type of its future column; null while no type can be inferred. */
  readonly column: string | null
  readonly type: InferredType | null
  /** Whether the next sync creates the column: the resource is declared in the configuration. */
  readonly isAutomatic: boolean
}

/** A name of the API that differs in the database. */
interface MappedName {
  /** Null for the name of a resource. */
  readonly resource: string | null
  readonly name: string
  readonly inDatabase: string
}

export interface SchemaReport {
  /** SQL to run, or that ran. */
  readonly statements: ReadonlyArray<string>
  /** A sentence for each damaged table, which is left as it is. */
  readonly damaged: ReadonlyArray<string>
  /** Resources whose stored values do not follow their privacy rules yet. */
  readonly privacy: ReadonlyArray<string>
  readonly adopted: ReadonlyArray<ColumnPromotion.Promotion>
  readonly unknownFields: ReadonlyArray<UnknownField>
  readonly names: ReadonlyArray<MappedName>
  readonly skippedViews: ReadonlyArray<Views.Skipped>
  readonly refusedViews: ReadonlyArray<Views.Refused>
}

/** The unknown fields that become columns. */
interface PromoteOptions {
  /** `resource.field`; empty is all. */
  readonly fields: ReadonlyArray<string>
  /** Instead of the inferred type. */
  readonly type: InferredType | null
}

/** The resources that the companies sync. */
export const syncedResources = (
  catalogue: Pick<Catalogue, "resources">,
  { companies }: Configuration
): ReadonlyArray<Resource> => {
  const all = [...catalogue.resources.values()]
  if (companies.length === 0) return all
  const synced = new Set(companies.flatMap((company) => chooseResources(catalogue, company).resources))
  return all.filter((resource) => synced.has(resource))
}

/** {@link syncedResources} with their inferred columns. */
export const warehouseResources = Effect.fnUntraced(function* (settings: Configuration) {
  return syncedResources(yield* WarehouseCatalogue.load(yield* catalogueOf(settings)), settings)
})

/** The tables of the resources that the companies sync. */
export const warehouseTables = (settings: Configuration) =>
  Effect.map(warehouseResources(settings), (resources) => resources.map((one) => tableOf(one, settings.datasets)))

/** The damaged ones of them. */
export const damagedTables = (settings: Configuration) =>
  Effect.map(Effect.flatMap(warehouseTables(settings), TablePlan.plan), ({ damaged }) => damaged)

/** Fails where one of these resources has a damaged table, or rows under other privacy rules: they would be counted wrong. */
export const refuseDamaged = Effect.fnUntraced(function* (
  settings: Configuration,
  resources: ReadonlyArray<Pick<Resource, "path">>
) {
  const paths = new Set(resources.map(({ path }) => path))
  const { damaged, rules } = yield* Effect.flatMap(warehouseTables(settings), TablePlan.plan)
  const damage = [...damaged, ...rules].find(({ resource }) => paths.has(resource))
  if (damage !== undefined) return yield* damage
})

/** What is wrong with the names that a person gave to roles or publications. */
export const invalidNames = (kind: string, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names
    .filter((name) => !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name))
    .map((name) => `"${name}" is no name for a ${kind}: letters, digits and _, at most 63`)

export const invalid = (...problems: ReadonlyArray<string>) => new ConfigurationError({ problems })

/** The chosen fields. An unknown choice fails with the possible ones. */
const chooseFields = (
  known: ReadonlyArray<ColumnPromotion.Candidate>,
  { fields, type }: PromoteOptions
): Effect.Effect<ReadonlyArray<ColumnPromotion.Candidate>, ConfigurationError> => {
  const nameOf = (one: ColumnPromotion.Candidate) => `${one.resource}.${one.field}`
  if (fields.length === 0) {
    return type === null
      ? Effect.succeed(known)
      : Effect.fail(invalid("--type is for the fields named with --field; name at least one"))
  }
  const names = new Set(known.map(nameOf))
  const missing = fields.filter((one) => !names.has(one))
  if (missing.length > 0) {
    const offered = names.size === 0 ? "no unknown field was seen" : `there are: ${[...names].slice(0, 20).join(", ")}`
    return Effect.fail(invalid(...missing.map((one) => `"${one}" is no unknown field of any record; ${offered}`)))
  }
  return Effect.succeed(
    known.filter((one) => fields.includes(nameOf(one))).map((one) => ({ ...one, type: type ?? one.type }))
  )
}

const promotionsOf = (
  all: ReadonlyArray<ColumnPromotion.Candidate>,
  resource: Resource
): ReadonlyArray<ColumnPromotion.PromotionRequest> =>
  all.flatMap(({ resource: path, field, type }) => (path === resource.path && type !== null ? [{ field, type }] : []))

export const mappedNamesStatement = Statement.make({
  name: "read the names that differ from the API's",
  columns: { scope: "text", name: "text", column: "text" },
  text: `select scope, api_name as name, sql_name as column from tributary.sql_names
          where api_name <> sql_name order by scope, given_at, api_name`
})

/** The names that differ from the API's, stored and planned. */
const mappedNames = Effect.fnUntraced(function* (
  resources: ReadonlyArray<Resource>,
  adoptions: ReadonlyArray<ColumnPromotion.Promotion>
) {
  const known = (yield* Statement.run(mappedNamesStatement)).map(({ scope, name, column }): MappedName => ({
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
  known: ReadonlyArray<ColumnPromotion.Candidate>,
  adoptions: ReadonlyArray<ColumnPromotion.Promotion>,
  { statements, damaged, privacy }: Pick<SchemaReport, "statements" | "damaged" | "privacy">,
  views: Pick<Views.ViewPlan, "skipped" | "refused">
) {
  const declared = new Set(resources.filter(({ basis }) => basis === "configured").map(({ path }) => path))
  return {
    statements,
    damaged,
    privacy,
    adopted: adoptions,
    unknownFields: known.map(({ resource, field, times, kinds, type }) => ({
      resource,
      field,
      times,
      sampleTypes: kinds,
      column: adoptions.find((one) => one.resource === resource && one.field === field)?.column ?? null,
      type,
      isAutomatic: declared.has(resource)
    })),
    names: yield* mappedNames(resources, adoptions),
    skippedViews: views.skipped,
    refusedViews: views.refused
  } satisfies SchemaReport
})

/** Plans the changes, or makes them. `adopting` are the fields that become columns. */
const change = Effect.fnUntraced(function* (
  settings: Configuration,
  resources: ReadonlyArray<Resource>,
  adopting: ReadonlyArray<ColumnPromotion.Candidate>,
  isPlan: boolean
) {
  const tables = resources.map((one) => tableOf(one, settings.datasets))
  // A person wants the rules of this configuration, also where they are older ones.
  const ofTables = yield* isPlan ? TablePlan.plan(tables) : TablePlan.applyUndamaged(tables, { goesBack: true })
  const statements = [...ofTables.statements]
  const adopted: Array<ColumnPromotion.Promotion> = []
  const promote = isPlan ? ColumnPromotion.planFor : ColumnPromotion.promote
  const behind = new Set(ofTables.rules.map(({ resource }) => resource))
  for (const resource of resources) {
    if (behind.has(resource.path)) continue
    const changes = yield* promote(resource, promotionsOf(adopting, resource), settings.datasets)
    adopted.push(...changes.promotions)
    statements.push(...changes.statements)
  }
  const { leftOut, models } = yield* Models.of(settings)
  const indexes = searchIndexesOf(tables)
  const skipped: Array<Views.Skipped> = []
  const refused: Array<Views.Refused> = [...leftOut]
  for (const datasets of modelDatasetsOf(settings.datasets)) {
    if (isPlan) {
      const views = yield* Views.planFor(models, datasets, indexes)
      statements.push(...views.steps.flatMap((step) => step.statements))
      skipped.push(...views.skipped)
      refused.push(...views.refused)
    } else {
      const views = yield* Views.apply(models, datasets, indexes)
      statements.push(...views.done)
      skipped.push(...views.skipped)
      refused.push(...views.refused)
    }
  }
  const damaged = ofTables.damaged.map(({ message }) => message)
  const privacy = ofTables.rules.map(({ message }) => message)
  return { statements, adopted, damaged, privacy, views: { skipped, refused } }
})

/** The changes that {@link apply} makes; changes nothing. */
export const plan = Effect.fn("schema.plan")(function* (settings: Configuration) {
  const resources = yield* warehouseResources(settings)
  const known = yield* ColumnPromotion.candidates(resources)
  const { adopted, views, ...changes } = yield* change(settings, resources, known, true)
  return yield* reportOf(resources, known, adopted, changes, views)
})

/** Brings tables, columns, views and indexes up to date. */
export const apply = Effect.fn("schema.apply")(function* (settings: Configuration, options: PromoteOptions) {
  const resources = yield* warehouseResources(settings)
  const known = yield* ColumnPromotion.candidates(resources)
  const adopting = yield* chooseFields(known, options)
  const { adopted, views, ...changes } = yield* change(settings, resources, adopting, false)
  const left = known.filter(
    ({ resource, field }) => !adopted.some((one) => one.resource === resource && one.field === field)
  )
  return yield* reportOf(resources, left, adopted, changes, views)
})
