/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Timestamp } from "../Values.ts"

/** One of teamprojectreminders: reminders of project tasks. Basis in the API's documents: documented. */
export interface TeamprojectremindersRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** user by id or login name */
  readonly genuserid: number | null
  /** user by id or login name */
  readonly genuser: string | null
  readonly teamprojecttaskid: number | null
  readonly reminderdate: DateText | null
  readonly note: string | null
  /** false pending, true done */
  readonly status: boolean | null
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

/** The body of a new record of teamprojectreminders. */
export interface TeamprojectremindersCreate {
  /** user by id or login name */
  readonly genuserid?: number | null | undefined
  /** user by id or login name. at most 50 characters */
  readonly genuser?: string | null | undefined
  readonly teamprojecttaskid?: number | null | undefined
  readonly reminderdate?: DateText | null | undefined
  /** at most 255 characters */
  readonly note?: string | null | undefined
  /** false pending, true done */
  readonly status?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of teamprojectreminders. */
export interface TeamprojectremindersUpdate {
  /** user by id or login name */
  readonly genuserid?: number | null | undefined
  /** user by id or login name. at most 50 characters */
  readonly genuser?: string | null | undefined
  readonly teamprojecttaskid?: number | null | undefined
  readonly reminderdate?: DateText | null | undefined
  /** at most 255 characters */
  readonly note?: string | null | undefined
  /** false pending, true done */
  readonly status?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojectreminders. */
export interface TeamprojectremindersFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly status?: boolean | undefined
  readonly genuserid?: number | undefined
  readonly teamprojecttaskid?: number | undefined
}

export interface TeamprojectremindersShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update"
  readonly record: TeamprojectremindersRecord
  readonly create: TeamprojectremindersCreate
  readonly update: TeamprojectremindersUpdate
  readonly filters: TeamprojectremindersFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "teamprojectreminders.created" | "teamprojectreminders.updated" | "teamprojectreminders.cancelled"
}
