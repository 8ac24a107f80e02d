/**
 * Periods in which events may have been dropped: `tributary.delivery_gaps`.
 *
 * Promise: a gap is stored in the transaction that discards its evidence. A killed process leaves the evidence, and the
 * next check finds the gap. Storing a gap again changes nothing, or makes it longer.
 *
 * Only a run of the live lane closes a gap, in any process. The run read the resource to its end. It began after the gap
 * had ended, by the warehouse's clock, and later by the overlap where the last events may be new. Only a full scan closes
 * a gap that may hide a removal.
 */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control, type ControlTables } from "../postgres/Tables.ts"
import { transaction } from "../postgres/Transaction.ts"

export type Cause = ControlTables["tributary.delivery_gaps"]["cause"]

/** A gap that is not stored yet. */
export interface NewGap {
  /** Null where no single subscription is the cause. */
  readonly subscriptionId: string | null
  readonly resource: string
  readonly cause: Cause
  readonly detail: string
  /** RFC 3339; null when it is unknown. */
  readonly beganAt: string | null
  /** Whether it is still going on. Otherwise it ends when it is stored. */
  readonly lasts: boolean
  readonly events: ReadonlyArray<string>
  /** Whether it may hide a removal, which only a full scan shows; default false. */
  readonly requiresFullScan?: boolean
  /** How long ago it ended; default 0. */
  readonly endedMsAgo?: number
  /** How long other runs may close it before a run is made for it; default 0. */
  readonly dueInMs?: number
  /** Minimum time from the close of the last gap of this resource and cause to a run for this one; default 0. */
  readonly pauseMs?: number
}

export const lockStatement = Statement.make({
  name: "lock the delivery gaps of a company",
  params: ["text"],
  columns: { pg_advisory_xact_lock: "void" },
  text: "select pg_advisory_xact_lock(hashtextextended('tributary:delivery_gaps:' || $1, 0))"
})

/** One transaction. Changes of the gaps of one company run one after another. */
export const serialized = <A, E, R>(company: string, change: Effect.Effect<A, E, R>) =>
  transaction(Effect.andThen(Statement.run(lockStatement, [company]), change))

/** SQL: the pause after this many failed attempts. It doubles with each, up to an hour. */
export const backoff = (firstMinutes: number, attempts: string): string =>
  `make_interval(mins => least(60, ${firstMinutes} * power(2, least(${attempts}, 10))::int))`

// ------------------------------------------------------------------------------------------------- opening and ending

/** SQL: whether a lasting gap ends, or an ended gap lasts again. */
const turned = "((g.ended_at is null) <> (excluded.ended_at is null))"

export const insertStatement = Statement.make({
  name: "store delivery gaps",
  params: ["text", "jsonb"],
  columns: { isOpened: "bool" },
  text: `insert into tributary.delivery_gaps as g
           (company, subscription_id, resource, cause, detail, began_at, ended_at, events, requires_full_scan, next_attempt_at)
         select $1, "subscriptionId", resource, cause, detail, "beganAt",
                case when not lasts then tributary.now() - coalesce("endedMsAgo", 0) * interval '1 millisecond' end,
                events, coalesce("requiresFullScan", false),
                greatest(tributary.now() + coalesce("dueInMs", 0) * interval '1 millisecond',
                  case when "pauseMs" > 0 then (
                    select max(p.closed_at) + "pauseMs" * interval '1 millisecond' from tributary.delivery_gaps p
                     where p.company = $1 and p.resource = f.resource and p.cause = f.cause) end)
           from jsonb_to_recordset($2::jsonb) as f("subscriptionId" text, resource text, cause text, detail text,
             "beganAt" timestamptz, lasts boolean, events text[], "requiresFullScan" boolean, "endedMsAgo" float8,
             "dueInMs" float8, "pauseMs" float8)
         on conflict (company, resource, cause, coalesce(subscription_id, '')) where closed_at is null do update
            set ended_at = case when excluded.ended_at is not null then greatest(g.ended_at, excluded.ended_at) end,
                detail = excluded.detail, events = g.events || excluded.events,
                requires_full_scan = g.requires_full_scan or excluded.requires_full_scan,
                attempts = case when ${turned} then 0 else g.attempts end,
                next_attempt_at = case when ${turned} then excluded.next_attempt_at else g.next_attempt_at end,
                last_error = case when not ${turned} then g.last_error end
          where g.ended_at is distinct from excluded.ended_at or g.detail <> excluded.detail
             or excluded.requires_full_scan and not g.requires_full_scan
         returning xmax = 0 as "isOpened"`
})

/** One gap for two of the same resource, cause and subscription. It hides what either of them may hide. */
const merge = (one: NewGap, other: NewGap): NewGap => {
  const least = (name: "endedMsAgo" | "dueInMs" | "pauseMs") => Math.min(one[name] ?? 0, other[name] ?? 0)
  return {
    ...one,
    detail: `${one.detail}; ${other.detail}`,
    beganAt:
      one.beganAt === null || other.beganAt === null || one.beganAt < other.beganAt ? one.beganAt : other.beganAt,
    lasts: one.lasts || other.lasts,
    events: [...one.events, ...other.events],
    requiresFullScan: one.requiresFullScan === true || other.requiresFullScan === true,
    endedMsAgo: least("endedMsAgo"),
    dueInMs: least("dueInMs"),
    pauseMs: least("pauseMs")
  }
}

const merged = (gaps: ReadonlyArray<NewGap>): ReadonlyArray<NewGap> =>
  [
    ...Map.groupBy(gaps, ({ resource, cause, subscriptionId }) =>
      JSON.stringify([resource, cause, subscriptionId])
    ).values()
  ].map((same) => same.reduce(merge))

/**
 * Stores gaps, in the caller's serialized transaction. An open gap of the same resource, cause and subscription grows and
 * keeps its attempts: a gap that always grows must not lead to reads all the time. Returns the number of new gaps.
 */
export const insertGaps = (company: string, gaps: ReadonlyArray<NewGap>): Sql.Query<number> =>
  gaps.length === 0
    ? Effect.succeed(0)
    : Effect.map(
        Statement.run(insertStatement, [company, JSON.stringify(merged(gaps))]),
        (rows) => rows.filter(({ isOpened }) => isOpened).length
      )

/** {@link insertGaps} in a transaction of its own. */
export const open = (company: string, gaps: ReadonlyArray<NewGap>): Sql.Query<number> =>
  gaps.length === 0 ? Effect.succeed(0) : serialized(company, insertGaps(company, gaps))

const endGaps = `update tributary.delivery_gaps g
    set ended_at = tributary.now(), attempts = 0, next_attempt_at = tributary.now(), last_error = null
  where g.company = $1 and g.closed_at is null and g.ended_at is null`

export const endOthersStatement = Statement.make({
  name: "end the other delivery gaps of a company",
  params: ["text", "jsonb", "jsonb"],
  text: `${endGaps}
            and not (g.cause = 'unobserved' and g.subscription_id in (select jsonb_array_elements_text($3::jsonb)))
            and not exists (
              select 1 from jsonb_to_recordset($2::jsonb) as f("subscriptionId" text, resource text, cause text)
               where f.resource = g.resource and f.cause = g.cause
                 and f."subscriptionId" is not distinct from g.subscription_id)`
})

/** Ends lasting gaps that are not among these, except gaps of these subscriptions that could not be checked. */
export const endOthers = (company: string, lasting: ReadonlyArray<NewGap>, subscriptions: ReadonlyArray<string>) =>
  Statement.run(endOthersStatement, [company, JSON.stringify(lasting), JSON.stringify(subscriptions)])

/** Ends the gaps of a subscription that could not be checked. */
export const endUnobserved = Statement.make({
  name: "end the unobserved gaps of a subscription",
  params: ["text", "text"],
  text: `${endGaps} and g.subscription_id = $2 and g.cause = 'unobserved'`
})

// ------------------------------------------------------------------------------------------------- closing

/** SQL: the open gaps of resource $2 that have ended. */
const endedGaps = "company = $1 and resource = $2 and closed_at is null and ended_at is not null"

/**
 * SQL: the time at which all changes that a gap may hide are visible; `overlap` is the parameter in milliseconds. The last
 * event of a gap may have fired just before its end.
 */
const visibleAt = (overlap: string) => `(g.ended_at + ${overlap}::float8 * interval '1 millisecond')`

/** SQL: whether a gap wants a run of its resource at this time: it has ended, is open, and waits for no later attempt. */
export const wantsRun = (gap: string, now: string): string =>
  `${gap}.closed_at is null and ${gap}.ended_at is not null and ${gap}.next_attempt_at <= ${now}`

export const dueStatement = Statement.make({
  name: "list the due gaps of a company",
  params: ["text", "text?"],
  columns: { resource: "text", isFullDue: "bool" },
  text: `select resource, bool_or(requires_full_scan) as "isFullDue" from tributary.delivery_gaps g
          where company = $1 and resource = coalesce($2, resource) and ${wantsRun("g", "tributary.now()")}
          group by resource order by min(id)`
})

/** The resources whose gaps want a run now, the oldest gap first. */
export const dueResources = (company: string): Sql.Query<ReadonlyArray<string>> =>
  Effect.map(Statement.run(dueStatement, [company, null]), (rows) => rows.map(({ resource }) => resource))

/** Whether the gaps of a resource that want a run now need a full scan; null where none wants one. */
export const dueOf = (company: string, resource: string) =>
  Effect.map(Statement.run(dueStatement, [company, resource]), ([row]) => row ?? null)

/** SQL: whether a full scan soft-deleted missing rows. A quarantined record without a number prevents it. */
const showsAbsence = `not exists (
                     select 1 from tributary.quarantine q
                      where q.company_id = $2 and q.resource = g.resource and q.resolved_at is null
                        and q.record_id is null)`

export const closeCoveredStatement = Statement.make({
  name: "close the delivery gaps that runs cover",
  params: ["text", "int8", "float8"],
  columns: { resource: "text", cause: Statement.as<Cause>("text"), closedBy: Statement.as<string>("text?") },
  text: `with proven as (
           select g.id, r.id as run
             from tributary.delivery_gaps g
             cross join lateral (
               select id from tributary.runs
                where company_id = $2 and resource = g.resource and lane = 'live'
                  and (kind = 'full' and (not g.requires_full_scan or ${showsAbsence}) or kind = 'incremental' and not g.requires_full_scan)
                  and status in ('done', 'quarantined') and error_kind is distinct from 'MassDeleteBlocked'
                  and not resumed and stale_records = 0 and started_at <= tributary.now() and started_at >= ${visibleAt("$3")}
                order by id limit 1) r
            where g.company = $1 and g.closed_at is null and g.ended_at is not null
         )
         update tributary.delivery_gaps g set closed_at = tributary.now(), closed_by = 'run ' || proven.run, last_error = null
           from proven
          where proven.id = g.id
         returning g.resource, g.cause, g.closed_by as "closedBy"`
})

/** A gap that a run closed. */
export type ClosedGap = Statement.RowOf<typeof closeCoveredStatement>

/**
 * Closes every gap that a run covers. The run began when all changes that the gap may hide were visible. A resumed scan does
 * not count: it shows the source as of its beginning. A run that read older versions than the warehouse has does not count:
 * the replica was stale. For a removal, the full scan was not stopped by the mass-delete guard.
 */
export const closeCovered = (company: string, companyId: bigint, overlapMs: number) =>
  serialized(company, Statement.run(closeCoveredStatement, [company, companyId, overlapMs]))

/** Postpones the gaps of a resource that run $4 just read, if some changes may not have been visible yet. */
export const markRead = Statement.make({
  name: "postpone the gaps of a resource that was read",
  params: ["text", "text", "float8", "int8?"],
  text: `update tributary.delivery_gaps g
            set attempts = 0, last_attempt_at = tributary.now(), next_attempt_at = ${visibleAt("$3")},
                last_error = 'run ' || $4::bigint || ' read it too early to prove that nothing is missing; one more scan closes it'
          where ${endedGaps} and ${visibleAt("$3")} > tributary.now()`
})

/** Postpones the ended gaps of a resource, or only those that need a full scan. */
export const postpone = (company: string, resource: string, ms: number, onlyFull: boolean) =>
  Query.run(
    control
      .updateTable("tributary.delivery_gaps")
      .where((is) => is.and({ company, resource }))
      .where("closed_at", "is", null)
      .where("ended_at", "is not", null)
      .set((of) => ({ next_attempt_at: of.fn("greatest", ["next_attempt_at", Query.nowPlus(ms)]) }))
      .$if(onlyFull, (gaps) => gaps.where("requires_full_scan", "=", true))
  )

export const fullScanDelayStatement = Statement.make({
  name: "read the delay of the next full scan",
  params: ["int8", "text", "float8", "float8?"],
  columns: { waitMs: "float8" },
  text: `select greatest(0, extract(epoch from started_at - tributary.now()) * 1000
                  + greatest(extract(epoch from finished_at - started_at) * 1000,
                             coalesce(requests * 60000 / $4::float8, 0)) / $3::float8)::float8 as "waitMs"
           from tributary.runs
          where company_id = $1 and resource = $2 and lane = 'live' and kind = 'full' and finished_at is not null
            -- The duration of an abandoned run is unknown.
            and status <> 'abandoned'
          order by id desc limit 1`
})

/** Time until the next full scan, so that all full scans take at most this share of time and request budget. */
export const fullScanDelay = (
  companyId: bigint,
  resource: string,
  share: number,
  requestsPerMinute: number | null
): Sql.Query<number> =>
  Effect.map(
    Statement.run(fullScanDelayStatement, [companyId, resource, share, requestsPerMinute]),
    ([row]) => row?.waitMs ?? 0
  )

/** Closes the open gaps of resources that are not synced any more. */
export const closeUnsynced = (company: string, synced: Iterable<string>) =>
  Query.run(
    control
      .updateTable("tributary.delivery_gaps")
      .set({ closed_at: Query.now, closed_by: "the resource is not synced any more", last_error: null })
      .set((of) => ({ ended_at: of.fn.coalesce("ended_at", Query.now) }))
      .where("company", "=", company)
      .where("closed_at", "is", null)
      .where((is) => is.not(is("resource", "=", Query.anyOf([...synced]))))
  )

export const readFailureStatement = Statement.make({
  name: "store why gaps stay open",
  params: ["text", "text", "text"],
  columns: { id: "int8" },
  text: `update tributary.delivery_gaps
            set last_error = $3, attempts = attempts + 1, last_attempt_at = tributary.now(), next_attempt_at = tributary.now() + ${backoff(1, "attempts")}
          where ${endedGaps} and next_attempt_at <= tributary.now()
         returning id`
})

/** Stores why the due gaps of a resource stay open. Returns whether there are any. */
export const recordReadFailure = (company: string, resource: string, reason: string): Sql.Query<boolean> =>
  Effect.map(Statement.run(readFailureStatement, [company, resource, reason]), ({ length }) => length > 0)

/** Whether the resource was ever read to its end. */
export const isLoaded = (company_id: bigint, resource: string): Sql.Query<boolean> =>
  Query.hasRows(
    control
      .selectFrom("tributary.checkpoints")
      .select("resource")
      .where((is) => is.and({ company_id, resource, lane: "live" }))
      .where((is) => is.or([is("cursor_read_at", "is not", null), is("full_scan_at", "is not", null)]))
  )

export const countStatement = Statement.make({
  name: "count the open gaps of a company",
  params: ["text"],
  columns: { open: "int4", lasting: "int4" },
  text: `select count(*)::int as open, (count(*) filter (where ended_at is null))::int as lasting
           from tributary.delivery_gaps where company = $1 and closed_at is null`
})

/** The number of open gaps, and of those that last. */
export const countOpen = (company: string) => Effect.map(Statement.run(countStatement, [company]), ([row]) => row!)
