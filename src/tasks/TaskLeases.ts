/**
 * Claims and leases of tasks.
 *
 * Promise: a task is run by one process at a time. A claim is a lease that the process renews, and its fence rises with
 * each claim; a process whose lease another one took over can neither renew it nor write a result. All times are the
 * warehouse's. Each function is one statement and may be repeated. The lease of a crashed process expires.
 */
import * as Effect from "effect/Effect"
import type { TaskKind, TaskStatus } from "./TaskQueue.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

/** The time after which a lease expires that its process does not renew. */
export const leaseMs = 10_000

const leaseColumns = {
  ...Statement.columns("text", "company", "resource"),
  kind: Statement.as<TaskKind>("text"),
  owner: Statement.as<string>("text?"),
  fence: "int8"
} as const

/** The result of a cheap poll. */
export interface PollResult {
  readonly nowMs: number
  /** Companies that have a task to claim. */
  readonly due: ReadonlyArray<string>
  /** Companies of which a person requested a task. */
  readonly requested: ReadonlyArray<string>
}

const isFree = (alias: string, now: string) =>
  `(${alias}.lease_expires_at is null or ${alias}.lease_expires_at <= ${now})`
/** A task that a process began and did not finish is due even while it is paused. */
const isDue = (alias: string, now: string) =>
  `(${alias}.requested_at is not null or ${alias}.lease_owner is not null or (${alias}.paused_at is null and ${alias}.next_run_at <= ${now}))`

export const pollStatement = Statement.make({
  name: "poll for due tasks",
  params: ["text[]"],
  columns: { nowMs: "float8", due: "text[]?", requested: "text[]?" },
  text: `with clock as materialized (select tributary.now() as now)
         select ${Sql.epochMs("(select now from clock)")} as "nowMs", array_agg(distinct s.company) as due,
                array_agg(distinct s.company) filter (where s.requested_at is not null) as requested
           from tributary.tasks s
          where s.company = any($1) and ${isFree("s", "(select now from clock)")}
            and ${isDue("s", "(select now from clock)")}`
})

/** Polls for tasks of these companies that are due. */
export const pollDue = (companies: ReadonlyArray<string>): Sql.Query<PollResult> =>
  Effect.map(Statement.run(pollStatement, [companies]), ([row]) => ({
    nowMs: row!.nowMs,
    due: row!.due ?? [],
    requested: row!.requested ?? []
  }))

/** A resource that this process can run. */
export interface Runnable {
  readonly company: string
  readonly resource: string
  readonly parent: string | null
}

export const claimStatement = Statement.make({
  name: "claim due tasks",
  params: ["text", "text", "int4", "float8", "int8"],
  columns: {
    ...leaseColumns,
    /** When a person requested it; null when its schedule did. */
    requestedAt: "timestamptz?",
    full: "bool",
    ...Statement.columns("text?", "since", "until"),
    failures: "int4",
    /** When the lease of a process that did not finish it expired; null for a task that was free. */
    leaseExpiredAt: "timestamptz?",
    /** The warehouse's time, in milliseconds since 1970. */
    nowMs: "float8"
  },
  text: `with clock as materialized (select tributary.now() as now),
     runnable as (select * from jsonb_to_recordset($2::text::jsonb) as k(company text, resource text, parent text)),
     tasks as materialized (
       select s.company, s.resource, s.kind, s.requested_at, s.lease_owner, k.parent,
              extract(epoch from clock.now - s.next_run_at) * 1000 / coalesce(nullif(s.freshness_target_ms, 0), 1) as lateness,
              not ${isFree("s", "clock.now")} as runs, coalesce(${isDue("s", "clock.now")}, false) as due
         from clock, tributary.tasks s join runnable k on k.company = s.company and k.resource = s.resource),
     busy as (
       select company, kind, count(*) as running, count(*) filter (where lease_owner = $1) as mine
         from tasks where runs group by company, kind),
     alive as (
       select k.company, count(distinct r.process_id) as processes
         from runnable k join tributary.processes_alive r on k.company = any(r.companies) group by k.company),
     ready as (
       select distinct on (s.company, s.kind) s.company, s.resource, s.kind, s.lease_owner, s.requested_at, s.lateness
         from tasks s where s.due and not s.runs
          and (s.kind = 'backfill' or s.requested_at is not null or s.lease_owner is not null or not exists (
                select 1 from tasks p where p.company = s.company and p.resource = s.parent and p.kind = 'sync' and (p.due or p.runs)))
        order by s.company, s.kind, s.lease_owner is null, s.requested_at is null, s.requested_at, s.lateness desc nulls last, s.resource),
     free as (
       select r.* from ready r
         left join busy b on b.company = r.company and b.kind = r.kind left join alive a on a.company = r.company
        where coalesce(b.running, 0) < case r.kind when 'sync' then $3::int else 1 end
          and coalesce(b.mine, 0) < ceil($3::float8 / greatest(a.processes, 1))
        order by r.lease_owner is null, r.requested_at is null, r.requested_at, r.lateness desc nulls last, r.company limit $5),
     claimed as (
       select s.company, s.resource, s.kind, s.requested_at, s.full_requested, s.lease_owner, s.lease_expires_at, s.failures
         from clock, tributary.tasks s join free f on f.company = s.company and f.resource = s.resource and f.kind = s.kind
        -- Checked again: another process may have claimed the task meanwhile, and even run it.
        where ${isFree("s", "clock.now")} and ${isDue("s", "clock.now")}
          for update of s skip locked)
     update tributary.tasks t
        set lease_owner = $1, lease_expires_at = clock.now + $4 * interval '1 millisecond', fence = t.fence + 1,
            started_at = clock.now, requested_at = null, updated_at = clock.now
       from claimed, clock
      where t.company = claimed.company and t.resource = claimed.resource and t.kind = claimed.kind
     returning t.company, t.resource, t.kind, t.lease_owner as owner, t.fence, claimed.requested_at as "requestedAt", t.full_requested as "full",
               t.since, t.until, t.failures, case when claimed.lease_owner is not null then claimed.lease_expires_at end as "leaseExpiredAt",
               ${Sql.epochMs("clock.now")} as "nowMs"`
})

/** A task that this process has claimed. */
export type ClaimedTask = Statement.RowOf<typeof claimStatement>

/**
 * Claims tasks that are due, at most one sync and one backfill of each company, and at most `limit` in all.
 *
 * At most `concurrency` syncs and one backfill of a company run at a time; a process leaves a share of them to the other
 * live processes. The order: tasks that a process left unfinished, then requested ones, then the longest due relative to
 * their freshness target; children after their parents.
 */
export const claimTasks = (
  owner: string,
  runnable: ReadonlyArray<Runnable>,
  concurrency: number,
  limit = runnable.length * 2
): Sql.Query<ReadonlyArray<ClaimedTask>> =>
  Statement.run(claimStatement, [owner, JSON.stringify(runnable), concurrency, leaseMs, limit])

/** The right of one process to a task. */
export type TaskLease = Statement.RowOf<typeof renewStatement>

export const renewStatement = Statement.make({
  name: "renew leases of tasks",
  params: ["text", "float8"],
  columns: leaseColumns,
  text: `update tributary.tasks s set lease_expires_at = tributary.now() + $2 * interval '1 millisecond'
           from jsonb_to_recordset($1::text::jsonb) as h(company text, resource text, kind text, owner text, fence bigint)
          where s.company = h.company and s.resource = h.resource and s.kind = h.kind and s.lease_owner = h.owner and s.fence = h.fence
         returning s.company, s.resource, s.kind, s.lease_owner as owner, s.fence`
})

/** Renews leases; returns those that no other process has taken over. */
export const renewLeases = (leases: ReadonlyArray<TaskLease>): Sql.Query<ReadonlyArray<TaskLease>> =>
  leases.length === 0
    ? Effect.succeed([])
    : Statement.run(renewStatement, [
        JSON.stringify(leases.map((lease) => ({ ...lease, fence: lease.fence.toString() }))),
        leaseMs
      ])

const isChanged = (rows: Sql.Query<ReadonlyArray<unknown>>) => Effect.map(rows, ({ length }) => length > 0)
const isLease = `company = $1 and resource = $2 and kind = $3 and lease_owner = $4 and fence = $5`
const leaseParams = ["text", "text", "text", "text", "int8"] as const
const valuesOf = ({ company, resource, kind, owner, fence }: TaskLease) =>
  [company, resource, kind, owner, fence] as const

/** The result of a task. */
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

export const completeStatement = Statement.make({
  name: "store the result of a task",
  params: [...leaseParams, "text", "int8?", "text?", "text?", "int4", "float8?"],
  columns: { resource: "text" },
  text: `update tributary.tasks
          set status = $6, run_id = $7, error = $8, remedy = $9, failures = $10, next_run_at = to_timestamp($11::float8 / 1000),
              -- A failed task is tried again as it was requested.
              full_requested = full_requested and (requested_at is not null or ($6 = 'failed' and $11::float8 is not null)), lease_owner = null, lease_expires_at = null,
              finished_at = tributary.now(), updated_at = tributary.now()
        where ${isLease} returning resource`
})

/** Stores the result of a task and ends its lease. Returns false, and changes nothing, when another process took it over. */
export const completeTask = (lease: TaskLease, result: TaskResult): Sql.Query<boolean> =>
  isChanged(
    Statement.run(completeStatement, [
      ...valuesOf(lease),
      result.status,
      result.runId,
      result.error,
      result.remedy,
      result.failures,
      result.nextMs
    ])
  )

export const rescheduleStatement = Statement.make({
  name: "reschedule a claimed task",
  params: [...leaseParams, "float8", "timestamptz?"],
  columns: { resource: "text" },
  text: `update tributary.tasks
          set next_run_at = to_timestamp($6::float8 / 1000), requested_at = coalesce(requested_at, $7::timestamptz),
              lease_owner = null, lease_expires_at = null, updated_at = tributary.now()
        where ${isLease} returning resource`
})

/** Returns a task that cannot be run now, as if it had not been claimed; it is due again at that time. */
export const rescheduleTask = (task: ClaimedTask, nextMs: number): Sql.Query<boolean> =>
  isChanged(Statement.run(rescheduleStatement, [...valuesOf(task), nextMs, task.requestedAt]))

export const returnStatement = Statement.make({
  name: "return an interrupted task",
  params: [...leaseParams, "text", "timestamptz?"],
  columns: { resource: "text" },
  text: `update tributary.tasks
          set status = 'interrupted', error = $6, remedy = 'nothing to do: it continues as soon as a process of serve runs',
              next_run_at = case when schedule is null and kind = 'sync' then next_run_at else tributary.now() end,
              requested_at = coalesce(requested_at, $7::timestamptz), lease_owner = null, lease_expires_at = null,
              finished_at = tributary.now(), updated_at = tributary.now()
        where ${isLease} returning resource`
})

/** Returns an interrupted task, so that any process claims it again at once. */
export const returnTask = (task: ClaimedTask, reason: string): Sql.Query<boolean> =>
  isChanged(Statement.run(returnStatement, [...valuesOf(task), reason, task.requestedAt]))

export const blockStatement = Statement.make({
  name: "block the tasks of a company",
  params: ["text", "text", "text"],
  text: `update tributary.tasks
          set status = 'failed', error = $2, remedy = $3, finished_at = tributary.now(), updated_at = tributary.now(),
              requested_at = case when kind = 'sync' then null else requested_at end
        where company = $1 and lease_owner is null
          and (requested_at is not null or error is distinct from $2 or status is distinct from 'failed')`
})

/** Stores in every idle task of a company why it cannot run now. Pending requests for a sync end with that. */
export const blockCompany = (company: string, error: string, remedy: string): Sql.Query<void> =>
  Effect.asVoid(Statement.run(blockStatement, [company, error, remedy]))
