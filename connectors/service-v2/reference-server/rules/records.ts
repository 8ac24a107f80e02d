/**
 * The basic writes that all rules use.
 *
 * Promise: every write through this module keeps human keys unique (F-05, F-06), licensed limits (CODE-01) and both
 * halves of references. A write that changes nothing creates no version (D-10).
 */
import { ApiError } from "../ApiError.ts"
import type { Value } from "../json.ts"
import type { Put } from "../store/Store.ts"
import type { Table, Values, Version } from "../store/Table.ts"
import { carryCodes, completePairs } from "./references.ts"
import type { Body } from "./body.ts"
import type { Context } from "./Rules.ts"

/** Refuses a unique key that any record has, a cancelled one too; the message names that record (F-06). */
const refuseDuplicate = (table: Table, values: Values, except: number | null) => {
  const { key, path } = table.resource
  if (key === null || !key.unique) return
  const value = values[key.field]
  if (typeof value !== "string") return
  const other = table.where(key.field, value).find((version) => version.id !== except)
  if (other === undefined) return
  throw new ApiError("duplicate", `${key.field} is already used by ${path} ${other.id}`, { field: key.field })
}

/** In the other reading of F-04, refuses an externalid that exists in the company and resource. */
const refuseSecondExternalid = ({ readings }: Context, table: Table, values: Values, except: number | null) => {
  const { externalid } = values
  if (!readings.uniqueExternalid || typeof externalid !== "string") return
  const other = table.where("externalid", externalid).find((version) => version.id !== except)
  if (other === undefined) return
  throw new ApiError("duplicate", `externalid is already used by ${table.resource.path} ${other.id}`, {
    field: "externalid"
  })
}

const refuseBeyondLimit = ({ settings }: Context, table: Table) => {
  const limit = table.resource.capped ? settings.recordLimits.get(table.resource.path) : undefined
  if (limit === undefined) return
  let active = 0
  for (const version of table.all()) if (!version.cancelled) active++
  if (active < limit) return
  throw new ApiError("record_limit_reached", `the install is licensed for ${limit} ${table.resource.path}`)
}

const customOf = (before: Version | undefined, body: Body | null): Pick<Put, "custom"> => {
  if (body === null || body.custom === null) return {}
  const custom = new Map(before?.custom ?? [])
  for (const [name, text] of body.custom) {
    if (text === null) custom.delete(name)
    else custom.set(name, text)
  }
  return { custom }
}

/** Creates a record. Absent booleans are false, all other absent fields empty (F-13). */
export const insert = (
  context: Context,
  path: string,
  values: Readonly<Record<string, Value>>,
  body: Body | null = null
): Version => {
  const table = context.store.table(context.company, path)
  const patch: Record<string, Value> = {}
  for (const field of table.resource.fields) if (field.type._tag === "boolean") patch[field.name] = false
  for (const [name, value] of Object.entries(values)) if (value !== null) patch[name] = value
  completePairs(context.store, context.company, table.resource, patch)
  refuseDuplicate(table, patch, null)
  refuseSecondExternalid(context, table, patch, null)
  refuseBeyondLimit(context, table)
  return context.store.put(table, null, { values: patch, ...customOf(undefined, body) })
}

/** The next number of a sequence that no record has in the field; records with numbers may have been put in. */
export const nextNumber = (
  { store, company }: Context,
  sequence: string,
  [path, field]: readonly [path: string, field: string],
  prefix: string
): string => {
  for (;;) {
    const number = `${prefix}-${String(store.draw(`${company}/${sequence}`)).padStart(6, "0")}`
    if (store.table(company, path).where(field, number).length === 0) return number
  }
}

/** Changes a record. */
export const change = (
  context: Context,
  version: Version,
  values: Readonly<Record<string, Value>>,
  body: Body | null = null
): Version => {
  const table = context.store.table(version.table.company, version.table.resource.path)
  const patch: Record<string, Value> = { ...values }
  completePairs(context.store, context.company, table.resource, patch)
  refuseDuplicate(table, patch, version.id)
  refuseSecondExternalid(context, table, patch, version.id)
  const after = context.store.put(table, version.id, { values: patch, ...customOf(version, body) })
  if (after !== version) {
    for (const shown of carryCodes(context, version, after)) {
      context.rules.get(shown.table.resource.path)?.followUp?.({ ...context, company: shown.table.company }, shown)
    }
  }
  return after
}

/** The current version of a record that must exist. */
export const current = ({ store, company }: Context, path: string, id: Value | undefined): Version => {
  const version = typeof id === "number" ? store.table(company, path).get(id) : undefined
  if (version === undefined) throw new ApiError("unknown_value", `${String(id)} is no record of ${path}`)
  return version
}

/** Records that refer to another one and are not cancelled. */
export const active = ({ store, company }: Context, path: string, field: string, id: number): ReadonlyArray<Version> =>
  store
    .table(company, path)
    .where(field, id)
    .filter((version) => !version.cancelled)

export const violation = (message: string, field?: string): ApiError =>
  new ApiError("rule_violation", message, { field })
