/**
 * The basis of event-proven freshness: what a check of the subscriptions found well (`tributary.event_checks`).
 *
 * Promise: `tributary.event_proofs` proves a resource fresh at a time only if every event that fired before was delivered,
 * or is in an open delivery gap, which ends the proof. A check that finds less than before withdraws it at once. A
 * delivery that failed, was repeated or came late may have delayed others: for as long as a delivery takes, checks keep
 * the earlier proof and do not renew it.
 */
import * as Duration from "effect/Duration"
import * as Statement from "../postgres/Statement.ts"
import type { SubscriptionRow } from "../subscriptions/SubscriptionStore.ts"
import type { CheckedCompany } from "./SubscriptionGaps.ts"

/** An allowance for the time of a check. */
const checkAllowance = Duration.minutes(1)

/** Resources whose every change is announced by events that healthy subscriptions deliver. */
const announcedResources = (
  { source, unreadable, wanted }: CheckedCompany,
  rows: ReadonlyArray<SubscriptionRow>
): ReadonlyArray<string> => {
  const healthy = rows.filter(({ state, unhealthyReason }) => state === "active" && unhealthyReason === null)
  const delivered = new Set(healthy.flatMap(({ events }) => events))
  // A gap is stored for wanted events only.
  const isProven = (event: string) => wanted.has(event) && delivered.has(event) && !unreadable.has(event)
  return [...new Set(wanted.values())].filter((resource) => {
    const events = source.announcing(resource)
    return events.length > 0 && events.every(isProven)
  })
}

export const saveStatement = Statement.make({
  name: "store a check of the events",
  params: ["text", "timestamptz", "text[]", "bool", "float8", "float8", "float8"],
  text: `with renewed as (
           insert into tributary.event_checks as e (company, checked_at, resources, delay, age_max, expires_at)
           select $1, $2::timestamptz, $3, delay, age_max, $2::timestamptz + expires
             from (select $5::float8 * interval '1 millisecond' as delay, $6::float8 * interval '1 millisecond' as age_max,
                          $7::float8 * interval '1 millisecond' as expires) times
            where $4::bool and cardinality($3::text[]) > 0
              and not exists (select from tributary.subscriptions s
                               where s.company = $1 and s.state = 'active' and s.delayed_at >= $2::timestamptz - delay)
           on conflict (company) do update
              set checked_at = excluded.checked_at, resources = excluded.resources, delay = excluded.delay,
                  age_max = excluded.age_max, expires_at = excluded.expires_at,
                  withdrawn_at = case when e.resources <@ excluded.resources then e.withdrawn_at else tributary.now() end
            -- The warehouse's clock may have been set back.
            where e.checked_at <= excluded.checked_at or e.checked_at > tributary.now()
           returning company
         )
         update tributary.event_checks e
            set resources = array(select unnest(e.resources) intersect select unnest($3::text[])), withdrawn_at = tributary.now()
          where e.company = $1 and not (e.resources <@ $3::text[]) and not exists (select from renewed)`
})

/** Stores the result of a check that began at `at`. `areLogsKnown` says that every delivery log is known up to then. */
export const save = (
  company: CheckedCompany,
  at: string,
  rows: ReadonlyArray<SubscriptionRow>,
  areLogsKnown: boolean,
  checkInterval: Duration.Duration
) => {
  const delayMs = Duration.toMillis(company.source.deliveryDelayMax)
  return Statement.run(saveStatement, [
    company.name,
    at,
    announcedResources(company, rows),
    areLogsKnown,
    delayMs,
    delayMs + Duration.toMillis(checkInterval) + Duration.toMillis(checkAllowance),
    Duration.toMillis(company.unobservedMax)
  ])
}

// ------------------------------------------------------------------------------------------------- quiet companies

/**
 * The memory of the checks of one company in one process: a check of a quiet company is one request.
 *
 * A delivery log is left unread only if the list of subscriptions shows that it has no new entry. Each attempt changes the
 * failure count or the time of the last delivery. The log must have been read twice while both were as they are now: the
 * time may have a resolution of a second. The newest entry must agree with that time, so a source that does not report it
 * is read in each check. A subscription that was disabled by one answer and enabled again shows the same values; so
 * everything is read at least each hour.
 */
export interface Memory {
  /** When everything was last read, in milliseconds by the warehouse's clock; null before that. */
  readAtMs: number | null
  /** What the list showed at the last reads of each log, and how often the log was read since. */
  readonly logs: Map<string, { readonly shown: string; readonly reads: number }>
}

export const makeMemory = (): Memory => ({ readAtMs: null, logs: new Map() })

/** Time after which a check reads everything, also of a quiet company. */
const readEveryMs = 3_600_000
const readsMin = 2

/** Whether this check may leave out what it knows. */
export const isRecent = ({ readAtMs }: Memory, atMs: number): boolean =>
  readAtMs !== null && atMs >= readAtMs && atMs - readAtMs < readEveryMs

const shownBy = ({ failCount, lastDeliveryAt }: SubscriptionRow): string => `${failCount} ${lastDeliveryAt}`

/** Whether the list shows that the log has no entry that was not read. */
export const isLogKnown = ({ logs }: Memory, row: SubscriptionRow): boolean => {
  const log = logs.get(row.id)
  const isQuiet = row.state === "active" && row.unhealthyReason === null && row.failCount === 0n
  return isQuiet && log !== undefined && log.reads >= readsMin && log.shown === shownBy(row)
}

/** Remembers a read of a log; `newestAt` is the time of its newest entry. */
export const rememberLog = ({ logs }: Memory, row: SubscriptionRow, newestAt: string | null): void => {
  const shown = shownBy(row)
  const { lastDeliveryAt } = row
  // The time of the last delivery may be given in whole seconds.
  const agrees =
    newestAt === null || (lastDeliveryAt !== null && Date.parse(newestAt) < Date.parse(lastDeliveryAt) + 1000)
  const before = logs.get(row.id)
  if (!agrees) logs.delete(row.id)
  else logs.set(row.id, { shown, reads: before?.shown === shown ? before.reads + 1 : 1 })
}
