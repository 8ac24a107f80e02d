/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of teamprojectmilestones: milestones of projects. Basis in the API's documents: inferred. */
export interface TeamprojectmilestonesRecord {
  /** the record's number. Read-only */
  readonly id: number
  readonly title: string | null
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

/** The body of a new record of teamprojectmilestones. */
export interface TeamprojectmilestonesCreate {
  /** at most 255 characters */
  readonly title?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of teamprojectmilestones. */
export interface TeamprojectmilestonesUpdate {
  /** at most 255 characters */
  readonly title?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojectmilestones. */
export interface TeamprojectmilestonesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly title?: string | undefined
}

export interface TeamprojectmilestonesShape {
  readonly operations: "list" | "create" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: TeamprojectmilestonesRecord
  readonly create: TeamprojectmilestonesCreate
  readonly update: TeamprojectmilestonesUpdate
  readonly filters: TeamprojectmilestonesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "teamprojectmilestones.created" | "teamprojectmilestones.updated" | "teamprojectmilestones.cancelled"
}
