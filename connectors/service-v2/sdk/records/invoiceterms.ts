/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of invoiceterms: payment terms, shared install-wide. Basis in the API's documents: documented. */
export interface InvoicetermsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly verbal: string | null
  readonly netduedays: number | null
  /** number, 3 decimals */
  readonly discountpercent: Decimal | null
  readonly discountdays: number | null
  /** available on receivables */
  readonly ar: boolean | null
  /** available on payables */
  readonly ap: boolean | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of invoiceterms. */
export interface InvoicetermsCreate {
  /** the key. at most 30 characters */
  readonly verbal: string
  readonly netduedays?: number | null | undefined
  /** number, 3 decimals */
  readonly discountpercent?: Decimal | null | undefined
  readonly discountdays?: number | null | undefined
  /** available on receivables */
  readonly ar?: boolean | null | undefined
  /** available on payables */
  readonly ap?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of invoiceterms. */
export interface InvoicetermsUpdate {
  /** the key. at most 30 characters */
  readonly verbal?: string | null | undefined
  readonly netduedays?: number | null | undefined
  /** number, 3 decimals */
  readonly discountpercent?: Decimal | null | undefined
  readonly discountdays?: number | null | undefined
  /** available on receivables */
  readonly ar?: boolean | null | undefined
  /** available on payables */
  readonly ap?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of invoiceterms. */
export interface InvoicetermsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly verbal?: string | undefined
}

export interface InvoicetermsShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: InvoicetermsRecord
  readonly create: InvoicetermsCreate
  readonly update: InvoicetermsUpdate
  readonly filters: InvoicetermsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "invoiceterms.created" | "invoiceterms.updated" | "invoiceterms.cancelled"
}
