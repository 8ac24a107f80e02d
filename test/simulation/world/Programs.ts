/**
 * The releases and configurations of the program that run beside each other.
 *
 * Promise: every release is the production code of today. An older one has a catalogue of an earlier generation that
 * lacks a field of each resource.
 */
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { Effect, Redacted } from "effect"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Field } from "../../../src/catalogue/Field.ts"
import { type Resource, withFields } from "../../../src/catalogue/Resource.ts"
import { generationDefault } from "../../../src/land/CheckpointIdentity.ts"
import * as FieldRules from "../../../src/connector/FieldRules.ts"
import { addConfigured, type ConfiguredResource } from "../../../src/warehouse/WarehouseCatalogue.ts"
import { family, type Period, type Plan } from "../Plan.ts"
import type { RulesPeriod } from "../RulesPlan.ts"

/** The release and configuration of a process. */
export interface Program {
  readonly catalogue: Catalogue
  readonly release: Period["release"]
  /** Records per page. */
  readonly pageSize: number
  readonly resources: ReadonlyArray<Resource>
  /** What the configuration states of resources. */
  readonly entries: ReadonlyArray<ConfiguredResource>
}

/** A text field without references: the last such field of a resource. */
export const plainField = (resource: Resource): Field | null =>
  resource.fields.findLast(
    ({ name, type, reference, values }) =>
      type._tag === "string" &&
      reference === null &&
      values === null &&
      name !== "externalid" &&
      name !== resource.key?.field
  ) ?? null

const generation = serviceV2.generation ?? generationDefault

const changed = (catalogue: Catalogue, change: (resource: Resource) => Resource): Catalogue => ({
  ...catalogue,
  resources: new Map([...catalogue.resources].map(([path, resource]) => [path, change(resource)]))
})

const older = changed(serviceV2, (resource) => {
  const lacking = plainField(resource)
  return lacking === null
    ? resource
    : withFields(
        resource,
        resource.fields.filter((field) => field !== lacking)
      )
})

const ignoring = (resource: Resource): Resource => {
  const field = plainField(resource)
  return field === null ? resource : { ...resource, ignoredFields: [field.name] }
}

/** The entries of the configuration. */
const entriesOf = ({ key, rules, where }: RulesPeriod): ReadonlyArray<ConfiguredResource> => {
  const hash = FieldRules.hash(Redacted.make(key))
  const byPath = Map.groupBy(rules, ({ resource }) => resource)
  if (where !== null && !byPath.has(where.resource)) byPath.set(where.resource, [])
  return [...byPath].map(([path, own]) => ({
    path,
    ...(where?.resource === path ? { where: { [where.field]: where.value } } : {}),
    area: null,
    modifiedSince: false,
    cancel: false,
    key: null,
    rules: own.map(({ field, keepLast, kind, shown }) => ({
      pattern: field,
      rule: kind === "exclude" ? FieldRules.exclude : kind === "hash" ? hash : FieldRules.mask(shown, keepLast)
    }))
  }))
}

const configurations = new WeakMap<RulesPeriod, Pick<Program, "catalogue" | "entries">>()

/** The catalogue under the rules of a period, as the configuration changes it. */
const withRules = (period: RulesPeriod) => {
  const entries = entriesOf(period)
  const known = configurations.get(period) ?? {
    catalogue: Effect.runSync(addConfigured(serviceV2, entries)),
    entries
  }
  configurations.set(period, known)
  return known
}

/** The program of every process of a plan without changes, of one with these rules, and of every process after healing. */
export const currentOf = ({ later, on, pageSize, resources }: Plan, rules = later.rules.at(-1)): Program => {
  const { catalogue, entries } =
    rules !== undefined
      ? withRules(rules)
      : { catalogue: on.has("G2") ? { ...serviceV2, generation: generation + 1 } : serviceV2, entries: [] }
  return {
    catalogue,
    entries,
    release: "current",
    pageSize,
    resources: resources.map((path) => catalogue.resources.get(path)!)
  }
}

/** Children are read with their parents: both are configured, or none. */
const isOfFamily = (path: string): boolean => family.includes(path)

export const programOf = (drawn: Plan, { release, ignores, leavesOut, pageSize }: Period): Program => {
  const current = currentOf(drawn)
  const base = release === "current" ? current.catalogue : older
  const catalogue = ignores ? changed(base, ignoring) : base
  const paths = drawn.resources.filter((path, place) => place !== leavesOut || isOfFamily(path))
  return {
    catalogue,
    entries: [],
    release,
    pageSize: pageSize ?? current.pageSize,
    resources: paths.map((path) => catalogue.resources.get(path)!)
  }
}
