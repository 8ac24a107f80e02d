/**
 * The check of a subscription's delivery log: what the log shows since the last check.
 *
 * Promise: one transaction stores the gaps that the log showed, with the new position. So a database that is restored
 * without its latest commits lost this position with every event that it lost: the position was written after them.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Priority } from "../budget/Budget.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Attempt, Subscriptions } from "../connector/Subscriptions.ts"
import { readInstant } from "../postgres/Now.ts"
import * as Query from "../postgres/Query.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"
import { type CheckedCompany, deliveredResources } from "./SubscriptionGaps.ts"

type Row = SubscriptionStore.SubscriptionRow

// ------------------------------------------------------------------------------------------------- reading

/** The log is ordered approximately by attempt. If the last entry that was read is missing, this much before it is read. */
const logMarginMs = 60_000
/** Beyond this many pages, reading the resources is cheaper. */
const logPagesMax = 200
/** From this page on, the read has the priority of a backfill. */
const logPagesPrompt = 5

/** The last attempt of an event. */
interface LastAttempt {
  attempt: Attempt
  /** Whether the log shows a later attempt of another event. */
  readonly isPassed: boolean
}

/** The entries of a log since the last check. */
interface LogScan {
  readonly lastAttempts: ReadonlyArray<LastAttempt>
  readonly newest: Pick<Attempt, "at" | "eventId"> | null
  /** Whether the event of the newest entry has attempts to come. */
  readonly isWaiting: boolean
  /** A response code since the last check at which the source disables the subscription; null for none. */
  readonly disabling: number | null
  /** Whether the read reached the entries of the last check. */
  readonly isWhole: boolean
}

/**
 * Reads a log, newest first, down to the newest entry of the last check. Older entries do not change: the source sends
 * nothing to a subscription while an event waits for its next attempt. That holds whether the log has an entry for each
 * attempt or one for each event. Test deliveries bypass the queue and are left out.
 */
const readLog = Effect.fnUntraced(function* (
  { deliveries }: Subscriptions,
  { id, logCursorAt, logCursorEvent }: Row
): Effect.fn.Return<LogScan, SourceError> {
  const cursorMs = logCursorAt === null ? Number.NaN : Date.parse(logCursorAt)
  const urgent = yield* Priority
  const lastAttempts = new Map<string, LastAttempt>()
  let newest: Attempt | null = null
  let disabling: number | null = null
  // A comparison with a time that cannot be parsed is false.
  let newestMs = Number.NaN
  let downTo = cursorMs - logMarginMs
  for (let token: string | null = null, pages = 1; ; pages += 1) {
    const page: Effect.Success<ReturnType<typeof deliveries>> = yield* Effect.provideService(
      deliveries({ id, token }),
      Priority,
      pages <= logPagesPrompt ? urgent : { class: "backfill", dueAt: urgent.dueAt }
    )
    let isSeen = false
    for (const attempt of page.attempts) {
      const { at, eventId } = attempt
      if (attempt.resource === null) continue
      const atMs = Date.parse(at)
      if (newest === null) {
        newest = attempt
        newestMs = atMs
        // The log lost entries, or the source's clock was set back. All of the log is read.
        if (atMs < cursorMs) downTo = Number.NaN
      }
      if (atMs < downTo) {
        isSeen = true
        break
      }
      if (attempt.disables && !(atMs <= cursorMs)) disabling = attempt.responseCode
      const last = lastAttempts.get(eventId)
      if (last === undefined)
        lastAttempts.set(eventId, { attempt, isPassed: eventId !== newest.eventId && atMs < newestMs })
      else if (attempt.delivered || (attempt.abandoned && !last.attempt.delivered)) last.attempt = attempt
      if (eventId === logCursorEvent && atMs <= cursorMs && !Number.isNaN(downTo)) {
        isSeen = true
        break
      }
    }
    const isWhole = isSeen || page.next === null
    if (isWhole || pages >= logPagesMax) {
      const last = newest === null ? undefined : lastAttempts.get(newest.eventId)?.attempt
      const isWaiting = last !== undefined && !last.delivered && !last.abandoned
      return { lastAttempts: [...lastAttempts.values()], newest, isWaiting, disabling, isWhole }
    }
    token = page.next
  }
})

export const eventStatusStatement = Statement.make({
  name: "look up the events of a delivery log",
  params: ["text", "jsonb"],
  columns: { id: "text", isStored: "bool", isInGap: "bool", occurredMs: "float8?" },
  text: `select requested.id, i.event_id is not null as "isStored", gap.id is not null as "isInGap",
                ${Sql.epochMs("i.occurred_at")} as "occurredMs"
           from jsonb_array_elements_text($2::jsonb) as requested(id)
           left join tributary.inbox i on i.company = $1 and i.event_id = requested.id
           left join (select distinct unnest(events) as id from tributary.delivery_gaps where company = $1) gap
             on gap.id = requested.id`
})

/** For each event: whether it is in the inbox, whether a gap names it, and when it fired by the source's clock. */
type EventStatus = ReadonlyMap<string, Statement.RowOf<typeof eventStatusStatement>>

const readEventStatus = (company: string, attempts: ReadonlyArray<LastAttempt>): Sql.Query<EventStatus> =>
  Effect.map(
    Statement.run(eventStatusStatement, [company, JSON.stringify(attempts.map(({ attempt }) => attempt.eventId))]),
    (rows) => new Map(rows.map((row) => [row.id, row]))
  )

/** A delivery that began this long before the end of the longest delay may still be in flight at its end. */
const inFlightMax = Duration.seconds(30)

/**
 * Whether a delivery since the last read failed, was repeated or came late, so that events behind it may be late too. Both
 * times are the source's.
 */
const hasDelays = (
  { source }: CheckedCompany,
  { logCursorEvent, logWaitsMs }: Row,
  { lastAttempts }: LogScan,
  status: EventStatus
): boolean => {
  const limitMs = Duration.toMillis(Duration.subtract(source.deliveryDelayMax, inFlightMax))
  return lastAttempts.some(({ attempt: { at, attempts, delivered, eventId } }) => {
    if (eventId === logCursorEvent && logWaitsMs === null) return false
    const firedMs = status.get(eventId)?.occurredMs ?? null
    return !delivered || attempts > 1 || (firedMs !== null && Date.parse(at) - firedMs > limitMs)
  })
}

// ------------------------------------------------------------------------------------------------- gaps

/** A part of the log's retention that is reserved for clocks that differ. */
const clockMargin = Duration.days(1)
/** Check intervals without a check after which there is a gap… */
const unobservedChecks = 3
/** … unless they are so short that a restart explains them. */
const unobservedMin = Duration.minutes(10)
/** Minimum time between two reads of a resource whose log is always longer than a check reads. */
const overflowPauseMs = 3_600_000

const retentionOf = ({ logRetention }: Subscriptions): Duration.Duration => Duration.subtract(logRetention, clockMargin)

/** How long a log may stay unread without a gap; `checkInterval` is null where checks are not regular. */
export const unobservedMax = (source: Subscriptions, checkInterval: Duration.Duration | null): Duration.Duration =>
  checkInterval === null
    ? retentionOf(source)
    : Duration.min(retentionOf(source), Duration.max(unobservedMin, Duration.times(checkInterval, unobservedChecks)))

const isUnobserved = ({ unobservedMax }: CheckedCompany, { logAgeMs }: Row): boolean =>
  logAgeMs > Duration.toMillis(unobservedMax)

const count = (of: number, what: string) => `${of} ${what}${of === 1 ? "" : "s"}`

type GapOfAll = Omit<DeliveryGaps.NewGap, "subscriptionId" | "resource" | "beganAt" | "requiresFullScan" | "events"> &
  Partial<Pick<DeliveryGaps.NewGap, "events">>

/** A gap since the last check, for each resource whose events the subscription delivers. */
const gapsOfAll = (company: CheckedCompany, row: Row, gap: GapOfAll): ReadonlyArray<DeliveryGaps.NewGap> =>
  [...deliveredResources(company, row.events)].map((resource) => ({
    events: [],
    ...gap,
    subscriptionId: row.id,
    resource,
    beganAt: row.logReadAt,
    requiresFullScan: company.removing.has(resource)
  }))

/**
 * Gaps of events that the source abandoned, and of events that it delivered but that are not in the inbox. The attempts of
 * an abandoned event took longer than the overlap.
 */
const lostGaps = (
  { isSynced, overlapMs, source }: CheckedCompany,
  row: Row,
  attempts: ReadonlyArray<LastAttempt>,
  status: EventStatus
): ReadonlyArray<DeliveryGaps.NewGap> => {
  const lost = attempts.flatMap(({ attempt }) => {
    const { abandoned, delivered, eventId, resource } = attempt
    const isStored = status.get(eventId)?.isStored === true
    return (delivered || abandoned) && resource !== null && isSynced(resource) && !isStored
      ? [{ ...attempt, resource }]
      : []
  })
  return [...Map.groupBy(lost, ({ delivered, resource }) => `${resource} ${delivered}`).values()].map((same) => {
    const { delivered, resource } = same[0]!
    const events = count(same.length, "event")
    return {
      subscriptionId: row.id,
      resource,
      cause: "event_lost",
      detail: delivered
        ? `${events} delivered and acknowledged, but not in the inbox`
        : `the source abandoned ${events}`,
      // The events fired before their last attempt; the time is unknown.
      beganAt: null,
      lasts: false,
      endedMsAgo: delivered ? 0 : overlapMs,
      events: same.map(({ eventId }) => eventId),
      requiresFullScan: same.some(({ eventType }) => source.mayRemove(eventType))
    }
  })
}

/** The events whose attempts stopped without an end. One in the inbox counts: events that waited behind it are not in the log. */
const droppedEvents = (
  { source }: CheckedCompany,
  { logCursorAt, logCursorEvent, logWaitsMs }: Row,
  { newest }: LogScan,
  attempts: ReadonlyArray<LastAttempt>
): ReadonlyArray<string> => {
  const isStuck =
    newest?.at === logCursorAt &&
    newest?.eventId === logCursorEvent &&
    (logWaitsMs ?? 0) > Duration.toMillis(source.attemptDelayMax)
  return attempts.flatMap(({ attempt: { eventId, delivered, abandoned }, isPassed }) =>
    !delivered && !abandoned && (isPassed || (isStuck && eventId === newest?.eventId)) ? [eventId] : []
  )
}

/** Gaps where the subscription was paused or disabled, and enabled again, between two checks. */
const droppedGaps = (
  company: CheckedCompany,
  row: Row,
  scan: LogScan,
  attempts: ReadonlyArray<LastAttempt>
): ReadonlyArray<DeliveryGaps.NewGap> => {
  const events = droppedEvents(company, row, scan, attempts)
  const { disabling } = scan
  if (events.length > 0) {
    const detail = `the source dropped ${count(events.length, "event")} before the attempts were used up, and the events behind`
    return gapsOfAll(company, row, { cause: "event_lost", detail, lasts: false, events })
  }
  if (disabling !== null && row.state === "active") {
    const detail = `a receiver answered ${disabling}, at which the source disables the subscription; it has been enabled again`
    return gapsOfAll(company, row, { cause: "subscription_inactive", detail, lasts: false })
  }
  return []
}

/** Gaps of entries that the log no longer shows: too much was delivered, or the last check is too long ago. */
const unobservedGaps = (
  company: CheckedCompany,
  row: Row,
  { isWhole }: LogScan
): ReadonlyArray<DeliveryGaps.NewGap> => {
  const { logAgeMs } = row
  // Runs that were due anyway read the resources within the overlap.
  const ended = { cause: "unobserved", lasts: false, dueInMs: company.overlapMs } as const
  const gaps: Array<DeliveryGaps.NewGap> = []
  if (!isWhole) {
    const detail = `more was delivered since the last check than a check reads (${logPagesMax} pages)`
    gaps.push(...gapsOfAll(company, row, { ...ended, pauseMs: overflowPauseMs, detail }))
  }
  if (isUnobserved(company, row)) {
    const detail =
      logAgeMs > Duration.toMillis(retentionOf(company.source))
        ? `the delivery log was not read for ${Math.floor(logAgeMs / 86_400_000)} days, which is longer than its retention`
        : `the source was not checked for ${Math.floor(logAgeMs / 60_000)} min, and a pause that has ended since does not show`
    gaps.push(...gapsOfAll(company, row, { ...ended, detail }))
  }
  return gaps
}

// ------------------------------------------------------------------------------------------------- storing

export const advanceStatement = Statement.make({
  name: "advance the position in a delivery log",
  params: ["text", "text", "text?", "text?", "timestamptz", "bool", "bool"],
  text: `update tributary.subscriptions
            set log_head_pending_since = case when not $6::boolean then null
                                    when (log_cursor_at, log_cursor_event) = ($3, $4) then coalesce(log_head_pending_since, $5::timestamptz)
                                    else $5::timestamptz end,
                log_cursor_at = coalesce($3, log_cursor_at), log_cursor_event = coalesce($4, log_cursor_event),
                log_read_at = $5::timestamptz, delayed_at = case when $7::boolean then $5::timestamptz else delayed_at end, last_error = null, remedy = null
          where company = $1 and subscription_id = $2 and (log_read_at is null or log_read_at <= $5::timestamptz)`
})

/** Reads the delivery log of a subscription, and stores its gaps. Returns the number of new gaps, and the newest entry. */
export const check = Effect.fnUntraced(function* (company: CheckedCompany, row: Row) {
  const { name } = company
  const at = yield* readInstant
  const scan = yield* readLog(company.source, row)
  const { lastAttempts, isWaiting } = scan
  const status = yield* readEventStatus(name, lastAttempts)
  const attempts = lastAttempts.filter(({ attempt }) => status.get(attempt.eventId)?.isInGap !== true)
  const gaps = [
    ...lostGaps(company, row, attempts, status),
    ...droppedGaps(company, row, scan, attempts),
    ...unobservedGaps(company, row, scan)
  ]
  const isDelayed = hasDelays(company, row, scan, status)
  const { at: newestAt = null, eventId = null } = scan.newest ?? {}
  const store = Effect.gen(function* () {
    const opened = yield* DeliveryGaps.insertGaps(name, gaps)
    yield* Statement.run(DeliveryGaps.endUnobserved, [name, row.id])
    yield* Statement.run(advanceStatement, [name, row.id, newestAt, eventId, at, isWaiting, isDelayed])
    return { opened, newestAt }
  })
  return yield* DeliveryGaps.serialized(name, store)
})

/** Stores that the log has no new entry. Returns false, and stores nothing, if the last check is too long ago or failed. */
export const confirm = ({ name, unobservedMax }: CheckedCompany, { id }: Row, at: string): Sql.Query<boolean> =>
  Query.hasRows(
    SubscriptionStore.change(name, id)
      .set({ log_read_at: Query.at(at) })
      .where("last_error", "is", null)
      .where((is) =>
        is.between("log_read_at", new Date(Date.parse(at) - Duration.toMillis(unobservedMax)), Query.at(at))
      )
      .returning("subscription_id")
  )

/** Stores that these subscriptions cannot be checked, and a gap if that lasts too long. Returns the number of new gaps. */
export const recordFailure = Effect.fnUntraced(function* (
  company: CheckedCompany,
  rows: ReadonlyArray<Row>,
  error: Pick<SourceError, "message" | "remedy">
) {
  let opened = 0
  for (const row of rows) {
    yield* SubscriptionStore.recordFailure(company.name, row.id, error)
    if (row.state !== "active" || !isUnobserved(company, row)) continue
    const detail = `subscription ${row.id} cannot be checked: ${error.message}`
    const gaps = gapsOfAll(company, row, { cause: "unobserved", detail, lasts: true })
    opened += yield* DeliveryGaps.open(company.name, gaps)
  }
  return opened
})
