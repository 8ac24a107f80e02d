/**
 * The pending events of the inbox: which are due, and how they are resolved.
 *
 * Promise: an event leaves `pending` only by a resolution, and a resolution changes no event that has left already.
 * An event that is not due yet may be resolved as done. No failed attempt is counted before it is due.
 */
import * as Effect from "effect/Effect"
import type { InTransaction } from "../land/Landing.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { sanitizeText } from "../postgres/Text.ts"
import { exactStamp } from "./ModifiedAt.ts"

/** An event that is not resolved yet. */
export interface PendingEvent {
  readonly id: bigint
  /** Null: the event concerns the whole resource. */
  readonly recordId: string | null
  /** The record's time of change as the event shows it, where it is an instant that Postgres can hold exactly. */
  readonly stamp: string | null
  readonly attempts: number
  /** Time since the event was accepted. */
  readonly ageMs: number
}

/** A pending event with its body, which is dropped after it was read. */
export interface ClaimedEvent extends PendingEvent {
  readonly body: Uint8Array
}

export const withoutBody = ({ id, recordId, stamp, attempts, ageMs }: ClaimedEvent): PendingEvent => ({
  id,
  recordId,
  stamp,
  attempts,
  ageMs
})

/** The new state of an event, and the reason for it. */
export interface Resolution {
  readonly id: bigint
  /** `pending` postpones the event. */
  readonly state: "done" | "dead_letter" | "skipped" | "pending"
  readonly reason: string | null
  /** Whether it counts as a failed attempt. */
  readonly isAttempt?: boolean
  /** For `pending`: the event is not due again before this has passed. */
  readonly pauseMs?: number
}

const reasonLengthMax = 1_000
/** Postponed events of one record that are fetched together with a due one. */
const postponedMax = 100
/** Approximate bytes of the bodies that are fetched together. */
const fetchedBytesMax = 8 * 1024 * 1024
const maxBigint = 9_223_372_036_854_775_807n

/** Whether the text is a possible record number. */
export const isNumber = (id: string): boolean => /^(0|[1-9]\d{0,18})$/.test(id) && BigInt(id) <= maxBigint

/** Work of a resource that is due: events to process, or refetch requests. */
export interface DueWork {
  readonly company: string
  /** Null stands for events about no resource. */
  readonly resource: string | null
  readonly kind: "events" | "children"
}

/** SQL: the pending event of each company and resource that is due first, as a table of a recursive `with`. */
export const firstPendingSql = (table: string): string =>
  // The recursion jumps from resource to resource in an index. Its cost does not grow with the events.
  `${table} as (
           (select company, resource, next_attempt_at from tributary.inbox
             where state = 'pending' and resource is not null order by company, resource, next_attempt_at limit 1)
           union all
           select n.company, n.resource, n.next_attempt_at from ${table} t cross join lateral (
             select company, resource, next_attempt_at from tributary.inbox
              where state = 'pending' and resource is not null and (company, resource) > (t.company, t.resource)
              order by company, resource, next_attempt_at limit 1) n)`

export const dueWorkStatement = Statement.make({
  name: "find due events and refetch requests",
  columns: { company: "text", resource: "text?", kind: Statement.as<DueWork["kind"]>("text") },
  text: `with recursive ${firstPendingSql("due")},
         arrived as (
           (select company from tributary.inbox where state = 'pending' order by company limit 1)
           union all
           select n.company from arrived a cross join lateral (
             select company from tributary.inbox where state = 'pending' and company > a.company order by company limit 1) n
         ), requested as (
           (select company_id, resource from tributary.refetch_requests order by company_id, resource limit 1)
           union all
           select n.company_id, n.resource from requested r cross join lateral (
             select company_id, resource from tributary.refetch_requests where (company_id, resource) > (r.company_id, r.resource)
              order by company_id, resource limit 1) n
         ), work as (
           select company, resource, 'events' as kind, next_attempt_at as due_at from due where next_attempt_at <= tributary.now()
           union all
           -- An event of a resource that the source's documents do not name is resolved without a read.
           select a.company, null, 'events', null from arrived a where exists (
             select from tributary.inbox i where i.company = a.company and i.state = 'pending' and i.resource is null)
           union all select c.company, r.resource, 'children', null from requested r join tributary.companies c using (company_id)
         ) select company, resource, kind from work order by due_at nulls last, company, resource`
})

/** The due work of all companies, the longest due first. */
export const dueWork: Sql.Query<ReadonlyArray<DueWork>> = Statement.run(dueWorkStatement)

export const fetchDueStatement = Statement.make({
  name: "fetch due events",
  params: ["text", "text", "text", "int8"],
  columns: { id: "int8", recordId: "text?", stamp: "text?", attempts: "int4", body: "bytea", ageMs: "float8" },
  text: `with due as materialized (
           select id, record_id from tributary.inbox
            where company = $1 and resource = $2 and state = 'pending' and next_attempt_at <= (select tributary.now())
              and (record_id is null or record_id <> all ((select string_to_array($3::text, ','))::text[]))
            order by next_attempt_at, id limit $4
         ), postponed as (
           select p.id from (select distinct record_id from due) d cross join lateral (
             select id from tributary.inbox
              where company = $1 and resource = $2 and state = 'pending' and last_error is not null
                and record_id = d.record_id and next_attempt_at > (select tributary.now()) limit ${postponedMax}) p
            limit $4
         ), sized as (
           select i.id, i.record_id, i.record_modified_at as stamp, i.attempts, i.body, i.received_at,
                  sum(octet_length(i.body)) over (order by picked.rank, i.id) - octet_length(i.body) as bytes_before
             from tributary.inbox i
             join (select id, 1 as rank from due union all select id, 2 from postponed) picked using (id)
         )
         select id, record_id as "recordId", stamp, attempts, body,
                (extract(epoch from tributary.now() - received_at) * 1000)::float8 as "ageMs"
           from sized where bytes_before < ${fetchedBytesMax} order by id`
})

/**
 * Fetches the events of a resource that have been due for longest, in the order of their arrival. Postponed events of
 * the same records come with them. Records in flight are left out. At least one event is returned, however large it is.
 */
export const fetchDue = (request: {
  readonly company: string
  readonly resource: string
  /** Records that are being fetched. */
  readonly inFlight: Iterable<string>
  readonly countMax: number
}): Sql.Query<ReadonlyArray<ClaimedEvent>> =>
  Effect.map(
    Statement.run(fetchDueStatement, [
      request.company,
      request.resource,
      [...request.inFlight].join(","),
      request.countMax
    ]),
    (rows) =>
      rows.map((row) => ({
        ...row,
        recordId: row.recordId !== null && isNumber(row.recordId) ? row.recordId : null,
        stamp: exactStamp(row.stamp)
      }))
  )

export const resolveStatement = Statement.make({
  name: "resolve events of",
  params: ["text", "int8?"],
  text: `update tributary.inbox i set
           state = v.state, run_id = coalesce($2::bigint, case when v.state <> 'done' then i.run_id end),
           attempts = i.attempts + case when v.attempt then 1 else 0 end,
           next_attempt_at = case when v.state = 'pending' then tributary.now() + v.pause_ms * interval '1 millisecond' else i.next_attempt_at end,
           resolved_at = case when v.state = 'pending' then null else tributary.now() end,
           resolution = case when v.state in ('done', 'skipped') then left(v.reason, ${reasonLengthMax}) end,
           last_error = case when v.state in ('pending', 'dead_letter') then left(v.reason, ${reasonLengthMax}) end
         from jsonb_to_recordset($1::text::jsonb) as v(id bigint, state text, reason text, attempt boolean, pause_ms float8)
         where i.id = v.id and i.state = 'pending' and (v.state = 'done' or i.next_attempt_at <= tributary.now())`
})

const resolveValues = (
  resolutions: ReadonlyArray<Resolution>,
  runId: bigint | null
): Statement.Values<typeof resolveStatement.params> => [
  JSON.stringify(
    resolutions.map(({ id, state, reason, isAttempt = false, pauseMs = 0 }) => ({
      id: String(id),
      state,
      reason: reason === null ? null : sanitizeText(reason),
      attempt: isAttempt,
      pause_ms: pauseMs
    }))
  ),
  runId
]

/** Resolves events. The run is the one that read their records, or failed to; null where no run did. */
export const resolve = (resolutions: ReadonlyArray<Resolution>, runId: bigint | null = null): Sql.Query<void> =>
  resolutions.length === 0
    ? Effect.void
    : Effect.asVoid(Statement.run(resolveStatement, resolveValues(resolutions, runId)))

/** Resolves events within the transaction of a landing. */
export const resolveIn = (
  { runStatement, runId }: InTransaction,
  resolutions: ReadonlyArray<Resolution>
): Effect.Effect<void, DatabaseError> =>
  resolutions.length === 0
    ? Effect.void
    : Effect.asVoid(runStatement(resolveStatement, resolveValues(resolutions, runId)))

export const skipStatement = Statement.make({
  name: "skip events of resources that are not synced",
  params: ["text", "text"],
  columns: { id: "int8" },
  text: `update tributary.inbox set state = 'skipped', resolved_at = tributary.now(),
                resolution = case when resource is null then 'it names no record'
                              else 'the resource is not synced for this company' end
          where company = $1 and state = 'pending'
            and (resource is null or resource not in (select jsonb_array_elements_text($2::text::jsonb)))
          returning id`
})

/** Marks events about no resource, or about one that is not among `paths`, as skipped. Returns their number. */
export const skipUnsynced = (company: string, paths: Iterable<string>): Sql.Query<number> =>
  Effect.map(Statement.run(skipStatement, [company, JSON.stringify([...paths])]), ({ length }) => length)

export interface ReplayFilter {
  readonly state: "dead_letter" | "skipped" | "done"
  /** Ids of events as the source gives them; absent: all. */
  readonly eventIds?: ReadonlyArray<string>
  readonly resource?: string
  /** Accepted at this time or later, RFC 3339. */
  readonly since?: string
}

/** Makes resolved events pending again. Their records are read, whatever the warehouse holds. Returns their number. */
export const replay = (company: string, { state, eventIds, resource, since }: ReplayFilter): Sql.Query<number> =>
  Effect.map(
    Query.run(
      control
        .updateTable("tributary.inbox")
        .set({ state: "pending", attempts: 0, record_modified_at: null, next_attempt_at: Query.now })
        .set({ resolved_at: null, run_id: null, resolution: null, last_error: null })
        .where((is) => is.and({ company, state, ...(resource === undefined ? {} : { resource }) }))
        .$if(eventIds !== undefined, (events) => events.where("event_id", "=", Query.anyOf(eventIds ?? [])))
        .$if(since !== undefined, (events) => events.where("received_at", ">=", Query.at(since ?? "")))
        .returning("id")
    ),
    ({ length }) => length
  )
