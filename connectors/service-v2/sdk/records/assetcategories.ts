/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of assetcategories: categories of fixed assets. Basis in the API's documents: documented. */
export interface AssetcategoriesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
  /** creation time. Read-only */
  readonly entrydate: Timestamp | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** ledger account by id or name */
  readonly accumulateddepreciationglaccountid: number | null
  /** ledger account by id or name */
  readonly accumulateddepreciationglaccount: string | null
  /** ledger account by id or name */
  readonly assetglaccountid: number | null
  /** ledger account by id or name */
  readonly assetglaccount: string | null
  /** ledger account by id or name */
  readonly expenseglaccountid: number | null
  /** ledger account by id or name */
  readonly expenseglaccount: string | null
  /** ledger account by id or name */
  readonly expensedepreciationglaccountid: number | null
  /** ledger account by id or name */
  readonly expensedepreciationglaccount: string | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of assetcategories. */
export interface AssetcategoriesCreate {
  /** at most 255 characters */
  readonly name?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** ledger account by id or name */
  readonly accumulateddepreciationglaccountid?: number | null | undefined
  /** ledger account by id or name. at most 20 characters */
  readonly accumulateddepreciationglaccount?: string | null | undefined
  /** ledger account by id or name */
  readonly assetglaccountid?: number | null | undefined
  /** ledger account by id or name. at most 20 characters */
  readonly assetglaccount?: string | null | undefined
  /** ledger account by id or name */
  readonly expenseglaccountid?: number | null | undefined
  /** ledger account by id or name. at most 20 characters */
  readonly expenseglaccount?: string | null | undefined
  /** ledger account by id or name */
  readonly expensedepreciationglaccountid?: number | null | undefined
  /** ledger account by id or name. at most 20 characters */
  readonly expensedepreciationglaccount?: string | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of assetcategories. */
export interface AssetcategoriesFilters extends CommonFilters {
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface AssetcategoriesShape {
  readonly operations: "list" | "create" | "batch"
  readonly record: AssetcategoriesRecord
  readonly create: AssetcategoriesCreate
  readonly update: never
  readonly filters: AssetcategoriesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "assetcategories.created" | "assetcategories.updated" | "assetcategories.cancelled"
}
