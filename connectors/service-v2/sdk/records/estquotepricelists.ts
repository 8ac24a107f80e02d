/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, Decimal, Timestamp } from "../Values.ts"

/** One of estquotepricelists: price lists of estimating quotes. Basis in the API's documents: documented. */
export interface EstquotepricelistsRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** id of a record that this catalogue does not hold; stored as given */
  readonly stdsizeid: number | null
  /** work type by id or name */
  readonly worktypeid: number | null
  /** work type by id or name */
  readonly worktype: string | null
  readonly name: string | null
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel: boolean | null
  /** creation time. Read-only */
  readonly entrydate: Timestamp | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  readonly maxinkside1: number | null
  readonly maxinkside2: number | null
  /** money, 2 decimals */
  readonly trimchargepermpercut: Decimal | null
  /** money, 2 decimals */
  readonly trimmincharge: Decimal | null
  /** qty, 0 decimals */
  readonly qtyperbox: Decimal | null
  readonly notes: string | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly point2id: number | null
  /** money, 5 decimals */
  readonly covereach_blackinandout: Decimal | null
  /** money, 5 decimals */
  readonly covereach_coloroutblackin: Decimal | null
  /** money, 5 decimals */
  readonly covereach_colorinandout: Decimal | null
  /** money, 5 decimals */
  readonly costper_nocover: Decimal | null
  /** money, 5 decimals */
  readonly covereach_colorinblackout: Decimal | null
  /** 1 means no separate ink charge */
  readonly noinkcharge: number | null
  /** number, 2 decimals */
  readonly scrap_percent: Decimal | null
  readonly scrap_sheets_max: number | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of estquotepricelists. */
export interface EstquotepricelistsCreate {
  /** id of a record that this catalogue does not hold; stored as given */
  readonly stdsizeid?: number | null | undefined
  /** work type by id or name */
  readonly worktypeid?: number | null | undefined
  /** work type by id or name. at most 100 characters */
  readonly worktype?: string | null | undefined
  /** at most 50 characters */
  readonly name?: string | null | undefined
  /** true when cancelled; the record stays readable and lists hide it unless asked */
  readonly cancel?: boolean | null | undefined
  readonly maxinkside1?: number | null | undefined
  readonly maxinkside2?: number | null | undefined
  /** money, 2 decimals */
  readonly trimchargepermpercut?: Decimal | null | undefined
  /** money, 2 decimals */
  readonly trimmincharge?: Decimal | null | undefined
  /** qty, 0 decimals */
  readonly qtyperbox?: Decimal | null | undefined
  readonly notes?: string | null | undefined
  /** id of a record that this catalogue does not hold; stored as given */
  readonly point2id?: number | null | undefined
  /** money, 5 decimals */
  readonly covereach_blackinandout?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly covereach_coloroutblackin?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly covereach_colorinandout?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly costper_nocover?: Decimal | null | undefined
  /** money, 5 decimals */
  readonly covereach_colorinblackout?: Decimal | null | undefined
  /** 1 means no separate ink charge */
  readonly noinkcharge?: number | null | undefined
  /** number, 2 decimals */
  readonly scrap_percent?: Decimal | null | undefined
  readonly scrap_sheets_max?: number | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of estquotepricelists. */
export interface EstquotepricelistsFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  /** Part of the text, in any case */
  readonly name?: string | undefined
}

export interface EstquotepricelistsShape {
  readonly operations: "list" | "create" | "batch"
  readonly record: EstquotepricelistsRecord
  readonly create: EstquotepricelistsCreate
  readonly update: never
  readonly filters: EstquotepricelistsFilters
  readonly answers: never
  readonly reads: never
  readonly actions: never
  readonly events: "estquotepricelists.created" | "estquotepricelists.updated" | "estquotepricelists.cancelled"
}
