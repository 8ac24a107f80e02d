/**
 * The steps that every change of a company's subscriptions shares: lock, snapshot, find, change, snapshot.
 *
 * Promise: processes change the subscriptions of one company one after the other. {@link SubscriptionStore.saveSnapshot}
 * stores the state before and after each change, so that a repair does not hide a time in which events were dropped.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription, Subscriptions } from "../connector/Subscriptions.ts"
import { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { readInstant } from "../postgres/Now.ts"
import * as Query from "../postgres/Query.ts"
import { isOurs } from "./DesiredState.ts"
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

/** The subscriptions of a company at a source that has webhooks. */
export interface Managed extends Subscriber {
  readonly source: Subscriptions
  readonly desired: DesiredSubscription
}

export const managed = (
  { name, connector }: Subscriber,
  desired: DesiredSubscription
): Effect.Effect<Managed, SubscriptionError> =>
  connector.subscriptions === undefined
    ? Effect.fail(
        new SubscriptionError({
          kind: "unsupported",
          company: name,
          detail: "this source has no webhooks",
          remedy: "remove webhooks from the configuration; tributary sync reads all records"
        })
      )
    : Effect.succeed({ name, connector, source: connector.subscriptions, desired })

/** A change at the source. */
export interface Change {
  readonly did: "created" | "changed" | "rotated" | "cancelled" | "paused"
  readonly id: string
  readonly detail: string
}

/** The result of a step of a change. */
export interface StepResult {
  readonly deeds: ReadonlyArray<Change>
  readonly warnings: ReadonlyArray<string>
}

export const nothing: StepResult = { deeds: [], warnings: [] }

export const did = (did: Change["did"], id: string, detail: string): StepResult => ({
  deeds: [{ did, id, detail }],
  warnings: []
})

export const warned = (warning: string): StepResult => ({ deeds: [], warnings: [warning] })

export const joined = (results: ReadonlyArray<StepResult>): StepResult => ({
  deeds: results.flatMap(({ deeds }) => deeds),
  warnings: results.flatMap(({ warnings }) => warnings)
})

const lockRetries = 120
const lockRetryEveryMs = 250

const acquireLock = Effect.fnUntraced(function* (company: string) {
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
export const locked = <A, E, R>(
  company: Subscriber,
  desired: DesiredSubscription,
  change: (subscriptions: Managed) => Effect.Effect<A, E, R>
) =>
  Effect.flatMap(managed(company, desired), (subscriptions) =>
    Effect.scoped(Effect.andThen(acquireLock(company.name), change(subscriptions)))
  )

/** Lists the subscriptions at the source, and stores the snapshot. Returns both the list and the stored rows. */
export const takeSnapshot = Effect.fnUntraced(function* (
  { name, source, desired: { url, events } }: Managed,
  refused: ReadonlyArray<string> | null = null
) {
  const at = yield* readInstant
  const listed = yield* SubscriptionStore.listed(name, source)
  const seen = yield* SubscriptionStore.saveSnapshot(name, listed, url, events, at, refused)
  return { listed, seen }
})

/** As {@link takeSnapshot}, after a change: null when the source does not answer, which does not undo the change. */
export const takeSnapshotAfter = (...args: Parameters<typeof takeSnapshot>) =>
  Effect.catchTag(takeSnapshot(...args), "SourceError", () => Effect.succeed(null))

/**
 * Takes a snapshot, and finds the subscription with this id. Without an id, it is the only one at our address, or among
 * several the only one with a stored secret.
 */
export const find = Effect.fnUntraced(function* (subscriptions: Managed, id: string | null) {
  const {
    name,
    desired: { url }
  } = subscriptions
  const { listed } = yield* takeSnapshot(subscriptions)
  const candidates = listed.filter((one) => (id === null ? isOurs(name, url, one.url) : one.id === id))
  const [first, ...more] = candidates
  if (first === undefined) return yield* subscriptionNotFound(name, id, url)
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
export const changeOne = <A, R>(
  company: Subscriber,
  desired: DesiredSubscription,
  id: string | null,
  change: (subscriptions: Managed, subscription: Subscription) => Effect.Effect<A, SubscribeError, R>
): Effect.Effect<A, SubscribeError, R | ChangeNeeds> =>
  locked(
    company,
    desired,
    Effect.fnUntraced(function* (subscriptions) {
      const result = yield* change(subscriptions, yield* find(subscriptions, id))
      yield* takeSnapshotAfter(subscriptions)
      return result
    })
  )

/** Sends the events, again without those that the source refuses as unknown. Returns these too. */
export const withoutUnknownEvents = Effect.fnUntraced(function* <R>(
  { name, source }: Managed,
  events: ReadonlyArray<string>,
  send: (events: ReadonlyArray<string>) => Effect.Effect<Subscription, SourceError | DatabaseError, R>
) {
  const refused: Array<string> = []
  while (true) {
    const known = events.filter((event) => !refused.includes(event))
    if (known.length === 0) {
      return yield* new SubscriptionError({
        kind: "events",
        company: name,
        detail:
          events.length === 0 ? "no event is wanted" : `the source knows none of the events ${refused.join(", ")}`,
        remedy: "name events of the source in webhooks.events of the configuration"
      })
    }
    const result = yield* Effect.result(send(known))
    if (result._tag === "Success") return { subscription: result.success, refused }
    const error = result.failure
    const unknown = error._tag === "SourceError" ? source.unknownEvents(error, known) : []
    if (unknown.length === 0) return yield* error
    refused.push(...unknown)
  }
})
