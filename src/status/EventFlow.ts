/** One event of the inbox, the subscriptions that deliver its type, and the delivery gaps around it. */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import type { Cause } from "../reconcile/DeliveryGaps.ts"

/** Bytes of a body that are read. */
export const bodyMax = 20_000
const subscriptionsMax = 5
const gapsMax = 5

const readEvent = (company: string, eventId: string) =>
  Query.first(
    control
      .selectFrom("tributary.inbox as e")
      .leftJoin("tributary.runs as r", "r.id", "e.run_id")
      .select(["e.id", "e.company", "e.event_id as eventId", "e.event_type as eventType", "e.resource"])
      .select(["e.record_id as recordId", "e.record_modified_at as recordModifiedAt", "e.occurred_at as occurredAt"])
      .select(["e.sent_at as sentAt", "e.received_at as receivedAt", "e.state", "e.attempts", "e.run_id as runId"])
      .select(["e.next_attempt_at as nextAttemptAt", "e.resolved_at as resolvedAt", "r.status as runStatus"])
      .select(["e.resolution", "e.last_error as lastError"])
      .select((of) => [
        of.fn<Uint8Array>("substring", ["e.body", of.lit(1), of.lit(bodyMax)]).as("body"),
        of.fn<number>("length", ["e.body"]).as("bodyBytes")
      ])
      .where((is) => is.and({ "e.company": company, "e.event_id": eventId }))
  )
export type Event = NonNullable<Effect.Success<ReturnType<typeof readEvent>>>

/** The subscriptions of an event type. */
const readDelivering = (company: string, eventType: string) =>
  Query.run(
    control
      .selectFrom("tributary.subscriptions")
      .select(["subscription_id as id", "url", "state", "checked_at as checkedAt"])
      .where("company", "=", company)
      .where((is) => is(is.val(eventType), "=", is.fn.any("events")))
      .orderBy((of) => of("state", "=", "deleted"))
      .orderBy("first_seen_at")
      .limit(subscriptionsMax)
  )
export type DeliveringSubscription = Effect.Success<ReturnType<typeof readDelivering>>[number]

export const gapsStatement = Statement.make({
  name: "find the delivery gaps of an event",
  params: ["text", "text", "text?", "timestamptz?"],
  columns: {
    id: "int8",
    resource: "text",
    cause: Statement.as<Cause>("text"),
    detail: "text",
    beganAt: "timestamptz?",
    endedAt: "timestamptz?",
    detectedAt: "timestamptz",
    lastError: "text?",
    closedAt: "timestamptz?",
    closedBy: "text?",
    /** Whether the gap lists the event as lost; false where the event fired during the gap. */
    isListed: "bool"
  },
  text: `select id, resource, cause, detail, began_at as "beganAt", ended_at as "endedAt", detected_at as "detectedAt",
         last_error as "lastError", closed_at as "closedAt", closed_by as "closedBy", $2 = any(events) as "isListed"
    from tributary.delivery_gaps
   where company = $1 and ($2 = any(events) or (resource = $3::text
         and $4::timestamptz between coalesce(began_at, '-infinity') and coalesce(ended_at, 'infinity')))
   order by 11 desc, id desc limit ${gapsMax}`
})
export type EventGap = Statement.RowOf<typeof gapsStatement>

/** The event is null where the inbox does not have it. */
export const read = Effect.fn("status.EventFlow.read")(function* (company: string, eventId: string) {
  const event = yield* readEvent(company, eventId)
  return {
    event,
    subscriptions: event === null ? [] : yield* readDelivering(company, event.eventType),
    gaps: yield* Statement.run(gapsStatement, [company, eventId, event?.resource ?? null, event?.occurredAt ?? null])
  }
})
