/** JSON on indented lines, with every digit as it was sent. */
import { visible } from "../../../../src/web/Escape.ts"
import { isObject, parseExactly, print } from "../json.ts"

/** A value below this depth stays on one line. */
const depthMax = 8

const written = (value: unknown, depth: number): string => {
  const isNested = depth < depthMax && (isObject(value) || Array.isArray(value))
  if (!isNested) return visible(print(value))
  const members = isObject(value)
    ? Object.entries(value).map(([name, member]) => `${visible(JSON.stringify(name))}: ${written(member, depth + 1)}`)
    : (value as ReadonlyArray<unknown>).map((item) => written(item, depth + 1))
  const [open, close] = isObject(value) ? ["{", "}"] : ["[", "]"]
  if (members.length === 0) return `${open}${close}`
  const indent = "  ".repeat(depth + 1)
  return `${open}\n${members.map((member) => indent + member).join(",\n")}\n${"  ".repeat(depth)}${close}`
}

/** Indented lines; null when the text is not JSON. */
export const pretty = (text: string): string | null => {
  try {
    return written(parseExactly(text), 0)
  } catch {
    return null
  }
}
