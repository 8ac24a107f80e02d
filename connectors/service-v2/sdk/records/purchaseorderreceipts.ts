/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of purchaseorderreceipts: receipts against a purchase order. Basis in the API's documents: inferred. */
export interface PurchaseorderreceiptsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly purchaseorderid: number | null
  readonly receiptdate: DateText | null
  /** what was received per purchase order line */
  readonly lines: ReadonlyArray<{
    readonly purchaseorderlineid: number | null
    /** qty, 6 decimals */
    readonly quantity: Decimal | null
  }> | null
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

/** The body of a new record of purchaseorderreceipts. */
export interface PurchaseorderreceiptsCreate {
  readonly purchaseorderid: number
  /** default today */
  readonly receiptdate?: DateText | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  /** what was received per purchase order line */
  readonly lines: ReadonlyArray<{
    readonly purchaseorderlineid: number
    /** qty, 6 decimals */
    readonly quantity: Decimal
  }>
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of purchaseorderreceipts. */
export interface PurchaseorderreceiptsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly purchaseorderid?: number | undefined
}

export interface PurchaseorderreceiptsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned"
  readonly record: PurchaseorderreceiptsRecord
  readonly create: PurchaseorderreceiptsCreate
  readonly update: never
  readonly filters: PurchaseorderreceiptsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "purchaseorderreceipts.created" | "purchaseorderreceipts.updated" | "purchaseorderreceipts.cancelled"
}
