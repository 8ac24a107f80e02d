/** The forms of the service's limits and of its dialect: of the calls that change them, and of snapshots. */
import * as Schema from "effect/Schema"
import { count, flag, oneOf, optional, whole } from "./Input.ts"

const requestsPerMinute = optional(
  Schema.NullOr(whole(0)),
  "a whole number from 0, or null",
  "requests per minute; null means no limit"
)

/** The limits by name. */
export const limitFields = {
  requestsPerMinute,
  rateScope: oneOf(["token", "user", "install"], "what shares `requestsPerMinute`"),
  testCallsPerMinute: count(0, "calls of `POST /webhooks/{id}/test` per minute"),
  failureThreshold: count(1, "failed attempts in a row that disable a subscription"),
  attemptsPerEvent: count(1, "attempts after which an event is abandoned"),
  cycleSeconds: count(1, "seconds between two delivery cycles"),
  rotationHours: count(0, "hours for which the old secret still signs after a rotation"),
  allowPrivateReceivers: flag("whether deliveries may be sent to addresses that are not public, such as 127.0.0.1")
}

/** The values of a switch, in a message. */
const takes = (values: string) => (name: string) => `the switch ${name} takes ${values}`

const word = <const Values extends ReadonlyArray<string | number>>(values: Values, description: string) =>
  optional(Schema.Literals(values), takes(values.join(", ")), description)
const isOn = (description: string) => optional(Schema.Boolean, takes("true, false"), description)
const records = (description: string) =>
  optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 })),
    takes("a number of records"),
    description
  )
const seed = (description: string) => optional(Schema.NullOr(Schema.Int), takes("a seed or null"), description)

/** The switches of the dialect by name. */
export const switches = {
  itemsKey: word(
    ["data", "results", "items", "records", "resource", "bare"],
    "the key of a list's records; `resource` is the resource's own name, `bare` a bare array without `_meta` (A-01)"
  ),
  paging: word(
    ["cursor", "page", "offset", "link"],
    "how a list continues: `_meta.next_cursor`, `?page=`, `?offset=`, or the Link header (A-02)"
  ),
  pageDefault: records("records of a page without `limit` (A-03)"),
  pageMax: records("the largest page (A-03)"),
  limit: word(
    ["refused", "clamped", "ignored", "unknown"],
    "what a `limit` above `pageMax` means; `ignored` ignores every limit, `unknown` has no such parameter (A-03)"
  ),
  pageSizes: seed("seed of pages that are shorter than the limit although more follow; null is off (A-03)"),
  tieOrder: seed("seed of another order of records with the same lastchangedate than by id; null is off (A-04)"),
  syncedThrough: isOn("whether `_meta.synced_through` is sent (A-05)"),
  modifiedSince: word(
    ["inclusive", "exclusive"],
    "whether modifiedsince includes its instant; with `exclusive`, synced_through is one microsecond earlier (A-06)"
  ),
  cancelTrue: word(["catalogue", "includes", "only"], "what `cancel=true` means (A-08)"),
  etag: isOn("whether answers have an ETag (B-01)"),
  requestIdHeader: optional(
    Schema.NullOr(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9-]{1,60}$/u))),
    takes("a header name or null"),
    "the header of the request id; null is `Svc-Request-Id` and `X-Request-Id` (B-11)"
  ),
  compression: isOn("whether answers are compressed where the request accepts gzip"),
  retryAfter: word(["seconds", "date"], "the form of Retry-After (E-03)"),
  batchStatus: word(
    ["integer", "text"],
    "the status of a batch's record: of the single call, or `created`, `error` (G-01)"
  ),
  uniqueExternalid: isOn("whether an externalid is unique in its company and resource (F-04)"),
  modifiedSinceOnFour: isOn("whether every resource with lastchangedate offers modifiedsince (I-03, X-02)"),
  allOperations: isOn("whether every resource supports every operation (I-01, X-06)"),
  deleteUnknown: word([404, 422], "the status of DELETE on an unknown id: not_found or unknown_value (I-14, X-09)"),
  enableShipmentInvoice: isOn("whether `POST /shipments/{id}/invoice` works; otherwise 501 (J-02)"),
  dateForm: word(
    ["mixed", "timestamp", "seconds"],
    "the form of dates: `timestamp` shows days as midnight, `seconds` shows times without a fraction (F-01)"
  ),
  extraFields: seed("seed of unknown fields on some records; null is off"),
  keyOrder: seed("seed of another order of the fields of every record; null is off")
}
