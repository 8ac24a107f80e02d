/** A change endpoint: where changes are sent, and which. */
import type * as Redacted from "effect/Redacted"
import type { Change } from "../changes/ChangeFeed.ts"

/** The operations of the feed that a filter may name. */
export const operations = ["insert", "update", "delete", "truncate", "missing"] as const

/** The changes that are sent; null in each part stands for all. */
export interface Filter {
  readonly company: string | null
  readonly resources: ReadonlyArray<string> | null
  readonly operations: ReadonlyArray<string> | null
  /** An update is sent only if one of these fields changed. */
  readonly fields: ReadonlyArray<string> | null
}

export const everything: Filter = { company: null, resources: null, operations: null, fields: null }

export interface Definition extends Filter {
  readonly name: string
  readonly url: string
  readonly batchMax: number
  readonly allowPrivate: boolean
  readonly retryHours: number
}

export const batchMaxDefault = 1
/** Changes of one message at most. */
export const batchMaxMax = 200
export const retryHoursDefault = 72

/** An endpoint of the configuration file, with its secrets from the environment. */
export interface FileEndpoint extends Definition {
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/** The name of the endpoint of an alert route. No other endpoint has a colon in its name. */
export const nameOfRoute = (route: string): string => `alerts:${route}`
export const isRoute = (name: string): boolean => name.startsWith("alerts:")

/** Whether the change passes the parts of the filter that the feed does not select by. */
export const matches = (
  { operations, fields }: Pick<Filter, "operations" | "fields">,
  { op, changed }: Change
): boolean =>
  (operations === null || operations.includes(op)) &&
  (fields === null || op !== "update" || changed === null || changed.some((field) => fields.includes(field)))

/**
 * The characters of an address: no spaces or control characters. Node's URL leaves out line breaks and tabs, so that what is
 * stored would not be what is requested.
 */
export const addressCharacters = /^[^\s\p{Cc}]+$/u
export const hasControlCharacter = (address: string): boolean => address !== "" && !addressCharacters.test(address)

export const controlCharacterProblem = "an address has no spaces, line breaks or other control characters"

/** What is wrong with an address; null for a usable one. The network is checked when a message is sent. */
export const problemOfUrl = (url: string, allowPrivate: boolean): string | null => {
  if (hasControlCharacter(url)) return controlCharacterProblem
  if (!URL.canParse(url)) return `${url} is no address`
  const { protocol, username, password } = new URL(url)
  if (username !== "" || password !== "") return "an address must not contain a password: the signature replaces it"
  if (protocol === "https:" || (protocol === "http:" && allowPrivate)) return null
  return "an address begins with https:// (http:// only with allow_private, within a network of your own)"
}

/** Whether it is a secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
export const isSecret = (text: string): boolean => {
  const match = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/.exec(text)
  const bytes = match === null ? 0 : Buffer.from(match[1]!, "base64").length
  return bytes >= 24 && bytes <= 64
}
