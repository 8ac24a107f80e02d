/**
 * JSON values as the store keeps them.
 *
 * Promise: a value that is not plain text, boolean or a safe integer is stored as the JSON text that arrived. So a
 * number such as 1.10 or 9007199254740993 leaves the server digit by digit as it came.
 */

/** JSON text that is sent unchanged. */
export class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

/** The value of a field; absent or null is empty. */
export type Value = string | number | boolean | Raw | null

interface SourceContext {
  readonly source?: string
}
type ExactParse = (text: string, reviver: (key: string, value: unknown, context: SourceContext) => unknown) => unknown

/** `JSON.parse`, but numbers that are not exact as safe integers become {@link Raw}. Throws as `JSON.parse` does. */
export const parseExactly = (text: string): unknown =>
  (JSON.parse as ExactParse)(text, (_key, value, context) =>
    typeof value === "number" && !(Number.isSafeInteger(value) && String(value) === context.source)
      ? new Raw(context.source ?? String(value))
      : value
  )

/** JSON text of a parsed value, number tokens as they came; NUL and lone surrogates become `\u` escapes. */
export const print = (value: unknown): string => {
  if (value instanceof Raw) return value.text
  if (Array.isArray(value)) return `[${value.map(print).join(",")}]`
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${print(member)}`)
    return `{${members.join(",")}}`
  }
  return value === undefined ? "null" : JSON.stringify(value)
}

/** A parsed value as a field stores it. */
export const valueOf = (parsed: unknown): Value => {
  if (parsed === null || parsed === undefined) return null
  if (typeof parsed === "object") return parsed instanceof Raw ? parsed : new Raw(print(parsed))
  return parsed as string | number | boolean
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Raw)
