/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of customers: companies invoiced: terms, credit limit. Basis in the API's documents: named. */
export interface CustomersRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly customercode: string | null
  readonly name: string | null
  /** money, 4 decimals */
  readonly creditlimit: Decimal | null
  /** payment terms by id or verbal */
  readonly invoicetermid: number | null
  /** payment terms by id or verbal */
  readonly invoiceterm: string | null
  /** salesperson by id or name */
  readonly salesmanid: number | null
  /** salesperson by id or name */
  readonly salesman: string | null
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

/** The body of a new record of customers. */
export interface CustomersCreate {
  /** the key. at most 30 characters */
  readonly customercode: string
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** money, 4 decimals */
  readonly creditlimit?: Decimal | null | undefined
  /** payment terms by id or verbal */
  readonly invoicetermid?: number | null | undefined
  /** payment terms by id or verbal. at most 30 characters */
  readonly invoiceterm?: string | null | undefined
  /** salesperson by id or name */
  readonly salesmanid?: number | null | undefined
  /** salesperson by id or name. at most 50 characters */
  readonly salesman?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of customers. */
export interface CustomersUpdate {
  /** the key. at most 30 characters */
  readonly customercode?: string | null | undefined
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** money, 4 decimals */
  readonly creditlimit?: Decimal | null | undefined
  /** payment terms by id or verbal */
  readonly invoicetermid?: number | null | undefined
  /** payment terms by id or verbal. at most 30 characters */
  readonly invoiceterm?: string | null | undefined
  /** salesperson by id or name */
  readonly salesmanid?: number | null | undefined
  /** salesperson by id or name. at most 50 characters */
  readonly salesman?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of customers. */
export interface CustomersFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly customercode?: string | undefined
  readonly salesmanid?: number | undefined
  readonly invoicetermid?: number | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface CustomersShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel" | "read" | "download"
  readonly record: CustomersRecord
  readonly create: CustomersCreate
  readonly update: CustomersUpdate
  readonly filters: CustomersFilters
  readonly answers: never
  readonly reads: "balance"
  readonly actions: never
  readonly events: "customers.created" | "customers.updated" | "customers.cancelled"
}
