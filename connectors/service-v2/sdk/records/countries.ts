/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of countries: countries. Basis in the API's documents: inferred. */
export interface CountriesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly code: string | null
  readonly name: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** creation time. Read-only */
  readonly entrydate: Timestamp | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** Filters of lists of countries. */
export interface CountriesFilters extends CommonFilters {
  readonly code?: string | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface CountriesShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: CountriesRecord
  readonly create: never
  readonly update: never
  readonly filters: CountriesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "countries.created" | "countries.updated" | "countries.cancelled"
}
