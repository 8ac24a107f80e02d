/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of teamprojecttemplates: project templates. Basis in the API's documents: inferred. */
export interface TeamprojecttemplatesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
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

/** The body of a new record of teamprojecttemplates. */
export interface TeamprojecttemplatesCreate {
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of teamprojecttemplates. */
export interface TeamprojecttemplatesUpdate {
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojecttemplates. */
export interface TeamprojecttemplatesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface TeamprojecttemplatesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: TeamprojecttemplatesRecord
  readonly create: TeamprojecttemplatesCreate
  readonly update: TeamprojecttemplatesUpdate
  readonly filters: TeamprojecttemplatesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "teamprojecttemplates.created" | "teamprojecttemplates.updated" | "teamprojecttemplates.cancelled"
}
