/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of qtyunits: units of quantity and price. Basis in the API's documents: inferred. */
export interface QtyunitsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key */
  readonly unitname: string | null
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

/** Filters of lists of qtyunits. */
export interface QtyunitsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly unitname?: string | undefined
}

export interface QtyunitsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: QtyunitsRecord
  readonly create: never
  readonly update: never
  readonly filters: QtyunitsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "qtyunits.created" | "qtyunits.updated" | "qtyunits.cancelled"
}
