/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of teamprojecttemplateitems: milestones and tasks of a project template. Basis in the API's documents: documented. */
export interface TeamprojecttemplateitemsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** template by id or name */
  readonly teamprojecttemplateid: number | null
  /** template by id or name */
  readonly teamprojecttemplate: string | null
  /** item above, by id or title */
  readonly parentitemid: number | null
  /** item above, by id or title */
  readonly parentitem: string | null
  /** 0: milestone; 1: task */
  readonly itemtype: number | null
  readonly title: string | null
  readonly description: string | null
  /** 0: low; 1: normal; 2: high; 3: critical */
  readonly priority: number | null
  /** money, 6 decimals */
  readonly estimatedhours: Decimal | null
  /** days after project start */
  readonly offsetdays: number | null
  /** sets due date */
  readonly durationdays: number | null
  /** assign by project role */
  readonly assignrole: boolean | null
  /** lower first */
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

/** The body of a new record of teamprojecttemplateitems. */
export interface TeamprojecttemplateitemsCreate {
  /** template by id or name */
  readonly teamprojecttemplateid?: number | null | undefined
  /** template by id or name. at most 100 characters */
  readonly teamprojecttemplate?: string | null | undefined
  /** item above, by id or title */
  readonly parentitemid?: number | null | undefined
  /** item above, by id or title. at most 255 characters */
  readonly parentitem?: string | null | undefined
  /** 0: milestone; 1: task */
  readonly itemtype?: 0 | 1 | null | undefined
  /** at most 255 characters */
  readonly title?: string | null | undefined
  readonly description?: string | null | undefined
  /** 0: low; 1: normal; 2: high; 3: critical */
  readonly priority?: 0 | 1 | 2 | 3 | null | undefined
  /** money, 6 decimals */
  readonly estimatedhours?: Decimal | null | undefined
  /** days after project start */
  readonly offsetdays?: number | null | undefined
  /** sets due date */
  readonly durationdays?: number | null | undefined
  /** assign by project role */
  readonly assignrole?: boolean | null | undefined
  /** lower first */
  readonly sortorder?: number | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Changes of a record of teamprojecttemplateitems. */
export interface TeamprojecttemplateitemsUpdate {
  /** template by id or name */
  readonly teamprojecttemplateid?: number | null | undefined
  /** template by id or name. at most 100 characters */
  readonly teamprojecttemplate?: string | null | undefined
  /** item above, by id or title */
  readonly parentitemid?: number | null | undefined
  /** item above, by id or title. at most 255 characters */
  readonly parentitem?: string | null | undefined
  /** 0: milestone; 1: task */
  readonly itemtype?: 0 | 1 | null | undefined
  /** at most 255 characters */
  readonly title?: string | null | undefined
  readonly description?: string | null | undefined
  /** 0: low; 1: normal; 2: high; 3: critical */
  readonly priority?: 0 | 1 | 2 | 3 | null | undefined
  /** money, 6 decimals */
  readonly estimatedhours?: Decimal | null | undefined
  /** days after project start */
  readonly offsetdays?: number | null | undefined
  /** sets due date */
  readonly durationdays?: number | null | undefined
  /** assign by project role */
  readonly assignrole?: boolean | null | undefined
  /** lower first */
  readonly sortorder?: number | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of teamprojecttemplateitems. */
export interface TeamprojecttemplateitemsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly title?: string | undefined
  /** Part of the text, in any case */
  readonly description?: string | undefined
}

export interface TeamprojecttemplateitemsShape {
  readonly operations: "list" | "create" | "batch" | "get" | "getVersioned" | "update" | "cancel"
  readonly record: TeamprojecttemplateitemsRecord
  readonly create: TeamprojecttemplateitemsCreate
  readonly update: TeamprojecttemplateitemsUpdate
  readonly filters: TeamprojecttemplateitemsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events:
    | "teamprojecttemplateitems.created"
    | "teamprojecttemplateitems.updated"
    | "teamprojecttemplateitems.cancelled"
}
