/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of stages: stages that documents pass through. Basis in the API's documents: documented. */
export interface StagesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly stagetypeid: number | null
  readonly name: string | null
  readonly code: string | null
  readonly description: string | null
  /** action code that advances a document into the stage */
  readonly autotrigger: string | null
  /** creation time. Read-only */
  readonly entrydate: Timestamp | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  readonly sortorder: number | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of stages. */
export interface StagesCreate {
  readonly stagetypeid?: number | null | undefined
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** at most 15 characters */
  readonly code?: string | null | undefined
  readonly description?: string | null | undefined
  /** action code that advances a document into the stage. at most 100 characters */
  readonly autotrigger?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  readonly sortorder?: number | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of stages. */
export interface StagesUpdate {
  readonly stagetypeid?: number | null | undefined
  /** at most 100 characters */
  readonly name?: string | null | undefined
  /** at most 15 characters */
  readonly code?: string | null | undefined
  readonly description?: string | null | undefined
  /** action code that advances a document into the stage. at most 100 characters */
  readonly autotrigger?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  readonly sortorder?: number | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of stages. */
export interface StagesFilters extends CommonFilters {
  readonly name?: string | undefined
  readonly code?: string | undefined
  /** Part of the text, in any case */
  readonly description?: string | undefined
}

export interface StagesShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: StagesRecord
  readonly create: StagesCreate
  readonly update: StagesUpdate
  readonly filters: StagesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "stages.created" | "stages.updated" | "stages.cancelled"
}
