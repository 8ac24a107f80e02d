/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of items: items sold. Basis in the API's documents: inferred. */
export interface ItemsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly sku: string | null
  readonly description: string | null
  /** unit price. money, 6 decimals */
  readonly price: Decimal | null
  /** sales account by id or name */
  readonly glaccountid: number | null
  /** sales account by id or name */
  readonly glaccount: string | null
  readonly taxable: boolean | null
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

/** The body of a new record of items. */
export interface ItemsCreate {
  /** the key. at most 255 characters */
  readonly sku: string
  /** at most 255 characters */
  readonly description?: string | null | undefined
  /** unit price. money, 6 decimals */
  readonly price?: Decimal | null | undefined
  /** sales account by id or name */
  readonly glaccountid?: number | null | undefined
  /** sales account by id or name. at most 60 characters */
  readonly glaccount?: string | null | undefined
  readonly taxable?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of items. */
export interface ItemsUpdate {
  /** the key. at most 255 characters */
  readonly sku?: string | null | undefined
  /** at most 255 characters */
  readonly description?: string | null | undefined
  /** unit price. money, 6 decimals */
  readonly price?: Decimal | null | undefined
  /** sales account by id or name */
  readonly glaccountid?: number | null | undefined
  /** sales account by id or name. at most 60 characters */
  readonly glaccount?: string | null | undefined
  readonly taxable?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of items. */
export interface ItemsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly sku?: string | undefined
  /** Part of the text, in any case */
  readonly description?: string | undefined
}

export interface ItemsShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel" | "read" | "download"
  readonly record: ItemsRecord
  readonly create: ItemsCreate
  readonly update: ItemsUpdate
  readonly filters: ItemsFilters
  readonly answers: never
  readonly reads: "stock"
  readonly actions: never
  readonly events: "items.created" | "items.updated" | "items.cancelled"
}
