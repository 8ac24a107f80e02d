/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal } from "../Values.ts"

/** One of carrierservices: services of a carrier. Basis in the API's documents: documented. */
export interface CarrierservicesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** carrier by id or name */
  readonly carrierid: number | null
  /** carrier by id or name */
  readonly carrier: string | null
  readonly description: string | null
  readonly abbreviation: string | null
  readonly sortorder: number | null
  /** 1 hides from portal */
  readonly not_on_b2b: number | null
  /** 1 hides from quote entry */
  readonly onquote: number | null
  /** money, 5 decimals */
  readonly box1_charge: Decimal | null
  /** money, 5 decimals */
  readonly box_addl: Decimal | null
  /** 1 requires customer shipper number */
  readonly require_shippernum: number | null
  /** 1 prints order value on ticket */
  readonly showvalue: number | null
  /** carrier's service code */
  readonly code: string | null
  /** money, 4 decimals */
  readonly methodmarkupflat: Decimal | null
  /** Y when delivers Saturday */
  readonly saturdaydelivery: string | null
  readonly allowonpointofsaleorders: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of carrierservices. */
export interface CarrierservicesCreate {
  /** carrier by id or name */
  readonly carrierid?: number | null | undefined
  /** carrier by id or name. at most 100 characters */
  readonly carrier?: string | null | undefined
  /** at most 50 characters */
  readonly description?: string | null | undefined
  /** at most 50 characters */
  readonly abbreviation?: string | null | undefined
  readonly sortorder?: number | null | undefined
  /** 1 hides from portal */
  readonly not_on_b2b?: number | null | undefined
  /** 1 hides from quote entry */
  readonly onquote?: number | null | undefined
  /** money, 5 decimals */
  readonly box1_charge?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly box_addl?: Decimal | null | undefined
  /** 1 requires customer shipper number */
  readonly require_shippernum?: number | null | undefined
  /** 1 prints order value on ticket */
  readonly showvalue?: number | null | undefined
  /** carrier's service code. at most 10 characters */
  readonly code?: string | null | undefined
  /** money, 4 decimals */
  readonly methodmarkupflat?: Decimal | null | undefined
  /** Y when delivers Saturday. at most 1 characters */
  readonly saturdaydelivery?: string | null | undefined
  readonly allowonpointofsaleorders?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of carrierservices. */
export interface CarrierservicesFilters extends CommonFilters {
  readonly code?: string | undefined
  /** Part of the text, in any case */
  readonly description?: string | undefined
}

export interface CarrierservicesShape {
  readonly operations: "list" | "create" | "batch"
  readonly record: CarrierservicesRecord
  readonly create: CarrierservicesCreate
  readonly update: never
  readonly filters: CarrierservicesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "carrierservices.created" | "carrierservices.updated" | "carrierservices.cancelled"
}
