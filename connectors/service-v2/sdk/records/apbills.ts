/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of apbills: vendor bills; children: apbilllines. Basis in the API's documents: inferred. */
export interface ApbillsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** vendor by id or vendorcode */
  readonly vendorid: number | null
  /** vendor by id or vendorcode */
  readonly vendor: string | null
  /** accounting date it posts under */
  readonly billdate: DateText | null
  /** money, 4 decimals */
  readonly billtotal: Decimal | null
  /** sum of the lines. money, 4 decimals. Read-only */
  readonly distributed: Decimal | null
  /** billtotal minus distributed. money, 4 decimals. Read-only */
  readonly undistributed: Decimal | null
  /** ledger voucher; empty while the bill is unposted. Read-only */
  readonly voucherid: number | null
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

interface ApbillsCreateFields {
  /** vendor by id or vendorcode */
  readonly vendorid?: number | null | undefined
  /** vendor by id or vendorcode. at most 30 characters */
  readonly vendor?: string | null | undefined
  /** accounting date it posts under */
  readonly billdate?: DateText | null | undefined
  /** money, 4 decimals */
  readonly billtotal: Decimal
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of apbills. A required reference needs one of its halves. */
export type ApbillsCreate = ApbillsCreateFields & ({ readonly vendorid: number } | { readonly vendor: string })

/** Filters of lists of apbills. */
export interface ApbillsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly vendorid?: number | undefined
}

export interface ApbillsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "perform"
  readonly record: ApbillsRecord
  readonly create: ApbillsCreate
  readonly update: never
  readonly filters: ApbillsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: "post"
  readonly events: "apbills.created" | "apbills.updated" | "apbills.cancelled" | "apbills.posted"
}
