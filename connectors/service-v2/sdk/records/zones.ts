/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of zones: zones. Basis in the API's documents: inferred. */
export interface ZonesRecord {
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

/** Filters of lists of zones. */
export interface ZonesFilters extends CommonFilters {
  readonly code?: string | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface ZonesShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: ZonesRecord
  readonly create: never
  readonly update: never
  readonly filters: ZonesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "zones.created" | "zones.updated" | "zones.cancelled"
}
