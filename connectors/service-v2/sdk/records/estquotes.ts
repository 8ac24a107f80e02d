/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of estquotes: quotes from the estimating module. Basis in the API's documents: inferred. */
export interface EstquotesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** customer by id or customercode */
  readonly customerid: number | null
  /** customer by id or customercode */
  readonly customer: string | null
  readonly quotedate: DateText | null
  /** money, 4 decimals */
  readonly total: Decimal | null
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

interface EstquotesCreateFields {
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  readonly quotedate?: DateText | null | undefined
  /** money, 4 decimals */
  readonly total?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of estquotes. A required reference needs one of its halves. */
export type EstquotesCreate = EstquotesCreateFields & ({ readonly customerid: number } | { readonly customer: string })

/** Changes of a record of estquotes. */
export interface EstquotesUpdate {
  /** customer by id or customercode */
  readonly customerid?: number | null | undefined
  /** customer by id or customercode. at most 30 characters */
  readonly customer?: string | null | undefined
  readonly quotedate?: DateText | null | undefined
  /** money, 4 decimals */
  readonly total?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of estquotes. */
export interface EstquotesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly customerid?: number | undefined
}

export interface EstquotesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: EstquotesRecord
  readonly create: EstquotesCreate
  readonly update: EstquotesUpdate
  readonly filters: EstquotesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "estquotes.created" | "estquotes.updated" | "estquotes.cancelled"
}
