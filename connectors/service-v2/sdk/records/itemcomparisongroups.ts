/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of itemcomparisongroups: groups of items that are compared. Basis in the API's documents: documented. */
export interface ItemcomparisongroupsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
  readonly hidden: boolean | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of itemcomparisongroups. */
export interface ItemcomparisongroupsCreate {
  /** at most 255 characters */
  readonly name?: string | null | undefined
  readonly hidden?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of itemcomparisongroups. */
export interface ItemcomparisongroupsUpdate {
  /** at most 255 characters */
  readonly name?: string | null | undefined
  readonly hidden?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of itemcomparisongroups. */
export interface ItemcomparisongroupsFilters extends CommonFilters {
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface ItemcomparisongroupsShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update"
  readonly record: ItemcomparisongroupsRecord
  readonly create: ItemcomparisongroupsCreate
  readonly update: ItemcomparisongroupsUpdate
  readonly filters: ItemcomparisongroupsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "itemcomparisongroups.created" | "itemcomparisongroups.updated" | "itemcomparisongroups.cancelled"
}
