/**
 * What a connector must do with a source's webhook subscriptions.
 *
 * Promise: a secret is `Redacted` from the moment it is read; a write that was answered or not may be repeated with the
 * same arguments: nothing is created twice by a retry within one call.
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
  /** Events that fire meanwhile are dropped. */
  readonly paused: boolean
  /** Consecutive failed deliveries; null when the source does not tell. */
  readonly failCount: number | null
  /** RFC 3339 in UTC as sent; null when there was none. */
  readonly lastDeliveryAt: string | null
  /** When the source gave delivering up, as sent; null when it did not. */
  readonly disabledAt: string | null
  readonly cancelled: boolean
}

/** A subscription that was just made. */
export interface Created {
  readonly subscription: Subscription
  /** Shown this once. */
  readonly secret: Redacted.Redacted
}

export interface SubscriptionChange {
  readonly url?: string
  readonly events?: ReadonlyArray<string>
  readonly description?: string
  readonly paused?: boolean
  /** True revives a disabled subscription. */
  readonly enabled?: true
  /** Begins a rotation: the source signs with both for a while. */
  readonly secret?: Redacted.Redacted
}

/** How a test delivery went. */
export interface TestResult {
  readonly eventId: string | null
  /** Null when no answer arrived, or the source does not tell. */
  readonly responseCode: number | null
  readonly responseBody: string | null
  readonly durationMs: number | null
  readonly delivered: boolean
  /** The source says that no answer arrived; where it is false, a status that is missing is not known. */
  readonly isSilent: boolean
  /** The answer as it was sent, for people. */
  readonly raw: string
}

const rawMax = 500

/** What became of a test delivery, for people: in the source's own words where it names no status. */
export const describeAnswer = ({ responseCode, isSilent, raw }: TestResult): string =>
  responseCode !== null
    ? `the receiver answered ${responseCode}`
    : isSilent
      ? "no answer arrived"
      : `the source names no status: ${raw.slice(0, rawMax)}`

/** One entry of the delivery log. */
export interface Attempt {
  readonly eventId: string
  readonly eventType: string
  /** The resource that the type is about; null when it is about none. */
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
  /** The mark of the page as the page before gave it; null is the first page. */
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
  /** How long the source signs with the earlier secret too, after a rotation. */
  readonly secretOverlap: Duration.Duration
  /** Whether an event of the type may tell of a record that is removed without trace: only reading every record shows it. */
  readonly mayRemove: (eventType: string) => boolean
  /** Those of the token that are not cancelled. */
  readonly list: Effect.Effect<ReadonlyArray<Subscription>, SourceError>
  /** Null when the token has none of that number. */
  readonly get: (id: string) => Effect.Effect<Subscription | null, SourceError>
  readonly create: (given: {
    readonly url: string
    readonly events: ReadonlyArray<string>
    readonly description: string
  }) => Effect.Effect<Created, SourceError>
  readonly update: (id: string, change: SubscriptionChange) => Effect.Effect<Subscription, SourceError>
  /** Final. Where the source offers no cancelling, the subscription is paused. */
  readonly cancel: (id: string) => Effect.Effect<Subscription, SourceError>
  /** Has the source deliver a test event now, and waits for how that went. */
  readonly test: (id: string) => Effect.Effect<TestResult, SourceError>
  readonly deliveries: (request: LogRequest) => Effect.Effect<LogPage, SourceError>
}
