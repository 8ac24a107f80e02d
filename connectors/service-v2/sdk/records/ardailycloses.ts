/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, Timestamp } from "../Values.ts"

/** One of ardailycloses: end-of-day close records. Basis in the API's documents: documented. */
export interface ArdailyclosesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** inventory location by id or locationcode */
  readonly inventorylocationid: number | null
  /** inventory location by id or locationcode */
  readonly inventorylocation: string | null
  readonly closedate: DateText | null
  /** money, 4 decimals */
  readonly actualcash: Decimal | null
  /** money, 4 decimals */
  readonly actualchecks: Decimal | null
  /** money, 4 decimals */
  readonly cashdrawerfloat: Decimal | null
  /** money, 4 decimals */
  readonly depositeamount: Decimal | null
  /** money, 4 decimals */
  readonly actualcc: Decimal | null
  /** money, 4 decimals */
  readonly overshort: Decimal | null
  /** money, 4 decimals */
  readonly gl_cash: Decimal | null
  /** money, 4 decimals */
  readonly gl_cc: Decimal | null
  /** money, 4 decimals */
  readonly gl_checks: Decimal | null
  /** money, 4 decimals */
  readonly sys_cash: Decimal | null
  /** money, 4 decimals */
  readonly sys_cc: Decimal | null
  /** money, 4 decimals */
  readonly sys_checks: Decimal | null
  readonly currencybreakdown: string | null
  readonly currency: string | null
  /** creation time */
  readonly entrydate: Timestamp | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of ardailycloses. */
export interface ArdailyclosesCreate {
  /** inventory location by id or locationcode */
  readonly inventorylocationid?: number | null | undefined
  /** inventory location by id or locationcode. at most 20 characters */
  readonly inventorylocation?: string | null | undefined
  readonly closedate?: DateText | null | undefined
  /** money, 4 decimals */
  readonly actualcash?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly actualchecks?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly cashdrawerfloat?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly depositeamount?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly actualcc?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly overshort?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly gl_cash?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly gl_cc?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly gl_checks?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly sys_cash?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly sys_cc?: Decimal | null | undefined
  /** money, 4 decimals */
  readonly sys_checks?: Decimal | null | undefined
  readonly currencybreakdown?: string | null | undefined
  /** at most 10 characters */
  readonly currency?: string | null | undefined
  /** creation time */
  readonly entrydate?: Timestamp | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of ardailycloses. */
export interface ArdailyclosesFilters extends CommonFilters {
  readonly inventorylocationid?: number | undefined
}

export interface ArdailyclosesShape {
  readonly operations: "list" | "create" | "batch"
  readonly record: ArdailyclosesRecord
  readonly create: ArdailyclosesCreate
  readonly update: never
  readonly filters: ArdailyclosesFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "ardailycloses.created" | "ardailycloses.updated" | "ardailycloses.cancelled"
}
