/**
 * The due tasks of the companies that a process owns, and their results.
 *
 * Promise: a task stays due until its result is stored, so that a killed process leaves nothing to repair: the next owner
 * runs what is due. A request that came during a run leads to another run. Two processes may run a task for a moment,
 * while its company changes its owner: the lock of the lane lets one of them read, the fence lets one write, and the
 * later result counts. All times are the warehouse's. Each function is one statement and may be repeated.
 */
import * as Effect from "effect/Effect"
import { wantsRun } from "../reconcile/DeliveryGaps.ts"
import type { WorkKind } from "../inbox/InboxWorker.ts"
import type { TaskKind, TaskStatus } from "./TaskQueue.ts"
import type { Failure } from "../sync/Outcome.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

/** The key of a task, of the rows of a resource in the outbox, of work on its events, or of a check (of no resource). */
export interface TaskKey {
  readonly company: string
  readonly resource: string
  readonly kind: TaskKind | "push" | WorkKind | "check"
}

/** A task that this process does not begin: it runs it, or lets it rest for a moment. */
export interface TakenTask extends TaskKey {
  /** Whether it counts as a run of its company. */
  readonly runs: boolean
}

/** The result of a cheap poll. */
export interface PollResult {
  readonly nowMs: number
  /** Companies that have a task to begin. */
  readonly due: ReadonlyArray<string>
  /** Companies of which a person requested a task. */
  readonly requested: ReadonlyArray<string>
}

/** SQL: the taken tasks; the parameter is an array in JSON. */
const takenSql = (parameter: string) =>
  `taken as materialized (
       select * from jsonb_to_recordset(${parameter}::text::jsonb) as t(company text, resource text, kind text, runs bool))`

export const pollStatement = Statement.make({
  name: "poll for due tasks",
  params: ["text"],
  columns: { nowMs: "float8", due: "text[]?", requested: "text[]?" },
  // One branch for each index. With a condition on the company, or without a lower bound of the time, the
  // planner expects many rows and reads every task.
  text: `with clock as materialized (select tributary.now() as now, timestamptz '-infinity' as ever),
     ${takenSql("$1")},
     due as materialized (
       select company, resource, kind, false as requested from tributary.tasks
        where paused_at is null and next_run_at >= (select ever from clock) and next_run_at <= (select now from clock)
       union all
       select company, resource, kind, true from tributary.tasks where requested_at is not null
       union all
       select company, resource, kind, false from tributary.delivery_gaps g join tributary.tasks t using (company, resource)
        where t.kind = 'sync' and t.paused_at is null and ${wantsRun("g", "(select now from clock)")})
     select ${Sql.epochMs("(select now from clock)")} as "nowMs", array_agg(distinct company) as due,
            array_agg(distinct company) filter (where requested) as requested
       from due left join taken using (company, resource, kind) where taken.company is null`
})

/** Polls for tasks of these companies that are due and not taken. */
export const pollDue = (
  companies: { readonly has: (company: string) => boolean },
  taken: ReadonlyArray<TakenTask>
): Sql.Query<PollResult> =>
  Effect.map(Statement.run(pollStatement, [JSON.stringify(taken)]), ([row]) => ({
    nowMs: row!.nowMs,
    due: (row!.due ?? []).filter((company) => companies.has(company)),
    requested: (row!.requested ?? []).filter((company) => companies.has(company))
  }))

export const nextStatement = Statement.make({
  name: "select the next due tasks",
  params: ["text[]", "text", "int4", "int8"],
  columns: {
    ...Statement.columns("text", "company", "resource"),
    kind: Statement.as<TaskKind>("text"),
    /** When a person requested it, in microseconds since 1970; null when its schedule did. */
    requestedAt: "int8?",
    full: "bool",
    ...Statement.columns("text?", "since", "until"),
    failures: "int4",
    /** Whether delivery gaps of the resource have ended, and whether nothing but one of them makes it due. */
    ...Statement.columns("bool", "hasGap", "isForGap"),
    /** The warehouse's time, in milliseconds since 1970. */
    nowMs: "float8"
  },
  text: `with clock as materialized (select tributary.now() as now),
     ${takenSql("$2")},
     gaps as materialized (
       select company, resource, 'sync' as kind, bool_or(${wantsRun("g", "clock.now")}) as wants_run
         from clock, tributary.delivery_gaps g
        where company = any($1) and closed_at is null and ended_at is not null group by company, resource),
     tasks as materialized (
       select s.*, ${Sql.epochMs("clock.now")} as now_ms, taken.company is not null as is_taken, coalesce(taken.runs, false) as runs,
              extract(epoch from clock.now - s.next_run_at) * 1000 / coalesce(nullif(s.freshness_target_ms, 0), 1) as lateness,
              gaps.company is not null as has_gap,
              s.requested_at is not null or s.paused_at is null and (coalesce(s.next_run_at <= clock.now, false) or coalesce(gaps.wants_run, false)) as due
         from clock, tributary.tasks s left join taken using (company, resource, kind) left join gaps using (company, resource, kind)
        where s.company = any($1)),
     busy as (select company, kind, count(*) as running from tasks where runs group by company, kind),
     first as (
       select distinct on (s.company, s.kind) s.*
         from tasks s where s.due and not s.is_taken
          and (s.kind = 'backfill' or s.requested_at is not null or not exists (
                select 1 from tasks p where p.company = s.company and p.resource = s.parent and p.kind = 'sync' and (p.due or p.runs)))
        order by s.company, s.kind, s.requested_at is null, s.requested_at, s.lateness desc nulls last, s.resource)
     select company, resource, kind, ${Sql.epochUs("requested_at")} as "requestedAt", full_requested as "full", since, until,
            failures, has_gap as "hasGap", requested_at is null and (lateness < 0) is not false as "isForGap", now_ms as "nowMs"
       from first left join busy using (company, kind)
      where coalesce(running, 0) < case kind when 'sync' then $3::int else 1 end
      order by requested_at is null, requested_at, lateness desc nulls last, company limit $4`
})

/** A task that is due. */
export type DueTask = Statement.RowOf<typeof nextStatement>

/** Which tasks may begin. */
export interface NextOptions {
  readonly companies: ReadonlyArray<string>
  readonly taken: ReadonlyArray<TakenTask>
  /** Syncs of a company that run at a time; one backfill runs beside them. */
  readonly concurrency: number
  /** The maximum number of tasks. */
  readonly limit: number
}

/**
 * Tasks that are due and not taken, at most one sync and one backfill of each company.
 *
 * The order: requested ones, then the longest due relative to their freshness target; children after their parents.
 */
export const nextTasks = ({ companies, concurrency, limit, taken }: NextOptions): Sql.Query<ReadonlyArray<DueTask>> =>
  Statement.run(nextStatement, [companies, JSON.stringify(taken), concurrency, limit])

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
  /** Absent unless it failed. */
  readonly failureKind?: string
}

export const resultStatement = Statement.named({
  name: "store the result of a task",
  params: {
    ...Statement.columns("text", "company", "resource", "kind"),
    requestedAt: "int8?",
    startedMs: "float8",
    status: "text",
    runId: "int8?",
    ...Statement.columns("text?", "error", "remedy", "failureKind"),
    failures: "int4",
    nextMs: "float8?",
    repeated: "bool"
  },
  text: (at) => {
    const isAnswered = `(${Sql.epochUs("requested_at")} is not distinct from ${at.requestedAt})`
    return `update tributary.tasks
          set status = ${at.status}, run_id = ${at.runId}, error = ${at.error}, remedy = ${at.remedy}, failures = ${at.failures},
              failure_kind = ${at.failureKind}, started_at = to_timestamp(${at.startedMs}::float8 / 1000), finished_at = tributary.now(),
              updated_at = tributary.now(), next_run_at = to_timestamp(${at.nextMs}::float8 / 1000), deferred_from = null,
              requested_at = case when ${isAnswered} then null else requested_at end,
              full_requested = full_requested and (${at.repeated} or not ${isAnswered})
        where company = ${at.company} and resource = ${at.resource} and kind = ${at.kind}`
  }
})

/** Stores the result of a task. A request that came after the task began stays. */
export const completeTask = (task: DueTask, result: TaskResult): Sql.Query<void> => {
  const { company, resource, kind, requestedAt, nowMs: startedMs } = task
  const { failureKind = null, nextMs, status } = result
  // A failed task is tried again as it was requested.
  const repeated = status === "failed" && nextMs !== null
  return Effect.asVoid(
    Statement.run(
      resultStatement,
      resultStatement.values({ company, resource, kind, requestedAt, startedMs, ...result, failureKind, repeated })
    )
  )
}

export const blockStatement = Statement.make({
  name: "block the tasks of a company",
  params: ["text", "text", "text", "text", "bool"],
  text: `update tributary.tasks
          set status = 'failed', error = $2, remedy = $3, failure_kind = $4, finished_at = tributary.now(), updated_at = tributary.now(),
              requested_at = case when kind = 'sync' then null else requested_at end
        where company = $1 and (requested_at is not null or error is distinct from $2 or status is distinct from 'failed')
          and ($5 or requested_at is not null or next_run_at <= tributary.now())`
})

/** Why the tasks of a company cannot run. */
export type CompanyFailure = Pick<Failure, "kind" | "message" | "remedy" | "stops">

/**
 * Stores why the tasks of a company cannot run now: in all of them where the failure stops the company, else in those that
 * are due, since the others may run when their time comes. Pending requests for a sync end with that.
 */
export const blockCompany = (company: string, { kind, message, remedy, stops }: CompanyFailure): Sql.Query<void> =>
  Effect.asVoid(Statement.run(blockStatement, [company, message, remedy, kind, stops === "company"]))
