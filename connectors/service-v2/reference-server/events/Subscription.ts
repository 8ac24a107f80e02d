/**
 * A webhook subscription: what it says of itself and what it holds (WEBHOOK-01..WEBHOOK-11).
 *
 * Promise: what is shown never contains `enabled` (WEBHOOK-10) or a secret; the secret is told once, by whoever makes
 * the subscription (SIG-06).
 */
import { createHash } from "node:crypto"
import type { Dialect } from "../http/dialect.ts"
import type { Token } from "../http/tokens.ts"
import type { Random } from "../random.ts"
import { printInstant } from "../time.ts"
import type { Waiting } from "./Occurrence.ts"

export interface Subscription {
  readonly id: number
  /** The token that made it; nobody else sees it (H-04). */
  readonly owner: Token
  url: string
  events: ReadonlyArray<string>
  description: string | null
  paused: boolean
  /** Failed attempts in a row (H-06). */
  failcount: number
  /** Microseconds of the last delivery that was acknowledged; null before the first. */
  lastDelivery: number | null
  /** When delivery was given up; null while it is enabled. */
  disabled: number | null
  cancelled: boolean
  secret: string
  /** The secret before the last rotation, and until when it signs too. */
  previous: { readonly secret: string; readonly until: number } | null
  /** Events that wait for delivery, oldest first. */
  queue: Array<Waiting>
}

/** `whsec_` and 32 bytes in base64url (H-09), drawn as tokens are. */
export const newSecret = (random: Random): string => `whsec_${Buffer.from(random.hex(64), "hex").toString("base64url")}`

/** The secrets that sign at a time, the newest first. */
export const secretsAt = ({ secret, previous }: Subscription, now: number): ReadonlyArray<string> =>
  previous !== null && now < previous.until ? [secret, previous.secret] : [secret]

/** Whether events that fire are kept for it (DLV-11). */
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

/** The ETag of what is shown (B-01). */
export const etagOf = (text: string): string => `"w${createHash("sha256").update(text).digest("hex").slice(0, 20)}"`
