/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of contactnames: named contacts on a customer or ship-to. Basis in the API's documents: named. */
export interface ContactnamesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** customer by id or customercode */
  readonly customerid: number | null
  /** customer by id or customercode */
  readonly customer: string | null
  readonly shiptoid: number | null
  readonly firstname: string | null
  readonly lastname: string | null
  readonly email: string | null
  readonly phone: string | null
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

interface ContactnamesCreateFields {
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  readonly shiptoid?: number | null | undefined
  /** at most 50 characters */
  readonly firstname?: string | null | undefined
  /** at most 50 characters */
  readonly lastname?: string | null | undefined
  /** at most 50 characters */
  readonly email?: string | null | undefined
  /** at most 20 characters */
  readonly phone?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of contactnames. A required reference needs one of its halves. */
export type ContactnamesCreate = ContactnamesCreateFields &
  ({ readonly customerid: number } | { readonly customer: string })

/** Changes of a record of contactnames. */
export interface ContactnamesUpdate {
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  readonly shiptoid?: number | null | undefined
  /** at most 50 characters */
  readonly firstname?: string | null | undefined
  /** at most 50 characters */
  readonly lastname?: string | null | undefined
  /** at most 50 characters */
  readonly email?: string | null | undefined
  /** at most 20 characters */
  readonly phone?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of contactnames. */
export interface ContactnamesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly customerid?: number | undefined
  readonly shiptoid?: number | undefined
  /** Part of the text, in any case */
  readonly lastname?: string | undefined
}

export interface ContactnamesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: ContactnamesRecord
  readonly create: ContactnamesCreate
  readonly update: ContactnamesUpdate
  readonly filters: ContactnamesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "contactnames.created" | "contactnames.updated" | "contactnames.cancelled"
}
