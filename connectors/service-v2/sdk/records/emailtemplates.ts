/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues } from "../Values.ts"

/** One of emailtemplates: email templates. Basis in the API's documents: documented. */
export interface EmailtemplatesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** the key, case-insensitive */
  readonly action: string | null
  readonly name: string | null
  readonly subject: string | null
  readonly body: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of emailtemplates. */
export interface EmailtemplatesCreate {
  /** the key, case-insensitive. at most 20 characters */
  readonly action: string
  /** at most 200 characters */
  readonly name?: string | null | undefined
  /** at most 255 characters */
  readonly subject?: string | null | undefined
  readonly body?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of emailtemplates. */
export interface EmailtemplatesUpdate {
  /** the key, case-insensitive. at most 20 characters */
  readonly action?: string | null | undefined
  /** at most 200 characters */
  readonly name?: string | null | undefined
  /** at most 255 characters */
  readonly subject?: string | null | undefined
  readonly body?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of emailtemplates. */
export interface EmailtemplatesFilters extends CommonFilters {
  /** Part of the text, in any case */
  readonly name?: string | undefined
  /** Part of the text, in any case */
  readonly action?: string | undefined
}

export interface EmailtemplatesShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update"
  readonly record: EmailtemplatesRecord
  readonly create: EmailtemplatesCreate
  readonly update: EmailtemplatesUpdate
  readonly filters: EmailtemplatesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "emailtemplates.created" | "emailtemplates.updated" | "emailtemplates.cancelled"
}
