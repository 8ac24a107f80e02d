/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of teamprojectrecurringtasks: project tasks that a generator makes again and again. Basis in the API's documents: documented. */
export interface TeamprojectrecurringtasksRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** project by id or code */
  readonly teamprojectid: number | null
  /** project by id or code */
  readonly teamproject: string | null
  readonly teamprojectmilestoneid: number | null
  readonly title: string | null
  readonly description: string | null
  /** status by id or name */
  readonly teamprojectstatusid: number | null
  /** status by id or name */
  readonly teamprojectstatus: string | null
  /** 0: low; 1: normal; 2: high; 3: critical */
  readonly priority: number | null
  /** money, 6 decimals */
  readonly estimatedhours: Decimal | null
  /** user by id or login name */
  readonly assignuserid: number | null
  /** user by id or login name */
  readonly assignuser: string | null
  /** 0: daily; 1: weekly; 2: monthly; 3: custom every intervaldays days */
  readonly frequency: number | null
  readonly intervaldays: number | null
  /** 0 = Sunday */
  readonly dayofweek: number | null
  readonly dayofmonth: number | null
  readonly nextrundate: DateText | null
  /** empty runs indefinitely */
  readonly enddate: DateText | null
  /** maintained by the generator. Read-only */
  readonly lastrundate: DateText | null
  readonly enabled: boolean | null
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

/** The body of a new record of teamprojectrecurringtasks. */
export interface TeamprojectrecurringtasksCreate {
  /** project by id or code */
  readonly teamprojectid?: number | null | undefined
  /** project by id or code. at most 30 characters */
  readonly teamproject?: string | null | undefined
  readonly teamprojectmilestoneid?: number | null | undefined
  /** at most 255 characters */
  readonly title?: string | null | undefined
  readonly description?: string | null | undefined
  /** status by id or name */
  readonly teamprojectstatusid?: number | null | undefined
  /** status by id or name. at most 100 characters */
  readonly teamprojectstatus?: string | null | undefined
  /** 0: low; 1: normal; 2: high; 3: critical */
  readonly priority?: 0 | 1 | 2 | 3 | null | undefined
  /** money, 6 decimals */
  readonly estimatedhours?: Decimal | null | undefined
  /** user by id or login name */
  readonly assignuserid?: number | null | undefined
  /** user by id or login name. at most 50 characters */
  readonly assignuser?: string | null | undefined
  /** 0: daily; 1: weekly; 2: monthly; 3: custom every intervaldays days */
  readonly frequency?: 0 | 1 | 2 | 3 | null | undefined
  readonly intervaldays?: number | null | undefined
  /** 0 = Sunday */
  readonly dayofweek?: number | null | undefined
  readonly dayofmonth?: number | null | undefined
  readonly nextrundate?: DateText | null | undefined
  /** empty runs indefinitely */
  readonly enddate?: DateText | null | undefined
  readonly enabled?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of teamprojectrecurringtasks. */
export interface TeamprojectrecurringtasksUpdate {
  /** project by id or code */
  readonly teamprojectid?: number | null | undefined
  /** project by id or code. at most 30 characters */
  readonly teamproject?: string | null | undefined
  readonly teamprojectmilestoneid?: number | null | undefined
  /** at most 255 characters */
  readonly title?: string | null | undefined
  readonly description?: string | null | undefined
  /** status by id or name */
  readonly teamprojectstatusid?: number | null | undefined
  /** status by id or name. at most 100 characters */
  readonly teamprojectstatus?: string | null | undefined
  /** 0: low; 1: normal; 2: high; 3: critical */
  readonly priority?: 0 | 1 | 2 | 3 | null | undefined
  /** money, 6 decimals */
  readonly estimatedhours?: Decimal | null | undefined
  /** user by id or login name */
  readonly assignuserid?: number | null | undefined
  /** user by id or login name. at most 50 characters */
  readonly assignuser?: string | null | undefined
  /** 0: daily; 1: weekly; 2: monthly; 3: custom every intervaldays days */
  readonly frequency?: 0 | 1 | 2 | 3 | null | undefined
  readonly intervaldays?: number | null | undefined
  /** 0 = Sunday */
  readonly dayofweek?: number | null | undefined
  readonly dayofmonth?: number | null | undefined
  readonly nextrundate?: DateText | null | undefined
  /** empty runs indefinitely */
  readonly enddate?: DateText | null | undefined
  readonly enabled?: boolean | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojectrecurringtasks. */
export interface TeamprojectrecurringtasksFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly title?: string | undefined
  /** Part of the text, in any case */
  readonly description?: string | undefined
  readonly teamprojectid?: number | undefined
}

export interface TeamprojectrecurringtasksShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update"
  readonly record: TeamprojectrecurringtasksRecord
  readonly create: TeamprojectrecurringtasksCreate
  readonly update: TeamprojectrecurringtasksUpdate
  readonly filters: TeamprojectrecurringtasksFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events:
    | "teamprojectrecurringtasks.created"
    | "teamprojectrecurringtasks.updated"
    | "teamprojectrecurringtasks.cancelled"
}
