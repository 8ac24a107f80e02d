/**
 * References between records.
 *
 * Promise: an id finds a record whether it is cancelled or not, a code finds active records only (F-08). A stored
 * record has both halves of every pair, also after the other record's code changes.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { ApiError } from "../ApiError.ts"
import type { Value } from "../json.ts"
import type { CompanyStore, Store } from "../store/Store.ts"
import type { Version } from "../store/Table.ts"

interface Target {
  readonly resource: string
  /** The field that a code is compared with; null when the value is an id. */
  readonly by: string | null
}

/** The record that a value refers to; 422 when there is none or several. */
export const resolve = ({ store, company }: CompanyStore, target: Target, value: Value, field: string): Version => {
  const table = store.table(company, target.resource)
  if (target.by === null) {
    const version = typeof value === "number" ? table.get(value) : undefined
    if (version !== undefined) return version
    throw new ApiError("unknown_value", `${field} ${String(value)} is no record of ${target.resource}`, { field })
  }
  const active = table.where(target.by, value as string).filter((version) => !version.cancelled)
  if (active.length === 1) return active[0]!
  if (active.length > 1) {
    throw new ApiError(
      "ambiguous_value",
      `${field} matches ${active.length} records of ${target.resource}: send the id`,
      {
        field
      }
    )
  }
  throw new ApiError("unknown_value", `${field} matches no active record of ${target.resource}`, { field })
}

/** Fills in the code half of every pair whose id half is in the patch. */
export const completePairs = (store: Store, company: number, resource: Resource, patch: Record<string, Value>) => {
  for (const name of Object.keys(patch)) {
    const reference = resource.field.get(name)?.reference
    if (reference?.half !== "id" || reference.pairedWith === null) continue
    const id = patch[name]
    const by = resource.field.get(reference.pairedWith)!.reference!.by!
    const target = typeof id === "number" ? store.table(company, reference.resource).get(id) : undefined
    patch[reference.pairedWith] = target?.values[by] ?? null
  }
}

/** A field of one resource that shows the code of another. */
interface Naming {
  readonly resource: Resource
  readonly idField: string
  readonly codeField: string
  readonly by: string
}

const namingsByStore = new WeakMap<Store["catalogue"], ReadonlyMap<string, ReadonlyArray<Naming>>>()

/** The fields that show codes of a resource. */
const namingsOf = (store: Store, path: string): ReadonlyArray<Naming> => {
  let namings = namingsByStore.get(store.catalogue)
  if (namings === undefined) {
    const made = new Map<string, Array<Naming>>()
    for (const resource of store.catalogue.resources.values()) {
      for (const { name, reference } of resource.fields) {
        if (reference === null || reference.by === null || reference.pairedWith === null) continue
        const naming = { resource, idField: reference.pairedWith, codeField: name, by: reference.by }
        made.set(reference.resource, [...(made.get(reference.resource) ?? []), naming])
      }
    }
    namingsByStore.set(store.catalogue, (namings = made))
  }
  return namings.get(path) ?? []
}

/** After a change of a code, writes a new version of every record that shows it. Returns those records. */
export const carryCodes = (context: CompanyStore, before: Version, after: Version): ReadonlyArray<Version> => {
  const { store } = context
  const changed: Array<Version> = []
  const companies = after.table.resource.shared ? store.companies() : [context.company]
  for (const { resource, idField, codeField, by } of namingsOf(store, after.table.resource.path)) {
    const code = after.values[by] ?? null
    if (code === (before.values[by] ?? null)) continue
    for (const company of companies) {
      const table = store.table(company, resource.path)
      for (const version of table.where(idField, after.id)) {
        changed.push(store.put(table, version.id, { values: { [codeField]: code } }))
      }
    }
  }
  return changed
}
