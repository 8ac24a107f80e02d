/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of inventorycounts: physical and cycle count batches with their counted lines. Basis in the API's documents: named. */
export interface InventorycountsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** inventory location by id or locationcode */
  readonly inventorylocationid: number | null
  /** inventory location by id or locationcode */
  readonly inventorylocation: string | null
  readonly countdate: DateText | null
  readonly status: string | null
  /** the counted lines */
  readonly lines: ReadonlyArray<{
    readonly itemid: number | null
    /** quantity found. qty, 6 decimals */
    readonly counted: Decimal | null
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

interface InventorycountsCreateFields {
  /** inventory location by id or locationcode */
  readonly inventorylocationid?: number | null | undefined
  /** inventory location by id or locationcode. at most 20 characters */
  readonly inventorylocation?: string | null | undefined
  /** default today */
  readonly countdate?: DateText | null | undefined
  /** at most 20 characters */
  readonly status?: string | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  /** the counted lines */
  readonly lines?:
    | ReadonlyArray<{
        readonly itemid: number
        /** quantity found. qty, 6 decimals */
        readonly counted: Decimal
      }>
    | null
    | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of inventorycounts. A required reference needs one of its halves. */
export type InventorycountsCreate = InventorycountsCreateFields &
  ({ readonly inventorylocationid: number } | { readonly inventorylocation: string })

/** Filters of lists of inventorycounts. */
export interface InventorycountsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly inventorylocationid?: number | undefined
  readonly status?: string | undefined
}

export interface InventorycountsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned"
  readonly record: InventorycountsRecord
  readonly create: InventorycountsCreate
  readonly update: never
  readonly filters: InventorycountsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "inventorycounts.created" | "inventorycounts.updated" | "inventorycounts.cancelled"
}
