/**
 * The basis of event-proven freshness: what a check of the subscriptions found well (`tributary.event_checks`).
 *
 * Promise: `tributary.event_proofs` proves a resource fresh at a time only if every event that fired before was delivered,
 * or is in an open delivery gap, which ends the proof. A check that finds less than before withdraws it at once. A
 * delivery that failed, was repeated or came late may have delayed others: for as long as a delivery takes, checks keep
 * the earlier proof and do not renew it.
 */
import * as Duration from "effect/Duration"
import type { Subscriptions } from "../connector/Subscriptions.ts"
import * as Statement from "../postgres/Statement.ts"
import type { SubscriptionRow } from "../subscriptions/SubscriptionStore.ts"
import type { CheckedCompany } from "./CheckedCompany.ts"

/** An allowance for the time of a check. */
const checkAllowance = Duration.minutes(1)

/** Resources whose every change is announced by events that healthy subscriptions deliver. */
const announcedResources = (
  { unreadable, wanted }: CheckedCompany,
  { announcing }: Subscriptions,
  rows: ReadonlyArray<SubscriptionRow>
): ReadonlyArray<string> => {
  const healthy = rows.filter(({ state, unhealthyReason }) => state === "active" && unhealthyReason === null)
  const delivered = new Set(healthy.flatMap(({ events }) => events))
  // A gap is stored for wanted events only.
  const isProven = (event: string) => wanted.has(event) && delivered.has(event) && !unreadable.has(event)
  return [...new Set(wanted.values())].filter((resource) => {
    const events = announcing(resource)
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

/** A finished check. */
export interface FinishedCheck {
  readonly company: CheckedCompany
  readonly subscriptions: Subscriptions
  /** The time from before the source was read. */
  readonly at: string
  /** The company's subscriptions after the check. */
  readonly rows: ReadonlyArray<SubscriptionRow>
  /** Whether every delivery log is known up to this check. */
  readonly areLogsKnown: boolean
  readonly checkInterval: Duration.Duration
}

/** Stores the result of a check. */
export const save = ({ areLogsKnown, at, checkInterval, company, rows, subscriptions }: FinishedCheck) => {
  const delayMs = Duration.toMillis(subscriptions.deliveryDelayMax)
  return Statement.run(saveStatement, [
    company.name,
    at,
    announcedResources(company, subscriptions, rows),
    areLogsKnown,
    delayMs,
    delayMs + Duration.toMillis(checkInterval) + Duration.toMillis(checkAllowance),
    Duration.toMillis(company.unobservedMax)
  ])
}
