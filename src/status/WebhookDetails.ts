/** Single events of the inbox, for people. */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

const columns = {
  id: "int8",
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
const selected = `id, company, event_id as "eventId", event_type as "eventType", resource, record_id as "recordId", state, attempts,
    occurred_at as "occurredAt", received_at as "receivedAt", case when state = 'pending' then next_attempt_at end as "dueAt",
    (extract(epoch from resolved_at - received_at) * 1000)::float8 as "resolvedMs", run_id as "runId", coalesce(resolution, last_error) as reason`

/** The states of an event. */
export const eventStates = ["pending", "done", "dead_letter", "skipped"] as const

/** How many events of a time are searched, the newest of them. */
export const searchLimit = 20_000

/** Processes store events at the same time, so that ids and times of receipt disagree by less than this. */
const disorder = "interval '5 minutes'"

/**
 * The lowest id of the events from a time on, found by halving the ids: `id >= (select min(high) from NAME)`. It reads at
 * most 64 rows, by the primary key.
 */
const firstIdFrom = (name: string, at: string): string => `${name}(low, high) as (
    select min(id) - 1, max(id) + 1 from tributary.inbox
    union all
    select case when m.received_at < ${at} then m.id else b.low end, case when m.received_at < ${at} then b.high else b.middle end
      from (select low, high, (low + high) / 2 as middle from ${name} where high - low > 1) b
      left join lateral (select id, received_at from tributary.inbox where id >= b.middle and id < b.high order by id limit 1) m on true)`

/**
 * The newest events of a time, of a company ($3), a state ($4); at most {@link searchLimit}. Of dead letters alone, which
 * have an index, the oldest are found too.
 */
const searchedIn = (
  only: string,
  id: string,
  limit: string
): string => `with recursive ${firstIdFrom("begins", `($1::timestamptz - ${disorder})`)},
  ${firstIdFrom("ends", `($2::timestamptz + ${disorder})`)},
  newest as materialized (
    select ${selected} from tributary.inbox
     where ${id} >= (select min(high) from begins) and ${id} < (select min(high) from ends) and received_at >= $1 and received_at < $2
           and ${only} order by ${id} desc limit ${limit}),
  found as (
    select * from newest where ($3::text is null or company = $3) and ($4::text is null or state = $4))`

const eventParams = ["timestamptz", "timestamptz", "text?", "text?", "text?", "int8?", "int4"] as const
const listed = `select * from found where ($5::text is null or resource = $5) and ($6::int8 is null or id < $6)
          order by id desc limit $7::int`
const resourceParams = ["timestamptz", "timestamptz", "text?", "text?"] as const
const resourceColumns = { resource: "text?", events: "float8", records: "float8", isCut: "bool" } as const
const countedByResource = `select resource, count(*)::float8 as events, count(distinct (company, "recordId"))::float8 as records,
           (select count(*) = ${searchLimit} from newest) as "isCut"
      from found group by 1 order by 2 desc, 1`

/** Without a filter, no more events are read than are shown. */
const readMax = `case when $3::text is null and $4::text is null and $5::text is null and $6::int8 is null then $7::int else ${searchLimit} end`
/** The addition keeps the search from reading all events by their ids. */
const dead = ["state = 'dead_letter'", "(id + 0)"] as const
export const eventsStatement = Statement.make({
  name: "search the events of a time",
  params: eventParams,
  columns,
  text: `${searchedIn("true", "id", readMax)} ${listed}`
})
export const deadEventsStatement = Statement.make({
  name: "search the dead letters of a time",
  params: eventParams,
  columns,
  text: `${searchedIn(...dead, String(searchLimit))} ${listed}`
})
export type EventSummary = Statement.RowOf<typeof eventsStatement>
export const resourcesStatement = Statement.make({
  name: "count the events of a time by resource",
  params: resourceParams,
  columns: resourceColumns,
  text: `${searchedIn("true", "id", String(searchLimit))} ${countedByResource}`
})
export const deadResourcesStatement = Statement.make({
  name: "count the dead letters of a time by resource",
  params: resourceParams,
  columns: resourceColumns,
  text: `${searchedIn(...dead, String(searchLimit))} ${countedByResource}`
})
export type ResourceEvents = Statement.RowOf<typeof resourcesStatement>

export interface EventSearch {
  /** By the warehouse's clock; `until` is not included. */
  readonly since: Date
  readonly until: Date
  /** Null is any. */
  readonly company: string | null
  readonly state: (typeof eventStates)[number] | null
}

/** The newest events of a search that concern a resource, below an id, newest first; null is any. */
export const events = (
  { since, until, company, state }: EventSearch,
  resource: string | null,
  before: bigint | null,
  eventsMax: number
): Sql.Query<ReadonlyArray<EventSummary>> =>
  Statement.run(state === "dead_letter" ? deadEventsStatement : eventsStatement, [
    since,
    until,
    company,
    state,
    resource,
    before,
    eventsMax
  ])

/** The numbers of events and records of a search by resource, the most events first. */
export const resources = ({ since, until, company, state }: EventSearch) =>
  Effect.map(
    Statement.run(state === "dead_letter" ? deadResourcesStatement : resourcesStatement, [
      since,
      until,
      company,
      state
    ]),
    (rows) => ({
      rows,
      /** Whether the time has more events than are searched. */
      isCut: rows[0]?.isCut ?? false
    })
  )
