/** The subscriptions at the source: the operations that commands and pages offer. */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { type Subscription, testErrorOf } from "../connector/Subscriptions.ts"
import { changeTo, isOurs, isSameAddress } from "./DesiredState.ts"
import {
  changeOne,
  find,
  locked,
  type Managed,
  managed,
  takeSnapshot,
  takeSnapshotAfter,
  withoutUnknownEvents
} from "./ManagedSubscriptions.ts"
import { createWithSecret } from "./Ensure.ts"
import { SigningSecrets } from "./SigningSecrets.ts"
import {
  commandFor,
  type DesiredSubscription,
  noAddress,
  type SubscribeError,
  type SubscribeNeeds,
  type Subscriber,
  SubscriptionError
} from "./SubscriptionError.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"

export { descriptionOf } from "./DesiredState.ts"
export { ensure, type EnsureReport } from "./Ensure.ts"
export { deliveries, type LogFilter } from "./ListDeliveries.ts"
export { type Change } from "./ManagedSubscriptions.ts"
export { rotate } from "./Rotate.ts"
export {
  type ChangeNeeds,
  type DesiredSubscription,
  type ProblemKind,
  type SubscribeError,
  type SubscribeNeeds,
  type Subscriber,
  SubscriptionError
} from "./SubscriptionError.ts"

export interface Listing {
  readonly subscription: Subscription
  readonly state: SubscriptionStore.SubscriptionState
  /** What is proved about its deliveries. */
  readonly delivery: SubscriptionStore.DeliveryState
  /** Whether its address is ours, or may be. */
  readonly isAtOurAddress: boolean
  /** Whether it delivers to us: its address is ours, and this warehouse knows its secret. */
  readonly ours: boolean
  /** The secret by which its deliveries are verified: stored, configured, stored but unreadable, or none. */
  readonly secret: "stored" | "configured" | "unreadable" | "none"
  /** Wanted events that it does not deliver; empty when it is not ours. */
  readonly missingEvents: ReadonlyArray<string>
  /** It dropped no event that fired before this; null when it was never healthy, or is not ours. */
  readonly healthyAt: string | null
  /** The last test delivery that was stored. */
  readonly lastTest: SubscriptionStore.LastTest
}

/** The subscriptions at the source, joined with what the warehouse stores about them. */
export const list = Effect.fn("Subscriptions.list")(function* (
  company: Subscriber,
  desired: DesiredSubscription
): Effect.fn.Return<ReadonlyArray<Listing>, SubscribeError, SigningSecrets | SqlClient.SqlClient> {
  const { listed, seen } = yield* Effect.flatMap(managed(company, desired), takeSnapshot)
  const secrets = yield* SigningSecrets
  const storedSecrets = yield* secrets.stored(company.name)
  const isConfigured = secrets.configured(company.name) > 0
  return listed.map((subscription): Listing => {
    const stored = storedSecrets.get(subscription.id)
    const row = seen.find(({ id }) => id === subscription.id)
    const isReadable = stored !== undefined && (stored.state === "stored" || stored.next !== null)
    const isAtOurAddress = isOurs(company.name, desired.url, subscription.url)
    const ours = isAtOurAddress && (isReadable || isConfigured)
    const state = SubscriptionStore.stateOf(subscription)
    const { testedAt, testError, testedAfter } = row ?? SubscriptionStore.neverTested
    const lastTest = { testedAt, testError, testedAfter }
    return {
      subscription,
      state,
      delivery: SubscriptionStore.deliveryStateOf({ ...lastTest, ...subscription, state }),
      isAtOurAddress,
      ours,
      secret: isReadable ? "stored" : ours ? "configured" : stored === undefined ? "none" : "unreadable",
      missingEvents: ours ? (row?.missingEvents ?? []) : [],
      healthyAt: ours ? (row?.healthyAt ?? null) : null,
      lastTest
    }
  })
})

const alreadyExists = ({ name, desired }: Managed, { id, url, paused }: Subscription) =>
  new SubscriptionError({
    kind: "exists",
    company: name,
    detail: `subscription ${id} is for ${url} already${paused ? ", and paused" : ""}`,
    remedy: isOurs(name, desired.url, url)
      ? `${commandFor(name, "ensure")} changes the subscription of this company`
      : paused
        ? `${commandFor(name, `resume ${id}`)} resumes it`
        : `${commandFor(name, `delete ${id}`)} deletes it, if the source offers that`
  })

/** Creates a subscription at the request of a person. There is at most one at an address. */
export const create = Effect.fn("Subscriptions.create")(function* (
  company: Subscriber,
  desired: DesiredSubscription,
  request: { readonly url: string | null; readonly events: ReadonlyArray<string>; readonly description: string }
): Effect.fn.Return<
  {
    readonly subscription: Subscription
    readonly refused: ReadonlyArray<string>
    /** Whether it delivers to us, so that its secret is stored here. */
    readonly ours: boolean
  },
  SubscribeError,
  SubscribeNeeds
> {
  const { url, description } = request
  return yield* locked(
    company,
    desired,
    Effect.fnUntraced(function* (subscriptions) {
      if (url === null) return yield* noAddress(company.name)
      const { listed } = yield* takeSnapshot(subscriptions)
      const existing = listed.find((one) => isSameAddress(one.url, url))
      if (existing !== undefined) return yield* alreadyExists(subscriptions, { ...existing, url })
      const { subscription, refused } = yield* withoutUnknownEvents(subscriptions, request.events, (events) =>
        createWithSecret(subscriptions, { url, events, description })
      )
      const ours = isOurs(company.name, desired.url, url)
      yield* takeSnapshotAfter(subscriptions, ours ? refused : null)
      return { subscription, refused, ours }
    })
  )
})

/** Pauses a subscription: the source drops the events that fire from now on. */
export const pause = (company: Subscriber, desired: DesiredSubscription, id: string | null) =>
  changeOne(company, desired, id, ({ source }, one) =>
    one.paused ? Effect.succeed(one) : source.update(one.id, { paused: true })
  ).pipe(Effect.withSpan("Subscriptions.pause"))

/** Makes a paused or disabled subscription deliver again. */
export const resume = (company: Subscriber, desired: DesiredSubscription, id: string | null) =>
  changeOne(company, desired, id, ({ source }, one) => {
    const change = changeTo(one)
    return change === null ? Effect.succeed(one) : source.update(one.id, change)
  }).pipe(Effect.withSpan("Subscriptions.resume"))

/** Cancels a subscription and deletes its secrets. */
export const remove = (company: Subscriber, desired: DesiredSubscription, id: string) =>
  changeOne(
    company,
    desired,
    id,
    Effect.fnUntraced(function* ({ name, source }, one) {
      const removed = yield* source.cancel(one.id)
      // A source that cannot cancel has paused it. A person can resume it there, and its secret stays the same.
      if (removed.cancelled) yield* (yield* SigningSecrets).forget(name, one.id)
      return removed
    })
  ).pipe(Effect.withSpan("Subscriptions.remove"))

/** Makes the source send a test event, and stores the result. */
export const test = Effect.fn("Subscriptions.test")(function* (
  company: Subscriber,
  desired: DesiredSubscription,
  id: string | null
) {
  const subscriptions = yield* managed(company, desired)
  const subscription = yield* find(subscriptions, id)
  const result = yield* subscriptions.source.test(subscription.id)
  yield* SubscriptionStore.recordTest(company.name, subscription, testErrorOf(result))
  return { subscription, result }
})
