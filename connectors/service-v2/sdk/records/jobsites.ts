/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of jobsites: sites of a construction job. Basis in the API's documents: inferred. */
export interface JobsitesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly jobid: number | null
  readonly address: string | null
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

/** The body of a new record of jobsites. */
export interface JobsitesCreate {
  readonly jobid: number
  /** at most 100 characters */
  readonly address?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of jobsites. */
export interface JobsitesUpdate {
  readonly jobid?: number | null | undefined
  /** at most 100 characters */
  readonly address?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of jobsites. */
export interface JobsitesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly jobid?: number | undefined
  /** Part of the text, in any case */
  readonly address?: string | undefined
}

export interface JobsitesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: JobsitesRecord
  readonly create: JobsitesCreate
  readonly update: JobsitesUpdate
  readonly filters: JobsitesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "jobsites.created" | "jobsites.updated" | "jobsites.cancelled"
}
