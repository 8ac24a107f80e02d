/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of salesmen: salespeople and service reps. Basis in the API's documents: documented. */
export interface SalesmenRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly name: string | null
  readonly salesman: boolean | null
  readonly servicerep: boolean | null
  /** percentage. money, 3 decimals */
  readonly commissionrate: Decimal | null
  readonly email1: string | null
  readonly phone1: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of salesmen. */
export interface SalesmenCreate {
  /** the key. at most 50 characters */
  readonly name: string
  readonly salesman?: boolean | null | undefined
  readonly servicerep?: boolean | null | undefined
  /** percentage. money, 3 decimals */
  readonly commissionrate?: Decimal | null | undefined
  /** at most 50 characters */
  readonly email1?: string | null | undefined
  /** at most 20 characters */
  readonly phone1?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of salesmen. */
export interface SalesmenUpdate {
  /** the key. at most 50 characters */
  readonly name?: string | null | undefined
  readonly salesman?: boolean | null | undefined
  readonly servicerep?: boolean | null | undefined
  /** percentage. money, 3 decimals */
  readonly commissionrate?: Decimal | null | undefined
  /** at most 50 characters */
  readonly email1?: string | null | undefined
  /** at most 20 characters */
  readonly phone1?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of salesmen. */
export interface SalesmenFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface SalesmenShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: SalesmenRecord
  readonly create: SalesmenCreate
  readonly update: SalesmenUpdate
  readonly filters: SalesmenFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "salesmen.created" | "salesmen.updated" | "salesmen.cancelled"
}
