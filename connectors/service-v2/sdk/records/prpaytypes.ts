/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of prpaytypes: payroll pay types. Basis in the API's documents: inferred. */
export interface PrpaytypesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
  readonly code: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** creation time. Read-only */
  readonly entrydate: Timestamp | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** Filters of lists of prpaytypes. */
export interface PrpaytypesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly code?: string | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface PrpaytypesShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: PrpaytypesRecord
  readonly create: never
  readonly update: never
  readonly filters: PrpaytypesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "prpaytypes.created" | "prpaytypes.updated" | "prpaytypes.cancelled"
}
