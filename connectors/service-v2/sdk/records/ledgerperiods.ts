/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, DateText, Timestamp } from "../Values.ts"

/** One of ledgerperiods: ledger periods; nothing can be posted into a closed one. Basis in the API's documents: inferred. */
export interface LedgerperiodsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly startdate: DateText | null
  readonly enddate: DateText | null
  readonly closed: boolean | null
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

/** Filters of lists of ledgerperiods. */
export interface LedgerperiodsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly closed?: boolean | undefined
}

export interface LedgerperiodsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: LedgerperiodsRecord
  readonly create: never
  readonly update: never
  readonly filters: LedgerperiodsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "ledgerperiods.created" | "ledgerperiods.updated" | "ledgerperiods.cancelled"
}
