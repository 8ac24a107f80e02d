/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of departments: departments. Basis in the API's documents: inferred. */
export interface DepartmentsRecord {
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

/** Filters of lists of departments. */
export interface DepartmentsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly code?: string | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface DepartmentsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: DepartmentsRecord
  readonly create: never
  readonly update: never
  readonly filters: DepartmentsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "departments.created" | "departments.updated" | "departments.cancelled"
}
