/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of producttypetaxes: taxes on product types. Basis in the API's documents: documented. */
export interface ProducttypetaxesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
  /** number, 6 decimals */
  readonly taxrate: Decimal | null
  /** ledger account by id or name */
  readonly glaccountid: number | null
  /** ledger account by id or name */
  readonly glaccount: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** creation time. Read-only */
  readonly entrydate: Timestamp | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  readonly states: string | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of producttypetaxes. */
export interface ProducttypetaxesCreate {
  /** at most 255 characters */
  readonly name?: string | null | undefined
  /** number, 6 decimals */
  readonly taxrate?: Decimal | null | undefined
  /** ledger account by id or name */
  readonly glaccountid?: number | null | undefined
  /** ledger account by id or name. at most 20 characters */
  readonly glaccount?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  readonly states?: string | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of producttypetaxes. */
export interface ProducttypetaxesUpdate {
  /** at most 255 characters */
  readonly name?: string | null | undefined
  /** number, 6 decimals */
  readonly taxrate?: Decimal | null | undefined
  /** ledger account by id or name */
  readonly glaccountid?: number | null | undefined
  /** ledger account by id or name. at most 20 characters */
  readonly glaccount?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  readonly states?: string | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of producttypetaxes. */
export interface ProducttypetaxesFilters extends CommonFilters {
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface ProducttypetaxesShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: ProducttypetaxesRecord
  readonly create: ProducttypetaxesCreate
  readonly update: ProducttypetaxesUpdate
  readonly filters: ProducttypetaxesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "producttypetaxes.created" | "producttypetaxes.updated" | "producttypetaxes.cancelled"
}
