/** The read position in the delivery log of a subscription, and the state of the log's events in the warehouse. */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"

const cursorOf = (company: string, subscription_id: string) =>
  control
    .selectFrom("tributary.subscriptions")
    // The newest entry, by the source's own time, byte for byte, and its event; null where there was none or it is unknown.
    .select(["log_cursor_at as to", "log_cursor_event as event"])
    .select((of) => [
      // When the log was read; null when it never was.
      of.cast<string | null>("log_read_at", "text").as("at"),
      // How long that has been the newest entry, of an event with attempts to come; null when it was not.
      Query.ageMs(of.ref("log_head_pending_since")).as("waitsMs"),
      // Of the subscription's first snapshot where the log was never read.
      Query.ageMs(of.fn.coalesce("log_read_at", "first_seen_at")).as("ageMs")
    ])
    .where((is) => is.and({ company, subscription_id }))

/** The read position in the delivery log of a subscription. */
export type LogCursor = Query.RowOf<typeof cursorOf>

export const read = (company: string, subscriptionId: string): Sql.Query<LogCursor | null> =>
  Query.first(cursorOf(company, subscriptionId))

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
export const eventStatus = (
  company: string,
  events: ReadonlyArray<string>
): Sql.Query<ReadonlyMap<string, Statement.RowOf<typeof eventStatusStatement>>> =>
  events.length === 0
    ? Effect.succeed(new Map())
    : Effect.map(
        Statement.run(eventStatusStatement, [company, JSON.stringify(events)]),
        (rows) => new Map(rows.map((row) => [row.id, row]))
      )

/** The newest entry of a delivery log. */
export interface LogHead {
  readonly at: string
  readonly event: string
  /** Whether its event has attempts to come. */
  readonly isWaiting: boolean
}

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

/**
 * Stores the gaps that the log showed, with the new cursor, and whether deliveries were delayed. Returns the number of new gaps. A database that is restored
 * without its latest commits lost this cursor with every event that it lost: the cursor was written after them.
 */
export const advance = (
  company: string,
  subscriptionId: string,
  newest: LogHead | null,
  at: string,
  gaps: ReadonlyArray<DeliveryGaps.NewGap>,
  isDelayed: boolean
): Sql.Query<number> =>
  DeliveryGaps.serialized(
    company,
    Effect.gen(function* () {
      const opened = yield* DeliveryGaps.insertGaps(company, gaps)
      yield* Statement.run(DeliveryGaps.endUnobserved, [company, subscriptionId])
      const { at: to = null, event = null, isWaiting = false } = newest ?? {}
      yield* Statement.run(advanceStatement, [company, subscriptionId, to, event, at, isWaiting, isDelayed])
      return opened
    })
  )

/** Stores that the log has no new entry. Returns false, and stores nothing, if the last check is too long ago or failed. */
export const confirm = (company: string, subscriptionId: string, at: string, ageMaxMs: number): Sql.Query<boolean> =>
  Query.hasRows(
    SubscriptionStore.change(company, subscriptionId)
      .set({ log_read_at: Query.at(at) })
      .where("last_error", "is", null)
      .where((is) => is.between("log_read_at", new Date(Date.parse(at) - ageMaxMs), Query.at(at)))
      .returning("subscription_id")
  )
