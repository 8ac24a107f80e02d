/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of taxclasses: tax classes. Basis in the API's documents: inferred. */
export interface TaxclassesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
  /** number, 6 decimals */
  readonly rate: Decimal | null
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

/** The body of a new record of taxclasses. */
export interface TaxclassesCreate {
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** number, 6 decimals */
  readonly rate?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of taxclasses. */
export interface TaxclassesUpdate {
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** number, 6 decimals */
  readonly rate?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of taxclasses. */
export interface TaxclassesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface TaxclassesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: TaxclassesRecord
  readonly create: TaxclassesCreate
  readonly update: TaxclassesUpdate
  readonly filters: TaxclassesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "taxclasses.created" | "taxclasses.updated" | "taxclasses.cancelled"
}
