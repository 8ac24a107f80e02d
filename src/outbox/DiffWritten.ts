/**
 * What the source holds of what was given.
 *
 * Promise: a difference is told only where the source holds another value, and never because it writes the same value
 * in another way: decimals are compared as decimals at the scale that the source shows (F-02, F-03), flags with the
 * integers that they set (I-06), days with the day of an instant (F-01). What the record does not show is not compared:
 * lines, custom fields, the code half of a reference, what only steers the write.
 */
import type { FieldType } from "../catalogue/Field.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { SourceRecord } from "../connector/Connector.ts"
import type { Difference, Operation } from "./Push.ts"
import { shapeOf } from "./WriteSchema.ts"
import { dayOf, dayOfInstant, instantOf } from "./Time.ts"
import { isList, isObject, type Json, NumberToken, parse } from "../json/Json.ts"

const decimal = /^(-?)(\d+)(?:\.(\d+))?$/

/** Units of `10^-scale`, rounded half away from zero; null when the text is no plain decimal. */
const units = (text: string, scale: number): bigint | null => {
  const match = decimal.exec(text)
  if (match === null) return null
  const fraction = match[3] ?? ""
  const kept = BigInt(match[2]! + fraction.slice(0, scale).padEnd(scale, "0"))
  const rounded = fraction.charCodeAt(scale) >= 53 ? kept + 1n : kept
  return match[1] === "-" ? -rounded : rounded
}

const dayIn = (text: string): string | null => {
  const instant = instantOf(text)
  return instant === null ? dayOf(text) : dayOfInstant(instant)
}

const isEqual = (type: FieldType, given: string, held: string): boolean => {
  switch (type._tag) {
    case "decimal": {
      const value = units(given, type.shown)
      return value !== null && value === units(held, type.shown)
    }
    case "integer":
      return given === held || (given === "true" && held === "1") || (given === "false" && held === "0")
    case "timestamp": {
      const [left, right] = [instantOf(given), instantOf(held)]
      // One of them is only a day.
      return left === null || right === null ? dayIn(given) === dayIn(held) : left === right
    }
    case "date":
      return dayIn(given) === dayIn(held)
    case "boolean":
    case "string":
    case "list":
      return given === held
  }
}

/** The value as text; undefined for what is not compared. */
const textOf = (value: Json): string | null | undefined => {
  if (value === null || typeof value === "string") return value
  if (value instanceof NumberToken) return value.text
  return isObject(value) || isList(value) ? undefined : String(value)
}

const positions = new WeakMap<Resource, ReadonlyMap<string, number>>()

const positionsOf = (resource: Resource): ReadonlyMap<string, number> => {
  const known = positions.get(resource) ?? new Map(resource.fields.map(({ name }, index) => [name, index]))
  positions.set(resource, known)
  return known
}

/** Fields whose value at the source is not what was given; `text` is a body as `Check` makes it. */
export const differences = (
  resource: Resource,
  operation: Operation,
  text: string,
  record: SourceRecord
): ReadonlyArray<Difference> => {
  const body = parse(text)
  if (!isObject(body)) return []
  const found: Array<Difference> = []
  const columns = record.columns
  for (const slot of shapeOf(resource, operation).values()) {
    const value = body.get(slot.name)
    if (value === undefined || slot.sets === null || (slot.refers !== null && slot.refers.by !== null)) continue
    const field = resource.field.get(slot.sets)
    const position = positionsOf(resource).get(slot.sets)
    const held = position === undefined ? undefined : columns[position]
    const given = textOf(value)
    if (field === undefined || held === undefined || given === undefined) continue
    const same = given === null || held === null ? given === held : isEqual(field.type, given, held)
    if (!same) found.push({ field: slot.name, given, held })
  }
  return found
}
