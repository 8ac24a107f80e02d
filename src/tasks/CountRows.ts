/**
 * The row counts of each resource: `tributary.row_counts`.
 *
 * Promise: a resource is counted within seconds after a run changed it, and only then. An idle warehouse gets one cheap
 * query every few seconds. A resource is counted at most every fifteen seconds, and less often where the counts would take
 * more than a small share of the time. Where one count takes more than some seconds, the estimate of Postgres replaces it
 * and is marked. Several processes share the work.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { identifier } from "../warehouse/Identifier.ts"
import type { Datasets } from "../warehouse/Table.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { readInstant } from "../postgres/Now.ts"
import * as Query from "../postgres/Query.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

const counts = control
  .selectFrom("tributary.row_counts")
  // `isExact` is false for an estimate of Postgres.
  .select(["company_id", "resource", "is_exact as isExact", "counted_at as countedAt"])
  // Tombstones are in `deleted` only.
  .select((of) => [of.cast<number>("rows", "float8").as("rows"), of.cast<number>("deleted", "float8").as("deleted")])

export type RowCount = Omit<Query.RowOf<typeof counts>, "company_id" | "resource">

/** The counts of these companies by `<company id> <resource>`. */
export const readOf = (companyIds: ReadonlyArray<bigint> | null): Sql.Query<ReadonlyMap<string, RowCount>> =>
  Effect.map(
    Query.run(companyIds === null ? counts : counts.where("company_id", "=", Query.anyOf(companyIds))),
    (rows) => new Map(rows.map(({ company_id, resource, ...count }) => [`${company_id} ${resource}`, count]))
  )

/** The counts of all companies. */
export const read = readOf(null)

const lookEveryMs = 5_000
const countTimeoutDefault = Duration.seconds(3)
/** The minimum time between two counts, also as a multiple of the time that a count takes. */
const restMinMs = 15_000
const restShare = 50

/** The run changed rows, or read a resource without a count, which may have no rows. */
const didChange = `(r.inserted + r.updated + r.deleted > 0 or r.status in ('done', 'quarantined') and not exists (
  select from tributary.row_counts k where k.company_id = r.company_id and k.resource = r.resource))`

/** A resource that runs changed, and when the last of the runs ended, to the microsecond. */
const changedColumns = { resource: "text", at: "text" } as const
type Changed = Statement.RowOf<typeof uncountedStatement>

export const uncountedStatement = Statement.make({
  name: "find resources that changed after their count",
  columns: changedColumns,
  text: `select resource, max(at)::text as at from (
    select r.company_id, r.resource, max(r.finished_at) as at from tributary.runs r
     where r.finished_at is not null and ${didChange} group by 1, 2) changed
    left join tributary.row_counts c using (company_id, resource)
   where c.counted_at is null or c.counted_at < changed.at group by 1 order by 1`
})

/** Resources that finished or running runs changed. */
export const changedStatement = Statement.make({
  name: "find resources that changed after a time",
  params: ["timestamptz"],
  columns: changedColumns,
  text: `select resource, max(at)::text as at from (
    select r.resource, r.finished_at as at from tributary.runs r where r.finished_at > $1::timestamptz and ${didChange}
    union all
    select r.resource, tributary.now() from tributary.runs r where r.status = 'running' and ${didChange}) changed group by 1 order by 1`
})

export const tableStatement = Statement.make({
  name: "find the table of a resource",
  params: ["name", "text"],
  columns: { name: "name" },
  text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1 and c.relkind = 'r'
         and c.relname = coalesce((select sql_name from tributary.sql_names where scope = '' and api_name = $2), $2)`
})

type Counted = Statement.RowOf<typeof estimateStatement>

export const storeStatement = Statement.make({
  name: "store row counts",
  params: ["text", "bool", "timestamptz", "text"],
  // A company without rows is in no group.
  text: `insert into tributary.row_counts as c (company_id, resource, rows, deleted, is_exact, run_id, counted_at)
    select k.company_id, $1, coalesce(v.rows, 0), coalesce(v.deleted, 0), $2,
           coalesce((select max(id) from tributary.runs r
                      where r.company_id = k.company_id and r.resource = $1 and r.finished_at <= $3::timestamptz), 0), $3::timestamptz
      from (select distinct company_id from tributary.checkpoints where resource = $1) k
      left join jsonb_to_recordset($4::text::jsonb) as v(company bigint, rows bigint, deleted bigint) on v.company = k.company_id
    on conflict (company_id, resource) do update
       set rows = excluded.rows, deleted = excluded.deleted, is_exact = excluded.is_exact, run_id = excluded.run_id, counted_at = excluded.counted_at
     where c.counted_at <= excluded.counted_at`
})

const keepCounts = (resource: string, counts: ReadonlyArray<Counted>, isExact: boolean, at: string) =>
  Statement.run(storeStatement, [
    resource,
    isExact,
    at,
    JSON.stringify(counts.map(({ company, ...count }) => ({ company: company.toString(), ...count })))
  ])

export const estimateStatement = Statement.make({
  name: "estimate the rows of a table",
  params: ["name", "name", "text"],
  columns: { company: "int8", rows: "float8", deleted: "float8" },
  text: `with size as (
      -- As the planner computes it: the rows of a page at the last analyze, times the pages of today.
      select case when c.reltuples >= 0 and c.relpages > 0
                  then c.reltuples / c.relpages * (pg_relation_size(c.oid) / current_setting('block_size')::float8)
                  else pg_stat_get_live_tuples(c.oid) end::float8 as tuples,
             coalesce((select s.null_frac from pg_stats s
                        where s.schemaname = $1 and s.tablename = $2 and s.attname = '_deleted_at'), 1)::float8 as live
        from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2),
    shares as (
      select unnest(most_common_vals::text::bigint[]) as company, unnest(most_common_freqs)::float8 as share
        from pg_stats where schemaname = $1 and tablename = $2 and attname = '_company_id'),
    companies as (
      select company_id as company, 1.0 / count(*) over () as share
        from (select distinct company_id from tributary.checkpoints where resource = $3) known)
    select company, round(tuples * share * live)::float8 as rows, round(tuples * share * (1 - live))::float8 as deleted
      from size, (select * from shares union all select * from companies where not exists (select from shares)) shared`
})

/** Stores the estimate of Postgres. */
const estimate = Effect.fnUntraced(function* (resource: string, datasets: Datasets, table: string) {
  const at = yield* readInstant
  const estimated = yield* Statement.run(estimateStatement, [datasets.current, table, resource])
  yield* keepCounts(resource, estimated, false, at)
})

export const lockStatement = Statement.make({
  name: "lock the count of a resource",
  params: ["text"],
  columns: { isFree: "bool", at: "text" },
  text: `select pg_try_advisory_xact_lock(hashtextextended('tributary count ' || $1, 0)) as "isFree", tributary.now()::text as at`
})

export const countedStatement = Statement.make({
  name: "look whether a resource is counted",
  params: ["timestamptz", "text"],
  columns: { isDone: "bool" },
  text: `select coalesce(bool_and(coalesce(c.counted_at >= $1::timestamptz, false)), false) as "isDone"
        from (select distinct company_id from tributary.checkpoints where resource = $2) k
        left join tributary.row_counts c on c.company_id = k.company_id and c.resource = $2`
})

/** Counts within the time limit. A resource that another process counts is left to that process. */
const count = Effect.fnUntraced(function* (
  { resource, at }: Changed,
  datasets: Datasets,
  timeout: Duration.Duration
): Effect.fn.Return<void, DatabaseError, SqlClient> {
  const [found] = yield* Statement.run(tableStatement, [datasets.current, resource])
  if (found === undefined) return
  const table = found.name
  const exactly = Effect.gen(function* () {
    const [state] = yield* Statement.run(lockStatement, [resource])
    const [earlier] = yield* Statement.run(countedStatement, [at, resource])
    if (state?.isFree !== true || earlier?.isDone === true) return
    yield* Query.setLocal("statement_timeout", `${Duration.toMillis(timeout)}ms`)
    const counted = yield* Sql.rows<Counted>(
      `select "_company_id" as company, (count(*) filter (where "_deleted_at" is null))::float8 as rows,
              (count(*) filter (where "_deleted_at" is not null))::float8 as deleted
         from ${identifier(datasets.current)}.${identifier(table)} group by 1`
    )
    yield* Query.setLocal("statement_timeout", "0")
    yield* keepCounts(resource, counted, true, state.at)
  })
  yield* transaction(exactly).pipe(
    Effect.catchIf(
      ({ code }) => code === queryCanceled,
      () => estimate(resource, datasets, table)
    )
  )
})

const queryCanceled = "57014"

export interface RowCountsOptions {
  /** The time limit of one count; default 3 s. */
  readonly countTimeout?: Duration.Duration
}

/** Keeps the counts until it is interrupted. It begins with the resources that changed before its start. */
export const countRows = Effect.fnUntraced(function* (
  datasets: Datasets,
  options: RowCountsOptions = {}
): Effect.fn.Return<never, DatabaseError, SqlClient> {
  const nowMs = yield* MonotonicClock.make
  const timeout = options.countTimeout ?? countTimeoutDefault
  /** Resources to count, with the end of the last run that changed each. */
  const wanted = new Map<string, string>()
  /** The times at which resources may be counted again. */
  const rests = new Map<string, number>()
  let since: string | null = null
  const look = Effect.gen(function* () {
    const lookedAt = yield* readInstant
    const changed: ReadonlyArray<Changed> = yield* since === null
      ? Statement.run(uncountedStatement)
      : Statement.run(changedStatement, [since])
    since = lookedAt
    for (const { resource, at } of changed) wanted.set(resource, at)
    for (const [resource, at] of wanted) {
      if ((rests.get(resource) ?? 0) > nowMs()) continue
      const beganAt = nowMs()
      yield* count({ resource, at }, datasets, timeout)
      wanted.delete(resource)
      rests.set(resource, nowMs() + Math.max(restMinMs, restShare * (nowMs() - beganAt)))
    }
  })
  return yield* Effect.forever(Effect.andThen(look, Effect.sleep(lookEveryMs)))
})
