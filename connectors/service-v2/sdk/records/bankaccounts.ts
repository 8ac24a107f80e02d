/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of bankaccounts: bank accounts. Basis in the API's documents: inferred. */
export interface BankaccountsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly name: string | null
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

/** Filters of lists of bankaccounts. */
export interface BankaccountsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface BankaccountsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: BankaccountsRecord
  readonly create: never
  readonly update: never
  readonly filters: BankaccountsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "bankaccounts.created" | "bankaccounts.updated" | "bankaccounts.cancelled"
}
