/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Timestamp } from "../Values.ts"

/** One of teamprojecttasks: tasks of a project. Basis in the API's documents: inferred. */
export interface TeamprojecttasksRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** project by id or code */
  readonly teamprojectid: number | null
  /** project by id or code */
  readonly teamproject: string | null
  readonly title: string | null
  /** status by id or name */
  readonly statusid: number | null
  /** status by id or name */
  readonly status: string | null
  /** user by id or login name */
  readonly assignuserid: number | null
  /** user by id or login name */
  readonly assignuser: string | null
  readonly duedate: DateText | null
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

/** The body of a new record of teamprojecttasks. */
export interface TeamprojecttasksCreate {
  /** project by id or code */
  readonly teamprojectid?: number | null | undefined
  /** project by id or code. at most 30 characters */
  readonly teamproject?: string | null | undefined
  /** at most 255 characters */
  readonly title?: string | null | undefined
  /** status by id or name */
  readonly statusid?: number | null | undefined
  /** status by id or name. at most 100 characters */
  readonly status?: string | null | undefined
  /** user by id or login name */
  readonly assignuserid?: number | null | undefined
  /** user by id or login name. at most 50 characters */
  readonly assignuser?: string | null | undefined
  readonly duedate?: DateText | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of teamprojecttasks. */
export interface TeamprojecttasksUpdate {
  /** project by id or code */
  readonly teamprojectid?: number | null | undefined
  /** project by id or code. at most 30 characters */
  readonly teamproject?: string | null | undefined
  /** at most 255 characters */
  readonly title?: string | null | undefined
  /** status by id or name */
  readonly statusid?: number | null | undefined
  /** status by id or name. at most 100 characters */
  readonly status?: string | null | undefined
  /** user by id or login name */
  readonly assignuserid?: number | null | undefined
  /** user by id or login name. at most 50 characters */
  readonly assignuser?: string | null | undefined
  readonly duedate?: DateText | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojecttasks. */
export interface TeamprojecttasksFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly teamprojectid?: number | undefined
  readonly statusid?: number | undefined
  readonly assignuserid?: number | undefined
  /** Part of the text, in any case */
  readonly title?: string | undefined
}

export interface TeamprojecttasksShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: TeamprojecttasksRecord
  readonly create: TeamprojecttasksCreate
  readonly update: TeamprojecttasksUpdate
  readonly filters: TeamprojecttasksFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "teamprojecttasks.created" | "teamprojecttasks.updated" | "teamprojecttasks.cancelled"
}
