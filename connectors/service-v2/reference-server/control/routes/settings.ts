/** Control calls for settings: licences and caps of a company, limits of the service, its dialect. */
import * as Schema from "effect/Schema"
import type { Limits } from "../../Limits.ts"
import { plainLimits } from "../../Limits.ts"
import type { Dialect } from "../../http/dialect.ts"
import { plainDialect } from "../../http/dialect.ts"
import { changeCompany } from "../companies.ts"
import { count, day, field, flag, oneOf, optional, whole } from "../Input.ts"
import { jsonAnswer, jsonOf, route } from "../Route.ts"

const companies = route({
  method: "PUT",
  path: "/companies/{id}",
  summary: "Changes a company's licences, record limits and closed periods.",
  description: "What is left out keeps its value. The answer has all settings.",
  parameters: Schema.Struct({
    id: field(
      Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)),
      "a whole number from 1",
      "the number of the company"
    )
  }),
  input: Schema.Struct({
    features: optional(
      Schema.Record(Schema.String, Schema.Boolean),
      "an object of modules and true or false",
      "whether each module is licensed, such as `estimating`"
    ),
    recordLimits: optional(
      Schema.Record(Schema.String, Schema.NullOr(whole(0))),
      "an object of resources and whole numbers from 0, or null",
      "the licensed number of records, such as `customers`; null removes the limit"
    ),
    closedThrough: optional(
      Schema.NullOr(day),
      "a day, YYYY-MM-DD, or null",
      "the last day of the closed periods; null opens them"
    )
  }),
  output: jsonOf(
    Schema.Struct({
      company: Schema.Int,
      features: Schema.Record(Schema.String, Schema.Boolean),
      recordLimits: Schema.Record(Schema.String, Schema.Int),
      closedThrough: Schema.NullOr(Schema.String)
    })
  ),
  example: {
    parameters: { id: 2 },
    input: { features: { estimating: false }, recordLimits: { customers: 10 }, closedThrough: "2025-12-31" },
    output: {
      company: 2,
      features: { estimating: false, assets: true, jobs: true, properties: true, projects: true, payroll: true },
      recordLimits: { customers: 10 },
      closedThrough: "2025-12-31"
    }
  },
  errors: ["A module does not exist.", "A resource is not capped."],
  answer: ({ world, input, parameters }) => jsonAnswer(changeCompany(world, parameters.id, input))
})

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

const limits = route({
  method: "PUT",
  path: "/limits",
  summary: "Changes the limits of the service.",
  description: "What is left out keeps its value. The answer has all limits.",
  input: Schema.Struct(limitFields),
  output: jsonOf(
    Schema.Struct({
      requestsPerMinute: Schema.NullOr(Schema.Int),
      rateScope: Schema.Literals(["token", "user", "install"]),
      testCallsPerMinute: Schema.Int,
      failureThreshold: Schema.Int,
      attemptsPerEvent: Schema.Int,
      cycleSeconds: Schema.Int,
      rotationHours: Schema.Int,
      allowPrivateReceivers: Schema.Boolean
    })
  ),
  example: {
    input: { requestsPerMinute: 600, allowPrivateReceivers: true },
    output: { ...plainLimits, requestsPerMinute: 600, allowPrivateReceivers: true }
  },
  answer: ({ world, input }) => {
    const before: Limits = world.limits
    world.limits = { ...before, ...input }
    if (world.limits.cycleSeconds !== before.cycleSeconds) world.events.rebase()
    return jsonAnswer(world.limits)
  }
})

const records = (description: string) =>
  optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 })), "a number of records", description)
const seed = (description: string) => optional(Schema.NullOr(Schema.Int), "a seed or null", description)

/** The switches of the dialect by name. */
export const switches = {
  itemsKey: oneOf(
    ["data", "results", "items", "records", "resource", "bare"],
    "the key of a list's records; `resource` is the resource's own name, `bare` a bare array without `_meta` (A-01)"
  ),
  paging: oneOf(
    ["cursor", "page", "offset", "link"],
    "how a list continues: `_meta.next_cursor`, `?page=`, `?offset=`, or the Link header (A-02)"
  ),
  pageDefault: records("records of a page without `limit` (A-03)"),
  pageMax: records("the largest page (A-03)"),
  limit: oneOf(
    ["refused", "clamped", "ignored", "unknown"],
    "what a `limit` above `pageMax` means; `ignored` ignores every limit, `unknown` has no such parameter (A-03)"
  ),
  pageSizes: seed("seed of pages that are shorter than the limit although more follow; null is off (A-03)"),
  tieOrder: seed("seed of another order of records with the same lastchangedate than by id; null is off (A-04)"),
  syncedThrough: flag("whether `_meta.synced_through` is sent (A-05)"),
  modifiedSince: oneOf(
    ["inclusive", "exclusive"],
    "whether modifiedsince includes its instant; with `exclusive`, synced_through is one microsecond earlier (A-06)"
  ),
  cancelTrue: oneOf(["catalogue", "includes", "only"], "what `cancel=true` means (A-08)"),
  etag: flag("whether answers have an ETag (B-01)"),
  requestIdHeader: optional(
    Schema.NullOr(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9-]{1,60}$/u))),
    "a header name or null",
    "the header of the request id; null is `Svc-Request-Id` and `X-Request-Id` (B-11)"
  ),
  compression: flag("whether answers are compressed where the request accepts gzip"),
  retryAfter: oneOf(["seconds", "date"], "the form of Retry-After (E-03)"),
  batchStatus: oneOf(
    ["integer", "text"],
    "the status of a batch's record: of the single call, or `created`, `error` (G-01)"
  ),
  uniqueExternalid: flag("whether an externalid is unique in its company and resource (F-04)"),
  modifiedSinceOnFour: flag("whether every resource with lastchangedate offers modifiedsince (I-03, X-02)"),
  allOperations: flag("whether every resource supports every operation (I-01, X-06)"),
  deleteUnknown: oneOf([404, 422], "the status of DELETE on an unknown id: not_found or unknown_value (I-14, X-09)"),
  enableShipmentInvoice: flag("whether `POST /shipments/{id}/invoice` works; otherwise 501 (J-02)"),
  dateForm: oneOf(
    ["mixed", "timestamp", "seconds"],
    "the form of dates: `timestamp` shows days as midnight, `seconds` shows times without a fraction (F-01)"
  ),
  extraFields: seed("seed of unknown fields on some records; null is off"),
  keyOrder: seed("seed of another order of the fields of every record; null is off")
}

const dialect = route({
  method: "PUT",
  path: "/dialect",
  summary: "Switches to other readings of the service's documents.",
  description: "What is left out keeps its value. The answer has all switches.",
  input: Schema.Struct(switches),
  output: jsonOf(Schema.Struct(switches)),
  example: { input: { paging: "page", pageMax: 1000 }, output: { ...plainDialect, paging: "page", pageMax: 1000 } },
  answer: ({ world, input }) => {
    const changed: Dialect = { ...world.dialect, ...input }
    world.dialect = changed
    return jsonAnswer(changed)
  }
})

export const settingRoutes = [companies, limits, dialect]
