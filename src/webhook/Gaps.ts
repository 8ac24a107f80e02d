/**
 * Times in which events may have been dropped: `tributary.gaps`; and who receives: `tributary.receivers`.
 *
 * Promise: a gap is written down in the transaction that forgets what it was known by, so that a process that is killed
 * leaves it to be found again. It is closed by nothing but a run of the live lane that read the resource to its end and
 * began after the gap had ended, by the warehouse's clock; whoever made that run. Writing the same gap down again changes
 * nothing, or makes it longer.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Subscription } from "../connector/Subscriptions.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as Seen from "./Seen.ts"

export type Cause = "abandoned" | "lost" | "disabled" | "paused" | "missing" | "down"

/** A gap to be written down. */
export interface Found {
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
}

/** A gap that a read proved closed. */
export interface Closed {
  readonly resource: string
  readonly cause: Cause
  readonly closedBy: string
}

type Sql<A> = Effect.Effect<A, SqlError, SqlClient.SqlClient>

const ask = <Row extends object>(text: string, values: ReadonlyArray<unknown>): Sql<ReadonlyArray<Row>> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, values))

const tell = (text: string, values: ReadonlyArray<unknown>): Sql<void> => Effect.asVoid(ask(text, values))

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

/** Writes gaps down; an open one of the same resource, cause and subscription grows. Answers how many are new. */
export const open = (company: string, found: ReadonlyArray<Found>): Sql<number> =>
  found.length === 0
    ? Effect.succeed(0)
    : Effect.map(
        ask<{ opened: boolean }>(
          `insert into tributary.gaps as g
             (company, subscription_id, resource, cause, detail, began_at, ended_at, events)
           select $1, "subscriptionId", resource, cause, detail, "beganAt",
                  case when not lasts then tributary.now() end, events
             from jsonb_to_recordset($2::jsonb) as f("subscriptionId" text, resource text, cause text, detail text,
               "beganAt" timestamptz, lasts boolean, events text[])
           on conflict (company, resource, cause, coalesce(subscription_id, '')) where closed_at is null do update
              set ended_at = excluded.ended_at, detail = excluded.detail, events = g.events || excluded.events,
                  tries = 0, due_at = tributary.now(), reason = null
            where g.ended_at is distinct from excluded.ended_at
           returning xmax = 0 as opened`,
          [company, JSON.stringify(found)]
        ),
        (rows) => rows.filter(({ opened }) => opened).length
      )

/** Ends what lasted and is not among these any more. */
const endOthers = (company: string, lasting: ReadonlyArray<Found>): Sql<void> =>
  tell(
    `update tributary.gaps g set ended_at = tributary.now(), tries = 0, due_at = tributary.now(), reason = null
      where g.company = $1 and g.closed_at is null and g.ended_at is null
        and not exists (
          select 1 from jsonb_to_recordset($2::jsonb) as f("subscriptionId" text, resource text, cause text)
           where f.resource = g.resource and f.cause = g.cause
             and f."subscriptionId" is not distinct from g.subscription_id)`,
    [company, JSON.stringify(lasting)]
  )

// ------------------------------------------------------------------------------------------------- a look at the source

/** A look at a company's subscriptions. */
export interface Look {
  readonly company: string
  /** Where the company's deliveries are to be sent; null is any address that ends as ours do. */
  readonly url: string | null
  /** Every event that is wanted. */
  readonly events: ReadonlyArray<string>
  /** From {@link wantedOf}. */
  readonly wanted: ReadonlyMap<string, string>
  /** The source's whole list. */
  readonly subscriptions: ReadonlyArray<Subscription>
  /** From `Seen.now`, taken before the source was asked. */
  readonly at: string
}

export interface Observed {
  /** Those that deliver to us, as they stand; none that is gone. */
  readonly ours: ReadonlyArray<Seen.Seen>
  /** Whether any is to deliver to us: not where nobody said our address, and none ever did. */
  readonly isWanted: boolean
  readonly opened: number
}

/** A row as it stood before the look. */
interface Before {
  readonly id: string
  readonly state: Seen.SeenState
  readonly events: ReadonlyArray<string>
  readonly unsound: Seen.Unsound | null
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
export const observe = (look: Look): Sql<Observed> => transaction(judge(look))

/** It delivers again, and not everything: what it does not is told by what is missing. */
const stillLacks = (company: string, subscriptionId: string): Sql<void> =>
  tell(
    `update tributary.subscriptions set unsound = 'missing'
      where company = $1 and subscription_id = $2 and state = 'active'`,
    [company, subscriptionId]
  )

const judge = Effect.fnUntraced(function* (look: Look) {
  const { company, wanted, at } = look
  const before = yield* ask<Before>(
    `select subscription_id as id, state, events, unsound, judged_at is not null as "isJudged",
            judged_at is not distinct from checked_at as "isUntouched"
       from tributary.subscriptions where company = $1 order by subscription_id for update`,
    [company]
  )
  const rows = yield* Seen.recordSeen(company, look.subscriptions, look.url, look.events, at)
  // Where nobody said what our address is, those of other receivers are listed too.
  const ever = rows.filter((row) => look.url !== null || row.url.endsWith(`/hooks/${company}`))
  const ours = ever.filter(({ state }) => state !== "gone")
  const active = ours.filter(({ state }) => state === "active")
  const soundAt = ever.reduce<string | null>(
    (latest, row) => (row.soundAt !== null && (latest === null || row.soundAt > latest) ? row.soundAt : latest),
    null
  )
  const lasting = new Map<string, Found>()
  const over = new Map<string, Found>()
  const add = (
    to: Map<string, Found>,
    cause: "disabled" | "paused" | "missing",
    resource: string,
    { subscriptionId, detail, beganAt }: Pick<Found, "subscriptionId" | "detail" | "beganAt">
  ) =>
    to.set(`${resource} ${cause} ${subscriptionId}`, {
      subscriptionId,
      resource,
      cause,
      detail,
      beganAt,
      lasts: to === lasting,
      events: []
    })

  const isWanted = look.url !== null || ever.length > 0
  for (const [event, resource] of isWanted ? wanted : []) {
    const listing = ours.filter((row) => row.events.includes(event))
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
  const mended: Array<Seen.Seen> = []
  for (const row of active) {
    const delivered = resourcesOf(
      row.events.filter((event) => !steady.has(event)),
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
      if (Seen.isSound(row)) mended.push(row)
    }
  }
  for (const key of lasting.keys()) over.delete(key)

  const found = [...over.values(), ...lasting.values()]
  const opened = yield* open(company, found)
  yield* endOthers(company, [...lasting.values()])
  for (const row of mended) {
    if (Seen.isSound(row)) yield* Seen.mend(company, row.id, at)
    else yield* stillLacks(company, row.id)
  }
  yield* tell(
    "update tributary.subscriptions set judged_at = checked_at where company = $1 and judged_at is distinct from checked_at",
    [company]
  )
  return { ours, isWanted, opened } satisfies Observed
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
}

export const logRead = (company: string, subscriptionId: string): Sql<LogRead | null> =>
  Effect.map(
    ask<LogRead>(
      `select log_read_to as "to", log_read_at::text as at,
              (extract(epoch from tributary.now() - coalesce(log_read_at, first_seen_at)) * 1000)::float8 as "ageMs"
         from tributary.subscriptions where company = $1 and subscription_id = $2`,
      [company, subscriptionId]
    ),
    (rows) => rows[0] ?? null
  )

/** Those of the events that are neither in the inbox nor known to be lost. */
export const unknownAmong = (company: string, events: ReadonlyArray<string>): Sql<ReadonlySet<string>> =>
  events.length === 0
    ? Effect.succeed(new Set())
    : Effect.map(
        ask<{ id: string }>(
          `select asked.id from jsonb_array_elements_text($2::jsonb) as asked(id)
            where not exists (select 1 from tributary.inbox i where i.company = $1 and i.event_id = asked.id)
              and not exists (
                select 1 from (select unnest(g.events) as id from tributary.gaps g where g.company = $1) lost
                 where lost.id = asked.id)`,
          [company, JSON.stringify(events)]
        ),
        (rows) => new Set(rows.map(({ id }) => id))
      )

/**
 * Writes down what the log showed together with how far it was read. A database that comes back without its latest
 * commits has lost this with every event that it lost: it stands after them in the log of Postgres.
 */
export const logWasRead = (
  company: string,
  subscriptionId: string,
  newest: string | null,
  at: string,
  found: ReadonlyArray<Found>
): Sql<number> =>
  transaction(
    Effect.tap(open(company, found), () =>
      tell(
        `update tributary.subscriptions set log_read_to = coalesce($3, log_read_to), log_read_at = $4::timestamptz
          where company = $1 and subscription_id = $2 and (log_read_at is null or log_read_at <= $4::timestamptz)`,
        [company, subscriptionId, newest, at]
      )
    )
  )

/** Whether the event, or where its id is not known any event since, is in the inbox. */
export const arrived = (company: string, eventId: string | null, since: string): Sql<boolean> =>
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

const pause = ({ first, most }: (typeof pauses)["revive" | "repair"]) =>
  `make_interval(mins => least(${most}, ${first} * power(2, least(tries, 10))::int))`

/** Whether it is time to try to revive the subscription: a receiver that began since the last try is a reason too. */
export const reviveDue = (company: string, subscriptionId: string): Sql<boolean> =>
  Effect.map(
    ask<{ due: boolean | null }>(
      `select bool_or(g.due_at <= tributary.now() or (g.tries > 0 and exists (
                select 1 from tributary.receivers r
                 where $1 = any(r.companies) and r.ended_at is null
                   and r.began_at > g.tried_at))) as due
         from tributary.gaps g
        where g.company = $1 and g.subscription_id = $2 and g.cause = 'disabled' and g.closed_at is null
          and g.ended_at is null`,
      [company, subscriptionId]
    ),
    (rows) => rows[0]?.due === true
  )

export const notRevived = (company: string, subscriptionId: string, reason: string): Sql<void> =>
  tell(
    `update tributary.gaps
        set reason = $3, tries = tries + 1, tried_at = tributary.now(), due_at = tributary.now() + ${pause(pauses.revive)}
      where company = $1 and subscription_id = $2 and cause = 'disabled' and closed_at is null and ended_at is null`,
    [company, subscriptionId, reason]
  )

/** A resource with gaps that have ended and are not closed. */
export interface Unrepaired {
  readonly resource: string
  readonly isDue: boolean
}

export const unrepaired = (company: string): Sql<ReadonlyArray<Unrepaired>> =>
  ask<Unrepaired>(
    `select resource, bool_or(due_at <= tributary.now()) as "isDue" from tributary.gaps
      where company = $1 and closed_at is null and ended_at is not null group by resource order by min(id)`,
    [company]
  )

/**
 * Closes every gap that a read proved closed: a run of the live lane that read the resource to its end, and that began
 * after the gap had ended. A scan that was resumed shows the source as it was before, and one that was shown older
 * versions than the warehouse holds (a stale replica) proves nothing.
 */
export const closeProven = (company: string, companyId: bigint): Sql<ReadonlyArray<Closed>> =>
  ask<Closed>(
    `with proven as (
       select g.id, r.id as run, r.began_at
         from tributary.gaps g
         cross join lateral (
           select id, began_at from tributary.runs
            where company_id = $2 and resource = g.resource and lane = 'live' and kind in ('full', 'incremental')
              and status in ('done', 'quarantined') and not resumed and went_back = 0 and began_at >= g.ended_at
            order by id limit 1) r
        where g.company = $1 and g.closed_at is null and g.ended_at is not null
     )
     update tributary.gaps g set closed_at = tributary.now(), closed_by = 'run ' || proven.run, reason = null
       from proven
      where proven.id = g.id and g.closed_at is null and g.ended_at <= proven.began_at
     returning g.resource, g.cause, g.closed_by as "closedBy"`,
    [company, companyId]
  )

/** Closes the ended gaps of a resource that nobody keeps equal any more. */
export const closeUnsynced = (company: string, resource: string): Sql<void> =>
  tell(
    `update tributary.gaps set closed_at = tributary.now(), closed_by = 'the resource is not synced any more', reason = null
      where company = $1 and resource = $2 and closed_at is null and ended_at is not null`,
    [company, resource]
  )

/** Why the ended gaps of a resource stay open; answers whether any does. */
export const notRepaired = (company: string, resource: string, reason: string): Sql<boolean> =>
  Effect.map(
    ask<object>(
      `update tributary.gaps
        set reason = $3, tries = tries + 1, tried_at = tributary.now(), due_at = tributary.now() + ${pause(pauses.repair)}
      where company = $1 and resource = $2 and closed_at is null and ended_at is not null
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

export const countOpen = (company: string): Sql<number> =>
  Effect.map(
    ask<{ open: number }>("select count(*)::int as open from tributary.gaps where company = $1 and closed_at is null", [
      company
    ]),
    (rows) => rows[0]!.open
  )

// ------------------------------------------------------------------------------------------------- receivers

/** A receiver has just proved that it can store deliveries for these companies. To be said every 20 s or so. */
export const alive = (instance: string, companies: ReadonlyArray<string>): Sql<void> =>
  tell(
    `insert into tributary.receivers as r (instance, companies)
     select $1, array(select jsonb_array_elements_text($2::jsonb))
     on conflict (instance) do update
        set companies = excluded.companies, alive_at = excluded.alive_at, ended_at = null,
            began_at = case when r.ended_at is null then r.began_at else excluded.began_at end`,
    [instance, JSON.stringify(companies)]
  )

/** A receiver stops on purpose. */
export const ended = (instance: string): Sql<void> =>
  tell("update tributary.receivers set ended_at = tributary.now() where instance = $1", [instance])
