/**
 * The subscriptions, queues and log of deliveries as data.
 *
 * Promise: no part of a state is changed by later deliveries. A queue is the events of its subscription that are waiting.
 */
import type { Token } from "../http/tokens.ts"
import { Log } from "./Log.ts"
import type { LogState } from "./Log.ts"
import type { Waiting } from "./Occurrence.ts"
import type { Subscription } from "./Subscription.ts"

/** A subscription at one moment, with the number of its owner's token and without its queue. */
export interface SubscriptionState extends Omit<Subscription, "owner" | "queue"> {
  readonly owner: number
}

/** The subscriptions and deliveries at one moment. */
export interface EventsState {
  /** In the order of ids. */
  readonly subscriptions: ReadonlyArray<SubscriptionState>
  /** Every event that is queued or logged, with its subscription's id: the queued ones in the order of the queue. */
  readonly events: ReadonlyArray<readonly [subscriptionId: number, event: Waiting]>
  readonly log: LogState
  readonly trusted: ReadonlyArray<string>
  /** When the next cycle is due, in microseconds. */
  readonly due: number
  /** Number of events that have fired. */
  readonly fired: number
  /** Receivers do not answer before this time, in microseconds; null when they do. */
  readonly outageUntil: number | null
}

/** Queued and logged events, each once: the logged ones first. An attempt under way that left the queue is not saved. */
export const toState = (
  all: ReadonlyArray<Subscription>,
  log: Log
): Pick<EventsState, "subscriptions" | "events" | "log"> => {
  const logged = log.state()
  const copies = new Map<Waiting, readonly [number, Waiting]>()
  const copy = (id: number, event: Waiting) => {
    if (!copies.has(event)) copies.set(event, [id, { ...event }])
    return copies.get(event)![1]
  }
  const attempts = logged.attempts.map((entry) => {
    const { attempt } = entry
    return { ...entry, attempt: { ...attempt, event: copy(attempt.subscriptionId, attempt.event) } }
  })
  for (const { id, queue } of all) for (const event of queue) copy(id, event)
  return {
    subscriptions: all.map((subscription) => {
      const { queue: _queue, ...state } = subscription
      return { ...state, owner: subscription.owner.id }
    }),
    // The order of a sort is stable: the events of one subscription stay in their order.
    events: [...copies.values()].sort(([a], [b]) => a - b),
    log: { attempts, seq: logged.seq }
  }
}

/** New subscriptions and a new log, which the deliveries may change. `owners` has the tokens by id. */
export const fromState = (
  state: EventsState | null,
  owners: ReadonlyMap<number, Token>
): { readonly subscriptions: ReadonlyArray<Subscription>; readonly log: Log } => {
  if (state === null) return { subscriptions: [], log: new Log() }
  const copies = new Map(state.events.map(([, event]) => [event, { ...event }]))
  const queues = new Map<number, Array<Waiting>>()
  for (const [id, event] of state.events) {
    if (event.state !== "waiting") continue
    const queue = queues.get(id)
    if (queue === undefined) queues.set(id, [copies.get(event)!])
    else queue.push(copies.get(event)!)
  }
  const attempts = state.log.attempts.map((entry) => ({
    ...entry,
    attempt: { ...entry.attempt, event: copies.get(entry.attempt.event)! }
  }))
  return {
    subscriptions: state.subscriptions.map(({ owner, ...subscription }) => ({
      ...subscription,
      owner: owners.get(owner)!,
      queue: queues.get(subscription.id) ?? []
    })),
    log: new Log({ attempts, seq: state.log.seq })
  }
}
