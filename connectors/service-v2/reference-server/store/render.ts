/**
 * Rendering of records as JSON text.
 *
 * Promise: every field of the catalogue is present, null when empty (A-14), with both halves of references (A-15) and
 * padded decimals (F-02). A version is rendered once and its text reused, until a switch changes the form of records.
 */
import type { Field } from "../../../../src/catalogue/Field.ts"
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { format, rescale, units } from "../decimal.ts"
import type { Value } from "../json.ts"
import { Raw } from "../json.ts"
import { hash } from "../random.ts"
import { readDay } from "../time.ts"
import type { Version } from "./Table.ts"

/** The switches that change the form of a record. */
export interface Look {
  /** Adds unknown fields, drawn from this seed. */
  readonly extraFields: number | null
  /** Orders the fields at random from this seed, differently for every record. */
  readonly keyOrder: number | null
  /** `mixed`: each field in its own form. The others print all dates, or all times, in one form. */
  readonly dateForm: "mixed" | "timestamp" | "seconds"
}

export const plainLook: Look = { extraFields: null, keyOrder: null, dateForm: "mixed" }

interface Column {
  readonly field: Field
  /** `,"name":` */
  readonly prefix: string
  readonly empty: string
  readonly rescaled: boolean
  readonly isId: boolean
}

const columnsByResource = new WeakMap<Resource, ReadonlyArray<Column>>()

const columnsOf = (resource: Resource): ReadonlyArray<Column> => {
  const cached = columnsByResource.get(resource)
  if (cached !== undefined) return cached
  const columns = resource.fields.map((field) => {
    const prefix = `,${JSON.stringify(field.name)}:`
    const rescaled = field.type._tag === "decimal" && field.type.shown !== field.type.scale
    return { field, prefix, empty: `${prefix}null`, rescaled, isId: field.name === "id" }
  })
  columnsByResource.set(resource, columns)
  return columns
}

/** Text without a character that JSON escapes, which is the usual case. */
const isPlain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

const printValue = (value: Value): string => {
  if (typeof value === "string") return isPlain.test(value) ? `"${value}"` : JSON.stringify(value)
  return value instanceof Raw ? value.text : String(value)
}

const looking = (column: Column, value: Value, look: Look): Value => {
  const { type } = column.field
  if (typeof value !== "string") return value
  if (column.rescaled && type._tag === "decimal") {
    return format(rescale(units(value, type.scale), type.scale, type.shown), type.shown)
  }
  if (type._tag === "date" && look.dateForm === "timestamp" && readDay(value) !== null) return `${value}T00:00:00Z`
  if (type._tag === "timestamp" && look.dateForm === "seconds") return value.replace(/\.\d+Z$/, "Z")
  return value
}

/** Members of a record, each with its leading comma. */
const members = (version: Version, look: Look): Array<string> => {
  const parts: Array<string> = []
  const { values } = version
  for (const column of columnsOf(version.table.resource)) {
    const value = values[column.field.name]
    if (value === null || value === undefined) parts.push(column.empty)
    else parts.push(column.prefix + printValue(looking(column, value, look)))
  }
  if (version.extra !== null) {
    for (const [name, text] of version.extra) parts.push(`,${JSON.stringify(name)}:${text}`)
  }
  if (look.extraFields !== null) parts.push(...unknownFields(look.extraFields, version))
  return parts
}

/** Fields unknown to the catalogue; the same ones for the same record and seed. */
const unknownFields = (seed: number, version: Version): ReadonlyArray<string> => {
  const drawn = hash(seed, version.table.resource.path, version.id)
  const fields = [
    `,"x_flag":${drawn % 2 === 0}`,
    `,"x_note":"note ${drawn % 97}"`,
    `,"x_rate":${drawn % 9}.${(drawn >>> 8) % 10}0`,
    `,"x_detail":{"level":${drawn % 5},"tags":["a","b"]}`
  ]
  return fields.filter((_, index) => (drawn >>> (16 + index)) % 2 === 0)
}

const shuffle = (parts: Array<string>, seed: number): Array<string> => {
  for (let index = parts.length - 1; index > 0; index--) {
    const other = hash(seed, index) % (index + 1)
    const kept = parts[index]!
    parts[index] = parts[other]!
    parts[other] = kept
  }
  return parts
}

const begins = /^\{/

/** The record in the default form: the most frequent case, optimised. */
const joinedPlainly = (version: Version): string => {
  const { values } = version
  // The first field is the id, which is always present.
  let text = `{"id":${version.id}`
  for (const column of columnsOf(version.table.resource)) {
    if (column.isId) continue
    const value = values[column.field.name]
    if (value === null || value === undefined) text += column.empty
    else text += column.prefix + printValue(column.rescaled ? looking(column, value, plainLook) : value)
  }
  if (version.extra !== null) for (const [name, more] of version.extra) text += `,${JSON.stringify(name)}:${more}`
  return `${text}}`
}

const joined = (version: Version, look: Look): string => {
  if (look.extraFields === null && look.keyOrder === null && look.dateForm === "mixed") {
    const text = joinedPlainly(version)
    // Flattens the concatenated string before it is cached.
    begins.test(text)
    return text
  }
  const parts = members(version, look)
  if (look.keyOrder !== null) shuffle(parts, hash(look.keyOrder, version.table.resource.path, version.id))
  return `{${parts.join("").slice(1)}}`
}

/** Limit of cached text; beyond it texts are rendered again each time. */
const cachedCharactersMax = 300_000_000

/** The number of each form: worlds that share versions share their text too, if they have one form. */
const epochs = new Map<string, number>()

const epochOf = ({ extraFields, keyOrder, dateForm }: Look): number => {
  const form = JSON.stringify([extraFields, keyOrder, dateForm])
  const epoch = epochs.get(form) ?? epochs.size + 1
  epochs.set(form, epoch)
  return epoch
}

/** Renders versions in one form, each once. */
export class Renderer {
  private look: Look = plainLook
  private epoch = epochOf(plainLook)
  private cached = 0

  /** Resets the count after the records were removed. */
  clear(): void {
    this.cached = 0
  }

  setLook(look: Look): void {
    this.look = look
    this.epoch = epochOf(look)
  }

  render(version: Version): string {
    if (version.cache !== null && version.cacheEpoch === this.epoch) return version.cache
    const text = joined(version, this.look)
    if (this.cached + text.length > cachedCharactersMax) return text
    this.cached += text.length - (version.cache?.length ?? 0)
    version.cache = text
    version.cacheEpoch = this.epoch
    return text
  }

  /** The record with its custom fields (A-12), or with members that one answer adds (I-05). */
  renderWith(version: Version, more: ReadonlyArray<readonly [name: string, text: string]>): string {
    const text = this.render(version)
    return `${text.slice(0, -1)}${more.map(([name, value]) => `,${JSON.stringify(name)}:${value}`).join("")}}`
  }

  /** `custom_fields`: from definition name to value, `{}` when there are none. */
  customFields(version: Version): string {
    const { custom } = version
    if (custom === null) return "{}"
    return `{${[...custom].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`
  }
}
