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

const deadReasonsMax = 3

/** The rows of these companies; of all where $1 is null. */
const isOf = (column: string) => `($1::text[] is null or ${column} = any($1))`

const ms = (column: string) => `(extract(epoch from tributary.now() - ${column}) * 1000)::float8`

/** A deleted subscription is shown only where there is no other: then nothing is delivered. */
const readSubscriptions = (companies: ReadonlyArray<string> | null) =>
  Query.run(
    control
      .selectFrom("tributary.subscriptions as s")
      .select(["company", "subscription_id as id", "url", "state"])
      // Also true where the source has disabled it as well.
      .select("paused")
      // Why the last check of it or of its delivery log failed, and what to do; null after a success.
      .select(["last_error as problem", "remedy", "test_error as testError"])
      .select((of) => [
        of.cast<number | null>("failure_count", "float8").as("failCount"),
        // By the source's clock.
        Query.instant(of.ref("last_delivery_at")).as("lastDeliveryAt"),
        Query.instant(of.ref("disabled_at")).as("disabledAt"),
        Query.instant(of.ref("tested_at")).as("testedAt"),
        Query.instant(of.ref("tested_after")).as("testedAfter"),
        Query.ageMs(of.ref("checked_at")).as("checkedMs"),
        Query.ageMs(of.ref("log_read_at")).as("logReadMs")
      ])
      .$if(companies !== null, (all) => all.where("company", "=", Query.anyOf(companies!)))
      .where((is) => {
        const others = is.selectFrom("tributary.subscriptions as o").whereRef("o.company", "=", "s.company")
        return is.or([
          is("state", "<>", "deleted"),
          is.and([
            is.not(is.exists(others.where("o.state", "<>", "deleted"))),
            is(
              "checked_at",
              "=",
              others.select((of) => of.fn.max("o.checked_at").as("newest"))
            )
          ])
        ])
      })
      .orderBy("company")
      .orderBy("first_seen_at")
      .orderBy("subscription_id")
  )

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
      .orderBy("company")
      .orderBy("resource")
      .orderBy("id")
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

type Of<Row> = Omit<Row, "company">
export type SubscriptionStatus = Of<Effect.Success<ReturnType<typeof readSubscriptions>>[number]>
export type InboxStatus = Of<Statement.RowOf<typeof inboxStatement>>
export type GapStatus = Of<Effect.Success<ReturnType<typeof readGaps>>[number]>

export interface CompanyStatus {
  readonly company: string
  readonly subscriptions: ReadonlyArray<SubscriptionStatus>
  readonly inbox: InboxStatus
  readonly gaps: ReadonlyArray<GapStatus>
  /** Gaps closed within 24 hours. */
  readonly closed: ReadonlyArray<Of<Statement.RowOf<typeof closedGapsStatement>>>
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
    const subscriptions = yield* readSubscriptions(companies)
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
