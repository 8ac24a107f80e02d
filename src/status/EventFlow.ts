/** One event of the inbox, the subscriptions that deliver its type, and the delivery gaps around it. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import type { Cause } from "../reconcile/DeliveryGaps.ts"
import type { SubscriptionState } from "../subscriptions/SubscriptionStore.ts"
import type { RunStatus } from "./Resources.ts"

/** Bytes of a body that are read. */
export const bodyMax = 20_000
const subscriptionsMax = 5
const gapsMax = 5

export const eventStatement = Statement.make({
  name: "read an event",
  params: ["text", "text"],
  columns: {
    id: "int8",
    ...Statement.columns("text", "company", "eventId", "eventType"),
    ...Statement.columns("text?", "resource", "recordId", "recordModifiedAt"),
    /** By the source's clock. */
    occurredAt: "timestamptz?",
    /** The time in the signature of the accepted attempt. */
    sentAt: "timestamptz",
    receivedAt: "timestamptz",
    /** As received, cut to {@link bodyMax}. */
    body: "bytea",
    bodyBytes: "int4",
    state: Statement.as<"pending" | "done" | "dead_letter" | "skipped">("text"),
    attempts: "int4",
    nextAttemptAt: "timestamptz",
    resolvedAt: "timestamptz?",
    runId: "int8?",
    runStatus: Statement.as<RunStatus | null>("text?"),
    ...Statement.columns("text?", "resolution", "lastError")
  },
  text: `select e.id, e.company, e.event_id as "eventId", e.event_type as "eventType", e.resource, e.record_id as "recordId",
         e.record_modified_at as "recordModifiedAt", e.occurred_at as "occurredAt", e.sent_at as "sentAt",
         e.received_at as "receivedAt", substring(e.body from 1 for ${bodyMax}) as body, length(e.body) as "bodyBytes",
         e.state, e.attempts, e.next_attempt_at as "nextAttemptAt", e.resolved_at as "resolvedAt", e.run_id as "runId",
         r.status as "runStatus", e.resolution, e.last_error as "lastError"
    from tributary.inbox e left join tributary.runs r on r.id = e.run_id
   where e.company = $1 and e.event_id = $2`
})
export type Event = Statement.RowOf<typeof eventStatement>

export const deliveringStatement = Statement.make({
  name: "find the subscriptions of an event type",
  params: ["text", "text"],
  columns: { id: "text", url: "text", state: Statement.as<SubscriptionState>("text"), checkedAt: "timestamptz" },
  text: `select subscription_id as id, url, state, checked_at as "checkedAt" from tributary.subscriptions
          where company = $1 and $2 = any(events) order by state = 'deleted', first_seen_at limit ${subscriptionsMax}`
})
export type DeliveringSubscription = Statement.RowOf<typeof deliveringStatement>

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

export interface EventFlow {
  /** Null where the inbox does not have it. */
  readonly event: Event | null
  readonly subscriptions: ReadonlyArray<DeliveringSubscription>
  readonly gaps: ReadonlyArray<EventGap>
}

export const read = Effect.fn("status.EventFlow.read")(function* (company: string, eventId: string) {
  const [event] = yield* Statement.run(eventStatement, [company, eventId])
  return {
    event: event ?? null,
    subscriptions: event === undefined ? [] : yield* Statement.run(deliveringStatement, [company, event.eventType]),
    gaps: yield* Statement.run(gapsStatement, [company, eventId, event?.resource ?? null, event?.occurredAt ?? null])
  } satisfies EventFlow
})
