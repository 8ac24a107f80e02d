/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of timezones: time zones. Basis in the API's documents: inferred. */
export interface TimezonesRecord {
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

/** Filters of lists of timezones. */
export interface TimezonesFilters extends CommonFilters {
  readonly code?: string | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface TimezonesShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: TimezonesRecord
  readonly create: never
  readonly update: never
  readonly filters: TimezonesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "timezones.created" | "timezones.updated" | "timezones.cancelled"
}
