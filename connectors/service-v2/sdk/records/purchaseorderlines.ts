/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of purchaseorderlines: purchase order lines. Basis in the API's documents: inferred. */
export interface PurchaseorderlinesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly purchaseorderid: number | null
  /** position on the order, from 1. Read-only */
  readonly linenumber: number | null
  /** item by id or sku */
  readonly itemid: number | null
  /** item by id or sku */
  readonly item: string | null
  readonly description: string | null
  /** quantity ordered. qty, 6 decimals */
  readonly qtyorder: Decimal | null
  /** quantity received. qty, 6 decimals. Read-only */
  readonly qtyreceived: Decimal | null
  /** unit price. money, 6 decimals */
  readonly priceach: Decimal | null
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

/** The body of a new record of purchaseorderlines. */
export interface PurchaseorderlinesCreate {
  /** must not be complete */
  readonly purchaseorderid: number
  /** qty, 6 decimals */
  readonly qtyorder: Decimal
  /** item by id or sku */
  readonly itemid?: number | null | undefined
  /** item by id or sku. at most 255 characters */
  readonly item?: string | null | undefined
  /** defaults to the item description. at most 255 characters */
  readonly description?: string | null | undefined
  /** money, 6 decimals */
  readonly priceach?: Decimal | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of purchaseorderlines. */
export interface PurchaseorderlinesUpdate {
  /** qty, 6 decimals */
  readonly qtyorder?: Decimal | null | undefined
  /** item by id or sku */
  readonly itemid?: number | null | undefined
  /** item by id or sku. at most 255 characters */
  readonly item?: string | null | undefined
  /** defaults to the item description. at most 255 characters */
  readonly description?: string | null | undefined
  /** money, 6 decimals */
  readonly priceach?: Decimal | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of purchaseorderlines. */
export interface PurchaseorderlinesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly purchaseorderid?: number | undefined
  readonly itemid?: number | undefined
  /** Part of the text, in any case */
  readonly description?: string | undefined
}

export interface PurchaseorderlinesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: PurchaseorderlinesRecord
  readonly create: PurchaseorderlinesCreate
  readonly update: PurchaseorderlinesUpdate
  readonly filters: PurchaseorderlinesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "purchaseorderlines.created" | "purchaseorderlines.updated" | "purchaseorderlines.cancelled"
}
