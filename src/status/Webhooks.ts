/**
 * The status of webhooks for people: subscriptions, inbox, delivery gaps and processes.
 *
 * Promise: no request is sent to the source. Every age is by the warehouse's clock. The state of a subscription comes with
 * the time since its last check.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Cause } from "../reconcile/DeliveryGaps.ts"
import type { SubscriptionState } from "../subscriptions/SubscriptionStore.ts"

/** A deleted subscription is shown only where there is no other: then nothing is delivered. */
export interface SubscriptionStatus {
  readonly id: string
  readonly url: string
  readonly state: SubscriptionState
  /** Also true where the source has disabled it as well. */
  readonly paused: boolean
  readonly failCount: number | null
  /** By the source's clock. */
  readonly lastDeliveryAt: string | null
  readonly disabledAt: string | null
  /** Time since the source was last asked. */
  readonly checkedMs: number
  /** Time since its delivery log was last read; null when it never was. */
  readonly logReadMs: number | null
  /** Why the last check of it or of its delivery log failed, and what to do; null after a success. */
  readonly problem: string | null
  readonly remedy: string | null
}

export interface InboxStatus {
  readonly waiting: number
  readonly oldestMs: number | null
  /** Within 24 hours. */
  readonly done: number
  readonly ignored: number
  readonly dead: number
  /** The errors of the newest dead letters. */
  readonly deadReasons: ReadonlyArray<string>
}

export interface GapStatus {
  readonly resource: string
  readonly cause: Cause
  readonly detail: string
  readonly beganAt: string | null
  /** Null while it lasts. */
  readonly endedAt: string | null
  readonly foundMs: number
  /** Why the last attempt did not close it. */
  readonly reason: string | null
}

export interface ClosedGapStatus {
  readonly resource: string
  readonly cause: Cause
  readonly closedBy: string
  readonly closedMs: number
}

export interface CompanyStatus {
  readonly company: string
  readonly subscriptions: ReadonlyArray<SubscriptionStatus>
  readonly inbox: InboxStatus
  readonly gaps: ReadonlyArray<GapStatus>
  /** Gaps closed within 24 hours. */
  readonly closed: ReadonlyArray<ClosedGapStatus>
  /** Processes that are alive and receive its deliveries. */
  readonly receivers: number
  /** Time since the last heartbeat, of a live process or not; null without one. */
  readonly receiverSeenMs: number | null
}

const deadReasonsMax = 3

const emptyInbox: InboxStatus = { waiting: 0, oldestMs: null, done: 0, ignored: 0, dead: 0, deadReasons: [] }

/** The status of a company without webhook data. */
export const emptyStatus = (company: string): CompanyStatus => ({
  company,
  subscriptions: [],
  inbox: emptyInbox,
  gaps: [],
  closed: [],
  receivers: 0,
  receiverSeenMs: null
})

const ms = (column: string) => `(extract(epoch from tributary.now() - ${column}) * 1000)::float8`

type Of<A> = A & { readonly company: string }

const without = <A>(row: Of<A>): Omit<Of<A>, "company"> => {
  const { company: _company, ...rest } = row
  return rest
}

/** The companies with any webhook data, by name. */
export const read: Effect.Effect<ReadonlyArray<CompanyStatus>, SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const subscriptions = yield* sql.unsafe<Of<SubscriptionStatus>>(
      `select company, subscription_id as id, url, state, paused, last_error as problem, remedy, failure_count::float8 as "failCount",
            to_json(last_delivery_at) #>> '{}' as "lastDeliveryAt", to_json(disabled_at) #>> '{}' as "disabledAt",
            ${ms("checked_at")} as "checkedMs", ${ms("log_read_at")} as "logReadMs"
       from tributary.subscriptions s
      where state <> 'deleted' or (
        not exists (select 1 from tributary.subscriptions o where o.company = s.company and o.state <> 'deleted')
        and checked_at = (select max(checked_at) from tributary.subscriptions o where o.company = s.company))
      order by company, first_seen_at, subscription_id`
    )
    const inboxes = yield* sql.unsafe<Of<InboxStatus>>(
      `select company, coalesce(sum(events) filter (where state = 'pending'), 0)::int as waiting,
            max(${ms("oldest_at")}) filter (where state = 'pending') as "oldestMs",
            coalesce(sum(events) filter (where state = 'done'), 0)::int as done,
            coalesce(sum(events) filter (where state = 'skipped'), 0)::int as ignored,
            coalesce(sum(events) filter (where state = 'dead_letter'), 0)::int as dead,
            array(select last_error from tributary.inbox d
                   where d.company = i.company and d.state = 'dead_letter' and d.last_error is not null
                   group by last_error order by max(id) desc limit ${deadReasonsMax}) as "deadReasons"
       from tributary.inbox_status i
      group by company`
    )
    const gaps = yield* sql.unsafe<Of<GapStatus>>(
      `select company, resource, cause, detail, to_json(began_at) #>> '{}' as "beganAt",
            to_json(ended_at) #>> '{}' as "endedAt", ${ms("detected_at")} as "foundMs", last_error as reason
       from tributary.delivery_gaps where closed_at is null order by company, resource, id`
    )
    const closed = yield* sql.unsafe<Of<ClosedGapStatus>>(
      `select company, resource, cause, closed_by as "closedBy", ${ms("closed_at")} as "closedMs"
       from tributary.delivery_gaps where closed_at > tributary.now() - interval '1 day' order by company, closed_at, id`
    )
    const receivers = yield* sql.unsafe<{ company: string; receivers: number; receiverSeenMs: number }>(
      `select company, min(${ms("heartbeat_at")}) as "receiverSeenMs",
            (select count(*)::int from tributary.processes_alive a where company = any(a.companies)) as receivers
       from tributary.processes, unnest(companies) as company group by company`
    )
    const names = [...subscriptions, ...inboxes, ...gaps, ...closed, ...receivers].map(({ company }) => company)
    return [...new Set(names)].sort().map((company): CompanyStatus => {
      const of = <A extends { readonly company: string }>(rows: ReadonlyArray<A>) =>
        rows.filter((row) => row.company === company)
      const [inbox] = of(inboxes)
      const [receiving] = of(receivers)
      return {
        company,
        subscriptions: of(subscriptions).map(without),
        inbox: inbox === undefined ? emptyInbox : without(inbox),
        gaps: of(gaps).map(without),
        closed: of(closed).map(without),
        receivers: receiving?.receivers ?? 0,
        receiverSeenMs: receiving?.receiverSeenMs ?? null
      }
    })
  }
)
