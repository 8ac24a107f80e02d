/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of inventorytransfers: stock moving between companies or locations. Basis in the API's documents: named. */
export interface InventorytransfersRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** company that the stock leaves */
  readonly gencompanyidfrom: number | null
  /** company that the stock enters */
  readonly gencompanyidto: number | null
  /** item by id or sku */
  readonly itemid: number | null
  /** item by id or sku */
  readonly item: string | null
  /** qty, 6 decimals */
  readonly qty: Decimal | null
  readonly transferdate: DateText | null
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

interface InventorytransfersCreateFields {
  /** company that the stock leaves */
  readonly gencompanyidfrom: number
  /** company that the stock enters */
  readonly gencompanyidto: number
  /** item by id or sku */
  readonly itemid?: number | null | undefined
  /** item by id or sku. at most 255 characters */
  readonly item?: string | null | undefined
  /** qty, 6 decimals */
  readonly qty: Decimal
  readonly transferdate?: DateText | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of inventorytransfers. A required reference needs one of its halves. */
export type InventorytransfersCreate = InventorytransfersCreateFields &
  ({ readonly itemid: number } | { readonly item: string })

/** Filters of lists of inventorytransfers. */
export interface InventorytransfersFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly gencompanyidfrom?: number | undefined
  readonly gencompanyidto?: number | undefined
  readonly itemid?: number | undefined
}

export interface InventorytransfersShape {
  readonly operations: "list" | "create" | "get" | "getVersioned"
  readonly record: InventorytransfersRecord
  readonly create: InventorytransfersCreate
  readonly update: never
  readonly filters: InventorytransfersFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "inventorytransfers.created" | "inventorytransfers.updated" | "inventorytransfers.cancelled"
}
