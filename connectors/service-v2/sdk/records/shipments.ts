/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of shipments: shipments against an order; children: shipmentlines. Basis in the API's documents: documented. */
export interface ShipmentsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly orderid: number | null
  /** carrier service by id or code */
  readonly carrierserviceid: number | null
  /** carrier service by id or code */
  readonly carrierservice: string | null
  /** when it went out */
  readonly shipdate: DateText | null
  /** inventory location to receive into; location is its locationcode */
  readonly locationid: number | null
  /** inventory location to receive into; location is its locationcode */
  readonly location: string | null
  /** creation time */
  readonly entrydate: Timestamp | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  readonly shiptoid: number | null
  /** ledger voucher */
  readonly voucherid: number | null
  /** ledger voucher */
  readonly voucher: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** invoice by id or invoicenumber */
  readonly invoiceid: number | null
  /** invoice by id or invoicenumber */
  readonly invoice: string | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of shipments. */
export interface ShipmentsCreate {
  /** order being shipped */
  readonly orderid: number
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  /** each ships against an order line and cannot exceed what is left on that line */
  readonly lines: ReadonlyArray<{
    readonly orderlineid: number
    /** up to 6 decimals. qty, 6 decimals */
    readonly quantity: Decimal
  }>
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of shipments. */
export interface ShipmentsUpdate {
  readonly carrierserviceid?: number | null | undefined
  readonly shipdate?: DateText | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of shipments. */
export interface ShipmentsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly locationid?: number | undefined
  readonly orderid?: number | undefined
  readonly invoiceid?: number | undefined
}

export interface ShipmentsShape {
  readonly operations:
    | "list"
    | "create"
    | "batch"
    | "get"
    | "getVersioned"
    | "update"
    | "cancel"
    | "read"
    | "download"
    | "perform"
  readonly record: ShipmentsRecord
  readonly create: ShipmentsCreate
  readonly update: ShipmentsUpdate
  readonly filters: ShipmentsFilters
  readonly answers: never
  readonly reads: "packages" | "pdf" | "boxlabels"
  readonly actions: "invoice"
  readonly events: "shipments.created" | "shipments.updated" | "shipments.cancelled"
}
