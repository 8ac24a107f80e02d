/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of gltransactions: raw journal entries, one record per journal set. Basis in the API's documents: inferred. */
export interface GltransactionsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** accounting date it posts under */
  readonly transactiondate: DateText | null
  readonly description: string | null
  /** ledger voucher of the set. Read-only */
  readonly voucherid: number | null
  /** at least two lines whose amounts sum to zero */
  readonly lines: ReadonlyArray<{
    /** ledger account by id or name */
    readonly glaccountid: number | null
    /** ledger account by id or name */
    readonly glaccount: string | null
    /** signed. money, 4 decimals */
    readonly amount: Decimal | null
    readonly description: string | null
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

/** The body of a new record of gltransactions. */
export interface GltransactionsCreate {
  /** default today */
  readonly transactiondate?: DateText | null | undefined
  /** at most 255 characters */
  readonly description?: string | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  /** at least two lines whose amounts sum to zero */
  readonly lines?:
    | ReadonlyArray<{
        /** ledger account by id or name */
        readonly glaccountid: number
        /** ledger account by id or name. at most 60 characters */
        readonly glaccount?: string | null | undefined
        /** signed. money, 4 decimals */
        readonly amount: Decimal
        /** at most 255 characters */
        readonly description?: string | null | undefined
      }>
    | null
    | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of gltransactions. */
export interface GltransactionsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly voucherid?: number | undefined
  readonly transactiondate?: string | undefined
}

export interface GltransactionsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned"
  readonly record: GltransactionsRecord
  readonly create: GltransactionsCreate
  readonly update: never
  readonly filters: GltransactionsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "gltransactions.created" | "gltransactions.updated" | "gltransactions.cancelled"
}
