/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of rmareturns: returned lines against a return authorization. Basis in the API's documents: documented. */
export interface RmareturnsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the order returned against */
  readonly rma_arorderid: number | null
  readonly return_date: DateText | null
  /** sales tax; stored as given */
  readonly taxid: number | null
  /** second sales tax; stored as given */
  readonly taxid2: number | null
  /** third sales tax; stored as given */
  readonly taxid3: number | null
  /** money, 5 decimals */
  readonly taxcredit: Decimal | null
  /** money, 5 decimals */
  readonly taxcredit2: Decimal | null
  /** money, 5 decimals */
  readonly taxcredit3: Decimal | null
  /** money, 5 decimals */
  readonly shipping_credit: Decimal | null
  /** money, 5 decimals */
  readonly restock_fee: Decimal | null
  /** money, 5 decimals */
  readonly total_credit: Decimal | null
  /** invoice by id or invoicenumber */
  readonly invoiceid: number | null
  /** invoice by id or invoicenumber */
  readonly invoice: string | null
  /** ledger voucher */
  readonly voucherid: number | null
  /** ledger voucher */
  readonly voucher: string | null
  /** the order made in exchange */
  readonly new_orderid: number | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** creation time */
  readonly entrydate: Timestamp | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of rmareturns. */
export interface RmareturnsCreate {
  /** the order returned against */
  readonly rma_arorderid?: number | null | undefined
  readonly return_date?: DateText | null | undefined
  /** sales tax; stored as given */
  readonly taxid?: number | null | undefined
  /** second sales tax; stored as given */
  readonly taxid2?: number | null | undefined
  /** third sales tax; stored as given */
  readonly taxid3?: number | null | undefined
  /** money, 5 decimals */
  readonly taxcredit?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly taxcredit2?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly taxcredit3?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly shipping_credit?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly restock_fee?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly total_credit?: Decimal | null | undefined
  /** invoice by id or invoicenumber */
  readonly invoiceid?: number | null | undefined
  /** invoice by id or invoicenumber. at most 30 characters */
  readonly invoice?: string | null | undefined
  /** ledger voucher */
  readonly voucherid?: number | null | undefined
  /** ledger voucher. at most 50 characters */
  readonly voucher?: string | null | undefined
  /** the order made in exchange */
  readonly new_orderid?: number | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** creation time */
  readonly entrydate?: Timestamp | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of rmareturns. */
export interface RmareturnsUpdate {
  /** the order returned against */
  readonly rma_arorderid?: number | null | undefined
  readonly return_date?: DateText | null | undefined
  /** sales tax; stored as given */
  readonly taxid?: number | null | undefined
  /** second sales tax; stored as given */
  readonly taxid2?: number | null | undefined
  /** third sales tax; stored as given */
  readonly taxid3?: number | null | undefined
  /** money, 5 decimals */
  readonly taxcredit?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly taxcredit2?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly taxcredit3?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly shipping_credit?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly restock_fee?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly total_credit?: Decimal | null | undefined
  /** invoice by id or invoicenumber */
  readonly invoiceid?: number | null | undefined
  /** invoice by id or invoicenumber. at most 30 characters */
  readonly invoice?: string | null | undefined
  /** ledger voucher */
  readonly voucherid?: number | null | undefined
  /** ledger voucher. at most 50 characters */
  readonly voucher?: string | null | undefined
  /** the order made in exchange */
  readonly new_orderid?: number | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** creation time */
  readonly entrydate?: Timestamp | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of rmareturns. */
export interface RmareturnsFilters extends CommonFilters {
  readonly invoiceid?: number | undefined
}

export interface RmareturnsShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: RmareturnsRecord
  readonly create: RmareturnsCreate
  readonly update: RmareturnsUpdate
  readonly filters: RmareturnsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "rmareturns.created" | "rmareturns.updated" | "rmareturns.cancelled"
}
