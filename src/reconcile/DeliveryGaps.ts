/**
 * Times in which events may have been dropped: `tributary.gaps`; and who receives: `tributary.receivers`.
 *
 * Promise: a gap is written down in the transaction that forgets what it was known by, so that a process that is killed
 * leaves it to be found again. It is closed by nothing but a run of the live lane that read the resource to its end and
 * began when everything that the gap may hide had to be visible: after it had ended, by the warehouse's clock, and where
 * what fired last may be new, by the engine's overlap later; a gap that may hide a removal takes a run that read every
 * record. Whoever made that run. Writing the same gap down again changes nothing, or makes it longer.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Subscription } from "../connector/Subscriptions.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as HookUrl from "../subscriptions/HookUrl.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"

export type Cause = "abandoned" | "lost" | "disabled" | "paused" | "missing" | "down" | "dropped" | "overflow"

/** A gap to be written down. */
export interface NewGap {
  /** Null where no single subscription is to blame. */
  readonly subscriptionId: string | null
  readonly resource: string
  readonly cause: Cause
  readonly detail: string
  /** RFC 3339; null when nobody knows. */
  readonly beganAt: string | null
  /** Whether it goes on; else it ends as it is written down. */
  readonly lasts: boolean
  readonly events: ReadonlyArray<string>
  /** Whether it may hide a removal, which only reading every record shows; absent: no. */
  readonly needsFull?: boolean
  /** How long nothing need be read for it, since others may read meanwhile; absent: not at all. */
  readonly dueInMs?: number
}

/** A gap that a read proved closed. */
export interface ClosedGap {
  readonly resource: string
  readonly cause: Cause
  readonly closedBy: string
}

type Sql<A> = Effect.Effect<A, SqlError, SqlClient.SqlClient>

const ask = <Row extends object>(text: string, values: ReadonlyArray<unknown>): Sql<ReadonlyArray<Row>> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, values))

const tell = (text: string, values: ReadonlyArray<unknown>): Sql<void> => Effect.asVoid(ask(text, values))

/** Whoever changes several gaps of a company takes turns with the others who do, as one transaction. */
const inTurn = <A, E, R>(company: string, change: Effect.Effect<A, E, R>) =>
  transaction(
    Effect.andThen(tell("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`tributary:gaps:${company}`]), change)
  )

// ------------------------------------------------------------------------------------------------- what is wanted

/**
 * What each wanted event is about, of the resources that are synced; names have the shape `<resource>.<verb>` (EVT-06).
 * The others ask for nothing that is synced, and cannot leave a gap.
 */
export const wantedOf = (
  events: ReadonlyArray<string>,
  isSynced: (resource: string) => boolean
): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) => {
      const resource = event.slice(0, Math.max(0, event.lastIndexOf(".")))
      return isSynced(resource) ? [[event, resource] as const] : []
    })
  )

/** The resources that these events are about, as far as they are wanted. */
export const resourcesOf = (events: ReadonlyArray<string>, wanted: ReadonlyMap<string, string>): ReadonlySet<string> =>
  new Set(events.flatMap((event) => wanted.get(event) ?? []))

// ------------------------------------------------------------------------------------------------- opening and ending

/** Whether a gap that lasted ends, or one that had ended goes on. */
const turned = "((g.ended_at is null) <> (excluded.ended_at is null))"

/** What is read because of an overflow is not read again for so long. */
const overflowPause = "interval '1 hour'"

/**
 * Writes gaps down; an open one of the same resource, cause and subscription grows, and what was tried for it counts on:
 * a gap that grows all the time must not be read for all the time. Answers how many are new.
 */
export const open = (company: string, found: ReadonlyArray<NewGap>): Sql<number> =>
  found.length === 0 ? Effect.succeed(0) : inTurn(company, opened(company, found))

const opened = (company: string, found: ReadonlyArray<NewGap>): Sql<number> =>
  found.length === 0
    ? Effect.succeed(0)
    : Effect.map(
        ask<{ opened: boolean }>(
          `insert into tributary.gaps as g
             (company, subscription_id, resource, cause, detail, began_at, ended_at, events, needs_full, due_at)
           select $1, "subscriptionId", resource, cause, detail, "beganAt",
                  case when not lasts then tributary.now() end, events, coalesce("needsFull", false),
                  greatest(tributary.now() + coalesce("dueInMs", 0) * interval '1 millisecond',
                    case when cause = 'overflow' then (
                      select max(p.closed_at) + ${overflowPause} from tributary.gaps p
                       where p.company = $1 and p.resource = f.resource and p.cause = 'overflow') end)
             from jsonb_to_recordset($2::jsonb) as f("subscriptionId" text, resource text, cause text, detail text,
               "beganAt" timestamptz, lasts boolean, events text[], "needsFull" boolean, "dueInMs" float8)
           on conflict (company, resource, cause, coalesce(subscription_id, '')) where closed_at is null do update
              set ended_at = excluded.ended_at, detail = excluded.detail, events = g.events || excluded.events,
                  needs_full = g.needs_full or excluded.needs_full,
                  tries = case when ${turned} then 0 else g.tries end,
                  due_at = case when ${turned} then excluded.due_at else g.due_at end,
                  reason = case when not ${turned} then g.reason end
            where g.ended_at is distinct from excluded.ended_at or excluded.needs_full and not g.needs_full
           returning xmax = 0 as opened`,
          [company, JSON.stringify(found)]
        ),
        (rows) => rows.filter(({ opened }) => opened).length
      )

/** Ends what lasted and is not among these any more; that nobody can look at one of these subscriptions lasts. */
const endOthers = (company: string, lasting: ReadonlyArray<NewGap>, ours: ReadonlyArray<string>): Sql<void> =>
  tell(
    `update tributary.gaps g set ended_at = tributary.now(), tries = 0, due_at = tributary.now(), reason = null
      where g.company = $1 and g.closed_at is null and g.ended_at is null
        and not (g.cause = 'down' and g.subscription_id in (select jsonb_array_elements_text($3::jsonb)))
        and not exists (
          select 1 from jsonb_to_recordset($2::jsonb) as f("subscriptionId" text, resource text, cause text)
           where f.resource = g.resource and f.cause = g.cause
             and f."subscriptionId" is not distinct from g.subscription_id)`,
    [company, JSON.stringify(lasting), JSON.stringify(ours)]
  )

// ------------------------------------------------------------------------------------------------- a look at the source

/** A look at a company's subscriptions. */
export interface Snapshot {
  readonly company: string
  /** Where the company's deliveries are to be sent; null is any address that ends as ours do. */
  readonly url: string | null
  /** Every event that is wanted. */
  readonly events: ReadonlyArray<string>
  /** From {@link wantedOf}. */
  readonly wanted: ReadonlyMap<string, string>
  /** The resources whose wanted events may tell of a removal that no cursor shows; absent: none. */
  readonly removing?: ReadonlySet<string>
  /** Wanted events that the source does not deliver, since the token may not read them, and the scope that it lacks. */
  readonly unreadable?: ReadonlyMap<string, string>
  /** The source's whole list. */
  readonly subscriptions: ReadonlyArray<Subscription>
  /** From `Seen.now`, taken before the source was asked. */
  readonly at: string
}

export interface SnapshotResult {
  /** Those that deliver to us, as they stand; none that is gone. */
  readonly ours: ReadonlyArray<SubscriptionStore.SubscriptionRow>
  /** Whether any is to deliver to us: not where nobody said our address, and none ever did. */
  readonly isWanted: boolean
  readonly opened: number
}

/** A row as it stood before the look. */
interface Before {
  readonly id: string
  readonly state: SubscriptionStore.SubscriptionState
  readonly events: ReadonlyArray<string>
  readonly unsound: SubscriptionStore.UnhealthyReason | null
  readonly isJudged: boolean
  /** Whether nobody has looked since it was judged. */
  readonly isUntouched: boolean
}

const why: Readonly<Record<"disabled" | "paused" | "missing", string>> = {
  disabled: "the source gave delivering up",
  paused: "it is paused, and events are dropped meanwhile",
  missing: "no subscription delivers its events"
}

/**
 * Writes down what a look at the source showed, and what it means: gaps that last open or go on, those whose cause is
 * over end, and what was mended between two looks leaves one that has ended. One transaction.
 */
export const saveSnapshot = (look: Snapshot): Sql<SnapshotResult> => inTurn(look.company, judge(look))

/** It delivers again, and not everything: what it does not is told by what is missing. */
const stillLacks = (company: string, subscriptionId: string): Sql<void> =>
  tell(
    `update tributary.subscriptions set unsound = 'missing'
      where company = $1 and subscription_id = $2 and state = 'active'`,
    [company, subscriptionId]
  )

const judge = Effect.fnUntraced(function* (look: Snapshot) {
  const { company, wanted, at } = look
  const before = yield* ask<Before>(
    `select subscription_id as id, state, events, unsound, judged_at is not null as "isJudged",
            judged_at is not distinct from checked_at as "isUntouched"
       from tributary.subscriptions where company = $1 order by subscription_id for update`,
    [company]
  )
  const rows = yield* SubscriptionStore.saveSnapshot(company, look.subscriptions, look.url, look.events, at)
  // Where nobody said what our address is, earlier looks may have written down those of other receivers.
  const ever = rows.filter((row) => look.url !== null || HookUrl.isOurs(company, null, row.url))
  const ours = ever.filter(({ state }) => state !== "gone")
  const active = ours.filter(({ state }) => state === "active")
  const soundAt = ever.reduce<string | null>(
    (latest, row) => (row.soundAt !== null && (latest === null || row.soundAt > latest) ? row.soundAt : latest),
    null
  )
  const lasting = new Map<string, NewGap>()
  const over = new Map<string, NewGap>()
  const add = (
    to: Map<string, NewGap>,
    cause: "disabled" | "paused" | "missing",
    resource: string,
    { subscriptionId, detail, beganAt }: Pick<NewGap, "subscriptionId" | "detail" | "beganAt">
  ) =>
    to.set(`${resource} ${cause} ${subscriptionId}`, {
      subscriptionId,
      resource,
      cause,
      detail,
      beganAt,
      lasts: to === lasting,
      events: [],
      needsFull: look.removing?.has(resource) === true
    })

  const isWanted = look.url !== null || ever.length > 0
  for (const [event, resource] of isWanted ? wanted : []) {
    const listing = ours.filter((row) => row.events.includes(event))
    const scope = look.unreadable?.get(event)
    if (scope !== undefined) {
      const detail = `the token lacks the scope ${scope}, and the source delivers only what it may read`
      add(lasting, "missing", resource, { subscriptionId: null, detail, beganAt: soundAt })
      continue
    }
    if (listing.some(({ state }) => state === "active")) continue
    // The source says that it knows no such event.
    if (ours.some(({ events, lacks }) => !events.includes(event) && !lacks.includes(event))) continue
    const [idle] = listing
    if (idle === undefined || (idle.state !== "disabled" && idle.state !== "paused")) {
      add(lasting, "missing", resource, { subscriptionId: null, detail: why.missing, beganAt: soundAt })
    } else {
      const since = idle.state === "disabled" && idle.disabledAt !== null ? ` since ${idle.disabledAt}` : ""
      const detail = `subscription ${idle.id}: ${why[idle.state]}${since}`
      add(lasting, idle.state, resource, { subscriptionId: idle.id, detail, beganAt: idle.soundAt })
    }
  }

  const previous = new Map(before.map((row) => [row.id, row]))
  /** What was delivered all the time, by a subscription that is known to be sound. */
  const steady = new Set(
    before
      .filter((row) => row.isJudged && row.state === "active" && row.unsound === null)
      .filter((row) => active.some(({ id, unsound }) => id === row.id && unsound === null))
      .flatMap(({ events }) => events)
  )
  const mended: Array<SubscriptionStore.SubscriptionRow> = []
  for (const row of active) {
    const delivered = resourcesOf(
      row.events.filter((event) => !steady.has(event) && look.unreadable?.has(event) !== true),
      wanted
    )
    const known = previous.get(row.id)
    if (known?.isJudged !== true) {
      const detail = `subscription ${row.id} began to deliver; nothing before it was delivered`
      for (const resource of delivered) {
        add(over, "missing", resource, {
          subscriptionId: null,
          detail,
          beganAt: soundAt === row.soundAt ? null : soundAt
        })
      }
      mended.push(row)
    } else if (row.unsound === "paused" || row.unsound === "disabled") {
      const detail = `subscription ${row.id} was ${row.unsound} for a while`
      for (const resource of delivered) {
        add(over, row.unsound, resource, { subscriptionId: row.id, detail, beganAt: row.soundAt })
      }
      mended.push(row)
    } else if (row.unsound === "missing") {
      // What this look or the last one showed to be missing is written down; where others looked, it may be anything.
      const detail = `subscription ${row.id} did not deliver everything for a while`
      for (const resource of known.isUntouched ? new Set<string>() : delivered) {
        add(over, "missing", resource, { subscriptionId: null, detail, beganAt: row.soundAt })
      }
      if (SubscriptionStore.isHealthy(row)) mended.push(row)
    }
  }
  for (const key of lasting.keys()) over.delete(key)

  const found = [...over.values(), ...lasting.values()]
  const news = yield* opened(company, found)
  yield* endOthers(
    company,
    [...lasting.values()],
    ours.map(({ id }) => id)
  )
  for (const row of mended) {
    if (SubscriptionStore.isHealthy(row)) yield* SubscriptionStore.markHealthy(company, row.id, at)
    else yield* stillLacks(company, row.id)
  }
  yield* tell(
    "update tributary.subscriptions set judged_at = checked_at where company = $1 and judged_at is distinct from checked_at",
    [company]
  )
  return { ours, isWanted, opened: news } satisfies SnapshotResult
})

// ------------------------------------------------------------------------------------------------- the delivery log

/** How far the delivery log of a subscription was read. */
export interface LogRead {
  /** The newest entry, by the source's own time, as sent; null when there was none yet. */
  readonly to: string | null
  /** How long ago by the warehouse's clock; since it is known when it was never read. */
  readonly ageMs: number
  /** When that was; null when it was never read. */
  readonly at: string | null
  /** The event of that entry; null where that is not known. */
  readonly event: string | null
  /** For how long that has been the newest entry, of an event whose attempts have not ended; null when it was not. */
  readonly waitsMs: number | null
}

export const logRead = (company: string, subscriptionId: string): Sql<LogRead | null> =>
  Effect.map(
    ask<LogRead>(
      `select log_read_to as "to", log_read_event as event, log_read_at::text as at,
              (extract(epoch from tributary.now() - log_waits_at) * 1000)::float8 as "waitsMs",
              (extract(epoch from tributary.now() - coalesce(log_read_at, first_seen_at)) * 1000)::float8 as "ageMs"
         from tributary.subscriptions where company = $1 and subscription_id = $2`,
      [company, subscriptionId]
    ),
    (rows) => rows[0] ?? null
  )

/** What the warehouse knows of an event that the log shows. */
export interface EventStatus {
  /** Whether it is in the inbox. */
  readonly isStored: boolean
  /** Whether a gap tells of it. */
  readonly isTold: boolean
}

export const eventStatus = (company: string, events: ReadonlyArray<string>): Sql<ReadonlyMap<string, EventStatus>> =>
  events.length === 0
    ? Effect.succeed(new Map())
    : Effect.map(
        ask<EventStatus & { id: string }>(
          `select asked.id, i.event_id is not null as "isStored", told.id is not null as "isTold"
             from jsonb_array_elements_text($2::jsonb) as asked(id)
             left join tributary.inbox i on i.company = $1 and i.event_id = asked.id
             left join (select distinct unnest(events) as id from tributary.gaps where company = $1) told
               on told.id = asked.id`,
          [company, JSON.stringify(events)]
        ),
        (rows) => new Map(rows.map(({ id, ...standing }) => [id, standing]))
      )

/** The newest entry of a delivery log. */
export interface LogHead {
  readonly at: string
  readonly event: string
  /** Whether the attempts of its event have not ended. */
  readonly isWaiting: boolean
}

/**
 * Writes down what the log showed together with how far it was read: the subscription can be looked at. A database that
 * comes back without its latest commits has lost this with every event that it lost: it stands after them in the log of
 * Postgres.
 */
export const advanceLogCursor = (
  company: string,
  subscriptionId: string,
  newest: LogHead | null,
  at: string,
  found: ReadonlyArray<NewGap>
): Sql<number> =>
  inTurn(
    company,
    Effect.gen(function* () {
      const news = yield* opened(company, found)
      yield* tell(
        `update tributary.gaps set ended_at = tributary.now(), tries = 0, due_at = tributary.now(), reason = null
          where company = $1 and subscription_id = $2 and cause = 'down' and closed_at is null and ended_at is null`,
        [company, subscriptionId]
      )
      yield* tell(
        `update tributary.subscriptions
            set log_waits_at = case when not $6::boolean then null
                                    when (log_read_to, log_read_event) = ($3, $4) then coalesce(log_waits_at, $5::timestamptz)
                                    else $5::timestamptz end,
                log_read_to = coalesce($3, log_read_to), log_read_event = coalesce($4, log_read_event),
                log_read_at = $5::timestamptz, problem = null, remedy = null
          where company = $1 and subscription_id = $2 and (log_read_at is null or log_read_at <= $5::timestamptz)`,
        [company, subscriptionId, newest?.at ?? null, newest?.event ?? null, at, newest?.isWaiting ?? false]
      )
      return news
    })
  )

/** Whether the event, or where its id is not known any event since, is in the inbox. */
export const hasEvent = (company: string, eventId: string | null, since: string): Sql<boolean> =>
  Effect.map(
    ask<object>(
      `select 1 from tributary.inbox
        where company = $1 and (event_id = $2 or ($2::text is null and received_at >= $3::timestamptz)) limit 1`,
      [company, eventId, since]
    ),
    (rows) => rows.length > 0
  )

// ------------------------------------------------------------------------------------------------- trying and closing

/** What is to be tried again after growing pauses, in minutes. */
const pauses = { revive: { first: 5, most: 60 }, repair: { first: 1, most: 60 } } as const

const pause = ({ first, most }: (typeof pauses)["revive" | "repair"], tries: string) =>
  `make_interval(mins => least(${most}, ${first} * power(2, least(${tries}, 10))::int))`

/** Whether it is time to try to revive the subscription: a receiver that began since the last try is a reason too. */
export const reenableDue = (company: string, subscriptionId: string): Sql<boolean> =>
  Effect.map(
    ask<{ due: boolean }>(
      `select s.revive_due_at is null or s.revive_due_at <= tributary.now() or exists (
                select 1 from tributary.receivers r
                 where $1 = any(r.companies) and r.ended_at is null and r.began_at > s.revive_tried_at) as due
         from tributary.subscriptions s where s.company = $1 and s.subscription_id = $2`,
      [company, subscriptionId]
    ),
    (rows) => rows[0]?.due === true
  )

export const recordReenableFailure = (company: string, subscriptionId: string, reason: string): Sql<void> =>
  tell(
    `with tried as (
       update tributary.subscriptions
          set revive_tries = revive_tries + 1, revive_tried_at = tributary.now(),
              revive_due_at = tributary.now() + ${pause(pauses.revive, "revive_tries")}
        where company = $1 and subscription_id = $2
       returning revive_tries, revive_tried_at, revive_due_at)
     update tributary.gaps
        set reason = $3, tries = tried.revive_tries, tried_at = tried.revive_tried_at, due_at = tried.revive_due_at
       from tried
      where company = $1 and subscription_id = $2 and cause = 'disabled' and closed_at is null and ended_at is null`,
    [company, subscriptionId, reason]
  )

/**
 * From when on everything that a gap may hide is visible, with the overlap in milliseconds as that parameter: what was
 * given up had been tried for longer than that; of the rest the last may have fired just before the gap ended.
 */
const visibleAt = (overlap: string) =>
  `(g.ended_at + case when g.cause = 'abandoned' then 0 else ${overlap}::float8 end * interval '1 millisecond')`

/** A resource with gaps that have ended and are not closed. */
export interface OpenGap {
  readonly resource: string
  /** How long nothing is to be read for it; 0 is now. */
  readonly dueInMs: number
  /** Whether any of them takes a run that reads every record, and whether one that is due does. */
  readonly needsFull: boolean
  readonly isFullDue: boolean
}

export const openGaps = (company: string): Sql<ReadonlyArray<OpenGap>> =>
  ask<OpenGap>(
    `select resource, greatest(0, extract(epoch from min(due_at) - tributary.now()) * 1000)::float8 as "dueInMs",
            bool_or(needs_full) as "needsFull", bool_or(needs_full and due_at <= tributary.now()) as "isFullDue"
       from tributary.gaps
      where company = $1 and closed_at is null and ended_at is not null group by resource order by min(id)`,
    [company]
  )

/** Whether what a full scan did not show was taken for gone: not beside a record without number. */
const showsAbsence = `not exists (
                     select 1 from tributary.quarantine q
                      where q.company_id = $2 and q.resource = g.resource and q.resolved_at is null
                        and q.record_id is null)`

/**
 * Closes every gap that a read proved closed: a run of the live lane that read the resource to its end, and that began
 * when all that the gap may hide was visible. A scan that was resumed shows the source as it was before, and one that was
 * shown older versions than the warehouse holds (a stale replica) proves nothing; of a removal only a run that read every
 * record, and was believed.
 */
export const closeCovered = (company: string, companyId: bigint, overlapMs: number): Sql<ReadonlyArray<ClosedGap>> =>
  inTurn(
    company,
    ask<ClosedGap>(
      `with proven as (
       select g.id, r.id as run
         from tributary.gaps g
         cross join lateral (
           select id from tributary.runs
            where company_id = $2 and resource = g.resource and lane = 'live'
              and (kind = 'full' and (not g.needs_full or ${showsAbsence}) or kind = 'incremental' and not g.needs_full)
              and status in ('done', 'quarantined') and error_kind is distinct from 'DeletionsNotBelieved'
              and not resumed and went_back = 0 and began_at <= tributary.now() and began_at >= ${visibleAt("$3")}
            order by id limit 1) r
        where g.company = $1 and g.closed_at is null and g.ended_at is not null
     )
     update tributary.gaps g set closed_at = tributary.now(), closed_by = 'run ' || proven.run, reason = null
       from proven
      where proven.id = g.id
     returning g.resource, g.cause, g.closed_by as "closedBy"`,
      [company, companyId, overlapMs]
    )
  )

/**
 * The gaps of a resource that was read just now, and of which something may not have been visible yet, wait for a second
 * read, or for a run that anybody makes by then.
 */
export const markRead = (company: string, resource: string, runId: bigint | null, overlapMs: number): Sql<void> =>
  tell(
    `update tributary.gaps g
        set tries = 0, tried_at = tributary.now(), due_at = ${visibleAt("$3")},
            reason = 'run ' || $4::text || ' has read it; it is read once more when the source must show all of it'
      where company = $1 and resource = $2 and closed_at is null and ended_at is not null
        and ${visibleAt("$3")} > tributary.now()`,
    [company, resource, overlapMs, runId]
  )

/** Nothing is read for the gaps of a resource for so long; `onlyFull`: for those that need every record. */
export const postpone = (company: string, resource: string, waitMs: number, onlyFull: boolean): Sql<void> =>
  tell(
    `update tributary.gaps
        set due_at = greatest(due_at, tributary.now() + $3::float8 * interval '1 millisecond')
      where company = $1 and resource = $2 and closed_at is null and ended_at is not null
        and (needs_full or not $4::boolean)`,
    [company, resource, waitMs, onlyFull]
  )

/**
 * How long the whole of a resource is not to be read, so that reading it takes at most this share of the time and of the
 * request budget, whoever reads it.
 */
export const fullScanDelay = (
  companyId: bigint,
  resource: string,
  share: number,
  requestsPerMinute: number | null
): Sql<number> =>
  Effect.map(
    ask<{ waitMs: number }>(
      `select greatest(0, extract(epoch from began_at - tributary.now()) * 1000
                + greatest(extract(epoch from ended_at - began_at) * 1000,
                           coalesce(requests * 60000 / $4::float8, 0)) / $3::float8)::float8 as "waitMs"
         from tributary.runs
        where company_id = $1 and resource = $2 and lane = 'live' and kind = 'full' and ended_at is not null
          -- How long one took whose process was gone, nobody knows.
          and status <> 'abandoned'
        order by id desc limit 1`,
      [companyId, resource, share, requestsPerMinute]
    ),
    (rows) => rows[0]?.waitMs ?? 0
  )

/** Closes the ended gaps of a resource that nobody keeps equal any more. */
export const closeUnsynced = (company: string, resource: string): Sql<void> =>
  tell(
    `update tributary.gaps set closed_at = tributary.now(), closed_by = 'the resource is not synced any more', reason = null
      where company = $1 and resource = $2 and closed_at is null and ended_at is not null`,
    [company, resource]
  )

/** Why the ended gaps of a resource that are due stay open; answers whether any does. */
export const recordRepairFailure = (company: string, resource: string, reason: string): Sql<boolean> =>
  Effect.map(
    ask<object>(
      `update tributary.gaps
        set reason = $3, tries = tries + 1, tried_at = tributary.now(), due_at = tributary.now() + ${pause(pauses.repair, "tries")}
      where company = $1 and resource = $2 and closed_at is null and ended_at is not null and due_at <= tributary.now()
     returning id`,
      [company, resource, reason]
    ),
    (rows) => rows.length > 0
  )

/** Whether the resource was ever read to its end. */
export const isLoaded = (companyId: bigint, resource: string): Sql<boolean> =>
  Effect.map(
    ask<object>(
      `select 1 from tributary.checkpoints
        where company_id = $1 and resource = $2 and lane = 'live' and (cursor_at is not null or full_scan_at is not null)`,
      [companyId, resource]
    ),
    (rows) => rows.length > 0
  )

/** How many gaps are open, and how many of them last. */
export const countOpen = (company: string): Sql<{ readonly open: number; readonly lasting: number }> =>
  Effect.map(
    ask<{ open: number; lasting: number }>(
      `select count(*)::int as open, (count(*) filter (where ended_at is null))::int as lasting
         from tributary.gaps where company = $1 and closed_at is null`,
      [company]
    ),
    (rows) => rows[0]!
  )

// ------------------------------------------------------------------------------------------------- receivers

/** A receiver has just proved that it can store deliveries for these companies. To be said every 20 s or so. */
export const heartbeat = (instance: string, companies: ReadonlyArray<string>): Sql<void> =>
  tell(
    `insert into tributary.receivers as r (instance, companies)
     select $1, array(select jsonb_array_elements_text($2::jsonb))
     on conflict (instance) do update
        set companies = excluded.companies, alive_at = excluded.alive_at, ended_at = null,
            began_at = case when r.ended_at is null then r.began_at else excluded.began_at end`,
    [instance, JSON.stringify(companies)]
  )

/** A receiver stops on purpose. */
export const deregister = (instance: string): Sql<void> =>
  tell("update tributary.receivers set ended_at = tributary.now() where instance = $1", [instance])
