/**
 * A message to an endpoint: changes as JSON, with the headers of Standard Webhooks.
 *
 * Promise: a message with the same changes has the same id and body, whichever process sends it and how often. The
 * records are the JSON text of the warehouse, with every digit. The id of a change is its position and the token of
 * the feed, so that the changes of a restored warehouse have other ones.
 */
import { createHash } from "node:crypto"
import * as Redacted from "effect/Redacted"
import { Webhook } from "standardwebhooks"
import type { Change } from "../changes/ChangeFeed.ts"

export interface Message {
  /** The header `webhook-id`. */
  readonly id: string
  readonly body: string
}

/** The id of a change. A receiver that has processed it ignores it. */
export const changeId = ({ resume }: Pick<Change, "resume">): string => `chg_${resume.replace("-", "_")}`

const json = (value: unknown): string => JSON.stringify(value)
const digits = (value: bigint | null): string => (value === null ? "null" : value.toString())

const dataOf = (change: Change, company: string | null): string =>
  `{"change":${json(changeId(change))},"position":${change.position},"company":${json(company)},` +
  `"companyId":${change.companyId},"resource":${json(change.resource)},"id":${digits(change.id)},` +
  `"version":${digits(change.version)},"op":${json(change.op)},"before":${change.before ?? "null"},` +
  `"after":${change.after ?? "null"},"changed":${json(change.changed)},"origin":${json(change.origin)},` +
  `"source":${json(change.source)},"landedAt":${json(change.landedAt)}}`

/**
 * The message with these changes, at least one. `companies` has the names by number. A batch has the type `changes` and
 * a list, also of one change.
 */
export const make = (
  changes: ReadonlyArray<Change>,
  { isBatch, companies }: { readonly isBatch: boolean; readonly companies: ReadonlyMap<bigint, string> }
): Message => {
  const [first, last] = [changes[0]!, changes.at(-1)!]
  const data = changes.map((change) => dataOf(change, companies.get(change.companyId) ?? null))
  const type = isBatch ? "changes" : `${first.resource}.${first.op}`
  const hash = () => createHash("sha256").update(changes.map(changeId).join()).digest("hex").slice(0, 16)
  return {
    id: changes.length === 1 ? changeId(first) : `chgs_${first.position}_${changes.length}_${hash()}`,
    body: `{"type":${json(type)},"timestamp":${json(last.landedAt)},"data":${isBatch ? `[${data.join()}]` : data[0]}}`
  }
}

/** The headers of a message, with a signature of each secret. */
export const headersOf = (
  { id, body }: Message,
  secrets: ReadonlyArray<Redacted.Redacted>,
  nowMs: number
): Readonly<Record<string, string>> => {
  const at = new Date(nowMs)
  return {
    "content-type": "application/json",
    "user-agent": "tributary",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(nowMs / 1000)),
    "webhook-signature": secrets.map((secret) => new Webhook(Redacted.value(secret)).sign(id, at, body)).join(" ")
  }
}
