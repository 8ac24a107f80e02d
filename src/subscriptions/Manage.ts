/** Changes of one subscription by a person: pause, resume, remove, test. */
import * as Effect from "effect/Effect"
import { testErrorOf } from "../connector/Subscriptions.ts"
import { changeSubscription, changeTo, findSubscription, webhooksOf } from "./ChangeSubscription.ts"
import { SigningSecrets } from "./SigningSecrets.ts"
import type { DesiredSubscription, Subscriber } from "./SubscriptionError.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"

/** Pauses a subscription: the source drops the events that fire from now on. */
export const pause = (company: Subscriber, wanted: DesiredSubscription, id: string | null) =>
  changeSubscription(company, wanted, id, (source, subscription) =>
    subscription.paused ? Effect.succeed(subscription) : source.update(subscription.id, { paused: true })
  ).pipe(Effect.withSpan("Subscriptions.pause"))

/** Makes a paused or disabled subscription deliver again. */
export const resume = (company: Subscriber, wanted: DesiredSubscription, id: string | null) =>
  changeSubscription(company, wanted, id, (source, subscription) => {
    const change = changeTo(subscription, subscription)
    return Object.keys(change).length === 0 ? Effect.succeed(subscription) : source.update(subscription.id, change)
  }).pipe(Effect.withSpan("Subscriptions.resume"))

/** Cancels a subscription and deletes its secrets. */
export const remove = (company: Subscriber, wanted: DesiredSubscription, id: string) =>
  changeSubscription(company, wanted, id, (source, subscription) =>
    Effect.gen(function* () {
      const removed = yield* source.cancel(subscription.id)
      // A source that cannot cancel has paused it. A person can resume it there, and its secret stays the same.
      if (removed.cancelled) yield* (yield* SigningSecrets).forget(company.name, subscription.id)
      return removed
    })
  ).pipe(Effect.withSpan("Subscriptions.remove"))

/** Makes the source send a test event, and stores the result. */
export const test = Effect.fn("Subscriptions.test")(function* (
  company: Subscriber,
  wanted: DesiredSubscription,
  id: string | null
) {
  const source = yield* webhooksOf(company)
  const subscription = yield* findSubscription(company, source, wanted, id)
  const result = yield* source.test(subscription.id)
  yield* SubscriptionStore.recordTest(company.name, subscription, testErrorOf(result))
  return { subscription, result }
})
