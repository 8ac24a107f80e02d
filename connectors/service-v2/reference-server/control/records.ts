/**
 * Direct writes of versions to the store: no rules, no events.
 *
 * Promise: fields are stored and shown as given: number tokens digit by digit, unknown fields, odd values, strings with
 * NUL or lone surrogates. Fields that are absent keep their values in an existing record, and are empty in a new one.
 * The other half of a reference pair is filled in if it can be found.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { isObject, print, valueOf } from "../json.ts"
import type { Value } from "../json.ts"
import { ensureCompany } from "../seed/install.ts"
import type { Store } from "../store/Store.ts"
import type { Table, Version } from "../store/Table.ts"
import { printInstant, readInstant } from "../time.ts"
import type { World } from "../World.ts"
import { ControlError } from "./Input.ts"

/** The table that a call selects. */
export const tableOf = (world: World, company: number, resource: string): Table => {
  if (!world.store.catalogue.resources.has(resource))
    throw new ControlError(`resource: there is no resource ${resource}`)
  return world.store.table(company, resource)
}

const completeHalves = (store: Store, company: number, resource: Resource, values: Record<string, Value>) => {
  for (const { name, reference } of resource.fields) {
    if (reference === null || reference.by === null || reference.pairedWith === null) continue
    const target = store.table(company, reference.resource)
    const id = values[reference.pairedWith]
    const code = values[name]
    if (typeof id === "number" && code === undefined) values[name] = target.get(id)?.values[reference.by] ?? null
    if (typeof code === "string" && id === undefined) {
      const matches = target.where(reference.by, code)
      if (matches.length === 1) values[reference.pairedWith] = matches[0]!.id
    }
  }
}

/** A record as `parseExactly` read it. */
type RecordInput = Readonly<Record<string, unknown>>

/** The ids after the largest one must be safe integers too. */
const idMax = 9_000_000_000_000_000

const putRecord = (store: Store, table: Table, company: number, input: RecordInput, at: string): Version => {
  const { resource } = table
  const id = input["id"]
  if (id !== undefined && !(Number.isSafeInteger(id) && Number(id) >= 1 && Number(id) <= idMax)) {
    throw new ControlError(`records: id must be a whole number from 1 to ${idMax}`)
  }
  const before = typeof id === "number" ? table.get(id) : undefined
  const values: Record<string, Value> = {}
  const extra = new Map(before?.extra ?? [])
  const custom = new Map(before?.custom ?? [])
  for (const [name, value] of Object.entries(input)) {
    if (resource.field.has(name)) values[name] = valueOf(value)
    else if (name === "custom_fields" && isObject(value)) {
      for (const [key, member] of Object.entries(value)) custom.set(key, print(member))
    } else extra.set(name, print(value))
  }
  completeHalves(store, company, resource, values)
  if (resource.field.has("lastchangedate") && !("lastchangedate" in values)) values["lastchangedate"] = at
  if (before === undefined) {
    if (resource.field.has("entrydate") && !("entrydate" in values)) values["entrydate"] = at
    if (resource.field.has("cancel") && !("cancel" in values)) values["cancel"] = false
  }
  return store.put(table, typeof id === "number" ? id : null, {
    values: { ...before?.values, ...values },
    extra: extra.size === 0 ? null : extra,
    custom: custom.size === 0 ? null : custom,
    verbatim: true
  })
}

export interface RecordsInput {
  readonly company: number
  readonly resource: string
  readonly records: ReadonlyArray<RecordInput>
  /** RFC 3339 in UTC. */
  readonly at?: string
}

/** Writes the records and returns them as stored. */
export const putRecords = (world: World, { company, resource, records, at }: RecordsInput): string => {
  const table = tableOf(world, company, resource)
  ensureCompany(world, company)
  const { store } = world
  const when = printInstant(readInstant(at ?? "") ?? world.clock.now())
  const versions = store.transact(() => records.map((record) => putRecord(store, table, company, record, when)))
  return `{"records":[${versions.map((version) => world.renderer.render(version)).join(",")}]}`
}
