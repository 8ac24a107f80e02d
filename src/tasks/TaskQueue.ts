/**
 * The task queue in Postgres, as people use it: `tributary.tasks`.
 *
 * Promise: a requested task is run once more after the request, whatever runs at that moment. A request, a pause and its
 * end are one statement each and may be repeated. All times are the warehouse's.
 */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"

export type TaskKind = Task["kind"]
export type TaskStatus = NonNullable<Task["status"]>

const tasksOf = (companies: ReadonlyArray<string> | null, resource: string | null) =>
  control
    .selectFrom("tributary.tasks as tasks")
    // `schedule` is in words, and null for a task that runs only on request.
    .select(["company", "resource", "kind", "schedule", "since", "until", "status", "failures", "error", "remedy"])
    // `deferredFrom`: when it would run by its schedule, while events prove the resource fresh and the poll is deferred.
    .select(["next_run_at as nextAt", "deferred_from as deferredFrom", "full_requested as askedFull"])
    .select(["paused_at as pausedAt", "paused_by as pausedBy", "requested_at as askedAt", "requested_by as askedBy"])
    .select(["started_at as beganAt", "finished_at as endedAt", "run_id as runId", "failure_kind as failureKind"])
    .select((of) => of.cast<number | null>("freshness_target_ms", "float8").as("promiseMs"))
    // The start of its run that is under way; null where there is none, and while a run has found nothing yet.
    .select((of) =>
      of
        .selectFrom("tributary.runs as run")
        .innerJoin("tributary.companies as synced", "synced.company_id", "run.company_id")
        .whereRef("synced.company", "=", "tasks.company")
        .whereRef("run.resource", "=", "tasks.resource")
        .where("run.status", "=", "running")
        .whereRef("run.lane", "=", (of) => of.case("tasks.kind").when("sync").then("live").else("backfill").end())
        .select((of) => of.fn.max<Date | null>("run.started_at").as("at"))
        .as("runningSince")
    )
    .$if(companies !== null, (tasks) => tasks.where("company", "=", Query.anyOf(companies ?? [])))
    .$if(resource !== null, (tasks) => tasks.where("resource", "=", resource))
    .orderBy("company")
    .orderBy("resource")
    .orderBy("kind")

/** A task and its state. */
export type Task = Query.RowOf<typeof tasksOf>

/** The tasks of these companies, or of one resource of theirs, ordered by company, resource, kind. */
export const readTasksOf = (
  companies: ReadonlyArray<string> | null,
  resource: string | null = null
): Sql.Query<ReadonlyArray<Task>> => Query.run(tasksOf(companies, resource))

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

/** SQL: whether a backfill of the task is under way. */
const isBackfilled = `exists (select from tributary.runs r join tributary.companies c using (company_id)
                   where c.company = s.company and r.resource = s.resource and r.lane = 'backfill' and r.status = 'running')`

export const requestBackfillStatement = Statement.make({
  name: "request a backfill",
  params: ["text", "text", "text?", "text?", "text"],
  columns: { resource: "text" },
  text: `insert into tributary.tasks as s (company, resource, kind, requested_at, requested_by, since, until)
       values ($1, $2, 'backfill', tributary.now(), $5, $3, $4)
       on conflict (company, resource, kind) do update
          -- A backfill of the same range that is under way is the requested one.
          set requested_at = case when ${isBackfilled} then s.requested_at else excluded.requested_at end,
              requested_by = excluded.requested_by, since = excluded.since, until = excluded.until,
              failures = case when ${isBackfilled} then s.failures else 0 end, updated_at = tributary.now()
        where not ${isBackfilled}
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

const changePauses = (
  { company, resource }: PauseRequest,
  set: { readonly paused_at: typeof Query.now | null; readonly paused_by: string | null }
): Sql.Query<number> =>
  Effect.map(
    Query.run(
      control
        .updateTable("tributary.tasks")
        .set({ ...set, updated_at: Query.now })
        .where((is) => is.and({ company, kind: "sync", ...Query.given({ resource }) }))
        .where("paused_at", set.paused_at === null ? "is not" : "is", null)
        .returning("resource")
    ),
    ({ length }) => length
  )

/** Pauses schedules; a task that runs goes on to its end. Returns the number of changed tasks. */
export const pauseTasks = (request: PauseRequest): Sql.Query<number> =>
  changePauses(request, { paused_at: Query.now, paused_by: request.by })

/** Resumes schedules; a task that became due meanwhile is run at once. Returns the number of changed tasks. */
export const resumeTasks = (request: PauseRequest): Sql.Query<number> =>
  changePauses(request, { paused_at: null, paused_by: null })

const companies = control.selectFrom("tributary.companies").select(["company", "company_id as id"]).orderBy("company")

/** The company ids by name, as far as they are stored. */
export const companyIds: Sql.Query<ReadonlyMap<string, bigint>> = Effect.map(
  Query.run(companies),
  (rows) => new Map(rows.map(({ company, id }) => [company, id]))
)

/** The company ids of these names, as far as they are stored, ordered by name. */
export const companyIdsOf = (names: ReadonlyArray<string>) =>
  Query.run(companies.where("company", "=", Query.anyOf(names)))

/** The company id of this name; null where none is stored. */
export const companyIdOf = (company: string): Sql.Query<bigint | null> =>
  Effect.map(companyIdsOf([company]), ([row]) => row?.id ?? null)

/** The name of each of these company ids, as far as one is stored. */
export const companyNames = (ids: Iterable<bigint>): Sql.Query<ReadonlyMap<bigint, string>> =>
  Effect.map(
    Query.run(companies.where("company_id", "=", Query.anyOf([...new Set(ids)]))),
    (rows) => new Map(rows.map(({ company, id }) => [id, company]))
  )
