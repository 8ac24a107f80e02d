/**
 * The contract of webhook subscriptions, their delivery log and their limits.
 *
 * Promise: a secret is `Redacted` from the moment it is read. A retry within one call creates nothing twice.
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { SourceError } from "./SourceError.ts"

export interface Subscription {
  readonly id: string
  readonly url: string
  readonly events: ReadonlyArray<string>
  readonly description: string | null
  /** While true, the source drops the events that fire. */
  readonly paused: boolean
  /** Consecutive failed deliveries; null when the source does not report them. */
  readonly failCount: number | null
  /** RFC 3339 in UTC as sent; null when there was none. */
  readonly lastDeliveryAt: string | null
  /** When the source disabled it, as sent; null when it did not. */
  readonly disabledAt: string | null
  readonly cancelled: boolean
}

/** A new subscription with its secret. */
export interface CreatedSubscription {
  readonly subscription: Subscription
  /** The source shows it once. */
  readonly secret: Redacted.Redacted
}

export interface SubscriptionChange {
  readonly url?: string
  readonly events?: ReadonlyArray<string>
  readonly description?: string
  readonly paused?: boolean
  /** Enables a disabled subscription again. */
  readonly enabled?: true
  /** Begins a rotation: the source signs with both for a while. */
  readonly secret?: Redacted.Redacted
}

/** The result of a test delivery. */
export interface TestResult {
  readonly eventId: string | null
  /** Null when no answer arrived, or the source does not report it. */
  readonly responseCode: number | null
  readonly responseBody: string | null
  readonly durationMs: number | null
  readonly delivered: boolean
  /** Whether the source reports that no answer arrived; if false, a missing status is unknown. */
  readonly isSilent: boolean
  /** The answer as it was sent, for people. */
  readonly raw: string
}

const rawMax = 500

/** A test delivery for people; the answer of the source where it names no status. */
export const describeAnswer = ({ responseCode, isSilent, raw }: TestResult): string =>
  responseCode !== null
    ? `the receiver answered ${responseCode}`
    : isSilent
      ? "no answer arrived"
      : `the source names no status: ${raw.slice(0, rawMax)}`

/** Why a test delivery did not arrive, for people; null where it arrived. */
export const testErrorOf = (result: TestResult): string | null => (result.delivered ? null : describeAnswer(result))

/** One entry of the delivery log. */
export interface Attempt {
  readonly eventId: string
  readonly eventType: string
  /** The resource that the type is about; null for none. */
  readonly resource: string | null
  readonly attempts: number
  readonly delivered: boolean
  readonly abandoned: boolean
  readonly responseCode: number | null
  /** Whether the source disables the subscription at this answer. */
  readonly disables: boolean
  readonly responseBody: string
  readonly durationMs: number | null
  /** As sent. */
  readonly at: string
}

export interface LogRequest {
  readonly id: string
  readonly delivered?: boolean
  readonly abandoned?: boolean
  readonly eventType?: string
  /** {@link LogPage.next} of the page before; null is the first page. */
  readonly token: string | null
}

/** A page of the delivery log, newest first. */
export interface LogPage {
  readonly attempts: ReadonlyArray<Attempt>
  readonly next: string | null
}

export interface Subscriptions {
  /** The resource that events of the type are about, whether the catalogue has it or not; null for none. */
  readonly resourceOf: (eventType: string) => string | null
  /** Which of the events that were sent the refusal calls unknown. */
  readonly unknownEvents: (error: SourceError, sent: ReadonlyArray<string>) => ReadonlyArray<string>
  /** How long a delivered event stays in the delivery log. */
  readonly logRetention: Duration.Duration
  /** The longest time between two attempts to deliver an event; after it, the source has dropped the event. */
  readonly attemptDelayMax: Duration.Duration
  /** The longest time from a change to the delivery of its event, while no delivery fails. */
  readonly deliveryDelayMax: Duration.Duration
  /** The events that together announce every change of a resource; empty where none do. */
  readonly announcing: (resource: string) => ReadonlyArray<string>
  /** How long the source signs with the earlier secret too, after a rotation. */
  readonly secretOverlap: Duration.Duration
  /** Whether an event of the type may be about a removal that only a full scan shows. */
  readonly mayRemove: (eventType: string) => boolean
  /** The subscriptions of the token that are not cancelled. */
  readonly list: Effect.Effect<ReadonlyArray<Subscription>, SourceError>
  /** Null when the token has no such subscription. */
  readonly get: (id: string) => Effect.Effect<Subscription | null, SourceError>
  readonly create: (given: {
    readonly url: string
    readonly events: ReadonlyArray<string>
    readonly description: string
    /** Default false. */
    readonly paused?: boolean
  }) => Effect.Effect<CreatedSubscription, SourceError>
  readonly update: (id: string, change: SubscriptionChange) => Effect.Effect<Subscription, SourceError>
  /** Final. Where the source offers no cancelling, the subscription is paused. */
  readonly cancel: (id: string) => Effect.Effect<Subscription, SourceError>
  /** Requests a test delivery and waits for its result. */
  readonly test: (id: string) => Effect.Effect<TestResult, SourceError>
  readonly deliveries: (request: LogRequest) => Effect.Effect<LogPage, SourceError>
}
