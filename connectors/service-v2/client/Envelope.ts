/**
 * The position of the records in an answer.
 *
 * Promise: an answer without a recognised list is an error that says so. It is never an empty list.
 */
import { kindAt, memberStart, skipSpace, valueEnd } from "./JsonText.ts"

/** The answer is not one of this API. */
export class Unreadable {
  readonly detail: string
  /** The text is complete JSON, so that a retry hardly changes it. */
  readonly settled: boolean
  constructor(detail: string, settled: boolean) {
    this.detail = detail
    this.settled = settled
  }
}

/** An answer's text and its `JSON.parse` result. */
export interface Parsed {
  readonly text: string
  readonly value: unknown
}

export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** An own member of the object, never an inherited one. */
export const member = (object: JsonObject, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The text of the bytes; null when they are not UTF-8. */
const decodeText = (bytes: Uint8Array): string | null => {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/** Parses the bytes of an answer. */
export const parse = (bytes: Uint8Array): Parsed | Unreadable => {
  if (bytes.length === 0) return new Unreadable("the body is empty", false)
  const text = decodeText(bytes)
  if (text === null) return new Unreadable("the body is not UTF-8", false)
  try {
    return { text, value: JSON.parse(text) as unknown }
  } catch {
    const what =
      text.trim() === "" ? "white space" : text.trimStart().startsWith("<") ? "HTML" : "not JSON, or incomplete"
    return new Unreadable(`the body is ${what}, ${bytes.length} bytes`, false)
  }
}

/** A list answer. */
export interface List {
  readonly items: ReadonlyArray<unknown>
  /** Start of the array in the text. */
  readonly start: () => number
  /** Metadata of the answer; the members beside the list when it has no `_meta`. */
  readonly meta: JsonObject
}

const listKeys = ["data", "results", "items", "records"]

/** Finds the records: under `itemsKey`; with null, under the usual names of lists. */
export const findList = (parsed: Parsed, itemsKey: string | null, path: string): List | Unreadable => {
  const { text, value } = parsed
  if (Array.isArray(value)) return { items: value as Array<unknown>, start: () => skipSpace(text, 0), meta: {} }
  if (!isObject(value)) return new Unreadable("the body is neither an object nor a list", true)
  const keys = itemsKey === null ? [...listKeys, path] : [itemsKey]
  const key = keys.find((name) => Array.isArray(member(value, name)))
  if (key === undefined) {
    const seen = Object.keys(value).slice(0, 10).join(", ")
    return new Unreadable(`no list under ${keys.join(", ")}; the body has ${seen === "" ? "nothing" : seen}`, true)
  }
  const meta = member(value, "_meta")
  return {
    items: member(value, key) as ReadonlyArray<unknown>,
    start: () => memberStart(text, skipSpace(text, 0), key) ?? 0,
    meta: isObject(meta) ? meta : value
  }
}

/** A single record: the body itself, or `data` when that is the only member beside `_meta`. */
export const findRecord = (
  parsed: Parsed
): { readonly value: JsonObject; readonly from: number; readonly to: number } | Unreadable => {
  const { text, value } = parsed
  if (!isObject(value)) return new Unreadable("the body is not a record", true)
  const root = skipSpace(text, 0)
  const names = Object.keys(value).filter((name) => name !== "_meta")
  if (names.length === 1) {
    const only = member(value, names[0]!)
    if (names[0] === "error") return new Unreadable("the body is an error, but the status is a success", true)
    if (names[0] === "data" && isObject(only)) {
      const from = memberStart(text, root, "data") ?? root
      return { value: only, from, to: valueEnd(text, from) }
    }
  }
  if (kindAt(text, root) !== "object" || names.length === 0) return new Unreadable("the body is an empty object", true)
  return { value, from: root, to: valueEnd(text, root) }
}
