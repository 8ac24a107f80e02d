/**
 * The facts that the radar compares, as data.
 *
 * `basis` names the fact of the documents, or the decision where they are silent: then a difference is no fault of the
 * installation. `setting` is a path of `config/tributary.yaml`.
 */
import type { RadarCheck } from "../../../src/connector/Radar.ts"

const works = "no setting is needed: Tributary works with both"
const report = "no setting: report it to the operator of the service"
const quarantined =
  "no setting: such records go to quarantine; correct an odd value at the source, else change the catalogue as the patch says"

const check = (
  id: string,
  basis: string,
  request: string,
  fact: string,
  advice: string,
  setting: string | null = null
) => ({ id, fact, basis, request, setting, advice }) satisfies RadarCheck

const list = "GET /{resource}"
const sample = "GET /{resource}?limit&cancel"

const access = [
  check(
    "access.me",
    "RES-04, C-05",
    "GET /me",
    "/me states the company of the token",
    "give the company's number in companies[].company_id",
    "companies[].company_id"
  ),
  check(
    "access.resource",
    "EP-05",
    sample,
    "every resource of the catalogue can be listed",
    "leave the resource out of companies[].resources; the patch removes it"
  )
]

const lists = [
  check(
    "list.key",
    "A-01",
    list,
    "the records of a list are under data",
    "the program finds it; with the setting it never reads another list of an answer",
    "list.items_key"
  ),
  check(
    "list.paging",
    "A-02",
    `${list}?limit=1`,
    "a list continues by _meta.next_cursor",
    "set it for page and offset, which nothing in an answer shows; a link is followed without it",
    "paging.mode"
  ),
  check("page.default", "A-03", list, "a page has 100 records where no limit is sent", works),
  check(
    "page.maximum",
    "A-03",
    `${list}?limit`,
    "a page has at most 250 records",
    "no setting is needed: the program finds a size that is accepted; the setting saves requests",
    "paging.page_size"
  ),
  check("page.limit", "A-03", `${list}?limit`, "a limit above the maximum is refused (400 invalid_request)", works),
  check("page.full", "A-03", `${list}?limit=2`, "a page is full while more records follow", works),
  check(
    "page.complete",
    "A-04",
    `${list}?limit=2, page after page`,
    "the pages of a list have each of its records once",
    "no setting: a sync would lose records; report it before the first sync"
  ),
  check("order.ids", "A-04", sample, "a list without modifiedsince is in the order of ids", works),
  check("cancel.default", "EP-15", list, "a list without cancel hides cancelled records", works),
  check(
    "cancel.true",
    "A-08",
    `${list}?cancel=true`,
    "cancel=true shows cancelled records only on taskstatuses, and includes them elsewhere",
    works
  ),
  check(
    "custom_fields",
    "EP-13, A-12",
    `${list}?include=custom_fields`,
    "include=custom_fields adds the object custom_fields to each record",
    "leave sync.custom_fields off"
  )
]

const changes = [
  check(
    "modifiedsince.offered",
    "EP-16",
    `${list}?modifiedsince`,
    "modifiedsince is offered by the resources for which the documents name it",
    "no setting: change modifiedSince in the catalogue as the patch says"
  ),
  check(
    "modifiedsince.others",
    "I-03",
    `${list}?modifiedsince`,
    "modifiedsince is refused by the other resources, also where records have lastchangedate",
    "no setting is needed: they are read in full; the patch makes their syncs incremental"
  ),
  check(
    "modifiedsince.inclusive",
    "A-06",
    `${list}?modifiedsince`,
    "modifiedsince includes records changed at exactly that time",
    "keep the overlap above zero, so that changes of the same instant are read",
    "sync.overlap_seconds"
  ),
  check(
    "modifiedsince.filters",
    "EP-16",
    `${list}?modifiedsince`,
    "a list with modifiedsince has no record that changed before",
    "no setting is needed: more records are read than changed"
  ),
  check(
    "synced_through",
    "EP-16, A-05",
    `${list}?modifiedsince`,
    "a list answer has _meta.synced_through, RFC 3339 in UTC",
    "no setting is needed: the time of the first page is used, less the overlap"
  ),
  check(
    "synced_through.stable",
    "A-05",
    `${list}?limit=2, page after page`,
    "all pages of a list have the synced_through of its first one",
    "no setting is needed: the smallest one is stored"
  ),
  check(
    "order.changes",
    "A-04",
    `${list}?modifiedsince`,
    "a list with modifiedsince is in the order of lastchangedate and id",
    works
  )
]

const records = [
  check("record.envelope", "A-13", "GET /{resource}/{id}", "a single record is the body itself", works),
  check(
    "record.same",
    "EP-08",
    "GET /{resource}/{id}",
    "a single record has the fields and values of its list",
    report
  ),
  check(
    "record.etag",
    "B-01",
    "GET /{resource}/{id}",
    "a single record has an ETag",
    "no setting is needed: lastchangedate is sent as the precondition"
  ),
  check(
    "operations",
    "I-01",
    "GET /{resource}/{id}, GET /me",
    "a resource has the operations of its row, and answers others 405 with Allow",
    "no setting is needed for reading; the patch states the operations"
  ),
  check(
    "filters",
    "EP-17, EP-18",
    `${list}?{filter}`,
    "a list can be filtered by the documented fields, and has the records with that value",
    "no setting: change the filters in the catalogue as the patch says"
  ),
  check(
    "filters.exact",
    "A-17, A-18",
    `${list}?{filter}`,
    "an exact filter compares the whole value and its case",
    "no setting is needed: values are compared again"
  )
]

const values = [
  check(
    "field.unknown",
    "catalogue",
    sample,
    "records have the fields of the catalogue and no others",
    "no setting is needed: the value is kept in _extra; the command of the patch makes a column"
  ),
  check(
    "field.missing",
    "A-14",
    sample,
    "every field is present, null where it is unset",
    "no setting is needed: a row keeps its value; change the catalogue as the patch says"
  ),
  check("field.null", "A-14", sample, "the id, the key, the cancel flag and lastchangedate are never null", report),
  check("field.type", "FIELD-01 to FIELD-11", sample, "a value has the type of its field", quarantined),
  check(
    "field.form",
    "FIELD-05 to FIELD-09",
    sample,
    "a value has the JSON form of its type: decimals are strings, integers are numbers",
    works
  ),
  check(
    "field.length",
    "FIELD-10",
    sample,
    "a text has at most the length of its field",
    "no setting is needed for reading; a push checks the old length until the catalogue is changed as the patch says"
  ),
  check(
    "field.precision",
    "FIELD-05 to FIELD-08",
    sample,
    "a decimal has at most the decimals of its field",
    quarantined
  ),
  check("field.padding", "F-02", sample, "a decimal is padded to the decimals of its field", works),
  check(
    "field.values",
    "F-16",
    sample,
    "a field with a closed set has one of its values",
    "no setting is needed: the value is kept; a push refuses it until the catalogue is changed as the patch says"
  ),
  check("field.order", "RFC 8259", sample, "the fields of a record are in the same order in every record", works),
  check("date.form", "F-01", sample, "a date is YYYY-MM-DD", works),
  check(
    "timestamp.form",
    "F-01",
    sample,
    "a timestamp is RFC 3339 in UTC with microseconds",
    "keep the overlap above one second where times have whole seconds",
    "sync.overlap_seconds"
  )
]

const answers = [
  check(
    "header.request_id",
    "B-11",
    "every request",
    "an answer has the header Svc-Request-Id",
    "name the header",
    "requests.request_id_header"
  ),
  check("header.date", "A-05", "every request", "an answer has the header Date", report),
  check("header.encoding", "RFC 9110", "every request", "an answer is not compressed", works),
  check("header.limit", "E-06", "every request", "no header states the request limit", works),
  check(
    "limit.rate",
    "LIM-02",
    "every request",
    "600 requests a minute are answered",
    "use less of the limit",
    "budget.requests_per_minute"
  ),
  check("limit.retry_after", "E-03", "every request", "Retry-After of a 429 is a number of seconds", works)
]

const errors = [
  check(
    "error.envelope",
    "ERR-01",
    "every refusal",
    "a refusal is JSON with error.code and error.message",
    "no setting: its status decides; report it to the operator of the service"
  ),
  check(
    "error.unknown_parameter",
    "CODE-05, EP-18",
    `${list}?radar_unknown=1`,
    "an unknown parameter is refused: 400 unknown_parameter with its name",
    report
  ),
  check("error.invalid_enum", "A-10", `${list}?cancel=maybe`, "cancel=maybe is refused: 400 invalid_enum", report),
  check(
    "error.invalid_type",
    "A-10",
    `${list}?modifiedsince=yesterday`,
    "modifiedsince=yesterday is refused: 400 invalid_type",
    report
  ),
  check("error.include", "A-11", `${list}?include=radar`, "an unknown include is refused: 400 invalid_enum", report),
  check("error.limit", "A-03", `${list}?limit=0`, "limit=0 is refused: 400 invalid_request", works),
  check("error.not_found", "CODE-09", "GET /{resource}/{id}", "an unknown id is 404 not_found", report),
  check("error.path", "C-13", "GET /radar-unknown", "an unknown path is 404 not_found", report),
  check(
    "error.unauthorized",
    "AUTH-12, AUTH-18",
    "GET /me without a token",
    "a request without a token is 401 unauthorized with WWW-Authenticate",
    report
  )
]

export const checks: ReadonlyArray<RadarCheck> = [
  ...access,
  ...lists,
  ...changes,
  ...records,
  ...values,
  ...answers,
  ...errors
]

export const checkOf: ReadonlyMap<string, RadarCheck> = new Map(checks.map((one) => [one.id, one]))
