/**
 * The tasks of `tributary.schedule`: what is due, who runs it, and what people ask for.
 *
 * Promise: a task is run by one process at a time. Who takes one holds it by a lease that it renews, and its fence grows;
 * a process that was taken over can neither renew nor say how the task ended. All times are the warehouse's. What is asked
 * for is run once more after the asking, whatever runs at that moment. Each function is one statement or one transaction
 * and may be repeated.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { transaction } from "../postgres/Transaction.ts"

export type TaskKind = "sync" | "backfill"
export type TaskStatus = "done" | "quarantined" | "failed" | "skipped" | "stopped"

/** A task as it stands. */
export interface Task {
  readonly company: string
  readonly resource: string
  readonly kind: TaskKind
  /** In words; null when it runs only if asked. */
  readonly schedule: string | null
  readonly promiseMs: number | null
  readonly nextAt: Date | null
  readonly pausedAt: Date | null
  readonly pausedBy: string | null
  readonly askedAt: Date | null
  readonly askedBy: string | null
  readonly askedFull: boolean
  readonly since: string | null
  readonly until: string | null
  /** Whether a process runs it at this moment: its lease has not run out, by the warehouse's clock. */
  readonly isRunning: boolean
  readonly beganAt: Date | null
  readonly endedAt: Date | null
  readonly status: TaskStatus | null
  readonly runId: bigint | null
  readonly failures: number
  readonly error: string | null
  readonly remedy: string | null
}

/** How long a task is held without a sign of life of its process. */
export const leaseMs = 10_000

type Sql<A> = Effect.Effect<A, SqlError, SqlClient.SqlClient>

const select = <Row extends object>(text: string, values: ReadonlyArray<unknown>): Sql<ReadonlyArray<Row>> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, values))

// ------------------------------------------------------------------------------------------------------ what people do

interface TaskRow extends Omit<Task, "promiseMs"> {
  readonly promiseMs: bigint | null
}

/** All tasks, ordered by company, resource, kind. */
export const read: Sql<ReadonlyArray<Task>> = Effect.suspend(() =>
  Effect.map(
    select<TaskRow>(
      `select company, resource, kind, schedule, promise_ms as "promiseMs", next_at as "nextAt", paused_at as "pausedAt",
              paused_by as "pausedBy", asked_at as "askedAt", asked_by as "askedBy", asked_full as "askedFull", since, until,
              coalesce(lease_until > (select tributary.now()), false) as "isRunning", began_at as "beganAt",
              ended_at as "endedAt", status, run_id as "runId", failures, error, remedy
         from tributary.schedule order by company, resource, kind`,
      []
    ),
    (rows) => rows.map((row) => ({ ...row, promiseMs: row.promiseMs === null ? null : Number(row.promiseMs) }))
  )
)

/** Has a resource synced as soon as a process is free to, also while it is paused. What runs now runs once more then. */
export const requestSync = (wish: {
  readonly company: string
  readonly resource: string
  /** Read every record. */
  readonly full: boolean
  readonly by: string
}): Sql<void> =>
  Effect.asVoid(
    select(
      `insert into tributary.schedule as s (company, resource, kind, asked_at, asked_by, asked_full)
       values ($1, $2, 'sync', tributary.now(), $3, $4)
       on conflict (company, resource, kind) do update
          set asked_at = excluded.asked_at, asked_by = excluded.asked_by,
              asked_full = excluded.asked_full or (s.asked_full and s.asked_at is not null),
              updated_at = tributary.now()`,
      [wish.company, wish.resource, wish.by, wish.full]
    )
  )

/**
 * Has a range read again beside live syncing; times are RFC 3339 in UTC, null is no bound. `running`: a backfill of another
 * range is under way, and nothing was changed.
 */
export const requestBackfill = (wish: {
  readonly company: string
  readonly resource: string
  readonly since: string | null
  readonly until: string | null
  readonly by: string
}): Sql<"asked" | "running"> =>
  Effect.map(
    select(
      `insert into tributary.schedule as s (company, resource, kind, asked_at, asked_by, since, until)
       values ($1, $2, 'backfill', tributary.now(), $5, $3, $4)
       on conflict (company, resource, kind) do update
          -- One of the same range that is under way is what was asked for.
          set asked_at = case when s.owner is null then excluded.asked_at else s.asked_at end,
              asked_by = excluded.asked_by, since = excluded.since, until = excluded.until,
              failures = case when s.owner is null then 0 else s.failures end, updated_at = tributary.now()
        where s.owner is null
           or (s.since is not distinct from excluded.since and s.until is not distinct from excluded.until)
       returning resource`,
      [wish.company, wish.resource, wish.since, wish.until, wish.by]
    ),
    (rows) => (rows.length === 0 ? "running" : "asked")
  )

/** Which tasks: one resource's, or with null those of every resource of the company. */
export interface PauseRequest {
  readonly company: string
  readonly resource: string | null
  readonly by: string
}

/** From now on not run by their schedules; what runs goes on to its end. Answers how many that changes. */
export const pause = ({ company, resource, by }: PauseRequest): Sql<number> =>
  Effect.map(
    select(
      `update tributary.schedule set paused_at = tributary.now(), paused_by = $3, updated_at = tributary.now()
        where company = $1 and ($2::text is null or resource = $2) and kind = 'sync' and paused_at is null
       returning resource`,
      [company, resource, by]
    ),
    (rows) => rows.length
  )

/** Run by their schedules again; a time that passed meanwhile is made up for at once. Answers how many that changes. */
export const resume = ({ company, resource }: PauseRequest): Sql<number> =>
  Effect.map(
    select(
      `update tributary.schedule set paused_at = null, paused_by = null, updated_at = tributary.now()
        where company = $1 and ($2::text is null or resource = $2) and kind = 'sync' and paused_at is not null
       returning resource`,
      [company, resource]
    ),
    (rows) => rows.length
  )

// ---------------------------------------------------------------------------------------------------------- companies

/** The numbers that the source gives the configured companies, as far as it told them. */
export const companyIds: Sql<ReadonlyMap<string, bigint>> = Effect.suspend(() =>
  Effect.map(
    select<{ company: string; id: bigint }>(`select company, company_id as id from tributary.companies`, []),
    (rows) => new Map(rows.map(({ company, id }) => [company, id]))
  )
)

/** Says of every task of a company why nothing of it can run now. What was asked for is answered by that. */
export const blockCompany = (company: string, error: string, remedy: string): Sql<void> =>
  Effect.asVoid(
    select(
      `update tributary.schedule
          set status = 'failed', error = $2, remedy = $3, ended_at = tributary.now(), updated_at = tributary.now(),
              asked_at = case when kind = 'sync' then null else asked_at end
        where company = $1 and owner is null
          and (asked_at is not null or error is distinct from $2 or status is distinct from 'failed')`,
      [company, error, remedy]
    )
  )

// --------------------------------------------------------------------------------------------- what is to run, and when

/** What the configuration says of a resource of a company. */
export interface TaskSchedule {
  readonly company: string
  readonly resource: string
  /** In words; null runs it only if asked. */
  readonly schedule: string | null
  readonly promiseMs: number
  readonly missed: "once" | "skip"
  /** When it runs next; both in milliseconds since 1970. */
  readonly next: (afterMs: number, lastBeganMs: number | null) => number | null
}

interface Standing {
  readonly company: string
  readonly resource: string
  readonly schedule: string | null
  readonly nextMs: number | null
  readonly beganMs: number | null
  readonly owned: boolean
  /** Whether a process was there that could have run it when it was due. */
  readonly attended: boolean
  readonly loaded: boolean
}

const epochMs = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`

/** Whether a process may have been there, for how long it has not said so. */
const attendedSlack = "30 seconds"

/**
 * Brings the tasks of the companies in the plans in line with them; tasks of resources that are no longer configured go.
 *
 * A time that passed is missed when no process of `serve` was alive at it (`tributary.receivers`): under `once` it stays
 * due, under `skip` the next one counts. A time that passed while a process was alive is late, not missed, and so is what
 * a process began and did not finish: both are run at once. What was never synced is due at once, whatever its schedule.
 */
export const upsertSchedules = (plans: ReadonlyArray<TaskSchedule>): Sql<void> =>
  transaction(
    Effect.gen(function* () {
      const companies = [...new Set(plans.map(({ company }) => company))]
      const keys = plans.map(({ company, resource }) => ({ company, resource }))
      yield* select(
        `insert into tributary.schedule (company, resource, kind)
         select company, resource, 'sync' from jsonb_to_recordset($1::text::jsonb) as p(company text, resource text)
          order by company, resource on conflict (company, resource, kind) do nothing`,
        [JSON.stringify(keys)]
      )
      const standing = yield* select<Standing>(
        `select s.company, s.resource, s.schedule, ${epochMs("s.next_at")} as "nextMs", ${epochMs("s.began_at")} as "beganMs",
                s.owner is not null as owned,
                exists (select 1 from tributary.receivers r
                         where s.company = any(r.companies) and r.began_at <= s.next_at
                           and r.alive_at + $2::interval >= s.next_at) as attended,
                exists (select 1 from tributary.checkpoints c join tributary.companies k on k.company_id = c.company_id
                         where k.company = s.company and c.resource = s.resource and c.lane = 'live'
                           and (c.cursor is not null or c.full_scan_at is not null)) as loaded
           from tributary.schedule s where s.company = any($1::text[]) and s.kind = 'sync'
          order by s.company, s.resource for update of s`,
        [companies, attendedSlack]
      )
      const [clock] = yield* select<{ nowMs: number }>(`select ${epochMs("tributary.now()")} as "nowMs"`, [])
      const { nowMs } = clock!
      const keyOf = (one: { readonly company: string; readonly resource: string }) =>
        JSON.stringify([one.company, one.resource])
      const before = new Map(standing.map((row) => [keyOf(row), row]))
      const nextOf = (plan: TaskSchedule): number | null => {
        const row = before.get(keyOf(plan))!
        if (plan.schedule === null) return null
        const isMissed = row.nextMs !== null && row.nextMs <= nowMs && !row.attended && !row.owned
        if (row.schedule !== plan.schedule || row.nextMs === null) {
          return row.loaded || row.beganMs !== null ? plan.next(nowMs, row.beganMs) : nowMs
        }
        return isMissed && plan.missed === "skip" ? plan.next(nowMs, row.beganMs) : row.nextMs
      }
      yield* select(
        `update tributary.schedule s
            set schedule = p.schedule, promise_ms = p."promiseMs", updated_at = tributary.now(),
                next_at = to_timestamp(p."nextMs" / 1000)
           from jsonb_to_recordset($1::text::jsonb)
                as p(company text, resource text, schedule text, "promiseMs" bigint, "nextMs" float8)
          where s.company = p.company and s.resource = p.resource and s.kind = 'sync'`,
        [
          JSON.stringify(
            plans.map((plan) => ({
              company: plan.company,
              resource: plan.resource,
              schedule: plan.schedule,
              promiseMs: Math.round(plan.promiseMs),
              nextMs: nextOf(plan)
            }))
          )
        ]
      )
      const wanted = new Set(plans.map(keyOf))
      const gone = standing
        .filter((row) => !wanted.has(keyOf(row)))
        .map(({ company, resource }) => ({ company, resource }))
      yield* select(
        `delete from tributary.schedule s
          using jsonb_to_recordset($1::text::jsonb) as g(company text, resource text)
          where s.company = g.company and s.resource = g.resource and s.kind = 'sync'
            and (s.lease_until is null or s.lease_until < tributary.now())`,
        [JSON.stringify(gone)]
      )
    })
  )

// --------------------------------------------------------------------------------------------------------- running them

/** What tells a task, and who may say something of it. */
export interface TaskLease {
  readonly company: string
  readonly resource: string
  readonly kind: TaskKind
  readonly owner: string
  readonly fence: bigint
}

/** A task that this process has taken. */
export interface ClaimedTask extends TaskLease {
  /** When somebody asked for it; null when its schedule did. */
  readonly askedAt: Date | null
  readonly full: boolean
  readonly since: string | null
  readonly until: string | null
  readonly failures: number
  /** When the lease of a process ran out that has not finished it; null when it was free. */
  readonly leftAt: Date | null
  /** The warehouse's time, in milliseconds since 1970. */
  readonly nowMs: number
}

/** What a look shows, for a moment's cost. */
export interface PollResult {
  readonly nowMs: number
  /** Companies of which it is worth while to take something. */
  readonly due: ReadonlyArray<string>
  /** Companies of which somebody wants something. */
  readonly asked: ReadonlyArray<string>
}

const isFree = (alias: string, now: string) => `(${alias}.lease_until is null or ${alias}.lease_until <= ${now})`
/** Also what a process has begun and not finished, whether or not it is paused. */
const isDue = (alias: string, now: string) =>
  `(${alias}.asked_at is not null or ${alias}.owner is not null or (${alias}.paused_at is null and ${alias}.next_at <= ${now}))`

/** Whether anything of these companies is to be run. */
export const pollDue = (companies: ReadonlyArray<string>): Sql<PollResult> =>
  Effect.map(
    select<{ nowMs: number; due: ReadonlyArray<string> | null; asked: ReadonlyArray<string> | null }>(
      `with clock as materialized (select tributary.now() as now)
       select ${epochMs("(select now from clock)")} as "nowMs", array_agg(distinct s.company) as due,
              array_agg(distinct s.company) filter (where s.asked_at is not null) as asked
         from tributary.schedule s
        where s.company = any($1::text[]) and ${isFree("s", "(select now from clock)")}
          and ${isDue("s", "(select now from clock)")}`,
      [companies]
    ),
    ([row]) => ({ nowMs: row!.nowMs, due: row!.due ?? [], asked: row!.asked ?? [] })
  )

/** A resource that this process can run. */
export interface Runnable {
  readonly company: string
  readonly resource: string
  readonly parent: string | null
}

/**
 * Takes what is due, at most one sync and one backfill of each company; as long as no more than `concurrency` of a company
 * run, of which a process leaves their share to the others that are alive, and one backfill beside them. First what a process has left, then what
 * somebody asked for, then what is due longest relative to its promise; children after their parents. At most `limit`
 * tasks, by the same order.
 */
export const claim = (
  owner: string,
  runnable: ReadonlyArray<Runnable>,
  concurrency: number,
  limit = runnable.length * 2
): Sql<ReadonlyArray<ClaimedTask>> =>
  select<ClaimedTask>(
    `with clock as materialized (select tributary.now() as now),
     known as (select * from jsonb_to_recordset($2::text::jsonb) as k(company text, resource text, parent text)),
     standing as materialized (
       select s.company, s.resource, s.kind, s.asked_at, s.owner, k.parent,
              extract(epoch from clock.now - s.next_at) * 1000 / coalesce(nullif(s.promise_ms, 0), 1) as lateness,
              not ${isFree("s", "clock.now")} as runs, coalesce(${isDue("s", "clock.now")}, false) as due
         from clock, tributary.schedule s join known k on k.company = s.company and k.resource = s.resource
     ),
     busy as (
       select company, kind, count(*) as tasks, count(*) filter (where owner = $1) as mine
         from standing where runs group by company, kind
     ),
     alive as (
       select k.company, count(distinct r.instance) as processes
         from clock, known k join tributary.receivers r on k.company = any(r.companies)
        where r.ended_at is null and r.alive_at > clock.now - interval '1 minute' group by k.company
     ),
     ready as (
       select distinct on (s.company, s.kind) s.company, s.resource, s.kind, s.owner, s.asked_at, s.lateness
         from standing s
        where s.due and not s.runs
          and (s.kind = 'backfill' or s.asked_at is not null or s.owner is not null or not exists (
                select 1 from standing p
                 where p.company = s.company and p.resource = s.parent and p.kind = 'sync' and (p.due or p.runs)))
        order by s.company, s.kind, s.owner is null, s.asked_at is null, s.asked_at, s.lateness desc nulls last, s.resource
     ),
     free as (
       select r.* from ready r
         left join busy b on b.company = r.company and b.kind = r.kind
         left join alive a on a.company = r.company
        where coalesce(b.tasks, 0) < case r.kind when 'sync' then $3::int else 1 end
          and coalesce(b.mine, 0) < ceil($3::float8 / greatest(a.processes, 1))
        order by r.owner is null, r.asked_at is null, r.asked_at, r.lateness desc nulls last, r.company limit $5
     ),
     taken as (
       select s.company, s.resource, s.kind, s.asked_at, s.asked_full, s.owner, s.lease_until, s.failures
         from clock, tributary.schedule s join free f on f.company = s.company and f.resource = s.resource and f.kind = s.kind
        -- Once more, since another process may have taken it, and even run it, meanwhile.
        where ${isFree("s", "clock.now")} and ${isDue("s", "clock.now")}
          for update of s skip locked
     )
     update tributary.schedule t
        set owner = $1, lease_until = clock.now + $4 * interval '1 millisecond', fence = t.fence + 1,
            began_at = clock.now, asked_at = null, updated_at = clock.now
       from taken, clock
      where t.company = taken.company and t.resource = taken.resource and t.kind = taken.kind
     returning t.company, t.resource, t.kind, t.owner, t.fence, taken.asked_at as "askedAt", t.asked_full as "full",
               t.since, t.until, t.failures, case when taken.owner is not null then taken.lease_until end as "leftAt",
               ${epochMs("clock.now")} as "nowMs"`,
    [owner, JSON.stringify(runnable), concurrency, leaseMs, limit]
  )

/** Says that these tasks are still worked at; answers those that are still held. */
export const renew = (held: ReadonlyArray<TaskLease>): Sql<ReadonlyArray<TaskLease>> =>
  held.length === 0
    ? Effect.succeed([])
    : select<TaskLease>(
        `update tributary.schedule s set lease_until = tributary.now() + $2 * interval '1 millisecond'
           from jsonb_to_recordset($1::text::jsonb)
                as h(company text, resource text, kind text, owner text, fence bigint)
          where s.company = h.company and s.resource = h.resource and s.kind = h.kind
            and s.owner = h.owner and s.fence = h.fence
         returning s.company, s.resource, s.kind, s.owner, s.fence`,
        [
          JSON.stringify(
            held.map(({ company, resource, kind, owner, fence }) => ({
              company,
              resource,
              kind,
              owner,
              fence: fence.toString()
            }))
          ),
          leaseMs
        ]
      )

const heldBy = `company = $1 and resource = $2 and kind = $3 and owner = $4 and fence = $5`
const valuesOf = ({ company, resource, kind, owner, fence }: TaskLease) => [company, resource, kind, owner, fence]

/** How a task ended. */
export interface TaskResult {
  readonly status: TaskStatus
  readonly runId: bigint | null
  readonly error: string | null
  readonly remedy: string | null
  /** Failures in a row, this one included. */
  readonly failures: number
  /** When it runs next, in milliseconds since 1970. */
  readonly nextMs: number | null
}

/** Writes how a task ended and lets go of it; answers false when another process has taken it over, and changes nothing. */
export const complete = (held: TaskLease, ending: TaskResult): Sql<boolean> =>
  Effect.map(
    select(
      `update tributary.schedule
          set status = $6, run_id = $7, error = $8, remedy = $9, failures = $10, next_at = to_timestamp($11::float8 / 1000),
              -- What failed is tried again as it was asked for.
              asked_full = asked_full and (asked_at is not null or ($6 = 'failed' and $11::float8 is not null)), owner = null, lease_until = null,
              ended_at = tributary.now(), updated_at = tributary.now()
        where ${heldBy} returning resource`,
      [...valuesOf(held), ending.status, ending.runId, ending.error, ending.remedy, ending.failures, ending.nextMs]
    ),
    (rows) => rows.length > 0
  )

/** Lets go of a task that could not be run now, as if it had not been taken; it is tried again at that time. */
export const reschedule = (claimed: ClaimedTask, nextMs: number): Sql<boolean> =>
  Effect.map(
    select(
      `update tributary.schedule
          set next_at = to_timestamp($6::float8 / 1000), asked_at = coalesce(asked_at, $7::timestamptz),
              owner = null, lease_until = null, updated_at = tributary.now()
        where ${heldBy} returning resource`,
      [...valuesOf(claimed), nextMs, claimed.askedAt]
    ),
    (rows) => rows.length > 0
  )

/** Lets go of a task in the middle, so that any process takes it up again at once. */
export const returnTask = (claimed: ClaimedTask, why: string): Sql<boolean> =>
  Effect.map(
    select(
      `update tributary.schedule
          set status = 'stopped', error = $6, remedy = 'nothing to do: it goes on as soon as a process of serve is there',
              next_at = case when schedule is null and kind = 'sync' then next_at else tributary.now() end,
              asked_at = coalesce(asked_at, $7::timestamptz),
              owner = null, lease_until = null, ended_at = tributary.now(), updated_at = tributary.now()
        where ${heldBy} returning resource`,
      [...valuesOf(claimed), why, claimed.askedAt]
    ),
    (rows) => rows.length > 0
  )
