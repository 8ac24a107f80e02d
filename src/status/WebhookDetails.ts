/** Single events of the inbox, for people. */
import * as Statement from "../postgres/Statement.ts"

const columns = {
  company: "text",
  eventId: "text",
  eventType: "text",
  resource: "text?",
  recordId: "text?",
  state: Statement.as<"pending" | "done" | "dead_letter" | "skipped">("text"),
  attempts: "int4",
  /** By the source's clock. */
  occurredAt: "timestamptz?",
  receivedAt: "timestamptz",
  /** The next attempt; null unless it is pending. */
  dueAt: "timestamptz?",
  /** From receipt to resolution; null while it is pending. */
  resolvedMs: "float8?",
  runId: "int8?",
  reason: "text?"
} as const
const selectEvents = `select company, event_id as "eventId", event_type as "eventType", resource, record_id as "recordId", state, attempts,
    occurred_at as "occurredAt", received_at as "receivedAt", case when state = 'pending' then next_attempt_at end as "dueAt",
    (extract(epoch from resolved_at - received_at) * 1000)::float8 as "resolvedMs", run_id as "runId", coalesce(resolution, last_error) as reason`

/** How many of the newest events are searched for those of a company. */
export const searchLimit = 2_000

/** The states of an event. */
export const eventStates = ["pending", "done", "dead_letter", "skipped"] as const

/** The newest $2 events of a company and a state, or of all, among the last {@link searchLimit} accepted ones. */
export const newestEvents = Statement.make({
  name: "read the newest events",
  params: ["text?", "int4", "text?"],
  columns,
  text: `${selectEvents} from (select * from tributary.inbox order by id desc limit ${searchLimit}) e
          where ($1::text is null or company = $1) and ($3::text is null or state = $3) order by id desc limit $2::int`
})
export type EventSummary = Statement.RowOf<typeof newestEvents>

/** The newest $2 dead letters of a company. */
export const deadLetters = Statement.make({
  name: "read the newest dead letters",
  params: ["text", "int4"],
  columns,
  text: `${selectEvents} from tributary.inbox where company = $1 and state = 'dead_letter' order by id desc limit $2::int`
})
