/**
 * The command that makes the subscriptions of a company match {@link actionsFor | the desired state}.
 *
 * Promise: it may be repeated, and a process may stop anywhere. A subscription that matches is not changed.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription } from "../connector/Subscriptions.ts"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import {
  type Action,
  actionsFor,
  changeTo,
  describeChange,
  descriptionOf,
  isOurs,
  select,
  undeliverableEvents
} from "./DesiredState.ts"
import {
  did,
  joined,
  locked,
  type Managed,
  nothing,
  type StepResult,
  takeSnapshot,
  takeSnapshotAfter,
  warned,
  withoutUnknownEvents
} from "./ManagedSubscriptions.ts"
import { applySecretAction, isFinal, isLastUnauthorized } from "./Rotate.ts"
import { SigningSecrets } from "./SigningSecrets.ts"
import {
  type DesiredSubscription,
  noAddress,
  type SubscribeError,
  type SubscribeNeeds,
  type Subscriber,
  subscriptionNotFound
} from "./SubscriptionError.ts"
import type * as SubscriptionStore from "./SubscriptionStore.ts"

export interface EnsureReport extends StepResult {
  readonly company: string
  /** The subscription that delivers to us, in its present state. */
  readonly subscription: Subscription
  /** Wanted events that the source does not know. */
  readonly refused: ReadonlyArray<string>
  /** The stored rows of our subscriptions. */
  readonly seen: ReadonlyArray<SubscriptionStore.SubscriptionRow>
}

/** The result of an action; with the subscription that delivers to us, where it was created or changed. */
type ActionResult = StepResult & Partial<Pick<EnsureReport, "subscription" | "refused">>

type Desired = DesiredSubscription & { readonly url: string }

/** Creates a subscription and stores its secret, uninterruptibly. When the secret cannot be stored, it is cancelled. */
export const createWithSecret = (
  { name, source, desired }: Managed,
  request: { readonly url: string; readonly events: ReadonlyArray<string>; readonly description: string }
): Effect.Effect<Subscription, SourceError | DatabaseError, SigningSecrets> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const secrets = yield* SigningSecrets
      const { subscription, secret } = yield* restore(source.create(request))
      if (!isOurs(name, desired.url, request.url)) return subscription
      yield* secrets
        .store(name, subscription.id, secret, "current")
        .pipe(Effect.tapError(() => Effect.ignore(source.cancel(subscription.id))))
      return subscription
    })
  )

/** Creates or changes the subscription that delivers to us. */
const deliver = Effect.fnUntraced(function* (subscriptions: Managed, { url, events }: Desired, kept?: Subscription) {
  const { name, source } = subscriptions
  const { subscription, refused } = yield* withoutUnknownEvents(subscriptions, events, (known) => {
    if (kept === undefined)
      return createWithSecret(subscriptions, { url, events: known, description: descriptionOf(name) })
    const change = changeTo(kept, { url, events: known })
    return change === null ? Effect.succeed(kept) : source.update(kept.id, change)
  })
  const { id } = subscription
  if (kept === undefined)
    return { ...did("created", id, `${url}: ${subscription.events.join(", ")}`), subscription, refused }
  const change = changeTo(kept, { url, events: events.filter((event) => !refused.includes(event)) })
  return { ...(change === null ? nothing : did("changed", id, describeChange(kept, change))), subscription, refused }
})

/** Cancels another subscription at our address. If the source refuses that, it delivers twice. */
const cancelDuplicate = Effect.fnUntraced(function* (
  { source }: Managed,
  { id, paused }: Subscription,
  reason: string
) {
  const result = yield* Effect.result(source.cancel(id))
  if (result._tag === "Success") {
    if (result.success.cancelled) return did("cancelled", id, reason)
    return paused ? nothing : did("paused", id, reason)
  }
  const error = result.failure
  if (!isFinal(error) && error.reason._tag !== "Forbidden") return yield* error
  return warned(`subscription ${id} delivers the same events a second time: ${error.message}`)
})

/** Takes an action. */
const apply = (subscriptions: Managed, desired: Desired, action: Action) => {
  switch (action._tag) {
    case "Create":
      return deliver(subscriptions, desired)
    case "Change":
      return deliver(subscriptions, desired, action.subscription)
    case "Cancel":
      return cancelDuplicate(subscriptions, action.subscription, action.reason)
    default:
      return applySecretAction(subscriptions, action)
  }
}

/** The subscriptions that the warehouse stores for other companies, among the listed ones. */
const readOfOthers = (company: string, listed: ReadonlyArray<Subscription>) =>
  Query.run(
    control
      .selectFrom("tributary.subscriptions")
      .select(["subscription_id as id", "url", "company"])
      .where("company", "<>", company)
      .where("subscription_id", "=", Query.anyOf(listed.map(({ id }) => id)))
  )

/** Warnings for events that the source never sends, since the token may not read them. */
const warnUndeliverable = ({ connector, source }: Managed, events: ReadonlyArray<string>) =>
  connector.identify.pipe(
    Effect.map(({ scopes }) =>
      [...undeliverableEvents(connector.catalogue, source, scopes, events)].map(
        ([event, scope]) =>
          `${event} is subscribed to, but the token lacks the scope ${scope}, so that the source never sends it`
      )
    ),
    // The source has answered before: a failure here does not stop the command.
    Effect.orElseSucceed((): ReadonlyArray<string> => [])
  )

const ensureLocked = Effect.fnUntraced(function* (subscriptions: Managed, desired: Desired) {
  const { name, source } = subscriptions
  const secrets = yield* SigningSecrets
  const before = yield* takeSnapshot(subscriptions)
  const { listed } = before
  yield* secrets.retire(
    name,
    listed.map(({ id }) => id),
    source.secretOverlap
  )
  const state = { name, listed, secrets: yield* secrets.stored(name) }
  const { kept } = select(state, desired.url)
  const actions = actionsFor(desired, {
    ...state,
    isConfigured: secrets.configured(name) > 0,
    isUnauthorized: kept !== undefined && (yield* isLastUnauthorized(source, kept)),
    ofOthers: kept === undefined ? yield* readOfOthers(name, listed) : []
  })
  const results: ReadonlyArray<ActionResult> = yield* Effect.forEach(actions, (action) =>
    apply(subscriptions, desired, action)
  )
  const { deeds, warnings } = joined(results)
  const { subscription: delivering = kept!, refused = [] } = results.find((one) => one.subscription !== undefined) ?? {}

  const known = desired.events.filter((event) => !refused.includes(event))
  const isUnchanged = deeds.length === 0 && refused.length === 0
  const unknown = refused.length > 0 ? [`the source does not know ${refused.join(", ")}: left out`] : []
  const undeliverable = yield* warnUndeliverable(subscriptions, known)
  const after = isUnchanged ? before : yield* takeSnapshotAfter(subscriptions, refused)
  const { id } = delivering
  const subscription = after === null ? delivering : after.listed.find((one) => one.id === id)
  if (subscription === undefined) return yield* subscriptionNotFound(name, id)
  return {
    company: name,
    subscription,
    deeds,
    warnings: [...warnings, ...unknown, ...undeliverable],
    refused,
    seen: (after ?? before).seen
  }
})

export const ensure = Effect.fn("Subscriptions.ensure")(function* (
  company: Subscriber,
  desired: DesiredSubscription
): Effect.fn.Return<EnsureReport, SubscribeError, SubscribeNeeds> {
  const { url } = desired
  return yield* locked(company, desired, (subscriptions) =>
    url === null ? noAddress(company.name) : ensureLocked(subscriptions, { ...desired, url })
  )
})
