/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Timestamp } from "../Values.ts"

/** One of customfields: definitions of the install's custom fields. Basis in the API's documents: named. */
export interface CustomfieldsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
  /** accepted values, separated by commas; empty accepts any */
  readonly acceptedvalues: string | null
  /** path of the owning resource */
  readonly resource: string | null
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

/** Filters of lists of customfields. */
export interface CustomfieldsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly resource?: string | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface CustomfieldsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: CustomfieldsRecord
  readonly create: never
  readonly update: never
  readonly filters: CustomfieldsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "customfields.created" | "customfields.updated" | "customfields.cancelled"
}
