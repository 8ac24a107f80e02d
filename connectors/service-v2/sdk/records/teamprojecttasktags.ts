/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of teamprojecttasktags: tags on project tasks. Basis in the API's documents: documented. */
export interface TeamprojecttasktagsRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly teamprojecttaskid: number | null
  /** tag by id or name */
  readonly teamprojecttagid: number | null
  /** tag by id or name */
  readonly teamprojecttag: string | null
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

/** The body of a new record of teamprojecttasktags. */
export interface TeamprojecttasktagsCreate {
  readonly teamprojecttaskid?: number | null | undefined
  /** tag by id or name */
  readonly teamprojecttagid?: number | null | undefined
  /** tag by id or name. at most 100 characters */
  readonly teamprojecttag?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojecttasktags. */
export interface TeamprojecttasktagsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly teamprojecttaskid?: number | undefined
}

export interface TeamprojecttasktagsShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned"
  readonly record: TeamprojecttasktagsRecord
  readonly create: TeamprojecttasktagsCreate
  readonly update: never
  readonly filters: TeamprojecttasktagsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "teamprojecttasktags.created" | "teamprojecttasktags.updated" | "teamprojecttasktags.cancelled"
}
