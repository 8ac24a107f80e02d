/** Single events of the inbox, for people. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

export type EventState = "pending" | "done" | "dead_letter" | "skipped"

export interface EventSummary {
  readonly company: string
  readonly eventId: string
  readonly eventType: string
  readonly resource: string | null
  readonly recordId: string | null
  readonly state: EventState
  readonly attempts: number
  /** By the source's clock. */
  readonly occurredAt: Date | null
  readonly receivedAt: Date
  /** The next attempt; null unless it is pending. */
  readonly dueAt: Date | null
  /** From receipt to resolution; null while it is pending. */
  readonly resolvedMs: number | null
  readonly runId: bigint | null
  readonly reason: string | null
}

/** How many of the newest events are searched for those of a company. */
export const searchLimit = 2_000

const columns = `company, event_id as "eventId", event_type as "eventType", resource, record_id as "recordId", state, attempts,
  occurred_at as "occurredAt", received_at as "receivedAt", case when state = 'pending' then next_attempt_at end as "dueAt",
  (extract(epoch from resolved_at - received_at) * 1000)::float8 as "settledMs", run_id as "runId", coalesce(resolution, last_error) as reason`

/** The newest events of a company, or of all, among the last {@link searchLimit} that were accepted. */
export const readNewestEvents = (
  company: string | null,
  atMost: number
): Effect.Effect<ReadonlyArray<EventSummary>, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<EventSummary>(
      `select ${columns} from (select * from tributary.inbox order by id desc limit ${searchLimit}) e
        where $1::text is null or company = $1 order by id desc limit $2::int`,
      [company, atMost]
    )
  )

/** The newest dead letters of a company. */
export const readDeadLetters = (
  company: string,
  atMost: number
): Effect.Effect<ReadonlyArray<EventSummary>, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<EventSummary>(
      `select ${columns} from tributary.inbox where company = $1 and state = 'dead_letter' order by id desc limit $2::int`,
      [company, atMost]
    )
  )
