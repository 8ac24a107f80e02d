/**
 * What is known of the subscriptions that deliver to us: `tributary.subscriptions`.
 *
 * Promise: a time in which events may have been dropped is never papered over. Whoever looks at the source writes down
 * what it saw; from the first look that was not sound (paused, disabled, gone, an event missing, failures forgotten
 * without a delivery) `sound_at` stands still and `unsound` says why, whoever mends the subscription meanwhile, until
 * {@link markHealthy} is called by whoever has written the gap down.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription, Subscriptions } from "../connector/Subscriptions.ts"
import { sanitizeText } from "../postgres/Text.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as HookUrl from "./HookUrl.ts"

export type SubscriptionState = "active" | "paused" | "disabled" | "gone"

/** Why events may have been dropped: the causes of a gap that the subscription itself shows. */
export type UnhealthyReason = "paused" | "disabled" | "missing"

/** A row as it stands after a look. Times are RFC 3339 to the microsecond by the warehouse's clock. */
export interface SubscriptionRow {
  readonly id: string
  readonly url: string
  readonly events: ReadonlyArray<string>
  readonly state: SubscriptionState
  /** Also where the source has disabled it as well. */
  readonly paused: boolean
  readonly failCount: bigint | null
  readonly lastDeliveryAt: string | null
  readonly disabledAt: string | null
  readonly firstSeenAt: string
  readonly checkedAt: string
  /** Nothing that fired before this was dropped by the subscription; null when it was never seen sound. */
  readonly soundAt: string | null
  /** The first reason since then; null while it is sound. Stays when the subscription is mended, until {@link markHealthy}. */
  readonly unsound: UnhealthyReason | null
  /** Events that are wanted and that it does not deliver, but for those that the source does not know. */
  readonly lacks: ReadonlyArray<string>
  /** Why the last look at it or at its delivery log failed, and what to do; null while looks succeed. */
  readonly problem: string | null
  readonly remedy: string | null
}

export const stateOf = ({ cancelled, disabledAt, paused }: Subscription): SubscriptionState =>
  cancelled ? "gone" : disabledAt !== null ? "disabled" : paused ? "paused" : "active"

const instant = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

const columns = `subscription_id as id, url, events, state, paused, problem, remedy, failcount as "failCount",
  ${instant("last_delivery_at")} as "lastDeliveryAt", ${instant("disabled_at")} as "disabledAt",
  ${instant("first_seen_at")} as "firstSeenAt", ${instant("checked_at")} as "checkedAt",
  ${instant("sound_at")} as "soundAt", unsound`

/** Whether it delivers everything that is wanted, as it stands. */
export const isHealthy = ({ state, lacks }: SubscriptionRow): boolean => state === "active" && lacks.length === 0

/** The wanted events ($2) that a row does not deliver. */
const lacks = (events: string, refused: string) =>
  `array(select w from jsonb_array_elements_text($2::jsonb) w where w <> all(${events}) and w <> all(${refused}))`

/** The warehouse's time, to be taken before the source is asked: a look is of no later moment. */
export const now: Effect.Effect<string, SqlError, SqlClient.SqlClient> = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(sql.unsafe<{ at: string }>(`select ${instant("tributary.now()")} as at`), (rows) => rows[0]!.at)
)

/**
 * The source's whole list. A subscription that is known, or whose secret is in use, and that is not listed is asked for by
 * its number before it counts as gone: a list that is empty by mistake must not lead to a second one.
 */
export const listed = Effect.fn("Seen.listed")(function* (
  company: string,
  source: Subscriptions
): Effect.fn.Return<ReadonlyArray<Subscription>, SourceError | SqlError, SqlClient.SqlClient> {
  const shown = yield* source.list
  const sql = yield* SqlClient.SqlClient
  const known = yield* sql<{ id: string }>`
    select subscription_id as id from tributary.subscriptions where company = ${company} and state <> 'gone'
    union
    select subscription_id from tributary.webhook_secrets
     where company = ${company} and state in ('current', 'next') and subscription_id is not null
     order by 1`
  const isShown = new Set(shown.map(({ id }) => id))
  const found = yield* Effect.forEach(
    known.filter(({ id }) => !isShown.has(id)),
    ({ id }) => source.get(id)
  )
  return [...shown, ...found.flatMap((one) => (one === null || one.cancelled ? [] : [one]))]
})

/** The rows of a company, those that are gone included, in the order in which they were first seen. */
export const read = (
  company: string,
  wantedEvents: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<SubscriptionRow>, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<SubscriptionRow>(
      `select ${columns}, ${lacks("events", "refused")} as lacks
         from tributary.subscriptions where company = $1 order by first_seen_at, subscription_id`,
      [company, JSON.stringify(wantedEvents)]
    )
  )

/**
 * Failures in a row are forgotten by a delivery or by enabling (DLV-12, DLV-13): without a delivery it was disabled
 * between two looks, and enabled again.
 */
const forgot = `case when excluded.failcount < s.failcount
              and excluded.last_delivery_at is not distinct from s.last_delivery_at then 'disabled' end`

/** A time that the source sent, as far as it is one. */
const timeOf = (text: string | null): string | null => {
  if (text === null) return null
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds) ? null : new Date(milliseconds).toISOString()
}

/**
 * Writes down what a look at the source showed: `subscriptions` is its whole list, `at` the time from {@link now} taken
 * before it was asked. Only those that {@link HookUrl.isOurs} takes for ours with `wantedUrl` are written down; one that
 * was and is no longer listed is gone. `refused` are events that the source was just asked for and does not know; they
 * are remembered, and not missed. Answers the company's rows as they stand afterwards. A look that is older than what
 * stands changes nothing.
 */
export const saveSnapshot = Effect.fn("Seen.recordSeen")(function* (
  company: string,
  subscriptions: ReadonlyArray<Subscription>,
  wantedUrl: string | null,
  wantedEvents: ReadonlyArray<string>,
  at: string,
  refused: ReadonlyArray<string> | null = null
): Effect.fn.Return<ReadonlyArray<SubscriptionRow>, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = subscriptions
    .filter(({ url }) => HookUrl.isOurs(company, wantedUrl, url))
    .map((one) => ({
      id: one.id,
      url: one.url,
      events: one.events,
      description: one.description,
      state: stateOf(one),
      paused: one.paused,
      failcount: one.failCount,
      last: timeOf(one.lastDeliveryAt),
      disabled: timeOf(one.disabledAt)
    }))
  const write = sql.unsafe(
    `with listed as (
       select r.*, case when $5::jsonb is null then coalesce(before.refused, '{}')
                        else array(select jsonb_array_elements_text($5::jsonb)) end as refused
         from jsonb_to_recordset($3::jsonb) as r(id text, url text, events text[], description text, state text,
                paused boolean, failcount bigint, last timestamptz, disabled timestamptz)
         left join tributary.subscriptions before on before.company = $1 and before.subscription_id = r.id
     ), seen as (
       select l.*, case when state in ('paused', 'disabled') then state
                        when state = 'gone' or ${lacks("l.events", "l.refused")} <> '{}' then 'missing' end as unsound
         from listed l
     ), gone as (
       update tributary.subscriptions s
          set state = 'gone', unsound = coalesce(s.unsound, 'missing'), checked_at = $4::timestamptz
        where s.company = $1 and s.state <> 'gone' and s.checked_at <= $4::timestamptz
          and not exists (select 1 from seen where seen.id = s.subscription_id)
     )
     insert into tributary.subscriptions as s
       (company, subscription_id, url, events, description, state, paused, failcount, last_delivery_at, disabled_at,
        checked_at, sound_at, unsound, refused)
     select $1, id, url, events, description, state, paused, failcount, last, disabled, $4::timestamptz,
            case when unsound is null then $4::timestamptz end, unsound, refused
       from seen
     on conflict (company, subscription_id) do update
        set url = excluded.url, events = excluded.events, description = excluded.description, state = excluded.state,
            paused = excluded.paused, failcount = excluded.failcount, last_delivery_at = excluded.last_delivery_at,
            disabled_at = excluded.disabled_at, checked_at = excluded.checked_at, refused = excluded.refused,
            revive_tries = case when excluded.state = 'disabled' then s.revive_tries else 0 end,
            revive_due_at = case when excluded.state = 'disabled' then s.revive_due_at end,
            unsound = coalesce(s.unsound, excluded.unsound, ${forgot}),
            sound_at = case when coalesce(s.unsound, excluded.unsound, ${forgot}) is null then excluded.sound_at
                            else s.sound_at end
      where s.checked_at <= excluded.checked_at`,
    [company, JSON.stringify(wantedEvents), JSON.stringify(rows), at, refused === null ? null : JSON.stringify(refused)]
  )
  // Everybody locks a company's rows in the same order.
  const lock = sql`
    select 1 from tributary.subscriptions where company = ${company} order by subscription_id for update`
  yield* transaction(Effect.andThen(lock, write))
  return yield* read(company, wantedEvents)
})

/** Writes down why a look at the subscription failed, until one succeeds. */
export const recordFailure = (
  company: string,
  subscriptionId: string,
  { message, remedy }: Pick<SourceError, "message" | "remedy">
): Effect.Effect<void, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.asVoid(
      sql`update tributary.subscriptions
             set problem = ${sanitizeText(message)}, remedy = ${remedy}
           where company = ${company} and subscription_id = ${subscriptionId}`
    )
  )

/**
 * A subscription that is sound again counts as sound from `at`, the time of the look that showed it. To be called in the
 * transaction that writes the gap before it down.
 */
export const markHealthy = (
  company: string,
  subscriptionId: string,
  at: string
): Effect.Effect<void, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.asVoid(
      sql`update tributary.subscriptions set unsound = null, sound_at = ${at}::timestamptz
           where company = ${company} and subscription_id = ${subscriptionId} and state = 'active'`
    )
  )
