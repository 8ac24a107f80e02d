/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal } from "../Values.ts"

/** One of apbilllines: coding lines of vendor bills. Basis in the API's documents: documented. */
export interface ApbilllinesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly apbillid: number | null
  /** money, 4 decimals */
  readonly amount: Decimal | null
  /** ledger account by id or name */
  readonly glaccountid: number | null
  /** ledger account by id or name */
  readonly glaccount: string | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly invreceiveid: number | null
  readonly jobid: number | null
  /** category code */
  readonly glcategoryid: number | null
  /** category code */
  readonly glcategory: string | null
  /** cost code by id or code */
  readonly costcodeid: number | null
  /** cost code by id or code */
  readonly costcode: string | null
  readonly description: string | null
  /** 1 when withheld retainage */
  readonly isretainer: number | null
  /** number, 10 decimals */
  readonly curratenumber: Decimal | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

interface ApbilllinesCreateFields {
  /** must be an UNPOSTED bill */
  readonly apbillid: number
  /** account by id or exact name */
  readonly glaccountid?: number | null | undefined
  /** account by id or exact name. at most 60 characters */
  readonly glaccount?: string | null | undefined
  /** cannot take the distribution past the bill total. money, 4 decimals */
  readonly amount: Decimal
  /** job to cost to */
  readonly jobid?: number | null | undefined
  readonly costcodeid?: number | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** The body of a new record of apbilllines. A required reference needs one of its halves. */
export type ApbilllinesCreate = ApbilllinesCreateFields &
  ({ readonly glaccountid: number } | { readonly glaccount: string })

/** Filters of lists of apbilllines. */
export interface ApbilllinesFilters extends CommonFilters {
  readonly jobid?: number | undefined
  /** Part of the text, in any case */
  readonly description?: string | undefined
}

export interface ApbilllinesShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned"
  readonly record: ApbilllinesRecord
  readonly create: ApbilllinesCreate
  readonly update: never
  readonly filters: ApbilllinesFilters
  readonly answers: "billtotal" | "distributed" | "undistributed"
  readonly reads: never
  readonly actions: never
  readonly events: "apbilllines.created" | "apbilllines.updated" | "apbilllines.cancelled"
}
