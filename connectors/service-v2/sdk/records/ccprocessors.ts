/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of ccprocessors: card processors. Basis in the API's documents: inferred. */
export interface CcprocessorsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly name: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** creation time. Read-only */
  readonly entrydate: Timestamp | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** Filters of lists of ccprocessors. */
export interface CcprocessorsFilters extends CommonFilters {
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface CcprocessorsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: CcprocessorsRecord
  readonly create: never
  readonly update: never
  readonly filters: CcprocessorsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "ccprocessors.created" | "ccprocessors.updated" | "ccprocessors.cancelled"
}
