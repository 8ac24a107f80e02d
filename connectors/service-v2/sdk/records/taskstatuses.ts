/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues } from "../Values.ts"

/** One of taskstatuses: CRM task statuses. Basis in the API's documents: documented. */
export interface TaskstatusesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key, case-insensitive */
  readonly name: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of taskstatuses. */
export interface TaskstatusesCreate {
  /** the key, case-insensitive. at most 100 characters */
  readonly name: string
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of taskstatuses. */
export interface TaskstatusesUpdate {
  /** the key, case-insensitive. at most 100 characters */
  readonly name?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of taskstatuses. */
export interface TaskstatusesFilters extends CommonFilters {
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface TaskstatusesShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update"
  readonly record: TaskstatusesRecord
  readonly create: TaskstatusesCreate
  readonly update: TaskstatusesUpdate
  readonly filters: TaskstatusesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "taskstatuses.created" | "taskstatuses.updated" | "taskstatuses.cancelled"
}
