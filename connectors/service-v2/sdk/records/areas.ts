/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal } from "../Values.ts"

/** One of areas: areas. Basis in the API's documents: documented. */
export interface AreasRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly name: string | null
  /** stored with 6 decimals, returned with 4. money, 6 decimals */
  readonly applicationfee: Decimal | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of areas. */
export interface AreasCreate {
  /** the key. at most 100 characters */
  readonly name: string
  /** stored with 6 decimals, returned with 4. money, 6 decimals */
  readonly applicationfee?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of areas. */
export interface AreasUpdate {
  /** the key. at most 100 characters */
  readonly name?: string | null | undefined
  /** stored with 6 decimals, returned with 4. money, 6 decimals */
  readonly applicationfee?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of areas. */
export interface AreasFilters extends CommonFilters {
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface AreasShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: AreasRecord
  readonly create: AreasCreate
  readonly update: AreasUpdate
  readonly filters: AreasFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "areas.created" | "areas.updated" | "areas.cancelled"
}
