/** The types of the values on the wire, as a program sees them. */

/** An exact decimal as text: `"1234.5000"`. It never was a float; compute with it by a decimal library. */
export type Decimal = string

/** A calendar day as sent, usually `YYYY-MM-DD`. */
export type DateText = string

/** An instant as sent, usually RFC 3339 in UTC: `2026-03-16T09:00:00Z`. */
export type Timestamp = string

/** A text of a closed set; other texts are possible in answers. */
export type OneOf<Known extends string> = Known | (string & {})

/** Any JSON. A number that a float cannot hold exactly is text. */
export type JsonValue = string | number | boolean | null | ReadonlyArray<JsonValue> | JsonObject
export interface JsonObject {
  readonly [name: string]: JsonValue
}

/** The install's own fields by name. Answers have them with `includeCustomFields` only. */
export type CustomFields = JsonObject

/** Custom fields of a write; null clears one. */
export type CustomFieldValues = Readonly<Record<string, string | number | boolean | null>>

/** Filters that every list takes. */
export interface CommonFilters {
  /** Default false: lists hide cancelled records, except with `modifiedsince`. `any` lists all of them. */
  readonly cancel?: boolean | "any" | undefined
  /** Exact. */
  readonly externalid?: string | undefined
}

/** What the catalogue states about a resource, as types. */
export interface ResourceShape {
  /** The methods that the resource has. */
  readonly operations: string
  readonly record: object
  readonly create: object
  readonly update: object
  readonly filters: object
  /** Members of the answers to writes, beside those of the record. */
  readonly answers: string
  /** The last part of paths below a record. */
  readonly reads: string
  readonly actions: string
  readonly events: string
}
