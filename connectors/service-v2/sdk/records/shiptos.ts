/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of shiptos: delivery addresses on a customer. Basis in the API's documents: named. */
export interface ShiptosRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** customer by id or customercode */
  readonly customerid: number | null
  /** customer by id or customercode */
  readonly customer: string | null
  readonly name: string | null
  readonly address: string | null
  readonly address2: string | null
  readonly city: string | null
  readonly state: string | null
  readonly zip: string | null
  readonly country: string | null
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

interface ShiptosCreateFields {
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** at most 100 characters */
  readonly address?: string | null | undefined
  /** at most 100 characters */
  readonly address2?: string | null | undefined
  /** at most 50 characters */
  readonly city?: string | null | undefined
  /** at most 20 characters */
  readonly state?: string | null | undefined
  /** at most 15 characters */
  readonly zip?: string | null | undefined
  /** at most 20 characters */
  readonly country?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of shiptos. A required reference needs one of its halves. */
export type ShiptosCreate = ShiptosCreateFields & ({ readonly customerid: number } | { readonly customer: string })

/** Changes of a record of shiptos. */
export interface ShiptosUpdate {
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** at most 100 characters */
  readonly address?: string | null | undefined
  /** at most 100 characters */
  readonly address2?: string | null | undefined
  /** at most 50 characters */
  readonly city?: string | null | undefined
  /** at most 20 characters */
  readonly state?: string | null | undefined
  /** at most 15 characters */
  readonly zip?: string | null | undefined
  /** at most 20 characters */
  readonly country?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of shiptos. */
export interface ShiptosFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly customerid?: number | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface ShiptosShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: ShiptosRecord
  readonly create: ShiptosCreate
  readonly update: ShiptosUpdate
  readonly filters: ShiptosFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "shiptos.created" | "shiptos.updated" | "shiptos.cancelled"
}
