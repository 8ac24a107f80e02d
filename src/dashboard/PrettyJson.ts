/** JSON on indented lines, with every digit as it was sent. */
import { isList, isObject, type Json, NotJson, NumberToken, parse, print } from "../json/Json.ts"
import { visible } from "../web/Escape.ts"

/** A value below this depth stays on one line. */
const depthMax = 8

const written = (value: Json, indent: string): string => {
  if (typeof value === "string" || value === null || typeof value === "boolean" || value instanceof NumberToken) {
    return visible(print(value))
  }
  if (indent.length >= 2 * depthMax) return visible(print(value))
  const inner = `${indent}  `
  if (isObject(value)) {
    if (value.size === 0) return "{}"
    const members = [...value].map(
      ([name, member]) => `${inner}${visible(JSON.stringify(name))}: ${written(member, inner)}`
    )
    return `{\n${members.join(",\n")}\n${indent}}`
  }
  if (!isList(value) || value.length === 0) return "[]"
  return `[\n${value.map((item) => inner + written(item, inner)).join(",\n")}\n${indent}]`
}

const parsed = (text: string): Json | undefined => {
  try {
    return parse(text)
  } catch (error) {
    if (error instanceof NotJson) return undefined
    throw error
  }
}

/** Indented lines; null when the text is not JSON. */
export const pretty = (text: string): string | null => {
  const value = parsed(text)
  return value === undefined ? null : written(value, "")
}

/** The value of a member as it was sent; null without one. */
export const memberOf = (text: string, name: string): string | null => {
  const value = parsed(text)
  const member = isObject(value) ? value.get(name) : undefined
  return member === undefined ? null : print(member)
}
