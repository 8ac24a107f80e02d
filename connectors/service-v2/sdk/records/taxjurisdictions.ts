/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, Decimal, Timestamp } from "../Values.ts"

/** One of taxjurisdictions: tax authorities with their rates. Basis in the API's documents: inferred. */
export interface TaxjurisdictionsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly authority: string | null
  /** number, 6 decimals */
  readonly rate: Decimal | null
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

/** Filters of lists of taxjurisdictions. */
export interface TaxjurisdictionsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly authority?: string | undefined
}

export interface TaxjurisdictionsShape {
  readonly operations: "list" | "get" | "getVersioned"
  readonly record: TaxjurisdictionsRecord
  readonly create: never
  readonly update: never
  readonly filters: TaxjurisdictionsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "taxjurisdictions.created" | "taxjurisdictions.updated" | "taxjurisdictions.cancelled"
}
