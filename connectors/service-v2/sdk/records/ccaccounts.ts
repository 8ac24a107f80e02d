/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of ccaccounts: card accounts. Basis in the API's documents: documented. */
export interface CcaccountsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
  /** card processor by id or processor name */
  readonly ccprocessorid: number | null
  /** card processor by id or processor name */
  readonly ccprocessor: string | null
  /** bank account by id or name */
  readonly checkacctid: number | null
  /** bank account by id or name */
  readonly checkacct: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of ccaccounts. */
export interface CcaccountsCreate {
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** card processor by id or processor name */
  readonly ccprocessorid?: number | null | undefined
  /** card processor by id or processor name. at most 100 characters */
  readonly ccprocessor?: string | null | undefined
  /** bank account by id or name */
  readonly checkacctid?: number | null | undefined
  /** bank account by id or name. at most 30 characters */
  readonly checkacct?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of ccaccounts. */
export interface CcaccountsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface CcaccountsShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned"
  readonly record: CcaccountsRecord
  readonly create: CcaccountsCreate
  readonly update: never
  readonly filters: CcaccountsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "ccaccounts.created" | "ccaccounts.updated" | "ccaccounts.cancelled"
}
