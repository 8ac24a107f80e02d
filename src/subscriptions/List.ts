/** The subscriptions at the source, joined with what the warehouse stores about them. */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Subscription } from "../connector/Subscriptions.ts"
import { takeSnapshot, webhooksOf } from "./ChangeSubscription.ts"
import * as HookUrl from "./HookUrl.ts"
import { SigningSecrets } from "./SigningSecrets.ts"
import type { DesiredSubscription, SubscribeError, Subscriber } from "./SubscriptionError.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"

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

export const list = Effect.fn("Subscriptions.list")(function* (
  company: Subscriber,
  wanted: DesiredSubscription
): Effect.fn.Return<ReadonlyArray<Listing>, SubscribeError, SigningSecrets | SqlClient.SqlClient> {
  const source = yield* webhooksOf(company)
  const secrets = yield* SigningSecrets
  const { listed, seen } = yield* takeSnapshot(company, source, wanted)
  const storedSecrets = yield* secrets.stored(company.name)
  const isConfigured = secrets.configured(company.name) > 0
  return listed.map((subscription): Listing => {
    const stored = storedSecrets.get(subscription.id)
    const row = seen.find(({ id }) => id === subscription.id)
    const isReadable = stored !== undefined && (stored.state === "stored" || stored.next !== null)
    const isAtOurAddress = HookUrl.isOurs(company.name, wanted.url, subscription.url)
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
