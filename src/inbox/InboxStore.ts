/**
 * The events that wait in the inbox: which are due, who works on them, and what became of them.
 *
 * Promise: an event leaves `waiting` only by a verdict that says why, and a verdict changes none that has left already.
 * What was put off and is not due yet may be settled meanwhile, and is not counted against again before its time. A claim
 * is a courtesy between processes, so that they do not get in each other's way; nothing depends on it.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { learnedOverlap } from "../warehouse/Overlap.ts"
import type { Table } from "../warehouse/Table.ts"
import { parentsMax } from "../sync/SyncResource.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { sanitizeText } from "../postgres/Text.ts"

/** An event that waits. */
export interface PendingEvent {
  readonly id: bigint
  /** Null asks for the whole resource. */
  readonly recordId: string | null
  /** The record's time of change as the event shows it, where it is an instant that Postgres can hold exactly. */
  readonly stamp: string | null
  readonly attempts: number
  /** How long ago it was accepted. */
  readonly ageMs: number
}

/** As it is taken; whoever has looked at the body keeps the rest. */
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

/** What becomes of an event. */
export interface Resolution {
  readonly id: bigint
  /** `waiting` puts it off. */
  readonly state: "done" | "dead" | "ignored" | "waiting"
  readonly reason: string | null
  /** Whether it counts as an attempt that failed. */
  readonly isAttempt?: boolean
  /** For `waiting`: not tried again before this has passed. */
  readonly pauseMs?: number
}

const reasonLengthMax = 1_000
/** Events of one record that are taken along with a due one of it. */
const joinedMax = 100
/** Bytes of bodies that are taken together, about. */
const takenBytesMax = 8 * 1024 * 1024
/** How long a process that says nothing is believed to be at work. */
export const leaseMs = 10_000
const maxBigint = 9_223_372_036_854_775_807n

const asking = <Row extends object>(operation: string, text: string, values: ReadonlyArray<unknown>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, [...values])).pipe(
    Effect.mapError(DatabaseError.from(`${operation} the inbox`))
  )

/** Whether the text is a number that a record can have. */
export const isNumber = (id: string): boolean => /^(0|[1-9]\d{0,18})$/.test(id) && BigInt(id) <= maxBigint

/** The stamp, when it is an instant in UTC whose every digit fits a timestamptz; null otherwise. */
const exactStamp = (stamp: string | null): string | null => {
  if (stamp === null || !/^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/.test(stamp)) return null
  const seconds = stamp.slice(0, 19)
  const at = new Date(`${seconds}Z`)
  return !Number.isNaN(at.getTime()) && at.toISOString().slice(0, 19) === seconds ? stamp : null
}

/**
 * Whether a record's time of change is before the one that an event shows. Where one of them has more digits, only whole
 * seconds are compared: a source may show events more exactly than records.
 */
export const isBefore = (changed: string | null, stamp: string | null): boolean => {
  const [has, shows] = [exactStamp(changed), exactStamp(stamp)]
  if (has === null || shows === null) return false
  return has.length === shows.length ? has < shows : has.slice(0, 19) < shows.slice(0, 19)
}

/** One of the last digit that the stamp shows, in seconds: within it, the change was at any time. */
const unitOf = (stamp: string): number => 10 ** -Math.max(0, stamp.length - "0000-00-00T00:00:00.Z".length)

/** The resources with events that are due and that no other process is working on; null for events about none. */
export const dueResources = (
  company: string,
  owner: string
): Effect.Effect<
  ReadonlyArray<{ readonly resource: string | null; readonly isClaimed: boolean }>,
  DatabaseError,
  SqlClient.SqlClient
> =>
  asking<{ resource: string | null; claimed: boolean }>(
    "look into",
    // From one resource to the next in the index, however many events wait.
    `with recursive oldest as (
       (select resource, due_at from tributary.inbox
         where company = $1 and state = 'waiting' and resource is not null order by resource, due_at limit 1)
       union all
       select n.resource, n.due_at from oldest o cross join lateral (
         select resource, due_at from tributary.inbox
          where company = $1 and state = 'waiting' and resource > o.resource order by resource, due_at limit 1) n
     ), first as (
       select resource, due_at from oldest union all
       (select resource, due_at from tributary.inbox
         where company = $1 and state = 'waiting' and resource is null order by due_at limit 1)
     )
     select w.resource, exists (
         select 1 from tributary.inbox_claims c
          where c.company = $1 and c.resource = w.resource and c.owner <> $2 and c.until > tributary.now()) as claimed
       from first w where w.due_at <= tributary.now() order by w.due_at`,
    [company, owner]
  ).pipe(Effect.map((rows) => rows.map(({ resource, claimed }) => ({ resource, isClaimed: claimed }))))

/**
 * The events of a resource that have been due for longest, and with them some of those of the same records that were put
 * off; in the order in which they came. Leaves out the records in hand. However large the bodies, one event comes.
 */
export const fetchDue = Effect.fnUntraced(function* (given: {
  readonly company: string
  readonly resource: string
  readonly inHand: Iterable<string>
  readonly atMost: number
}): Effect.fn.Return<ReadonlyArray<ClaimedEvent>, DatabaseError, SqlClient.SqlClient> {
  const rows = yield* asking<{
    id: bigint
    record_id: string | null
    stamp: string | null
    attempts: number
    age_ms: number
    body: Uint8Array
  }>(
    "take from",
    `with due as materialized (
       select id, record_id from tributary.inbox
        where company = $1 and resource = $2 and state = 'waiting' and due_at <= (select tributary.now())
          and (record_id is null or record_id <> all ((select string_to_array($3::text, ','))::text[]))
        order by due_at, id limit $4
     ), put_off as (
       select p.id from (select distinct record_id from due) d cross join lateral (
         select id from tributary.inbox
          where company = $1 and resource = $2 and state = 'waiting' and reason is not null
            and record_id = d.record_id and due_at > (select tributary.now()) limit ${joinedMax}) p
        limit $4
     ), sized as (
       select i.id, i.record_id, i.stamp, i.attempts, i.body, i.received_at,
              sum(octet_length(i.body)) over (order by picked.rank, i.id) - octet_length(i.body) as bytes_before
         from tributary.inbox i
         join (select id, 1 as rank from due union all select id, 2 from put_off) picked using (id)
     )
     select id, record_id, stamp, attempts, body,
            (extract(epoch from tributary.now() - received_at) * 1000)::float8 as age_ms
       from sized where bytes_before < ${takenBytesMax} order by id`,
    [given.company, given.resource, [...given.inHand].join(","), given.atMost]
  )
  return rows.map((row) => ({
    id: row.id,
    recordId: row.record_id !== null && isNumber(row.record_id) ? row.record_id : null,
    stamp: exactStamp(row.stamp),
    attempts: row.attempts,
    ageMs: row.age_ms,
    body: row.body
  }))
})

/** What the warehouse holds of the record that an event is about. */
export interface RowState {
  /** Whether there is a row that is not deleted. */
  readonly isLive: boolean
  /** How long ago the read began that brought the row's version; null where there is no row. */
  readonly observedMsAgo: number | null
  /** Whether the row is as the event left it, or later, for all that the stamps tell. */
  readonly isCurrent: boolean
  /** Why nothing needs to be read for the event; null when it must be. */
  readonly satisfied: string | null
  /** Whether the whole resource was read by a run that began after the event had come. */
  readonly isCovered: boolean
}

/**
 * Compares events with the warehouse. A row answers an event when it is newer than the event, or was read after the event
 * had come, or when it is as old as the event says and a completed scan began after that: whoever read it. A read in
 * the future was made before the warehouse's clock was set back, and answers nothing.
 */
export const compareWithRow = Effect.fnUntraced(function* (
  table: Table,
  companyId: bigint,
  events: ReadonlyArray<PendingEvent>
): Effect.fn.Return<ReadonlyMap<bigint, RowState>, DatabaseError, SqlClient.SqlClient> {
  if (events.length === 0) return new Map()
  const stamp = table.resource.field.has("lastchangedate") ? `t."lastchangedate"` : "null::timestamptz"
  const rows = yield* asking<{
    id: bigint
    live: boolean
    observed_ms_ago: number | null
    newer: boolean
    current: boolean
    read_since: boolean
    covered: boolean
  }>(
    "compare",
    `select e.id, t."id" is not null and t."_deleted_at" is null as live,
            (extract(epoch from tributary.now() - t."_observed_at") * 1000)::float8 as observed_ms_ago,
            coalesce(${stamp} >= e.stamp + e.unit * interval '1 second', false) as newer,
            coalesce(${stamp} >= e.stamp, true) as current,
            coalesce(t."_observed_at" > i.due_at and t."_observed_at" <= tributary.now(), false) as read_since,
            coalesce(greatest(c.cursor_at, c.full_scan_at) > i.due_at
                     and greatest(c.cursor_at, c.full_scan_at) <= tributary.now(), false) as covered
       from jsonb_to_recordset($2::text::jsonb) as e(id bigint, record bigint, stamp timestamptz, unit float8)
       join tributary.inbox i on i.id = e.id
       left join lateral (
         select * from ${table.current} k where k."_company_id" = $1 and k."id" = e.record
         -- Looked up one by one, whatever is known of a table that was just loaded.
         offset 0 limit 1) t on true
       left join tributary.checkpoints c on c.company_id = $1 and c.resource = $3 and c.lane = 'live'`,
    [
      companyId,
      JSON.stringify(
        events.map(({ id, recordId, stamp: shown }) => ({
          id: String(id),
          record: recordId,
          stamp: shown,
          unit: shown === null ? null : unitOf(shown)
        }))
      ),
      table.resource.path
    ]
  )
  const stamped = new Set(events.filter((event) => event.stamp !== null).map(({ id }) => id))
  return new Map(
    rows.map((row) => {
      const isAnswered = row.live && row.current
      const satisfied = !row.live
        ? null
        : row.newer
          ? "the warehouse holds a newer version"
          : isAnswered && row.read_since
            ? "the record was read after the event had come"
            : isAnswered && row.covered && stamped.has(row.id)
              ? "a scan that began after the event had come has read what changed"
              : null
      return [
        row.id,
        {
          isLive: row.live,
          observedMsAgo: row.observed_ms_ago,
          isCurrent: isAnswered,
          satisfied,
          isCovered: row.covered
        }
      ]
    })
  )
})

const verdictSql = `update tributary.inbox i set
   state = v.state, reason = left(v.reason, ${reasonLengthMax}), run_id = coalesce($2::bigint, i.run_id),
   attempts = i.attempts + case when v.attempt then 1 else 0 end,
   due_at = case when v.state = 'waiting' then tributary.now() + v.pause_ms * interval '1 millisecond' else i.due_at end,
   settled_at = case when v.state = 'waiting' then null else tributary.now() end
 from jsonb_to_recordset($1::text::jsonb) as v(id bigint, state text, reason text, attempt boolean, pause_ms float8)
 where i.id = v.id and i.state = 'waiting' and (v.state = 'done' or i.due_at <= tributary.now())`

const verdictValues = (verdicts: ReadonlyArray<Resolution>, runId: bigint | null) => [
  JSON.stringify(
    verdicts.map(({ id, state, reason, isAttempt = false, pauseMs = 0 }) => ({
      id: String(id),
      state,
      reason: reason === null ? null : sanitizeText(reason),
      attempt: isAttempt,
      pause_ms: pauseMs
    }))
  ),
  runId
]

/** Writes verdicts down. */
export const resolve = (
  verdicts: ReadonlyArray<Resolution>,
  runId: bigint | null = null
): Effect.Effect<void, DatabaseError, SqlClient.SqlClient> =>
  verdicts.length === 0 ? Effect.void : Effect.asVoid(asking("settle", verdictSql, verdictValues(verdicts, runId)))

/** Writes verdicts down in a transaction of somebody else. */
export const resolveIn = <A, E>(
  run: (operation: string, text: string, values: ReadonlyArray<unknown>) => Effect.Effect<A, E>,
  verdicts: ReadonlyArray<Resolution>,
  runId: bigint
): Effect.Effect<void, E> =>
  verdicts.length === 0
    ? Effect.void
    : Effect.asVoid(run("settle the events of", verdictSql, verdictValues(verdicts, runId)))

/** Settles what asks for nothing that is synced: events about no resource, or about one that is not among `paths`. */
export const skipUnsynced = (
  company: string,
  paths: Iterable<string>
): Effect.Effect<number, DatabaseError, SqlClient.SqlClient> =>
  asking<{ id: bigint }>(
    "settle",
    `update tributary.inbox set state = 'ignored', settled_at = tributary.now(),
            reason = case when resource is null then 'it asks for no record'
                          else 'the resource is not synced for this company' end
      where company = $1 and state = 'waiting'
        and (resource is null or resource not in (select jsonb_array_elements_text($2::text::jsonb)))
      returning id`,
    [company, JSON.stringify([...paths])]
  ).pipe(Effect.map((rows) => rows.length))

/** What came of a claim. */
export interface Lease {
  readonly isOurs: boolean
  /** Whether it was another process's until now, which has let its time pass without a word. */
  readonly wasLeft: boolean
}

/** Says that a process works on the events of a resource, for a while, unless another one said so. */
export const claim = (
  company: string,
  resource: string,
  owner: string
): Effect.Effect<Lease, DatabaseError, SqlClient.SqlClient> =>
  asking<{ was_left: boolean }>(
    "claim a resource of",
    `with held as (select owner from tributary.inbox_claims where company = $1 and resource = $2)
     insert into tributary.inbox_claims as c (company, resource, owner, until)
     values ($1, $2, $3, tributary.now() + $4::float8 * interval '1 millisecond')
     on conflict (company, resource) do update set owner = excluded.owner, until = excluded.until
       where c.owner = excluded.owner or c.until <= tributary.now()
     returning coalesce((select owner from held) <> c.owner, false) as was_left`,
    [company, resource, owner, leaseMs]
  ).pipe(Effect.map(([row]) => ({ isOurs: row !== undefined, wasLeft: row?.was_left ?? false })))

export const release = (
  company: string,
  resource: string,
  owner: string
): Effect.Effect<void, DatabaseError, SqlClient.SqlClient> =>
  Effect.asVoid(
    asking(
      "release a resource of",
      "delete from tributary.inbox_claims where company = $1 and resource = $2 and owner = $3",
      [company, resource, owner]
    )
  )

export interface ReplayFilter {
  readonly state: "dead" | "ignored" | "done"
  /** Of the source's own ids of events; absent: all. */
  readonly eventIds?: ReadonlyArray<string>
  readonly resource?: string
  /** Accepted at this time or later, RFC 3339. */
  readonly since?: string
}

/**
 * Puts settled events back, so that what they ask for is read whatever the warehouse holds. Answers how many.
 */
export const replay = (
  company: string,
  wish: ReplayFilter
): Effect.Effect<number, DatabaseError, SqlClient.SqlClient> =>
  asking<{ id: bigint }>(
    "replay from",
    `update tributary.inbox set state = 'waiting', attempts = 0, stamp = null, due_at = tributary.now(),
            settled_at = null, run_id = null, reason = null
      where company = $1 and state = $2
        and ($3::text is null or event_id in (select jsonb_array_elements_text($3::text::jsonb)))
        and ($4::text is null or resource = $4) and ($5::text is null or received_at >= $5::text::timestamptz)
      returning id`,
    [
      company,
      wish.state,
      wish.eventIds === undefined ? null : JSON.stringify(wish.eventIds),
      wish.resource ?? null,
      wish.since ?? null
    ]
  ).pipe(Effect.map((rows) => rows.length))

/** How the live lane of a resource stands. */
export interface SyncPosition {
  /** Whether an incremental scan is possible now: there is a cursor, and no full scan is wanted or under way. */
  readonly byCursor: boolean
  /** Whether the children of some parents can be read now: it was read in full, and need not be once more. */
  readonly byParent: boolean
  /** How long ago the last completed full scan began; null when there was none. */
  readonly fullMsAgo: number | null
  /** How far before the cursor an incremental scan begins, beyond what is configured. */
  readonly overlapMs: number
  /** The last completed scan, where it was an incremental one. */
  readonly lastScan: { readonly msAgo: number; readonly records: number } | null
  /** Of how many parents the children are to be read; not counted far beyond {@link parentsMax}. */
  readonly parentsAsked: number
}

const followedNever: SyncPosition = {
  byCursor: false,
  byParent: false,
  fullMsAgo: null,
  overlapMs: 0,
  lastScan: null,
  parentsAsked: 0
}

export const syncPositionOf = (
  companyId: bigint,
  resource: string
): Effect.Effect<SyncPosition, DatabaseError, SqlClient.SqlClient> =>
  asking<{
    by_cursor: boolean
    by_parent: boolean
    full_ms_ago: number | null
    overlap_ms: number
    scan_ms_ago: number | null
    scan_records: number | null
    parents_asked: number
  }>(
    "look at what is followed for",
    `select c.cursor is not null and c.full_wanted is null and c.scan_kind is distinct from 'full' as by_cursor,
            c.full_scan_at is not null and c.full_wanted is null and c.scan_kind is distinct from 'full' as by_parent,
            (extract(epoch from tributary.now() - c.full_scan_at) * 1000)::float8 as full_ms_ago,
            ${learnedOverlap("c")}::float8 as overlap_ms, r.records::float8 as scan_records,
            (extract(epoch from tributary.now() - r.began_at) * 1000)::float8 as scan_ms_ago,
            (select count(*)::int from (
               select 1 from tributary.rereads a where a.company_id = $1 and a.resource = $2 limit $3) asked) as parents_asked
       from tributary.checkpoints c
       left join lateral (
         select kind, began_at, records from tributary.runs
          where company_id = $1 and resource = $2 and lane = 'live' and kind in ('full', 'incremental')
            and status in ('done', 'quarantined')
          order by id desc limit 1) r on r.kind = 'incremental'
      where c.company_id = $1 and c.resource = $2 and c.lane = 'live'`,
    [companyId, resource, parentsMax + 1]
  ).pipe(
    Effect.map(([row]) =>
      row === undefined
        ? followedNever
        : {
            byCursor: row.by_cursor,
            byParent: row.by_parent,
            fullMsAgo: row.full_ms_ago,
            overlapMs: row.overlap_ms,
            lastScan:
              row.scan_ms_ago === null || row.scan_records === null
                ? null
                : { msAgo: row.scan_ms_ago, records: row.scan_records },
            parentsAsked: row.parents_asked
          }
    )
  )

/** Resources of the company with children to be read again. */
export const resourcesToRefetch = (
  companyId: bigint
): Effect.Effect<ReadonlyArray<string>, DatabaseError, SqlClient.SqlClient> =>
  asking<{ resource: string }>(
    "look for children beside",
    "select distinct resource from tributary.rereads where company_id = $1",
    [companyId]
  ).pipe(Effect.map((rows) => rows.map(({ resource }) => resource)))

/** Asks for the records whose field has these values, as a change of their parents would. */
export const requestRefetch = (
  companyId: bigint,
  resource: string,
  field: string,
  values: Iterable<string>
): Effect.Effect<void, DatabaseError, SqlClient.SqlClient> =>
  Effect.asVoid(
    asking(
      "ask for children beside",
      `insert into tributary.rereads as r (company_id, resource, field, value, asked_at)
       select $1::bigint, $2::text, $3::text, value, tributary.now()
         from jsonb_array_elements_text($4::text::jsonb) as asked(value)
       on conflict (company_id, resource, field, value) do update set asks = r.asks + 1, asked_at = excluded.asked_at`,
      [companyId, resource, field, JSON.stringify([...values])]
    )
  )

/** Which of these values are still to be read. */
export const pendingRefetches = (
  companyId: bigint,
  resource: string,
  field: string
): Effect.Effect<ReadonlySet<string>, DatabaseError, SqlClient.SqlClient> =>
  asking<{ value: string }>(
    "look for answers beside",
    "select value from tributary.rereads where company_id = $1 and resource = $2 and field = $3",
    [companyId, resource, field]
  ).pipe(Effect.map((rows) => new Set(rows.map(({ value }) => value))))
