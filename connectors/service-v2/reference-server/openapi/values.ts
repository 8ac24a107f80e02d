/**
 * Schemas of one value: in answers, in bodies and in query parameters.
 *
 * Promise: an answer's schema accepts exactly the output of the renderer; a body's schema accepts what the body reader
 * accepts. Patterns are valid under the `u` flag, which validators use.
 */
import type { AllowedValue, Field, FieldType } from "../../../../src/catalogue/Field.ts"
import { limits } from "../../catalogue/limits.ts"
import type { Schema } from "./Schema.ts"
import { arrayOf, exactly, nullable } from "./Schema.ts"

const safeInteger: Schema = {
  type: "integer",
  format: "int64",
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER
}

export const recordId: Schema = { type: "integer", format: "int64", minimum: 1, maximum: Number.MAX_SAFE_INTEGER }

const dayPattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
const instantInputPattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]+)?(?:[Zz]|[+-]00:00)$"
/** A day or an instant: every date field accepts both (F-01). */
const eitherInputPattern =
  "^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]+)?(?:[Zz]|[+-]00:00))?$"

/** A time in answers: microseconds, UTC. */
export const shownInstant: Schema = {
  type: "string",
  format: "date-time",
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z$"
}

/** A time in requests. */
export const sentInstant: Schema = { type: "string", format: "date-time", pattern: instantInputPattern }

/** A decimal with exactly `shown` decimals, and at most the digits of a field of `scale`. */
export const shownDecimal = (scale: number, shown: number = scale): Schema => {
  // Rounding to fewer decimals can carry into one more digit before the point.
  const whole = limits.decimalDigitsMax - scale + (shown < scale ? 1 : 0)
  const fraction = shown === 0 ? "" : `\\.[0-9]{${shown}}`
  return { type: "string", pattern: `^-?(?:0|[1-9][0-9]{0,${whole - 1}})${fraction}$` }
}

const sentDecimal = (scale: number): Schema => {
  const whole = limits.decimalDigitsMax - scale
  const fraction = scale === 0 ? "" : `(?:\\.[0-9]{1,${scale}})?`
  return { type: "string", pattern: `^-?0*[0-9]{1,${whole}}${fraction}$` }
}

const enumOf = (values: ReadonlyArray<AllowedValue> | null): Schema =>
  values === null
    ? {}
    : {
        enum: values.map(({ value }) => value),
        "x-enum-meanings": Object.fromEntries(values.map(({ value, meaning }) => [String(value), meaning]))
      }

/** `lengthMax` replaces the field's own limit where the field shows another record's text. */
const shownType = (type: FieldType, lengthMax: number | null): Schema => {
  switch (type._tag) {
    case "integer":
      return safeInteger
    case "decimal":
      return { ...shownDecimal(type.scale, type.shown), "x-kind": type.kind }
    case "boolean":
      return { type: "boolean" }
    case "string":
      return { type: "string", ...(lengthMax === null ? {} : { maxLength: lengthMax }) }
    case "date":
      return { type: "string", format: "date", pattern: dayPattern }
    case "timestamp":
      return shownInstant
    case "list":
      return arrayOf(exactly(Object.fromEntries(type.of.map((field) => [field.name, shownField(field)]))))
  }
}

const annotations = ({ note, readOnly, typed, reference }: Field): Schema => ({
  ...(note === "" ? {} : { description: note }),
  ...(readOnly ? { readOnly: true } : {}),
  ...(typed ? {} : { "x-untyped": true }),
  ...(reference === null
    ? {}
    : {
        "x-reference": {
          resource: reference.resource,
          ...(reference.by === null ? {} : { by: reference.by }),
          ...(reference.pairedWith === null ? {} : { pairedWith: reference.pairedWith })
        }
      })
})

/** A field of a record in an answer: present whether set or not. */
export const shownField = (
  field: Field,
  lengthMax: number | null = field.type._tag === "string" && field.reference?.half !== "code"
    ? field.type.maxLength
    : null
): Schema => {
  if (field.name === "id") return { ...recordId, ...annotations(field) }
  return { ...nullable({ ...shownType(field.type, lengthMax), ...enumOf(field.values) }), ...annotations(field) }
}

/** A value of a body, apart from null. */
export const sentValue = ({ type, values }: Pick<Field, "type" | "values">): Schema => ({
  ...sentType(type),
  ...enumOf(values)
})

const sentType = (type: FieldType): Schema => {
  switch (type._tag) {
    case "integer":
      return safeInteger
    case "decimal":
      return { ...sentDecimal(type.scale), "x-kind": type.kind }
    case "boolean":
      return { type: "boolean" }
    case "string":
      return { type: "string", ...(type.maxLength === null ? {} : { maxLength: type.maxLength }) }
    case "date":
    case "timestamp":
      return { type: "string", pattern: eitherInputPattern, anyOf: [{ format: "date" }, { format: "date-time" }] }
    case "list":
      return { type: "array" }
  }
}

/** The value of a filter: integers and booleans are parsed, all other values are compared as text. */
export const filterValue = ({ type }: Field): Schema =>
  type._tag === "integer" ? safeInteger : type._tag === "boolean" ? { type: "boolean" } : { type: "string" }
