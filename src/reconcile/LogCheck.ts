/** The delivery gaps that a subscription's delivery log shows. */
import { readInstant } from "../postgres/Now.ts"
import * as Effect from "effect/Effect"
import * as Duration from "effect/Duration"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscriptions } from "../connector/Subscriptions.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"
import { type CheckedCompany, deliveredResources } from "./CheckedCompany.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"
import { type LastAttempt, type LogScan, logPagesMax, readLog } from "./DeliveryLog.ts"
import * as LogCursor from "./LogCursor.ts"

/** A part of the log's retention that is reserved for clocks that differ. */
const clockMargin = Duration.days(1)
/** Check intervals without a check after which there is a gap… */
const unobservedChecks = 3
/** … unless they are so short that a restart explains them. */
const unobservedMin = Duration.minutes(10)

const retentionOf = ({ logRetention }: Subscriptions): Duration.Duration => Duration.subtract(logRetention, clockMargin)

/** How long a log may stay unread without a gap; `checkInterval` is null where checks are not regular. */
export const unobservedMax = (
  subscriptions: Subscriptions,
  checkInterval: Duration.Duration | null
): Duration.Duration =>
  checkInterval === null
    ? retentionOf(subscriptions)
    : Duration.min(
        retentionOf(subscriptions),
        Duration.max(unobservedMin, Duration.times(checkInterval, unobservedChecks))
      )

const count = (of: number, what: string) => `${of} ${what}${of === 1 ? "" : "s"}`

type GapsForAll = Pick<DeliveryGaps.NewGap, "cause" | "detail" | "beganAt" | "lasts" | "dueInMs"> & {
  readonly events?: ReadonlyArray<string>
}

/** A gap for each resource whose events the subscription delivers. */
const gapsForAll = (
  company: CheckedCompany,
  row: SubscriptionStore.SubscriptionRow,
  gap: GapsForAll
): ReadonlyArray<DeliveryGaps.NewGap> =>
  [...deliveredResources(company, row.events)].map((resource) => ({
    events: [],
    ...gap,
    subscriptionId: row.id,
    resource,
    requiresFullScan: company.removing.has(resource)
  }))

/** A delivery that began this long before the end of the longest delay may still be in flight at its end. */
const inFlightMax = Duration.seconds(30)

/**
 * Whether a delivery since the last read failed, was repeated or came late, so that events behind it may be late too. Both
 * times are the source's.
 */
const hasDelays = (
  { deliveryDelayMax }: Subscriptions,
  attempts: ReadonlyArray<LastAttempt>,
  cursor: LogCursor.LogCursor,
  occurredMs: (eventId: string) => number | null
): boolean => {
  const limitMs = Duration.toMillis(Duration.subtract(deliveryDelayMax, inFlightMax))
  return attempts.some(({ attempt: { at, attempts: count, delivered, eventId } }) => {
    if (eventId === cursor.event && cursor.waitsMs === null) return false
    const firedMs = occurredMs(eventId)
    return !delivered || count > 1 || (firedMs !== null && Date.parse(at) - firedMs > limitMs)
  })
}

/** Reads the delivery log of a subscription, and stores its gaps. Returns the number of new gaps, and the newest entry. */
export const checkLog = Effect.fnUntraced(function* (
  company: CheckedCompany,
  subscriptions: Subscriptions,
  row: SubscriptionStore.SubscriptionRow
) {
  const { name } = company
  const at = yield* readInstant
  const cursor = yield* LogCursor.read(name, row.id)
  if (cursor === null) return { opened: 0, newestAt: null }
  const scan = yield* readLog(subscriptions, row.id, cursor)
  const status = yield* LogCursor.eventStatus(
    name,
    scan.lastAttempts.map(({ attempt }) => attempt.eventId)
  )
  const isStored = (eventId: string) => status.get(eventId)?.isStored === true
  const attempts = scan.lastAttempts.filter(({ attempt }) => status.get(attempt.eventId)?.isInGap !== true)
  const dropped = droppedEvents(subscriptions, scan, attempts, cursor)
  const gaps = [
    ...missedGaps(company, subscriptions, row.id, attempts, isStored),
    ...droppedGaps(company, row, scan, cursor, dropped),
    ...unobservedGaps(company, retentionOf(subscriptions), row, scan, cursor)
  ]
  const isDelayed = hasDelays(subscriptions, scan.lastAttempts, cursor, (id) => status.get(id)?.occurredMs ?? null)
  const opened = yield* LogCursor.advance(name, row.id, scan.newest, at, gaps, isDelayed)
  return { opened, newestAt: scan.newest?.at ?? null }
})

/** Gaps of events that the source abandoned, and of events that it delivered but that are not in the inbox. */
const missedGaps = (
  { isSynced }: CheckedCompany,
  { mayRemove }: Subscriptions,
  subscriptionId: string,
  attempts: ReadonlyArray<LastAttempt>,
  isStored: (eventId: string) => boolean
): ReadonlyArray<DeliveryGaps.NewGap> => {
  interface Missed {
    readonly resource: string
    readonly cause: "abandoned" | "acknowledged_not_stored"
    readonly events: Array<string>
    requiresFullScan: boolean
  }
  const missed = new Map<string, Missed>()
  for (const { attempt } of attempts) {
    const { eventId, eventType, resource, delivered, abandoned } = attempt
    if (!delivered && !abandoned) continue
    if (resource === null || isStored(eventId) || !isSynced(resource)) continue
    const cause = delivered ? "acknowledged_not_stored" : "abandoned"
    const key = `${resource} ${cause}`
    const one = missed.get(key) ?? { resource, cause, events: [], requiresFullScan: false }
    one.events.push(eventId)
    one.requiresFullScan ||= mayRemove(eventType)
    missed.set(key, one)
  }
  return [...missed.values()].map(({ resource, cause, events, requiresFullScan }) => ({
    subscriptionId,
    resource,
    cause,
    detail:
      cause === "abandoned"
        ? `the source abandoned ${count(events.length, "event")}`
        : `${count(events.length, "event")} delivered and acknowledged, but not in the inbox`,
    // The events fired before their last attempt; the time is unknown.
    beganAt: null,
    lasts: false,
    events,
    requiresFullScan
  }))
}

/** The events whose attempts stopped without an end. An event in the inbox counts: events that waited behind it are not in the log. */
const droppedEvents = (
  { attemptDelayMax }: Subscriptions,
  { newest }: LogScan,
  attempts: ReadonlyArray<LastAttempt>,
  cursor: LogCursor.LogCursor
): ReadonlyArray<string> => {
  const isStuck =
    newest?.at === cursor.to &&
    newest?.event === cursor.event &&
    (cursor.waitsMs ?? 0) > Duration.toMillis(attemptDelayMax)
  return attempts.flatMap(({ attempt: { eventId, delivered, abandoned }, isPassed }) =>
    !delivered && !abandoned && (isPassed || (isStuck && eventId === newest?.event)) ? [eventId] : []
  )
}

/** Gaps where the subscription was paused or disabled, and enabled again, between two checks. */
const droppedGaps = (
  company: CheckedCompany,
  row: SubscriptionStore.SubscriptionRow,
  { disabling }: LogScan,
  cursor: LogCursor.LogCursor,
  events: ReadonlyArray<string>
): ReadonlyArray<DeliveryGaps.NewGap> => {
  const dropped = { cause: "dropped", beganAt: cursor.at, lasts: false } as const
  if (events.length > 0) {
    const detail = `the source dropped ${count(events.length, "event")} before the attempts were used up, and the events behind`
    return gapsForAll(company, row, { ...dropped, detail, events })
  }
  if (disabling !== null && row.state !== "disabled") {
    const detail = `a receiver answered ${disabling}, at which the source disables the subscription; it has been enabled again`
    return gapsForAll(company, row, { ...dropped, detail })
  }
  return []
}

/** Gaps of entries that the log no longer shows: too much was delivered, or the last check is too long ago. */
const unobservedGaps = (
  company: CheckedCompany,
  logRetention: Duration.Duration,
  row: SubscriptionStore.SubscriptionRow,
  { isWhole }: LogScan,
  cursor: LogCursor.LogCursor
): ReadonlyArray<DeliveryGaps.NewGap> => {
  // Runs that were due anyway read the resources within the overlap.
  const ended = { beganAt: cursor.at, lasts: false, dueInMs: company.overlapMs }
  const gaps: Array<DeliveryGaps.NewGap> = []
  if (!isWhole) {
    const detail = `more was delivered since the last check than a check reads (${logPagesMax} pages)`
    gaps.push(...gapsForAll(company, row, { ...ended, cause: "overflow", detail }))
  }
  if (cursor.ageMs > Duration.toMillis(company.unobservedMax)) {
    const detail =
      cursor.ageMs > Duration.toMillis(logRetention)
        ? `the delivery log was not read for ${Math.floor(cursor.ageMs / 86_400_000)} days, which is longer than its retention`
        : `the source was not checked for ${Math.floor(cursor.ageMs / 60_000)} min, and a pause that has ended since does not show`
    gaps.push(...gapsForAll(company, row, { ...ended, cause: "unobserved", detail }))
  }
  return gaps
}

/** Stores that these subscriptions cannot be checked, and a gap if that lasts too long. Returns the number of new gaps. */
export const recordFailedCheck = Effect.fnUntraced(function* (
  company: CheckedCompany,
  rows: ReadonlyArray<SubscriptionStore.SubscriptionRow>,
  error: SourceError
) {
  const { name } = company
  let opened = 0
  for (const row of rows) {
    yield* SubscriptionStore.recordFailure(name, row.id, error)
    const cursor = yield* LogCursor.read(name, row.id)
    if (row.state !== "active" || cursor === null || cursor.ageMs <= Duration.toMillis(company.unobservedMax)) continue
    const detail = `subscription ${row.id} cannot be checked: ${error.message}`
    const gap = { cause: "unobserved", detail, beganAt: cursor.at, lasts: true } as const
    opened += yield* DeliveryGaps.open(name, gapsForAll(company, row, gap))
  }
  return opened
})
