/**
 * Claims of tasks by the process that owns their company (`src/processes/Ownership.ts`).
 *
 * Promise: at most one process runs a task. Its claim has a fence, which rises with each claim: a process that is no
 * longer the owner writes no result. A task whose process ended without a result is released by the next owner and runs
 * first. All times are the warehouse's. Each function is one statement and may be repeated.
 */
import * as Effect from "effect/Effect"
import type { TaskKind, TaskStatus } from "./TaskQueue.ts"
import * as Query from "../postgres/Query.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"

const claimColumns = {
  ...Statement.columns("text", "company", "resource"),
  kind: Statement.as<TaskKind>("text"),
  /** The process that runs it. */
  processId: Statement.as<string>("text?"),
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

/** A task that a process began and did not finish is due even while it is paused. */
const isDue = (alias: string, now: string) =>
  `(${alias}.requested_at is not null or ${alias}.abandoned_at is not null or (${alias}.paused_at is null and ${alias}.next_run_at <= ${now}))`

export const pollStatement = Statement.make({
  name: "poll for due tasks",
  columns: { nowMs: "float8", due: "text[]?", requested: "text[]?" },
  // One branch for each of the two indexes. With a condition on the company, or without a lower bound of the time, the
  // planner expects many rows and reads every task.
  text: `with clock as materialized (select tributary.now() as now, timestamptz '-infinity' as ever),
     due as materialized (
       select company, false as requested from tributary.tasks
        where process_id is null and paused_at is null
          and next_run_at >= (select ever from clock) and next_run_at <= (select now from clock)
       union all
       select company, requested_at is not null from tributary.tasks
        where process_id is null and (requested_at is not null or abandoned_at is not null))
     select ${Sql.epochMs("(select now from clock)")} as "nowMs", array_agg(distinct company) as due,
            array_agg(distinct company) filter (where requested) as requested from due`
})

/** Polls for tasks of these companies that are due. */
export const pollDue = (companies: { readonly has: (company: string) => boolean }): Sql.Query<PollResult> =>
  Effect.map(Statement.run(pollStatement), ([row]) => ({
    nowMs: row!.nowMs,
    due: (row!.due ?? []).filter((company) => companies.has(company)),
    requested: (row!.requested ?? []).filter((company) => companies.has(company))
  }))

export const claimStatement = Statement.make({
  name: "claim due tasks",
  params: ["text", "text[]", "text", "int4", "int8"],
  columns: {
    ...claimColumns,
    /** When a person requested it; null when its schedule did. */
    requestedAt: "timestamptz?",
    full: "bool",
    ...Statement.columns("text?", "since", "until"),
    failures: "int4",
    /** When a process ended that did not finish it; null for any other task. */
    abandonedAt: "timestamptz?",
    /** The warehouse's time, in milliseconds since 1970. */
    nowMs: "float8"
  },
  text: `with clock as materialized (select tributary.now() as now),
     tasks as materialized (
       select s.company, s.resource, s.kind, s.requested_at, s.abandoned_at, s.parent,
              extract(epoch from clock.now - s.next_run_at) * 1000 / coalesce(nullif(s.freshness_target_ms, 0), 1) as lateness,
              s.process_id is not null as runs, coalesce(${isDue("s", "clock.now")}, false) as due
         from clock, tributary.tasks s where s.company = any($2)),
     busy as (select company, kind, count(*) as running from tasks where runs group by company, kind),
     ready as (
       select distinct on (s.company, s.kind) s.*
         from tasks s where s.due and not s.runs
          and not exists (select 1 from jsonb_to_recordset($3::text::jsonb) as p(company text, resource text)
                           where p.company = s.company and p.resource = s.resource)
          and (s.kind = 'backfill' or s.requested_at is not null or s.abandoned_at is not null or not exists (
                select 1 from tasks p where p.company = s.company and p.resource = s.parent and p.kind = 'sync' and (p.due or p.runs)))
        order by s.company, s.kind, s.abandoned_at is null, s.requested_at is null, s.requested_at, s.lateness desc nulls last, s.resource),
     free as (
       select r.* from ready r left join busy b on b.company = r.company and b.kind = r.kind
        where coalesce(b.running, 0) < case r.kind when 'sync' then $4::int else 1 end
        order by r.abandoned_at is null, r.requested_at is null, r.requested_at, r.lateness desc nulls last, r.company limit $5),
     claimed as (
       select s.company, s.resource, s.kind, s.requested_at, s.abandoned_at
         from clock, tributary.tasks s join free f on f.company = s.company and f.resource = s.resource and f.kind = s.kind
        -- Checked again: a former owner may have claimed the task meanwhile, and a request may have come.
        where s.process_id is null and ${isDue("s", "clock.now")}
          for update of s skip locked)
     update tributary.tasks t
        set process_id = $1, fence = t.fence + 1, started_at = clock.now, requested_at = null, abandoned_at = null, deferred_from = null,
            updated_at = clock.now
       from claimed, clock
      where t.company = claimed.company and t.resource = claimed.resource and t.kind = claimed.kind
     returning t.company, t.resource, t.kind, t.process_id as "processId", t.fence, claimed.requested_at as "requestedAt",
               t.full_requested as "full", t.since, t.until, t.failures, claimed.abandoned_at as "abandonedAt",
               ${Sql.epochMs("clock.now")} as "nowMs"`
})

/** A task that this process has claimed. */
export type ClaimedTask = Statement.RowOf<typeof claimStatement>

/** The right of one process to write the result of a task. */
export type TaskClaim = Pick<ClaimedTask, "company" | "resource" | "kind" | "processId" | "fence">

/** Which tasks may be claimed. */
export interface ClaimRequest {
  readonly companies: ReadonlyArray<string>
  /** Resources that are not claimed now, because another run has them. */
  readonly except?: ReadonlyArray<Pick<TaskClaim, "company" | "resource">>
  /** Syncs of a company that run at a time; one backfill runs beside them. */
  readonly concurrency: number
  /** The maximum number of claims. */
  readonly limit: number
}

/**
 * Claims tasks that are due, at most one sync and one backfill of each company.
 *
 * The order: tasks that a process left unfinished, then requested ones, then the longest due relative to their freshness
 * target; children after their parents.
 */
export const claimTasks = (
  processId: string,
  { companies, concurrency, except = [], limit }: ClaimRequest
): Sql.Query<ReadonlyArray<ClaimedTask>> =>
  Statement.run(claimStatement, [processId, companies, JSON.stringify(except), concurrency, limit])

export const releaseStatement = Statement.make({
  name: "release abandoned tasks",
  params: ["text[]", "text"],
  text: `update tributary.tasks t
          set process_id = null, abandoned_at = tributary.now(), updated_at = tributary.now()
        where company = any($1) and process_id is not null
          and not exists (select 1 from jsonb_to_recordset($2::text::jsonb) as c(company text, resource text, kind text, fence bigint)
                           where c.company = t.company and c.resource = t.resource and c.kind = t.kind and c.fence = t.fence)`
})

/**
 * Releases the tasks of owned companies that no run of this process works on: a former owner left them, or a statement of
 * this process had no answer. Each is due at once.
 */
export const releaseAbandoned = (
  companies: ReadonlyArray<string>,
  running: ReadonlyArray<TaskClaim>
): Sql.Query<void> =>
  Effect.asVoid(
    Statement.run(releaseStatement, [
      companies,
      JSON.stringify(running.map((claim) => ({ ...claim, fence: claim.fence.toString() })))
    ])
  )

/** Ends a claim. The query changes nothing when another process owns the task. */
const ended = ({ company, resource, kind, processId, fence }: TaskClaim) =>
  control
    .updateTable("tributary.tasks")
    .set({ process_id: null, updated_at: Query.now })
    .where((is) => is.and({ company, resource, kind, process_id: processId, fence }))

const isChanged = (change: ReturnType<typeof ended>): Sql.Query<boolean> => Query.hasRows(change.returning("resource"))

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

/** Stores the result of a task and ends its claim. Returns false, and changes nothing, when another process owns it. */
export const completeTask = (claim: TaskClaim, result: TaskResult): Sql.Query<boolean> => {
  const { status, runId, error, remedy, failures, nextMs, failureKind: failure_kind = null } = result
  // A failed task is tried again as it was requested.
  const isRepeated = status === "failed" && nextMs !== null
  return isChanged(
    ended(claim)
      .set({ status, run_id: runId, error, remedy, failures, failure_kind, finished_at: Query.now })
      .set({ next_run_at: nextMs === null ? null : Query.timeOf(nextMs) })
      .set((of) => ({
        full_requested: of
          .and([of.ref("full_requested"), isRepeated ? of.lit(true) : of("requested_at", "is not", null)])
          .$castTo<boolean>()
      }))
  )
}

/** Returns a task that cannot be run now, as if it had not been claimed; it is due again at that time. */
export const rescheduleTask = (task: ClaimedTask, nextMs: number): Sql.Query<boolean> =>
  isChanged(
    ended(task).set((of) => ({
      next_run_at: Query.timeOf(nextMs),
      requested_at: of.fn.coalesce("requested_at", of.val(task.requestedAt))
    }))
  )

/** Returns an interrupted task, so that the next owner claims it at once. */
export const returnTask = (task: ClaimedTask, error: string): Sql.Query<boolean> =>
  isChanged(
    ended(task)
      .set({ status: "interrupted", failure_kind: null, error, finished_at: Query.now })
      .set((of) => ({
        remedy: "nothing to do: it continues as soon as a process of serve runs",
        next_run_at:
          task.kind === "sync"
            ? of.case().when("schedule", "is", null).then(of.ref("next_run_at")).else(Query.now).end()
            : Query.now,
        requested_at: of.fn.coalesce("requested_at", of.val(task.requestedAt))
      }))
  )

export const blockStatement = Statement.make({
  name: "block the tasks of a company",
  params: ["text", "text", "text", "text"],
  text: `update tributary.tasks
          set status = 'failed', error = $2, remedy = $3, failure_kind = $4, finished_at = tributary.now(), updated_at = tributary.now(),
              requested_at = case when kind = 'sync' then null else requested_at end
        where company = $1 and process_id is null
          and (requested_at is not null or error is distinct from $2 or status is distinct from 'failed')`
})

/** Stores in every idle task of a company why it cannot run now. Pending requests for a sync end with that. */
export const blockCompany = (company: string, error: string, remedy: string, failureKind: string): Sql.Query<void> =>
  Effect.asVoid(Statement.run(blockStatement, [company, error, remedy, failureKind]))
