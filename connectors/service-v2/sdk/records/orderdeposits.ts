/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of orderdeposits: deposits against an order. Basis in the API's documents: documented. */
export interface OrderdepositsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly orderid: number | null
  /** money, 4 decimals */
  readonly amount: Decimal | null
  /** method text carried from a web-store order. 0: on account or unset; 1: cash; 2: check (the POS writes 2 for credit card); 3: credit card; 4: ACH/EFT; 5: POS card terminal; 99: write-off */
  readonly payment_method: number | null
  /** gateway id */
  readonly transaction_id: string | null
  /** creation time */
  readonly entrydate: Timestamp | null
  /** last four digits; written by the card terminal; card brand and number are never returned. Read-only */
  readonly last4ofcard: string | null
  /** set when the deposit posts. Read-only */
  readonly voucherid: number | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  /** set by bank reconciliation or terminal. Read-only */
  readonly bankdepositid: number | null
  /** set by bank reconciliation or terminal. Read-only */
  readonly cctransactionid: number | null
  /** set by bank reconciliation or terminal. Read-only */
  readonly ccterminalid: number | null
  readonly checkid: string | null
  /** set by bank reconciliation. Read-only */
  readonly bankstatement_enddate: DateText | null
  /** set by bank reconciliation. Read-only */
  readonly bankstatement_cleardate: DateText | null
  /** bank account */
  readonly checkacctid: number | null
  /** bank account */
  readonly checkacct: string | null
  readonly currency: string | null
  /** 1 when bounced */
  readonly returned: number | null
  /** money, 4 decimals */
  readonly bankfee_amount: Decimal | null
  /** ledger account by id or name */
  readonly bankfee_glid: number | null
  /** ledger account by id or name */
  readonly bankfee_gl: string | null
  readonly rnum: string | null
  /** money, 4 decimals */
  readonly tendered: Decimal | null
  readonly notes: string | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of orderdeposits. */
export interface OrderdepositsCreate {
  readonly orderid: number
  /** cannot exceed the order value. money, 4 decimals */
  readonly amount: Decimal
  /** posting date; default today */
  readonly date?: DateText | null | undefined
  /** payment method id. 0: on account or unset; 1: cash; 2: check (the POS writes 2 for credit card); 3: credit card; 4: ACH/EFT; 5: POS card terminal; 99: write-off */
  readonly method?: 0 | 1 | 2 | 3 | 4 | 5 | 99 | null | undefined
  /** at most 100 characters */
  readonly reference?: string | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of orderdeposits. */
export interface OrderdepositsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly orderid?: number | undefined
  /** Part of the text, in any case */
  readonly rnum?: string | undefined
}

export interface OrderdepositsShape {
  readonly operations: "list" | "create" | "batch"
  readonly record: OrderdepositsRecord
  readonly create: OrderdepositsCreate
  readonly update: never
  readonly filters: OrderdepositsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "orderdeposits.created" | "orderdeposits.updated" | "orderdeposits.cancelled"
}
