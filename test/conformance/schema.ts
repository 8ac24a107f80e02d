/** A validator for the part of JSON Schema 2020-12 that a description of this API uses. */
import { isRow, type Row } from "./harness.ts"

export function resolve(document: Row, schema: unknown): unknown {
  let at = schema
  for (let depth = 0; depth < 20 && isRow(at) && typeof at["$ref"] === "string"; depth += 1) {
    at = at["$ref"]
      .replace(/^#\//, "")
      .split("/")
      .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"))
      .reduce<unknown>((inner, part) => (isRow(inner) ? inner[part] : undefined), document)
  }
  return at
}

function typeOf(value: unknown): string {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  return typeof value
}

function hasType(value: unknown, type: unknown): boolean {
  if (type === "integer") return Number.isInteger(value)
  return typeOf(value) === type
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : [])

/** The problems of the value, as sentences that begin with its place; empty when there are none. */
export function faults(document: Row, schemaOrReference: unknown, value: unknown, place = "$"): string[] {
  const schema = resolve(document, schemaOrReference)
  if (schema === true || schema === undefined) return schema === true ? [] : [`${place}: its schema does not resolve`]
  if (schema === false) return [`${place}: nothing is allowed here`]
  if (!isRow(schema)) return [`${place}: its schema is not an object`]
  const problems: string[] = []
  const complain = (what: string) => problems.push(`${place}: ${what}`)
  const alternatives = (Array.isArray(schema["type"]) ? list(schema["type"]) : [schema["type"]]).filter(
    (type) => typeof type === "string"
  )
  if (alternatives.length > 0 && !alternatives.some((type) => hasType(value, type)))
    complain(`${typeOf(value)} is no ${alternatives.join(" or ")}`)
  if ("const" in schema && JSON.stringify(schema["const"]) !== JSON.stringify(value)) complain("is not the constant")
  if (
    Array.isArray(schema["enum"]) &&
    !list(schema["enum"]).some((each) => JSON.stringify(each) === JSON.stringify(value))
  )
    complain(`${JSON.stringify(value)} is none of ${JSON.stringify(schema["enum"])}`)
  if (typeof value === "string") {
    const length = Array.from(value).length
    if (typeof schema["maxLength"] === "number" && length > schema["maxLength"]) complain("is too long")
    if (typeof schema["minLength"] === "number" && length < schema["minLength"]) complain("is too short")
    if (typeof schema["pattern"] === "string" && !new RegExp(schema["pattern"], "u").test(value))
      complain(`${JSON.stringify(value)} does not match ${schema["pattern"]}`)
  }
  if (typeof value === "number") {
    if (typeof schema["minimum"] === "number" && value < schema["minimum"]) complain("is too small")
    if (typeof schema["maximum"] === "number" && value > schema["maximum"]) complain("is too great")
  }
  if (Array.isArray(value)) {
    if (typeof schema["maxItems"] === "number" && value.length > schema["maxItems"]) complain("has too many items")
    if (typeof schema["minItems"] === "number" && value.length < schema["minItems"]) complain("has too few items")
    if (schema["items"] !== undefined)
      for (const [i, each] of list(value).entries())
        problems.push(...faults(document, schema["items"], each, `${place}[${i}]`))
  }
  if (isRow(value)) {
    const properties = isRow(schema["properties"]) ? schema["properties"] : {}
    for (const name of list(schema["required"])) if (!(String(name) in value)) complain(`lacks ${String(name)}`)
    for (const [name, each] of Object.entries(value)) {
      if (Object.hasOwn(properties, name))
        problems.push(...faults(document, properties[name], each, `${place}.${name}`))
      else if (schema["additionalProperties"] === false) complain(`has ${name}, which is not described`)
      else if (isRow(schema["additionalProperties"]))
        problems.push(...faults(document, schema["additionalProperties"], each, `${place}.${name}`))
    }
  }
  for (const each of list(schema["allOf"])) problems.push(...faults(document, each, value, place))
  for (const key of ["anyOf", "oneOf"]) {
    const choices = list(schema[key]).map((each) => faults(document, each, value, place))
    if (choices.length === 0) continue
    const fitting = choices.filter((each) => each.length === 0).length
    if (fitting === 0) complain(`fits none of ${key}: ${choices.map((each) => each[0]).join("; ")}`)
    else if (key === "oneOf" && fitting > 1) complain("fits more than one of oneOf")
  }
  return problems
}
