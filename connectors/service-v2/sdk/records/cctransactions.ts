/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Decimal, Timestamp } from "../Values.ts"

/** One of cctransactions: card transactions. Basis in the API's documents: inferred. */
export interface CctransactionsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** money, 4 decimals */
  readonly amount: Decimal | null
  /** last four digits of the card */
  readonly last4: string | null
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

/** Filters of lists of cctransactions. */
export interface CctransactionsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly last4?: string | undefined
}

export interface CctransactionsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: CctransactionsRecord
  readonly create: never
  readonly update: never
  readonly filters: CctransactionsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "cctransactions.created" | "cctransactions.updated" | "cctransactions.cancelled"
}
