/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of checkaccounts: bank accounts that payments are deposited to. Basis in the API's documents: inferred. */
export interface CheckaccountsRecord {
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

/** Filters of lists of checkaccounts. */
export interface CheckaccountsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface CheckaccountsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: CheckaccountsRecord
  readonly create: never
  readonly update: never
  readonly filters: CheckaccountsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "checkaccounts.created" | "checkaccounts.updated" | "checkaccounts.cancelled"
}
