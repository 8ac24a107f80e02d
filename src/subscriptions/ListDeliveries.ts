/**
 * The delivery log event by event, newest first: the last attempt of each event is its state.
 *
 * An event that was not delivered is either abandoned, which the source can filter for, or was attempted recently.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Attempt, LogPage, LogRequest, Subscription, Subscriptions } from "../connector/Subscriptions.ts"
import { find, managed } from "./ManagedSubscriptions.ts"
import type { DesiredSubscription, SubscribeError, Subscriber } from "./SubscriptionError.ts"

const logPagesMax = 200
/** Three attempts, five minutes apart: after this no attempt follows. */
const unsettledMs = 20 * 60_000

export interface LogFilter {
  readonly delivered?: boolean
  readonly abandoned?: boolean
  readonly eventType?: string
  /** Events, not attempts. */
  readonly limit: number
}

/** A read of the delivery log that is under way: the last attempt of each event so far. */
interface LogScan {
  readonly source: Subscriptions
  readonly subscriptionId: string
  readonly filter: LogFilter
  readonly lastAttempts: Map<string, Attempt>
}

const matchesOf = ({ filter, lastAttempts }: LogScan): ReadonlyArray<Attempt> =>
  [...lastAttempts.values()].filter(
    ({ delivered, abandoned }) =>
      (filter.delivered === undefined || delivered === filter.delivered) &&
      (filter.abandoned === undefined || abandoned === filter.abandoned)
  )

const isFull = (scan: LogScan): boolean => matchesOf(scan).length >= scan.filter.limit

/** Reads pages until the log ends or `isEnough`; returns false when the page limit stopped it before. */
const readPages = Effect.fnUntraced(function* (
  { source, subscriptionId, filter, lastAttempts }: LogScan,
  flags: Pick<LogRequest, "delivered" | "abandoned">,
  isEnough: (page: LogPage) => boolean
) {
  const { eventType } = filter
  let token: string | null = null
  for (let pages = 0; pages < logPagesMax; pages += 1) {
    const page: LogPage = yield* source.deliveries({
      id: subscriptionId,
      ...flags,
      ...(eventType === undefined ? {} : { eventType }),
      token
    })
    for (const attempt of page.attempts) {
      const known = lastAttempts.get(attempt.eventId)
      if (known === undefined || attempt.attempts > known.attempts) lastAttempts.set(attempt.eventId, attempt)
    }
    token = page.next
    if (token === null || isEnough(page)) return true
  }
  return false
})

/** Undelivered events: those of the last minutes may be unsettled, and older ones are abandoned. */
const readUndelivered = Effect.fnUntraced(function* (scan: LogScan) {
  let newestMs: number | null = null
  const isWhole = yield* readPages(scan, {}, ({ attempts }) => {
    const times = attempts.map(({ at }) => Date.parse(at))
    newestMs ??= times[0] ?? null
    return isFull(scan) || times.some((atMs) => newestMs !== null && atMs < newestMs - unsettledMs)
  })
  return isFull(scan) ? isWhole : (yield* readPages(scan, { abandoned: true }, () => isFull(scan))) && isWhole
})

export const deliveries = Effect.fn("Subscriptions.deliveries")(function* (
  company: Subscriber,
  desired: DesiredSubscription,
  id: string | null,
  filter: LogFilter
): Effect.fn.Return<
  {
    readonly subscription: Subscription
    readonly attempts: ReadonlyArray<Attempt>
    /** Whether the answer has every event that fits the filter; false where the log is too long to read. */
    readonly isWhole: boolean
  },
  SubscribeError,
  SqlClient.SqlClient
> {
  const subscriptions = yield* managed(company, desired)
  const subscription = yield* find(subscriptions, id)
  const { delivered, abandoned, limit } = filter
  const scan: LogScan = {
    source: subscriptions.source,
    subscriptionId: subscription.id,
    filter,
    lastAttempts: new Map()
  }
  // The source filters only for flags of a last attempt: an event that was delivered at last has failed attempts too.
  const flags = { ...(delivered === true ? { delivered } : {}), ...(abandoned === true ? { abandoned } : {}) }
  const isWhole =
    delivered === false && abandoned !== true
      ? yield* readUndelivered(scan)
      : yield* readPages(scan, flags, () => isFull(scan))
  return { subscription, attempts: matchesOf(scan).slice(0, limit), isWhole }
})
