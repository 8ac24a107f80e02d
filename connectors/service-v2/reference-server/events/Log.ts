/**
 * Every delivery attempt.
 *
 * Promise: a subscription's log shows one entry per attempt (H-17) until it is purged: 7 days after its event was
 * delivered, 30 days after it was abandoned or dropped (DLV-15, H-26), by the server's clock. The record for the control
 * plane forgets nothing but the oldest beyond 100,000.
 */
import { limits } from "../../catalogue/limits.ts"
import { microsPerDay, printInstant } from "../time.ts"
import type { Outcome } from "./Network.ts"
import type { Waiting } from "./Occurrence.ts"

const keptMax = 100_000

export interface Attempt {
  /** Counts attempts of the server. */
  readonly seq: number
  readonly subscriptionId: number
  readonly event: Waiting
  /** From 1 (SIG-04). */
  readonly attempt: number
  /** When it began, in microseconds. */
  readonly at: number
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly outcome: Outcome
  readonly delivered: boolean
  /** Whether the event's attempts were used up by this one. */
  readonly abandoned: boolean
}

/** Any 2xx acknowledges (DLV-01). */
export const isAcknowledged = ({ status }: Outcome): boolean => status !== null && status >= 200 && status < 300

/** What is shown of a receiver's answer; a character that the cut split is left out. */
export const answerText = ({ body }: Outcome): string => new TextDecoder().decode(body, { stream: true })

const isPurged = ({ event: { state, settled } }: Attempt, now: number): boolean => {
  if (settled === null) return false
  const days = state === "delivered" ? limits.webhookDeliveredDays : limits.webhookAbandonedDays
  return now - settled >= days * microsPerDay
}

export class Log {
  private attempts: Array<Attempt> = []
  private readonly bySubscription = new Map<number, Array<Attempt>>()
  private seq = 0

  add(attempt: Omit<Attempt, "seq">): Attempt {
    const entry = { ...attempt, seq: ++this.seq }
    this.attempts.push(entry)
    if (this.attempts.length > keptMax * 1.1) this.attempts = this.attempts.slice(-keptMax)
    const own = this.bySubscription.get(attempt.subscriptionId)
    if (own === undefined) this.bySubscription.set(attempt.subscriptionId, [entry])
    else own.push(entry)
    return entry
  }

  /** Everything, oldest first. */
  all(): ReadonlyArray<Attempt> {
    return this.attempts
  }

  /** What is kept of one subscription, newest first. */
  of(subscriptionId: number, now: number): ReadonlyArray<Attempt> {
    const kept = (this.bySubscription.get(subscriptionId) ?? []).filter((attempt) => !isPurged(attempt, now))
    this.bySubscription.set(subscriptionId, kept)
    return kept.toReversed()
  }

  purge(now: number): void {
    for (const id of this.bySubscription.keys()) this.of(id, now)
  }
}

/** An attempt as the control plane tells it. */
export const printAttempt = (attempt: Attempt): string => {
  const { outcome, event } = attempt
  return JSON.stringify({
    webhookid: attempt.subscriptionId,
    eventid: event.occurrence.id,
    eventtype: event.occurrence.type,
    attempt: attempt.attempt,
    at: printInstant(attempt.at),
    url: attempt.url,
    headers: attempt.headers,
    body: Buffer.from(event.occurrence.body).toString("base64"),
    delivered: attempt.delivered,
    abandoned: attempt.abandoned,
    responsecode: outcome.status,
    responsebody: answerText(outcome),
    durationms: outcome.durationms,
    failure: outcome.failure
  })
}
