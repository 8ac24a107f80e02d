/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of purchaseorders: purchase orders; children: purchaseorderlines, purchaseorderreceipts. Basis in the API's documents: inferred. */
export interface PurchaseordersRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** vendor by id or vendorcode */
  readonly vendorid: number | null
  /** vendor by id or vendorcode */
  readonly vendor: string | null
  readonly orderdate: DateText | null
  /** true blocks PATCH and new lines */
  readonly complete: boolean | null
  /** sum of the lines. money, 4 decimals. Read-only */
  readonly ordertotal: Decimal | null
  /** the order's lines; written on create only, afterwards as purchaseorderlines. Read-only */
  readonly lines: ReadonlyArray<{
    /** the record's number. Read-only */
    readonly id: number
    readonly linenumber: number | null
    /** item by id or sku */
    readonly itemid: number | null
    /** item by id or sku */
    readonly item: string | null
    readonly description: string | null
    /** qty, 6 decimals */
    readonly qtyorder: Decimal | null
    /** qty, 6 decimals */
    readonly qtyreceived: Decimal | null
    /** money, 6 decimals */
    readonly priceach: Decimal | null
    /** the caller's own key, stored verbatim, scoped to the company */
    readonly externalid: string | null
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

interface PurchaseordersCreateFields {
  /** vendor by id or vendorcode */
  readonly vendorid?: number | null | undefined
  /** vendor by id or vendorcode. at most 30 characters */
  readonly vendor?: string | null | undefined
  /** default today */
  readonly orderdate?: DateText | null | undefined
  /** true blocks PATCH and new lines */
  readonly complete?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  /** the order's lines */
  readonly lines?:
    | ReadonlyArray<{
        /** item by id or sku */
        readonly itemid?: number | null | undefined
        /** item by id or sku. at most 255 characters */
        readonly item?: string | null | undefined
        /** defaults to the item description. at most 255 characters */
        readonly description?: string | null | undefined
        /** qty, 6 decimals */
        readonly qtyorder: Decimal
        /** unit price. money, 6 decimals */
        readonly priceach?: Decimal | null | undefined
        /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
        readonly externalid?: string | null | undefined
      }>
    | null
    | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of purchaseorders. A required reference needs one of its halves. */
export type PurchaseordersCreate = PurchaseordersCreateFields &
  ({ readonly vendorid: number } | { readonly vendor: string })

/** Changes of a record of purchaseorders. */
export interface PurchaseordersUpdate {
  /** vendor by id or vendorcode */
  readonly vendorid?: number | null | undefined
  /** vendor by id or vendorcode. at most 30 characters */
  readonly vendor?: string | null | undefined
  readonly orderdate?: DateText | null | undefined
  /** true blocks PATCH and new lines */
  readonly complete?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of purchaseorders. */
export interface PurchaseordersFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly vendorid?: number | undefined
  readonly complete?: boolean | undefined
}

export interface PurchaseordersShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: PurchaseordersRecord
  readonly create: PurchaseordersCreate
  readonly update: PurchaseordersUpdate
  readonly filters: PurchaseordersFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "purchaseorders.created" | "purchaseorders.updated" | "purchaseorders.cancelled"
}
