/**
 * The task queue in Postgres, as people use it: `tributary.tasks`.
 *
 * Promise: a requested task is run once more after the request, whatever runs at that moment. A request, a pause and its
 * end are one statement each and may be repeated. All times are the warehouse's.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

export type TaskKind = "sync" | "backfill"
export type TaskStatus = "done" | "quarantined" | "failed" | "skipped" | "interrupted"

export const readStatement = Statement.make({
  name: "read tasks",
  params: ["text[]?", "text?"],
  columns: {
    ...Statement.columns("text", "company", "resource"),
    kind: Statement.as<TaskKind>("text"),
    /** In words; null for a task that runs only on request. */
    schedule: "text?",
    promiseMs: "float8?",
    nextAt: "timestamptz?",
    /** When it would run by its schedule, while events prove the resource fresh and the poll is deferred. */
    deferredFrom: "timestamptz?",
    pausedAt: "timestamptz?",
    pausedBy: "text?",
    askedAt: "timestamptz?",
    askedBy: "text?",
    askedFull: "bool",
    ...Statement.columns("text?", "since", "until"),
    /** Whether a live process runs it. */
    isRunning: "bool",
    ...Statement.columns("timestamptz?", "beganAt", "endedAt"),
    status: Statement.as<TaskStatus | null>("text?"),
    runId: "int8?",
    failures: "int4",
    ...Statement.columns("text?", "error", "remedy", "failureKind")
  },
  text: `select company, resource, kind, schedule, freshness_target_ms::float8 as "promiseMs", next_run_at as "nextAt", deferred_from as "deferredFrom", paused_at as "pausedAt",
              paused_by as "pausedBy", requested_at as "askedAt", requested_by as "askedBy", full_requested as "askedFull", since, until,
              coalesce(process_id in (select process_id from tributary.processes_alive), false) as "isRunning", started_at as "beganAt",
              finished_at as "endedAt", status, run_id as "runId", failures, error, remedy, failure_kind as "failureKind"
         from tributary.tasks
        where ($1::text[] is null or company = any($1)) and ($2::text is null or resource = $2)
        order by company, resource, kind`
})

/** A task and its state. */
export type Task = Statement.RowOf<typeof readStatement>

/** The tasks of these companies, or of one resource of theirs, ordered by company, resource, kind. */
export const readTasksOf = (
  companies: ReadonlyArray<string> | null,
  resource: string | null = null
): Sql.Query<ReadonlyArray<Task>> => Statement.run(readStatement, [companies, resource])

/** The tasks of all companies. */
export const readTasks = readTasksOf(null)

export const requestSyncStatement = Statement.make({
  name: "request a sync",
  params: ["text", "text", "text", "bool"],
  text: `insert into tributary.tasks as s (company, resource, kind, requested_at, requested_by, full_requested)
       values ($1, $2, 'sync', tributary.now(), $3, $4)
       on conflict (company, resource, kind) do update
          set requested_at = excluded.requested_at, requested_by = excluded.requested_by,
              full_requested = excluded.full_requested or (s.full_requested and s.requested_at is not null),
              updated_at = tributary.now()`
})

/** Requests a sync as soon as a process is free, also while the task is paused. A task that runs now is run once more. */
export const requestSync = ({
  company,
  resource,
  full,
  by
}: {
  readonly company: string
  readonly resource: string
  /** Read every record. */
  readonly full: boolean
  readonly by: string
}): Sql.Query<void> => Effect.asVoid(Statement.run(requestSyncStatement, [company, resource, by, full]))

export const requestBackfillStatement = Statement.make({
  name: "request a backfill",
  params: ["text", "text", "text?", "text?", "text"],
  columns: { resource: "text" },
  text: `insert into tributary.tasks as s (company, resource, kind, requested_at, requested_by, since, until)
       values ($1, $2, 'backfill', tributary.now(), $5, $3, $4)
       on conflict (company, resource, kind) do update
          -- A backfill of the same range that is under way is the requested one.
          set requested_at = case when s.process_id is null and s.abandoned_at is null then excluded.requested_at else s.requested_at end,
              requested_by = excluded.requested_by, since = excluded.since, until = excluded.until,
              failures = case when s.process_id is null and s.abandoned_at is null then 0 else s.failures end, updated_at = tributary.now()
        where (s.process_id is null and s.abandoned_at is null)
           or (s.since is not distinct from excluded.since and s.until is not distinct from excluded.until) returning resource`
})

/**
 * Requests a backfill of a range beside live syncing. Times are RFC 3339 in UTC; null is no bound. `running`: a backfill
 * of another range is under way, and nothing was changed.
 */
export const requestBackfill = ({
  company,
  resource,
  since,
  until,
  by
}: {
  readonly company: string
  readonly resource: string
  readonly since: string | null
  readonly until: string | null
  readonly by: string
}): Sql.Query<"asked" | "running"> =>
  Effect.map(Statement.run(requestBackfillStatement, [company, resource, since, until, by]), (rows) =>
    rows.length === 0 ? "running" : "asked"
  )

/** The tasks to pause or to resume: those of one resource, or with null those of every resource of the company. */
export interface PauseRequest {
  readonly company: string
  readonly resource: string | null
  readonly by: string
}

export const pauseStatement = Statement.make({
  name: "pause schedules",
  params: ["text", "text?", "text"],
  columns: { resource: "text" },
  text: `update tributary.tasks set paused_at = tributary.now(), paused_by = $3, updated_at = tributary.now()
        where company = $1 and ($2::text is null or resource = $2) and kind = 'sync' and paused_at is null returning resource`
})

/** Pauses schedules; a task that runs goes on to its end. Returns the number of changed tasks. */
export const pauseTasks = ({ company, resource, by }: PauseRequest): Sql.Query<number> =>
  Effect.map(Statement.run(pauseStatement, [company, resource, by]), ({ length }) => length)

export const resumeStatement = Statement.make({
  name: "resume schedules",
  params: ["text", "text?"],
  columns: { resource: "text" },
  text: `update tributary.tasks set paused_at = null, paused_by = null, updated_at = tributary.now()
        where company = $1 and ($2::text is null or resource = $2) and kind = 'sync' and paused_at is not null returning resource`
})

/** Resumes schedules; a task that became due meanwhile is run at once. Returns the number of changed tasks. */
export const resumeTasks = ({ company, resource }: PauseRequest): Sql.Query<number> =>
  Effect.map(Statement.run(resumeStatement, [company, resource]), ({ length }) => length)

export const companyIdsStatement = Statement.make({
  name: "read company ids",
  params: ["text[]?", "int8[]?"],
  columns: { company: "text", id: "int8" },
  text: `select company, company_id as id from tributary.companies
          where ($1::text[] is null or company = any($1)) and ($2::bigint[] is null or company_id = any($2))
          order by company desc`
})

/** The company ids of the source by name, as far as they are stored. */
export const companyIds: Sql.Query<ReadonlyMap<string, bigint>> = Effect.map(
  Statement.run(companyIdsStatement, [null, null]),
  (rows) => new Map(rows.map(({ company, id }) => [company, id]))
)

/** The company id of this name; null where none is stored. */
export const companyIdOf = (company: string): Sql.Query<bigint | null> =>
  Effect.map(Statement.run(companyIdsStatement, [[company], null]), ([row]) => row?.id ?? null)

/** The name of each of these company ids, as far as one is stored; of several the first. */
export const companyNames = (ids: Iterable<bigint>): Sql.Query<ReadonlyMap<bigint, string>> =>
  Effect.map(
    Statement.run(companyIdsStatement, [null, [...new Set(ids)]]),
    (rows) => new Map(rows.map(({ company, id }) => [id, company]))
  )
