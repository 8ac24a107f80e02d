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
import type { NotNull } from "kysely"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription, Subscriptions } from "../connector/Subscriptions.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { sanitizeText } from "../postgres/Text.ts"
import { transaction } from "../postgres/Transaction.ts"
import { isOurs } from "./DesiredState.ts"
import * as SecretRows from "./SecretRows.ts"

export type SubscriptionState = StoredRow["state"]

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

/** SQL: the wanted events ($2) that a row does not deliver. */
const missingEvents = (events: string, unknown: string) =>
  `array(select w from jsonb_array_elements_text($2::jsonb) w where w <> all(${events}) and w <> all(${unknown}))`

/** Times are RFC 3339 to the microsecond by the warehouse's clock. */
const rowsOf = (company: string) =>
  control
    .selectFrom("tributary.subscriptions")
    // `paused`: also true where the source has disabled it as well.
    .select(["subscription_id as id", "url", "events", "state", "paused", "failure_count as failCount"])
    // Why the last read of it or of its delivery log failed, and what to do; null after a success.
    .select(["last_error as problem", "remedy", "test_error as testError", "unknown_events"])
    // The first reason why events may have been dropped since `healthyAt`. Stays until {@link markHealthy}.
    .select("unhealthy_reason as unhealthyReason")
    // The subscription dropped no event that fired before this; null when it was never healthy.
    .select((of) => Query.instant(of.ref("healthy_at")).as("healthyAt"))
    .select((of) => [
      Query.instant(of.ref("last_delivery_at")).as("lastDeliveryAt"),
      Query.instant(of.ref("disabled_at")).as("disabledAt"),
      Query.instant(of.ref("first_seen_at")).as("firstSeenAt"),
      Query.instant(of.ref("checked_at")).as("checkedAt"),
      Query.instant(of.ref("tested_at")).as("testedAt"),
      Query.instant(of.ref("tested_after")).as("testedAfter")
    ])
    // The newest entry of its log that was read, by the source's own time, byte for byte; null where there was none.
    .select(["log_cursor_at as logCursorAt", "log_cursor_event as logCursorEvent"])
    .select((of) => [
      // When the log was read; null when it never was.
      of.cast<string | null>("log_read_at", "text").as("logReadAt"),
      // How long that has been the newest entry, of an event with attempts to come; null when it was not.
      Query.ageMs(of.ref("log_head_pending_since")).as("logWaitsMs"),
      // Of its first snapshot where the log was never read.
      Query.ageMs(of.fn.coalesce("log_read_at", "first_seen_at")).as("logAgeMs")
    ])
    .where("company", "=", company)
    .orderBy("first_seen_at")
    .orderBy("subscription_id")

type StoredRow = Query.RowOf<typeof rowsOf>

/** A row after a snapshot. */
export interface SubscriptionRow extends Omit<StoredRow, "unknown_events"> {
  /** Wanted events that it does not deliver, except those that the source does not know. */
  readonly missingEvents: ReadonlyArray<string>
}

/** The rows of a company, including those that are gone, in the order of their first snapshot. */
export const read = (company: string, wantedEvents: ReadonlyArray<string>): Sql.Query<ReadonlyArray<SubscriptionRow>> =>
  Effect.map(Query.run(rowsOf(company)), (rows) =>
    rows.map(({ unknown_events: unknown, ...row }) => ({
      ...row,
      missingEvents: wantedEvents.filter((event) => !row.events.includes(event) && !unknown.includes(event))
    }))
  )

/** Whether it delivers all wanted events now. */
export const isHealthy = ({ state, missingEvents }: SubscriptionRow): boolean =>
  state === "active" && missingEvents.length === 0

/** The subscriptions that the source should list: those that are stored, or whose secret is in use. */
const known = (company: string) =>
  Query.run(
    control
      .selectFrom("tributary.subscriptions")
      .select("subscription_id as id")
      .where("company", "=", company)
      .where("state", "<>", "deleted")
      .union(
        SecretRows.inUse(company)
          .select("subscription_id as id")
          .where("subscription_id", "is not", null)
          .$narrowType<{ id: NotNull }>()
      )
      .orderBy("id")
  )

/**
 * The source's whole list. A subscription that is stored, or whose secret is in use, and that is not listed is requested
 * by its id before it counts as gone: a list that is empty by mistake must not lead to a second subscription.
 */
export const listed = Effect.fn("SubscriptionStore.listed")(function* (
  company: string,
  source: Subscriptions
): Effect.fn.Return<ReadonlyArray<Subscription>, SourceError | DatabaseError, SqlClient.SqlClient> {
  const shown = yield* source.list
  const isShown = new Set(shown.map(({ id }) => id))
  const found = yield* Effect.forEach(
    (yield* known(company)).filter(({ id }) => !isShown.has(id)),
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

/** Locks the rows of a company, in the same order in every process. */
export const lock = (company: string) =>
  control
    .selectFrom("tributary.subscriptions")
    .select(["subscription_id as id", "state", "events", "unhealthy_reason as unhealthyReason"])
    .select((of) => [
      // Whether its gaps were ever evaluated, and whether they were after its last snapshot.
      of("gaps_evaluated_at", "is not", null).$castTo<boolean>().as("isEvaluated"),
      of("gaps_evaluated_at", "is not distinct from", of.ref("checked_at")).$castTo<boolean>().as("isUpToDate")
    ])
    .where("company", "=", company)
    .orderBy("subscription_id")
    .forUpdate()

/** A row before a snapshot. */
export type LockedRow = Query.RowOf<typeof lock>

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
 * Stores a snapshot: `subscriptions` is the source's whole list, `at` the time from {@link readInstant} before it was read. Only
 * subscriptions that are ours by {@link isOurs} are stored; a stored one that is not listed is gone. `refused` are
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
    .filter(({ url }) => isOurs(company, wantedUrl, url))
    .map((one) => ({ ...one, state: stateOf(one), last: timeOf(one.lastDeliveryAt), disabled: timeOf(one.disabledAt) }))
  const events = JSON.stringify(wantedEvents)
  const unknown = refused === null ? null : JSON.stringify(refused)
  const write = Statement.run(snapshotStatement, [company, events, JSON.stringify(rows), at, unknown])
  yield* transaction(Effect.andThen(Query.run(lock(company)), write))
  return yield* read(company, wantedEvents)
})

/** A change of the row of a subscription. */
export const change = (company: string, subscription_id: string) =>
  control.updateTable("tributary.subscriptions").where((is) => is.and({ company, subscription_id }))

/** Stores why a read of the subscription failed, until one succeeds. */
export const recordFailure = (
  company: string,
  subscriptionId: string,
  { message, remedy }: Pick<SourceError, "message" | "remedy">
) => Query.run(change(company, subscriptionId).set({ last_error: sanitizeText(message), remedy }))

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
  Query.run(
    change(company, id)
      .set({ tested_at: Query.now, test_error: error === null ? null : sanitizeText(error).slice(0, testErrorMax) })
      .set((of) => ({ tested_after: of.fn("greatest", ["last_delivery_at", of.val(timeOf(lastDeliveryAt))]) }))
  )

/** An active subscription, under the caller's transaction. */
const changeActive = (company: string, id: string) => change(company, id).where("state", "=", "active")

/**
 * Marks a subscription as healthy from `at`, the time of the snapshot that showed it. The caller's transaction stores the
 * delivery gap before that.
 */
export const markHealthy = (company: string, id: string, at: string) =>
  Query.run(changeActive(company, id).set({ unhealthy_reason: null, healthy_at: Query.at(at) }))

/** Marks a subscription that is active again and does not deliver everything. Lasting gaps show the missing events. */
export const markMissing = (company: string, id: string) =>
  Query.run(changeActive(company, id).set({ unhealthy_reason: "missing" }))
