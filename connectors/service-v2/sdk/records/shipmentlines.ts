/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Decimal, Timestamp } from "../Values.ts"

/** One of shipmentlines: what was shipped per order line. Basis in the API's documents: named. */
export interface ShipmentlinesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly shipmentid: number | null
  readonly orderlineid: number | null
  /** qty, 6 decimals */
  readonly quantity: Decimal | null
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

/** Filters of lists of shipmentlines. */
export interface ShipmentlinesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly shipmentid?: number | undefined
  readonly orderlineid?: number | undefined
}

export interface ShipmentlinesShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: ShipmentlinesRecord
  readonly create: never
  readonly update: never
  readonly filters: ShipmentlinesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "shipmentlines.created" | "shipmentlines.updated" | "shipmentlines.cancelled"
}
