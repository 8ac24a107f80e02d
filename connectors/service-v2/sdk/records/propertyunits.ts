/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of propertyunits: units of a building. Basis in the API's documents: inferred. */
export interface PropertyunitsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly buildingid: number | null
  readonly unitnumber: string | null
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

/** The body of a new record of propertyunits. */
export interface PropertyunitsCreate {
  readonly buildingid: number
  /** at most 20 characters */
  readonly unitnumber?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of propertyunits. */
export interface PropertyunitsUpdate {
  readonly buildingid?: number | null | undefined
  /** at most 20 characters */
  readonly unitnumber?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of propertyunits. */
export interface PropertyunitsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly buildingid?: number | undefined
  readonly unitnumber?: string | undefined
}

export interface PropertyunitsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: PropertyunitsRecord
  readonly create: PropertyunitsCreate
  readonly update: PropertyunitsUpdate
  readonly filters: PropertyunitsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "propertyunits.created" | "propertyunits.updated" | "propertyunits.cancelled"
}
