/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of taxgroups: tax groups. Basis in the API's documents: inferred. */
export interface TaxgroupsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly name: string | null
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

/** The body of a new record of taxgroups. */
export interface TaxgroupsCreate {
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** number, 6 decimals */
  readonly rate?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of taxgroups. */
export interface TaxgroupsUpdate {
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** number, 6 decimals */
  readonly rate?: Decimal | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of taxgroups. */
export interface TaxgroupsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface TaxgroupsShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: TaxgroupsRecord
  readonly create: TaxgroupsCreate
  readonly update: TaxgroupsUpdate
  readonly filters: TaxgroupsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "taxgroups.created" | "taxgroups.updated" | "taxgroups.cancelled"
}
