/**
 * The catalogue of one warehouse: what the connector states, the resources that only the configuration names, and the
 * columns that were inferred from records.
 *
 * Promise: an added resource has a table, and an inferred field a column, like those of the connector. Nothing that the
 * connector states changes. Loading is one small query.
 */
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceTraits } from "../catalogue/SourceTraits.ts"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import {
  boolean,
  integer,
  timestamp,
  type Field,
  type Inferred,
  inferredField,
  type InferredType,
  text
} from "../catalogue/Field.ts"
import { matches, type PatternRule, protect, type Protection } from "../catalogue/Protection.ts"
import { type Resource, resource, roleField, type ValueFilter, withFields } from "../catalogue/Resource.ts"
import * as Statement from "../postgres/Statement.ts"
import { bytesMax, nameFor, supersededSuffix } from "./Identifier.ts"

/** A resource that only the configuration names. Its fields are inferred from its records. */
export interface ConfiguredResource {
  /** Where its list is, below the base address. */
  readonly path: string
  /** The area of its scope; null when that is not known, so that only a request shows whether the token may read it. */
  readonly area: string | null
  /** Whether its list offers `modifiedsince` and its records carry their time of change. */
  readonly modifiedSince: boolean
  /** Whether its records carry the cancel flag and its list shows cancelled records on request. */
  readonly cancel: boolean
  /** The text field that identifies a record to people. */
  readonly key: string | null
  /** Fields whose change alone makes no new version of a row; the only setting for a resource of the catalogue. */
  readonly ignoreFields?: ReadonlyArray<string>
  /** The day, `2025-01-01`, since which records are read; of a pattern for the resources whose list offers modifiedsince. */
  readonly since?: string | null
  /** Values of filters of its list, by field; of a pattern for the resources whose list offers the filter. */
  readonly where?: Readonly<Record<string, string>>
  /** Privacy rules of its fields. */
  readonly rules?: ReadonlyArray<PatternRule>
}

/** The configuration names a resource that the connector knows, or one that no table can be made for. */
export class ResourceConflict extends Data.TaggedError("ResourceConflict")<{
  readonly problems: ReadonlyArray<string>
}> {
  override get message(): string {
    return this.problems.join("\n")
  }
}

const configured = (one: ConfiguredResource, traits: SourceTraits): Resource => {
  const { id, modifiedAt, cancelled } = traits.roles
  const keyed = one.key === null || [id, modifiedAt, cancelled].includes(one.key) ? [] : [text(one.key)]
  return resource({
    path: one.path,
    traits,
    area: one.area ?? "",
    purpose: `${one.path}, named by the configuration`,
    basis: "configured",
    operations: "L R",
    fields: [
      integer(id, { readOnly: true, note: "the record's number" }),
      ...keyed,
      ...(one.cancel && cancelled !== null ? [boolean(cancelled, { note: "true when cancelled" })] : []),
      ...(one.modifiedSince && modifiedAt !== null
        ? [timestamp(modifiedAt, { readOnly: true, note: "time of the last change" })]
        : [])
    ],
    modifiedSince: one.modifiedSince,
    ...(one.key === null ? {} : { key: { field: one.key } })
  })
}

/** Whether the configuration describes it, beside the ignored fields and the privacy rules. */
const describes = ({ area, cancel, key, modifiedSince }: ConfiguredResource): boolean =>
  area !== null || cancel || key !== null || modifiedSince

/** Whether an entry is for every resource that matches. */
const isPattern = ({ path }: ConfiguredResource): boolean => path.includes("*")

const settingsOfAll = "ignore_fields, since, where, exclude, hash and mask"

/** Whether scans can begin at a time of change. */
const offersModifiedSince = (of: Resource): boolean => of.modifiedSince && roleField(of, "modifiedAt") !== undefined

/** A filter of a resource, or why its filter cannot have that value. */
const valueFilterOf = (of: Resource, field: string, value: string): ValueFilter | string | null => {
  const filter = of.filters.find((one) => one.field === field)
  if (filter === undefined) return null
  switch (of.field.get(field)?.type._tag) {
    case "integer":
      return /^(?:0|-?[1-9]\d{0,18})$/.test(value) ? { ...filter, value } : `${value} is no integer`
    case "boolean":
      return value === "true" || value === "false" ? { ...filter, value } : `${value} is neither true nor false`
    case "string":
      return value === "" ? "the value is empty" : { ...filter, value }
    default:
      return "only integers, flags and texts can be compared"
  }
}

const filtersText = ({ filters }: Resource): string =>
  filters.length === 0 ? "its list offers no filter" : `its list offers ${filters.map(({ field }) => field).join(", ")}`

/** Mistakes in the filters of an entry. */
const filterProblems = (
  { path, where = {} }: ConfiguredResource,
  matching: ReadonlyArray<Resource>
): ReadonlyArray<string> =>
  Object.entries(where).flatMap(([field, value]) => {
    const place = `resources.${path}.where.${field}`
    const filters = matching.map((of) => valueFilterOf(of, field, value))
    const wrong = filters.find((one) => typeof one === "string")
    if (wrong !== undefined) return [`${place}: ${wrong}`]
    if (filters.some((one) => one !== null)) return []
    const only = matching.length === 1 ? matching[0] : undefined
    return [
      only === undefined
        ? `${place}: no list of these resources offers a filter by ${field}`
        : `${place}: ${filtersText(only)}, and no filter by ${field}`
    ]
  })

const problemsOf = (base: Catalogue, one: ConfiguredResource): ReadonlyArray<string> => {
  const { ignoreFields = [], path, rules = [], since = null, where = {} } = one
  const neverIgnored = new Set<string | null>(Object.values(base.traits.roles))
  const settingsCount = ignoreFields.length + rules.length + (since === null ? 0 : 1) + Object.keys(where).length
  const matching = [...base.resources.values()].filter((known) => matches(path, known.path))
  const offersSince =
    base.resources.has(path) || isPattern(one) ? matching.some(offersModifiedSince) : one.modifiedSince
  return [
    ...(base.resources.has(path) && (settingsCount === 0 || describes(one))
      ? [`resources.${path}: the catalogue knows this resource already; only ${settingsOfAll} can be set for it`]
      : []),
    ...(isPattern(one) && describes(one) ? [`resources.${path}: only ${settingsOfAll} can be set for a pattern`] : []),
    ...(isPattern(one) && matching.length === 0 ? [`resources.${path}: no resource matches this pattern`] : []),
    ...(since !== null && !offersSince
      ? [
          `resources.${path}.since: its list does not offer modifiedsince, so that every read returns all of it; remove the setting`
        ]
      : []),
    ...(base.resources.has(path) || isPattern(one)
      ? filterProblems(one, matching)
      : Object.keys(where).map((field) => `resources.${path}.where.${field}: no filter of its list is known`)),
    ...ignoreFields
      .filter((field) => neverIgnored.has(field))
      .map((field) => `resources.${path}.ignore_fields: ${field} cannot be ignored, since it identifies versions`)
  ]
}

/** Adds the resources that the configuration names, without their inferred columns: no query runs. */
export const addConfigured = (
  base: Catalogue,
  extra: ReadonlyArray<ConfiguredResource>
): Effect.Effect<Catalogue, ResourceConflict> => {
  if (extra.length === 0) return Effect.succeed(base)
  const problems = extra.flatMap((one) => problemsOf(base, one))
  const all = new Map(base.resources)
  for (const one of extra) if (!isPattern(one) && !all.has(one.path)) all.set(one.path, configured(one, base.traits))
  for (const [path, sent] of all) {
    const entries = extra.filter((one) => matches(one.path, path))
    if (entries.length === 0) continue
    const ignoredFields = entries.flatMap(({ ignoreFields = [] }) => ignoreFields)
    // The resource's own entry counts more than a pattern.
    const ranked = entries.toSorted((one, other) => Number(isPattern(other)) - Number(isPattern(one)))
    const day = offersModifiedSince(sent)
      ? (ranked.findLast(({ since = null }) => since !== null)?.since ?? null)
      : null
    const values: Readonly<Record<string, string>> = Object.assign({}, ...ranked.map(({ where = {} }) => where))
    const where = Object.entries(values).flatMap(([field, value]) => {
      const filter = valueFilterOf(sent, field, value)
      return filter === null || typeof filter === "string" ? [] : [filter]
    })
    const made = protect(
      { ...sent, ignoredFields, since: day === null ? null : `${day}T00:00:00.000Z`, where },
      entries.flatMap(({ rules = [] }) => rules)
    )
    problems.push(
      ...made.problems.map((problem) => `resources.${path}: ${problem}`),
      ...where.flatMap(({ field }) => {
        const rule = made.resource.protection?.ruleOf(field)
        return rule === undefined
          ? []
          : [
              `resources.${path}.where.${field}: the field has a privacy rule (${rule.kind}), and requests would keep its value; take one of both out`
            ]
      })
    )
    all.set(path, made.resource)
  }
  return problems.length > 0
    ? Effect.fail(new ResourceConflict({ problems }))
    : Effect.succeed({ ...base, resources: all })
}

/** The privacy rules for a path, also for one that the catalogue does not know: then those of the patterns that match. */
export const protectionOf =
  ({ resources, traits }: Catalogue, extra: ReadonlyArray<ConfiguredResource>) =>
  (path: string): Protection | null => {
    const known = resources.get(path)
    if (known !== undefined) return known.protection
    const unknown = { path, area: null, modifiedSince: false, cancel: false, key: null }
    const rules = extra.flatMap((one) => (matches(one.path, path) ? (one.rules ?? []) : []))
    return protect(configured(unknown, traits), rules).resource.protection
  }

/** A row of `tributary.sql_names` with an inferred type. */
export interface InferredColumn extends Inferred {
  readonly name: string
}

/**
 * The resource with its inferred columns after its own fields. A field that the connector states by now keeps the
 * inferred column and its type.
 */
export const withInferred = (base: Resource, inferred: ReadonlyArray<InferredColumn>): Resource => {
  // A field with a rule has no inferred column: what is kept of it stays beside the columns.
  const known = new Map(
    inferred.flatMap((one) => (base.protection?.ruleOf(one.name) === undefined ? [[one.name, one] as const] : []))
  )
  if (known.size === 0) return base
  const made = (one: InferredColumn): Field => inferredField(one.name, { type: one.type, column: one.column })
  const extended = (of: Resource) =>
    withFields(of, [
      ...of.fields.map((field) => {
        const one = known.get(field.name)
        return one === undefined ? field : { ...field, type: made(one).type, inferred: made(one).inferred }
      }),
      ...[...known.values()].filter(({ name }) => !of.field.has(name)).map(made)
    ])
  const { protection } = base
  return protection === null
    ? extended(base)
    : { ...extended(base), protection: { ...protection, sent: extended(protection.sent) } }
}

export const storedNamesStatement = Statement.make({
  name: "read the inferred columns and the names of tables",
  columns: {
    scope: "text",
    name: "text",
    column: "text",
    type: Statement.as<InferredType | null>("text?"),
    position: "int8?"
  },
  text: `select scope, api_name as name, sql_name as column, inferred_type as type, inferred_position as position
           from tributary.sql_names where scope = '' or inferred_type is not null order by 1, 5`
})

/** Names in lower case that a new column of the resource cannot have. */
const columnsOf = (of: Resource): ReadonlySet<string> =>
  new Set(of.fields.map(({ name, inferred }) => (inferred?.column ?? name).toLowerCase()))

/** The name of a new column for the field. */
export const columnName = (of: Resource, given: ReadonlySet<string>, field: string): string =>
  nameFor(field, new Set([...columnsOf(of), ...[...given].map((name) => name.toLowerCase())]))

/**
 * The resources with their inferred columns and table names. Each sync loads them again, because other processes promote
 * columns too.
 */
export const resources = Effect.fn("WarehouseCatalogue.resources")(function* (
  base: Pick<Catalogue, "resources">,
  wanted: ReadonlyArray<Resource>
): Effect.fn.Return<ReadonlyArray<Resource>, DatabaseError, SqlClient.SqlClient> {
  const kept = yield* Statement.run(storedNamesStatement)
  const inferred = Map.groupBy(
    kept.flatMap(({ scope, name, column, type }) => (type === null ? [] : [{ scope, name, column, type }])),
    ({ scope }) => scope
  )
  const tables = new Map(kept.filter(({ type }) => type === null).map(({ name, column }) => [name, column]))
  const used = new Set(
    [...base.resources.values()].flatMap(({ path, basis }) => (basis === "configured" ? [] : [path.toLowerCase()]))
  )
  for (const table of tables.values()) used.add(table.toLowerCase())
  const tableName = (path: string): string => {
    const given = tables.get(path) ?? nameFor(path, used, bytesMax - supersededSuffix.length)
    used.add(given.toLowerCase())
    return given
  }
  // In the order of the configuration, so that the names of tables that are still to be made do not depend on the request.
  const names = new Map(
    [...base.resources.values()].flatMap(({ path, basis }) =>
      basis === "configured" ? [[path, tableName(path)] as const] : []
    )
  )
  return wanted.map((one) => {
    const whole = withInferred(one, inferred.get(one.path) ?? [])
    return one.basis === "configured" ? { ...whole, table: names.get(one.path) ?? tableName(one.path) } : whole
  })
})

/** The whole catalogue with all inferred columns. */
export const load = (base: Catalogue): Effect.Effect<Catalogue, DatabaseError, SqlClient.SqlClient> =>
  Effect.map(resources(base, [...base.resources.values()]), (all) => ({
    ...base,
    resources: new Map(all.map((one) => [one.path, one]))
  }))

/** The number of inferred columns that this process knows; see {@link inferredCountSql}. */
export const inferredCount = (of: Resource): number => of.fields.filter(({ inferred }) => inferred !== null).length

/**
 * The number of inferred columns of the resource in parameter `$n`. A process that finds another number than
 * {@link inferredCount} has an old catalogue and must load it again.
 */
export const inferredCountSql = (parameter: string): string =>
  `(select count(*)::int from tributary.sql_names where scope = ${parameter} and inferred_type is not null)`
