/**
 * The stored state of the subscriptions that deliver to us: `tributary.subscriptions`.
 *
 * Promise: a time in which events may have been dropped stays visible. Every snapshot of the source is stored. From the
 * first unhealthy snapshot (paused, disabled, gone, an event missing, failures reset without a delivery) `healthy_at` stops
 * and `unhealthy_reason` names the reason. A repair of the subscription does not change them; {@link markHealthy} does, in the
 * transaction that stores the delivery gap.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription, Subscriptions } from "../connector/Subscriptions.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { sanitizeText } from "../postgres/Text.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as HookUrl from "./HookUrl.ts"

export type SubscriptionState = "active" | "paused" | "disabled" | "deleted"

/** Why events may have been dropped: the causes of a delivery gap that the subscription itself shows. */
export type UnhealthyReason = "paused" | "disabled" | "missing"

export const stateOf = ({ cancelled, disabledAt, paused }: Subscription): SubscriptionState =>
  cancelled ? "deleted" : disabledAt !== null ? "disabled" : paused ? "paused" : "active"

/**
 * What is proved about the deliveries of a subscription. `unproven`: it is active, and nothing was delivered yet.
 * `test_failed`: nothing was delivered since a test delivery that did not arrive.
 */
export type DeliveryState = Exclude<SubscriptionState, "active"> | "failing" | "test_failed" | "unproven" | "delivers"

/** The last test delivery of a subscription, as stored. */
export interface LastTest {
  /** Null before the first. */
  readonly testedAt: string | null
  /** Why it did not arrive; null where it arrived. */
  readonly testError: string | null
  /** The last delivery before it. */
  readonly testedAfter: string | null
}

export const neverTested: LastTest = { testedAt: null, testError: null, testedAfter: null }

/** Whether a failed test is newer than every delivery. */
const isTestFailed = ({ testError, testedAfter }: LastTest, lastDeliveryAt: string | null): boolean =>
  testError !== null &&
  (lastDeliveryAt === null || (testedAfter !== null && Date.parse(lastDeliveryAt) <= Date.parse(testedAfter)))

export const deliveryStateOf = (
  one: LastTest & {
    readonly state: SubscriptionState
    readonly failCount: number | bigint | null
    readonly lastDeliveryAt: string | null
  }
): DeliveryState => {
  const { state, failCount, lastDeliveryAt, testedAt, testError } = one
  if (state !== "active") return state
  if (failCount !== null && failCount > 0) return "failing"
  if (isTestFailed(one, lastDeliveryAt)) return "test_failed"
  const isProven = lastDeliveryAt !== null || (testedAt !== null && testError === null)
  return isProven ? "delivers" : "unproven"
}

const instant = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** SQL: the wanted events ($2) that a row does not deliver. */
const missingEvents = (events: string, unknown: string) =>
  `array(select w from jsonb_array_elements_text($2::jsonb) w where w <> all(${events}) and w <> all(${unknown}))`

/** A row after a snapshot. Times are RFC 3339 to the microsecond by the warehouse's clock. */
export type SubscriptionRow = Statement.RowOf<typeof readStatement>

export const readStatement = Statement.make({
  name: "read the subscriptions of a company",
  params: ["text", "jsonb"],
  columns: {
    id: "text",
    url: "text",
    events: "text[]",
    state: Statement.as<SubscriptionState>("text"),
    /** Also true where the source has disabled it as well. */
    paused: "bool",
    /** Why the last read of it or of its delivery log failed, and what to do; null after a success. */
    problem: "text?",
    remedy: "text?",
    failCount: "int8?",
    lastDeliveryAt: "text?",
    disabledAt: "text?",
    firstSeenAt: "text",
    checkedAt: "text",
    /** The subscription dropped no event that fired before this; null when it was never healthy. */
    healthyAt: "text?",
    /** The first reason since then; null while it is healthy. Stays until {@link markHealthy}. */
    unhealthyReason: Statement.as<UnhealthyReason | null>("text?"),
    testedAt: "text?",
    testError: "text?",
    testedAfter: "text?",
    /** Wanted events that it does not deliver, except those that the source does not know. */
    missingEvents: "text[]"
  },
  text: `select subscription_id as id, url, events, state, paused, last_error as problem, remedy, failure_count as "failCount",
                ${instant("last_delivery_at")} as "lastDeliveryAt", ${instant("disabled_at")} as "disabledAt",
                ${instant("first_seen_at")} as "firstSeenAt", ${instant("checked_at")} as "checkedAt",
                ${instant("healthy_at")} as "healthyAt", unhealthy_reason as "unhealthyReason",
                ${instant("tested_at")} as "testedAt", test_error as "testError", ${instant("tested_after")} as "testedAfter",
                ${missingEvents("events", "unknown_events")} as "missingEvents"
           from tributary.subscriptions where company = $1 order by first_seen_at, subscription_id`
})

/** The rows of a company, including those that are gone, in the order of their first snapshot. */
export const read = (company: string, wantedEvents: ReadonlyArray<string>) =>
  Statement.run(readStatement, [company, JSON.stringify(wantedEvents)])

/** Whether it delivers all wanted events now. */
export const isHealthy = ({ state, missingEvents }: SubscriptionRow): boolean =>
  state === "active" && missingEvents.length === 0

export const nowStatement = Statement.make({
  name: "read the time of the warehouse",
  columns: { at: "text" },
  text: `select ${instant("tributary.now()")} as at`
})

/** The warehouse's time. The caller reads it before the source: a snapshot is not younger than this. */
export const now: Sql.Query<string> = Effect.map(Statement.run(nowStatement), ([row]) => row!.at)

export const knownStatement = Statement.make({
  name: "list the known subscriptions of a company",
  params: ["text"],
  columns: { id: "text" },
  text: `select subscription_id as id from tributary.subscriptions where company = $1 and state <> 'deleted'
         union
         select subscription_id from tributary.webhook_secrets
          where company = $1 and state in ('current', 'next') and subscription_id is not null
          order by 1`
})

/**
 * The source's whole list. A subscription that is stored, or whose secret is in use, and that is not listed is requested
 * by its id before it counts as gone: a list that is empty by mistake must not lead to a second subscription.
 */
export const listed = Effect.fn("SubscriptionStore.listed")(function* (
  company: string,
  source: Subscriptions
): Effect.fn.Return<ReadonlyArray<Subscription>, SourceError | DatabaseError, SqlClient.SqlClient> {
  const shown = yield* source.list
  const known = yield* Statement.run(knownStatement, [company])
  const isShown = new Set(shown.map(({ id }) => id))
  const found = yield* Effect.forEach(
    known.filter(({ id }) => !isShown.has(id)),
    ({ id }) => source.get(id)
  )
  return [...shown, ...found.flatMap((one) => (one === null || one.cancelled ? [] : [one]))]
})

/**
 * SQL: a delivery or enabling resets the failure count. When it fell without a delivery, the
 * subscription was disabled and enabled again between two snapshots.
 */
const failuresReset = `case when excluded.failure_count < s.failure_count
              and excluded.last_delivery_at is not distinct from s.last_delivery_at then 'disabled' end`

export const lockStatement = Statement.make({
  name: "lock the subscriptions of a company",
  params: ["text"],
  columns: {
    id: "text",
    state: Statement.as<SubscriptionState>("text"),
    events: "text[]",
    unhealthyReason: Statement.as<UnhealthyReason | null>("text?"),
    /** Whether its gaps were ever evaluated. */
    isEvaluated: "bool",
    /** Whether they were evaluated after its last snapshot. */
    isUpToDate: "bool"
  },
  // Every process locks a company's rows in the same order.
  text: `select subscription_id as id, state, events, unhealthy_reason as "unhealthyReason", gaps_evaluated_at is not null as "isEvaluated",
                gaps_evaluated_at is not distinct from checked_at as "isUpToDate"
           from tributary.subscriptions where company = $1 order by subscription_id for update`
})

/** A row before a snapshot. */
export type LockedRow = Statement.RowOf<typeof lockStatement>

export const snapshotStatement = Statement.make({
  name: "store a snapshot of the subscriptions",
  params: ["text", "jsonb", "jsonb", "timestamptz", "jsonb?"],
  text: `with listed as (
           select r.*, case when $5::jsonb is null then coalesce(before.unknown_events, '{}')
                            else array(select jsonb_array_elements_text($5::jsonb)) end as unknown_events
             from jsonb_to_recordset($3::jsonb) as r(id text, url text, events text[], description text, state text,
                    paused boolean, "failCount" bigint, last timestamptz, disabled timestamptz)
             left join tributary.subscriptions before on before.company = $1 and before.subscription_id = r.id
         ), seen as (
           select l.*, case when state in ('paused', 'disabled') then state
                            when state = 'deleted' or ${missingEvents("l.events", "l.unknown_events")} <> '{}' then 'missing' end as unhealthy_reason
             from listed l
         ), gone as (
           update tributary.subscriptions s
              set state = 'deleted', unhealthy_reason = coalesce(s.unhealthy_reason, 'missing'), checked_at = $4::timestamptz
            where s.company = $1 and s.state <> 'deleted' and s.checked_at <= $4::timestamptz
              and not exists (select 1 from seen where seen.id = s.subscription_id)
         )
         insert into tributary.subscriptions as s
           (company, subscription_id, url, events, description, state, paused, failure_count, last_delivery_at, disabled_at,
            checked_at, healthy_at, unhealthy_reason, unknown_events, delayed_at)
         select $1, id, url, events, description, state, paused, "failCount", last, disabled, $4::timestamptz,
                case when unhealthy_reason is null then $4::timestamptz end, unhealthy_reason, unknown_events,
                case when "failCount" is distinct from 0 then $4::timestamptz end
           from seen
         on conflict (company, subscription_id) do update
            set url = excluded.url, events = excluded.events, description = excluded.description, state = excluded.state,
                paused = excluded.paused, failure_count = excluded.failure_count, last_delivery_at = excluded.last_delivery_at,
                disabled_at = excluded.disabled_at, checked_at = excluded.checked_at, unknown_events = excluded.unknown_events,
                delayed_at = coalesce(excluded.delayed_at, s.delayed_at),
                reenable_attempts = case when excluded.state = 'disabled' then s.reenable_attempts else 0 end,
                reenable_next_attempt_at = case when excluded.state = 'disabled' then s.reenable_next_attempt_at end,
                unhealthy_reason = coalesce(s.unhealthy_reason, excluded.unhealthy_reason, ${failuresReset}),
                healthy_at = case when coalesce(s.unhealthy_reason, excluded.unhealthy_reason, ${failuresReset}) is null then excluded.healthy_at
                                else s.healthy_at end
          where s.checked_at <= excluded.checked_at`
})

/** A time of the source in RFC 3339; null where it is not a time. */
const timeOf = (text: string | null): string | null => {
  if (text === null) return null
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds) ? null : new Date(milliseconds).toISOString()
}

/**
 * Stores a snapshot: `subscriptions` is the source's whole list, `at` the time from {@link now} before it was read. Only
 * subscriptions that are ours by {@link HookUrl.isOurs} are stored; a stored one that is not listed is gone. `refused` are
 * events that the source just refused as unknown: they are stored, and do not count as missing. A snapshot older than the
 * stored one changes nothing. Returns the company's rows.
 */
export const saveSnapshot = Effect.fn("SubscriptionStore.saveSnapshot")(function* (
  company: string,
  subscriptions: ReadonlyArray<Subscription>,
  wantedUrl: string | null,
  wantedEvents: ReadonlyArray<string>,
  at: string,
  refused: ReadonlyArray<string> | null = null
): Effect.fn.Return<ReadonlyArray<SubscriptionRow>, DatabaseError, SqlClient.SqlClient> {
  const rows = subscriptions
    .filter(({ url }) => HookUrl.isOurs(company, wantedUrl, url))
    .map((one) => ({ ...one, state: stateOf(one), last: timeOf(one.lastDeliveryAt), disabled: timeOf(one.disabledAt) }))
  const events = JSON.stringify(wantedEvents)
  const unknown = refused === null ? null : JSON.stringify(refused)
  const write = Statement.run(snapshotStatement, [company, events, JSON.stringify(rows), at, unknown])
  yield* transaction(Effect.andThen(Statement.run(lockStatement, [company]), write))
  return yield* read(company, wantedEvents)
})

export const failureStatement = Statement.make({
  name: "store why a subscription could not be read",
  params: ["text", "text", "text", "text"],
  text: "update tributary.subscriptions set last_error = $3, remedy = $4 where company = $1 and subscription_id = $2"
})

/** Stores why a read of the subscription failed, until one succeeds. */
export const recordFailure = (
  company: string,
  subscriptionId: string,
  { message, remedy }: Pick<SourceError, "message" | "remedy">
) => Statement.run(failureStatement, [company, subscriptionId, sanitizeText(message), remedy])

export const testStatement = Statement.make({
  name: "store the result of a test delivery",
  params: ["text", "text", "text?", "timestamptz?"],
  text: `update tributary.subscriptions
            set tested_at = tributary.now(), test_error = $3, tested_after = greatest(last_delivery_at, $4::timestamptz)
          where company = $1 and subscription_id = $2`
})

const testErrorMax = 500

/**
 * Stores the result of a test delivery: null where it arrived, else why it did not. The subscription was read before the
 * test; one that does not deliver to us has no row.
 */
export const recordTest = (
  company: string,
  { id, lastDeliveryAt }: Pick<Subscription, "id" | "lastDeliveryAt">,
  error: string | null
) =>
  Statement.run(testStatement, [
    company,
    id,
    error === null ? null : sanitizeText(error).slice(0, testErrorMax),
    timeOf(lastDeliveryAt)
  ])

/**
 * Marks a subscription as healthy from $3, the time of the snapshot that showed it. The caller's transaction stores the
 * delivery gap before that.
 */
export const markHealthy = Statement.make({
  name: "mark a subscription as healthy",
  params: ["text", "text", "timestamptz"],
  text: `update tributary.subscriptions set unhealthy_reason = null, healthy_at = $3
          where company = $1 and subscription_id = $2 and state = 'active'`
})

/** Marks a subscription that is active again and does not deliver everything. Lasting gaps show the missing events. */
export const markMissing = Statement.make({
  name: "mark a subscription as missing events",
  params: ["text", "text"],
  text: `update tributary.subscriptions set unhealthy_reason = 'missing'
          where company = $1 and subscription_id = $2 and state = 'active'`
})
