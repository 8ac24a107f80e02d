/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of bankdeposits: deposits into a bank account. Basis in the API's documents: inferred. */
export interface BankdepositsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly bankaccountid: number | null
  readonly depositdate: DateText | null
  /** money, 4 decimals */
  readonly amount: Decimal | null
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

/** Filters of lists of bankdeposits. */
export interface BankdepositsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly bankaccountid?: number | undefined
}

export interface BankdepositsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: BankdepositsRecord
  readonly create: never
  readonly update: never
  readonly filters: BankdepositsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "bankdeposits.created" | "bankdeposits.updated" | "bankdeposits.cancelled"
}
