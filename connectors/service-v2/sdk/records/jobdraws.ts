/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of jobdraws: draws on a construction job. Basis in the API's documents: inferred. */
export interface JobdrawsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly jobid: number | null
  /** money, 4 decimals */
  readonly amount: Decimal | null
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

/** The body of a new record of jobdraws. */
export interface JobdrawsCreate {
  readonly jobid: number
  /** money, 4 decimals */
  readonly amount?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of jobdraws. */
export interface JobdrawsUpdate {
  readonly jobid?: number | null | undefined
  /** money, 4 decimals */
  readonly amount?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of jobdraws. */
export interface JobdrawsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly jobid?: number | undefined
}

export interface JobdrawsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: JobdrawsRecord
  readonly create: JobdrawsCreate
  readonly update: JobdrawsUpdate
  readonly filters: JobdrawsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "jobdraws.created" | "jobdraws.updated" | "jobdraws.cancelled"
}
