/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of fixedassets: fixed assets. Basis in the API's documents: inferred. */
export interface FixedassetsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** category by id or name */
  readonly assetcategoryid: number | null
  /** category by id or name */
  readonly assetcategory: string | null
  readonly name: string | null
  readonly acquiredate: DateText | null
  /** money, 4 decimals */
  readonly cost: Decimal | null
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

/** The body of a new record of fixedassets. */
export interface FixedassetsCreate {
  /** category by id or name */
  readonly assetcategoryid?: number | null | undefined
  /** category by id or name. at most 255 characters */
  readonly assetcategory?: string | null | undefined
  /** at most 100 characters */
  readonly name?: string | null | undefined
  readonly acquiredate?: DateText | null | undefined
  /** money, 4 decimals */
  readonly cost?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of fixedassets. */
export interface FixedassetsUpdate {
  /** category by id or name */
  readonly assetcategoryid?: number | null | undefined
  /** category by id or name. at most 255 characters */
  readonly assetcategory?: string | null | undefined
  /** at most 100 characters */
  readonly name?: string | null | undefined
  readonly acquiredate?: DateText | null | undefined
  /** money, 4 decimals */
  readonly cost?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of fixedassets. */
export interface FixedassetsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly assetcategoryid?: number | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface FixedassetsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: FixedassetsRecord
  readonly create: FixedassetsCreate
  readonly update: FixedassetsUpdate
  readonly filters: FixedassetsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "fixedassets.created" | "fixedassets.updated" | "fixedassets.cancelled"
}
