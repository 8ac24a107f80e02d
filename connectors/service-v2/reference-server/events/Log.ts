/**
 * The log of delivery attempts.
 *
 * Promise: a subscription's log shows one entry per attempt (H-17) until it is purged: 7 days after its event was
 * delivered, 30 days after it was abandoned or dropped (DLV-15, H-26), by the server's clock. The log for the control
 * plane keeps the newest 100,000 attempts.
 */
import { limits } from "../../catalogue/limits.ts"
import { microsPerDay, printInstant } from "../time.ts"
import type { Outcome } from "./Network.ts"
import type { Waiting } from "./Occurrence.ts"

const keptMax = 100_000

export interface Attempt {
  /** Number of the attempt on this server. */
  readonly seq: number
  readonly subscriptionId: number
  readonly event: Waiting
  /** From 1 (SIG-04). */
  readonly attempt: number
  /** Start of the attempt, in microseconds. */
  readonly at: number
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly outcome: Outcome
  readonly delivered: boolean
  /** Whether this attempt was the event's last one. */
  readonly abandoned: boolean
}

/** Any 2xx acknowledges (DLV-01). */
export const isAcknowledged = ({ status }: Outcome): boolean => status !== null && status >= 200 && status < 300

/** The shown part of a receiver's answer, without a character that the cut split. */
export const answerText = ({ body }: Outcome): string => new TextDecoder().decode(body, { stream: true })

const isPurged = ({ event: { state, settled } }: Attempt, now: number): boolean => {
  if (settled === null) return false
  const days = state === "delivered" ? limits.webhookDeliveredDays : limits.webhookAbandonedDays
  return now - settled >= days * microsPerDay
}

/** An attempt with the logs that have it. */
export interface LoggedAttempt {
  readonly attempt: Attempt
  /** Whether the control plane shows it. */
  readonly server: boolean
  /** Whether its subscription shows it. */
  readonly subscription: boolean
}

export interface LogState {
  /** In the order of their numbers. */
  readonly attempts: ReadonlyArray<LoggedAttempt>
  /** The number of the last attempt. */
  readonly seq: number
}

export class Log {
  private attempts: Array<Attempt>
  private readonly bySubscription = new Map<number, Array<Attempt>>()
  private seq: number

  constructor({ attempts, seq }: LogState = { attempts: [], seq: 0 }) {
    this.attempts = attempts.filter(({ server }) => server).map(({ attempt }) => attempt)
    this.seq = seq
    for (const { attempt, subscription } of attempts) if (subscription) this.addToSubscription(attempt)
  }

  state(): LogState {
    const logged = new Map<Attempt, LoggedAttempt>()
    for (const attempt of this.attempts) logged.set(attempt, { attempt, server: true, subscription: false })
    for (const attempt of [...this.bySubscription.values()].flat()) {
      logged.set(attempt, { attempt, server: logged.has(attempt), subscription: true })
    }
    return { attempts: [...logged.values()].sort((a, b) => a.attempt.seq - b.attempt.seq), seq: this.seq }
  }

  add(attempt: Omit<Attempt, "seq">): Attempt {
    const entry = { ...attempt, seq: ++this.seq }
    this.attempts.push(entry)
    if (this.attempts.length > keptMax * 1.1) this.attempts = this.attempts.slice(-keptMax)
    this.addToSubscription(entry)
    return entry
  }

  private addToSubscription(entry: Attempt): void {
    const own = this.bySubscription.get(entry.subscriptionId)
    if (own === undefined) this.bySubscription.set(entry.subscriptionId, [entry])
    else own.push(entry)
  }

  /** All attempts, oldest first. */
  all(): ReadonlyArray<Attempt> {
    return this.attempts
  }

  /** The kept attempts of one subscription, newest first. */
  of(subscriptionId: number, now: number): ReadonlyArray<Attempt> {
    const kept = (this.bySubscription.get(subscriptionId) ?? []).filter((attempt) => !isPurged(attempt, now))
    this.bySubscription.set(subscriptionId, kept)
    return kept.toReversed()
  }

  find(seq: number): Attempt | undefined {
    const first = this.attempts[0]
    return first === undefined ? undefined : this.attempts[seq - first.seq]
  }

  purge(now: number): void {
    for (const id of this.bySubscription.keys()) this.of(id, now)
  }
}

/** An attempt as the control plane shows it. */
export const printAttempt = (attempt: Attempt): string => {
  const { outcome, event } = attempt
  return JSON.stringify({
    delivery: attempt.seq,
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
