/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, OneOf, Timestamp } from "../Values.ts"

/** One of orders: sales orders, service orders, rentals and quotes; children: orderlines, shipments. Basis in the API's documents: named. */
export interface OrdersRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** fulfillment: goods are shipped; service: hours are billed; rental: billed by period */
  readonly ordertype: OneOf<"fulfillment" | "service" | "rental"> | null
  /** PATCH moves quote or unconfirmed to open; the rest follows from shipping and billing. quote: not an order yet; wins over ordertype; unconfirmed: received, not confirmed; open: inventory is committed; partial: shipped or billed in part; billed: billed in full */
  readonly status: OneOf<"quote" | "unconfirmed" | "open" | "partial" | "billed"> | null
  /** customer by id or customercode */
  readonly customerid: number | null
  /** customer by id or customercode */
  readonly customer: string | null
  /** must belong to the customer */
  readonly shiptoid: number | null
  /** location shipped from, by id or locationcode */
  readonly inventorylocationid: number | null
  /** location shipped from, by id or locationcode */
  readonly inventorylocation: string | null
  readonly orderdate: DateText | null
  /** sum of the lines. money, 4 decimals. Read-only */
  readonly ordertotal: Decimal | null
  /** the order's lines; written on create only, afterwards as orderlines. Read-only */
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
    readonly qtyship: Decimal | null
    /** qty, 6 decimals */
    readonly qtybilled: Decimal | null
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

interface OrdersCreateFields {
  /** at most 20 characters. fulfillment: goods are shipped; service: hours are billed; rental: billed by period */
  readonly ordertype?: "fulfillment" | "service" | "rental" | null | undefined
  /** PATCH moves quote or unconfirmed to open; the rest follows from shipping and billing. at most 20 characters. quote: not an order yet; wins over ordertype; unconfirmed: received, not confirmed; open: inventory is committed; partial: shipped or billed in part; billed: billed in full */
  readonly status?: "quote" | "unconfirmed" | "open" | "partial" | "billed" | null | undefined
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  readonly shiptoid?: number | null | undefined
  /** location shipped from, by id or locationcode */
  readonly inventorylocationid?: number | null | undefined
  /** location shipped from, by id or locationcode. at most 20 characters */
  readonly inventorylocation?: string | null | undefined
  /** default today */
  readonly orderdate?: DateText | null | undefined
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
        /** defaults to the item's price. money, 6 decimals */
        readonly priceach?: Decimal | null | undefined
        /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
        readonly externalid?: string | null | undefined
      }>
    | null
    | undefined
  /** hours on a service order */
  readonly hours?:
    | ReadonlyArray<{
        /** qty, 6 decimals */
        readonly hours: Decimal
        /** default today */
        readonly date?: DateText | null | undefined
        readonly worktypeid?: number | null | undefined
        readonly genuserid?: number | null | undefined
        /** at most 255 characters */
        readonly note?: string | null | undefined
        /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
        readonly externalid?: string | null | undefined
      }>
    | null
    | undefined
  /** shipments of the order; needs the scope shipments:write too */
  readonly shipments?:
    | ReadonlyArray<{
        /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
        readonly externalid?: string | null | undefined
        /** what ships of which of the order's lines */
        readonly lines: ReadonlyArray<{
          /** place among the order's lines, from 1 */
          readonly linenumber: number
          /** up to 6 decimals. qty, 6 decimals */
          readonly quantity: Decimal
        }>
      }>
    | null
    | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of orders. A required reference needs one of its halves. */
export type OrdersCreate = OrdersCreateFields & ({ readonly customerid: number } | { readonly customer: string })

/** Changes of a record of orders. */
export interface OrdersUpdate {
  /** at most 20 characters. fulfillment: goods are shipped; service: hours are billed; rental: billed by period */
  readonly ordertype?: "fulfillment" | "service" | "rental" | null | undefined
  /** PATCH moves quote or unconfirmed to open; the rest follows from shipping and billing. at most 20 characters. quote: not an order yet; wins over ordertype; unconfirmed: received, not confirmed; open: inventory is committed; partial: shipped or billed in part; billed: billed in full */
  readonly status?: "quote" | "unconfirmed" | "open" | "partial" | "billed" | null | undefined
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  /** must belong to the customer */
  readonly shiptoid?: number | null | undefined
  /** location shipped from, by id or locationcode */
  readonly inventorylocationid?: number | null | undefined
  /** location shipped from, by id or locationcode. at most 20 characters */
  readonly inventorylocation?: string | null | undefined
  readonly orderdate?: DateText | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of orders. */
export interface OrdersFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly customerid?: number | undefined
  readonly status?: string | undefined
  readonly ordertype?: string | undefined
  readonly inventorylocationid?: number | undefined
}

export interface OrdersShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel" | "perform"
  readonly record: OrdersRecord
  readonly create: OrdersCreate
  readonly update: OrdersUpdate
  readonly filters: OrdersFilters
  readonly answers: never
  readonly reads: never
  readonly actions: "invoice"
  readonly events: "orders.created" | "orders.updated" | "orders.cancelled"
}
