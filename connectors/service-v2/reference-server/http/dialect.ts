/**
 * The dialect: switches for the other readings of the documents, where these leave the answer open (the list at the end
 * of `decisions.md`). `control/routes/settings.ts` describes each switch.
 *
 * With `bare` there is no `_meta`: every paging style continues by the Link header, and there is no synced_through.
 * With `exclusive`, synced_through is one microsecond earlier, to agree with the filter.
 */
import { limits } from "../../catalogue/limits.ts"
import type { Readings } from "../rules/Rules.ts"
import type { Look } from "../store/render.ts"

export interface Dialect extends Look, Readings {
  readonly itemsKey: "data" | "results" | "items" | "records" | "resource" | "bare"
  readonly paging: "cursor" | "page" | "offset" | "link"
  readonly pageDefault: number
  readonly pageMax: number
  readonly limit: "refused" | "clamped" | "ignored" | "unknown"
  readonly pageSizes: number | null
  readonly tieOrder: number | null
  readonly syncedThrough: boolean
  readonly modifiedSince: "inclusive" | "exclusive"
  readonly cancelTrue: "catalogue" | "includes" | "only"
  readonly etag: boolean
  readonly requestIdHeader: string | null
  readonly compression: boolean
  readonly retryAfter: "seconds" | "date"
  readonly batchStatus: "integer" | "text"
  readonly modifiedSinceOnFour: boolean
  readonly allOperations: boolean
  readonly deleteUnknown: 404 | 422
}

export const plainDialect: Dialect = {
  itemsKey: "data",
  paging: "cursor",
  pageDefault: limits.pageRecordsDefault,
  pageMax: limits.pageRecordsMax,
  limit: "refused",
  pageSizes: null,
  tieOrder: null,
  syncedThrough: true,
  modifiedSince: "inclusive",
  cancelTrue: "catalogue",
  etag: true,
  requestIdHeader: null,
  compression: false,
  retryAfter: "seconds",
  batchStatus: "integer",
  uniqueExternalid: false,
  modifiedSinceOnFour: false,
  allOperations: false,
  deleteUnknown: 404,
  enableShipmentInvoice: false,
  dateForm: "mixed",
  extraFields: null,
  keyOrder: null
}
