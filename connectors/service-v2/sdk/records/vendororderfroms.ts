/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of vendororderfroms: addresses that a vendor is ordered from. Basis in the API's documents: documented. */
export interface VendororderfromsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** vendor by id or vendorcode */
  readonly vendorid: number | null
  /** vendor by id or vendorcode */
  readonly vendor: string | null
  readonly companyname: string | null
  readonly contactname: string | null
  readonly address: string | null
  readonly address2: string | null
  readonly city: string | null
  readonly state: string | null
  readonly zip: string | null
  readonly country: string | null
  readonly phone: string | null
  readonly fax: string | null
  readonly email: string | null
  readonly mailstop: string | null
  /** creation time. Read-only */
  readonly entrydate: Timestamp | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  /** hash of the address at its last successful verification; mismatch means unverified. Read-only */
  readonly addressverified: string | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of vendororderfroms. */
export interface VendororderfromsCreate {
  /** vendor by id or vendorcode */
  readonly vendorid?: number | null | undefined
  /** vendor by id or vendorcode. at most 30 characters */
  readonly vendor?: string | null | undefined
  /** at most 100 characters */
  readonly companyname?: string | null | undefined
  /** at most 100 characters */
  readonly contactname?: string | null | undefined
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
  /** at most 20 characters */
  readonly phone?: string | null | undefined
  /** at most 20 characters */
  readonly fax?: string | null | undefined
  /** at most 50 characters */
  readonly email?: string | null | undefined
  /** at most 20 characters */
  readonly mailstop?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of vendororderfroms. */
export interface VendororderfromsFilters extends CommonFilters {
  readonly vendorid?: number | undefined
}

export interface VendororderfromsShape {
  readonly operations: "list" | "create" | "batch"
  readonly record: VendororderfromsRecord
  readonly create: VendororderfromsCreate
  readonly update: never
  readonly filters: VendororderfromsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "vendororderfroms.created" | "vendororderfroms.updated" | "vendororderfroms.cancelled"
}
