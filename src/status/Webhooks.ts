/**
 * The status of webhooks for people: subscriptions, inbox, delivery gaps and processes.
 *
 * Promise: no request is sent to the source. Every age is by the warehouse's clock. The state of a subscription comes with
 * the time since its last check.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import type { Cause } from "../reconcile/DeliveryGaps.ts"
import type { SubscriptionState } from "../subscriptions/SubscriptionStore.ts"

const deadReasonsMax = 3

/** The rows of these companies; of all where $1 is null. */
const isOf = (column: string) => `($1::text[] is null or ${column} = any($1))`

const ms = (column: string) => `(extract(epoch from tributary.now() - ${column}) * 1000)::float8`

export const subscriptionsStatement = Statement.make({
  name: "read the status of subscriptions",
  params: ["text[]?"],
  columns: {
    company: "text",
    id: "text",
    url: "text",
    state: Statement.as<SubscriptionState>("text"),
    /** Also true where the source has disabled it as well. */
    paused: "bool",
    /** Why the last check of it or of its delivery log failed, and what to do; null after a success. */
    problem: "text?",
    remedy: "text?",
    failCount: "float8?",
    /** By the source's clock. */
    lastDeliveryAt: "text?",
    disabledAt: "text?",
    /** Time since the last check at the source. */
    checkedMs: "float8",
    /** Time since its delivery log was last read; null when it never was. */
    logReadMs: "float8?",
    testedAt: "text?",
    testError: "text?",
    testedAfter: "text?"
  },
  // A deleted subscription is shown only where there is no other: then nothing is delivered.
  text: `select company, subscription_id as id, url, state, paused, last_error as problem, remedy, failure_count::float8 as "failCount",
                to_json(last_delivery_at) #>> '{}' as "lastDeliveryAt", to_json(disabled_at) #>> '{}' as "disabledAt",
                ${ms("checked_at")} as "checkedMs", ${ms("log_read_at")} as "logReadMs",
                to_json(tested_at) #>> '{}' as "testedAt", test_error as "testError", to_json(tested_after) #>> '{}' as "testedAfter"
           from tributary.subscriptions s
          where ${isOf("company")} and (state <> 'deleted' or (
            not exists (select 1 from tributary.subscriptions o where o.company = s.company and o.state <> 'deleted')
            and checked_at = (select max(checked_at) from tributary.subscriptions o where o.company = s.company)))
          order by company, first_seen_at, subscription_id`
})

export const inboxStatement = Statement.make({
  name: "read the status of the inbox",
  params: ["text[]?"],
  columns: {
    company: "text",
    waiting: "int4",
    oldestMs: "float8?",
    /** Within 24 hours. */
    done: "int4",
    ignored: "int4",
    dead: "int4",
    /** The errors of the newest dead letters. */
    deadReasons: "text[]"
  },
  text: `select company, coalesce(sum(events) filter (where state = 'pending'), 0)::int as waiting,
                max(${ms("oldest_at")}) filter (where state = 'pending') as "oldestMs",
                coalesce(sum(events) filter (where state = 'done'), 0)::int as done,
                coalesce(sum(events) filter (where state = 'skipped'), 0)::int as ignored,
                coalesce(sum(events) filter (where state = 'dead_letter'), 0)::int as dead,
                array(select last_error from tributary.inbox d
                       where d.company = i.company and d.state = 'dead_letter' and d.last_error is not null
                       group by last_error order by max(id) desc limit ${deadReasonsMax}) as "deadReasons"
           from tributary.inbox_status i
          where ${isOf("company")} group by company`
})

/** The open delivery gaps of these companies, or of all (null). One without an end lasts. */
export const readGaps = (companies: ReadonlyArray<string> | null) =>
  Query.run(
    control
      .selectFrom("tributary.delivery_gaps")
      .select((of) => [
        ...(["company", "resource", "cause", "detail"] as const),
        Query.instant(of.ref("began_at")).as("beganAt"),
        Query.instant(of.ref("ended_at")).as("endedAt"),
        Query.instant(of.ref("detected_at")).as("detectedAt"),
        // Why the last attempt did not close it.
        "last_error as reason"
      ])
      .where("closed_at", "is", null)
      .$if(companies !== null, (gaps) => gaps.where("company", "=", Query.anyOf(companies!)))
      .orderBy(["company", "resource", "id"])
  )

export const closedGapsStatement = Statement.make({
  name: "read the closed delivery gaps",
  params: ["text[]?"],
  columns: {
    company: "text",
    resource: "text",
    cause: Statement.as<Cause>("text"),
    closedBy: Statement.as<string>("text?"),
    closedMs: "float8"
  },
  text: `select company, resource, cause, closed_by as "closedBy", ${ms("closed_at")} as "closedMs"
           from tributary.delivery_gaps where ${isOf("company")} and closed_at > (select tributary.now() - interval '1 day') order by company, closed_at, id`
})

export const receiversStatement = Statement.make({
  name: "read the processes that receive deliveries",
  params: ["text[]?"],
  columns: { company: "text", receiverSeenMs: "float8", receivers: "int4" },
  text: `select company, min(${ms("heartbeat_at")}) as "receiverSeenMs",
                (select count(*)::int from tributary.processes_alive a where company = any(a.companies)) as receivers
           from (select companies, max(heartbeat_at) as heartbeat_at from tributary.processes group by companies) p, unnest(companies) as company where ${isOf("company")} group by company`
})

type Of<S> = Omit<Statement.RowOf<S>, "company">
export type SubscriptionStatus = Of<typeof subscriptionsStatement>
export type InboxStatus = Of<typeof inboxStatement>
export type GapStatus = Omit<Effect.Success<ReturnType<typeof readGaps>>[number], "company">

export interface CompanyStatus {
  readonly company: string
  readonly subscriptions: ReadonlyArray<SubscriptionStatus>
  readonly inbox: InboxStatus
  readonly gaps: ReadonlyArray<GapStatus>
  /** Gaps closed within 24 hours. */
  readonly closed: ReadonlyArray<Of<typeof closedGapsStatement>>
  /** Processes that are alive and receive its deliveries. */
  readonly receivers: number
  /** Time since the last heartbeat, of a live process or not; null without one. */
  readonly receiverSeenMs: number | null
}

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

/** Those of these companies that have any webhook data, by name. */
export const readOf = (companies: ReadonlyArray<string> | null): Sql.Query<ReadonlyArray<CompanyStatus>> =>
  Effect.gen(function* () {
    const subscriptions = yield* Statement.run(subscriptionsStatement, [companies])
    const inboxes = yield* Statement.run(inboxStatement, [companies])
    const gaps = yield* readGaps(companies)
    const closed = yield* Statement.run(closedGapsStatement, [companies])
    const receivers = yield* Statement.run(receiversStatement, [companies])
    const names = [...subscriptions, ...inboxes, ...gaps, ...closed, ...receivers].map(({ company }) => company)
    const subscriptionsOf = byCompany(subscriptions)
    const inboxOf = byCompany(inboxes)
    const gapsOf = byCompany(gaps)
    const closedOf = byCompany(closed)
    const receiversOf = byCompany(receivers)
    return [...new Set(names)].sort().map((company): CompanyStatus => ({
      company,
      subscriptions: subscriptionsOf(company),
      inbox: inboxOf(company)[0] ?? emptyInbox,
      gaps: gapsOf(company),
      closed: closedOf(company),
      ...(receiversOf(company)[0] ?? { receivers: 0, receiverSeenMs: null })
    }))
  })

/** All companies with any webhook data, by name. */
export const read = readOf(null)

const byCompany = <A extends { readonly company: string }>(rows: ReadonlyArray<A>) => {
  const groups = Map.groupBy(rows, ({ company }) => company)
  return (company: string): ReadonlyArray<Omit<A, "company">> =>
    (groups.get(company) ?? []).flatMap(({ company: name, ...row }) => (name === company ? [row] : []))
}
