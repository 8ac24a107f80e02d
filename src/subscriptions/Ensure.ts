/**
 * The command that makes the subscriptions at our address match the configuration: one, active, with the wanted events and
 * a stored secret.
 *
 * Promise: it may be repeated, and a process may stop anywhere. A paused or disabled subscription is resumed. If there is
 * none at our address, the only one that was ours at another address is moved. A subscription that matches is not changed.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription, SubscriptionChange, Subscriptions } from "../connector/Subscriptions.ts"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import { changeTo, takeSnapshot, takeSnapshotAfter, webhooksOf, withCompanyLock } from "./ChangeSubscription.ts"
import { createWithSecret, descriptionOf } from "./Create.ts"
import * as EventScopes from "./EventScopes.ts"
import * as HookUrl from "./HookUrl.ts"
import { isFinal, isLastUnauthorized, repairSecret } from "./Rotate.ts"
import { type StoredSecrets, SigningSecrets } from "./SigningSecrets.ts"
import {
  commandFor,
  type DesiredSubscription,
  noAddress,
  type SubscribeError,
  type SubscribeNeeds,
  type Subscriber,
  type SubscriptionError,
  subscriptionNotFound
} from "./SubscriptionError.ts"
import type * as SubscriptionStore from "./SubscriptionStore.ts"
import { withoutUnknownEvents } from "./UnknownEvents.ts"

export interface Change {
  readonly did: "created" | "changed" | "rotated" | "cancelled" | "paused"
  readonly id: string
  readonly detail: string
}

export interface EnsureReport {
  readonly company: string
  /** The subscription that delivers to us, in its present state. */
  readonly subscription: Subscription
  /** Empty when nothing had to change. */
  readonly deeds: ReadonlyArray<Change>
  readonly warnings: ReadonlyArray<string>
  /** Wanted events that the source does not know. */
  readonly refused: ReadonlyArray<string>
  /** The stored rows of our subscriptions. */
  readonly seen: ReadonlyArray<SubscriptionStore.SubscriptionRow>
}

/** The result of a step of {@link ensure}. */
type StepResult = Pick<EnsureReport, "deeds" | "warnings">
/** As {@link StepResult}, of the step that makes the one subscription deliver the wanted events. */
type EnsureResult = StepResult & Pick<EnsureReport, "subscription" | "refused">

/** Ids are numbers of any length. */
const byAge = (left: Subscription, right: Subscription): number =>
  left.id.length - right.id.length || (left.id < right.id ? -1 : 1)

/** The subscriptions by their further use. */
interface Selection {
  /** The subscription that stays, or moves to our address; undefined where one must be created. */
  readonly kept: Subscription | undefined
  /** The other subscriptions at our address. */
  readonly duplicates: ReadonlyArray<Subscription>
  /** Subscriptions of ours that still deliver to an earlier address. */
  readonly strays: ReadonlyArray<Subscription>
}

const selectKept = (
  company: string,
  wanted: DesiredSubscription,
  listed: ReadonlyArray<Subscription>,
  stored: ReadonlyMap<string, StoredSecrets>
): Selection => {
  const oldestFirst = listed.toSorted(byAge)
  const ours = oldestFirst.filter((one) => HookUrl.isOurs(company, wanted.url, one.url))
  const hasSecret = ({ id }: Subscription) => stored.get(id)?.state === "stored"
  // Only secrets of ours are stored: a subscription elsewhere that has one was ours at an earlier address.
  const strays = oldestFirst.filter(
    (one) => !ours.includes(one) && (hasSecret(one) || (stored.get(one.id)?.next ?? null) !== null)
  )
  const kept = ours.find(hasSecret) ?? ours[0] ?? (strays.length === 1 ? strays[0] : undefined)
  return { kept, duplicates: ours.filter((one) => one !== kept), strays: strays.filter((one) => one !== kept) }
}

const describeChange = (one: Subscription, change: SubscriptionChange): string =>
  [
    ...(change.url === undefined ? [] : [`delivers to ${change.url} and no longer to ${one.url}`]),
    ...(change.events === undefined
      ? []
      : [
          ...change.events.filter((event) => !one.events.includes(event)).map((event) => `${event} added`),
          ...one.events.filter((event) => !change.events?.includes(event)).map((event) => `${event} removed`)
        ]),
    ...(change.paused === undefined ? [] : ["resumed after a pause"]),
    ...(change.enabled === undefined ? [] : [`re-enabled after it was disabled at ${one.disabledAt ?? ""}`])
  ].join(", ")

const createOurs = Effect.fnUntraced(function* (
  company: Subscriber,
  wanted: DesiredSubscription & { readonly url: string },
  source: Subscriptions,
  listed: ReadonlyArray<Subscription>,
  { strays }: Selection
): Effect.fn.Return<
  EnsureResult,
  SourceError | DatabaseError | SubscriptionError,
  SigningSecrets | SqlClient.SqlClient
> {
  const { url } = wanted
  const description = descriptionOf(company.name)
  const { subscription, refused } = yield* withoutUnknownEvents(company.name, source, wanted.events, (events) =>
    createWithSecret(company, wanted, source, { url, events, description })
  )
  const { id, events } = subscription
  const ofOthers = yield* madeForOthers(company.name, listed)
  return {
    subscription,
    refused,
    deeds: [{ did: "created", id, detail: `${url}: ${events.join(", ")}` }],
    warnings: [
      ...warnStrays(company.name, strays),
      ...ofOthers.flatMap(({ one, madeFor }) => (one.paused ? [] : [warnStray(company.name, one, madeFor)]))
    ]
  }
})

const updateKept = Effect.fnUntraced(function* (
  { name }: Subscriber,
  { url, events }: DesiredSubscription & { readonly url: string },
  source: Subscriptions,
  kept: Subscription,
  stored: StoredSecrets | undefined
): Effect.fn.Return<
  EnsureResult,
  SourceError | DatabaseError | SubscriptionError,
  SigningSecrets | SqlClient.SqlClient
> {
  const { id } = kept
  const isUnauthorized = yield* isLastUnauthorized(source, kept)
  let change: SubscriptionChange = {}
  const { subscription, refused } = yield* withoutUnknownEvents(name, source, events, (known) => {
    change = changeTo(kept, { url, events: known })
    return Object.keys(change).length === 0 ? Effect.succeed(kept) : source.update(id, change)
  })
  const deeds: Array<Change> = []
  if (Object.keys(change).length > 0) deeds.push({ did: "changed", id, detail: describeChange(kept, change) })
  const { rotated, warnings } = yield* repairSecret(name, source, kept, stored, isUnauthorized)
  if (rotated !== null) deeds.push({ did: "rotated", id, detail: rotated })
  return { subscription, refused, deeds, warnings }
})

/** Cancels another subscription at our address. If the source refuses that, it delivers twice. */
const cancelDuplicate = Effect.fnUntraced(function* (
  source: Subscriptions,
  kept: Subscription,
  { id, paused }: Subscription
): Effect.fn.Return<StepResult, SourceError> {
  const detail = `subscription ${kept.id} delivers to the same address`
  const result = yield* Effect.result(source.cancel(id))
  if (result._tag === "Success") {
    if (result.success.cancelled) return { deeds: [{ did: "cancelled", id, detail }], warnings: [] }
    return { deeds: paused ? [] : [{ did: "paused", id, detail }], warnings: [] }
  }
  const error = result.failure
  if (!isFinal(error) && error.reason._tag !== "Forbidden") return yield* error
  return { deeds: [], warnings: [`subscription ${id} delivers the same events a second time: ${error.message}`] }
})

/** The subscriptions that the warehouse stores for another company, with that company. */
const madeForOthers = Effect.fnUntraced(function* (company: string, listed: ReadonlyArray<Subscription>) {
  const rows = yield* Query.run(
    control
      .selectFrom("tributary.subscriptions")
      .select(["subscription_id as id", "url", "company"])
      .where("company", "<>", company)
  )
  return listed.flatMap((one) =>
    rows
      .filter(({ id, url }) => id === one.id && HookUrl.isSame(url, one.url))
      .map((row) => ({ one, madeFor: row.company }))
  )
})

const warnStray = (company: string, { id, url }: Subscription, madeFor: string | null = null): string =>
  `subscription ${id}${madeFor === null ? "" : `, made for company ${madeFor},`} still sends events to ${url}: ` +
  `to stop it, run ${commandFor(company, `delete ${id}`)}`

const warnStrays = (company: string, strays: ReadonlyArray<Subscription>): ReadonlyArray<string> =>
  strays.filter(({ paused }) => !paused).map((one) => warnStray(company, one))

/** Warnings for events that the source never sends, since the token may not read them. */
const warnUndeliverable = ({ connector }: Subscriber, source: Subscriptions, events: ReadonlyArray<string>) =>
  connector.identify.pipe(
    Effect.map(({ scopes }) =>
      [...EventScopes.undeliverableEvents(connector.catalogue, source, scopes, events)].map(
        ([event, scope]) =>
          `${event} is subscribed to, but the token lacks the scope ${scope}, so that the source never sends it`
      )
    ),
    // The source has answered before: a failure here does not stop the command.
    Effect.orElseSucceed((): ReadonlyArray<string> => [])
  )

const ensureLocked = Effect.fnUntraced(function* (
  company: Subscriber,
  wanted: DesiredSubscription & { readonly url: string },
  source: Subscriptions
): Effect.fn.Return<EnsureReport, SubscribeError, SigningSecrets | SqlClient.SqlClient> {
  const { name } = company
  const secrets = yield* SigningSecrets
  const before = yield* takeSnapshot(company, source, wanted)
  yield* secrets.retire(
    name,
    before.listed.map(({ id }) => id),
    source.secretOverlap
  )
  const stored = yield* secrets.stored(name)
  const selection = selectKept(name, wanted, before.listed, stored)
  const { kept, duplicates, strays } = selection

  let result: EnsureResult
  if (kept === undefined) {
    result = yield* createOurs(company, wanted, source, before.listed, selection)
  } else {
    const updated = yield* updateKept(company, wanted, source, kept, stored.get(kept.id))
    const cancelled = yield* Effect.forEach(duplicates, (one) => cancelDuplicate(source, kept, one))
    result = {
      ...updated,
      deeds: [updated, ...cancelled].flatMap(({ deeds }) => deeds),
      warnings: [...[updated, ...cancelled].flatMap(({ warnings }) => warnings), ...warnStrays(name, strays)]
    }
  }

  const { deeds, refused } = result
  const isUnchanged = deeds.length === 0 && refused.length === 0
  const known = wanted.events.filter((event) => !refused.includes(event))
  const warnings = [
    ...result.warnings,
    ...(refused.length > 0 ? [`the source does not know ${refused.join(", ")}: left out`] : []),
    ...(yield* warnUndeliverable(company, source, known))
  ]
  const after = isUnchanged ? before : yield* takeSnapshotAfter(company, source, wanted, refused)
  const { id } = result.subscription
  const subscription = after === null ? result.subscription : after.listed.find((one) => one.id === id)
  if (subscription === undefined) return yield* subscriptionNotFound(name, id)
  return { company: name, subscription, deeds, warnings, refused, seen: (after ?? before).seen }
})

export const ensure = Effect.fn("Subscriptions.ensure")(function* (
  company: Subscriber,
  wanted: DesiredSubscription
): Effect.fn.Return<EnsureReport, SubscribeError, SubscribeNeeds> {
  const source = yield* webhooksOf(company)
  const { url } = wanted
  if (url === null) return yield* noAddress(company.name)
  return yield* withCompanyLock(company.name, ensureLocked(company, { ...wanted, url }, source))
})
