/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Timestamp } from "../Values.ts"

/** One of teamprojectautomations: automations of a project: what happens when. Basis in the API's documents: documented. */
export interface TeamprojectautomationsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** project by id or code */
  readonly teamprojectid: number | null
  /** project by id or code */
  readonly teamproject: string | null
  readonly name: string | null
  /** 0: status changed; 1: task assigned; 2: due date reached; 3: due date approaching; 4: task created; 5: milestone completed; 6: priority changed */
  readonly triggertype: number | null
  readonly triggervalue: string | null
  /** 0: change status; 1: reassign task; 2: set priority; 3: add tag; 4: send notification; 5: add comment */
  readonly actiontype: number | null
  readonly actionvalue: string | null
  readonly enabled: boolean | null
  readonly sortorder: number | null
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

/** The body of a new record of teamprojectautomations. */
export interface TeamprojectautomationsCreate {
  /** project by id or code */
  readonly teamprojectid?: number | null | undefined
  /** project by id or code. at most 30 characters */
  readonly teamproject?: string | null | undefined
  /** at most 200 characters */
  readonly name?: string | null | undefined
  /** 0: status changed; 1: task assigned; 2: due date reached; 3: due date approaching; 4: task created; 5: milestone completed; 6: priority changed */
  readonly triggertype?: 0 | 1 | 2 | 3 | 4 | 5 | 6 | null | undefined
  readonly triggervalue?: string | null | undefined
  /** 0: change status; 1: reassign task; 2: set priority; 3: add tag; 4: send notification; 5: add comment */
  readonly actiontype?: 0 | 1 | 2 | 3 | 4 | 5 | null | undefined
  readonly actionvalue?: string | null | undefined
  readonly enabled?: boolean | null | undefined
  readonly sortorder?: number | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojectautomations. */
export interface TeamprojectautomationsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
  readonly teamprojectid?: number | undefined
}

export interface TeamprojectautomationsShape {
  readonly operations: "list" | "create" | "batch"
  readonly record: TeamprojectautomationsRecord
  readonly create: TeamprojectautomationsCreate
  readonly update: never
  readonly filters: TeamprojectautomationsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events:
    | "teamprojectautomations.created"
    | "teamprojectautomations.updated"
    | "teamprojectautomations.cancelled"
}
