/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of b2busers: customer-portal logins. Basis in the API's documents: named. */
export interface B2busersRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** customer by id or customercode */
  readonly customerid: number | null
  /** customer by id or customercode */
  readonly customer: string | null
  /** the key */
  readonly login: string | null
  readonly email: string | null
  readonly enabled: boolean | null
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

interface B2busersCreateFields {
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  /** the key. at most 50 characters */
  readonly login: string
  /** at most 50 characters */
  readonly email?: string | null | undefined
  readonly enabled?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of b2busers. A required reference needs one of its halves. */
export type B2busersCreate = B2busersCreateFields & ({ readonly customerid: number } | { readonly customer: string })

/** Changes of a record of b2busers. */
export interface B2busersUpdate {
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  /** the key. at most 50 characters */
  readonly login?: string | null | undefined
  /** at most 50 characters */
  readonly email?: string | null | undefined
  readonly enabled?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of b2busers. */
export interface B2busersFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly customerid?: number | undefined
  readonly login?: string | undefined
}

export interface B2busersShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: B2busersRecord
  readonly create: B2busersCreate
  readonly update: B2busersUpdate
  readonly filters: B2busersFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "b2busers.created" | "b2busers.updated" | "b2busers.cancelled"
}
