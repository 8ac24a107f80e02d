/**
 * Decoding of a successful answer to a write: the result of each record that was sent.
 *
 * Promise: a record counts as written, or as refused, only where the answer says so without contradiction, and only
 * under the index that it was sent with. Everything else is `WriteUncertain`, or has no result. The documents give a
 * batch item `index` and `status`, but not the form of the status (EP-07, EP-11): every likely form is read (G-01,
 * G-03). Values are read from the text of the answer, as exactly as those of a list.
 */
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Rejected, SourceRecord, WriteRequest } from "../../../src/connector/Connector.ts"
import type { WriteResult, WriteSucceeded } from "../../../src/connector/WriteResult.ts"
import { againStatuses, type ErrorBody, errorBodyOf, refusalKindOf, textOf, describe } from "./Answer.ts"
import { type Decoder, isRejected } from "./Decode.ts"
import { findRecord, isObject, type JsonObject, member, parse, type Parsed, Unreadable } from "./Envelope.ts"
import { eachMember, elements, memberStart, skipSpace } from "./JsonText.ts"
import { reader } from "./Values.ts"

/** The decoder for the records of an answer. */
export interface Reader {
  readonly decoder: Decoder
  /** Replaces the token wherever the source sent it back. */
  readonly scrub: (text: string) => string
}

/** The code of a refusal without a code. */
const unstatedCode = "unstated"

/** Codes of failures of one item that a retry may resolve. */
const passing: ReadonlySet<string> = new Set(["request_in_progress", "rate_limited", "server_error"])

const successWords: ReadonlySet<string> = new Set(["ok", "created", "success"])
const failureWords: ReadonlySet<string> = new Set(["error", "failed"])

/** Members of a batch item that is itself the record, beside the values. */
const itemMembers = ["index", "status", "error"]

const unclear = (index: number, detail: string): WriteResult => ({ _tag: "WriteUncertain", index, detail })

// ---------------------------------------------------------------------------------------------------------------------
// The record
// ---------------------------------------------------------------------------------------------------------------------

/** The position of a record in an answer. */
interface Place {
  readonly value: JsonObject
  readonly from: number
  readonly to: number
  /** Members that are not part of the record. */
  readonly beside: ReadonlySet<string>
}

/** The content of a record in an answer. */
interface Shown {
  readonly id: string | null
  readonly record: SourceRecord | null
  readonly rejected: Rejected | null
}

const nothing: Shown = { id: null, record: null, rejected: null }

/** Answers may show some fields only (WRITE-04, WRITE-09, WRITE-12, WRITE-19): neither a record nor an error. */
const show = (text: string, { value, from, to, beside }: Place, { decoder }: Reader): Shown => {
  const id = member(value, "id")
  if (id === undefined || id === null) return nothing
  const outcome = decoder.one(text, from, to, beside)
  return isRejected(outcome)
    ? { id: outcome.id, record: null, rejected: outcome }
    : { id: outcome.id, record: outcome.partial ? null : outcome, rejected: null }
}

const written = (index: number, { id, record, rejected }: Shown): WriteSucceeded => ({
  _tag: "WriteSucceeded",
  index,
  id,
  record,
  rejected
})

// ---------------------------------------------------------------------------------------------------------------------
// One record
// ---------------------------------------------------------------------------------------------------------------------

/** The result of a success without a body. */
export const withoutBody = ({ id }: WriteRequest): WriteSucceeded => written(0, { ...nothing, id })

/** The answer to create, update or cancel: the record, bare or under `data`. */
export const readOne = (parsed: Parsed, { resource, id }: WriteRequest, reading: Reader): WriteResult | Unreadable => {
  const found = findRecord(parsed)
  if (found instanceof Unreadable) return found
  if (isObject(member(found.value, "error"))) {
    return unclear(0, "the answer carries an error, but its status is a success")
  }
  const shown = show(parsed.text, { ...found, beside: new Set(resource.answers) }, reading)
  if (id === null || shown.id === null) return written(0, { ...shown, id: shown.id ?? id })
  return shown.id === id ? written(0, shown) : unclear(0, `the answer is about the record ${shown.id}, not ${id}`)
}

// ---------------------------------------------------------------------------------------------------------------------
// A batch
// ---------------------------------------------------------------------------------------------------------------------

/** The meaning of an item's status. */
type Status = "success" | "failure" | "none" | "other"

const numeral = /^(?:0|[1-9]\d{0,8})$/

/** A number, or a text of digits; null for anything else. */
const wholeOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0
    ? value
    : typeof value === "string" && numeral.test(value)
      ? Number(value)
      : null

/** `number` is the HTTP status of the item; null when the item's status is not one. */
const statusOf = (value: unknown): { readonly status: Status; readonly number: number | null } => {
  if (value === undefined || value === null) return { status: "none", number: null }
  const number = wholeOf(value)
  if (number !== null) {
    if (number >= 200 && number < 300) return { status: "success", number }
    return number >= 400 && number < 600 ? { status: "failure", number } : { status: "other", number: null }
  }
  const word = typeof value === "string" ? value.toLowerCase() : ""
  return { status: successWords.has(word) ? "success" : failureWords.has(word) ? "failure" : "other", number: null }
}

const isPassing = (code: string, status: number | null): boolean =>
  passing.has(code) ||
  (status !== null && (status === 429 || againStatuses.has(status) || (status >= 500 && status !== 501)))

/** The value of `error`; null when it means that there is no error. */
const errorOf = (item: JsonObject): unknown => {
  const error = member(item, "error")
  return error === undefined || error === false || error === "" ? null : error
}

/** The range of a member's value; the last one of equal names, as in `JSON.parse`. */
const rangeOf = (text: string, at: number, name: string): { readonly from: number; readonly to: number } | null => {
  let range: { readonly from: number; readonly to: number } | null = null
  eachMember(text, at, (member, from, to) => {
    if (member === name) range = { from, to }
  })
  return range
}

/** The record of an item: under `record` or `data`, or the item itself when it has values beside its number. */
const placeOf = (text: string, item: JsonObject, from: number, to: number, resource: Resource): Place | null => {
  const beside = new Set(resource.answers)
  for (const name of ["record", "data"]) {
    const value = member(item, name)
    if (!isObject(value)) continue
    const range = rangeOf(text, from, name)
    return range === null ? null : { value, ...range, beside }
  }
  // If the record has such a field itself, the origin of the value is unknown.
  if (itemMembers.some((name) => resource.field.has(name))) return null
  const hasValues = Object.keys(item).some((name) => name !== "id" && resource.field.has(name))
  return hasValues ? { value: item, from, to, beside: new Set([...beside, ...itemMembers]) } : null
}

/** The record's number that the item itself states. */
const idOf = (text: string, item: JsonObject, from: number, resource: Resource): string | null => {
  const field = resource.field.get("id")
  if (field === undefined || !Object.hasOwn(item, "id")) return null
  const range = rangeOf(text, from, "id")
  const id = range === null ? null : reader(field)(text.slice(range.from, range.to))
  return typeof id === "string" ? id : null
}

const readItem = (
  text: string,
  item: JsonObject,
  from: number,
  to: number,
  index: number,
  resource: Resource,
  reading: Reader
): WriteResult => {
  const { scrub } = reading
  const { status, number } = statusOf(member(item, "status"))
  const error = errorOf(item)
  if (error !== null && status === "success") {
    return unclear(index, "the item carries an error, but its status is a success")
  }
  if (error !== null && status === "none" && isObject(member(item, "record"))) {
    return unclear(index, "the item carries an error and a record, but no status")
  }
  // A refusal may be under `error`, nested once more, or beside the status.
  const complaint: ErrorBody | null =
    errorBodyOf(item, scrub) ??
    errorBodyOf(error, scrub) ??
    (status === "failure" ? errorBodyOf({ error: item }, scrub) : null)
  if (complaint !== null || (status === "failure" && (number !== null || error !== null))) {
    const code = complaint?.code ?? unstatedCode
    const message = typeof error === "string" ? error : isObject(error) ? textOf(error, "message") : null
    return {
      _tag: "WriteRejected",
      kind: refusalKindOf(code, number),
      index,
      status: number,
      code,
      field: complaint?.field ?? null,
      detail: complaint?.detail ?? describe(message ?? "the item gives no reason", scrub),
      problems: complaint?.problems ?? [],
      isRetryable: isPassing(code, number)
    }
  }
  if (error !== null) return unclear(index, "the item carries an error that cannot be read")
  if (status === "failure" || status === "other") return unclear(index, "the item's status cannot be read")

  const place = placeOf(text, item, from, to, resource)
  const shown = place === null ? nothing : show(text, place, reading)
  const stated = idOf(text, item, from, resource)
  if (stated !== null && shown.id !== null && stated !== shown.id) {
    return unclear(index, `the item names the record ${stated} and shows the record ${shown.id}`)
  }
  const id = shown.id ?? stated
  if (status === "none" && id === null && place === null) {
    return unclear(index, "the item has neither a status nor a record")
  }
  return written(index, { ...shown, id })
}

/** The results of an answer: under `results`, at the top or below `data` when that is the only member. */
const resultsOf = ({ text, value }: Parsed): { readonly items: ReadonlyArray<unknown>; readonly at: number } | null => {
  if (!isObject(value)) return null
  const root = skipSpace(text, 0)
  const within = (object: JsonObject, from: number) => {
    const items = member(object, "results")
    const at = Array.isArray(items) ? memberStart(text, from, "results") : null
    return at === null ? null : { items: items as ReadonlyArray<unknown>, at }
  }
  const results = within(value, root)
  if (results !== null) return results
  const data = member(value, "data")
  const isAll = Object.keys(value).every((name) => name === "data" || name === "_meta")
  return isObject(data) && isAll ? within(data, memberStart(text, root, "data") ?? root) : null
}

/** The records that were sent, for comparison with the answer; null when the body is not a list. */
const sentOf = (body: string | null): ReadonlyArray<unknown> | null => {
  const sent = body === null ? null : parse(new TextEncoder().encode(body))
  return sent === null || sent instanceof Unreadable || !Array.isArray(sent.value) ? null : sent.value
}

/** The part of an item that identifies its record. */
const shownIn = (item: JsonObject): unknown => [member(item, "record"), member(item, "data")].find(isObject) ?? item

const externalidOf = (record: unknown): string | null => (isObject(record) ? textOf(record, "externalid") : null)

/**
 * Reads the answer to a batch, whether 200, 201 or 207 (G-03). Items are matched by their `index` (G-02). They are
 * matched by position only when no item has an index and there are as many items as records sent. An item that cannot
 * be matched is left out.
 */
export const readBatch = (
  parsed: Parsed,
  { resource, body }: WriteRequest,
  reading: Reader
): ReadonlyArray<WriteResult> | Unreadable => {
  const results = resultsOf(parsed)
  if (results === null) return new Unreadable("the answer to a batch has no results", true)
  const sent = sentOf(body)
  const indexes = results.items.map((item) => (isObject(item) ? wholeOf(member(item, "index")) : null))
  const isUnnumbered = results.items.every((item) => !isObject(item) || (member(item, "index") ?? null) === null)
  const isByPlace = isUnnumbered && (sent === null || results.items.length === sent.length)
  // An index that was not sent shows another kind of numbering; then no index can be trusted.
  const isForeign = sent !== null && indexes.some((index) => index !== null && index >= sent.length)
  const ours = new Set((sent ?? []).map(externalidOf).filter((externalid) => externalid !== null))

  const ranges = elements(parsed.text, results.at)
  const items: Array<WriteResult> = []
  for (const [place, item] of results.items.entries()) {
    const index = isByPlace ? place : indexes[place]!
    if (index === null) continue
    if (isForeign) {
      if (index < sent.length) items.push(unclear(index, "the answer has an index that was not sent"))
      continue
    }
    if (!isObject(item)) {
      items.push(unclear(index, "the item is not an object"))
      continue
    }
    const externalid = externalidOf(shownIn(item))
    if (sent !== null && externalid !== null && ours.has(externalid) && externalidOf(sent[index]) !== externalid) {
      items.push(unclear(index, "the item shows a record that was sent under another index"))
      continue
    }
    items.push(readItem(parsed.text, item, ranges[2 * place]!, ranges[2 * place + 1]!, index, resource, reading))
  }
  return items
}
