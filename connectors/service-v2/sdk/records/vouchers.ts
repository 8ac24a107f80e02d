/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, DateText, Timestamp } from "../Values.ts"

/** One of vouchers: ledger vouchers: what posting a document writes. Basis in the API's documents: inferred. */
export interface VouchersRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly voucher: string | null
  /** accounting date */
  readonly date: DateText | null
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

/** Filters of lists of vouchers. */
export interface VouchersFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly voucher?: string | undefined
}

export interface VouchersShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: VouchersRecord
  readonly create: never
  readonly update: never
  readonly filters: VouchersFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "vouchers.created" | "vouchers.updated" | "vouchers.cancelled"
}
