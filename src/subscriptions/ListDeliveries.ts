/**
 * The delivery log event by event, newest first: the last attempt of each event is its state.
 *
 * An event that was not delivered is either abandoned, which the source can filter for, or was attempted recently.
 */
import * as Effect from "effect/Effect"
import type { Attempt, LogPage, LogRequest } from "../connector/Subscriptions.ts"
import { find, managed } from "./ManagedSubscriptions.ts"
import type { DesiredSubscription, Subscriber } from "./SubscriptionError.ts"

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

export const deliveries = Effect.fn("Subscriptions.deliveries")(function* (
  company: Subscriber,
  desired: DesiredSubscription,
  id: string | null,
  { delivered, abandoned, eventType, limit }: LogFilter
) {
  const subscriptions = yield* managed(company, desired)
  const subscription = yield* find(subscriptions, id)
  /** The last attempt of each event so far. */
  const lastAttempts = new Map<string, Attempt>()
  const matches = () =>
    [...lastAttempts.values()].filter(
      (attempt) =>
        (delivered === undefined || attempt.delivered === delivered) &&
        (abandoned === undefined || attempt.abandoned === abandoned)
    )
  const isFull = () => matches().length >= limit

  /** Reads pages until the log ends or `isEnough`; returns false when the page limit stopped it before. */
  const readPages = Effect.fnUntraced(function* (
    flags: Pick<LogRequest, "delivered" | "abandoned">,
    isEnough: (page: LogPage) => boolean
  ) {
    const request = { id: subscription.id, ...flags, ...(eventType === undefined ? {} : { eventType }) }
    let token: string | null = null
    for (let pages = 0; pages < logPagesMax; pages += 1) {
      const page: LogPage = yield* subscriptions.source.deliveries({ ...request, token })
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
  const readUndelivered = Effect.gen(function* () {
    let newestMs: number | null = null
    const isWhole = yield* readPages({}, ({ attempts }) => {
      const times = attempts.map(({ at }) => Date.parse(at))
      newestMs ??= times[0] ?? null
      return isFull() || times.some((atMs) => newestMs !== null && atMs < newestMs - unsettledMs)
    })
    return isFull() ? isWhole : (yield* readPages({ abandoned: true }, isFull)) && isWhole
  })

  // The source filters only for flags of a last attempt: an event that was delivered at last has failed attempts too.
  const flags = { ...(delivered === true ? { delivered } : {}), ...(abandoned === true ? { abandoned } : {}) }
  /** Whether the answer has every event that fits the filter; false where the log is too long to read. */
  const isWhole = yield* delivered === false && abandoned !== true ? readUndelivered : readPages(flags, isFull)
  return { subscription, attempts: matches().slice(0, limit), isWhole }
})
