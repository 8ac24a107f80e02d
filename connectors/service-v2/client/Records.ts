/** Reading of one record by its number, with the version for a conditional write. */
import * as Effect from "effect/Effect"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { FetchedRecord } from "../../../src/connector/Connector.ts"
import type * as SourceError from "../../../src/connector/SourceError.ts"
import { type Answer, failure, type Failed } from "./Answer.ts"
import { type ClientContext, includeParameters, sourceOf, withOrWithoutInclude } from "./ClientContext.ts"
import { isRejected } from "./Decode.ts"
import { findRecord, type JsonObject, member, parse, Unreadable } from "./Envelope.ts"
import type { Call } from "./Exchange.ts"
import { malformed, query } from "./Listing.ts"

const named = (id: string | null): string => (id === null ? "an object without a number" : `the record ${id}`)

/** The version of a record, as `If-Match` takes it. */
const versionOf = ({ precondition }: ClientContext, answer: Answer, record: JsonObject | null): string | null => {
  const etag = answer.headers["etag"]
  if (etag !== undefined && (precondition === "auto" || precondition === "etag")) return etag
  const changed = record === null ? undefined : member(record, "lastchangedate")
  const isWanted = precondition === "auto" || precondition === "lastchangedate"
  return isWanted && typeof changed === "string" && /^[\x20-\x7e]+$/.test(changed) ? changed : null
}

export const recordPath = (resource: Resource, id: string) => `/${resource.path}/${encodeURIComponent(id)}`

/** A record by its number; null when the company has no such record. */
export const getRecord = (context: ClientContext, resource: Resource, id: string) =>
  fetchRecord(context, resource, id, true)

/** A record by its number; fails when the company has no such record. */
export const getExistingRecord = (context: ClientContext, resource: Resource, id: string) =>
  fetchRecord(context, resource, id, false)

const fetchRecord = (
  context: ClientContext,
  resource: Resource,
  id: string,
  mayBeAbsent: boolean
): Effect.Effect<FetchedRecord, SourceError.SourceError> => {
  const request = Effect.suspend(() => {
    const path = `${recordPath(resource, id)}${query(includeParameters(context, resource))}`
    const call: Call = { method: "GET", path, headers: {}, body: null, pageParameters: null }
    return context.exchange.send(call, (answer, asking): FetchedRecord | Failed => {
      const { beganAt } = answer
      const source = sourceOf("GET", path, answer)
      if (answer.status < 200 || answer.status >= 300) {
        const failed = failure(answer, asking)
        const isAbsent = mayBeAbsent && failed.reason._tag === "NotFound"
        return isAbsent ? { record: null, rejected: null, version: null, beganAt, source } : failed
      }
      const parsed = parse(answer.bytes)
      if (parsed instanceof Unreadable) return malformed(answer, parsed)
      const found = findRecord(parsed)
      if (found instanceof Unreadable) return malformed(answer, found)
      const outcome = context.decoderOf(resource).one(parsed.text, found.from, found.to)
      // A record with another number, or with none, does not answer the request.
      if (/^[1-9]\d*$/.test(id) && outcome.id !== id) {
        return malformed(answer, new Unreadable(`the answer is ${named(outcome.id)}, not the record ${id}`, true))
      }
      const version = versionOf(context, answer, found.value)
      return isRejected(outcome)
        ? { record: null, rejected: outcome, version, beganAt, source }
        : { record: outcome, rejected: null, version, beganAt, source }
    })
  })
  return withOrWithoutInclude(context, resource, request)
}
