/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of serviceordertimes: hours on a service order. Basis in the API's documents: named. */
export interface ServiceordertimesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** must be a service order */
  readonly orderid: number | null
  /** qty, 6 decimals */
  readonly hours: Decimal | null
  readonly date: DateText | null
  readonly worktypeid: number | null
  readonly genuserid: number | null
  readonly note: string | null
  /** 0: open; 1: approved; 2: billed: converted to an order line. Read-only */
  readonly status: number | null
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

/** The body of a new record of serviceordertimes. */
export interface ServiceordertimesCreate {
  /** must be a service order */
  readonly orderid: number
  /** qty, 6 decimals */
  readonly hours: Decimal
  readonly date?: DateText | null | undefined
  readonly worktypeid?: number | null | undefined
  readonly genuserid?: number | null | undefined
  /** at most 255 characters */
  readonly note?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of serviceordertimes. */
export interface ServiceordertimesUpdate {
  /** must be a service order */
  readonly orderid?: number | null | undefined
  /** qty, 6 decimals */
  readonly hours?: Decimal | null | undefined
  readonly date?: DateText | null | undefined
  readonly worktypeid?: number | null | undefined
  readonly genuserid?: number | null | undefined
  /** at most 255 characters */
  readonly note?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of serviceordertimes. */
export interface ServiceordertimesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly orderid?: number | undefined
  readonly genuserid?: number | undefined
  readonly status?: number | undefined
}

export interface ServiceordertimesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: ServiceordertimesRecord
  readonly create: ServiceordertimesCreate
  readonly update: ServiceordertimesUpdate
  readonly filters: ServiceordertimesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "serviceordertimes.created" | "serviceordertimes.updated" | "serviceordertimes.cancelled"
}
