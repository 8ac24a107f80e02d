/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of invoices: AR invoices; children: invoicelines. Basis in the API's documents: named. */
export interface InvoicesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key; given by the service when not sent */
  readonly invoicenumber: string | null
  /** customer by id or customercode */
  readonly customerid: number | null
  /** customer by id or customercode */
  readonly customer: string | null
  readonly orderid: number | null
  /** inventory location by id or locationcode */
  readonly inventorylocationid: number | null
  /** inventory location by id or locationcode */
  readonly inventorylocation: string | null
  /** accounting date it posts under */
  readonly invoicedate: DateText | null
  /** ledger voucher; empty while the invoice is a draft. Read-only */
  readonly voucherid: number | null
  /** ledger voucher; empty while the invoice is a draft. Read-only */
  readonly voucher: string | null
  /** sum of the lines. money, 4 decimals. Read-only */
  readonly invoicetotal: Decimal | null
  /** sum of the payments that are not cancelled. money, 4 decimals. Read-only */
  readonly invoicepaid: Decimal | null
  /** the invoice's lines; written on create, afterwards as invoicelines. Read-only */
  readonly lines: ReadonlyArray<{
    /** the record's number. Read-only */
    readonly id: number
    readonly linenumber: number | null
    readonly itemid: number | null
    readonly item: string | null
    readonly description: string | null
    /** qty, 6 decimals */
    readonly qty: Decimal | null
    /** money, 6 decimals */
    readonly priceach: Decimal | null
    /** money, 4 decimals */
    readonly totalprice: Decimal | null
    readonly taxflag: number | null
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

interface InvoicesCreateFields {
  /** given by the service when not sent. at most 30 characters */
  readonly invoicenumber?: string | null | undefined
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  readonly orderid?: number | null | undefined
  /** inventory location by id or locationcode */
  readonly inventorylocationid?: number | null | undefined
  /** inventory location by id or locationcode. at most 20 characters */
  readonly inventorylocation?: string | null | undefined
  /** default today */
  readonly invoicedate?: DateText | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  /** the invoice's lines */
  readonly lines?:
    | ReadonlyArray<{
        /** omit for a non-stock line and send description */
        readonly itemid?: number | null | undefined
        /** defaults to the item description. at most 255 characters */
        readonly description?: string | null | undefined
        /** up to 6 decimals. qty, 6 decimals */
        readonly quantity: Decimal
        /** unit price. money, 6 decimals */
        readonly price: Decimal
        /** whether the line attracts tax */
        readonly taxable?: boolean | null | undefined
        /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
        readonly externalid?: string | null | undefined
      }>
    | null
    | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of invoices. A required reference needs one of its halves. */
export type InvoicesCreate = InvoicesCreateFields & ({ readonly customerid: number } | { readonly customer: string })

/** Changes of a record of invoices. */
export interface InvoicesUpdate {
  /** the key; given by the service when not sent. at most 30 characters */
  readonly invoicenumber?: string | null | undefined
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  readonly orderid?: number | null | undefined
  /** inventory location by id or locationcode */
  readonly inventorylocationid?: number | null | undefined
  /** inventory location by id or locationcode. at most 20 characters */
  readonly inventorylocation?: string | null | undefined
  /** accounting date it posts under */
  readonly invoicedate?: DateText | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of invoices. */
export interface InvoicesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly customerid?: number | undefined
  readonly orderid?: number | undefined
  readonly invoicenumber?: string | undefined
  readonly inventorylocationid?: number | undefined
}

export interface InvoicesShape {
  readonly operations:
    | "list"
    | "create"
    | "get"
    | "getVersioned"
    | "update"
    | "cancel"
    | "read"
    | "download"
    | "perform"
  readonly record: InvoicesRecord
  readonly create: InvoicesCreate
  readonly update: InvoicesUpdate
  readonly filters: InvoicesFilters
  readonly answers: never
  readonly reads: "pdf"
  readonly actions: "post"
  readonly events: "invoices.created" | "invoices.updated" | "invoices.cancelled" | "invoices.posted"
}
