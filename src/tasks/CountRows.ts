/**
 * The row counts of each resource: `tributary.row_counts`.
 *
 * Promise: a resource is counted within seconds after a run changed it, and only then. An idle warehouse gets one cheap
 * query every few seconds. A resource is counted at most every fifteen seconds, and less often where the counts would take
 * more than a small share of the time. Where one count takes more than some seconds, the estimate of Postgres replaces it
 * and is marked. Several processes share the work.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { identifier } from "../warehouse/Identifier.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { transaction } from "../postgres/Transaction.ts"

export interface RowCount {
  /** Tombstones not included. */
  readonly rows: number
  /** Tombstones. */
  readonly deleted: number
  /** False for an estimate of Postgres. */
  readonly isExact: boolean
  readonly countedAt: Date
}

/** The counts by `<company id> <resource>`. */
export const read: Effect.Effect<ReadonlyMap<string, RowCount>, SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{
      key: string
      rows: number
      deleted: number
      isExact: boolean
      countedAt: Date
    }>`
    select company_id || ' ' || resource as key, rows::float8 as rows, deleted::float8 as deleted,
           is_exact as "isExact", counted_at as "countedAt"
      from tributary.row_counts`
    return new Map(rows.map(({ key, ...count }) => [key, count]))
  }
)

const lookEveryMs = 5_000
const countMaxMs = 3_000
/** The minimum time between two counts, also as a multiple of the time that a count takes. */
const restMinMs = 15_000
const restShare = 50

/** A resource that runs changed. */
interface Changed {
  readonly resource: string
  /** When the last of the runs ended, to the microsecond. */
  readonly at: string
}

/** The run changed rows, or read a resource without a count, which may have no rows. */
const didChange = `(r.inserted + r.updated + r.deleted > 0 or r.status in ('done', 'quarantined') and not exists (
  select from tributary.row_counts k where k.company_id = r.company_id and k.resource = r.resource))`

/** Resources that changed after their count. */
const uncounted = `
  select resource, max(at)::text as at from (
    select r.company_id, r.resource, max(r.finished_at) as at from tributary.runs r
     where r.finished_at is not null and ${didChange} group by 1, 2) changed
    left join tributary.row_counts c using (company_id, resource)
   where c.counted_at is null or c.counted_at < changed.at
   group by 1 order by 1`

/** Resources that finished or running runs changed after a time. */
const changedSince = `
  select resource, max(at)::text as at from (
    select r.resource, r.finished_at as at from tributary.runs r where r.finished_at > $1::timestamptz and ${didChange}
    union all
    select r.resource, tributary.now() from tributary.runs r where r.status = 'running' and ${didChange}) changed
   group by 1 order by 1`

/** The name of the resource's table; null without one. */
const tableOf = (resource: string, datasets: Datasets) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql<{ name: string }>`
      select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = ${datasets.current} and c.relkind = 'r'
         and c.relname = coalesce(
           (select sql_name from tributary.sql_names where scope = '' and api_name = ${resource}), ${resource})`
    return found?.name ?? null
  })

interface Counted {
  readonly company: bigint
  readonly rows: number
  readonly deleted: number
}

const keepCounts = Effect.fnUntraced(function* (
  resource: string,
  counts: ReadonlyArray<Counted>,
  isExact: boolean,
  at: string
) {
  const sql = yield* SqlClient.SqlClient
  // A company without rows is in no group.
  yield* sql`
    insert into tributary.row_counts as c (company_id, resource, rows, deleted, is_exact, run_id, counted_at)
    select k.company_id, ${resource}, coalesce(v.rows, 0), coalesce(v.deleted, 0), ${isExact},
           coalesce((select max(id) from tributary.runs r
                      where r.company_id = k.company_id and r.resource = ${resource} and r.finished_at <= ${at}::timestamptz), 0),
           ${at}::timestamptz
      from (select distinct company_id from tributary.checkpoints where resource = ${resource}) k
      left join jsonb_to_recordset(${JSON.stringify(
        counts.map(({ company, ...count }) => ({ company: company.toString(), ...count }))
      )}::text::jsonb) as v(company bigint, rows bigint, deleted bigint) on v.company = k.company_id
    on conflict (company_id, resource) do update
       set rows = excluded.rows, deleted = excluded.deleted, is_exact = excluded.is_exact, run_id = excluded.run_id,
           counted_at = excluded.counted_at
     where c.counted_at <= excluded.counted_at`
})

/** Stores the estimate of Postgres. */
const estimate = Effect.fnUntraced(function* (resource: string, datasets: Datasets, table: string) {
  const sql = yield* SqlClient.SqlClient
  const [now] = yield* sql<{ at: string }>`select tributary.now()::text as at`
  const counts = yield* sql<Counted>`
    with size as (
      -- As the planner computes it: the rows of a page at the last analyze, times the pages of today.
      select case when c.reltuples >= 0 and c.relpages > 0
                  then c.reltuples / c.relpages * (pg_relation_size(c.oid) / current_setting('block_size')::float8)
                  else pg_stat_get_live_tuples(c.oid) end::float8 as tuples,
             coalesce((select s.null_frac from pg_stats s where s.schemaname = ${datasets.current}
                          and s.tablename = ${table} and s.attname = '_deleted_at'), 1)::float8 as live
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = ${datasets.current} and c.relname = ${table}),
    shares as (
      select unnest(most_common_vals::text::bigint[]) as company, unnest(most_common_freqs)::float8 as share
        from pg_stats where schemaname = ${datasets.current} and tablename = ${table} and attname = '_company_id'),
    companies as (
      select company_id as company, 1.0 / count(*) over () as share
        from (select distinct company_id from tributary.checkpoints where resource = ${resource}) known)
    select company, round(tuples * share * live)::float8 as rows, round(tuples * share * (1 - live))::float8 as deleted
      from size, (select * from shares union all select * from companies where not exists (select from shares)) shared`
  yield* keepCounts(resource, counts, false, now!.at)
})

/** Counts within the time limit. A resource that another process counts is left to that process. */
const count = Effect.fnUntraced(function* (
  { resource, at }: Changed,
  datasets: Datasets,
  maxMs: number
): Effect.fn.Return<void, SqlError, SqlClient.SqlClient> {
  const table = yield* tableOf(resource, datasets)
  if (table === null) return
  const sql = yield* SqlClient.SqlClient
  const exactly = Effect.gen(function* () {
    const [state] = yield* sql<{ isFree: boolean; at: string }>`
      select pg_try_advisory_xact_lock(hashtextextended('tributary count ' || ${resource}, 0)) as "isFree",
             tributary.now()::text as at`
    const [counted] = yield* sql<{ isDone: boolean }>`
      select coalesce(bool_and(coalesce(c.counted_at >= ${at}::timestamptz, false)), false) as "isDone"
        from (select distinct company_id from tributary.checkpoints where resource = ${resource}) k
        left join tributary.row_counts c on c.company_id = k.company_id and c.resource = ${resource}`
    if (state?.isFree !== true || counted?.isDone === true) return
    yield* sql`select set_config('statement_timeout', ${`${maxMs}ms`}, true)`
    const counts = yield* sql.unsafe<Counted>(
      `select "_company_id" as company, (count(*) filter (where "_deleted_at" is null))::float8 as rows,
              (count(*) filter (where "_deleted_at" is not null))::float8 as deleted
         from ${identifier(datasets.current)}.${identifier(table)} group by 1`
    )
    yield* sql`select set_config('statement_timeout', '0', true)`
    yield* keepCounts(resource, counts, true, state.at)
  })
  yield* transaction(exactly).pipe(
    Effect.catch((error) =>
      DatabaseError.from("count")(error).code === queryCanceled
        ? estimate(resource, datasets, table)
        : Effect.fail(error)
    )
  )
})

const queryCanceled = "57014"

export interface RowCountsOptions {
  /** The time limit of one count; default 3 s. */
  readonly countMaxMs?: number
}

/** Keeps the counts until it is interrupted. It begins with what changed before it started. */
export const countRows = Effect.fnUntraced(function* (
  datasets: Datasets,
  options: RowCountsOptions = {}
): Effect.fn.Return<never, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  const nowMs = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const maxMs = options.countMaxMs ?? countMaxMs
  /** Resources to count, with the end of the last run that changed each. */
  const wanted = new Map<string, string>()
  /** When each may be counted again. */
  const rests = new Map<string, number>()
  let since: string | null = null
  for (;;) {
    const [now] = yield* sql<{ at: string }>`select tributary.now()::text as at`
    const changed: ReadonlyArray<Changed> =
      since === null ? yield* sql.unsafe<Changed>(uncounted) : yield* sql.unsafe<Changed>(changedSince, [since])
    since = now!.at
    for (const { resource, at } of changed) wanted.set(resource, at)
    for (const [resource, at] of wanted) {
      if ((rests.get(resource) ?? 0) > nowMs()) continue
      const beganAt = nowMs()
      yield* count({ resource, at }, datasets, maxMs)
      wanted.delete(resource)
      rests.set(resource, nowMs() + Math.max(restMinMs, restShare * (nowMs() - beganAt)))
    }
    yield* Effect.sleep(lookEveryMs)
  }
})
