/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Timestamp } from "../Values.ts"

/** One of leases: leases of a unit to a customer. Basis in the API's documents: inferred. */
export interface LeasesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly propertyunitid: number | null
  readonly customerid: number | null
  readonly begindate: DateText | null
  readonly enddate: DateText | null
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

/** The body of a new record of leases. */
export interface LeasesCreate {
  readonly propertyunitid: number
  readonly customerid?: number | null | undefined
  readonly begindate?: DateText | null | undefined
  readonly enddate?: DateText | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of leases. */
export interface LeasesUpdate {
  readonly propertyunitid?: number | null | undefined
  readonly customerid?: number | null | undefined
  readonly begindate?: DateText | null | undefined
  readonly enddate?: DateText | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of leases. */
export interface LeasesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly propertyunitid?: number | undefined
  readonly customerid?: number | undefined
}

export interface LeasesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: LeasesRecord
  readonly create: LeasesCreate
  readonly update: LeasesUpdate
  readonly filters: LeasesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "leases.created" | "leases.updated" | "leases.cancelled"
}
