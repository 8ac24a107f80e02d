/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of teamprojects: projects. Basis in the API's documents: inferred. */
export interface TeamprojectsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
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

/** The body of a new record of teamprojects. */
export interface TeamprojectsCreate {
  /** the key. at most 30 characters */
  readonly code: string
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of teamprojects. */
export interface TeamprojectsUpdate {
  /** the key. at most 30 characters */
  readonly code?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojects. */
export interface TeamprojectsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly code?: string | undefined
}

export interface TeamprojectsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: TeamprojectsRecord
  readonly create: TeamprojectsCreate
  readonly update: TeamprojectsUpdate
  readonly filters: TeamprojectsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "teamprojects.created" | "teamprojects.updated" | "teamprojects.cancelled"
}
