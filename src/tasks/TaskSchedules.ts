/**
 * The schedules of the tasks, as the configuration states them.
 *
 * Promise: all schedules of a company change in one transaction, which may be repeated.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { readNowMs } from "../postgres/Now.ts"
import type { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

/** The schedule of one resource of a company. */
export interface TaskSchedule {
  readonly company: string
  readonly resource: string
  /** The resource that is synced before it; null where there is none. */
  readonly parent: string | null
  /** In words; null for a task that runs only on request. */
  readonly schedule: string | null
  readonly freshnessTarget: Duration.Duration
  readonly missed: "once" | "skip"
  /** When it runs next; both in milliseconds since 1970. */
  readonly next: (afterMs: number, lastBeganMs: number | null) => number | null
}

export const insertStatement = Statement.make({
  name: "insert configured tasks",
  params: ["text"],
  text: `insert into tributary.tasks (company, resource, kind)
         select company, resource, 'sync' from jsonb_to_recordset($1::text::jsonb) as p(company text, resource text)
          order by company, resource on conflict (company, resource, kind) do nothing`
})

export const readStatement = Statement.make({
  name: "read schedules",
  params: ["text[]"],
  columns: {
    ...Statement.columns("text", "company", "resource"),
    ...Statement.columns("text?", "schedule", "parent"),
    ...Statement.columns("float8?", "promiseMs", "nextMs", "beganMs"),
    /** Whether it is overdue, and a process that could run it was alive when it was due. */
    hadLiveProcess: "bool",
    wasSynced: "bool"
  },
  text: `select s.company, s.resource, s.schedule, s.parent, s.freshness_target_ms::float8 as "promiseMs",
                ${Sql.epochMs("s.next_run_at")} as "nextMs", ${Sql.epochMs("s.started_at")} as "beganMs",
                -- A process may be alive for 30 s after its last heartbeat.
                coalesce(s.next_run_at <= tributary.now(), false) and exists (select 1 from tributary.processes r
                         where s.company = any(r.companies) and r.started_at <= s.next_run_at
                           and r.heartbeat_at + interval '30 seconds' >= s.next_run_at) as "hadLiveProcess",
                s.started_at is not null or exists (select 1 from tributary.checkpoints c join tributary.companies k on k.company_id = c.company_id
                         where k.company = s.company and c.resource = s.resource and c.lane = 'live'
                           and (c.cursor is not null or c.full_scan_at is not null)) as "wasSynced"
           from tributary.tasks s where s.company = any($1::text[]) and s.kind = 'sync'`
})

export const lockStatement = Statement.make({
  ...readStatement,
  name: "lock schedules",
  text: `${readStatement.text} order by s.company, s.resource for update of s`
})

type ScheduleRow = Statement.RowOf<typeof readStatement>

export const differingStatement = Statement.make({
  name: "find companies with other schedules",
  params: ["text[]", "text"],
  columns: { company: "text" },
  text: `with wanted as materialized (
           select * from jsonb_to_recordset($2::text::jsonb) as p(resource text, parent text, schedule text, "promiseMs" bigint, skips bool))
         select c.company from unnest($1::text[]) as c(company)
          cross join lateral (
            select count(*) as stored, count(*) filter (where s.schedule is not distinct from w.schedule
                     and s.parent is not distinct from w.parent and s.freshness_target_ms = w."promiseMs"
                     and (s.next_run_at is null) = (w.schedule is null)
                     and not (w.skips and s.next_run_at <= tributary.now())) as same
              from tributary.tasks s left join wanted w using (resource)
             where s.company = c.company and s.kind = 'sync') k
          where k.stored <> (select count(*) from wanted) or k.same <> k.stored`
})

export const updateStatement = Statement.make({
  name: "store schedules",
  params: ["text"],
  text: `update tributary.tasks s
            set schedule = p.schedule, parent = p.parent, freshness_target_ms = p."promiseMs", updated_at = tributary.now(),
                next_run_at = to_timestamp(p."nextMs" / 1000),
                deferred_from = case when s.schedule is not distinct from p.schedule then s.deferred_from end
           from jsonb_to_recordset($1::text::jsonb) as p(company text, resource text, parent text, schedule text, "promiseMs" bigint, "nextMs" float8)
          where s.company = p.company and s.resource = p.resource and s.kind = 'sync'`
})

export const deleteStatement = Statement.make({
  name: "delete tasks that are not configured",
  params: ["text"],
  text: `delete from tributary.tasks s
          using jsonb_to_recordset($1::text::jsonb) as g(company text, resource text)
          where s.company = g.company and s.resource = g.resource and s.kind = 'sync'`
})

const promiseMsOf = ({ freshnessTarget }: TaskSchedule) => Math.round(Duration.toMillis(freshnessTarget))

/** Which of these companies have other tasks than the schedules state, whose company does not matter. */
export const differingCompanies = (
  companies: ReadonlyArray<string>,
  schedules: ReadonlyArray<TaskSchedule>
): Sql.Query<ReadonlySet<string>> => {
  const wanted = schedules.map((one) => ({
    resource: one.resource,
    parent: one.parent,
    schedule: one.schedule,
    promiseMs: promiseMsOf(one),
    skips: one.missed === "skip"
  }))
  return Effect.map(
    Statement.run(differingStatement, [companies, JSON.stringify(wanted)]),
    (rows) => new Set(rows.map(({ company }) => company))
  )
}

const keyOf = (one: { readonly company: string; readonly resource: string }) =>
  JSON.stringify([one.company, one.resource])

const nextOf = (schedule: TaskSchedule, row: ScheduleRow, nowMs: number): number | null => {
  if (schedule.schedule === null) return null
  const isMissed = row.nextMs !== null && row.nextMs <= nowMs && !row.hadLiveProcess
  if (row.schedule !== schedule.schedule || row.nextMs === null) {
    return row.wasSynced ? schedule.next(nowMs, row.beganMs) : nowMs
  }
  return isMissed && schedule.missed === "skip" ? schedule.next(nowMs, row.beganMs) : row.nextMs
}

/** What differs from the stored tasks. */
const compare = (schedules: ReadonlyArray<TaskSchedule>, rows: ReadonlyArray<ScheduleRow>, nowMs: number) => {
  const stored = new Map(rows.map((row) => [keyOf(row), row]))
  const added: Array<Pick<TaskSchedule, "company" | "resource">> = []
  const changed: Array<Pick<ScheduleRow, "company" | "resource" | "parent" | "schedule" | "promiseMs" | "nextMs">> = []
  for (const schedule of schedules) {
    const { company, resource, parent } = schedule
    const key = keyOf(schedule)
    const row = stored.get(key)
    stored.delete(key)
    if (row === undefined) {
      added.push({ company, resource })
      continue
    }
    const promiseMs = promiseMsOf(schedule)
    const nextMs = nextOf(schedule, row, nowMs)
    const isSame =
      row.schedule === schedule.schedule &&
      row.parent === parent &&
      row.promiseMs === promiseMs &&
      row.nextMs === nextMs
    if (!isSame) changed.push({ company, resource, parent, schedule: schedule.schedule, promiseMs, nextMs })
  }
  const removed = [...stored.values()].map(({ company, resource }) => ({ company, resource }))
  return { added, changed, removed }
}

/**
 * Stores the schedules of all companies in them, and deletes tasks of resources that are no longer configured.
 *
 * A due time is missed when no process of `serve` was alive at it (`tributary.processes`). Under `once` the task stays
 * due, under `skip` its next time counts. A due time that passed while a process was alive is late, not missed, also where
 * that process began the task and did not finish it: it is run at once. A resource that was never synced is due at once.
 * Nothing is locked or written where nothing differs.
 */
export const upsertSchedules = Effect.fnUntraced(function* (
  schedules: ReadonlyArray<TaskSchedule>
): Effect.fn.Return<void, DatabaseError, SqlClient> {
  const companies = [...new Set(schedules.map(({ company }) => company))]
  const look = (statement: typeof readStatement) =>
    Effect.gen(function* () {
      const rows = yield* Statement.run(statement, [companies])
      return compare(schedules, rows, yield* readNowMs)
    })
  const { added, changed, removed } = yield* look(readStatement)
  if (added.length + changed.length + removed.length === 0) return
  yield* transaction(
    Effect.gen(function* () {
      if (added.length > 0) yield* Statement.run(insertStatement, [JSON.stringify(added)])
      const locked = yield* look(lockStatement)
      yield* Statement.run(updateStatement, [JSON.stringify(locked.changed)])
      if (locked.removed.length > 0) yield* Statement.run(deleteStatement, [JSON.stringify(locked.removed)])
    })
  )
})
