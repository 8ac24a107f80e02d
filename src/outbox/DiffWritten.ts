/**
 * The differences between the values that were given and those of the source.
 *
 * Promise: a difference is another value, and never another spelling of the same value. Decimals are compared at the
 * scale that the source shows (F-02, F-03), flags with the integers that they set (I-06), days with the day of an
 * instant (F-01). Values that the record does not show are not compared: lines, custom fields, the code half of a
 * reference, options of the write.
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

const isEqual = (type: FieldType, given: string, current: string): boolean => {
  switch (type._tag) {
    case "decimal": {
      const value = units(given, type.shown)
      return value !== null && value === units(current, type.shown)
    }
    case "integer":
      return given === current || (given === "true" && current === "1") || (given === "false" && current === "0")
    case "timestamp": {
      const [left, right] = [instantOf(given), instantOf(current)]
      // One of them is only a day.
      return left === null || right === null ? dayIn(given) === dayIn(current) : left === right
    }
    case "date":
      return dayIn(given) === dayIn(current)
    case "boolean":
    case "string":
    case "list":
      return given === current
  }
}

/** The value as text; undefined when it is not compared. */
const textOf = (value: Json): string | null | undefined => {
  if (value === null || typeof value === "string") return value
  if (value instanceof NumberToken) return value.text
  return isObject(value) || isList(value) ? undefined : String(value)
}

const positions = new WeakMap<Resource, ReadonlyMap<string, number>>()

const positionsOf = (resource: Resource): ReadonlyMap<string, number> => {
  const byName = positions.get(resource) ?? new Map(resource.fields.map(({ name }, index) => [name, index]))
  positions.set(resource, byName)
  return byName
}

/** The fields whose value at the source differs from the given one; `text` is the body of a valid record. */
export const differences = (
  resource: Resource,
  operation: Operation,
  text: string,
  record: SourceRecord
): ReadonlyArray<Difference> => {
  const body = parse(text)
  if (!isObject(body)) return []
  const found: Array<Difference> = []
  for (const column of shapeOf(resource, operation).values()) {
    const value = body.get(column.name)
    if (value === undefined || column.sets === null || (column.refers !== null && column.refers.by !== null)) continue
    const field = resource.field.get(column.sets)
    const position = positionsOf(resource).get(column.sets)
    const current = position === undefined ? undefined : record.columns[position]
    const given = textOf(value)
    if (field === undefined || current === undefined || given === undefined) continue
    const same = given === null || current === null ? given === current : isEqual(field.type, given, current)
    if (!same) found.push({ field: column.name, given, current })
  }
  return found
}
