/**
 * The dialect: switches for the other readings of the documents, where these leave the answer open (the list at the end
 * of `decisions.md`).
 *
 * | switch | values | default | decision |
 * |---|---|---|---|
 * | `itemsKey` | `data` `results` `items` `records` `resource` (the resource's own name) `bare` (a bare array) | `data` | A-01 |
 * | `paging` | `cursor` (`_meta.next_cursor`) · `page` (`?page=`) · `offset` (`?offset=`) · `link` (`Link: rel="next"`) | `cursor` | A-02 |
 * | `pageDefault`, `pageMax` | records of a page | 100, 250 | A-03 |
 * | `limit` | what a `limit` above `pageMax` means: `refused` · `clamped` (to `pageMax`) · `ignored` (as every limit) · `unknown` (no such parameter) | `refused` | A-03 |
 * | `pageSizes` | seed: pages shorter than the limit although more follow; null is off | null | A-03 |
 * | `syncedThrough` | whether `_meta.synced_through` is sent | true | A-05 |
 * | `modifiedSince` | `inclusive` · `exclusive` | `inclusive` | A-06 |
 * | `cancelTrue` | `catalogue` · `includes` · `only`: what `cancel=true` means | `catalogue` | A-08 |
 * | `etag` | whether answers have an ETag | true | B-01 |
 * | `requestIdHeader` | a header name; null is `Svc-Request-Id` and `X-Request-Id` | null | B-11 |
 * | `compression` | whether answers are compressed where the request accepts gzip | false | |
 * | `retryAfter` | `seconds` · `date` | `seconds` | E-03 |
 * | `dateForm` | `mixed` · `timestamp` (days as midnight) · `seconds` (times without a fraction) | `mixed` | F-01 |
 * | `batchStatus` | `integer` (the status of the single call) · `text` (`created`, `error`) | `integer` | G-01 |
 * | `uniqueExternalid` | whether an externalid is unique in its company and resource | false | F-04 |
 * | `modifiedSinceOnFour` | whether every resource with lastchangedate offers modifiedsince, also the four that do not | false | I-03, X-02 |
 * | `allOperations` | whether every resource supports every operation | false | I-01, X-06 |
 * | `deleteUnknown` | 404 (not_found) · 422 (unknown_value): DELETE on an unknown id | 404 | I-14, X-09 |
 * | `enableShipmentInvoice` | whether POST /shipments/{id}/invoice works | false: 501 | J-02 |
 * | `extraFields` | seed: unknown fields on some records; null is off | null | |
 * | `tieOrder` | seed: records of the same lastchangedate in another order than by id; null is off | null | A-04 |
 * | `keyOrder` | seed: fields in another order on every record; null is off | null | |
 *
 * With `bare` there is no `_meta`: every paging style continues by the Link header, and there is no synced_through.
 * With `exclusive`, synced_through is one microsecond earlier, to agree with the filter.
 */
import { limits } from "../../catalogue/limits.ts"
import { isObject } from "../json.ts"
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

type Check = (value: unknown) => boolean
const oneOf =
  (...words: ReadonlyArray<string>): Check =>
  (value) =>
    typeof value === "string" && words.includes(value)
const flag: Check = (value) => typeof value === "boolean"
const count: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= 100_000
const seed: Check = (value) => value === null || Number.isSafeInteger(value)

const checks: Readonly<Record<keyof Dialect, readonly [check: Check, allowed: string]>> = {
  itemsKey: [
    oneOf("data", "results", "items", "records", "resource", "bare"),
    "data, results, items, records, resource, bare"
  ],
  paging: [oneOf("cursor", "page", "offset", "link"), "cursor, page, offset, link"],
  pageDefault: [count, "a number of records"],
  pageMax: [count, "a number of records"],
  limit: [oneOf("refused", "clamped", "ignored", "unknown"), "refused, clamped, ignored, unknown"],
  pageSizes: [seed, "a seed or null"],
  tieOrder: [seed, "a seed or null"],
  syncedThrough: [flag, "true, false"],
  modifiedSince: [oneOf("inclusive", "exclusive"), "inclusive, exclusive"],
  cancelTrue: [oneOf("catalogue", "includes", "only"), "catalogue, includes, only"],
  etag: [flag, "true, false"],
  requestIdHeader: [
    (value) => value === null || (typeof value === "string" && /^[A-Za-z0-9-]{1,60}$/.test(value)),
    "a header name or null"
  ],
  compression: [flag, "true, false"],
  retryAfter: [oneOf("seconds", "date"), "seconds, date"],
  batchStatus: [oneOf("integer", "text"), "integer, text"],
  uniqueExternalid: [flag, "true, false"],
  modifiedSinceOnFour: [flag, "true, false"],
  allOperations: [flag, "true, false"],
  deleteUnknown: [(value) => value === 404 || value === 422, "404, 422"],
  enableShipmentInvoice: [flag, "true, false"],
  dateForm: [oneOf("mixed", "timestamp", "seconds"), "mixed, timestamp, seconds"],
  extraFields: [seed, "a seed or null"],
  keyOrder: [seed, "a seed or null"]
}

/** The dialect with some switches changed; a message when a switch or its value is unknown. */
export const changeDialect = (dialect: Dialect, input: unknown): Dialect | string => {
  if (!isObject(input)) return "the body must be an object of switches"
  for (const [name, value] of Object.entries(input)) {
    const check = Object.hasOwn(checks, name) ? checks[name as keyof Dialect] : undefined
    if (check === undefined) return `there is no switch "${name}"; there are: ${Object.keys(checks).join(", ")}`
    if (!check[0](value)) return `the switch ${name} takes ${check[1]}`
  }
  return { ...dialect, ...(input as Partial<Dialect>) }
}
