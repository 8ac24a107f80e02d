/**
 * A webhook subscription: its shown members and its state (WEBHOOK-01..WEBHOOK-11).
 *
 * Promise: answers never show `enabled` (WEBHOOK-10) or a secret. Only the answer that creates the subscription shows
 * the secret (SIG-06).
 */
import { createHash } from "node:crypto"
import type { Dialect } from "../http/dialect.ts"
import type { Token } from "../http/tokens.ts"
import type { Random } from "../random.ts"
import { printInstant } from "../time.ts"
import type { Waiting } from "./Occurrence.ts"

export interface Subscription {
  readonly id: number
  /** The token that created it; other tokens do not see it (H-04). */
  readonly owner: Token
  url: string
  events: ReadonlyArray<string>
  description: string | null
  paused: boolean
  /** Consecutive failed attempts (H-06). */
  failcount: number
  /** Microseconds of the last acknowledged delivery; null before the first. */
  lastDelivery: number | null
  /** Time at which it was disabled; null while it is enabled. */
  disabled: number | null
  cancelled: boolean
  secret: string
  /** The secret before the last rotation, and the time until which it signs too. */
  previous: { readonly secret: string; readonly until: number } | null
  /** Events waiting for delivery, oldest first. */
  queue: Array<Waiting>
}

/** `whsec_` and 32 random bytes in base64url (H-09), generated as tokens are. */
export const newSecret = (random: Random): string => `whsec_${Buffer.from(random.hex(64), "hex").toString("base64url")}`

/** The secrets that sign at a time, newest first. */
export const secretsAt = ({ secret, previous }: Subscription, now: number): ReadonlyArray<string> =>
  previous !== null && now < previous.until ? [secret, previous.secret] : [secret]

/** Whether fired events are queued for it (DLV-11). */
export const isListening = ({ paused, disabled, cancelled }: Subscription): boolean =>
  !paused && disabled === null && !cancelled

/** A time as answers show it. */
export const shownInstant = (micros: number | null, { dateForm }: Dialect): string | null => {
  if (micros === null) return null
  const text = printInstant(micros)
  return dateForm === "seconds" ? text.replace(/\.\d+Z$/, "Z") : text
}

/** The members of the object, in the order of the document. */
export const shown = (subscription: Subscription, dialect: Dialect): Readonly<Record<string, unknown>> => ({
  id: subscription.id,
  url: subscription.url,
  events: subscription.events,
  description: subscription.description,
  paused: subscription.paused,
  failcount: subscription.failcount,
  lastdeliverydate: shownInstant(subscription.lastDelivery, dialect),
  disableddate: shownInstant(subscription.disabled, dialect),
  cancel: subscription.cancelled
})

/** The ETag of a shown text (B-01). */
export const etagOf = (text: string): string => `"w${createHash("sha256").update(text).digest("hex").slice(0, 20)}"`
