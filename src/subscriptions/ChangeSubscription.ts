/**
 * The steps that every change of a subscription shares: lock, snapshot, find, change, snapshot.
 *
 * Promise: processes change the subscriptions of one company one after the other. {@link SubscriptionStore.saveSnapshot}
 * stores the state before and after each change, so that a repair does not hide a time in which events were dropped.
 */
import { readInstant } from "../postgres/Now.ts"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription, SubscriptionChange, Subscriptions } from "../connector/Subscriptions.ts"
import { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Query from "../postgres/Query.ts"
import * as HookUrl from "./HookUrl.ts"
import * as SecretRows from "./SecretRows.ts"
import {
  type ChangeNeeds,
  type DesiredSubscription,
  type SubscribeError,
  type Subscriber,
  SubscriptionError,
  subscriptionNotFound
} from "./SubscriptionError.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"

const lockRetries = 120
const lockRetryEveryMs = 250

export const webhooksOf = ({ name, connector }: Subscriber): Effect.Effect<Subscriptions, SubscriptionError> =>
  connector.subscriptions === undefined
    ? Effect.fail(
        new SubscriptionError({
          kind: "unsupported",
          company: name,
          detail: "this source has no webhooks",
          remedy: "remove webhooks from the configuration; tributary sync reads all records"
        })
      )
    : Effect.succeed(connector.subscriptions)

const acquireLock = Effect.fnUntraced(function* (
  company: string
): Effect.fn.Return<void, SubscriptionError | DatabaseError, Database | Scope.Scope> {
  const { locks } = yield* Database
  const busy = new SubscriptionError({
    kind: "busy",
    company,
    detail: "another process is changing its subscriptions right now",
    remedy: "wait for it, or stop it, and run again"
  })
  yield* locks.tryLock(`tributary:webhooks:${company}`).pipe(
    Effect.filterOrFail(
      (isLocked) => isLocked,
      () => busy
    ),
    Effect.retry({
      while: (error) => error._tag === "SubscriptionError",
      times: lockRetries,
      schedule: Schedule.spaced(lockRetryEveryMs)
    })
  )
})

/** Runs the change while no other process changes the company's subscriptions. */
export const withCompanyLock = <A, E, R>(company: string, change: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.andThen(acquireLock(company), change))

/** Lists the subscriptions at the source, and stores the snapshot. Returns both the list and the stored rows. */
export const takeSnapshot = Effect.fnUntraced(function* (
  { name }: Subscriber,
  source: Subscriptions,
  wanted: DesiredSubscription,
  refused: ReadonlyArray<string> | null = null
) {
  const at = yield* readInstant
  const listed = yield* SubscriptionStore.listed(name, source)
  const seen = yield* SubscriptionStore.saveSnapshot(name, listed, wanted.url, wanted.events, at, refused)
  return { listed, seen }
})

/** As {@link takeSnapshot}, after a change: null when the source does not answer, which does not undo the change. */
export const takeSnapshotAfter = (...args: Parameters<typeof takeSnapshot>) =>
  Effect.catchTag(takeSnapshot(...args), "SourceError", () => Effect.succeed(null))

/**
 * Takes a snapshot, and finds the subscription with this id. Without an id, it is the only one at our address, or among
 * several the only one with a stored secret.
 */
export const findSubscription = Effect.fnUntraced(function* (
  company: Subscriber,
  source: Subscriptions,
  wanted: DesiredSubscription,
  id: string | null
): Effect.fn.Return<Subscription, SourceError | SubscriptionError | DatabaseError, SqlClient.SqlClient> {
  const { name } = company
  const { listed } = yield* takeSnapshot(company, source, wanted)
  const candidates = listed.filter((one) => (id === null ? HookUrl.isOurs(name, wanted.url, one.url) : one.id === id))
  const [first, ...more] = candidates
  if (first === undefined) return yield* subscriptionNotFound(name, id, wanted.url)
  if (more.length === 0) return first
  const rows = yield* Query.run(SecretRows.inUse(name).select("subscription_id as id"))
  const withSecret = candidates.filter((one) => rows.some((row) => row.id === one.id))
  if (withSecret.length === 1) return withSecret[0]!
  return yield* new SubscriptionError({
    kind: "ambiguous",
    company: name,
    detail: `several subscriptions deliver to this address: ${candidates.map((one) => one.id).join(", ")}`,
    remedy: "name one by its id"
  })
})

/** Changes one subscription under the company's lock, between two snapshots. */
export const changeSubscription = Effect.fnUntraced(function* <A, R>(
  company: Subscriber,
  wanted: DesiredSubscription,
  id: string | null,
  change: (source: Subscriptions, subscription: Subscription) => Effect.Effect<A, SubscribeError, R>
): Effect.fn.Return<A, SubscribeError, R | ChangeNeeds> {
  const source = yield* webhooksOf(company)
  return yield* withCompanyLock(
    company.name,
    Effect.gen(function* () {
      const result = yield* change(source, yield* findSubscription(company, source, wanted, id))
      yield* takeSnapshotAfter(company, source, wanted)
      return result
    })
  )
})

const sorted = (events: ReadonlyArray<string>) => [...new Set(events)].sort()
const isSameSet = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): boolean =>
  sorted(left).join("\n") === sorted(right).join("\n")

/** The change that makes a subscription deliver these events to this address; empty when it does. */
export const changeTo = (
  one: Subscription,
  { url, events }: Pick<Subscription, "url" | "events">
): SubscriptionChange => ({
  ...(HookUrl.isSame(one.url, url) ? {} : { url }),
  ...(isSameSet(one.events, events) ? {} : { events }),
  ...(one.paused ? { paused: false } : {}),
  ...(one.disabledAt === null ? {} : { enabled: true as const })
})
